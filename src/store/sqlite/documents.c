/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents.c - documents in the SQLite store: a save is one transaction of the writer, in
 * which it reads what is there, decides, and writes only what is different. */
#include <string.h>

#include "os/os.h"
#include "store/document.h"
#include "store/sqlite/sqlite.h"

/* What of deltas may go is worked out first, and deleted a few at a time. */
struct dropping {
    int64_t up_to;
    uint64_t count; /* of the last step */
};

struct saving {
    struct det_document_stage stage;
    struct det_error *reterr;
    bool is_explained; /* by the stage */
};

/* Saving. */

static int read_sync(struct sqlite_connection *connection, uint64_t *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_DOCUMENT_SYNC, &call);
    r = det_sqlite_step(&call);
    if (r > 0)
        *ret = (uint64_t)det_sqlite_get_number(&call, 0);
    det_sqlite_end(&call);
    return r > 0 ? 0 : r < 0 ? r : DET_ERR_CORRUPT;
}

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
        r = det_sqlite_get_whole(&call, 4);
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
    uint64_t latest = 0;
    int r;

    r = read_sync(&store->writer, &latest);
    for (size_t i = 0; r == 0 && i < stage->cell_count; i++)
        r = read_cell(store, stage, stage->cells[i]);
    if (r < 0)
        return r;
    r = det_document_stage_judge(stage, latest, now, saving->reterr);
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

/* Looking: the position and the rows in one transaction. */

static int read_position(struct sqlite_connection *connection, struct det_document_position *ret)
{
    struct sqlite_call call;
    int r;

    det_sqlite_call(connection, STATEMENT_DOCUMENT_POSITION, &call);
    r = det_sqlite_step(&call);
    if (r > 0) {
        ret->latest = (uint64_t)det_sqlite_get_number(&call, 0);
        ret->oldest = (uint64_t)det_sqlite_get_number(&call, 1);
        if (!ret->oldest)
            ret->oldest = ret->latest + 1;
    }
    det_sqlite_end(&call);
    return r > 0 ? 0 : r < 0 ? r : DET_ERR_CORRUPT;
}

struct looking {
    const struct det_document_query *query;
    int (*document)(void *context, const struct det_document *document);
    int (*delta)(void *context, const struct det_delta *delta);
    void *context;
    size_t count;
    char last[DET_DOCUMENT_ID_MAX + 1]; /* the id of the last document */
};

static void bind_query(struct sqlite_call *call, const struct det_document_query *query)
{
    det_sqlite_text(call, query->kind);
    det_sqlite_text(call, query->id);
    det_sqlite_text(call, query->below);
    det_sqlite_text(call, query->has_role ? det_document_role_name(query->role) : NULL);
}

static int64_t bounded(uint64_t number)
{
    return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

static int read_document(struct sqlite_call *call, struct det_document *ret)
{
    struct det_chain_bytes text = det_sqlite_get_bytes(call, 7);
    int r;

    *ret = (struct det_document){
        .kind = det_sqlite_get_text(call, 0, false),
        .id = det_sqlite_get_text(call, 1, false),
        .sync = (uint64_t)det_sqlite_get_number(call, 3),
        .version = (uint64_t)det_sqlite_get_number(call, 4),
        .created_at = det_sqlite_get_number(call, 5),
        .updated_at = det_sqlite_get_number(call, 6),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    r = det_sqlite_get_whole(call, 8);
    return r < 0 ? r : det_document_role_find(det_sqlite_get_text(call, 2, false), &ret->role);
}

/* 1: enough of them. */
static int show_document(struct sqlite_call *call, struct looking *looking)
{
    struct det_document row;
    int r;

    r = read_document(call, &row);
    if (r < 0)
        return r;
    if (looking->query->limit && looking->count >= looking->query->limit &&
        strcmp(looking->last, row.id) != 0) {
        looking->document = NULL;
        return 1;
    }
    looking->count++;
    (void)det_text_copy(looking->last, sizeof looking->last, row.id);
    return looking->document(looking->context, &row);
}

static int list_rows(struct sqlite_connection *reader, struct looking *looking)
{
    const struct det_document_query *query = looking->query;
    struct det_buffer high;
    struct sqlite_call call;
    const char *low;
    int r;

    det_buffer_init(&high, reader->allocator);
    r = det_document_range(query, &low, &high);
    if (r == 0) {
        det_sqlite_call(reader, STATEMENT_DOCUMENT_LIST, &call);
        bind_query(&call, query);
        det_sqlite_text(&call, low);
        det_sqlite_text(&call, det_buffer_text(&high));
        det_sqlite_text(&call, query->after_id);
        while ((r = det_sqlite_step(&call)) > 0 && (r = show_document(&call, looking)) == 0)
            continue;
        det_sqlite_end(&call);
    }
    det_buffer_deinit(&high);
    return r > 0 && !looking->document ? 0 : r;
}

static int show_delta(struct sqlite_call *call, const struct looking *looking)
{
    struct det_chain_bytes text = det_sqlite_get_bytes(call, 7);
    struct det_delta row = {
        .sync = (uint64_t)det_sqlite_get_number(call, 0),
        .at = det_sqlite_get_number(call, 1),
        .kind = det_sqlite_get_text(call, 2, false),
        .id = det_sqlite_get_text(call, 3, false),
        .version = (uint64_t)det_sqlite_get_number(call, 6),
        .text = text.data ? text.data : "",
        .size = text.size,
    };
    int r;

    r = det_sqlite_get_whole(call, 8);
    if (r == 0)
        r = det_document_role_find(det_sqlite_get_text(call, 4, false), &row.role);
    if (r == 0)
        r = det_document_change_find(det_sqlite_get_text(call, 5, false), &row.change);
    if (call->code != SQLITE_OK)
        r = det_sqlite_error(call->code);
    return r < 0 ? r : looking->delta(looking->context, &row);
}

static int delta_rows(struct sqlite_connection *reader, const struct looking *looking)
{
    const struct det_document_query *query = looking->query;
    struct sqlite_call call;
    int r;

    det_sqlite_call(reader, STATEMENT_DELTA_LIST, &call);
    bind_query(&call, query);
    det_sqlite_number(&call, bounded(query->after));
    det_sqlite_number(&call, query->limit ? bounded(query->limit) : -1);
    while ((r = det_sqlite_step(&call)) > 0 && (r = show_delta(&call, looking)) == 0)
        continue;
    det_sqlite_end(&call);
    return r;
}

static int look(struct det_store *base, struct looking *looking, struct det_document_position *ret)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    if (ret)
        r = read_position(reader, ret);
    if (r == 0 && looking)
        r = looking->document ? list_rows(reader, looking) : delta_rows(reader, looking);
    det_sqlite_reader_end(store, reader);
    return r;
}

static int sqlite_list(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_document *document), void *context,
    struct det_document_position *ret)
{
    struct looking looking = { .query = query, .document = visit, .context = context };

