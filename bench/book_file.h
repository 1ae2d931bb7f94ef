/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* book_file.h - SQLite files with many books, or with one that has a long history, made by
 * bench-million. */
#ifndef BENCH_BOOK_FILE_H
#define BENCH_BOOK_FILE_H

#include "book.h"

/* Creates the file `name` in the folder of this run, with this many instances, the first of which
 * has this many events. `path` has BENCH_PATH_MAX bytes. */
DET_MUST_CHECK int book_file_make(
    struct bench_lap *lap, const char *name, uint64_t instances, uint64_t events, char *path);
/* Opens a runtime on such a file. */
DET_MUST_CHECK int book_file_open(
    struct bench_lap *lap, const char *path, uint64_t instances, struct book *ret);

#endif
