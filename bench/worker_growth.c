/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_growth.c - growth of the cost of one worker with their number: from the config until all
 * run, from the stop request until all are gone, and upserts below one parent. The ratio to 1,000
 * workers must stay flat.
 *
 * While workers start and stop, the bench requests a summary every few milliseconds: the longest of
 * these calls shows how long the loop was blocked. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#include "meter.h"

#define WAIT_MAX (300 * DET_SECOND)

/* Farms of one size. The case "start" leaves the last one open for the cases after it. */
struct size {
    uint64_t meters;
    struct det_workers *workers;
    det_time longest_call;
};

static struct size thousand = { .meters = 1000 }, ten_thousand = { .meters = 10000 },
                   hundred_thousand = { .meters = 100000 }, million = { .meters = 1000000 };
static struct size *const sizes[] = { &thousand, &ten_thousand, &hundred_thousand, &million };

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

static void sleep_a_moment(void)
{
    const struct timespec moment = { .tv_nsec = 2000000 };

    (void)nanosleep(&moment, NULL);
}

/* A call from another thread, and its wait for the loop. */
static void ask(struct size *size, struct det_workers_summary *ret)
{
    int64_t began = bench_now_ns();

    det_workers_summary(size->workers, ret);
    if (bench_now_ns() - began > size->longest_call)
        size->longest_call = bench_now_ns() - began;
}

static int wait_until_running(struct size *size, uint64_t count)
{
    struct det_workers_summary summary;
    int64_t deadline = bench_now_ns() + WAIT_MAX;

    do {
        ask(size, &summary);
        if (summary.by_phase[DET_PHASE_RUNNING] >= count)
            return 0;
        sleep_a_moment();
    } while (bench_now_ns() < deadline);
    return DET_ERR_TIMEOUT;
}

static int open_farm(struct size *size, uint64_t meters)
{
    struct det_workers_options options = { .kinds = meter_kinds,
                                           .limits = { .workers_max = 2000000 } };
    char yaml[128];
    int r;

    (void)snprintf(
        yaml, sizeof yaml, "children: [{name: farm, kind: farm, config: {meters: %llu}}]",
        (unsigned long long)meters);
    size->longest_call = 0;
    r = det_workers_open(&options, &size->workers, NULL);
    return r < 0 ? r : det_workers_apply(size->workers, yaml, NULL);
}

static void close_farm(struct size *size)
{
    det_workers_close(size->workers);
    size->workers = NULL;
}

static void close_farms(void)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        close_farm(sizes[i]);
}

static int run_start(struct bench_lap *lap)
{
    struct size *size = *(struct size *const *)lap->argument;
    int r;

    close_farm(size);
    bench_lap_begin(lap);
    r = open_farm(size, lap->operations);
    if (r == 0)
        r = wait_until_running(size, lap->operations + 2);
    bench_lap_end(lap);
    return r < 0 ? fail(lap, r) : 0;
}

/* This thread calls the loop while it waits for the end. */
struct stopping {
    struct det_workers *workers;
    atomic_bool is_over;
    struct det_error error;
    int r;
};

static void *stop_farm(void *argument)
{
    struct stopping *stopping = argument;

    stopping->r = det_workers_stop(stopping->workers, &stopping->error);
    atomic_store(&stopping->is_over, true);
    return NULL;
}

static int run_stop(struct bench_lap *lap)
{
    struct size *size = *(struct size *const *)lap->argument;
    struct stopping stopping = { .workers = size->workers };
    struct det_workers_summary summary;
    pthread_t thread;

    if (!size->workers)
        return bench_lap_fail(lap, DET_ERR_NOT_FOUND, "none runs");
    bench_lap_begin(lap);
    if (pthread_create(&thread, NULL, stop_farm, &stopping) != 0)
        return fail(lap, DET_ERR_NO_MEMORY);
    while (!atomic_load(&stopping.is_over)) {
        ask(size, &summary);
        sleep_a_moment();
    }
    (void)pthread_join(thread, NULL);
    bench_lap_end(lap);
    close_farm(size);
    return stopping.r < 0 ? bench_lap_fail(lap, stopping.r, "%.150s", stopping.error.text) : 0;
}

static int run_longest(struct bench_lap *lap)
{
    struct size *size = *(struct size *const *)lap->argument;

    lap->nanoseconds = (double)size->longest_call;
    lap->operations = 1;
    return 0;
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

static struct size *const first = &thousand, *const second = &ten_thousand,
                          *const third = &hundred_thousand, *const fourth = &million;

#define START  "start of 10,000 workers"
#define STOP   "stop of 10,000 workers"
#define UPSERT "1,000 upserts below one parent"
#define COMMON .has_no_allocations = true
#define LATENCY(nanoseconds) \
    1, COMMON, .against = "", .is_latency = true, .goals = { { BENCH_NS_MAX, nanoseconds, NULL } }

/* 1,000 workers start in two ticks: their figure is that of the ticks. */
static const struct bench_case cases[] = {
    { "start of 1,000 workers", BENCH_OURS, run_start, &first, 1000, COMMON, .against = "" },
    { "stop of 1,000 workers", BENCH_OURS, run_stop, &first, 1000, COMMON, .against = "" },
    { START, BENCH_OURS, run_start, &second, 10000, COMMON, .against = "" },
    { STOP, BENCH_OURS, run_stop, &second, 10000, COMMON, .against = "" },
    { "start of 100,000 workers", BENCH_OURS, run_start, &third, 100000, COMMON, .against = START,
      .goals = { { BENCH_RATIO_MAX, 2, START } } },
    { "stop of 100,000 workers", BENCH_OURS, run_stop, &third, 100000, COMMON, .against = STOP,
      .goals = { { BENCH_RATIO_MAX, 2, STOP } } },
    { "longest call meanwhile, of 100,000", BENCH_OURS, run_longest, &third, LATENCY(100e6) },
    { "start of 1,000,000 workers", BENCH_OURS, run_start, &fourth, 1000000, COMMON,
      .against = START, .goals = { { BENCH_RATIO_MAX, 2, START } } },
    { "stop of 1,000,000 workers", BENCH_OURS, run_stop, &fourth, 1000000, COMMON, .against = STOP,
      .goals = { { BENCH_RATIO_MAX, 2, STOP } } },
    /* One call of children() names all children of a parent. */
    { "longest call meanwhile, of 1,000,000", BENCH_OURS, run_longest, &fourth, LATENCY(1e9) },
    { UPSERT, BENCH_OURS, run_upserts, NULL, 1000, COMMON, .against = "" },
    { "10,000 upserts below one parent", BENCH_OURS, run_upserts, NULL, 10000, COMMON,
      .against = UPSERT },
    { "50,000 upserts below one parent", BENCH_OURS, run_upserts, NULL, 50000, COMMON,
      .against = UPSERT, .goals = { { BENCH_RATIO_MAX, 2, UPSERT } } },
};

extern const struct bench bench_worker_growth;
const struct bench bench_worker_growth = {
    .title = "workers: the cost of one among many",
    .operation = "worker",
    .rounds = 1,
    .has_no_warm_up = true,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .close = close_farms,
};
