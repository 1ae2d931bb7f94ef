/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_growth.c - how the cost of one worker grows with their number: from the config to the
 * moment when all run, and one by one below the same parent. The ratio to 1,000 is what is to stay
 * flat. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#include "meter.h"

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

static void sleep_a_moment(void)
{
    const struct timespec moment = { .tv_nsec = 2000000 };

    (void)nanosleep(&moment, NULL);
}

/* Until so many run. */
static int wait_until_running(
    struct det_workers *workers, uint64_t count, struct det_workers_summary *ret)
{
    int64_t deadline = bench_now_ns() + 600 * DET_SECOND;

    do {
        det_workers_summary(workers, ret);
        if (ret->by_phase[DET_PHASE_RUNNING] >= count)
            return 0;
        sleep_a_moment();
    } while (bench_now_ns() < deadline);
    return DET_ERR_TIMEOUT;
}

static int open_farm(uint64_t count, struct det_workers **ret)
{
    struct det_workers_options options = { .kinds = meter_kinds,
                                           .limits = { .workers_max = 2000000 } };
    char yaml[128];
    int r;

    (void)snprintf(
        yaml, sizeof yaml, "children: [{name: farm, kind: farm, config: {meters: %llu}}]",
        (unsigned long long)count);
    r = det_workers_open(&options, ret, NULL);
    return r < 0 ? r : det_workers_apply(*ret, yaml, NULL);
}

static int run_start(struct bench_lap *lap)
{
    struct det_workers_summary summary = { 0 };
    struct det_workers *workers = NULL;
    int r;

    bench_lap_begin(lap);
    r = open_farm(lap->operations, &workers);
    if (r == 0)
        r = wait_until_running(workers, lap->operations + 2, &summary);
    bench_lap_end(lap);
    det_workers_close(workers);
    return r < 0 ? fail(lap, r) : 0;
}

/* The longest tick while they start: what all else on the loop waits for. */
static int run_longest_tick(struct bench_lap *lap)
{
    struct det_workers_summary summary = { 0 };
    struct det_workers *workers = NULL;
    int r;

    r = open_farm(lap->operations, &workers);
    if (r == 0)
        r = wait_until_running(workers, lap->operations + 2, &summary);
    lap->nanoseconds = (double)summary.tick_took_max;
    lap->operations = 1;
    det_workers_close(workers);
    return r < 0 ? fail(lap, r) : 0;
}

static int run_upserts(struct bench_lap *lap)
{
    struct det_workers_options options = { .kinds = meter_kinds };
    struct det_child_spec spec = { .kind = "meter", .config = "{level: 1}" };
    struct det_workers *workers = NULL;
    char name[32];
    int r;

    r = det_workers_open(&options, &workers, NULL);
    spec.name = name;
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        (void)snprintf(name, sizeof name, "m%llu", (unsigned long long)i);
        r = det_workers_upsert(workers, NULL, &spec, NULL);
    }
    bench_lap_end(lap);
    det_workers_close(workers);
    return r < 0 ? fail(lap, r) : 0;
}

#define START  "start of 1,000 workers"
#define UPSERT "1,000 put by hand below one parent"
#define COMMON .clock = BENCH_OWN, .has_no_allocations = true
static const struct bench_case cases[] = {
    { START, BENCH_OURS, run_start, NULL, 1000, COMMON, .against = "" },
    { "start of 10,000 workers", BENCH_OURS, run_start, NULL, 10000, COMMON, .against = START,
      .goals = { { BENCH_RATIO_MAX, 2, START } } },
    { "start of 100,000 workers", BENCH_OURS, run_start, NULL, 100000, COMMON, .against = START,
      .goals = { { BENCH_RATIO_MAX, 3, START } } },
    { "start of 1,000,000 workers", BENCH_OURS, run_start, NULL, 1000000, COMMON,
      .against = START },
    { "longest tick while 100,000 start", BENCH_OURS, run_longest_tick, NULL, 100000, COMMON,
      .against = "", .is_latency = true },
    { UPSERT, BENCH_OURS, run_upserts, NULL, 1000, COMMON, .against = "" },
    { "10,000 put by hand below one parent", BENCH_OURS, run_upserts, NULL, 10000, COMMON,
      .against = UPSERT },
    { "50,000 put by hand below one parent", BENCH_OURS, run_upserts, NULL, 50000, COMMON,
      .against = UPSERT, .goals = { { BENCH_RATIO_MAX, 2, UPSERT } } },
};

extern const struct bench bench_worker_growth;
const struct bench bench_worker_growth = {
    .title = "workers: the cost of one among many",
    .operation = "worker",
    .rounds = 1,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
