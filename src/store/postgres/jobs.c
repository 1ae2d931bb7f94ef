/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs.c - the operations on jobs in PostgreSQL, which several processes share, and the firings of
 * schedules.
 *
 *     postgres/jobs_put.c     puts of several threads, in one statement
 *     postgres/jobs_claim.c   ends, renewals and claims of a queue, in one pipeline
 *     sql/jobs.c              lists, manual changes, and operations shared with SQLite */
#include "store/postgres/jobs.h"
#include "store/sql/jobs.h"

static void add_job(struct postgres_parameters *parameters, const struct det_job_put *job)
{
    static const struct det_job_put none = { .run_at = 0 };
    const struct det_job_put *put = job ? job : &none;

    det_postgres_add_text(parameters, put->queue);
    det_postgres_add_text(parameters, put->id);
    det_postgres_add_text(parameters, put->task);
    det_postgres_add_bytes(
        parameters, (struct det_chain_bytes){ put->body_size ? put->body : "", put->body_size });
    det_postgres_add_number(parameters, put->run_at);
}

static void send_firing(struct postgres_exchange *exchange, void *context)
{
    const struct det_job_firing *firing = context;
    struct postgres_parameters parameters = { 0 };

    add_job(&parameters, firing->job);
    det_postgres_add_text(&parameters, firing->name);
    det_postgres_add_number(&parameters, firing->next_at);
    det_postgres_add_number(&parameters, firing->last_at);
    if (firing->token)
        det_postgres_add_number(&parameters, (int64_t)firing->token);
    det_postgres_ask(
        exchange, firing->token ? POSTGRES_SCHEDULE_MOVE : POSTGRES_SCHEDULE_ADD, &parameters);
}

static int take_firing(struct postgres_exchange *exchange, void *context)
{
    (void)context;
    return PQntuples(exchange->results[0]) > 0 ? 0 : DET_ERR_CONFLICT;
}

/* A firing of unknown outcome is not repeated. */
static int postgres_fire(struct det_store *base, const struct det_job_firing *firing)
{
    struct postgres_store *store = postgres_store_of(base);
    struct det_job_firing copy = *firing;
    const struct postgres_job job = { send_firing, take_firing, &copy, false, 0 };
    int r;

    r = det_jobs_check_firing(firing);
    if (r < 0)
        return r;
    return store->sql.is_read_only ? DET_ERR_READ_ONLY : det_postgres_run(store, &job, NULL);
}

const struct det_job_ops det_postgres_jobs = {
    .put = det_postgres_jobs_put,
    .apply = det_postgres_jobs_apply,
    .list = det_sql_jobs_list,
    .change = det_sql_jobs_change,
    .forget = det_sql_jobs_forget,
    .restore = det_sql_jobs_restore,
    .schedules = det_sql_schedules,
    .schedule = det_sql_schedule,
    .fire = postgres_fire,
    .listen = det_postgres_jobs_listen,
    .unlisten = det_postgres_jobs_unlisten,
};
