/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world.c - the part of a world that everybody may use: clocks and chance. */
#include "os/os.h"

det_time det_world_now(struct det_world *world, enum det_clock clock)
{
    world = det_world_or_real(world);
    return world->ops->now(world, clock);
}

void det_world_random(struct det_world *world, void *target, size_t size)
{
    world = det_world_or_real(world);
    world->ops->random(world, target, size);
}

uint64_t det_world_random_u64(struct det_world *world)
{
    uint64_t number;

    det_world_random(world, &number, sizeof number);
    return number;
}
