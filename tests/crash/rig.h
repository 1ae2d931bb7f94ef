/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rig.h - a store on a recorded disk in the simulated world, a plan, and after each power cut the
 * question whether the store says what it had promised.
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
    size_t answered_late;   /* answers to steps that were begun after a sync of the store failed */
    bool answers_early;     /* a broken store, to see that the rig finds out */
    uint64_t nested_every;  /* one in so many states is cut again while it is recovered; 0: none */
    uint64_t states, nested_states;
    uint64_t known;  /* states that were known by what the store reads of them */
    uint64_t unborn; /* states of a store that could never be made */
    struct crash_faults faults;
};

/* `rig` is all zero, or was closed: then what is known about disks is kept. */
void crash_rig_open(struct crash_rig *rig, const struct crash_plan_options *options);
void crash_rig_close(struct crash_rig *rig);
/* One that is closed, from malloc(). */
void crash_rig_free(struct crash_rig *rig);

/* Runs the plan from the step after `from` to `to` on the recorded disk, or until a step fails; the
 * store stays open. Returns what the last step returned. */
int crash_rig_run(struct crash_rig *rig, size_t from, size_t to);
/* Opens the store of the run again, as another process would, and says which step it stands at:
 * the last one answered or the one begun. -1: at none. It is closed then. */
int64_t crash_rig_stand(struct crash_rig *rig);
/* Every cut of the log: opens what is left and compares. Faults are counted, the first ones
 * told. */
void crash_rig_cut(struct crash_rig *rig, const struct crash_cut_options *options);

/* One line for people, and for those who collect figures. */
void crash_report(const char *what, uint64_t count, const struct crash_faults *faults);

#endif
