/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* faults.c - crash_faults WAY: one fault at every place of a plan in turn.
 *
 *     0, 1   a sync fails, that one or it and all after it
 *     2, 3   the same, and the pending writes are dropped, as Linux does: the next sync
 *            succeeds, and memory shows data that the disk will never have
 *     4      the process dies before a change (a write, a sync, ...)
 *
 * After a failed sync the open store must not acknowledge anything that was begun later. Then the
 * power is cut at every place from there on; and, separately, the store is opened again as by
 * another process, continues, and the power is cut after that. Nothing acknowledged may be lost.
 *
 * Environment: CRASH_SEED, CRASH_STEPS, and CRASH_BUG as in states.c: `remember` (cached pages of a
 * file are not dropped). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash/rig.h"

#define GO_ON 6 /* number of steps after the store was opened again */

struct total {
    uint64_t points, states, late, lost_place;
    struct crash_faults faults;
};

static void cut_from(struct crash_rig *rig, size_t first, uint64_t seed)
{
    struct crash_cut_options options = {
        .first = first, .stride = 5, .chances = 2, .is_brief = true, .seed = seed
    };

    crash_rig_cut(rig, &options);
}

/* The same store, opened again on a healthy disk. */
static void go_on(struct crash_rig *rig, struct total *total, uint64_t seed)
{
    struct crash_disk *disk = &rig->bed.disks[0];
    size_t first = disk->op_count;
    size_t to;
    int64_t at;

    disk->fault = (struct crash_fault){ 0 };
    at = crash_rig_stand(rig);
    if (at < 0) {
        total->lost_place++;
        printf(
            "opened again after step %zu, neither as answered nor as begun: %s\n", rig->begun,
            rig->runs[0].text);
        return;
    }
    rig->begun = rig->answered = (size_t)at;
    crash_disk_mark(disk, 2 * rig->answered);
    to = rig->answered + GO_ON;
    if (to > rig->plan->step_count)
        to = rig->plan->step_count;
    if (crash_rig_run(rig, rig->answered, to) < 0) {
        total->lost_place++;
        printf("step %zu after the sync: %s\n", rig->begun, rig->runs[0].text);
    }
    crash_run_close(&rig->runs[0]);
    cut_from(rig, first, seed);
}

static void add(struct total *total, const struct crash_rig *rig)
{
    total->points++;
    total->states += rig->states;
    total->late += rig->answered_late;
    total->faults.lost += rig->faults.lost;
    total->faults.doubled += rig->faults.doubled;
    total->faults.timers += rig->faults.timers;
    total->faults.effects += rig->faults.effects;
    total->faults.halves += rig->faults.halves;
    total->faults.unopened += rig->faults.unopened;
    total->faults.unchecked += rig->faults.unchecked;
}

/* The fault of this way at the n-th place. */
static struct crash_fault fault_of(unsigned way, uint64_t at)
{
    if (way == 4)
        return (struct crash_fault){ .dies_at = at };
    return (struct crash_fault){ .sync_at = at, .is_sticky = way & 1, .drops = way & 2 };
}

/* False: the plan has no such place. */
static bool fail_one(
    struct crash_rig *rig, const struct crash_plan_options *plan, struct total *total, unsigned way,
    uint64_t at)
{
    struct crash_disk *disk = &rig->bed.disks[0];
    size_t first;
    bool failed;

    crash_rig_open(rig, plan);
    disk->fault = fault_of(way, at);
    (void)crash_rig_run(rig, 0, plan->steps);
    first = way == 4 ? disk->op_count : disk->failed_at;
    crash_run_close(&rig->runs[0]);
    failed = disk->failed_syncs || disk->deaths;
    if (failed) {
        cut_from(rig, first, at);
        go_on(rig, total, at);
        if (rig->answered_late)
            printf("place %d: %zu answers after it\n", (int)at, rig->answered_late);
        add(total, rig);
    }
    crash_rig_close(rig);
    return failed;
}

int main(int argc, char **argv)
{
    struct crash_plan_options plan = { .seed = crash_seed(), .reopen_every = 7 };
    struct crash_rig *rig = calloc(1, sizeof *rig);
    struct total total = { 0 };
    unsigned way;
    bool is_well;

    if (!rig || argc != 2)
        return 2;
    way = (unsigned)strtoul(argv[1], NULL, 10);
    plan.steps = (size_t)crash_setting("CRASH_STEPS", way == 4 ? 25 : 50);
    for (uint64_t at = 1; fail_one(rig, &plan, &total, way, at); at++)
        ;
    printf(
        "places %llu, answers after a failed sync %llu\n", (unsigned long long)total.points,
        (unsigned long long)total.late);
    crash_report("states after faults", total.states, &total.faults);
    crash_rig_free(rig);
    is_well = !total.late && !total.lost_place && CRASH_FAULTS_SUM(total.faults) == 0;
    return total.points && is_well == !getenv("CRASH_BUG") ? 0 : 1;
}
