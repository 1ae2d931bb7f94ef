/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* window.c - the cost of a restart after many others that all still count.
 *
 * The first case is the limit of the others: a task that restarts without an intensity. Erlang's
 * supervisor walks a list of all restarts that count; a group of ours must stay flat. */
#include <stdio.h>

#include "house.h"

#define TASKS 100
#define ROOM  10000 /* restarts in the window when the measured part begins */

static int fails(struct det_task_context *context, void *argument)
{
    struct bench_house *house = argument;

    (void)context;
    house->calls++;
    return DET_ERR_IO;
}

/* Without earlier restarts the task has no group. */
static int measure(
    struct bench_lap *lap, struct bench_house *house, uint32_t before, struct det_error *error)
{
    const struct det_task_group_spec group = {
        .name = "window",
        .intensity = { before + ROOM, DET_HOUR },
    };
    const struct det_task_spec pattern = {
        .step = fails,
        .argument = house,
        .policy = { .restart = DET_RESTART_ON_FAILURE, .backoff = { .first = DET_NO_DELAY } },
        .group = before ? group.name : NULL,
    };
    int r = 0;

    if (before > 0)
        r = det_tasks_add_group(house->tasks, &group, error);
    if (r == 0)
        r = bench_house_add(house, TASKS, &pattern, error);
    if (r == 0)
        r = bench_house_turn(house, TASKS + before, error);
    return r < 0 ? r : bench_house_lap(lap, house, error);
}

static int run_ours(struct bench_lap *lap)
{
    const uint32_t *before = lap->argument;
    struct det_error error = { .code = 0 };
    struct bench_house house;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0)
        r = measure(lap, &house, *before, &error);
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

static int run_erlang(struct bench_lap *lap)
{
    const uint32_t *restarts = lap->argument;
    char before[24], count[24];
    const char *words[] = {
        "escript", BENCH_PEERS "/supervisor.escript", "10", before, count, NULL
    };

    (void)snprintf(before, sizeof before, "%u", (unsigned)*restarts);
    (void)snprintf(count, sizeof count, "%llu", (unsigned long long)lap->operations);
    return bench_child_peer(lap, words);
}

static const uint32_t none = 0, few = 100, some = 5000, many = 10000, all = 990000;

#define FIRST  "100 restarts in the window"
#define COMMON 1000, .clock = BENCH_OWN
#define GOALS                                                            \
    .against = FIRST, .goals = { { BENCH_RATIO_MAX, 1.5, NULL },         \
                                 { BENCH_AHEAD_OF, 0, "Erlang, 5,000" }, \
                                 { BENCH_ALLOCATIONS_MAX, 0, NULL } }

static const struct bench_case cases[] = {
    { "restarts without a window", BENCH_LIMIT, run_ours, &none, COMMON },
    { FIRST, BENCH_OURS, run_ours, &few, COMMON,
      .goals = { { BENCH_AHEAD_OF, 0, "Erlang, 100" } } },
    { "10,000", BENCH_OURS, run_ours, &many, COMMON, GOALS },
    { "990,000", BENCH_OURS, run_ours, &all, COMMON, GOALS },
    { "Erlang, 100", BENCH_PEER, run_erlang, &few, 1000, .against = FIRST,
      .has_no_allocations = true },
    { "Erlang, 5,000", BENCH_PEER, run_erlang, &some, 1000, .against = FIRST,
      .has_no_allocations = true },
};

extern const struct bench bench_window;
const struct bench bench_window = {
    .title = "a restart after many others within the window",
    .operation = "restart",
    .rounds = 5,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
