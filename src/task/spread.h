/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spread.h - picks a time in a range from 64 random bits. */
#ifndef DET_TASK_SPREAD_H
#define DET_TASK_SPREAD_H

#include "base/assert.h"
#include "base/checked.h"

#include <detent/base.h>

/* From `least` to `most`, both included: zero bits give the least, all bits the most. The bias is
 * at most one part in 2^64 / (most - least + 1). */
static inline det_time det_spread(det_time least, det_time most, uint64_t chance)
{
    det_u128 steps;

    det_assert(least >= 0 && least <= most);
    steps = (det_u128)(most - least) + 1;
    return least + (det_time)(steps * chance >> 64);
}

#endif
