/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table.c - measures the columns, omits what does not fit, prints the rows. */
#include "terminal/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define GAP 2
/* Minimum width of the last column before other columns are dropped. */
#define CUT_LEAST 24
/* Minimum width of the first column before fixed columns are dropped. */
#define NAME_LEAST 12
/* Minimum width of any column: the truncation mark. */
#define MARK_WIDTH 2

struct cell {
    size_t from, size; /* in the texts */
    size_t lead;       /* length of the faint part */
    enum cli_style style;
};

/* The printed layout: the remaining columns and their widths. */
struct layout {
    size_t columns[TABLE_COLUMNS_MAX];
    size_t widths[TABLE_COLUMNS_MAX];
    size_t count;
};

void table_init(
    struct table *table, struct cli *cli, const struct table_column *columns, size_t column_count)
{
    det_assert(column_count > 0 && column_count <= TABLE_COLUMNS_MAX);
    *table = (struct table){ .cli = cli, .columns = columns, .column_count = column_count };
    det_buffer_init(&table->cells, cli->allocator);
    det_buffer_init(&table->texts, cli->allocator);
}

void table_deinit(struct table *table)
{
    det_buffer_deinit(&table->cells);
    det_buffer_deinit(&table->texts);
}

void table_add(struct table *table, enum cli_style style, const char *format, ...)
{
    struct cell cell = { .from = table->texts.size, .style = style };
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = cli_format(table->cli, format, arguments);
    va_end(arguments);
    if (!text)
        return;
    cell.size = strlen(text);
    det_buffer_append(&table->texts, text, cell.size);
    det_buffer_append(&table->cells, &cell, sizeof cell);
    free(text);
}

void table_lead(struct table *table, size_t size)
{
    struct cell *end;

    if (table->cells.size == 0)
        return;
    end = (struct cell *)(void *)(table->cells.data + table->cells.size);
    end[-1].lead = size < end[-1].size ? size : end[-1].size;
}

static const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
    const struct cell *cells = (const struct cell *)(const void *)table->cells.data;

    det_assert(column < table->column_count && row < table_rows(table));
    return &cells[row * table->column_count + column];
}

static const char *text_of(const struct table *table, const struct cell *cell)
{
    return det_buffer_text(&table->texts) + cell->from;
}

void table_add_branch(struct table *table, const bool *goes_on, size_t levels, const char *name)
{
    static const char *const boxes[] = { "\xE2\x94\x94\xE2\x94\x80 ", "\xE2\x94\x9C\xE2\x94\x80 ",
                                         "   ", "\xE2\x94\x82  " };
    static const char *const letters[] = { "`- ", "|- ", "   ", "|  " };
    const char *const *lines = table->cli->out_has_lines ? boxes : letters;
    struct det_buffer text;
    size_t lead;

    det_buffer_init(&text, table->cli->allocator);
    for (size_t i = 0; i + 1 < levels; i++)
        det_buffer_append_text(&text, lines[2 + goes_on[i]]);
    if (levels)
        det_buffer_append_text(&text, lines[goes_on[levels - 1]]);
    lead = text.size;
    det_buffer_append_text(&text, name);
    if (det_buffer_status(&text) < 0)
        table->cli->has_failed = true;
    table_add(table, CLI_BOLD, "%s", det_buffer_text(&text));
    table_lead(table, lead);
    det_buffer_deinit(&text);
}

size_t table_rows(const struct table *table)
{
    return table->cells.size / sizeof(struct cell) / table->column_count;
}

/* Returns the width of the column's content; 0 if it is empty. */
static size_t content_width(const struct table *table, size_t column)
{
    size_t wide = 0;

    for (size_t row = 0; row < table_rows(table); row++) {
        const struct cell *cell = cell_at(table, row, column);
        size_t width = cli_width(text_of(table, cell), cell->size);

        wide = width > wide ? width : wide;
    }
    return wide;
}