    return look(base, &looking, ret);
}

static int sqlite_deltas(
    struct det_store *base, const struct det_document_query *query,
    int (*visit)(void *context, const struct det_delta *delta), void *context,
    struct det_document_position *ret)
{
    struct looking looking = { .query = query, .delta = visit, .context = context };

    return look(base, &looking, ret);
}

static int sqlite_position(struct det_store *base, struct det_document_position *ret)
{
    return look(base, NULL, ret);
}

/* Compacting. */

/* The last sync id that may go by age. */
static int find_by_age(
    struct sqlite_connection *reader, det_time since, uint64_t latest, int64_t *up_to)
{
    struct sqlite_call call;
    int64_t last = (int64_t)latest;
    int r;

    det_sqlite_call(reader, STATEMENT_DELTA_SINCE, &call);
    det_sqlite_number(&call, since);
    r = det_sqlite_step(&call);
    if (r > 0)
        last = det_sqlite_get_number(&call, 0) - 1;
    det_sqlite_end(&call);
    if (r >= 0 && last > *up_to)
        *up_to = last;
    return r < 0 ? r : 0;
}

static int find_by_size(struct sqlite_connection *reader, uint64_t bytes_max, int64_t *up_to)
{
    struct sqlite_call call;
    uint64_t bytes = 0;
    int r;

    det_sqlite_call(reader, STATEMENT_DELTA_SIZES, &call);
    while ((r = det_sqlite_step(&call)) > 0) {
        bytes += (uint64_t)det_sqlite_get_number(&call, 1);
        if (bytes <= bytes_max)
            continue;
        if (det_sqlite_get_number(&call, 0) > *up_to)
            *up_to = det_sqlite_get_number(&call, 0);
        break;
    }
    det_sqlite_end(&call);
    return r < 0 ? r : 0;
}

static int find_old(struct sqlite_store *store, const struct det_document_keep *keep, int64_t *ret)
{
    struct det_document_position position;
    struct sqlite_connection *reader;
    int r;

    *ret = 0;
    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    r = read_position(reader, &position);
    if (r == 0 && keep->count_max && position.latest > keep->count_max)
        *ret = (int64_t)(position.latest - keep->count_max);
    if (r == 0 && keep->since)
        r = find_by_age(reader, keep->since, position.latest, ret);
    if (r == 0 && keep->bytes_max)
        r = find_by_size(reader, keep->bytes_max, ret);
    det_sqlite_reader_end(store, reader);
    return r;
}

static int drop_step(struct sqlite_store *store, void *context)
{
    struct dropping *dropping = context;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_DELTA_DROP, &call);
    det_sqlite_number(&call, dropping->up_to);
    det_sqlite_number(&call, DET_DELTAS_DROPPED_AT_ONCE);
    r = det_sqlite_run(&call);
    dropping->count = r == 0 ? (uint64_t)sqlite_changed_rows(store) : 0;
    return r;
}

static int sqlite_compact(
    struct det_store *base, const struct det_document_keep *keep, uint64_t *ret)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct dropping dropping = { 0 };
    int r;

    *ret = 0;
    if (!store->writer.database)
        return DET_ERR_READ_ONLY;
    r = find_old(store, keep, &dropping.up_to);
    if (r < 0 || !dropping.up_to)
        return r;
    do {
        r = det_sqlite_alone(store, drop_step, &dropping);
        *ret += r == 0 ? dropping.count : 0;
    } while (r == 0 && dropping.count == DET_DELTAS_DROPPED_AT_ONCE);
    return r;
}

const struct det_document_ops det_sqlite_documents = {
    .save = sqlite_save,
    .list = sqlite_list,
    .deltas = sqlite_deltas,
    .position = sqlite_position,
    .compact = sqlite_compact,
    .restore = sqlite_restore,
};
