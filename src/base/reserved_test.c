/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved_test.c - options of a newer version are refused, wherever the unknown field is. */
#include "base/reserved.h"

#include <string.h>

#include "lib/test.h"

static void zeros_are_accepted(void **state)
{
    const uint64_t reserved[DET_OPTIONS_RESERVED] = { 0 };
    struct det_error error = { .code = 77 };

    (void)state;
    assert_int_equal(det_reserved_check(reserved, "a store", &error), 0);
    assert_int_equal(error.code, 77);
    assert_true(det_reserved_is_zero(reserved));
}

static void nonzero_reserved_fields_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < DET_OPTIONS_RESERVED; i++) {
        uint64_t reserved[DET_OPTIONS_RESERVED] = { 0 };
        struct det_error error = { 0 };

        reserved[i] = (uint64_t)1 << (8 * i);
        assert_false(det_reserved_is_zero(reserved));
        assert_int_equal(det_reserved_check(reserved, "a store", &error), DET_ERR_VERSION);
        assert_int_equal(error.code, DET_ERR_VERSION);
        assert_non_null(strstr(error.text, "a store: an option is set"));
        assert_int_equal(det_reserved_check(reserved, "a store", NULL), DET_ERR_VERSION);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_are_accepted),
        cmocka_unit_test(nonzero_reserved_fields_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
