/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* backoff.c - computes the delay before the next attempt; see policy.h.
 *
 * Invariants of a resolved backoff:
 *   1. 0 <= base <= max, and base(0) is first.
 *   2. A delay is in the range of its jitter, ends included, or it is the floor.
 *   3. The same numbers give the same delay on every machine: the only operations on doubles are
 *      multiplication and rounding. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include "task/spread.h"

static det_time least_of(det_time a, det_time b)
{
    return a < b ? a : b;
}

static det_time most_of(det_time a, det_time b)
{
    return a > b ? a : b;
}

static det_time first_of(const struct det_backoff *backoff)
{
    return backoff->first == DET_NO_DELAY ? 0 : backoff->first;
}

/* By squaring: 32 steps at most, whatever the exponent, and exact as long as the result is. An
 * overflow is infinite, which exceeds any maximum. */
static double power_of(double factor, uint32_t exponent)
{
    double power = 1;

    while (exponent) {
        if (exponent & 1)
            power *= factor;
        factor *= factor;
        exponent >>= 1;
    }
    return power;
}

det_time det_backoff_base(const struct det_backoff *backoff, uint32_t failures)
{
    det_time first = first_of(backoff);
    double base;

    det_assert(first >= 0 && first <= backoff->max && backoff->factor >= 1);
    /* A double cannot represent every time, but the first delay is the caller's value; and 0 times
     * infinity is not a number. */
    if (failures == 0 || first == 0)
        return first;
    base = (double)first * power_of(backoff->factor, failures);
    if (!(base < (double)backoff->max))
        return backoff->max;
    return least_of((det_time)(base + 0.5), backoff->max);
}

/* Picks from `first` to three times `span`, but not over the maximum. */
static det_time pick_up_to_thrice(const struct det_backoff *backoff, det_time span, uint64_t chance)
{
    det_time first = first_of(backoff);
    det_time thrice;

    if (!det_mul_i64(span, 3, &thrice))
        thrice = DET_NEVER;
    return det_spread(first, most_of(first, least_of(thrice, backoff->max)), chance);
}

static det_time pick(
    const struct det_backoff *backoff, uint32_t failures, det_time before, uint64_t chance)
{
    det_time base = det_backoff_base(backoff, failures);

    switch (backoff->jitter) {
    case DET_JITTER_NONE:
        return base;
    case DET_JITTER_FULL:
        return det_spread(0, base, chance);
    case DET_JITTER_INHERIT:
    case DET_JITTER_EQUAL:
        return det_spread(base / 2, base, chance);
    case DET_JITTER_BAND:
        return pick_up_to_thrice(backoff, base, chance);
    case DET_JITTER_DECORRELATED:
        return pick_up_to_thrice(backoff, before ? before : first_of(backoff), chance);
    }
    return base;
}

det_time det_backoff_delay(
    const struct det_backoff *backoff, uint32_t failures, det_time before, uint64_t chance)
{
    det_assert(before >= 0);
    if (backoff->first == DET_NO_DELAY)
        return 0;
    return most_of(
        pick(backoff, failures, before, chance), least_of(DET_DELAY_FLOOR, backoff->max));
}
