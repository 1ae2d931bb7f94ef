/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world.c - the part of a world that every layer may use: clocks, random numbers and sleep. */
#include "base/checked.h"
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

/* No thread signals the condition; a spurious wakeup does not end the sleep. */
int det_world_sleep(struct det_world *world, det_time span)
{
    det_time end = det_add_time(det_world_now(world, DET_CLOCK_MONOTONIC), span);
    struct det_mutex *mutex;
    struct det_condition *condition;
    int r;

    world = det_world_or_real(world);
    r = det_mutex_open(world, &mutex);
    if (r < 0)
        return r;
    r = det_condition_open(world, &condition);
    if (r == 0) {
        det_mutex_lock(world, mutex);
        while ((r = det_condition_wait(world, condition, mutex, end)) == 0)
            continue;
        det_mutex_unlock(world, mutex);
        det_condition_close(world, condition);
    }
    det_mutex_close(world, mutex);
    return r == DET_ERR_TIMEOUT ? 0 : r;
}
