/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_body_test.c - members of a body that are checked beyond their type. */
#include "lib/test.h"

#include <detent/runtime.h>

#include "api/api_internal.h"

/* False: refused. */
static bool read_expected(const char *body, uint64_t *ret)
{
    struct det_arena arena;
    struct det_json_object members;
    bool is_right;

    *ret = 7;
    det_arena_init(&arena, NULL);
    assert_int_equal(det_json_object_read(&members, &arena, det_view_text(body), NULL), 0);
    api_read_expected(&members, ret);
    is_right = !members.wrong[0];
    det_arena_deinit(&arena);
    return is_right;
}

static void expected_sequence_is_limited_to_63_bits(void **state)
{
    uint64_t expected;

    (void)state;
    assert_true(read_expected("{}", &expected));
    assert_int_equal(expected, 7);
    assert_true(read_expected("{\"expected\": 0}", &expected));
    assert_true(expected == DET_EXPECT_NO_EVENT);
    assert_true(read_expected("{\"expected\": 9223372036854775807}", &expected));
    assert_true(expected == INT64_MAX);
    assert_false(read_expected("{\"expected\": 9223372036854775808}", &expected));
    assert_false(read_expected("{\"expected\": 18446744073709551615}", &expected));
    assert_int_equal(expected, 7);
    assert_false(read_expected("{\"expected\": -1}", &expected));
    assert_false(read_expected("{\"expected\": \"1\"}", &expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expected_sequence_is_limited_to_63_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
