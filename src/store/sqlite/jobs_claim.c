/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_claim.c - ends, renewals and claims of a queue of a SQLite store, in one transaction. */
#include <string.h>

#include "base/assert.h"
#include "store/sql/jobs.h"
#include "store/sqlite/jobs.h"
#include "store/sqlite/session.h"

struct applying {
    struct det_job_batch *batch;
    det_time now, steady;
    int refusal; /* return value of the visitor */
};

/* Ending. */

/* An ended job is not changed. */
static int find_ended(struct sqlite_store *store, struct det_job_end *end)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_HAS_ENDED, &call);
    det_sqlite_number(&call, (int64_t)end->key);
    det_sqlite_number(&call, end->token);
    r = det_sqlite_step(&call);
    if (r > 0)
        end->result = 0;
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

static int end_one(struct sqlite_store *store, struct det_job_end *end, det_time now)
{
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
    det_sqlite_number(&call, end->is_unbegun);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    if (sqlite_changed_rows(store) == 0)
        return find_ended(store, end);
    end->result = 0;
    return 0;
}

static int renew_one(
    struct sqlite_store *store, const struct applying *applying, struct det_job_renewal *renewal)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_RENEW, &call);
    det_sqlite_number(&call, (int64_t)renewal->key);
    det_sqlite_number(&call, renewal->token);
    det_sqlite_number(&call, applying->steady);
    det_sqlite_number(&call, det_jobs_after(applying->steady, applying->batch->span));
    r = det_sqlite_run(&call);
    if (r == 0 && sqlite_changed_rows(store) > 0)
        renewal->result = 0;
    return r;
}

static int end_and_renew(struct sqlite_store *store, const struct applying *applying)
{
    struct det_job_batch *batch = applying->batch;
    int r = 0;

    for (size_t i = 0; r == 0 && i < batch->end_count; i++)
        r = end_one(store, &batch->ends[i], applying->now);
    for (size_t i = 0; r == 0 && i < batch->renewal_count; i++)
        r = renew_one(store, applying, &batch->renewals[i]);
    return r;
}

/* Claiming. */

/* Returns due delayed jobs and jobs of dead processes to the queue. */
static int put_back(struct sqlite_store *store, const struct applying *applying)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_DUE, &call);
    det_sqlite_text(&call, applying->batch->queue);
    det_sqlite_number(&call, applying->now);
    r = det_sqlite_run(&call);
    if (r < 0)
        return r;
    det_sqlite_call(&store->writer, STATEMENT_JOB_LAPSE, &call);
    det_sqlite_text(&call, applying->batch->queue);
    det_sqlite_number(&call, applying->steady);
    det_sqlite_text(&call, det_sqlite_jobs_owner(store));
    return det_sqlite_run(&call);
}

/* Unclaims the jobs that the visitor refused: after the statement, whose first step changes all
 * rows. */
static int give_back(struct sqlite_store *store, const struct det_buffer *refused, det_time now)
{
    int r = det_buffer_status(refused);

    for (size_t i = 0; r == 0 && i < refused->size / sizeof(struct det_job_end); i++) {
        struct det_job_end end;

        memcpy(&end, refused->data + i * sizeof end, sizeof end);
        r = end_one(store, &end, now);
    }
    return r;
}

static int show_claimed(
    struct applying *applying, struct sqlite_call *call, struct det_buffer *refused)
{
    struct det_job_batch *batch = applying->batch;
    const struct det_sql_row row = det_sqlite_row(call);
    struct det_job_row job;
    int r;

    r = det_sql_job_read(&row, &job);
    if (r < 0)
        return r;
    if (applying->refusal == 0)
        applying->refusal = batch->visit(batch->context, &job);
    if (applying->refusal != 0) {
        const struct det_job_end end = {
            .key = job.key, .token = job.attempts, .state = DET_JOB_DELAYED, .is_unbegun = true
        };

        det_buffer_append(refused, &end, sizeof end);
        return 0;
    }
    batch->claimed++;
    return 0;
}

static int take_first(struct sqlite_store *store, struct applying *applying)
{
    const struct det_job_batch *batch = applying->batch;
    struct det_buffer refused;
    struct sqlite_call call;
    int r;

    det_assert(batch->wanted > 0 && batch->claimed == 0);
    det_buffer_init(&refused, store->store.allocator);
    det_sqlite_call(&store->writer, STATEMENT_JOB_TAKE, &call);
    det_sqlite_text(&call, batch->queue);
    det_sqlite_number(&call, batch->wanted);
    det_sqlite_number(&call, batch->capacity);
    det_sqlite_number(&call, det_jobs_after(applying->steady, batch->span));
    det_sqlite_text(&call, det_sqlite_jobs_owner(store));
    while ((r = det_sqlite_step(&call)) > 0) {
        r = show_claimed(applying, &call, &refused);
        if (r < 0)
            break;
    }
    det_sqlite_end(&call);
    if (r == 0)
        r = give_back(store, &refused, applying->now);
    det_buffer_deinit(&refused);
    return r;
}

static int fail_damaged(struct sqlite_store *store, const struct applying *applying)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, STATEMENT_JOB_DAMAGED, &call);
    det_sqlite_text(&call, applying->batch->queue);
    det_sqlite_number(&call, applying->now);
    det_sqlite_number(&call, applying->batch->capacity);
    return det_sqlite_run(&call);
}

static int find_next(struct sqlite_store *store, const struct applying *applying)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_JOB_NEXT, &call);
    det_sqlite_text(&call, applying->batch->queue);
    det_sqlite_number(&call, applying->now - applying->steady);
    r = det_sqlite_step(&call);
    if (r > 0)
        applying->batch->next = det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

static int apply_step(struct sqlite_store *store, void *context)
{
    struct applying *applying = context;
    int r;

    sqlite_assert_writing(store);
    applying->now = sqlite_now(store);
    applying->steady = det_sqlite_jobs_steady(store);
    r = end_and_renew(store, applying);
    if (r < 0 || !applying->batch->wanted)
        return r;
    r = put_back(store, applying);
    if (r == 0)
        r = take_first(store, applying);
    if (r == 0 && !applying->batch->claimed && applying->refusal == 0)
        r = fail_damaged(store, applying);
    if (r == 0)
        r = find_next(store, applying);
    return r;
}

int det_sqlite_jobs_apply(struct det_store *base, struct det_job_batch *batch)
{
    struct applying applying = { .batch = batch };
    int r;

    r = det_jobs_check_batch(batch);
    if (r == 0)
        r = det_sqlite_alone(sqlite_store_of(base), apply_step, &applying);
    return r != 0 ? r : applying.refusal;
}
