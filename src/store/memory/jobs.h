/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - a job of the memory store, shared by its files. All functions except the operations at
 * the end are called under the store's mutex. */
#ifndef DET_STORE_MEMORY_JOBS_H
#define DET_STORE_MEMORY_JOBS_H

#include "base/heap.h"
#include "base/id_map.h"
#include "store/jobs.h"
#include "store/memory/memory.h"

/* The pending jobs of a queue, each in the heap of its state. A queue is never removed. */
struct memory_queue {
    const char *name;       /* follows the struct */
    size_t count;           /* number of its jobs, including ended ones: the capacity of each
                             * heap */
    struct det_heap queued; /* by key */
    struct det_heap delayed, running; /* by due_at */
};

struct memory_job {
    struct det_list node;
    struct det_id_node by_key;  /* the key */
    struct det_heap_node place; /* in the heap of its state */
    struct memory_queue *queue;
    const char *name; /* key of the map: queue, a line feed, id */
    struct det_job_row row;
    size_t size; /* size of this block: the texts and the body follow the struct */
    char reason[DET_REASON_MAX + 1];
};

static inline struct memory_job *memory_job_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct memory_job, node);
}

/* NULL: no such job. */
struct memory_job *det_memory_job_find(
    struct memory_store *store, const char *queue, const char *id);
struct memory_job *det_memory_job_of_key(struct memory_store *store, uint64_t key);
/* Returns DET_ERR_NO_MEMORY; other errors are in the result. */
DET_MUST_CHECK int det_memory_job_put(
    struct memory_store *store, const struct det_job_put *put, struct det_job_place *ret);
/* Changes the state. `due_at` is 0 unless the state is DELAYED or RUNNING. */
void det_memory_job_set_state(struct memory_job *job, enum det_job_state state, det_time due_at);
/* Makes the job wait, but not before `run_at`. */
void det_memory_job_wait(struct memory_job *job, det_time run_at, det_time now);
/* Assigns the next key, and thus the last place in its queue. */
void det_memory_job_set_last(struct memory_store *store, struct memory_job *job);
void det_memory_job_remove(struct memory_store *store, struct memory_job *job);

/* memory/jobs_claim.c */
int det_memory_jobs_apply(struct det_store *base, struct det_job_batch *batch);

/* memory/jobs_keep.c */
int det_memory_jobs_change(struct det_store *base, const struct det_job_change *change);
int det_memory_jobs_forget(struct det_store *base, det_time ended_before, uint64_t *ret);
int det_memory_jobs_restore(
    struct det_store *base, const struct det_job_row *job, bool *ret_is_new);

#endif
