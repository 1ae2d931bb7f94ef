/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - documents on PostgreSQL, which several processes share.
 *
 *     read the sync id, then the documents -> decide -> no difference: done
 *                  ^                              |
 *                  |                              v
 *                  +--- another was first ---- write all, if the sync id is unchanged
 *
 * The statement that writes increments store.sync, and so locks that row until the commit: sync ids
 * are in the order of the commits without gaps, and a reader that sees one sees all lower ones.
 * Every change of a document increments it, so if it is unchanged, the documents read are current.
 * A write of unknown outcome is not repeated. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/postgres/commit_batch.h"
#include "store/sql/documents.h"

struct saving {
    struct det_document_stage stage;
    uint64_t latest;
    struct postgres_arrays arrays;
    struct postgres_parameters parameters;
    struct postgres_failure failure;
};

static void put_texts(
    struct postgres_arrays *arrays, size_t first, const struct det_document_cell *cell)
{
    det_postgres_arrays_text(arrays, first, cell->id);
    det_postgres_arrays_text(arrays, first + 1, cell->kind);
    det_postgres_arrays_text(arrays, first + 2, det_document_role_name(cell->role));
}

/* Adds the arrays as parameters; `types` has a letter for each: t for texts, n for numbers. */
static int add_arrays(struct saving *saving, const char *types)
{
    int r = 0;

    for (size_t i = 0; r == 0 && types[i]; i++)
        r = det_postgres_arrays_add(
            &saving->arrays, i, types[i] == 't' ? POSTGRES_TEXTS : POSTGRES_NUMBERS,
            &saving->parameters);
    return r;
}

static void clear_arrays(struct saving *saving)
{
    for (size_t i = 0; i < POSTGRES_ARRAYS_MAX; i++)
        det_postgres_column_clear(&saving->arrays.columns[i]);
    saving->parameters.count = 0;
}

/* Reading. */

static void send_read(struct postgres_exchange *exchange, void *context)
{
    const struct saving *saving = context;

    det_postgres_ask(exchange, POSTGRES_DOCUMENT_SYNC, NULL);
    det_postgres_ask(exchange, POSTGRES_DOCUMENT_READ, &saving->parameters);
}

static int take_read(struct postgres_exchange *exchange, void *context)
{
    struct saving *saving = context;
    const PGresult *sync = exchange->results[0], *rows = exchange->results[1];
    int r = 0;

    if (PQntuples(sync) != 1)
        return det_postgres_exchange_doubt(exchange);
    saving->latest = (uint64_t)det_postgres_number(sync, 0, 0);
    for (int i = 0; r == 0 && i < PQntuples(rows); i++) {
        uint64_t number = (uint64_t)det_postgres_number(rows, i, 0);
        struct det_chain_bytes text = det_postgres_bytes(rows, i, 4);
        const struct det_document row = {
            .sync = (uint64_t)det_postgres_number(rows, i, 1),
            .version = (uint64_t)det_postgres_number(rows, i, 2),
            .created_at = det_postgres_number(rows, i, 3),
            .text = text.data ? text.data : "",
            .size = text.size,
        };

        if (number - 1 >= saving->stage.cell_count)
            return det_postgres_exchange_doubt(exchange);
        if (!det_postgres_bool(rows, i, 5))
            return DET_ERR_CORRUPT;
        r = det_document_stage_fill(&saving->stage, saving->stage.cells[number - 1], &row);
    }
    return r;
}

static int read_cells(struct postgres_store *store, struct saving *saving)
{
    const struct postgres_job job = { send_read, take_read, saving, true, 0 };
    int r;

    clear_arrays(saving);
    for (size_t i = 0; i < saving->stage.cell_count; i++)
        put_texts(&saving->arrays, 0, saving->stage.cells[i]);
    r = add_arrays(saving, "ttt");
    return r < 0 ? r : det_postgres_run(store, &job, &saving->failure);
}

/* Writing. */

static void put_cell(struct postgres_arrays *arrays, const struct det_document_cell *cell)
{
    struct postgres_column *columns = arrays->columns;
    struct det_chain_bytes text = { cell->is_there ? cell->text : "", cell->size };

    det_assert(cell->is_changed);
    put_texts(arrays, 0, cell);
    det_postgres_column_number(&columns[3], (int64_t)cell->sync);
    det_postgres_column_number(&columns[4], (int64_t)cell->version);
    det_postgres_column_number(&columns[5], cell->created_at);
    det_postgres_column_bytes(&columns[6], text);
    det_postgres_column_number(&columns[7], cell->updated_at);
}

static void put_change(struct postgres_arrays *arrays, const struct det_document_changed *changed)
{
    struct det_chain_bytes text = { changed->text, changed->size };

    put_texts(arrays, 8, changed->cell);
    det_postgres_arrays_text(arrays, 11, det_document_change_name(changed->change));
    det_postgres_column_number(&arrays->columns[12], (int64_t)changed->version);
    det_postgres_column_bytes(&arrays->columns[13], text);
}

