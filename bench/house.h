/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* house.h - a supervisor on its own loop, with tasks that fail as fast as they can: shared by the
 * benches of tasks, windows, processes and services. */
#ifndef BENCH_HOUSE_H
#define BENCH_HOUSE_H

#include <detent/task.h>

#include "bench.h"

struct bench_house {
    struct det_loop *loop;
    struct det_tasks *tasks;
    uint64_t calls; /* of steps, which count here */
    uint64_t reported;
};

/* Uses `options` except for its loop. Close the house also after a failure. */
DET_MUST_CHECK int bench_house_open(
    struct bench_house *house, struct det_tasks_options options, struct det_error *error);
void bench_house_close(struct bench_house *house);
/* Adds this many tasks like `pattern`, with unique names. */
DET_MUST_CHECK int bench_house_add(
    struct bench_house *house, uint64_t count, const struct det_task_spec *pattern,
    struct det_error *error);
/* Turns the loop until steps were called this many times. */
DET_MUST_CHECK int bench_house_turn(
    struct bench_house *house, uint64_t calls, struct det_error *error);
/* The measured part of a lap: as many calls as it has operations. The last turn may make more, and
 * they are counted too. */
DET_MUST_CHECK int bench_house_lap(
    struct bench_lap *lap, struct bench_house *house, struct det_error *error);
/* Ends a lap that could not continue. */
int bench_house_fail(struct bench_lap *lap, const struct det_error *error);

#endif
