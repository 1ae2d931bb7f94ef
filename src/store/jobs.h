/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.h - the common part of jobs for all drivers: validation, and the names of states. */
#ifndef DET_STORE_JOBS_H
#define DET_STORE_JOBS_H

#include <detent/driver/jobs.h>

#include "base/text.h"
#include "store/store.h"

/* Jobs are deleted in batches of this size; other transactions run between two batches. */
#define DET_JOBS_FORGOTTEN_AT_ONCE 500

/* 0 or DET_ERR_INVALID. */
DET_MUST_CHECK int det_jobs_check_name(const char *name);
/* A call of `put`: an item of a group commit. */
struct det_jobs_put_call {
    const struct det_job_put *jobs;
    size_t count;
    struct det_job_place *ret;
};

/* Sets each result to 0 or DET_ERR_INVALID; returns true if one of them is 0. */
bool det_jobs_check_puts(const struct det_job_put *jobs, size_t count, struct det_job_place *ret);
/* True if the row has the task and the body of the job. */
bool det_jobs_is_same(const struct det_job_put *job, const struct det_job_row *row);
/* Also resets the results of its parts and the claims. */
DET_MUST_CHECK int det_jobs_check_batch(struct det_job_batch *batch);
DET_MUST_CHECK int det_jobs_check_change(const struct det_job_change *change);
DET_MUST_CHECK int det_jobs_check_firing(const struct det_job_firing *firing);
/* Also computes the row in its new store. */
DET_MUST_CHECK int det_jobs_check_restored(const struct det_job_row *job, struct det_job_row *ret);

/* The key after which a list by the query begins, as an SQL number. */
static inline int64_t det_jobs_list_after(const struct det_job_query *query)
{
    bool is_from_end = query->is_newest_first && !query->after;

    return is_from_end || query->after > INT64_MAX ? INT64_MAX : (int64_t)query->after;
}

const char *det_jobs_state_name(enum det_job_state state);
/* DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_jobs_state_find(const char *name, enum det_job_state *ret);

/* `now` + `span`; `span` may be DET_NEVER. */
static inline det_time det_jobs_after(det_time now, det_time span)
{
    return span < DET_NEVER - now ? now + span : DET_NEVER;
}

#endif
