/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - jobs and schedules on PostgreSQL, which several processes share: rows, lists,
 * what is done by hand, and firings.
 *
 *     postgres/jobs_put.c     puts of several threads, in one statement
 *     postgres/jobs_claim.c   ends, renewals and claims of a queue, in one pipeline
 *
 * A firing whose outcome is not known is not tried again. */
#include <string.h>

#include "store/jobs.h"
#include "store/postgres/jobs.h"

int det_postgres_jobs_read(const PGresult *rows, int row, struct det_job_row *ret)
{
    struct det_chain_bytes body = det_postgres_bytes(rows, row, 4);
    int r;

    *ret = (struct det_job_row){
        .key = (uint64_t)det_postgres_number(rows, row, 0),
        .queue = det_postgres_text(rows, row, 1),
        .id = det_postgres_text(rows, row, 2),
        .task = det_postgres_text(rows, row, 3),
        .body = body.data,
        .body_size = body.size,
        .due_at = det_postgres_number(rows, row, 6),
        .attempts = (uint32_t)det_postgres_number(rows, row, 7),
        .owner = det_postgres_text(rows, row, 8),
        .submitted_at = det_postgres_number(rows, row, 9),
        .ended_at = det_postgres_number(rows, row, 10),
        .reason = det_postgres_text(rows, row, 11),
        .lost = (uint32_t)det_postgres_number(rows, row, 12),
    };
    ret->is_damaged = !det_postgres_bool(rows, row, 13);
    r = det_jobs_state_find(det_postgres_text(rows, row, 5), &ret->state);
    if (r < 0 && ret->is_damaged)
        ret->state = DET_JOB_FAILED;
    return ret->is_damaged ? 0 : r;
}

/* Statements that answer with a row for what they have changed. */

struct change {
    enum postgres_statement_id statement;
    const struct postgres_parameters *parameters;
    int refusal; /* when there is none */
};

static void send_change(struct postgres_exchange *exchange, void *context)
{
    const struct change *change = context;

    det_postgres_ask(exchange, change->statement, change->parameters);
}

static int take_change(struct postgres_exchange *exchange, void *context)
{
    const struct change *change = context;

    return PQntuples(exchange->results[0]) > 0 ? 0 : change->refusal;
}

static int run_change(struct det_store *base, struct change *change, bool is_repeatable)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct postgres_job job = { send_change, take_change, change, is_repeatable, 0 };

    return store->is_read_only ? DET_ERR_READ_ONLY : det_postgres_run(store, &job, NULL);
}

static int postgres_change(struct det_store *base, const struct det_job_change *by_hand)
{
    bool is_retry = by_hand->verb == DET_JOB_RETRY;
    struct postgres_parameters parameters = { 0 };
    struct change change = { is_retry ? POSTGRES_JOB_RETRY : POSTGRES_JOB_CANCEL, &parameters,
                             DET_ERR_NOT_FOUND };
    char reason[DET_REASON_MAX + 1];
    int r;

    r = det_jobs_check_change(by_hand);
    if (r < 0)
        return r;
    (void)det_text_copy(reason, sizeof reason, by_hand->reason ? by_hand->reason : "");
    det_postgres_add_text(&parameters, by_hand->queue);
    det_postgres_add_text(&parameters, by_hand->id);
    if (!is_retry)
        det_postgres_add_text(&parameters, reason);
    return run_change(base, &change, false);
}

