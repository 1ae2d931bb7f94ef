/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cut.h - every power cut of a recorded run: goes through the log, and at each place returns the
 * possible states of the disk afterwards (disk.h defines which are legal).
 *
 * At each place
 *   no pending operation; all of them; all but one, for each one; only one, for each one; the last
 *   write torn at each sector, its first part or its last; and `chances` times any sectors of any
 *   writes.
 * A state is returned once, even if several fates lead to it: it is identified by the syncs that
 * have happened, by the kept parts of the pending operations, and by the last mark. */
#ifndef DET_CRASH_CUT_H
#define DET_CRASH_CUT_H

#include "crash/disk.h"

struct crash_cut_options {
    unsigned chances; /* random states per place */
    uint64_t seed;
    size_t first;                /* the first place; all before it happened for certain */
    unsigned shard, shard_count; /* only the states of this shard; count 0: all of them */
    unsigned singles_max;        /* number of "all but one" and "only one" per place; 0: 64 */
    bool is_brief;               /* only nothing, all, and chances */
    unsigned stride;             /* only every n-th place, the last one always; 0: every one */
};

struct crash_cut {
    size_t place;   /* number of operations of the log before it */
    uint64_t mark;  /* the last mark before it; 0: none */
    uint64_t state; /* the id of the state, to find it again */
};

/* `disk` is the state after the cut: without a log, and not recording. A non-zero return value ends
 * the enumeration. */
typedef int crash_cut_fn(void *context, const struct crash_cut *cut, struct crash_disk *disk);

/* `log` began without files. `scratch` is written; `ret` is the number of states. Returns 0 or the
 * first non-zero value of `visit`. */
int crash_cut_each(
    const struct crash_disk *log, const struct crash_cut_options *options,
    struct crash_disk *scratch, crash_cut_fn *visit, void *context, uint64_t *ret);

#endif
