/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* states.c - crash_states SHARD COUNT: a plan on a recorded disk, and every power cut of it.
 *
 * Environment: CRASH_SEED, CRASH_STEPS (of the plan), CRASH_CHANCES (random states per place),
 * CRASH_NESTED (one in this many states is cut again during its recovery; 0: none). CRASH_BUG
 * breaks something on purpose, and then the test fails unless it detects that: `sync` (the disk
 * ignores syncs), `early` (acknowledges before the commit), `split` (timers and effects in a
 * separate commit). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crash/rig.h"

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int report(const struct crash_rig *rig, double seconds)
{
    uint64_t states = rig->states + rig->nested_states;

    printf(
        "steps %zu, operations %zu, states %llu, of them cut twice %llu, read as another one %llu, "
        "%.1f s, %.0f states/s\n",
        rig->plan->step_count, rig->bed.disks[0].op_count, (unsigned long long)states,
        (unsigned long long)rig->nested_states, (unsigned long long)rig->known, seconds,
        (double)states / seconds);
    crash_report("crash states", states, &rig->faults);
    return (CRASH_FAULTS_SUM(rig->faults) == 0) == !getenv("CRASH_BUG") ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct crash_plan_options plan = { .seed = crash_seed(),
                                       .steps = (size_t)crash_setting("CRASH_STEPS", 60),
                                       .reopen_every = 29,
                                       .compacts = true };
    struct crash_cut_options options = { .chances = (unsigned)crash_setting("CRASH_CHANCES", 6),
                                         .seed = plan.seed,
                                         .singles_max = 24 };
    struct crash_rig *rig = calloc(1, sizeof *rig);
    double start;
    int r;

    if (!rig || argc != 3)
        return 2;
    options.shard = (unsigned)strtoul(argv[1], NULL, 10);
    options.shard_count = (unsigned)strtoul(argv[2], NULL, 10);
    crash_rig_open(rig, &plan);
    rig->nested_every = crash_setting("CRASH_NESTED", 2500);
    rig->answers_early = crash_has_bug("early");
    rig->runs[0].is_split = crash_has_bug("split");
    rig->bed.disks[0].fault.ignores_syncs = crash_has_bug("sync");
    r = crash_rig_run(rig, 0, plan.steps);
    if (r < 0) {
        printf("step %zu failed: %d, %s\n", rig->begun, r, rig->runs[0].text);
        return 1;
    }
    crash_run_close(&rig->runs[0]);
    start = now();
    crash_rig_cut(rig, &options);
    r = report(rig, now() - start);
    crash_rig_close(rig);
    crash_rig_free(rig);
    return r;
}
