/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory_jobs.h - a job of the memory store, as the files of its jobs share it. All of this is
 * called under the store's mutex, but the operations at the end. */
#ifndef DET_STORE_MEMORY_JOBS_H
#define DET_STORE_MEMORY_JOBS_H

#include "store/jobs.h"
#include "store/memory.h"

struct memory_job {
    struct det_list node;
    const char *name; /* of the map: queue, a line feed, id */
    struct det_job_row row;
    size_t size; /* of this block: the texts and the body are behind it */
    char reason[DET_REASON_MAX + 1];
};

static inline struct memory_job *memory_job_at(struct det_list *node)
{
    return DET_CONTAINER(node, struct memory_job, node);
}

/* NULL: there is none. */
struct memory_job *det_memory_job_find(
    struct memory_store *store, const char *queue, const char *id);
DET_MUST_CHECK int det_memory_job_put(
    struct memory_store *store, const struct det_job_put *put, struct det_job_place *ret);
/* It waits, but not before `run_at`. */
void det_memory_job_wait(struct det_job_row *row, det_time run_at, det_time now);
void det_memory_job_remove(struct memory_store *store, struct memory_job *job);

/* memory_jobs_keep.c */
int det_memory_jobs_change(struct det_store *base, const struct det_job_change *change);
int det_memory_jobs_forget(struct det_store *base, det_time ended_before, uint64_t *ret);
int det_memory_jobs_restore(
    struct det_store *base, const struct det_job_row *job, bool *ret_is_new);

#endif
