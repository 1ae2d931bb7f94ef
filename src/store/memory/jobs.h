/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - a job of the memory store, as the files of its jobs share it. All of this is
 * called under the store's mutex, but the operations at the end. */
#ifndef DET_STORE_MEMORY_JOBS_H
#define DET_STORE_MEMORY_JOBS_H

#include "base/heap.h"
#include "base/id_map.h"
#include "store/jobs.h"
#include "store/memory/memory.h"

/* The jobs of a queue that have not ended, each in the heap of its state. It stays, however empty.
 */
struct memory_queue {
    const char *name;       /* follows the struct */
    size_t count;           /* of its jobs, ended ones too: each heap has room for so many */
    struct det_heap queued; /* by key */
    struct det_heap delayed, running; /* by due_at */
};

struct memory_job {
    struct det_list node;
    struct det_id_node by_key;  /* the key */
    struct det_heap_node place; /* in the heap of its state */
    struct memory_queue *queue;
    const char *name; /* of the map: queue, a line feed, id */
    struct det_job_row row;
    size_t size; /* of this block: the texts and the body follow it */
    char reason[DET_REASON_MAX + 1];
};

static inline struct memory_job *memory_job_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct memory_job, node);
}

/* NULL: there is none. */
struct memory_job *det_memory_job_find(
    struct memory_store *store, const char *queue, const char *id);
struct memory_job *det_memory_job_of_key(struct memory_store *store, uint64_t key);
/* DET_ERR_NO_MEMORY is returned; whatever else there is to say is in the result. */
DET_MUST_CHECK int det_memory_job_put(
    struct memory_store *store, const struct det_job_put *put, struct det_job_place *ret);
/* Every change of a state. `due_at` of one that is neither DELAYED nor RUNNING is 0. */
void det_memory_job_set_state(struct memory_job *job, enum det_job_state state, det_time due_at);
/* It waits, but not before `run_at`. */
void det_memory_job_wait(struct memory_job *job, det_time run_at, det_time now);
/* Gives it the next key, and so the last place in its queue. */
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
