/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - jobs and schedules in the SQLite store: rows, lists and firings.
 *
 *     sqlite/jobs_put.c     puts of several threads, in one transaction
 *     sqlite/jobs_claim.c   ends, renewals and claims of a queue, in one transaction
 *     sqlite/jobs_keep.c    what is done to jobs by hand
 *
 * One process has the file. So what runs under another owner than this opening's belongs to a
 * process that is gone, and need not lapse; and what runs under its own does so by a clock that
 * nobody sets. */
#include <stdio.h>
#include <string.h>

#include "os/os.h"
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

int det_sqlite_jobs_read(struct sqlite_call *call, struct det_job_row *ret)
{
    struct det_chain_bytes body = det_sqlite_get_bytes(call, 4);
    int r;

    *ret = (struct det_job_row){
        .key = (uint64_t)det_sqlite_get_number(call, 0),
        .queue = det_sqlite_get_text(call, 1, false),
        .id = det_sqlite_get_text(call, 2, false),
        .task = det_sqlite_get_text(call, 3, false),
        .body = body.data,
        .body_size = body.size,
        .due_at = det_sqlite_get_number(call, 6),
        .attempts = (uint32_t)det_sqlite_get_number(call, 7),
        .owner = det_sqlite_get_text(call, 8, false),
        .submitted_at = det_sqlite_get_number(call, 9),
        .ended_at = det_sqlite_get_number(call, 10),
        .reason = det_sqlite_get_text(call, 11, false),
        .lost = (uint32_t)det_sqlite_get_number(call, 12),
    };
    ret->is_damaged = det_sqlite_get_whole(call, 13) < 0;
    r = det_jobs_state_find(det_sqlite_get_text(call, 5, false), &ret->state);
    if (call->code != SQLITE_OK)
        return det_sqlite_error(call->code);
    if (r < 0 && ret->is_damaged)
        ret->state = DET_JOB_FAILED;
    return ret->is_damaged ? 0 : r;
}

struct job_walk {
    const struct det_job_query *query;
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
};

static void bind_query(struct sqlite_call *call, void *context)
{
    const struct det_job_query *query = ((const struct job_walk *)context)->query;

    det_sqlite_text(call, query->queue);
    det_sqlite_number(call, det_jobs_list_after(query));
    det_sqlite_number(call, query->limit < INT64_MAX ? (int64_t)query->limit : INT64_MAX);
    det_sqlite_text(call, query->id);
    det_sqlite_text(call, query->has_state ? det_jobs_state_name(query->state) : NULL);
}

static int show_job(struct sqlite_call *call, void *context)
{
    const struct job_walk *walk = context;
    struct det_job_row job;
    int r;

    r = det_sqlite_jobs_read(call, &job);
    return r < 0 ? r : walk->visit(walk->context, &job);
}

/* The one for which there is an index, so that a list does not read every ended job. */
static enum sqlite_statement list_statement(const struct det_job_query *query)
{
    enum sqlite_statement statement = STATEMENT_JOB_LIST;

    if (query->queue && query->id)
        statement = STATEMENT_JOB_LIST_ID;
    else if (query->queue && query->has_state && query->state == DET_JOB_QUEUED)
        statement = STATEMENT_JOB_LIST_QUEUED;
    else if (query->queue && query->has_state && query->state == DET_JOB_DELAYED)
        statement = STATEMENT_JOB_LIST_DELAYED;
    else if (query->queue && query->has_state && query->state == DET_JOB_RUNNING)
        statement = STATEMENT_JOB_LIST_RUNNING;
    return query->is_newest_first ? statement + 1 : statement;
}

static int sqlite_list(
    struct det_store *base, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct job_walk walk = { query, visit, context };
    const struct sqlite_question question = { list_statement(query), bind_query, show_job, &walk };

    return det_sqlite_ask(sqlite_store_of(base), &question);
}

/* Schedules. */

struct schedule_look {
    const char *name;
    struct det_job_schedule *ret;
};

static void bind_schedule(struct sqlite_call *call, void *context)
{
    det_sqlite_text(call, ((const struct schedule_look *)context)->name);
}

static int read_schedule(struct sqlite_call *call, void *context)
{
    *((const struct schedule_look *)context)->ret = (struct det_job_schedule){
        .next_at = det_sqlite_get_number(call, 0),
        .last_at = det_sqlite_get_number(call, 1),
        .token = (uint64_t)det_sqlite_get_number(call, 2),
    };
    return det_sqlite_get_whole(call, 4);
}

static int sqlite_schedule(struct det_store *base, const char *name, struct det_job_schedule *ret)
{
    struct schedule_look look = { name, ret };
    const struct sqlite_question question = { STATEMENT_SCHEDULE_READ, bind_schedule, read_schedule,
                                              &look };
    int r;

    r = det_jobs_check_name(name);
    if (r < 0)
        return r;
    *ret = (struct det_job_schedule){ 0 };
    return det_sqlite_ask(sqlite_store_of(base), &question);
}

struct schedule_walk {
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule);
    void *context;
};

static int show_schedule(struct sqlite_call *call, void *context)
{
    const struct schedule_walk *walk = context;
    struct det_job_schedule schedule;
    struct schedule_look look = { NULL, &schedule };
    const char *name = det_sqlite_get_text(call, 3, false);
    int r;

    r = read_schedule(call, &look);
    if (r < 0)
        return r;
    return walk->visit(walk->context, name, &schedule);
}

static int sqlite_schedules(
    struct det_store *base,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context)
{
    struct schedule_walk walk = { visit, context };
    const struct sqlite_question question = { STATEMENT_SCHEDULE_LIST, NULL, show_schedule, &walk };

    return det_sqlite_ask(sqlite_store_of(base), &question);
}

/* `refusal` is what the caller is told when nothing failed, and nothing was changed. */
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
    .list = sqlite_list,
    .change = det_sqlite_jobs_change,
    .forget = det_sqlite_jobs_forget,
    .restore = det_sqlite_jobs_restore,
    .schedules = sqlite_schedules,
    .schedule = sqlite_schedule,
    .fire = sqlite_fire,
};