static void send_write(struct postgres_exchange *exchange, void *context)
{
    const struct saving *saving = context;

    det_postgres_ask(exchange, POSTGRES_DOCUMENT_WRITE, &saving->parameters);
}

static int take_write(struct postgres_exchange *exchange, void *context)
{
    (void)context;
    return PQntuples(exchange->results[0]) == 1 ? 0 : DET_ERR_BUSY;
}

/* DET_ERR_BUSY: another process was first. */
static int write_cells(struct postgres_store *store, struct saving *saving)
{
    const struct det_document_stage *stage = &saving->stage;
    const struct postgres_job job = { send_write, take_write, saving, false, 0 };
    int r;

    det_assert(stage->change_count > 0 && stage->latest == stage->base + stage->change_count);
    clear_arrays(saving);
    det_postgres_add_number(&saving->parameters, (int64_t)saving->latest);
    det_postgres_add_number(&saving->parameters, (int64_t)stage->change_count);
    for (size_t i = 0; i < stage->cell_count; i++) {
        if (stage->cells[i]->is_changed)
            put_cell(&saving->arrays, stage->cells[i]);
    }
    for (size_t i = 0; i < stage->change_count; i++)
        put_change(&saving->arrays, &stage->changes[i]);
    r = add_arrays(saving, "tttnnntnttttnt");
    det_postgres_add_number(&saving->parameters, (int64_t)stage->base);
    return r < 0 ? r : det_postgres_run(store, &job, &saving->failure);
}

/* Saving. */

static int explain_failure(const struct saving *saving, int r, struct det_error *reterr)
{
    const char *text = saving->failure.text[0] ? saving->failure.text : det_error_text(r);

    return det_error_set(reterr, r, "documents cannot be saved: %s", text);
}

/* Reads, decides and writes once. */
static int try_save(
    struct postgres_store *store, struct saving *saving, struct det_document_saved *ret,
    struct det_error *reterr)
{
    int r;

    r = read_cells(store, saving);
    if (r < 0)
        return explain_failure(saving, r, reterr);
    /* Times are the server's: 0 means now. */
    r = det_document_stage_validate(&saving->stage, saving->latest, 0, reterr);
    if (r < 0)
        return r;
    if (saving->stage.change_count)
        r = write_cells(store, saving);
    if (r < 0)
        return explain_failure(saving, r, reterr);
    det_document_stage_answer(&saving->stage, ret);
    return 0;
}

/* A request: documents of a caller, or an imported one. */
struct request {
    const struct det_document_save *saves;
    size_t count;
    struct det_document_saved *ret;
    const struct det_document *restored; /* NULL: none */
    uint64_t floor;
    bool is_new; /* its result */
    struct det_error *reterr;
};

static int save_once(struct postgres_store *store, struct saving *saving, struct request *request)
{
    const struct det_allocator *allocator = store->store.allocator;
    int r;

    if (request->restored)
        r = det_document_stage_open_restored(
            &saving->stage, allocator, request->restored, request->floor);
    else
        r = det_document_stage_open(
            &saving->stage, allocator, request->saves, request->count, request->reterr);
    if (r == 0 && store->sql.is_read_only)
        r = det_error_set(
            request->reterr, DET_ERR_READ_ONLY,
            "documents cannot be saved: the store is open for reading only");
    if (r == 0 && (request->restored || request->count))
        r = try_save(store, saving, request->ret, request->reterr);
    request->is_new = r == 0 && request->restored && det_document_stage_is_new(&saving->stage);
    det_document_stage_close(&saving->stage);
    return r;
}

/* Repeats until no other process saves at the same time. */
static int save_until_done(struct postgres_store *store, struct request *request)
{
    struct det_world *world = store->store.world;
    det_time deadline = det_world_now(world, DET_CLOCK_MONOTONIC) + store->timeout;
    struct saving saving = { 0 };
    int r;

    det_postgres_arrays_init(&saving.arrays, store->store.allocator);
    do {
        r = save_once(store, &saving, request);
    } while (r == DET_ERR_BUSY && det_world_now(world, DET_CLOCK_MONOTONIC) < deadline);
    det_postgres_arrays_deinit(&saving.arrays);
    return r;
}

static int postgres_save(
    struct det_store *base, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    struct request request = { .saves = saves, .count = count, .ret = ret, .reterr = reterr };

    return save_until_done(postgres_store_of(base), &request);
}

static int postgres_restore(
    struct det_store *base, const struct det_document *document, uint64_t floor, bool *ret_is_new)
{
    struct request request = { .restored = document, .floor = floor };
    int r;

    r = save_until_done(postgres_store_of(base), &request);
    *ret_is_new = request.is_new;
    return r;
}

const struct det_document_ops det_postgres_documents = {
    .save = postgres_save,
    .list = det_sql_documents_list,
    .deltas = det_sql_documents_deltas,
    .position = det_sql_documents_position,
    .compact = det_sql_documents_compact,
    .restore = postgres_restore,
};
