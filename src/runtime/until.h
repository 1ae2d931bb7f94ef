/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* until.h - until when a lease is held, which several threads may change.
 *
 * Invariants
 *   1. 0 is lost: whoever finds that out writes it, at any time, and no renewal undoes it.
 *   2. A renewal moves the end forward only, in whatever order answers come. */
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
