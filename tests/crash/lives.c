/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lives.c - crash_lives SHARD COUNT: a runtime on a recorded disk, and every power cut of it.
 *
 * Environment: CRASH_SEED, CRASH_SENDS (of each sender in each of three phases), CRASH_CHANCES,
 * CRASH_REVIVE (one in this many states runs for two days; 0: none), CRASH_BUG as in states.c. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "crash/live.h"

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct crash_cut_options options = { .chances = (unsigned)crash_setting("CRASH_CHANCES", 3),
                                         .singles_max = 12 };
    struct live *live = calloc(1, sizeof *live);
    double start;
    int r;

    if (!live || argc != 3)
        return 2;
    options.shard = (unsigned)strtoul(argv[1], NULL, 10);
    options.shard_count = (unsigned)strtoul(argv[2], NULL, 10);
    options.seed = crash_seed();
    live->sends_each = (unsigned)crash_setting("CRASH_SENDS", 6);
    live->revive_every = crash_setting("CRASH_REVIVE", 20);
    live->answers_early = crash_has_bug("early");
    live->ignores_syncs = crash_has_bug("sync");
    live_run(live, options.seed);
    start = now();
    live_cut(live, &options);
    printf(
        "operations %zu, sends %u, answered %u, states %llu, revived %llu, %.0f states/s\n",
        live->bed.disks[0].op_count, live->promise.begun, live->promise.answered,
        (unsigned long long)live->states, (unsigned long long)live->revived,
        (double)live->states / (now() - start));
    printf(
        "states of a runtime: %llu, wrong %llu\n", (unsigned long long)live->states,
        (unsigned long long)live->wrong);
    r = (live->wrong == 0) == !getenv("CRASH_BUG") && live->states ? 0 : 1;
    live_end(live);
    free(live);
    return r;
}
