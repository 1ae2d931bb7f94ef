/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_jobs.c - the jobs of a shared store: those of the memory store, on the way to the server
 * and back. Which node has a claim is not known there. */
#include "lib/shared_server.h"

/* A call of a node: `call` is what the server does, with its answer in `r`. */
#define THROUGH(store, call)                                      \
    struct node *node = DET_CONTAINER(store, struct node, store); \
    struct det_store *inner = node->shared->inner;                \
    int r;                                                        \
                                                                  \
    r = det_shared_enter(node);                                   \
    if (r < 0)                                                    \
        return r;                                                 \
    r = inner->ops->jobs->call;                                   \
    return det_shared_leave(node, r)

static int shared_put(
    struct det_store *store, const struct det_job_put *jobs, size_t count,
    struct det_job_place *ret)
{
    THROUGH(store, put(inner, jobs, count, ret));
}

static int shared_apply(struct det_store *store, struct det_job_batch *batch)
{
    THROUGH(store, apply(inner, batch));
}

static int shared_list(
    struct det_store *store, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    THROUGH(store, list(inner, query, visit, context));
}

static int shared_change(struct det_store *store, const struct det_job_change *change)
{
    THROUGH(store, change(inner, change));
}

static int shared_forget(struct det_store *store, det_time ended_before, uint64_t *ret)
{
    THROUGH(store, forget(inner, ended_before, ret));
}

static int shared_schedule(struct det_store *store, const char *name, struct det_job_schedule *ret)
{
    THROUGH(store, schedule(inner, name, ret));
}

static int shared_fire(struct det_store *store, const struct det_job_firing *firing)
{
    THROUGH(store, fire(inner, firing));
}

static int shared_restore(struct det_store *store, const struct det_job_row *job, bool *ret)
{
    THROUGH(store, restore(inner, job, ret));
}

static int shared_schedules(
    struct det_store *store,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context)
{
    THROUGH(store, schedules(inner, visit, context));
}

const struct det_job_ops det_shared_jobs = {
    .restore = shared_restore,
    .schedules = shared_schedules,
    .put = shared_put,
    .apply = shared_apply,
    .list = shared_list,
    .change = shared_change,
    .forget = shared_forget,
    .schedule = shared_schedule,
    .fire = shared_fire,
};
