/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random.c - the random numbers of a simulation. */
#include "os/sim/random.h"

#include "base/assert.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, unsigned by)
{
    return value << by | value >> (64 - by);
}

void det_chance_init(struct det_chance *chance, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed;

    /* Streams are spread over the whole period of splitmix64, not merely offset from each other:
     * neighbouring seeds must not share numbers. */
    state = splitmix64(&state) ^ stream;
    for (int i = 0; i < 4; i++)
        chance->state[i] = splitmix64(&state);
}

uint64_t det_chance_next(struct det_chance *chance)
{
    uint64_t *s = chance->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t det_chance_below(struct det_chance *chance, uint64_t bound)
{
    uint64_t number, rest;

    det_assert(bound > 0);
    /* 2^64 modulo bound: numbers below it would favour small results. */
    rest = (0 - bound) % bound;
    do
        number = det_chance_next(chance);
    while (number < rest);
    return number % bound;
}

bool det_chance_happens(struct det_chance *chance, uint32_t millionths)
{
    return millionths && det_chance_below(chance, DET_CHANCE_ONE) < millionths;
}
