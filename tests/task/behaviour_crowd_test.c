/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_crowd_test.c - many simulated threads use one supervisor at once, each time in another
 * order. SIM_SEEDS says how many seeds, if more. */
#include "os/sim/seeds_cases.h"
#include "task/behaviour_cases.h"

#define SEEDS 50

static uint64_t crowd_seed;

static struct lab *crowd_lab(const struct det_tasks_options *options)
{
    return lab_open_seed(crowd_seed, options);
}

int main(void)
{
    const struct CMUnitTest tests[] = { CROWD_CASES };
    uint64_t seeds = seeds_count(SEEDS);

    for (crowd_seed = 1; crowd_seed <= seeds; crowd_seed++) {
        if (cmocka_run_group_tests(tests, NULL, NULL) != 0) {
            print_error("seed %llu\n", (unsigned long long)crowd_seed);
            return 1;
        }
    }
    return 0;
}
