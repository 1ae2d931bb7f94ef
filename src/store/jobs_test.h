/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_test.h - operations on a single job, for tests: each is one call of the store's batch
 * operation. */
#ifndef DET_STORE_JOBS_TEST_H
#define DET_STORE_JOBS_TEST_H

#include "store/jobs.h"

static inline int det_jobs_put(
    struct det_store *store, const struct det_job_put *job, struct det_job_place *ret)
{
    int r = store->ops->jobs->put(store, job, 1, ret);

    return r < 0 ? r : ret->result;
}

struct det_job_claim {
    const char *queue;
    uint32_t capacity;
    det_time span;
};
/* DET_ERR_NOT_FOUND: no job can be claimed, or the capacity is used. */
static inline int det_jobs_claim(
    struct det_store *store, const struct det_job_claim *claim,
    int (*visit)(void *context, const struct det_job_row *job), void *context, det_time *ret_next)
{
    struct det_job_batch batch = { .queue = claim->queue,
                                   .capacity = claim->capacity,
                                   .span = claim->span,
                                   .wanted = 1,
                                   .visit = visit,
                                   .context = context };
    int r = store->ops->jobs->apply(store, &batch);

    *ret_next = batch.next;
    return r == 0 && !batch.claimed ? DET_ERR_NOT_FOUND : r;
}

static inline int det_jobs_renew(
    struct det_store *store, const char *queue, uint64_t key, uint32_t token, det_time span)
{
    struct det_job_renewal renewal = { .key = key, .token = token };
    struct det_job_batch batch = {
        .queue = queue, .renewals = &renewal, .renewal_count = 1, .span = span
    };
    int r = store->ops->jobs->apply(store, &batch);

    return r < 0 ? r : renewal.result;
}

static inline int det_jobs_end(
    struct det_store *store, const char *queue, const struct det_job_end *end)
{
    struct det_job_end copy = *end;
    struct det_job_batch batch = { .queue = queue, .ends = &copy, .end_count = 1 };
    int r = store->ops->jobs->apply(store, &batch);

    return r < 0 ? r : copy.result;
}

#endif
