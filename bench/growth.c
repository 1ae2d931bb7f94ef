/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* growth.c - the cost of a durable send with many instances in the SQLite file: 64 senders to any
 * of 1,000 to 1,000,000 instances, and a timer armed on each of 10,000 to 300,000. Each case has
 * its own file, made by bench-million. Other programs on the machine change the processor time
 * least. */
#include <inttypes.h>
#include <stdio.h>

#include "book_file.h"

#define SENDERS 64
#define SENDS   40000

static int open_book(struct bench_lap *lap, const char *kind, uint64_t instances, struct book *book)
{
    char name[64], path[BENCH_PATH_MAX];
    int r;

    (void)snprintf(name, sizeof name, "growth-%s-%" PRIu64 ".db", kind, instances);
    r = book_file_make(lap, name, instances, 0, path);
    return r < 0 ? r : book_file_open(lap, path, instances, book);
}

static int end_lap(struct bench_lap *lap, struct book *book, int r)
{
    bench_lap_end(lap);
    book_close(book);
    return r < 0 ? bench_lap_fail(lap, r, "%s", det_error_text(r)) : 0;
}

/* As many instances as the argument says; fewer in proportion for fewer sends. */
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
    { "64 senders, 10,000 instances", BENCH_OURS, run_sends, &ten_thousand, SENDS, .against = FIRST,
      .goals = { { BENCH_RATIO_MAX, 1.5, NULL } } },
    { "64 senders, 100,000 instances", BENCH_OURS, run_sends, &hundred_thousand, SENDS,
      .against = FIRST, .goals = { { BENCH_RATIO_MAX, 2, NULL } } },
    { "64 senders, 1,000,000 instances", BENCH_OURS, run_sends, &million, SENDS, .against = FIRST,
      .goals = { { BENCH_RATIO_MAX, 3, NULL } } },
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
