/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* commit.c - commits a batch and gives each commit its result.
 *
 *     all are plain --> the plain statement --> succeeded: done
 *                                           --> failed ------+
 *     otherwise -----> the statement with its parts <--------+--> each its verdict
 *                            |
 *                            +--> refused as a whole, nothing happened: retry each alone
 *                            +--> unknown: the result of every commit */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/postgres/commit_batch.h"

#define ATTEMPTS_MAX 4

/* Indexed by the verdicts of postgres/statement_parts.c. */
static const int verdicts[] = { 0,
                                DET_ERR_EARLY,
                                DET_ERR_NOT_FOUND,
                                DET_ERR_EXISTS,
                                DET_ERR_CONFLICT,
                                DET_ERR_LOCKED,
                                DET_ERR_LOCK_LOST,
                                DET_ERR_NOT_FOUND,
                                DET_ERR_EXISTS };

static void settle_commit(struct postgres_staged *staged, int result)
{
    det_assert(!staged->is_settled && result <= 0);
    staged->commit->result = result;
    staged->is_settled = true;
}

static void send_batch(struct postgres_exchange *exchange, void *context)
{
    struct postgres_batch *batch = context;
    const struct postgres_values values = { (int)batch->statement->column_count, batch->values,
                                            batch->lengths };

    det_postgres_exchange_send(exchange, batch->statement, &values);
}

/* True if the numbers are distinct and of commits in the statement: they arrive in the order of the
 * keys, which the server does not guarantee. */
static bool is_sane(const struct postgres_batch *batch, const PGresult *result)
{
    int rows = PQntuples(result);

    if (!det_postgres_has_numbers(result, 1) || rows > (int)batch->row_count)
        return false;
    for (int i = 0; i < rows; i++) {
        int64_t n = det_postgres_number(result, i, 0);

        if (n < 1 || n > (int64_t)batch->row_count ||
            (i > 0 && n == det_postgres_number(result, i - 1, 0)))
            return false;
    }
    return true;
}

/* Takes the numbers of the successful commits. */
static int take_plain(struct postgres_exchange *exchange, void *context)
{
    struct postgres_batch *batch = context;
    const PGresult *result = exchange->results[0];
    int row = 0, rows = PQntuples(result);

    if (!is_sane(batch, result))
        return det_postgres_exchange_doubt(exchange);
    for (size_t i = 0; i < batch->count; i++) {
        struct postgres_staged *staged = &batch->staged[i];
        int tried = 0;

        if (!staged->n || staged->is_settled)
            continue;
        while (tried < rows && det_postgres_number(result, row, 0) != staged->n) {
            row = (row + 1) % rows;
            tried++;
        }
        if (tried < rows)
            settle_commit(staged, 0);
    }
    return 0;
}

static bool are_verdicts(const struct postgres_batch *batch, const PGresult *result)
{
    if (!det_postgres_has_numbers(result, 2) || PQntuples(result) != (int)batch->row_count)
        return false;
    for (int i = 0; i < PQntuples(result); i++) {
        int64_t verdict = det_postgres_number(result, i, 0);

        if (verdict < 0 || verdict >= (int64_t)(sizeof verdicts / sizeof verdicts[0]))
            return false;
    }
    return true;
}

static int take_verdicts(struct postgres_exchange *exchange, void *context)
{
    struct postgres_batch *batch = context;
    const PGresult *result = exchange->results[0];

    if (!are_verdicts(batch, result))
        return det_postgres_exchange_doubt(exchange);
    for (size_t i = 0; i < batch->count; i++) {
        struct postgres_staged *staged = &batch->staged[i];
        int verdict;

        if (!staged->n || staged->is_settled)
            continue;
        verdict = verdicts[det_postgres_number(result, (int)staged->n - 1, 0)];
        if (verdict == DET_ERR_CONFLICT)
            staged->commit->actual = (uint64_t)det_postgres_number(result, (int)staged->n - 1, 1);
        settle_commit(staged, verdict);
    }
    return 0;
}

