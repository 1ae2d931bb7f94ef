/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table.h - rows in columns that are as wide as their texts, and together fit the terminal.
 *
 *     name    state    for  restarts  why
 *     web     running   2m         0
 *     flaky   backoff   1s         3  exit code 1
 *
 * Empty columns are omitted. If the terminal is too narrow, the last column is truncated; if too
 * little of it would be left, other columns are dropped in the order they specify. */
#ifndef DET_TERMINAL_TABLE_H
#define DET_TERMINAL_TABLE_H

#include "base/buffer.h"
#include "terminal/terminal.h"

#define TABLE_COLUMNS_MAX 12

struct table_column {
    const char *head;
    unsigned drop; /* the highest is dropped first; 0: never */
    bool is_right; /* numbers and times are right-aligned */
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
/* Adds the next cell; after the last column a new row begins. */
void table_add(struct table *table, enum cli_style style, const char *format, ...) DET_PRINTF(3, 4);
/* Makes the first `size` bytes of the last added cell faint: the lines of a tree. */
void table_lead(struct table *table, size_t size);
/* Adds a name in a tree as the next cell: `goes_on` says for each level whether more entries
 * follow; the last level is that of the name. 0 levels: the root. */
void table_add_branch(struct table *table, const bool *goes_on, size_t levels, const char *name);
size_t table_rows(const struct table *table);
/* Prints at most `lines_max` lines including the head (0: all), and returns how many. Out of memory
 * is recorded in the run, as in cli_print(). */
size_t table_print(struct table *table, size_t lines_max);
/* Prints the whole table, or the text `none` if it has no rows; NULL: nothing. Not for --json. */
void table_show(struct table *table, const char *none);

#endif
