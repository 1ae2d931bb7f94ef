/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* house.c - a supervisor on its own loop. */
#include <stdio.h>
#include <string.h>

#include "house.h"

int bench_house_open(
    struct bench_house *house, struct det_tasks_options options, struct det_error *error)
{
    int r;

    memset(house, 0, sizeof *house);
    r = det_loop_open(NULL, NULL, &house->loop);
    if (r < 0)
        return det_error_set(error, r, "%s", det_error_text(r));
    options.loop = house->loop;
    return det_tasks_open(&options, &house->tasks, error);
}

void bench_house_close(struct bench_house *house)
{
    det_tasks_close(house->tasks);
    det_loop_close(house->loop);
}

int bench_house_add(
    struct bench_house *house, uint64_t count, const struct det_task_spec *pattern,
    struct det_error *error)
{
    struct det_task_spec spec = *pattern;
    char name[32];
    int r = 0;

    spec.name = name;
    for (uint64_t i = 0; i < count && r == 0; i++) {
        (void)snprintf(name, sizeof name, "task-%llu", (unsigned long long)i);
        r = det_tasks_add(house->tasks, &spec, NULL, NULL, error);
    }
    return r;
}

int bench_house_turn(struct bench_house *house, uint64_t calls, struct det_error *error)
{
    int r = 0;

    while (r >= 0 && house->calls < calls)
        r = det_loop_turn(house->loop, DET_NEVER);
    return r < 0 ? det_error_set(error, r, "%s", det_error_text(r)) : 0;
}

int bench_house_lap(struct bench_lap *lap, struct bench_house *house, struct det_error *error)
{
    uint64_t before = house->calls;
    int r;

    bench_lap_begin(lap);
    r = bench_house_turn(house, before + lap->operations, error);
    bench_lap_end(lap);
    lap->operations = house->calls - before;
    return r;
}

int bench_house_fail(struct bench_lap *lap, const struct det_error *error)
{
    return bench_lap_fail(lap, error->code, "%.150s", error->text);
}
