/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_print.h - what `detent desired` and `detent observed` share: asking for a worker, and its
 * fields as a table. */
#ifndef DET_CLIENT_WORKER_PRINT_H
#define DET_CLIENT_WORKER_PRINT_H

#include "client/remote.h"
#include "inspect/print_tasks.h"

enum { WORKER_OPTION_PROJECT };
extern const struct cli_option worker_show_options[];

/* Asks for the worker that the operand names, and prints it: the members of these names, NULL at
 * the end, for --json, or what `print` does. An exit code. */
DET_MUST_CHECK int worker_show(
    struct cli *cli, const struct cli_args *args, const char *kind, const char *const *members,
    void (*print)(struct cli *cli, const json_t *worker));
/* Who it is and how it is, in a line. */
void worker_show_head(struct cli *cli, const json_t *worker);
/* A value as a cell; NULL: an empty one. */
void worker_show_cell(struct table *table, enum cli_style style, const json_t *value);

/* Appends the path of a worker, then `rest`: "/history". */
void worker_path(struct det_buffer *path, const char *id, const char *rest);

#endif
