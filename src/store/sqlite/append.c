/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* append.c - inserts the events of a large batch, many rows in one statement.
 *
 * Starting and ending a statement costs SQLite a third of a row, so the events of a batch are
 * collected until there are SQLITE_ROWS of them. The remaining ones are inserted one by one. */
#include "base/assert.h"
#include "store/sqlite/sqlite.h"

void det_sqlite_append_init(struct sqlite_store *store)
{
    det_buffer_init(&store->append.bytes, store->store.allocator);
    store->writer.appended = store->append.bound;
}

void det_sqlite_append_deinit(struct sqlite_store *store)
{
    det_buffer_deinit(&store->append.bytes);
}

static void bind_row(struct sqlite_call *call, const struct sqlite_row *row)
{
    det_sqlite_number(call, row->position);
    det_sqlite_number(call, row->instance);
    det_sqlite_number(call, (int64_t)row->sequence);
    det_sqlite_number(call, row->previous);
    det_sqlite_number(call, (int64_t)row->version);
    det_sqlite_number(call, (int64_t)row->visit);
    det_sqlite_name(call, row->from);
    det_sqlite_name(call, row->to);
    det_sqlite_name(call, row->event);
    det_sqlite_name(call, row->outcome);
    det_sqlite_number(call, row->choice);
    det_sqlite_number(call, row->is_timeout);
    det_sqlite_number(call, row->at);
    det_sqlite_text(call, row->event_id);
    det_sqlite_text(call, row->cause);
    det_sqlite_bytes(call, row->payload);
    det_sqlite_bytes(call, det_sqlite_hash_bytes(&row->hash));
    det_sqlite_bytes(call, det_trace_context_bytes(row->trace));
}

static int insert_one(struct sqlite_store *store, const struct sqlite_row *row)
{
    struct sqlite_call call;

    det_sqlite_call(&store->writer, STATEMENT_EVENT_INSERT, &call);
    bind_row(&call, row);
    return det_sqlite_run(&call);
}

static const struct sqlite_row *waiting_at(struct sqlite_append *append, size_t index)
{
    struct sqlite_row *row = &append->rows[index];

    det_assert(index < append->count);
    det_assert(append->offsets[index] <= append->bytes.size);
    if (row->payload.data)
        row->payload.data = det_buffer_text(&append->bytes) + append->offsets[index];
    return row;
}

/* No event waits unless inserts are collected, and a full group is inserted at once. */
static void assert_append(const struct sqlite_append *append)
{
    det_assert(append->count < SQLITE_ROWS);
    det_assert(append->is_on || append->count == 0);
    det_assert(append->count > 0 || append->bytes.size == 0);
}

static void clear_append(struct sqlite_append *append)
{
    append->count = 0;
    det_buffer_clear(&append->bytes);
}

static int insert_many(struct sqlite_store *store)
{
    struct sqlite_append *append = &store->append;
    struct sqlite_call call;
    int r;

    det_sqlite_call(&store->writer, STATEMENT_EVENT_INSERT_MANY, &call);
    for (size_t i = 0; i < SQLITE_ROWS; i++)
        bind_row(&call, waiting_at(append, i));
    r = det_sqlite_run(&call);
    clear_append(append);
    return r;
}

void det_sqlite_append_begin(struct sqlite_store *store, bool is_many)
{
    clear_append(&store->append);
    store->append.is_on = is_many;
}

int det_sqlite_append(struct sqlite_store *store, const struct sqlite_row *row)
{
    struct sqlite_append *append = &store->append;

    assert_append(append);
    det_check(row->position > 0 && row->instance > 0 && row->sequence > 0);
    if (!append->is_on)
        return insert_one(store, row);
    append->rows[append->count] = *row;
    append->offsets[append->count++] = append->bytes.size;
    det_buffer_append(&append->bytes, row->payload.data, row->payload.size);
    if (det_buffer_status(&append->bytes) < 0)
        return det_buffer_status(&append->bytes);
    return append->count < SQLITE_ROWS ? 0 : insert_many(store);
}

int det_sqlite_append_end(struct sqlite_store *store)
{
    struct sqlite_append *append = &store->append;
    int r = 0;

    assert_append(append);
    for (size_t i = 0; r == 0 && i < append->count; i++)
        r = insert_one(store, waiting_at(append, i));
    clear_append(append);
    return r;
}
