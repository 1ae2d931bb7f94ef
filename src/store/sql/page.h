/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* page.h - copies rows while a connection reads them, and shows them to a visitor after the
 * connection is released.
 *
 *     reader --> rows into the page --> reader back --> visit each row --+--> done
 *        ^                                                               |
 *        +---------------- there are more, after the last ---------------+
 *
 * The visitor runs without a connection, and may request one. */
#ifndef DET_STORE_SQL_PAGE_H
#define DET_STORE_SQL_PAGE_H

#include <detent/driver/store.h>

#include "base/arena.h"
#include "base/buffer.h"

struct det_sql_page {
    size_t row_size;
    struct det_arena texts; /* and other objects that rows point to */
    struct det_buffer rows;
};
void det_sql_page_init(
    struct det_sql_page *page, const struct det_allocator *allocator, size_t row_size);
void det_sql_page_deinit(struct det_sql_page *page);
void det_sql_page_clear(struct det_sql_page *page);
/* Replaces a text, which may be NULL, by a copy that lives as long as the page. */
DET_MUST_CHECK int det_sql_page_keep(struct det_sql_page *page, const char **text);
/* Like det_sql_page_keep(), for a trace context. */
DET_MUST_CHECK int det_sql_page_keep_trace(
    struct det_sql_page *page, const struct det_trace_context *trace,
    const struct det_trace_context **ret);
/* 1: the page is full now. */
DET_MUST_CHECK int det_sql_page_add(struct det_sql_page *page, const void *row);
/* The first row for NULL, or the next one; NULL: none. */
const void *det_sql_page_next(const struct det_sql_page *page, const void *row);

#endif
