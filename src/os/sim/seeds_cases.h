/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* seeds_cases.h - the number of seeds that a test tries: SIM_SEEDS of the environment, but at least
 * its own minimum, with which it certainly finds what it tests. */
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
