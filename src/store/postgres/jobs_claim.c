/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_claim.c - ends, renewals and claims of a queue on PostgreSQL, which several
 * processes share.
 *
 *     lock of the queue | ends | renewals | return due jobs to the queue | claim the first
 *     (one pipeline, so one transaction; the server's clock decides)
 *
 * A batch with `leaves_due` has three statements at most: the cost of one worker's jobs, one after
 * the other.
 *
 * Every batch locks the queue first. So no two batches count running jobs at once, and no batch
 * waits for rows of another.
 *
 * A batch with a claim, or with an end of a job that was not begun, is not repeated when its
 * outcome is unknown. A claim whose answer was lost lapses like that of a process that died. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/postgres/jobs.h"
#include "store/postgres/session.h"
#include "store/sql/jobs.h"

/* Limits the end of a claim to a representable time. */
#define SPAN_MAX ((det_time)1 << 62)

enum { END_KEY, END_TOKEN, END_STATE, END_RUN_AT, END_REASON, END_UNBEGUN, RENEW_KEY, RENEW_TOKEN };

struct applying {
    struct det_job_batch *batch;
    struct postgres_arrays *arrays;
    struct postgres_parameters ends, renewals;
    int refusal;                /* return value of the visitor */
    struct det_buffer *refused; /* struct det_job_end of jobs to return to the queue */
};

static det_time bound_span(det_time span)
{
    return span < SPAN_MAX ? span : SPAN_MAX;
}

static int fill_ends(struct applying *applying)
{
    static const uint32_t types[] = { POSTGRES_NUMBERS, POSTGRES_NUMBERS, POSTGRES_TEXTS,
                                      POSTGRES_NUMBERS, POSTGRES_TEXTS,   POSTGRES_NUMBERS };
    struct postgres_arrays *arrays = applying->arrays;
    char reason[DET_REASON_MAX + 1];
    int r = 0;

    for (size_t i = 0; i < applying->batch->end_count; i++) {
        const struct det_job_end *end = &applying->batch->ends[i];

        (void)det_text_copy(reason, sizeof reason, end->reason ? end->reason : "");
        det_postgres_column_number(&arrays->columns[END_KEY], (int64_t)end->key);
        det_postgres_column_number(&arrays->columns[END_TOKEN], end->token);
        det_postgres_arrays_text(arrays, END_STATE, det_jobs_state_name(end->state));
        det_postgres_column_number(&arrays->columns[END_RUN_AT], end->run_at);
        det_postgres_arrays_text(arrays, END_REASON, reason);
        det_postgres_column_number(&arrays->columns[END_UNBEGUN], end->is_unbegun);
    }
    for (size_t i = 0; r == 0 && i < sizeof types / sizeof types[0]; i++)
        r = det_postgres_arrays_add(arrays, END_KEY + i, types[i], &applying->ends);
    return r;
}

static int fill_renewals(struct applying *applying)
{
    struct postgres_arrays *arrays = applying->arrays;
    int r;

    for (size_t i = 0; i < applying->batch->renewal_count; i++) {
        const struct det_job_renewal *renewal = &applying->batch->renewals[i];

        det_postgres_column_number(&arrays->columns[RENEW_KEY], (int64_t)renewal->key);
        det_postgres_column_number(&arrays->columns[RENEW_TOKEN], renewal->token);
    }
    det_postgres_add_number(&applying->renewals, bound_span(applying->batch->span));
    r = det_postgres_arrays_add(arrays, RENEW_KEY, POSTGRES_NUMBERS, &applying->renewals);
    if (r == 0)
        r = det_postgres_arrays_add(arrays, RENEW_TOKEN, POSTGRES_NUMBERS, &applying->renewals);
    return r;
}

static void send_claim(struct postgres_exchange *exchange, const struct det_job_batch *batch)
{
    const struct postgres_store *store = exchange->connection->store;
    struct postgres_parameters queue = { 0 }, take = { 0 };

    if (!batch->leaves_due) {
        det_postgres_add_text(&queue, batch->queue);
        det_postgres_ask(exchange, POSTGRES_JOB_HELD, &queue);
    }
    det_postgres_add_text(&take, batch->queue);
    det_postgres_add_number(&take, batch->wanted);
    det_postgres_add_number(&take, batch->capacity);
    det_postgres_add_number(&take, bound_span(batch->span));
    det_postgres_add_text(&take, store->store.owner);
    det_postgres_ask(exchange, POSTGRES_JOB_TAKE, &take);
}

static void send_damaged(struct postgres_exchange *exchange, void *context)
{
    const struct det_job_batch *batch = context;
    struct postgres_parameters lock = { 0 }, damaged = { 0 };

    det_postgres_add_text(&lock, exchange->connection->store->url.schema);
    det_postgres_add_text(&lock, batch->queue);
    det_postgres_ask(exchange, POSTGRES_JOB_LOCK, &lock);
    det_postgres_add_text(&damaged, batch->queue);
    det_postgres_add_number(&damaged, batch->capacity);
    det_postgres_ask(exchange, POSTGRES_JOB_DAMAGED, &damaged);
}

/* The next claim repeats this if it fails. */
static void fail_damaged(struct postgres_store *store, struct det_job_batch *batch)
{
    (void)!det_postgres_run(
        store, &(struct postgres_job){ send_damaged, NULL, batch, true, 1 }, NULL);
}

static void send_batch(struct postgres_exchange *exchange, void *context)
{
    const struct postgres_store *store = exchange->connection->store;
    const struct applying *applying = context;
    struct postgres_parameters lock = { 0 };

    det_postgres_add_text(&lock, store->url.schema);
    det_postgres_add_text(&lock, applying->batch->queue);
    det_postgres_ask(exchange, POSTGRES_JOB_LOCK, &lock);
    if (applying->batch->end_count)
        det_postgres_ask(exchange, POSTGRES_JOB_END, &applying->ends);
    if (applying->batch->renewal_count)
        det_postgres_ask(exchange, POSTGRES_JOB_RENEW, &applying->renewals);
    if (applying->batch->wanted)
        send_claim(exchange, applying->batch);
}

static void take_ends(const PGresult *rows, struct det_job_batch *batch)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t number = det_postgres_number(rows, i, 0);

        if (number >= 1 && (uint64_t)number <= batch->end_count)
            batch->ends[number - 1].result = 0;
    }
}

