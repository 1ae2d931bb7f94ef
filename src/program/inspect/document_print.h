/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_print.h - the documents of a store, for people and as JSON lines: what changed, one
 * delta after the other, then what there is now. All of it, however much that is. */
#ifndef DET_INSPECT_DOCUMENT_PRINT_H
#define DET_INSPECT_DOCUMENT_PRINT_H

#include <detent/tool/documents.h>

#include "terminal/terminal.h"

/* To `out`. `query` says which documents (NULL: all). What was put by hand is shown without its
 * config and its variables, which may have secrets in them, unless `is_revealed`. An error is the
 * store's, and was not complained about. */
DET_MUST_CHECK int cli_dump_print(
    struct cli *cli, struct det_store *store, const struct det_document_query *query,
    bool is_revealed);

/* "10:00:00.250", UTC: for lines of a log. Returns `target`. */
#define CLI_TIME_OF_DAY 16
const char *cli_time_of_day(det_time at, char target[CLI_TIME_OF_DAY]);

#endif
