/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* document_print.h - prints the documents of a store, for people and as JSON lines: first every
 * delta, then every current document. */
#ifndef DET_INSPECT_DOCUMENT_PRINT_H
#define DET_INSPECT_DOCUMENT_PRINT_H

#include <detent/tool/documents.h>

#include "terminal/terminal.h"

/* Prints to `out`. `query` selects the documents (NULL: all). Manually created documents are shown
 * without config and variables, which may contain secrets, unless `is_revealed`. Returns the
 * store's error, which was not reported. */
DET_MUST_CHECK int cli_dump_print(
    struct cli *cli, struct det_store *store, const struct det_document_query *query,
    bool is_revealed);

/* "10:00:00.250", UTC: for log lines. Returns `target`. */
#define CLI_TIME_OF_DAY 16
const char *cli_time_of_day(det_time at, char target[CLI_TIME_OF_DAY]);

#endif
