/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim_world_cases.h - the world of cases in a simulation, and a run of cases over many seeds. */
#ifndef DET_WORKER_SIM_WORLD_CASES_H
#define DET_WORKER_SIM_WORLD_CASES_H

#include "os/common_cases.h"
#include "os/sim/seeds_cases.h"

/* The seed of the next world; 0 after the last one. */
static uint64_t world_seed = 7;

static int world_setup(void **state)
{
    static struct world_fixture fixture;

    fixture = (struct world_fixture){ 0 };
    if (det_sim_open(&(struct det_sim_options){ .seed = world_seed }, &fixture.sim, NULL) < 0)
        return -1;
    fixture.world = det_sim_world(fixture.sim);
    *state = &fixture;
    return 0;
}

static int world_teardown(void **state)
{
    struct world_fixture *fixture = *state;

    det_sim_close(fixture->sim);
    return 0;
}

static void run_over_seeds(
    void **state, const struct CMUnitTest *cases, size_t case_count, uint64_t least)
{
    uint64_t count = seeds_count(least);

    for (world_seed = 1; world_seed <= count; world_seed++)
        for (size_t i = 0; i < case_count; i++) {
            assert_int_equal(0, cases[i].setup_func(state));
            cases[i].test_func(state);
            assert_int_equal(0, cases[i].teardown_func(state));
        }
    world_seed = 0;
}

/* After a failure; the seed of a group that passed is 0. */
static int print_seed(void **state)
{
    (void)state;
    if (world_seed)
        print_message("the last seed was %llu\n", (unsigned long long)world_seed);
    return 0;
}

#endif
