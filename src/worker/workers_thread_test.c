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
CASE(stop_during_calls_answers_all_callers)
CASE(close_during_calls_leaves_nothing)
CASE(two_concurrent_stops_both_return)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_callers_are_answered_on_threads),
        cmocka_unit_test(stop_during_calls_answers_all_callers_on_threads),
        cmocka_unit_test(close_during_calls_leaves_nothing_on_threads),
        cmocka_unit_test(two_concurrent_stops_both_return_on_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
