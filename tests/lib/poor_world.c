/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* poor_world.c - a world whose start of processes fails on demand. */
#include "lib/poor_world.h"

static int start_process(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret,
    struct det_error *reterr)
{
    const struct det_test_poor_world *poor =
        (const struct det_test_poor_world *)(const void *)world->ops;

    if (poor->start_fails_with)
        return det_error_set(reterr, poor->start_fails_with, "too many open files");
    return poor->real->process_start(world, options, ret, reterr);
}

void det_test_poor_world_open(struct det_test_poor_world *poor, struct det_world *world)
{
    *poor = (struct det_test_poor_world){ *world->ops, world, world->ops, 0 };
    poor->ops.process_start = start_process;
    world->ops = &poor->ops;
}

void det_test_poor_world_close(struct det_test_poor_world *poor)
{
    poor->world->ops = poor->real;
}