static int postgres_restore(struct det_store *base, const struct det_job_row *job, bool *ret_is_new)
{
    struct postgres_parameters parameters = { 0 };
    struct change change = { POSTGRES_JOB_RESTORE, &parameters, DET_ERR_EXISTS };
    struct det_job_row row;
    int r;

    r = det_jobs_check_restored(job, &row);
    if (r < 0)
        return r;
    det_postgres_add_text(&parameters, row.queue);
    det_postgres_add_text(&parameters, row.id);
    det_postgres_add_text(&parameters, row.task);
    det_postgres_add_bytes(
        &parameters, (struct det_chain_bytes){ row.body_size ? row.body : "", row.body_size });
    det_postgres_add_text(&parameters, det_jobs_state_name(row.state));
    det_postgres_add_number(&parameters, row.due_at);
    det_postgres_add_number(&parameters, row.attempts);
    det_postgres_add_number(&parameters, row.submitted_at);
    det_postgres_add_number(&parameters, row.ended_at);
    det_postgres_add_text(&parameters, row.reason);
    det_postgres_add_number(&parameters, row.lost);
    r = run_change(base, &change, true);
    *ret_is_new = r == 0;
    return r == DET_ERR_EXISTS ? 0 : r;
}

/* Lists. */

struct listing {
    const struct det_job_query *query;
    int (*visit)(void *context, const struct det_job_row *job);
    void *context;
};

static void send_list(struct postgres_exchange *exchange, void *context)
{
    const struct det_job_query *query = ((struct listing *)context)->query;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, query->queue);
    det_postgres_add_number(&parameters, det_jobs_list_after(query));
    det_postgres_add_number(
        &parameters, query->limit < INT64_MAX ? (int64_t)query->limit : INT64_MAX);
    det_postgres_add_text(&parameters, query->id);
    det_postgres_add_text(&parameters, query->has_state ? det_jobs_state_name(query->state) : NULL);
    det_postgres_ask(
        exchange, query->is_newest_first ? POSTGRES_JOB_LIST_NEWEST : POSTGRES_JOB_LIST,
        &parameters);
}

static int take_list(struct postgres_exchange *exchange, void *context)
{
    const struct listing *listing = context;
    const PGresult *rows = exchange->results[0];
    struct det_job_row row;
    int r = 0;

    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        r = det_postgres_jobs_read(rows, i, &row);
        if (r == 0)
            r = listing->visit(listing->context, &row);
    }
    return r;
}

static int postgres_list(
    struct det_store *base, const struct det_job_query *query,
    int (*visit)(void *context, const struct det_job_row *job), void *context)
{
    struct listing listing = { query, visit, context };
    const struct postgres_job job = { send_list, take_list, &listing, true, 0 };

    return det_postgres_run(postgres_store_of(base), &job, NULL);
}

struct forgetting {
    det_time ended_before;
    uint64_t *ret;
};

static void send_forget(struct postgres_exchange *exchange, void *context)
{
    const struct forgetting *forgetting = context;
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_number(&parameters, forgetting->ended_before);
    det_postgres_add_number(&parameters, DET_JOBS_FORGOTTEN_AT_ONCE);
    det_postgres_ask(exchange, POSTGRES_JOB_FORGET, &parameters);
}

static int take_forget(struct postgres_exchange *exchange, void *context)
{
    *((struct forgetting *)context)->ret =
        (uint64_t)det_postgres_number(exchange->results[0], 0, 0);
    return 0;
}

static int postgres_forget(struct det_store *base, det_time ended_before, uint64_t *ret)
{
    struct postgres_store *store = postgres_store_of(base);
    uint64_t count = 0;
    struct forgetting forgetting = { ended_before, &count };
    const struct postgres_job job = { send_forget, take_forget, &forgetting, true, 0 };
    int r;

    *ret = 0;
    if (store->is_read_only)
        return DET_ERR_READ_ONLY;
    /* Where two do this at once, each finds less than there is. */
    do {
        r = det_postgres_run(store, &job, NULL);
        *ret += r == 0 ? count : 0;
    } while (r == 0 && count > 0);
    return r;
}

/* Schedules. */

/* Of no job: NULLs. */
static void add_job(struct postgres_parameters *parameters, const struct det_job_put *job)
{
    det_postgres_add_text(parameters, job ? job->queue : NULL);
    det_postgres_add_text(parameters, job ? job->id : NULL);
    det_postgres_add_text(parameters, job ? job->task : NULL);
    det_postgres_add_bytes(
        parameters, (struct det_chain_bytes){ job && job->body_size ? job->body : "",
                                              job ? job->body_size : 0 });
    det_postgres_add_number(parameters, job ? job->run_at : 0);
}

