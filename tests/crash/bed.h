/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bed.h - the base of rigs: a simulated world whose store is on recorded disks.
 *
 * Syncs of the folder and drops of cached pages, which a store requests from the world, reach the
 * active recorded disk; everything else is the simulation's own. One bed at a time. */
#ifndef DET_CRASH_BED_H
#define DET_CRASH_BED_H

#include <detent/driver/world.h>
#include <detent/sim.h>

#include "crash/vfs.h"

/* The run itself; its remains after a cut; the remains of those after a second cut while they were
 * opened. */
#define CRASH_LEVELS 3

struct crash_bed {
    struct det_sim *sim;
    const struct det_world_ops *world_ops; /* the simulation's */
    struct det_world_ops ops;              /* the same, except for operations of the disk */
    struct det_file *opened[CRASH_NAMES];
    uint64_t forgotten; /* files whose content was read from the disk again */
    struct crash_disk disks[CRASH_LEVELS];
    struct crash_vfs *vfs[CRASH_LEVELS];
    struct crash_disk *active; /* the disk in use */
};

/* Starts to record the first disk. */
void crash_bed_open(struct crash_bed *bed, uint64_t seed);
/* Every store must be closed. */
void crash_bed_close(struct crash_bed *bed);
/* The store on the disk of a level. */
const char *crash_bed_url(unsigned level);

/* "NAME=value" of the environment as a number. */
uint64_t crash_setting(const char *name, uint64_t otherwise);
/* CRASH_SEED (1) and CRASH_SEED_ADDED (0), by which tests that run side by side differ. */
uint64_t crash_seed(void);
/* True if CRASH_BUG is this one. */
bool crash_has_bug(const char *name);

#endif
