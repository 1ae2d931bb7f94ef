/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random.h - a seeded random number generator: xoshiro256**, its state from splitmix64. */
#ifndef DET_OS_SIM_RANDOM_H
#define DET_OS_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

/* Probabilities are given in millionths. */
#define DET_CHANCE_ONE 1000000u

struct det_chance {
    uint64_t state[4];
};

/* Different streams of one seed are independent. */
void det_chance_init(struct det_chance *chance, uint64_t seed, uint64_t stream);
uint64_t det_chance_next(struct det_chance *chance);
/* Returns a number below `bound` (> 0), without bias. */
uint64_t det_chance_below(struct det_chance *chance, uint64_t bound);
/* Returns true with a probability of `millionths`; draws no number if that is 0. */
bool det_chance_happens(struct det_chance *chance, uint32_t millionths);

#endif
