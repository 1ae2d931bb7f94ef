/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_jobs.c - jobs and schedules in the SQLite store: each change alone in its transaction.
 *
 * One process has the file. So what runs under another owner than this opening's belongs to a
 * process that is gone, and need not lapse; and what runs under its own does so by a clock that
 * nobody sets. What is done to jobs by hand is in sqlite_jobs_keep.c. */
#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "store/sqlite_jobs.h"

/* One of these goes through the writer; `refusal` is what the caller is told when nothing failed,
 * and nothing was changed. */
struct change {
    const struct det_job_put *put;
    struct det_job_place *ret_place;
    const struct det_job_claim *claim;
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
    det_time *ret_next;
    const struct det_job_end *end;
    const struct det_job_firing *firing;
    uint64_t key;
    uint32_t token;
    det_time span;
    int refusal;
};

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

static int run(
    struct sqlite_store *store, int (*step)(struct sqlite_store *, void *), struct change *change)
{
    int r;

    r = det_sqlite_alone(store, step, change);
    return r != 0 ? r : change->refusal;
}

/* Putting. */

static int find_place(struct sqlite_store *store, struct change *change)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_FIND, &call);
    det_sqlite_text(&call, change->put->queue);
    det_sqlite_text(&call, change->put->id);
    r = det_sqlite_step(&call);
    if (r > 0)
        change->ret_place->key = (uint64_t)det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    return r;
}

static int insert_job(struct sqlite_store *store, struct change *change)
{
    const struct det_job_put *put = change->put;
    det_time now = sqlite_now(store);
    bool is_later = put->run_at > now;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_PUT, &call);
    det_sqlite_text(&call, put->queue);
    det_sqlite_text(&call, put->id);
    det_sqlite_text(&call, put->task);
    det_sqlite_bytes(
        &call, (struct det_chain_bytes){ put->body_size ? put->body : "", put->body_size });
    det_sqlite_text(&call, det_jobs_state_name(is_later ? DET_JOB_DELAYED : DET_JOB_QUEUED));
    det_sqlite_number(&call, is_later ? put->run_at : 0);
    det_sqlite_number(&call, now);
    r = det_sqlite_run(&call);
    if (r == 0)
        change->ret_place->key = (uint64_t)sqlite3_last_insert_rowid(store->writer.database);
    return r;
}

static int put_step(struct sqlite_store *store, void *context)
{
    struct change *change = context;
    int r;

    r = find_place(store, change);
    if (r != 0)
        return r < 0 ? r : 0;
    change->ret_place->is_new = true;
    return insert_job(store, change);
}

static int sqlite_put(
    struct det_store *base, const struct det_job_put *put, struct det_job_place *ret)
{
    int r;

    r = det_jobs_check_put(put);
    if (r < 0)
        return r;
    *ret = (struct det_job_place){ 0 };
    return run(sqlite_store_of(base), put_step, &(struct change){ .put = put, .ret_place = ret });
}

/* Rows: the columns as in JOB_COLUMNS. */

static int read_job(struct sqlite_call *call, struct det_job_row *ret)
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
    r = det_jobs_state_find(det_sqlite_get_text(call, 5, false), &ret->state);
    return call->code != SQLITE_OK ? det_sqlite_error(call->code) : r;
}

/* Claiming. */

/* Puts back into the queue what is due, and what ran in a process that is gone. */
static int put_back(struct sqlite_store *store, const struct change *change, det_time now)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, STATEMENT_JOB_PUT_BACK, &call);
    det_sqlite_text(&call, change->claim->queue);
    det_sqlite_number(&call, now);
    det_sqlite_text(&call, det_sqlite_jobs_owner(store));
    det_sqlite_number(&call, det_sqlite_jobs_steady(store));
    return det_sqlite_run(&call);
}

static int take_first(struct sqlite_store *store, struct change *change)
{
    struct sqlite_call call;
    struct det_job_row job;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_TAKE, &call);
    det_sqlite_text(&call, change->claim->queue);
    det_sqlite_number(&call, change->claim->capacity);
    det_sqlite_number(&call, det_jobs_after(det_sqlite_jobs_steady(store), change->claim->span));
    det_sqlite_text(&call, det_sqlite_jobs_owner(store));
    r = det_sqlite_step(&call);
    if (r == 0)
        change->refusal = DET_ERR_NOT_FOUND;
    if (r > 0) {
        r = read_job(&call, &job);
        if (r == 0)
            r = change->visit(change->context, &job);
    }
    det_sqlite_end(&call);
    return r;
}

static int find_next(struct sqlite_store *store, const struct change *change, det_time now)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_NEXT, &call);
    det_sqlite_text(&call, change->claim->queue);
    det_sqlite_number(&call, now - det_sqlite_jobs_steady(store));
    r = det_sqlite_step(&call);
    *change->ret_next = r > 0 ? det_sqlite_get_number(&call, 0) : DET_NEVER;
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

