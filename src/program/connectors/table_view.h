/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_view.h - lines of cells as aligned text for a terminal. Pure.
 *
 *     sensor  celsius
 *     a          21.5
 *     b          22
 *
 * Cells have no control characters: they become escapes. */
#ifndef DET_CONNECTORS_TABLE_VIEW_H
#define DET_CONNECTORS_TABLE_VIEW_H

#include "connectors/columns.h"

#define TABLE_VIEW_COLUMNS 32

struct table_view {
    const struct column *columns[TABLE_VIEW_COLUMNS];
    size_t count;
    size_t widths[TABLE_VIEW_COLUMNS];
    size_t width_max; /* of a cell, in characters */
    bool is_colored;
    struct det_buffer cell, escaped;
};

void table_view_init(
    struct table_view *view, const struct det_allocator *allocator, size_t width_max);
void table_view_deinit(struct table_view *view);
/* Adds a column; false: there are too many. */
bool table_view_add(struct table_view *view, const struct column *column);
/* Appends the cells of a row, each with a final NUL. */
void table_view_cells(struct table_view *view, const void *row, struct det_buffer *cells);
/* Widens the columns so that the cells fit; returns the size of the row's cells. */
size_t table_view_fit(struct table_view *view, const char *cells);
/* Appends a line; returns the size of the row's cells. */
size_t table_view_line(const struct table_view *view, const char *cells, struct det_buffer *buffer);
void table_view_head(const struct table_view *view, struct det_buffer *buffer);

#endif
