/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rig.h - a store on a recorded disk in the simulated world, a plan, and a check of the store's
 * promises after each power cut.
 *
 *     plan ---> run on a disk (marks: 2i - 1 step i begun, 2i answered) ---> log
 *                                                                            | every cut
 *     models[answered], models[begun]  <--- compared with --- look <--- open what is left
 */
#ifndef DET_CRASH_RIG_H
#define DET_CRASH_RIG_H

#include "crash/bed.h"
#include "crash/cut.h"
#include "crash/memo.h"
#include "crash/run.h"

struct crash_rig {
    struct crash_bed bed;
    struct crash_run runs[CRASH_LEVELS];
    struct crash_plan *plan;
    struct crash_model *found;
    struct crash_memo *memo;
    size_t begun, answered; /* steps */
    uint64_t forgiven;      /* failed syncs before the store was opened last */
    uint64_t failed_before; /* failed syncs before the step that was begun last */
    size_t answered_late;   /* acknowledged steps that were begun after a failed sync of the
                             * store */
    bool answers_early;     /* a broken store, to test that the rig detects it */
    uint64_t nested_every;  /* one in this many states is cut again during its recovery; 0: none */
    uint64_t states, nested_states;
    uint64_t known;  /* states whose verdict was known by their reads */
    uint64_t unborn; /* states of a store whose creation failed */
    struct crash_faults faults;
};

/* `rig` is all zero, or was closed: then verdicts about disks are kept. */
void crash_rig_open(struct crash_rig *rig, const struct crash_plan_options *options);
void crash_rig_close(struct crash_rig *rig);
/* A closed rig, from malloc(). */
void crash_rig_free(struct crash_rig *rig);

/* Runs the plan from the step after `from` to `to` on the recorded disk, or until a step fails; the
 * store stays open. Returns the result of the last step. */
int crash_rig_run(struct crash_rig *rig, size_t from, size_t to);
/* Opens the store of the run again, as another process would, and returns its step: the last one
 * acknowledged or the one begun. -1: neither. Closes it. */
int64_t crash_rig_stand(struct crash_rig *rig);
/* Checks every cut of the log: opens the remains and compares. Counts faults, and reports the first
 * ones. */
void crash_rig_cut(struct crash_rig *rig, const struct crash_cut_options *options);

/* Prints one line with the figures. */
void crash_report(const char *what, uint64_t count, const struct crash_faults *faults);

#endif
