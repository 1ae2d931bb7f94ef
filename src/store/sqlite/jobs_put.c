/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_put.c - puts jobs into a SQLite store through a group commit: calls that arrive while a
 * transaction is written are in the next one.
 *
 *     put --> group of puts --> leader: one transaction for all --> alone on the writer */
#include "store/sqlite/jobs.h"

struct put_batch {
    const struct det_jobs_put_call *calls;
    size_t count;
};

static int find_place(
    struct sqlite_store *store, const struct det_job_put *put, struct det_job_place *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_FIND, &call);
    det_sqlite_text(&call, put->queue);
    det_sqlite_text(&call, put->id);
    det_sqlite_text(&call, put->task);
    det_sqlite_bytes(
        &call, (struct det_chain_bytes){ put->body_size ? put->body : "", put->body_size });
    r = det_sqlite_step(&call);
    if (r > 0)
        *ret = (struct det_job_place){
            .key = (uint64_t)det_sqlite_get_number(&call, 0),
            .submitted_at = det_sqlite_get_number(&call, 1),
            .result = det_sqlite_get_number(&call, 2) ? 0 : DET_ERR_CONFLICT,
        };
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

int det_sqlite_jobs_insert(
    struct sqlite_store *store, const struct det_job_put *put, struct det_job_place *ret)
{
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
    if (r < 0)
        return r;
    if (sqlite_changed_rows(store) == 0)
        return find_place(store, put, ret);
    *ret = (struct det_job_place){
        .key = (uint64_t)sqlite3_last_insert_rowid(store->writer.database),
        .is_new = true,
        .submitted_at = now,
    };
    return 0;
}

static int put_step(struct sqlite_store *store, void *context)
{
    const struct put_batch *batch = context;
    int r = 0;

    for (size_t i = 0; r == 0 && i < batch->count; i++) {
        const struct det_jobs_put_call *call = &batch->calls[i];

        for (size_t k = 0; r == 0 && k < call->count; k++) {
            if (call->ret[k].result == 0)
                r = det_sqlite_jobs_insert(store, &call->jobs[k], &call->ret[k]);
        }
    }
    return r;
}

int det_sqlite_jobs_write(void *context, unsigned writer, const void *items, size_t count)
{
    struct put_batch batch = { items, count };

    (void)writer;
    return det_sqlite_alone(context, put_step, &batch);
}

int det_sqlite_jobs_put(
    struct det_store *base, const struct det_job_put *jobs, size_t count, struct det_job_place *ret)
{
    struct sqlite_store *store = sqlite_store_of(base);
    const struct det_jobs_put_call call = { jobs, count, ret };

    if (!det_jobs_check_puts(jobs, count, ret))
        return 0;
    return store->writer.database ? det_group_commit(store->job_group, &call, 1)
                                  : DET_ERR_READ_ONLY;
}
