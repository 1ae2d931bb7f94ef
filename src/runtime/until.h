/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* until.h - the end of a lease, which several threads may change.
 *
 * Invariants
 *   1. 0 means lost: any thread that detects a loss writes it, at any time, and no renewal undoes
 *      it.
 *   2. A renewal only extends the end, in whatever order answers arrive. */
#ifndef DET_RUNTIME_UNTIL_H
#define DET_RUNTIME_UNTIL_H

#include <stdatomic.h>

#include <detent/base.h>

static inline void det_until_extend(_Atomic det_time *until, det_time end)
{
    det_time before = atomic_load(until);

    while (before && before < end && !atomic_compare_exchange_weak(until, &before, end))
        continue;
}

#endif
