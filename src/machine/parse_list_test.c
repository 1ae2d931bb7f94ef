/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_list_test.c - list macros, and the lists of names that rows have. */
#include "machine/parse_test.h"

static void list_macros_nest_and_come_out_flat(void **state)
{
    /* Also if the macro follows its use, as in C, where the file is read many times. */
    struct det_spec *spec = test_spec(HEAD BASE "STATE(DONE, done)\nGROUP(all, ORDER_ALL)\n" MOVE
                                                "ON(PAID, PAY, DONE)\n"
                                                "#define ORDER_ALL ORDER_OPEN, DONE\n"
                                                "#define ORDER_OPEN PENDING, PAID\n"
                                                "#define ORDER_OPEN PENDING, PAID\n"
                                                "EVENT(QUIT, quit)\n"
                                                "STOP(ANY(ORDER_OPEN, DONE), ANY(QUIT))\n");
    const struct det_machine *machine = test_machine(spec);

    (void)state;
    assert_int_equal(machine->groups[0].member_count, 3);
    assert_int_equal(machine->groups[0].members[2], 2);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(det_machine_step(machine, i, 1)->outcome, DET_OUTCOME_STOP);
    det_spec_close(spec);
}

static void wrong_macro_member_is_reported_once_at_its_place(void **state)
{
    struct det_spec *spec =
        test_spec(ORDER "#define ORDER_X NOBODY, PAI\n#define ORDER_Y PENDING, ORDER_X\n"
                        "GROUP(x, PENDING, ORDER_X)\nGROUP(y, ORDER_Y)\nSTAY(ANY(ORDER_X), PAY)\n");
    const struct det_diagnostic *found = test_finding(spec, DET_RULE_UNKNOWN_STATE, "NOBODY");

    (void)state;
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 2);
    assert_int_equal(found->place.line, 7);
    assert_int_equal(found->place.column, 17);
    assert_int_equal(found->place.width, 6);
    assert_int_equal(found->other.line, 9);
    assert_int_equal(found->other.column, 19);
    assert_int_equal(found->other.width, 7);
    found = test_finding(spec, DET_RULE_UNKNOWN_STATE, "PAI ");
    assert_int_equal(found->place.column, 25);
    assert_string_equal(found->hint, "did you mean PAID?");
    det_spec_close(spec);
}

static void macro_used_for_two_kinds_is_reported_for_each(void **state)
{
    struct det_spec *spec =
        test_spec(ORDER "#define ORDER_X NOBODY\nSTAY(ANY(ORDER_X), ANY(ORDER_X))\n");

    (void)state;
    assert_int_equal(det_spec_diagnostics(spec)->error_count, 2);
    assert_int_equal(test_finding(spec, DET_RULE_UNKNOWN_STATE, "NOBODY")->place.line, 7);
    assert_int_equal(test_finding(spec, DET_RULE_UNKNOWN_EVENT, "NOBODY")->place.line, 7);
    det_spec_close(spec);
}

static void macro_member_finding_has_the_place_of_its_use(void **state)
{
    struct det_spec *spec = test_spec(ORDER "#define ORDER_X PENDING\nSTAY(ANY(ORDER_X), PAY)\n");
    const struct det_diagnostic *found =
        test_finding(spec, DET_RULE_DUPLICATE_TRANSITION, "PENDING");

    (void)state;
    assert_int_equal(found->place.line, 8);
    assert_int_equal(found->place.column, 10);
    assert_int_equal(found->place.width, 7);
    det_spec_close(spec);
}

static void a_macro_that_contains_itself_is_refused(void **state)
{
    (void)state;
    test_only(
        ORDER "#define ORDER_A ORDER_A\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:17",
        "ORDER_A is a list that contains itself");
    test_only(
        ORDER "#define ORDER_A ORDER_B\n#define ORDER_B ORDER_C\n#define ORDER_C ORDER_A\n", NULL,
        DET_RULE_SYNTAX, "specs/order.fsm:9:17", "ORDER_A is a list that contains itself");
}

static void list_macro_is_allowed_only_in_lists(void **state)
{
    (void)state;
    test_only(
        ORDER "#define ORDER_A PAID\nSTAY(ORDER_A, PAY)\n", NULL, DET_RULE_ROW_ARGUMENTS,
        "specs/order.fsm:8:6", "ORDER_A is a list");
    test_only(
        ORDER "#define STATE A\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:9",
        "STATE is a word of the language");
    test_only(
        ORDER "#define DO A\n", NULL, DET_RULE_SYNTAX, "specs/order.fsm:7:9",
        "DO is a word of the language");
}

static void a_list_macro_begins_with_the_prefix(void **state)
{
    struct det_spec *spec = test_spec(ORDER "#define OPEN PENDING\n#define ORDERLY PAID\n");

    (void)state;
    assert_non_null(det_spec_machine(spec));
    assert_int_equal(det_spec_diagnostics(spec)->warning_count, 2);
    assert_int_equal(test_finding(spec, DET_RULE_GROUP_NAME, "OPEN")->place.line, 7);
    assert_int_equal(test_finding(spec, DET_RULE_GROUP_NAME, "ORDERLY")->place.line, 8);
    det_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_macros_nest_and_come_out_flat),
        cmocka_unit_test(wrong_macro_member_is_reported_once_at_its_place),
        cmocka_unit_test(macro_used_for_two_kinds_is_reported_for_each),
        cmocka_unit_test(macro_member_finding_has_the_place_of_its_use),
        cmocka_unit_test(a_macro_that_contains_itself_is_refused),
        cmocka_unit_test(list_macro_is_allowed_only_in_lists),
        cmocka_unit_test(a_list_macro_begins_with_the_prefix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
