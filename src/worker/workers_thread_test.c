/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_thread_test.c - workers and their callers on real threads. */
/* test: threads */
#include "worker/workers_thread_cases.h"

#define ROUNDS 60

#define CASE(name)                              \
    static void name##_on_threads(void **state) \
    {                                           \
        (void)state;                            \
        name(det_world_real(), ROUNDS);         \
    }
CASE(all_callers_are_answered)
CASE(a_stop_in_the_middle_answers_all_callers)
CASE(closed_in_the_middle_nothing_is_left)
CASE(two_stops_at_once_both_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_callers_are_answered_on_threads),
        cmocka_unit_test(a_stop_in_the_middle_answers_all_callers_on_threads),
        cmocka_unit_test(closed_in_the_middle_nothing_is_left_on_threads),
        cmocka_unit_test(two_stops_at_once_both_end_on_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
