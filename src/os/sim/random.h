/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random.h - a seeded source of numbers: the xoshiro256** generator, its state by splitmix64. */
#ifndef DET_OS_SIM_RANDOM_H
#define DET_OS_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Chances are given in millionths. */
#define DET_CHANCE_ONE 1000000u

struct det_chance {
    uint64_t state[4];
};

/* Different streams of one seed have nothing to do with each other. */
void det_chance_init(struct det_chance *chance, uint64_t seed, uint64_t stream);
uint64_t det_chance_next(struct det_chance *chance);
/* Below `bound` (> 0), without bias. */
uint64_t det_chance_below(struct det_chance *chance, uint64_t bound);
/* True with a chance of `millionths`; draws nothing when that is 0. */
bool det_chance_happens(struct det_chance *chance, uint32_t millionths);

#endif
