/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* seeds_cases.h - how many seeds a suite tries: SIM_SEEDS of the environment, but no fewer than its
 * own number, with which it is sure to find what it looks for. */
#ifndef DET_OS_SIM_SEEDS_CASES_H
#define DET_OS_SIM_SEEDS_CASES_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t seeds_count(uint64_t least)
{
    const char *text = getenv("SIM_SEEDS"); /* NOLINT(concurrency-mt-unsafe): one thread */
    uint64_t count = text ? strtoull(text, NULL, 10) : 0;

    return count > least ? count : least;
}

#endif
