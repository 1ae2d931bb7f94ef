/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page.c - asking with a connection of the pool, and rows that are kept until it is free
 * again.
 *
 *     reader --> rows into the page --> reader back --> visit each row --+--> done
 *        ^                                                               |
 *        +---------------- there are more, behind the last --------------+
 *
 * So the code of others runs without a connection, and may ask for one. */
#include "store/sqlite/sqlite.h"

/* A page that has reached this size takes no more rows. */
#define PAGE_BYTES 65536u

int det_sqlite_ask(struct sqlite_store *store, const struct sqlite_question *question)
{
    struct sqlite_connection *reader;
    struct sqlite_call call;
    int r;

    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return r;
    det_sqlite_call(reader, question->statement, &call);
    if (question->bind)
        question->bind(&call, question->context);
    while ((r = det_sqlite_step(&call)) > 0) {
        r = question->read(&call, question->context);
        if (r != 0)
            break;
    }
    det_sqlite_end(&call);
    det_sqlite_reader_end(store, reader);
    return r;
}

void det_sqlite_page_init(
    struct sqlite_page *page, const struct det_allocator *allocator, size_t row_size)
{
    page->row_size = row_size;
    det_arena_init(&page->texts, allocator);
    det_buffer_init(&page->rows, allocator);
}

void det_sqlite_page_deinit(struct sqlite_page *page)
{
    det_arena_deinit(&page->texts);
    det_buffer_deinit(&page->rows);
}

void det_sqlite_page_clear(struct sqlite_page *page)
{
    det_arena_deinit(&page->texts);
    det_arena_init(&page->texts, page->rows.allocator);
    det_buffer_clear(&page->rows);
}

int det_sqlite_page_keep(struct sqlite_page *page, const char **text)
{
    if (!*text)
        return 0;
    *text = det_arena_copy(&page->texts, *text);
    return *text ? 0 : DET_ERR_NO_MEMORY;
}

int det_sqlite_page_keep_trace(
    struct sqlite_page *page, const struct det_trace_context *trace,
    const struct det_trace_context **ret)
{
    struct det_trace_context *kept = det_arena_alloc(&page->texts, sizeof *kept);

    if (!kept)
        return DET_ERR_NO_MEMORY;
    *kept = *trace;
    *ret = kept;
    return 0;
}

int det_sqlite_page_add(struct sqlite_page *page, const void *row)
{
    det_buffer_append(&page->rows, row, page->row_size);
    if (det_buffer_status(&page->rows) < 0)
        return det_buffer_status(&page->rows);
    return page->texts.used + page->rows.size >= PAGE_BYTES;
}

const void *det_sqlite_page_next(const struct sqlite_page *page, const void *row)
{
    const char *next = row ? (const char *)row + page->row_size : page->rows.data;

    return page->rows.size && next < page->rows.data + page->rows.size ? next : NULL;
}
