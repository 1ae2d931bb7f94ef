/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - documents in the SQLite store: a save is one transaction of the writer that reads
 * the documents, decides, and writes only the differences. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/sql/documents.h"
#include "store/sqlite/sqlite.h"

struct saving {
    struct det_document_stage stage;
    struct det_error *reterr;
    bool is_explained; /* by the stage */
};

static void bind_cell(struct sqlite_call *call, const struct det_document_cell *cell)
{
    det_sqlite_text(call, cell->id);
    det_sqlite_text(call, cell->kind);
    det_sqlite_text(call, det_document_role_name(cell->role));
}

static int read_cell(
    struct sqlite_store *store, struct det_document_stage *stage, struct det_document_cell *cell)
{
    struct det_chain_bytes text;
    struct det_document row;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_DOCUMENT_READ, &call);
    bind_cell(&call, cell);
    r = det_sqlite_step(&call);
    if (r > 0) {
        text = det_sqlite_get_bytes(&call, 3);
        row = (struct det_document){
            .sync = (uint64_t)det_sqlite_get_number(&call, 0),
            .version = (uint64_t)det_sqlite_get_number(&call, 1),
            .created_at = det_sqlite_get_number(&call, 2),
            .text = text.data ? text.data : "",
            .size = text.size,
        };
        r = det_sqlite_get_complete(&call, 4);
        if (r == 0)
            r = det_document_stage_fill(stage, cell, &row);
    }
    det_sqlite_end(&call);
    return r;
}

static int write_cell(struct sqlite_store *store, const struct det_document_cell *cell)
{
    struct sqlite_call call;

    det_sqlite_call(
        &store->writer, cell->is_there ? STATEMENT_DOCUMENT_PUT : STATEMENT_DOCUMENT_DROP, &call);
    bind_cell(&call, cell);
    if (cell->is_there) {
        det_sqlite_number(&call, (int64_t)cell->sync);
        det_sqlite_number(&call, (int64_t)cell->version);
        det_sqlite_number(&call, cell->created_at);
        det_sqlite_number(&call, cell->updated_at);
        det_sqlite_text_n(&call, cell->text, cell->size);
    }
    return det_sqlite_run(&call);
}

static int write_delta(
    struct sqlite_store *store, const struct det_document_changed *changed, det_time now)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, STATEMENT_DELTA_PUT, &call);
    det_sqlite_number(&call, (int64_t)changed->sync);
    det_sqlite_number(&call, now);
    det_sqlite_text(&call, changed->cell->kind);
    det_sqlite_text(&call, changed->cell->id);
    det_sqlite_text(&call, det_document_role_name(changed->cell->role));
    det_sqlite_text(&call, det_document_change_name(changed->change));
    det_sqlite_number(&call, (int64_t)changed->version);
    det_sqlite_number(&call, (int64_t)changed->size);
    det_sqlite_text_n(&call, changed->text, changed->size);
    return det_sqlite_run(&call);
}

static int write_all(
    struct sqlite_store *store, const struct det_document_stage *stage, det_time now)
{
    struct sqlite_call call;
    int r = 0;

    sqlite_assert_writing(store);
    det_assert(stage->change_count > 0 && stage->latest == stage->base + stage->change_count);
    if (stage->drops_deltas)
        r = det_sqlite_do(&store->writer, STATEMENT_DELTA_CLEAR);
    for (size_t i = 0; r == 0 && i < stage->cell_count; i++) {
        const struct det_document_cell *cell = stage->cells[i];

        if (cell->is_changed && (cell->is_there || cell->was_there))
            r = write_cell(store, cell);
    }
    for (size_t i = 0; r == 0 && i < stage->change_count; i++)
        r = write_delta(store, &stage->changes[i], now);
    if (r < 0)
        return r;
    det_sqlite_call(&store->writer, STATEMENT_DOCUMENT_SYNC_SET, &call);
    det_sqlite_number(&call, (int64_t)stage->latest);
    return det_sqlite_run(&call);
}

static int save_step(struct sqlite_store *store, void *context)
{
    struct saving *saving = context;
    struct det_document_stage *stage = &saving->stage;
    det_time now = sqlite_now(store);
    int64_t latest = 0;
    int r;

    r = det_sqlite_ask_number(&store->writer, STATEMENT_DOCUMENT_SYNC, &latest);
    for (size_t i = 0; r == 0 && i < stage->cell_count; i++)
        r = read_cell(store, stage, stage->cells[i]);
    if (r < 0)
        return r;
    r = det_document_stage_validate(stage, (uint64_t)latest, now, saving->reterr);
    saving->is_explained = r < 0;
    if (r < 0 || !stage->change_count)
        return r;
    return write_all(store, stage, now);
}

static int sqlite_save(
    struct det_store *base, const struct det_document_save *saves, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct saving saving = { .reterr = reterr };
    int r;

    r = det_document_stage_open(&saving.stage, base->allocator, saves, count, reterr);
    saving.is_explained = r < 0;
    if (r == 0)
        r = det_sqlite_alone(store, save_step, &saving);
    if (r == 0)
        det_document_stage_answer(&saving.stage, ret);
    else if (!saving.is_explained)
        (void)det_error_set(
            reterr, r, "%s: documents cannot be saved: %s; %s", store->path, det_error_text(r),
            det_sqlite_remedy(r));
    det_document_stage_close(&saving.stage);
    return r;
}

static int sqlite_restore(
    struct det_store *base, const struct det_document *document, uint64_t floor, bool *ret_is_new)
{
    struct saving saving = { 0 };
    int r;

    r = det_document_stage_open_restored(&saving.stage, base->allocator, document, floor);
    if (r == 0)
        r = det_sqlite_alone(sqlite_store_of(base), save_step, &saving);
    *ret_is_new = r == 0 && det_document_stage_is_new(&saving.stage);
    det_document_stage_close(&saving.stage);
    return r;
}

const struct det_document_ops det_sqlite_documents = {
    .save = sqlite_save,
    .list = det_sql_documents_list,
    .deltas = det_sql_documents_deltas,
    .position = det_sql_documents_position,
    .compact = det_sql_documents_compact,
    .restore = sqlite_restore,
};
