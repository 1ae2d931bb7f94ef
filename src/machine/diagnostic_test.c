/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* diagnostic_test.c - every rule has an id for scripts, a help for people and a severity. */
#include <detent/tool/diagnostic.h>

#include "lib/test.h"

static void every_rule_has_a_unique_lowercase_id(void **context)
{
    (void)context;
    for (int i = 0; i < DET_RULE_COUNT; i++) {
        const char *id = det_rule_id((enum det_rule)i);

        assert_true(strlen(id) > 0);
        assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(id));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(id, det_rule_id((enum det_rule)j));
    }
}

static void every_help_is_a_sentence(void **context)
{
    (void)context;
    for (int i = 0; i < DET_RULE_COUNT; i++) {
        const char *help = det_rule_help((enum det_rule)i);

        assert_true(help[0] >= 'A' && help[0] <= 'Z');
        assert_int_equal(help[strlen(help) - 1], '.');
    }
}

static void severities_are_those_of_the_list(void **context)
{
    (void)context;
    assert_int_equal(det_rule_severity(DET_RULE_DUPLICATE_TRANSITION), DET_SEVERITY_BROKEN);
    assert_int_equal(det_rule_severity(DET_RULE_DEAD_END), DET_SEVERITY_WARNING);
    assert_int_equal(det_rule_severity(DET_RULE_OVERRIDES), DET_SEVERITY_INFO);
    assert_string_equal(det_rule_id(DET_RULE_DUPLICATE_TRANSITION), "duplicate-transition");
}

static void ask_for_no_rule(void *argument)
{
    (void)argument;
    (void)det_rule_id(DET_RULE_COUNT);
}

static void unknown_rule_number_aborts(void **context)
{
    (void)context;
    assert_true(det_test_aborts(ask_for_no_rule, NULL, "DET_RULE_COUNT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_a_unique_lowercase_id),
        cmocka_unit_test(every_help_is_a_sentence),
        cmocka_unit_test(severities_are_those_of_the_list),
        cmocka_unit_test(unknown_rule_number_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
