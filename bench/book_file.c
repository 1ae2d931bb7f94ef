/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* book_file.c - SQLite files with many books, or with one that has a long history. */
#include "book_file.h"

#include <inttypes.h>
#include <stdio.h>

static int run_verb(
    struct bench_lap *lap, const char *verb, const char *path, uint64_t instances,
    uint64_t operations)
{
    char count[24], number[24];
    const char *words[] = { BENCH_MILLION, verb, path, count, number, NULL };
    int code = 0, r;

    (void)snprintf(count, sizeof count, "%" PRIu64, instances);
    (void)snprintf(number, sizeof number, "%" PRIu64, operations);
    r = bench_child_run(words, NULL, &code);
    if (r < 0 || code != 0)
        return bench_lap_fail(lap, r < 0 ? r : DET_ERR_IO, "%s: exit code %d", verb, code);
    return 0;
}

int book_file_make(
    struct bench_lap *lap, const char *name, uint64_t instances, uint64_t events, char *path)
{
    int r;

    r = bench_file_write(name, "", 0, path);
    if (r < 0)
        return bench_lap_fail(lap, r, "%s: %s", name, det_error_text(r));
    r = run_verb(lap, "fill", path, instances, 0);
    return r == 0 && events ? run_verb(lap, "deepen", path, instances, events) : r;
}

int book_file_open(struct bench_lap *lap, const char *path, uint64_t instances, struct book *ret)
{
    char url[BENCH_PATH_MAX + 16];
    struct det_error error = { .code = 0 };
    int r;

    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    r = book_open(
        ret, url, &(struct det_store_options){ 0 }, &(struct det_runtime_options){ 0 },
        (uint32_t)instances, &error);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}
