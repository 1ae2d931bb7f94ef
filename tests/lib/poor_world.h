/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* poor_world.h - a world in which processes can be made to fail to start, as on a machine that is
 * short of files or memory. */
#ifndef DET_TEST_POOR_WORLD_H
#define DET_TEST_POOR_WORLD_H

#include <detent/driver/world.h>

struct det_test_poor_world {
    struct det_world_ops ops; /* the first member: the world's ops lead here */
    struct det_world *world;
    const struct det_world_ops *real;
    int start_fails_with; /* a code, with "too many open files"; 0: processes start */
};

/* Replaces what the world does until it is closed. The caller keeps `poor` in its place. */
void det_test_poor_world_open(struct det_test_poor_world *poor, struct det_world *world);
void det_test_poor_world_close(struct det_test_poor_world *poor);

#endif