static void take_renewals(const PGresult *rows, struct det_job_batch *batch)
{
    for (int i = 0; i < PQntuples(rows); i++) {
        int64_t number = det_postgres_number(rows, i, 0);

        if (number >= 1 && (uint64_t)number <= batch->renewal_count)
            batch->renewals[number - 1].result = 0;
    }
}

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = ((const struct det_job_row *)left)->key;
    uint64_t b = ((const struct det_job_row *)right)->key;

    return (a > b) - (a < b);
}

static void show_claimed(struct applying *applying, const struct det_job_row *row)
{
    struct det_job_batch *batch = applying->batch;

    if (applying->refusal == 0)
        applying->refusal = batch->visit(batch->context, row);
    if (applying->refusal == 0)
        batch->claimed++;
    else
        det_buffer_append(
            applying->refused,
            &(struct det_job_end){ .key = row->key,
                                   .token = row->attempts,
                                   .state = DET_JOB_DELAYED,
                                   .is_unbegun = true },
            sizeof(struct det_job_end));
}

/* Rows have no order. A row that cannot be read is returned to the queue like a refused one. */
static void take_claimed(
    struct applying *applying, const PGresult *rows, const struct det_allocator *allocator)
{
    size_t count = (size_t)PQntuples(rows);
    struct det_job_row *sorted = count ? DET_NEW_ARRAY(allocator, count, struct det_job_row) : NULL;
    int r = 0;