static size_t layout_width(const struct layout *layout)
{
    size_t width = 0;

    for (size_t i = 0; i < layout->count; i++)
        width += layout->widths[i] + (i ? GAP : 0);
    return width;
}

static void leave_out(struct layout *layout, size_t index)
{
    size_t later = layout->count - index - 1;

    det_assert(index < layout->count && layout->count > 1);
    memmove(&layout->columns[index], &layout->columns[index + 1], later * sizeof *layout->columns);
    memmove(&layout->widths[index], &layout->widths[index + 1], later * sizeof *layout->widths);
    layout->count--;
}

/* Returns the column to drop first; `count` if all stay. */
static size_t least_wanted(const struct table *table, const struct layout *layout)
{
    size_t found = layout->count;
    unsigned highest = 0;

    for (size_t i = 0; i < layout->count; i++) {
        unsigned drop = table->columns[layout->columns[i]].drop;

        if (drop > highest) {
            highest = drop;
            found = i;
        }
    }
    return found;
}

/* Returns the maximum width of the last column; at least `least`. */
static size_t room_for_last(const struct table *table, const struct layout *layout, size_t least)
{
    size_t last = layout->widths[layout->count - 1];
    size_t others = layout_width(layout) - last;
    size_t columns = table->cli->out_columns;

    if (columns == 0 || others + last <= columns)
        return last;
    return columns > others + least ? columns - others : least < last ? least : last;
}

/* Shrinks the first column by the excess of `width`, down to its minimum. */
static void shrink_first(struct layout *layout, size_t width, size_t columns, size_t least)
{
    size_t excess = width > columns ? width - columns : 0, first = layout->widths[0];

    if (excess > 0 && first > least)
        layout->widths[0] = first > excess + least ? first - excess : least;
}

/* Truncates long names as the last resort, so that no line wraps. */
static void squeeze_columns(struct layout *layout, size_t columns)
{
    size_t last = layout->widths[layout->count - 1];
    size_t width = layout_width(layout) - last + (last < CUT_LEAST ? last : CUT_LEAST);

    if (columns > 0 && layout->count > 1)
        shrink_first(layout, width, columns, NAME_LEAST);
}

static void fit_columns(const struct table *table, struct layout *layout)
{
    size_t columns = table->cli->out_columns, index, *last;

    for (;;) {
        last = &layout->widths[layout->count - 1];
        if (columns == 0 ||
            layout_width(layout) - *last + room_for_last(table, layout, CUT_LEAST) <= columns)
            break;
        index = least_wanted(table, layout);
        if (index == layout->count)
            break;
        leave_out(layout, index);
    }
    squeeze_columns(layout, columns);
    last = &layout->widths[layout->count - 1];
    *last = room_for_last(table, layout, MARK_WIDTH);
    while (layout->count > 2 && columns > 0 && layout_width(layout) > columns)
        layout->count--;
    if (columns > 0)
        shrink_first(layout, layout_width(layout), columns, MARK_WIDTH);
}

static void measure_columns(const struct table *table, struct layout *ret)
{
    *ret = (struct layout){ 0 };
    for (size_t i = 0; i < table->column_count; i++) {
        size_t head = cli_width(table->columns[i].head, strlen(table->columns[i].head));
        size_t width = content_width(table, i);

        if (width == 0 && i > 0)
            continue;
        ret->columns[ret->count] = i;
        ret->widths[ret->count++] = width > head ? width : head;
    }
    det_assert(ret->count > 0 && ret->count <= table->column_count);
    fit_columns(table, ret);
    det_assert(ret->count > 0);
}

/* Returns the bytes of the text that fit, with room for a mark if the text is truncated. */
static size_t fitting_bytes(const char *text, size_t size, size_t width, size_t mark)
{
    size_t length = size;

    if (cli_width(text, size) <= width)
        return size;
    width -= width > mark ? mark : width;
    while (length > 0 &&
           (((unsigned char)text[length] & 0xC0) == 0x80 || cli_width(text, length) > width))
        length--;
    det_assert(length == 0 || cli_width(text, length) <= width);
    return length;
}

