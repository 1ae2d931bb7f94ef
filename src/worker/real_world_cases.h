/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_world_cases.h - the world of cases on real threads. */
#ifndef DET_WORKER_REAL_WORLD_CASES_H
#define DET_WORKER_REAL_WORLD_CASES_H

#include "os/common_cases.h"

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ .world = det_world_real() };
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    (void)state;
    return 0;
}

#endif