static int claim_step(struct sqlite_store *store, void *context)
{
    struct change *change = context;
    det_time now = sqlite_now(store);
    int r;

    r = put_back(store, change, now);
    if (r == 0)
        r = take_first(store, change);
    if (r == 0)
        r = find_next(store, change, now);
    return r;
}

static int sqlite_claim(
    struct det_store *base, const struct det_job_claim *claim,
    int (*visit)(void *context, const struct det_job_row *job), void *context, det_time *ret_next)
{
    int r;

    r = det_jobs_check_claim(claim);
    if (r < 0)
        return r;
    return run(
        sqlite_store_of(base), claim_step,
        &(struct change){
            .claim = claim, .visit = visit, .context = context, .ret_next = ret_next });
}

static int renew_step(struct sqlite_store *store, void *context)
{
    struct change *change = context;
    det_time now = det_sqlite_jobs_steady(store);
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_RENEW, &call);
    det_sqlite_number(&call, (int64_t)change->key);
    det_sqlite_number(&call, change->token);
    det_sqlite_number(&call, now);
    det_sqlite_number(&call, det_jobs_after(now, change->span));
    r = det_sqlite_run(&call);
    if (r == 0 && sqlite_changed_rows(store) == 0)
        change->refusal = DET_ERR_LOCK_LOST;
    return r;
}

static int sqlite_renew(struct det_store *base, uint64_t key, uint32_t token, det_time span)
{
    if (span <= 0)
        return DET_ERR_INVALID;
    return run(
        sqlite_store_of(base), renew_step,
        &(struct change){ .key = key, .token = token, .span = span });
}

/* Ending. */

static int end_step(struct sqlite_store *store, void *context)
{
    struct change *change = context;
    const struct det_job_end *end = change->end;
    det_time now = sqlite_now(store);
    bool is_again = end->state == DET_JOB_DELAYED, is_later = is_again && end->run_at > now;
    char reason[DET_REASON_MAX + 1];
    struct sqlite_call call;
    int r;

    (void)det_text_copy(reason, sizeof reason, end->reason ? end->reason : "");
    det_sqlite_call(&store->writer, STATEMENT_JOB_END, &call);
    det_sqlite_number(&call, (int64_t)end->key);
    det_sqlite_number(&call, end->token);
    det_sqlite_text(
        &call, det_jobs_state_name(is_again && !is_later ? DET_JOB_QUEUED : end->state));
    det_sqlite_number(&call, is_later ? end->run_at : 0);
    det_sqlite_number(&call, is_again ? 0 : now);
    det_sqlite_text(&call, reason);
    r = det_sqlite_run(&call);
    if (r == 0 && sqlite_changed_rows(store) == 0)
        change->refusal = DET_ERR_LOCK_LOST;
    return r;
}

static int sqlite_end(struct det_store *base, const struct det_job_end *end)
{
    int r;

    r = det_jobs_check_end(end);
    if (r < 0)
        return r;
    return run(sqlite_store_of(base), end_step, &(struct change){ .end = end });
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
    det_sqlite_number(call, (int64_t)query->after);
    det_sqlite_number(call, query->limit < INT64_MAX ? (int64_t)query->limit : INT64_MAX);
    det_sqlite_text(call, query->id);
    det_sqlite_text(call, query->has_state ? det_jobs_state_name(query->state) : NULL);
}

static int show_job(struct sqlite_call *call, void *context)
{
    const struct job_walk *walk = context;
    struct det_job_row job;
    int r;

    r = read_job(call, &job);
    return r < 0 ? r : walk->visit(walk->context, &job);
}

static int sqlite_list(
    struct det_store *base, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct job_walk walk = { query, visit, context };
    const struct sqlite_question question = { STATEMENT_JOB_LIST, bind_query, show_job, &walk };

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

static int fire_step(struct sqlite_store *store, void *context)
{
    struct change *change = context;
    const struct det_job_firing *firing = change->firing;
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
    return firing->job ? put_step(store, change) : 0;
}

static int sqlite_fire(struct det_store *base, const struct det_job_firing *firing)
{
    struct det_job_place place = { 0 };
    int r;

    r = det_jobs_check_firing(firing);
    if (r < 0)
        return r;
    return run(
        sqlite_store_of(base), fire_step,
        &(struct change){ .firing = firing, .put = firing->job, .ret_place = &place });
}

const struct det_job_ops det_sqlite_jobs = {
    .put = sqlite_put,
    .claim = sqlite_claim,
    .renew = sqlite_renew,
    .end = sqlite_end,
    .list = sqlite_list,
    .change = det_sqlite_jobs_change,
    .forget = det_sqlite_jobs_forget,
    .restore = det_sqlite_jobs_restore,
    .schedules = sqlite_schedules,
    .schedule = sqlite_schedule,
    .fire = sqlite_fire,
};
