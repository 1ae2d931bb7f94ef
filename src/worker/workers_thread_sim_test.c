/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_thread_sim_test.c - workers and their callers in any order that a simulation finds. */
#include "worker/workers_thread_cases.h"

#include <detent/sim.h>

#define SEEDS  20
#define ROUNDS 12

#define CASE(name)                                                                \
    static void name##_in_any_order(void **state)                                 \
    {                                                                             \
        (void)state;                                                              \
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {                          \
            struct det_sim_options options = { .seed = seed, .preempt = 300000 }; \
            struct det_sim *sim;                                                  \
                                                                                  \
            assert_int_equal(det_sim_open(&options, &sim, NULL), 0);              \
            name(det_sim_world(sim), ROUNDS);                                     \
            det_sim_close(sim);                                                   \
        }                                                                         \
    }
CASE(all_callers_are_answered)
CASE(stop_during_calls_answers_all_callers)
CASE(close_during_calls_leaves_nothing)
CASE(two_concurrent_stops_both_return)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_callers_are_answered_in_any_order),
        cmocka_unit_test(stop_during_calls_answers_all_callers_in_any_order),
        cmocka_unit_test(close_during_calls_leaves_nothing_in_any_order),
        cmocka_unit_test(two_concurrent_stops_both_return_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
