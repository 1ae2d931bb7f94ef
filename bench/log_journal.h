/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_journal.h - journals with rows of 256 bytes, in the folder of this run. */
#ifndef BENCH_LOG_JOURNAL_H
#define BENCH_LOG_JOURNAL_H

#include <detent/journal.h>

#include "bench.h"

#define LOG_GROUP_MAX 64
#define LOG_URL_MAX   (BENCH_PATH_MAX + 8)

struct log_append {
    unsigned group;     /* rows of one append */
    unsigned in_flight; /* rows that are not acknowledged, at most; 0: any number */
    unsigned streams;   /* groups go to these in turn; 0: only to "main" */
};

/* A new journal in a folder of its own, or in memory. `url` (may be NULL) has LOG_URL_MAX bytes. */
DET_MUST_CHECK int log_journal_open(
    const struct det_journal_options *options, char *url, struct det_journal **ret,
    struct det_error *error);
/* Appends whole groups, at least `count` rows, and waits until the last one is acknowledged. */
DET_MUST_CHECK int log_journal_append(
    struct det_journal *journal, const struct log_append *how, uint64_t count,
    struct det_error *error);
/* Removes the files of a closed journal; harmless with an empty URL. */
void log_journal_remove(const char *url);
/* Ends a lap that could not continue. */
int log_journal_fail(struct bench_lap *lap, int code, const struct det_error *error);

#endif