/* Fills the rows of unsettled commits from `first` on, at most `limit`. */
static int fill_batch(struct postgres_batch *batch, size_t first, size_t limit)
{
    int r = 0;

    for (size_t i = 0; i < POSTGRES_COLUMN_COUNT; i++)
        det_postgres_column_clear(&batch->columns[i]);
    batch->parts = 0;
    batch->row_count = 0;
    for (size_t i = 0; r == 0 && i < batch->count; i++) {
        struct postgres_staged *staged = &batch->staged[i];

        staged->n = 0;
        if (i < first || staged->is_settled || batch->row_count == limit)
            continue;
        staged->n = (int64_t)++batch->row_count;
        det_assert(batch->row_count <= batch->count);
        r = det_postgres_fill(batch, staged);
    }
    return r;
}

static int bind_columns(struct postgres_batch *batch)
{
    const struct postgres_statement *statement;
    unsigned parts;

    /* An empty commit is judged, too. */
    parts = batch->parts ? batch->parts : POSTGRES_EVENTS;
    statement = det_postgres_variant(batch->store, batch->is_plain ? 0 : parts);
    if (!statement)
        return DET_ERR_NO_MEMORY;
    batch->statement = statement;
    for (size_t i = 0; i < statement->column_count; i++) {
        uint8_t column = statement->columns[i];
        int r;

        if (column == POSTGRES_COLUMN_COUNT) {
            batch->values[i] = batch->store->store.owner;
            batch->lengths[i] = (int)strlen(batch->store->store.owner);
            continue;
        }
        r = det_postgres_column_finish(
            &batch->columns[column], column, &batch->values[i], &batch->lengths[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static void settle_all(struct postgres_batch *batch, int result)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->staged[i].n && !batch->staged[i].is_settled)
            settle_commit(&batch->staged[i], result);
    }
}

/* Executes one statement. Returns true if each commit should be retried alone. */
static bool write_some(struct postgres_batch *batch, size_t first, size_t limit)
{
    const struct postgres_job job = { send_batch, batch->is_plain ? take_plain : take_verdicts,
                                      batch, false, ATTEMPTS_MAX };
    struct postgres_failure failure = { 0 };
    int r;

    r = fill_batch(batch, first, limit);
    if (r == 0)
        r = bind_columns(batch);
    if (r == 0)
        r = det_postgres_run(batch->store, &job, &failure);
    if (r == 0)
        return false;
    if (batch->row_count > 1 &&
        (failure.action == POSTGRES_DONE || failure.action == POSTGRES_FATAL ||
         failure.action == POSTGRES_RETRY))
        return true;
    settle_all(batch, r);
    return false;
}

static void write_each(struct postgres_batch *batch)
{
    batch->is_plain = false;
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->staged[i].is_settled)
            (void)write_some(batch, i, 1);
    }
}

static bool is_all_plain(const struct postgres_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!det_postgres_is_plain(&batch->staged[i]))
            return false;
    }
    return true;
}

static bool is_all_settled(const struct postgres_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (!batch->staged[i].is_settled)
            return false;
    }
    return true;
}

/* Updates the handle of a durable commit; memory was reserved for it. */
static void keep_result(struct postgres_batch *batch, const struct postgres_staged *staged)
{
    struct det_store_commit *commit = staged->commit;
    struct postgres_instance *instance = staged->instance;

    if (commit->is_new || commit->event_count) {
        det_assert(instance->sequence <= commit->head->sequence);
        instance->sequence = commit->head->sequence;
        instance->hash = staged->hash;
        det_postgres_instance_keep(
            instance, det_postgres_staged_data(batch, staged), commit->reason);
    }
    if (commit->is_new)
        commit->instance = (struct det_store_instance *)(void *)instance;
}

