/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table.h - rows in columns that are as wide as their texts, and all together fit the terminal.
 *
 *     name    state    for  restarts  why
 *     web     running   2m         0
 *     flaky   backoff   1s         3  exit code 1
 *
 * A column in which nothing stands is left out. Where the terminal is too narrow, the last column
 * is cut; when little of it would be left, other columns go first, as they say themselves. */
#ifndef DET_TERMINAL_TABLE_H
#define DET_TERMINAL_TABLE_H

#include "base/buffer.h"
#include "terminal/terminal.h"

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *head;
    unsigned drop; /* the highest is the first to be left out; 0: it stays */
    bool is_right; /* numbers and times stand at the right */
};

struct table {
    struct cli *cli;
    const struct table_column *columns;
    size_t column_count;
    struct det_buffer cells, texts;
};

/* The columns outlive the table. */
void table_init(
    struct table *table, struct cli *cli, const struct table_column *columns, size_t column_count);
void table_deinit(struct table *table);
/* The next cell of a row; after the last one comes the first of the next row. */
void table_add(struct table *table, enum cli_style style, const char *format, ...) DET_PRINTF(3, 4);
/* Of the cell that was added last, the first so many bytes are faint: the lines of a tree. */
void table_lead(struct table *table, size_t size);
/* A name in a tree as the next cell: `goes_on` says of each level whether something follows there;
 * the last one is that of the name. 0 levels: it is the root. */
void table_add_branch(struct table *table, const bool *goes_on, size_t levels, const char *name);
size_t table_rows(const struct table *table);
/* Prints at most `lines_max` lines, the head among them (0: all), and returns how many. A lack of
 * memory is kept in the run, as with cli_print(). */
size_t table_print(struct table *table, size_t lines_max);

#endif
