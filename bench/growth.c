/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* growth.c - what a durable send costs when many instances are in the SQLite file: 64 senders to
 * any of 1,000 to 1,000,000 instances, and a timer armed on each of 10,000 to 300,000. Each case
 * has a file of its own, made by bench-million. The time of the processor is what other programs on
 * the machine change least. */
#include <inttypes.h>
#include <stdio.h>

#include "book.h"

#define SENDERS 64
#define SENDS   40000

static int make_file(struct bench_lap *lap, const char *kind, uint64_t instances, char *url)
{
    char name[64], path[BENCH_PATH_MAX], count[24];
    const char *words[] = { BENCH_MILLION, "fill", path, count, "0", NULL };
    int code = 0, r;

    (void)snprintf(name, sizeof name, "growth-%s-%" PRIu64 ".db", kind, instances);
    (void)snprintf(count, sizeof count, "%" PRIu64, instances);
    r = bench_file_write(name, "", 0, path);
    if (r == 0)
        r = bench_child_run(words, NULL, &code);
    if (r < 0 || code != 0)
        return bench_lap_fail(lap, r < 0 ? r : DET_ERR_IO, "fill: exit code %d", code);
    (void)snprintf(url, BENCH_PATH_MAX + 16, "sqlite:%s", path);
    return 0;
}

static int open_book(struct bench_lap *lap, const char *kind, uint64_t instances, struct book *book)
{
    char url[BENCH_PATH_MAX + 16];
    struct det_error error = { .code = 0 };
    int r = make_file(lap, kind, instances, url);

    if (r < 0)
        return r;
    r = book_open(
        book, url, &(struct det_store_options){ 0 }, &(struct det_runtime_options){ 0 },
        (uint32_t)instances, &error);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}

static int end_lap(struct bench_lap *lap, struct book *book, int r)
{
    bench_lap_end(lap);
    book_close(book);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

/* As many instances as the argument says, and as fewer as fewer sends are wanted. */
static int run_sends(struct bench_lap *lap)
{
    uint64_t instances = *(const uint64_t *)lap->argument * lap->operations / SENDS;
    struct book book;
    int r = open_book(lap, "sends", instances < SENDERS ? SENDERS : instances, &book);

    if (r < 0)
        return r;
    bench_lap_begin(lap);
    return end_lap(lap, &book, book_submit(&book, SENDERS, lap->operations));
}

static int run_timers(struct bench_lap *lap)
{
    struct book book;
    int r = open_book(lap, "timers", lap->operations, &book);

    if (r < 0)
        return r;
    bench_lap_begin(lap);
    return end_lap(lap, &book, book_lend_all(&book, (uint32_t)lap->operations));
}

static const uint64_t thousand = 1000, ten_thousand = 10000, hundred_thousand = 100000,
                      million = 1000000;

#define FIRST  "64 senders, 1,000 instances"
#define TIMERS "timers armed on 10,000 instances"

static const struct bench_case cases[] = {
    { FIRST, BENCH_OURS, run_sends, &thousand, SENDS, .against = "" },
    { "64 senders, 10,000 instances", BENCH_OURS, run_sends, &ten_thousand, SENDS,
      .against = FIRST },
    { "64 senders, 100,000 instances", BENCH_OURS, run_sends, &hundred_thousand, SENDS,
      .against = FIRST },
    { "64 senders, 1,000,000 instances", BENCH_OURS, run_sends, &million, SENDS, .against = FIRST },
    { TIMERS, BENCH_OURS, run_timers, NULL, 10000, .against = "" },
    { "timers armed on 50,000 instances", BENCH_OURS, run_timers, NULL, 50000, .against = TIMERS },
    { "timers armed on 300,000 instances", BENCH_OURS, run_timers, NULL, 300000, .against = TIMERS,
      .goals = { { BENCH_RATIO_MAX, 2, TIMERS } } },
};

extern const struct bench bench_growth;
const struct bench bench_growth = {
    .title = "durable sends to a SQLite file with more and more instances",
    .operation = "send",
    .has_processor = true,
    .rounds = 1,
    .has_no_warm_up = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
