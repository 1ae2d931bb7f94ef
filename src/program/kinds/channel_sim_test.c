/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* channel_sim_test.c - the channel between threads of the simulated world, over seeds. */
#include <detent/sim.h>

#include "kinds/channel_cases.h"

static uint64_t run(uint64_t seed)
{
    struct det_sim *sim = NULL;
    uint64_t hash;

    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, NULL), 0);
    go_round(det_sim_world(sim));
    hash = det_sim_hash(sim);
    det_sim_close(sim);
    return hash;
}

static void test_no_thread_schedule_loses_a_message(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        assert_int_equal(run(seed), run(seed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_thread_schedule_loses_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