/* Prints the styled text, truncated with a mark if necessary; returns its width. */
static size_t print_text(
    const struct table *table, const struct cell *cell, const char *text, size_t width)
{
    const char *mark = table->cli->out_has_lines ? "\xE2\x80\xA6" : "..";
    size_t mark_width = table->cli->out_has_lines ? 1 : MARK_WIDTH;
    size_t size = fitting_bytes(text, cell->size, width, mark_width);
    size_t lead = cell->lead < size ? cell->lead : size;

    cli_print_in(table->cli, CLI_FAINT, "%.*s", (int)lead, text);
    cli_print_in(
        table->cli, cell->style, "%.*s%s", (int)(size - lead), text + lead,
        size < cell->size ? mark : "");
    return cli_width(text, size) + (size < cell->size ? mark_width : 0);
}

/* Prints one cell with its padding, before it or before the next cell, so that no line ends with
 * blanks. `room` is the padding left by previous cells. */
static void print_cell(
    const struct table *table, const struct layout *layout, size_t at, const struct cell *cell,
    const char *text, size_t *room)
{
    size_t width = cli_width(text, cell->size), wide = layout->widths[at];
    bool is_right = table->columns[layout->columns[at]].is_right;

    *room += at ? GAP : 0;
    if (cell->size == 0) {
        *room += wide;
        return;
    }
    if (is_right && width < wide)
        *room += wide - width;
    cli_print(table->cli, "%*s", (int)*room, "");
    width = print_text(table, cell, text, wide);
    *room = is_right || width > wide ? 0 : wide - width;
}

static void print_head(const struct table *table, const struct layout *layout)
{
    size_t room = 0;

    for (size_t i = 0; i < layout->count; i++) {
        const char *head = table->columns[layout->columns[i]].head;
        struct cell cell = { .size = strlen(head), .style = CLI_BOLD };

        print_cell(table, layout, i, &cell, head, &room);
    }
    cli_print(table->cli, "\n");
}

static void print_row(const struct table *table, const struct layout *layout, size_t row)
{
    size_t room = 0;

    for (size_t i = 0; i < layout->count; i++) {
        const struct cell *cell = cell_at(table, row, layout->columns[i]);

        print_cell(table, layout, i, cell, text_of(table, cell), &room);
    }
    cli_print(table->cli, "\n");
}

size_t table_print(struct table *table, size_t lines_max)
{
    size_t rows = table_rows(table), shown = rows;
    struct layout layout;

    if (det_buffer_status(&table->cells) < 0 || det_buffer_status(&table->texts) < 0) {
        table->cli->has_failed = true;
        return 0;
    }
    /* Whole rows; a cell that found no memory is missing. */
    det_assert(
        table->cells.size % (sizeof(struct cell) * table->column_count) == 0 ||
        table->cli->has_failed);
    /* The head, and the line that counts the omitted rows. */
    if (lines_max > 0 && rows + 1 > lines_max)
        shown = lines_max > 2 ? lines_max - 2 : 0;
    measure_columns(table, &layout);
    print_head(table, &layout);
    for (size_t row = 0; row < shown && !cli_is_stopped(table->cli); row++)
        print_row(table, &layout, row);
    if (shown < rows)
        cli_print_in(table->cli, CLI_FAINT, "%zu more\n", rows - shown);
    det_assert(shown <= rows && (lines_max < 2 || 1 + shown + (shown < rows) <= lines_max));
    return 1 + shown + (shown < rows);
}

void table_show(struct table *table, const char *none)
{
    bool has_rows = table_rows(table) || det_buffer_status(&table->cells) < 0;

    if (table->cli->is_json)
        return;
    if (has_rows)
        table_print(table, 0);
    else if (none)
        cli_print_error(table->cli, "%s\n", none);
}