/* The last commit becomes the witness: see invariant 2. */
static void finish_batch(struct postgres_batch *batch)
{
    struct postgres_store *store = batch->store;
    const struct postgres_staged *witness = NULL;

    for (size_t i = 0; i < batch->count; i++) {
        struct postgres_staged *staged = &batch->staged[i];

        det_assert(staged->is_settled);
        if (staged->commit->result == 0) {
            keep_result(batch, staged);
            witness = staged;
        } else if (staged->commit->is_new) {
            det_postgres_instance_close(store, staged->instance);
        }
    }
    if (!witness)
        return;
    det_mutex_lock(store->store.world, store->sql.mutex);
    store->witness_key = witness->instance->key;
    store->witness_sequence = witness->instance->sequence;
    det_mutex_unlock(store->store.world, store->sql.mutex);
}

static int write_batch(void *context, unsigned writer, const void *items, size_t count)
{
    struct postgres_store *store = context;
    struct postgres_batch *batch = &store->batches[writer];

    det_assert(writer < store->writer_count);
    if (atomic_load(&store->is_poisoned))
        return DET_ERR_IO;
    det_postgres_stage(batch, items, count);
    if (batch->count == 0)
        return 0;
    batch->is_plain = is_all_plain(batch);
    if (write_some(batch, 0, SIZE_MAX))
        write_each(batch);
    else if (!is_all_settled(batch)) {
        batch->is_plain = false;
        if (write_some(batch, 0, SIZE_MAX))
            write_each(batch);
    }
    finish_batch(batch);
    return 0;
}

int det_postgres_commit(
    struct det_store *base, struct det_store_commit *const *commits, size_t count)
{
    struct postgres_store *store = postgres_store_of(base);

    if (store->sql.is_read_only)
        return DET_ERR_READ_ONLY;
    if (count == 0)
        return 0;
    det_contract_commits(commits, count);
    return det_group_commit(store->group, commits, count);
}

/* Initializes a zeroed batch. */
static void batch_init(struct postgres_batch *batch, struct postgres_store *store)
{
    batch->store = store;
    det_buffer_init(&batch->scratch, store->store.allocator);
    det_buffer_init(&batch->text, store->store.allocator);
    for (size_t i = 0; i < POSTGRES_COLUMN_COUNT; i++)
        det_buffer_init(&batch->columns[i].bytes, store->store.allocator);
}

static void batch_deinit(struct postgres_batch *batch)
{
    const struct det_allocator *allocator = batch->store->store.allocator;

    det_buffer_deinit(&batch->scratch);
    det_buffer_deinit(&batch->text);
    for (size_t i = 0; i < POSTGRES_COLUMN_COUNT; i++)
        det_buffer_deinit(&batch->columns[i].bytes);
    if (batch->staged)
        DET_DELETE_ARRAY(allocator, batch->staged, batch->capacity);
    if (batch->events)
        DET_DELETE_ARRAY(allocator, batch->events, batch->event_capacity);
}

int det_postgres_batches_open(struct postgres_store *store)
{
    const struct det_allocator *allocator = store->store.allocator;
    const struct det_group_options options = {
        .world = store->store.world,
        .allocator = allocator,
        .writers = store->writer_count,
        .item_size = sizeof(struct det_store_commit *),
        .write = write_batch,
        .context = store,
    };

    store->batches = DET_NEW_ARRAY(allocator, store->writer_count, struct postgres_batch);
    if (!store->batches)
        return DET_ERR_NO_MEMORY;
    for (unsigned i = 0; i < store->writer_count; i++)
        batch_init(&store->batches[i], store);
    return det_group_open(&options, &store->group);
}

void det_postgres_batches_close(struct postgres_store *store)
{
    const struct det_allocator *allocator = store->store.allocator;

    det_group_close(store->group);
    for (unsigned i = 0; store->batches && i < store->writer_count; i++)
        batch_deinit(&store->batches[i]);
    if (store->batches)
        DET_DELETE_ARRAY(allocator, store->batches, store->writer_count);
    det_postgres_variants_close(store);
}
