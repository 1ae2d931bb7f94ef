/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jobs_put.c - puts jobs on PostgreSQL through a group commit: calls that arrive while a
 * statement is under way are in the next one.
 *
 *     put --> group of puts --> leader: arrays of all --> wake listeners, insert --> results
 *
 * A put of unknown outcome is repeated: an existing job is not put twice. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "store/postgres/jobs.h"

/* Number of attempts to put a job that another process puts at the same time. */
#define TRIES 3
/* Calls in one statement. */
#define CALLS_MAX 256

struct put_batch {
    const struct det_jobs_put_call *calls;
    size_t count;
    struct postgres_arrays *arrays;
    struct postgres_parameters wake, jobs;
};

enum { QUEUE, ID, TASK, BODY, RUN_AT, QUEUE_TO_WAKE };

/* Iterates over the jobs to put of all calls: those whose result is BUSY. */
struct walk {
    const struct put_batch *batch;
    size_t call, job;
};

static bool next_job(
    struct walk *walk, const struct det_job_put **ret_job, struct det_job_place **ret_place)
{
    for (; walk->call < walk->batch->count; walk->call++, walk->job = 0) {
        const struct det_jobs_put_call *call = &walk->batch->calls[walk->call];

        for (; walk->job < call->count; walk->job++) {
            if (call->ret[walk->job].result != DET_ERR_BUSY)
                continue;
            *ret_job = &call->jobs[walk->job];
            *ret_place = &call->ret[walk->job++];
            return true;
        }
    }
    return false;
}

/* Returns the number of jobs, or an error. */
static int fill_arrays(struct put_batch *batch, struct postgres_store *store)
{
    struct postgres_arrays *arrays = batch->arrays;
    const struct det_job_put *job;
    struct det_job_place *place;
    struct walk walk = { .batch = batch };
    static const uint32_t types[] = { POSTGRES_TEXTS, POSTGRES_TEXTS, POSTGRES_TEXTS,
                                      POSTGRES_BLOBS, POSTGRES_NUMBERS };
    int count = 0, r;

    while (next_job(&walk, &job, &place)) {
        det_postgres_arrays_text(arrays, QUEUE, job->queue);
        det_postgres_arrays_text(arrays, ID, job->id);
        det_postgres_arrays_text(arrays, TASK, job->task);
        det_postgres_column_bytes(
            &arrays->columns[BODY],
            (struct det_chain_bytes){ job->body_size ? job->body : "", job->body_size });
        det_postgres_column_number(&arrays->columns[RUN_AT], job->run_at);
        det_postgres_arrays_text(arrays, QUEUE_TO_WAKE, job->queue);
        count++;
    }
    det_postgres_add_text(&batch->wake, store->channel);
    r = det_postgres_arrays_add(arrays, QUEUE_TO_WAKE, POSTGRES_TEXTS, &batch->wake);
    for (size_t i = 0; r == 0 && i < sizeof types / sizeof types[0]; i++)
        r = det_postgres_arrays_add(arrays, i, types[i], &batch->jobs);
    return r < 0 ? r : count;
}

static void send_puts(struct postgres_exchange *exchange, void *context)
{
    const struct put_batch *batch = context;

    det_postgres_ask(exchange, POSTGRES_JOB_WAKE, &batch->wake);
    det_postgres_ask(exchange, POSTGRES_JOB_PUT, &batch->jobs);
}

static void take_place(const PGresult *rows, int row, struct det_job_place *ret)
{
    *ret = (struct det_job_place){
        .key = (uint64_t)det_postgres_number(rows, row, 1),
        .is_new = det_postgres_bool(rows, row, 2),
        .submitted_at = det_postgres_number(rows, row, 3),
        .result = det_postgres_bool(rows, row, 4) ? 0 : DET_ERR_CONFLICT,
    };
}

/* Rows have no order. Keys of new jobs grow with their numbers. A smaller key belongs to an earlier
 * job with the same id, which is put again to compare it. A missing row means that another process
 * put the job after the snapshot of this statement. */
static int take_puts(struct postgres_exchange *exchange, void *context)
{
    const struct put_batch *batch = context;
    const PGresult *rows = exchange->results[1];
    struct walk walk = { .batch = batch };
    const struct det_job_put *job;
    struct det_job_place *place;
    uint64_t last = 0;
    int count = PQntuples(rows), *row_of, number = 0;
    const struct det_allocator *allocator = exchange->connection->store->store.allocator;
    int jobs = (int)batch->arrays->columns[QUEUE].count;

    row_of = DET_NEW_ARRAY(allocator, (size_t)jobs + 1, int);
    if (!row_of)
        return DET_ERR_NO_MEMORY;
    for (int i = 0; i < count; i++) {
        int64_t n = det_postgres_number(rows, i, 0);

        if (n >= 1 && n <= jobs)
            row_of[n] = i + 1;
    }
    while (next_job(&walk, &job, &place)) {
        int row = row_of[++number];

        if (row)
            take_place(rows, row - 1, place);
        if (row && place->is_new && place->key <= last)
            *place = (struct det_job_place){ .result = DET_ERR_BUSY };
        if (row && place->is_new)
            last = place->key;
    }
    det_assert(number == jobs);
    DET_DELETE_ARRAY(allocator, row_of, (size_t)jobs + 1);
    return 0;
}

/* 1: some jobs must be put again; 0; or an error. */
static int put_once(struct postgres_store *store, struct put_batch *batch)
{
    struct postgres_arrays arrays;
    const struct postgres_job job = { send_puts, take_puts, batch, true, 0 };
    int r;

    det_postgres_arrays_init(&arrays, store->store.allocator);
    batch->arrays = &arrays;
    batch->wake = batch->jobs = (struct postgres_parameters){ 0 };
    r = fill_arrays(batch, store);
    if (r > 0) {
        r = det_postgres_run(store, &job, NULL);
        r = r < 0 ? r : 1;
    }
    det_postgres_arrays_deinit(&arrays);
    return r;
}

/* Writes a batch of `job_group`. */
static int write_puts(void *context, unsigned writer, const void *items, size_t count)
{
    struct put_batch batch = { .calls = items, .count = count };
    int r = 1;

    (void)writer;
    for (int i = 0; r > 0 && i < TRIES; i++)
        r = put_once(context, &batch);
    return r < 0 ? r : 0;
}

int det_postgres_jobs_put(
    struct det_store *base, const struct det_job_put *jobs, size_t count, struct det_job_place *ret)
{
    struct postgres_store *store = postgres_store_of(base);
    const struct det_jobs_put_call call = { jobs, count, ret };

    if (!det_jobs_check_puts(jobs, count, ret))
        return 0;
    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    for (size_t i = 0; i < count; i++) {
        if (ret[i].result == 0)
            ret[i].result = DET_ERR_BUSY;
    }
    return det_group_commit(store->job_group, &call, 1);
}

int det_postgres_jobs_open(struct postgres_store *store)
{
    return det_group_open(
        &(struct det_group_options){ .world = store->store.world,
                                     .allocator = store->store.allocator,
                                     .writers = store->writer_count < 2 ? store->writer_count : 2,
                                     .item_size = sizeof(struct det_jobs_put_call),
                                     .items_max = CALLS_MAX,
                                     .write = write_puts,
                                     .context = store },
        &store->job_group);
}
