/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timers.c - timers of a loop, 100,000 at a time, and 100,000 timeouts of instances due at once.
 *
 * The limit is the heap alone. A timeout that fires is a complete send, so it is compared with a
 * send. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <detent/driver/loop.h>
#include <detent/sim.h>

#include "base/heap.h"
#include "bench.h"
#include "load.h"

#define TIMERS 100000

static struct det_timer *timers;
static struct det_heap_node *nodes;
static det_time *deadlines; /* all in the future, random */
static uint64_t fired;

static void fire(void *argument)
{
    (void)argument;
    fired++;
}

static int fail(struct bench_lap *lap, int code)
{
    return bench_lap_fail(lap, code, "%s", det_error_text(code));
}

/* Into the heap and out of it again, each by its position. */
static int run_heap(struct bench_lap *lap)
{
    struct det_heap heap;
    int r = 0;

    det_heap_init(&heap, NULL);
    for (uint64_t i = 0; i < lap->operations; i++)
        det_heap_node_init(&nodes[i]);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = det_heap_insert(&heap, &nodes[i], deadlines[i]);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        det_heap_remove(&heap, &nodes[i]);
    bench_lap_end(lap);
    det_heap_deinit(&heap);
    return r < 0 ? fail(lap, r) : 0;
}

static int arm_all(struct det_loop *loop, uint64_t count, const det_time *when)
{
    int r = 0;

    memset(timers, 0, TIMERS * sizeof *timers);
    for (uint64_t i = 0; i < count && r == 0; i++) {
        timers[i].run = fire;
        r = det_loop_timer_set(loop, &timers[i], when ? when[i] : 1);
    }
    return r;
}

static int run_arm_cancel(struct bench_lap *lap)
{
    DET_SCOPED(loop) loop = NULL;
    int r = det_loop_open(NULL, NULL, &loop);

    if (r < 0)
        return fail(lap, r);
    bench_lap_begin(lap);
    r = arm_all(loop, lap->operations, deadlines);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        det_loop_timer_cancel(loop, &timers[i]);
    bench_lap_end(lap);
    return r < 0 ? fail(lap, r) : 0;
}

static int run_arm_fire(struct bench_lap *lap)
{
    DET_SCOPED(loop) loop = NULL;
    int r = det_loop_open(NULL, NULL, &loop);

    if (r < 0)
        return fail(lap, r);
    fired = 0;
    bench_lap_begin(lap);
    r = arm_all(loop, lap->operations, NULL);
    while (r >= 0 && fired < lap->operations)
        r = det_loop_turn(loop, 0);
    bench_lap_end(lap);
    return r < 0 ? fail(lap, r) : 0;
}

/* A simulated hour passes, and every instance has waited for it. */
static int measure_due(struct bench_lap *lap, struct det_sim *sim)
{
    struct det_runtime_options options = { .world = det_sim_world(sim) };
    struct det_runtime_counts counts;
    struct det_error error;
    struct load load = { 0 };
    int r = load_open(&load, (uint32_t)lap->operations, &options, &error);

    if (r < 0)
        return bench_lap_fail(lap, r, "%.150s", error.text);
    bench_lap_begin(lap);
    r = det_sim_advance(sim, DET_HOUR + DET_SECOND);
    bench_lap_end(lap);
    det_runtime_counts(load.runtime, &counts);
    load_close(&load);
    if (r < 0)
        return fail(lap, r);
    if (counts.timeouts_fired != lap->operations)
        return bench_lap_fail(
            lap, DET_ERR_INVALID, "%llu timeouts fired", (unsigned long long)counts.timeouts_fired);
    return 0;
}

static int run_due(struct bench_lap *lap)
{
    DET_SCOPED(sim) sim = NULL;
    int r = det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL);

    return r < 0 ? fail(lap, r) : measure_due(lap, sim);
}

/* As many sends in the same world, for comparison with timeouts. */
static int run_sends(struct bench_lap *lap)
{
    DET_SCOPED(sim) sim = NULL;
    struct det_runtime_options options = { 0 };
    struct load load = { 0 };
    int r = det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL);

    if (r < 0)
        return fail(lap, r);
    options.world = det_sim_world(sim);
    r = load_open(&load, (uint32_t)lap->operations, &options, NULL);
    if (r < 0)
        return fail(lap, r);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = load_send(load.runtime, load.ids[i], load_next((struct amount){ .amount = i }), NULL);
    bench_lap_end(lap);
    load_close(&load);
    return r < 0 ? fail(lap, r) : 0;
}

static int open_timers(char *note)
{
    uint64_t seed = 3;

    (void)note;
    timers = calloc(TIMERS, sizeof *timers);
    nodes = calloc(TIMERS, sizeof *nodes);
    deadlines = calloc(TIMERS, sizeof *deadlines);
    if (!timers || !nodes || !deadlines)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < TIMERS; i++)
        deadlines[i] = DET_NEVER / 2 + (det_time)(bench_random(&seed) % (uint64_t)DET_DAY);
    return 0;
}

static void close_timers(void)
{
    free(timers);
    free(nodes);
    free(deadlines);
}

#define COMMON TIMERS, .clock = BENCH_OWN

static const struct bench_case cases[] = {
    { "heap, in and out", BENCH_LIMIT, run_heap, NULL, COMMON },
    { "loop, arm and cancel", BENCH_OURS, run_arm_cancel, NULL, COMMON },
    { "loop, 100,000 due at once", BENCH_OURS, run_arm_fire, NULL, COMMON },
    { "sends to 100,000, simulated", BENCH_OURS, run_sends, NULL, COMMON, .against = "" },
    { "100,000 timeouts due, simulated", BENCH_OURS, run_due, NULL, COMMON,
      .against = "sends to 100,000, simulated", .goals = { { BENCH_RATIO_MAX, 2, NULL } } },
};

extern const struct bench bench_timers;
const struct bench bench_timers = {
    .title = "timers: armed, cancelled, and many due at once",
    .operation = "timer",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_timers,
    .close = close_timers,
};
