/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* transition_index_test.c - all transitions of a machine have a number, and guards choose among
 * them. */
#include "testing/transition_index.h"

#include <detent/tool/spec.h>

#include "lib/test.h"

static const char spec_text[] =
    "#define FSM_NAME till\n#define FSM_PREFIX TILL\n"
    "STATE(A, a, INITIAL) STATE(B, b) STATE(C, c, FINAL)\n"
    "EVENT(PAY, pay) EVENT(ASK, ask)\n"
    "GUARD(one) GUARD(two) GUARD(three)\n"
    "ON(A, PAY, B, IF(two)) ELSE(A, PAY, C) ELSE_STAY(A, PAY, IF(one))\n"
    "STAY(A, ASK, IF(one)) ELSE_STOP(A, ASK, IF(three)) ON(B, PAY, C)\n";

enum { A_PAY = 0, A_ASK = 1, B_PAY = 2, CELLS = 6, ELSE_C = CELLS, ELSE_STAY, ELSE_STOP, ALL };

static int open_machine(void **state)
{
    static struct det_spec *spec;

    assert_int_equal(det_spec_read("till.fsm", spec_text, sizeof spec_text - 1, NULL, &spec), 0);
    assert_non_null(det_spec_machine(spec));
    *state = spec;
    return 0;
}

static int close_machine(void **state)
{
    det_spec_close(*state);
    return 0;
}

static void cells_come_first_and_then_the_alternatives(void **state)
{
    const struct det_machine *machine = det_spec_machine(*state);
    struct cli_transition edge;

    assert_int_equal(cli_transitions_count(machine), ALL);
    edge = cli_transition_at(machine, B_PAY);
    assert_int_equal(edge.state, 1);
    assert_int_equal(edge.event, 0);
    assert_false(edge.is_else);
    assert_int_equal(edge.transition->to, 2);
    edge = cli_transition_at(machine, ELSE_STOP);
    assert_int_equal(edge.state, 0);
    assert_int_equal(edge.event, 1);
    assert_true(edge.is_else);
    assert_int_equal(edge.transition->outcome, DET_OUTCOME_STOP);
}

static void alternatives_are_listed_after_their_cell(void **state)
{
    const struct det_machine *machine = det_spec_machine(*state);
    static const size_t wanted[ALL] = {
        A_PAY, ELSE_STAY, ELSE_C, A_ASK, ELSE_STOP, B_PAY, 3, 4, 5
    };
    size_t *order = cli_transitions_in_order(machine, NULL);

    assert_non_null(order);
    assert_memory_equal(order, wanted, sizeof wanted);
    cli_transitions_free(machine, NULL, order);
}

static int order_transitions(struct det_test_memory *memory, void *machine)
{
    size_t *order = cli_transitions_in_order(machine, &memory->allocator);

    cli_transitions_free(machine, &memory->allocator, order);
    return order ? 0 : DET_ERR_NO_MEMORY;
}

static void transition_order_survives_failed_allocations(void **state)
{
    det_test_each_failure(order_transitions, det_spec_machine(*state));
}

static void guards_choose_in_order_and_the_bare_one_comes_last(void **state)
{
    const struct det_machine *machine = det_spec_machine(*state);

    assert_int_equal(
        cli_transition_chosen(machine, 0, 0, (const bool[]){ true, true, false }), A_PAY);
    assert_int_equal(
        cli_transition_chosen(machine, 0, 0, (const bool[]){ true, false, false }), ELSE_STAY);
    assert_int_equal(
        cli_transition_chosen(machine, 0, 0, (const bool[]){ false, false, true }), ELSE_C);
    assert_int_equal(
        cli_transition_chosen(machine, 0, 1, (const bool[]){ false, true, true }), ELSE_STOP);
    assert_int_equal(
        cli_transition_chosen(machine, 0, 1, (const bool[]){ false, true, false }), A_ASK);
    assert_int_equal(cli_transition_chosen(machine, 1, 0, NULL), B_PAY);
}

static void pair_with_an_unguarded_transition_is_never_refused(void **state)
{
    const struct det_machine *machine = det_spec_machine(*state);

    assert_false(cli_may_be_refused(machine, 0, 0));
    assert_true(cli_may_be_refused(machine, 0, 1));
    assert_false(cli_may_be_refused(machine, 1, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_come_first_and_then_the_alternatives),
        cmocka_unit_test(alternatives_are_listed_after_their_cell),
        cmocka_unit_test(transition_order_survives_failed_allocations),
        cmocka_unit_test(guards_choose_in_order_and_the_bare_one_comes_last),
        cmocka_unit_test(pair_with_an_unguarded_transition_is_never_refused),
    };

    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
