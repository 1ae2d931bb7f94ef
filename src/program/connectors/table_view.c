/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_view.c - lines of cells as aligned text. */
#include "connectors/table_view.h"

#include <string.h>

#include "base/assert.h"
#include "base/escape.h"
#include "terminal/terminal.h"

#define GAP  "  "
#define MARK "..."

void table_view_init(
    struct table_view *view, const struct det_allocator *allocator, size_t width_max)
{
    *view = (struct table_view){ .width_max = width_max };
    det_assert(width_max > strlen(MARK));
    det_buffer_init(&view->cell, allocator);
    det_buffer_init(&view->escaped, allocator);
}

void table_view_deinit(struct table_view *view)
{
    det_buffer_deinit(&view->cell);
    det_buffer_deinit(&view->escaped);
}

bool table_view_add(struct table_view *view, const struct column *column)
{
    if (view->count == TABLE_VIEW_COLUMNS)
        return false;
    view->widths[view->count] = cli_width(column->name, strlen(column->name));
    view->columns[view->count++] = column;
    return true;
}

/* A line feed or a tab would break the line. */
static void flatten(struct det_buffer *text, size_t begin)
{
    for (size_t i = begin; i < text->size; i++)
        if (text->data[i] == '\n' || text->data[i] == '\t')
            text->data[i] = ' ';
}

/* Cuts a text after `width_max` characters. */
static void cut(const struct table_view *view, struct det_buffer *text)
{
    size_t at = 0, characters = 0, keep = 0;

    while (at < text->size) {
        size_t size = det_character_size(text->data + at, text->size - at);

        at += size ? size : 1;
        characters++;
        if (characters == view->width_max - strlen(MARK))
            keep = at;
    }
    if (characters <= view->width_max)
        return;
    buffer_cut(text, keep);
    det_buffer_append_text(text, MARK);
}

void table_view_cells(struct table_view *view, const void *row, struct det_buffer *cells)
{
    for (size_t i = 0; i < view->count; i++) {
        det_buffer_clear(&view->cell);
        det_buffer_clear(&view->escaped);
        column_write(view->columns[i], row, &view->cell);
        det_escape(&view->escaped, det_buffer_text(&view->cell), view->cell.size);
        flatten(&view->escaped, 0);
        if (det_buffer_status(&view->escaped) == 0)
            cut(view, &view->escaped);
        det_buffer_append(cells, det_buffer_text(&view->escaped), view->escaped.size);
        det_buffer_append_char(cells, '\0');
        if (det_buffer_status(&view->escaped) < 0)
            cells->error = det_buffer_status(&view->escaped);
    }
}

size_t table_view_fit(struct table_view *view, const char *cells)
{
    const char *at = cells;

    for (size_t i = 0; i < view->count; i++) {
        size_t size = strlen(at), width = cli_width(at, size);

        if (view->widths[i] < width)
            view->widths[i] = width;
        at += size + 1;
    }
    return (size_t)(at - cells);
}

static bool is_number(const struct column *column)
{
    enum det_kind kind = column->field->kind;

    return !column->is_composed &&
           (kind == DET_KIND_UNSIGNED || kind == DET_KIND_SIGNED || kind == DET_KIND_FLOAT);
}

static void write_cell(
    const struct table_view *view, size_t index, const char *text, struct det_buffer *buffer)
{
    size_t size = strlen(text), width = cli_width(text, size);
    size_t padding = width < view->widths[index] ? view->widths[index] - width : 0;
    bool is_right = is_number(view->columns[index]), is_last = index + 1 == view->count;

    if (is_right)
        det_buffer_format(buffer, "%*s", (int)padding, "");
    det_buffer_append(buffer, text, size);
    if (!is_right && !is_last)
        det_buffer_format(buffer, "%*s", (int)padding, "");
    det_buffer_append_text(buffer, is_last ? "\n" : GAP);
}

size_t table_view_line(const struct table_view *view, const char *cells, struct det_buffer *buffer)
{
    const char *at = cells;

    for (size_t i = 0; i < view->count; i++) {
        write_cell(view, i, at, buffer);
        at += strlen(at) + 1;
    }
    return (size_t)(at - cells);
}

void table_view_head(const struct table_view *view, struct det_buffer *buffer)
{
    if (view->is_colored)
        det_buffer_append_text(buffer, "\x1b[1m");
    for (size_t i = 0; i < view->count; i++)
        write_cell(view, i, view->columns[i]->name, buffer);
    if (!view->is_colored || det_buffer_status(buffer) < 0)
        return;
    buffer_cut(buffer, buffer->size - 1);
    det_buffer_append_text(buffer, "\x1b[0m\n");
}
