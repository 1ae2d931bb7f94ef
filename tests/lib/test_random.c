/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_random.c - a small seeded generator, so that a random test that failed fails again.
 *
 * The seed walks through all 64-bit numbers in steps of the golden ratio; the number is the seed,
 * mixed. */
#include "lib/test.h"

uint64_t det_test_random(uint64_t *seed)
{
    uint64_t value = *seed += UINT64_C(0x9E3779B97F4A7C15);

    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}
