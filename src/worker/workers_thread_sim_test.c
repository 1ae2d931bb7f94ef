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
CASE(a_stop_in_the_middle_answers_all_callers)
CASE(closed_in_the_middle_nothing_is_left)
CASE(two_stops_at_once_both_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_callers_are_answered_in_any_order),
        cmocka_unit_test(a_stop_in_the_middle_answers_all_callers_in_any_order),
        cmocka_unit_test(closed_in_the_middle_nothing_is_left_in_any_order),
        cmocka_unit_test(two_stops_at_once_both_end_in_any_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