    if (!sorted) {
        applying->refusal = count ? DET_ERR_NO_MEMORY : 0;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct det_sql_row row = det_postgres_row(rows, (int)i);

        r = det_sql_job_read(&row, &sorted[i]);
        if (r < 0)
            applying->refusal = r;
    }
    qsort(sorted, count, sizeof *sorted, compare_keys);
    for (size_t i = 0; i < count; i++)
        show_claimed(applying, &sorted[i]);
    DET_DELETE_ARRAY(allocator, sorted, count);
}

static int take_batch(struct postgres_exchange *exchange, void *context)
{
    struct postgres_store *store = exchange->connection->store;
    struct applying *applying = context;
    struct det_job_batch *batch = applying->batch;
    const PGresult *claimed;
    unsigned next = 1;

    if (batch->end_count)
        take_ends(exchange->results[next++], batch);
    if (batch->renewal_count)
        take_renewals(exchange->results[next++], batch);
    if (!batch->wanted)
        return 0;
    if (!batch->leaves_due) {
        det_postgres_clock(store, det_postgres_number(exchange->results[next], 0, 1));
        batch->next = det_postgres_number(exchange->results[next++], 0, 0);
    }
    det_assert(next < exchange->result_count);
    claimed = exchange->results[next];
    /* All new claims end at the same time. */
    if (PQntuples(claimed) && det_postgres_number(claimed, 0, 6) < batch->next)
        batch->next = det_postgres_number(claimed, 0, 6);
    take_claimed(applying, claimed, store->store.allocator);
    return 0;
}

static bool has_unbegun(const struct det_job_batch *batch)
{
    for (size_t i = 0; i < batch->end_count; i++) {
        if (batch->ends[i].is_unbegun)
            return true;
    }
    return false;
}

static int run_batch(struct postgres_store *store, struct applying *applying)
{
    struct det_job_batch *batch = applying->batch;
    struct postgres_arrays arrays;
    const struct postgres_job job = { send_batch, take_batch, applying,
                                      !batch->wanted && !has_unbegun(batch), 0 };
    int r = 0;

    det_postgres_arrays_init(&arrays, store->store.allocator);
    applying->arrays = &arrays;
    if (batch->end_count)
        r = fill_ends(applying);
    if (r == 0 && batch->renewal_count)
        r = fill_renewals(applying);
    if (r == 0)
        r = det_postgres_run(store, &job, NULL);
    det_postgres_arrays_deinit(&arrays);
    return r;
}

/* The claim is committed already. If this fails too, it lapses. */
static void give_back(
    struct postgres_store *store, const char *queue, const struct det_buffer *refused)
{
    struct det_job_batch batch = { .queue = queue,
                                   .ends = (struct det_job_end *)(void *)refused->data,
                                   .end_count = refused->size / sizeof(struct det_job_end) };
    struct applying applying = { .batch = &batch };

    if (batch.end_count && det_buffer_status(refused) == 0)
        (void)!run_batch(store, &applying);
}

int det_postgres_jobs_apply(struct det_store *base, struct det_job_batch *batch)
{
    struct postgres_store *store = postgres_store_of(base);
    struct det_buffer refused;
    struct applying applying = { .batch = batch, .refused = &refused };
    int r;

    r = det_jobs_check_batch(batch);
    if (r == 0 && store->sql.is_read_only)
        r = DET_ERR_READ_ONLY;
    if (r < 0)
        return r;
    det_buffer_init(&refused, base->allocator);
    r = run_batch(store, &applying);
    if (r == 0 && batch->wanted && !batch->claimed && !batch->leaves_due && applying.refusal == 0)
        fail_damaged(store, batch);
    if (r == 0 && applying.refusal != 0) {
        give_back(store, batch->queue, &refused);
        r = applying.refusal;
    }
    det_buffer_deinit(&refused);
    return r;
}
