/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checked_test.c - arithmetic at the edges of its types. */
#include "base/checked.h"
#include "lib/test.h"

static void size_arithmetic_reports_overflow(void **state)
{
    size_t size = 0;

    (void)state;
    assert_true(det_add_size(SIZE_MAX - 1, 1, &size));
    assert_true(size == SIZE_MAX);
    assert_false(det_add_size(SIZE_MAX, 1, &size));
    assert_true(det_mul_size(SIZE_MAX / 2, 2, &size));
    assert_true(size == SIZE_MAX - 1);
    assert_false(det_mul_size(SIZE_MAX / 2 + 1, 2, &size));
}

static void integer_arithmetic_reports_overflow(void **state)
{
    int64_t number = 0;

    (void)state;
    assert_true(det_mul_i64(INT64_MIN / 2, 2, &number));
    assert_true(number == INT64_MIN);
    assert_false(det_mul_i64(INT64_MIN, -1, &number));
}

static void times_saturate(void **state)
{
    (void)state;
    assert_true(det_add_time(5, 7) == 12);
    assert_true(det_add_time(5, -7) == -2);
    assert_true(det_add_time(DET_NEVER, 0) == DET_NEVER);
    assert_true(det_add_time(DET_NEVER, -DET_SECOND) == DET_NEVER);
    assert_true(det_add_time(1, DET_NEVER) == DET_NEVER);
    assert_true(det_add_time(DET_NEVER - 1, 1) == DET_NEVER);
    assert_true(det_add_time(DET_NEVER - 1, 2) == DET_NEVER);
    assert_true(det_add_time(INT64_MIN, -1) == INT64_MIN);
}

/* -1 + DET_NEVER fits, but nothing is later than never. */
static void never_from_now_is_never(void **state)
{
    (void)state;
    assert_true(det_add_time(0, DET_NEVER) == DET_NEVER);
    assert_true(det_add_time(-1, DET_NEVER) == DET_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_arithmetic_reports_overflow),
        cmocka_unit_test(integer_arithmetic_reports_overflow),
        cmocka_unit_test(times_saturate),
        cmocka_unit_test(never_from_now_is_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
