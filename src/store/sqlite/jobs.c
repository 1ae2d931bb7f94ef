/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - the operations on jobs in the SQLite store, and the firings of schedules.
 *
 *     sqlite/jobs_put.c     puts of several threads, in one transaction
 *     sqlite/jobs_claim.c   ends, renewals and claims of a queue, in one transaction
 *     sql/jobs.c            lists, manual changes, and operations shared with PostgreSQL
 *
 * Only one process has the file open for writing. A running job with the owner of another opening
 * belongs to a dead process, and is free at once; the claims of this opening lapse by a clock that
 * is never set. */
#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "store/sql/jobs.h"
#include "store/sqlite/jobs.h"

const char *det_sqlite_jobs_owner(struct sqlite_store *store)
{
    if (!store->job_owner[0]) {
        (void)snprintf(
            store->job_owner, sizeof store->job_owner, "%016llx",
            (unsigned long long)det_world_random_u64(store->store.world));
        store->job_epoch = sqlite_now(store) - det_world_now(store->store.world, DET_CLOCK_BOOT);
    }
    return store->job_owner;
}

det_time det_sqlite_jobs_steady(struct sqlite_store *store)
{
    (void)det_sqlite_jobs_owner(store);
    return store->job_epoch + det_world_now(store->store.world, DET_CLOCK_BOOT);
}

/* `refusal` is the caller's result if no error occurred and nothing was changed. */
struct firing {
    const struct det_job_firing *firing;
    int refusal;
};

static int fire_step(struct sqlite_store *store, void *context)
{
    struct firing *change = context;
    const struct det_job_firing *firing = change->firing;
    struct det_job_place place;
    struct sqlite_call call;
    int r;

    det_sqlite_call(
        &store->writer, firing->token ? STATEMENT_SCHEDULE_MOVE : STATEMENT_SCHEDULE_ADD, &call);
    det_sqlite_text(&call, firing->name);
    det_sqlite_number(&call, firing->next_at);
    det_sqlite_number(&call, firing->last_at);
    if (firing->token)
        det_sqlite_number(&call, (int64_t)firing->token);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    if (sqlite_changed_rows(store) == 0) {
        change->refusal = DET_ERR_CONFLICT;
        return 0;
    }
    return firing->job ? det_sqlite_jobs_insert(store, firing->job, &place) : 0;
}

static int sqlite_fire(struct det_store *base, const struct det_job_firing *firing)
{
    struct firing change = { .firing = firing };
    int r;

    r = det_jobs_check_firing(firing);
    if (r < 0)
        return r;
    r = det_sqlite_alone(sqlite_store_of(base), fire_step, &change);
    return r != 0 ? r : change.refusal;
}

const struct det_job_ops det_sqlite_jobs = {
    .put = det_sqlite_jobs_put,
    .apply = det_sqlite_jobs_apply,
    .list = det_sql_jobs_list,
    .change = det_sql_jobs_change,
    .forget = det_sql_jobs_forget,
    .restore = det_sql_jobs_restore,
    .schedules = det_sql_schedules,
    .schedule = det_sql_schedule,
    .fire = sqlite_fire,
};
