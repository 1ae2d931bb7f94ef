/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page.c - keeps rows until the connection that read them is released. */
#include "store/sql/page.h"

#include "base/assert.h"

/* A page that has reached this size takes no more rows. */
#define PAGE_BYTES 65536u

void det_sql_page_init(
    struct det_sql_page *page, const struct det_allocator *allocator, size_t row_size)
{
    det_assert(row_size > 0);
    page->row_size = row_size;
    det_arena_init(&page->texts, allocator);
    det_buffer_init(&page->rows, allocator);
}

void det_sql_page_deinit(struct det_sql_page *page)
{
    det_arena_deinit(&page->texts);
    det_buffer_deinit(&page->rows);
}

void det_sql_page_clear(struct det_sql_page *page)
{
    det_arena_deinit(&page->texts);
    det_arena_init(&page->texts, page->rows.allocator);
    det_buffer_clear(&page->rows);
}

int det_sql_page_keep(struct det_sql_page *page, const char **text)
{
    if (!*text)
        return 0;
    *text = det_arena_copy(&page->texts, *text);
    return *text ? 0 : DET_ERR_NO_MEMORY;
}

int det_sql_page_keep_trace(
    struct det_sql_page *page, const struct det_trace_context *trace,
    const struct det_trace_context **ret)
{
    struct det_trace_context *kept = det_arena_alloc(&page->texts, sizeof *kept);

    if (!kept)
        return DET_ERR_NO_MEMORY;
    *kept = *trace;
    *ret = kept;
    return 0;
}

int det_sql_page_add(struct det_sql_page *page, const void *row)
{
    det_assert(page->rows.size % page->row_size == 0);
    det_buffer_append(&page->rows, row, page->row_size);
    if (det_buffer_status(&page->rows) < 0)
        return det_buffer_status(&page->rows);
    return page->texts.used + page->rows.size >= PAGE_BYTES;
}

const void *det_sql_page_next(const struct det_sql_page *page, const void *row)
{
    const char *next = row ? (const char *)row + page->row_size : page->rows.data;

    det_assert(
        !row || ((const char *)row >= page->rows.data &&
                 (size_t)((const char *)row - page->rows.data) < page->rows.size));
    return page->rows.size && next < page->rows.data + page->rows.size ? next : NULL;
}
