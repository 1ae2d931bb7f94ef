/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.c - one tick of a running worker: check its config, its observation, the gate of an
 * action, next(), and its writes. And the time from a new config to the action.
 *
 * The limit is a hand-written walk over records, with a table of functions and a deadline. Meters
 * are observed by threads while the ticks are counted, as in practice. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#include "meter.h"

#define TICKS  2000000 /* of one worker, in a lap */
#define KEPT   10000
#define ROUNDS 20

/* A farm that is kept for all laps. */
struct farm {
    uint32_t meters;
    struct det_loop *loop;
    struct det_workers *workers;
};

static struct farm farms[] = {
    { .meters = 1 },     { .meters = 100 },    { .meters = 1000 },
    { .meters = 10000 }, { .meters = 100000 },
};

/* Until all run and are settled. */
static int warm(struct farm *farm)
{
    struct det_workers_summary summary = { 0 };
    int64_t deadline = bench_now_ns() + 60 * DET_SECOND;
    int r = 0;

    while (summary.by_phase[DET_PHASE_RUNNING] < farm->meters + 2 && r >= 0) {
        det_workers_tick(farm->workers);
        r = det_loop_turn(farm->loop, 0);
        det_workers_summary(farm->workers, &summary);
        if (bench_now_ns() > deadline)
            return DET_ERR_TIMEOUT;
    }
    return r < 0 ? r : summary.threads > 10 + 16 ? DET_ERR_LIMIT : 0;
}

static int plant(struct farm *farm)
{
    struct det_workers_options options = { .kinds = meter_kinds, .is_paused = true };
    char yaml[128];
    int r;

    (void)snprintf(
        yaml, sizeof yaml, "children: [{name: farm, kind: farm, config: {meters: %u}}]",
        farm->meters);
    r = det_loop_open(NULL, NULL, &farm->loop);
    options.loop = farm->loop;
    if (r == 0)
        r = det_workers_open(&options, &farm->workers, NULL);
    if (r == 0)
        r = det_workers_apply(farm->workers, yaml, NULL);
    return r < 0 ? r : warm(farm);
}

static void clear(struct farm *farm)
{
    det_workers_close(farm->workers);
    det_loop_close(farm->loop);
    farm->workers = NULL;
    farm->loop = NULL;
}

static void close_farms(void)
{
    for (size_t i = 0; i < sizeof farms / sizeof farms[0]; i++)
        if (farms[i].loop)
            clear(&farms[i]);
}

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

static int run_ticks(struct bench_lap *lap)
{
    struct farm *farm = &farms[*(const unsigned *)lap->argument];
    uint64_t ticks = lap->operations / farm->meters + 1;
    int r = farm->workers ? warm(farm) : plant(farm);

    if (r < 0)
        return fail(lap, r);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < ticks; i++)
        det_workers_tick(farm->workers);
    bench_lap_end(lap);
    lap->operations = ticks * farm->meters;
    while (r >= 0 && (r = det_loop_turn(farm->loop, 0)) > 0)
        continue;
    return r < 0 ? fail(lap, r) : 0;
}

/* Hand-written. */
struct record {
    uint32_t state, desired;
    int64_t due, observed_at;
    uint64_t generation, seen;
    char rest[88];
};

static uint32_t stay(struct record *record, int64_t now)
{
    return now - record->observed_at > 20000000 ? 3 : 2;
}

static int run_hand(struct bench_lap *lap)
{
    static uint32_t (*const table[4])(struct record *, int64_t) = { stay, stay, stay, stay };
    uint32_t count = *(const uint32_t *)lap->argument;
    struct record *records = calloc(count, sizeof *records);
    uint64_t ticks = lap->operations / count + 1, moves = 0;

    if (!records)
        return fail(lap, DET_ERR_NO_MEMORY);
    for (uint32_t i = 0; i < count; i++)
        records[i].state = 2;
    bench_lap_begin(lap);
    for (uint64_t tick = 1; tick <= ticks; tick++)
        for (uint32_t i = 0; i < count; i++) {
            struct record *record = &records[i];
            uint32_t next = table[record->state](record, (int64_t)tick);

            record->seen = record->generation;
            if (next != record->state) {
                record->state = next;
                moves++;
            }
            if (record->due && record->due <= (int64_t)tick)
                record->due = 0;
        }
    bench_lap_end(lap);
    bench_use(moves);
    lap->operations = ticks * count;
    free(records);
    return 0;
}

static int run_memory(struct bench_lap *lap)
{
    struct farm farm = { .meters = (uint32_t)lap->operations };
    size_t before = mallinfo2().uordblks;
    int r;

    bench_lap_begin(lap);
    r = plant(&farm);
    bench_lap_end(lap);
    if (r == 0)
        lap->kept_bytes = (double)(mallinfo2().uordblks - before);
    clear(&farm);
    return r < 0 ? fail(lap, r) : 0;
}

/* From another config to the begin of the action. */

