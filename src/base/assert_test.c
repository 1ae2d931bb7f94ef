/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* assert_test.c - assertions end the process and say where. */
#include "base/assert.h"
#include "lib/test.h"

static void assert_that(void *argument)
{
    const int *number = argument;

    det_assert(*number == 7);
}

static void a_true_condition_continues(void **state)
{
    int seven = 7;

    (void)state;
    assert_false(det_test_aborts(assert_that, &seven, NULL));
}

static void a_false_condition_aborts_and_names_itself(void **state)
{
    int eight = 8;

    (void)state;
    assert_true(det_test_aborts(assert_that, &eight, "assertion failed: *number == 7"));
    assert_true(det_test_aborts(assert_that, &eight, "assert_test.c:12:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_condition_continues),
        cmocka_unit_test(a_false_condition_aborts_and_names_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
