/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle_sim_test.c - handles from other threads, in the order of many seeds. */
#include "supervise/handle_cases.h"

#include "os/sim/seeds_cases.h"

static uint64_t in_seed(stage_fn *run, uint64_t seed)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct det_sim *sim;
    uint64_t hash;

    assert_non_null(stage);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, NULL), 0);
    stage_open(stage, det_sim_world(sim));
    run(stage);
    stage_close(stage);
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    free(stage);
    return hash;
}

static void in_this_world(stage_fn *run)
{
    for (uint64_t seed = 1; seed <= seeds_count(20); seed++)
        assert_int_equal(in_seed(run, seed), in_seed(run, seed));
}

HANDLE_CASES(HANDLE_CASE_TEST)

int main(void)
{
    const struct CMUnitTest tests[] = { HANDLE_CASES(HANDLE_CASE_ENTRY) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