static int open_store(struct bench_lap *lap, struct det_store **ret)
{
    static unsigned number;
    char path[BENCH_PATH_MAX], name[32], url[BENCH_PATH_MAX + 32];
    int r;

    if (!lap->argument)
        return 0;
    (void)snprintf(name, sizeof name, "workers-%u", number++);
    r = bench_folder_make(name, path);
    if (r < 0)
        return r;
    (void)snprintf(url, sizeof url, "sqlite:%s/workers.db", path);
    return det_store_open(url, ret, NULL);
}

static int change(struct det_workers *workers, uint64_t level)
{
    char yaml[128];

    (void)snprintf(
        yaml, sizeof yaml, "children: [{name: m, kind: meter, config: {level: %llu}}]",
        (unsigned long long)level);
    return det_workers_apply(workers, yaml, NULL);
}

/* True if it runs at this level. */
static int settle(struct det_workers *workers, uint64_t level)
{
    int64_t deadline = bench_now_ns() + 10 * DET_SECOND;
    struct meter_observed observed = { 0 };
    struct det_worker_status status = { 0 };
    int r = 0;

    while (bench_now_ns() < deadline && (r == 0 || r == DET_ERR_NOT_FOUND)) {
        r = meter_get(workers, "root/m", &status, &observed);
        if (r == 0 && !strcmp(status.state, "running") && observed.level == level &&
            !status.is_action_pending)
            return 0;
    }
    return r < 0 ? r : DET_ERR_TIMEOUT;
}

static int measure_changes(struct bench_lap *lap, struct det_workers *workers)
{
    static uint64_t level;
    int r = 0;

    lap->nanoseconds = 0;
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        int64_t began = bench_now_ns();

        r = change(workers, ++level);
        while (r == 0 && atomic_load(&meter_set_level) != level)
            if (bench_now_ns() > began + 10 * DET_SECOND)
                r = DET_ERR_TIMEOUT;
        lap->nanoseconds += (double)(atomic_load(&meter_set_at) - began);
        if (r == 0)
            r = settle(workers, level);
    }
    return r;
}

static int run_change(struct bench_lap *lap)
{
    struct det_workers_options options = { .kinds = meter_kinds };
    struct det_workers *workers = NULL;
    struct det_store *store = NULL;
    int r;

    /* A worker begins at most one action per observation, so observations are frequent. */
    options.limits.observe_every = 10 * DET_MILLISECOND;
    options.limits.tick = 10 * DET_MILLISECOND;
    r = open_store(lap, &store);
    options.store = store;
    if (r == 0)
        r = det_workers_open(&options, &workers, NULL);
    if (r == 0)
        r = change(workers, 0);
    if (r == 0)
        r = settle(workers, 0);
    if (r == 0)
        r = measure_changes(lap, workers);
    det_workers_close(workers);
    det_store_close(store);
    return r < 0 ? fail(lap, r) : 0;
}

static const uint32_t thousand = 1000, many = 100000;
static const unsigned first = 0, second = 1, third = 2, fourth = 3, fifth = 4;

#define HAND   "1,000 records, hand-written"
#define HAND_2 "100,000 records, hand-written"
#define COMMON TICKS, .clock = BENCH_OWN
#define GOAL(nanoseconds)                     \
    {                                         \
        { BENCH_NS_MAX, nanoseconds, NULL },  \
        {                                     \
            BENCH_ALLOCATIONS_MAX, 0.01, NULL \
        }                                     \
    }

static const struct bench_case cases[] = {
    { HAND, BENCH_LIMIT, run_hand, &thousand, COMMON },
    { HAND_2, BENCH_LIMIT, run_hand, &many, COMMON },
    { "1 worker", BENCH_OURS, run_ticks, &first, TICKS / 10, .clock = BENCH_OWN },
    { "100 workers", BENCH_OURS, run_ticks, &second, COMMON },
    { "1,000 workers", BENCH_OURS, run_ticks, &third, COMMON, .goals = GOAL(100) },
    { "10,000 workers", BENCH_OURS, run_ticks, &fourth, COMMON },
    { "100,000 workers", BENCH_OURS, run_ticks, &fifth, COMMON, .against = HAND_2,
      .goals = GOAL(200) },
    { "memory of a worker", BENCH_OURS, run_memory, NULL, KEPT, .clock = BENCH_OWN, .against = "",
      .goals = { { BENCH_BYTES_MAX, 8192, NULL } } },
    { "config to action", BENCH_OURS, run_change, NULL, ROUNDS, .against = "", .is_latency = true,
      .has_no_allocations = true, .goals = { { BENCH_NS_MAX, 10000000, NULL } } },
    { "the same, SQLite", BENCH_OURS, run_change, "sqlite", ROUNDS, .against = "",
      .is_latency = true, .has_no_allocations = true,
      .goals = { { BENCH_NS_MAX, 10000000, NULL } } },
};

extern const struct bench bench_workers;
const struct bench bench_workers = {
    .title = "workers: one tick of one worker",
    .operation = "worker",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .close = close_farms,
};
