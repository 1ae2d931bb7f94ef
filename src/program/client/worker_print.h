/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_print.h - shared by `detent desired` and `detent observed`: requests a worker, and prints
 * its fields as a table. */
#ifndef DET_CLIENT_WORKER_PRINT_H
#define DET_CLIENT_WORKER_PRINT_H

#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { WORKER_OPTION_PROJECT };
extern const struct cli_option worker_show_options[];

typedef void worker_show_fn(struct cli *cli, const struct det_json_value *worker);
/* Requests the worker of the operand and prints it: for --json the members of these names, ended by
 * NULL, otherwise by `print`. Returns an exit code. */
DET_MUST_CHECK int worker_show(
    struct cli *cli, const struct cli_args *args, const char *kind, const char *const *members,
    worker_show_fn *print);
/* Prints a line with its name and state. */
void worker_show_head(struct cli *cli, const struct det_json_value *worker);
/* Adds a value as a cell; NULL: an empty one. */
void worker_show_cell(
    struct table *table, enum cli_style style, const struct det_json_value *value);

/* Appends the path of a worker, then `rest`: "/history". */
void worker_path(struct det_buffer *path, const char *id, const char *rest);

#endif