struct looking {
    const char *name;
    struct det_job_schedule *ret;
};

static void send_schedule(struct postgres_exchange *exchange, void *context)
{
    struct postgres_parameters parameters = { 0 };

    det_postgres_add_text(&parameters, ((struct looking *)context)->name);
    det_postgres_ask(exchange, POSTGRES_SCHEDULE_READ, &parameters);
}

static struct det_job_schedule read_schedule(const PGresult *rows, int row)
{
    return (struct det_job_schedule){
        .next_at = det_postgres_number(rows, row, 0),
        .last_at = det_postgres_number(rows, row, 1),
        .token = (uint64_t)det_postgres_number(rows, row, 2),
    };
}

static int take_schedule(struct postgres_exchange *exchange, void *context)
{
    struct det_job_schedule *ret = ((struct looking *)context)->ret;
    const PGresult *row = exchange->results[0];

    *ret = PQntuples(row) ? read_schedule(row, 0) : (struct det_job_schedule){ 0 };
    return PQntuples(row) && !det_postgres_bool(row, 0, 4) ? DET_ERR_CORRUPT : 0;
}

struct schedule_listing {
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule);
    void *context;
};

static void send_schedules(struct postgres_exchange *exchange, void *context)
{
    const struct postgres_parameters none = { 0 };

    (void)context;
    det_postgres_ask(exchange, POSTGRES_SCHEDULE_LIST, &none);
}

static int take_schedules(struct postgres_exchange *exchange, void *context)
{
    const struct schedule_listing *listing = context;
    const PGresult *rows = exchange->results[0];
    int r = 0;

    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        struct det_job_schedule schedule = read_schedule(rows, i);

        if (!det_postgres_bool(rows, i, 4))
            return DET_ERR_CORRUPT;
        r = listing->visit(listing->context, det_postgres_text(rows, i, 3), &schedule);
    }
    return r;
}

static int postgres_schedules(
    struct det_store *base,
    int (*visit)(void *context, const char *name, const struct det_job_schedule *schedule),
    void *context)
{
    struct schedule_listing listing = { visit, context };
    const struct postgres_job job = { send_schedules, take_schedules, &listing, true, 0 };

    return det_postgres_run(postgres_store_of(base), &job, NULL);
}

static int postgres_schedule(struct det_store *base, const char *name, struct det_job_schedule *ret)
{
    struct looking looking = { name, ret };
    const struct postgres_job job = { send_schedule, take_schedule, &looking, true, 0 };

    if (det_jobs_check_name(name) < 0)
        return DET_ERR_INVALID;
    return det_postgres_run(postgres_store_of(base), &job, NULL);
}

static int postgres_fire(struct det_store *base, const struct det_job_firing *firing)
{
    struct postgres_parameters parameters = { 0 };
    struct change change = { firing->token ? POSTGRES_SCHEDULE_MOVE : POSTGRES_SCHEDULE_ADD,
                             &parameters, DET_ERR_CONFLICT };
    int r;

    r = det_jobs_check_firing(firing);
    if (r < 0)
        return r;
    add_job(&parameters, firing->job);
    det_postgres_add_text(&parameters, firing->name);
    det_postgres_add_number(&parameters, firing->next_at);
    det_postgres_add_number(&parameters, firing->last_at);
    if (firing->token)
        det_postgres_add_number(&parameters, (int64_t)firing->token);
    return run_change(base, &change, false);
}

const struct det_job_ops det_postgres_jobs = {
    .put = det_postgres_jobs_put,
    .apply = det_postgres_jobs_apply,
    .list = postgres_list,
    .change = postgres_change,
    .forget = postgres_forget,
    .restore = postgres_restore,
    .schedules = postgres_schedules,
    .schedule = postgres_schedule,
    .fire = postgres_fire,
    .listen = det_postgres_jobs_listen,
    .unlisten = det_postgres_jobs_unlisten,
};
