/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definition_rules_test.c - the rules of definitions: groups, fragments, duplicates, overrides
 * and lists. */
#include <detent/tool/machine.h>

#include "machine/builder_test.h"

/* A front end gives the rows of a fragment where it is included; to a builder they are rows. */
static void include_light(struct det_machine_builder *b)
{
    STATE(b, "red", .flags = DET_STATE_INITIAL);
    STATE(b, "green");
    EVENT(b, "tick");
    ON(b, "red", "tick", "green");
}

static void a_leaf_is_the_same_whatever_its_payload(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine, *again;
    struct {
        unsigned kind;
        _Alignas(8) struct payment payment;
    } small = { 0, { .cents = 1 } }, large = { 0, { .cents = 1000000 } };

    (void)context;
    machine = expect_machine(b, "", NULL, NULL);
    again = expect_machine(open_order(), "", NULL, NULL);
    assert_ptr_equal(
        det_machine_step(machine, 0, det_event_kind(&small)),
        det_machine_step(machine, 0, det_event_kind(&large)));
    assert_true(det_machine_step(machine, 0, 0) != det_machine_step(machine, 0, 1));
    for (int i = 0; i < machine->state_count; i++)
        assert_int_equal(det_machine_find_state(again, machine->states[i].name), i);
    det_machine_close(again);
    det_machine_close(machine);
}

/* Nested groups are lists in lists; a front end flattens them. */
static void groups_are_not_states(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    GROUP(b, "open", "PENDING", "CHARGING");
    GROUP(b, "alive", "PENDING", "CHARGING", "PAID");
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(machine->state_count, 5);
    assert_int_equal(det_machine_find_state(machine, "open"), -1);
    assert_int_equal(det_machine_find_state(machine, "alive"), -1);
    det_machine_close(machine);
}

static void a_group_has_exactly_its_leaves(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    GROUP(b, "open", "PENDING", "CHARGING");
    GROUP(b, "alive", "PENDING", "CHARGING", "PAID");
    EVENT_GROUP(b, "answers", "CHARGED", "DECLINED");
    machine = expect_machine(b, "", NULL, NULL);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(det_machine_group_has(&machine->groups[0], i), i < 2);
        assert_int_equal(det_machine_group_has(&machine->groups[1], i), i < 3);
    }
    assert_int_equal(machine->event_groups[0].member_count, 2);
    assert_true(det_machine_group_has(&machine->event_groups[0], 3));
    assert_true(det_machine_group_has(&machine->event_groups[0], 4));
    det_machine_close(machine);
}

/* Here ids are dense and no hash is an identity, so names with equal hashes are two names. */
static void names_with_the_same_32_bit_hash_are_distinct(void **context)
{
    struct det_machine_builder *b = open_builder("clash", NULL);
    struct det_machine *machine;

    (void)context;
    STATE(b, "Aa", .flags = DET_STATE_INITIAL);
    STATE(b, "BB");
    EVENT(b, "AaAa");
    EVENT(b, "BBBB");
    EVENT(b, "AaBB");
    ON(b, "Aa", "AaAa", "BB");
    ON(b, "BB", "BBBB", "Aa");
    STAY(b, "BB", DET_LIST("AaBB"));
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(det_machine_find_state(machine, "Aa"), 0);
    assert_int_equal(det_machine_find_state(machine, "BB"), 1);
    assert_int_equal(det_machine_step(machine, 0, 0)->to, 1);
    assert_int_equal(det_machine_step(machine, 0, 1)->outcome, DET_OUTCOME_UNHANDLED);
    assert_int_equal(det_machine_step(machine, 1, 2)->outcome, DET_OUTCOME_STAY);
    det_machine_close(machine);
}

static void rows_keep_their_order_and_number_through_fragments(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);
    struct det_machine *machine;

    (void)context;
    include_light(b);
    STATE(b, "blue");
    ON(b, "green", "tick", "blue");
    ON(b, "blue", "tick", "red");
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(det_machine_step(machine, 0, 0)->row, 4);
    assert_int_equal(det_machine_step(machine, 1, 0)->row, 6);
    assert_int_equal(det_machine_step(machine, 2, 0)->row, 7);
    assert_int_equal(machine->state_count, 3);
    det_machine_close(machine);
}

static void duplicate_unmarked_names_both_rows_and_both_targets(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    ON(b, "PENDING", "PAY", "PAID");
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].rule, DET_RULE_DUPLICATE_TRANSITION);
    assert_int_equal(found.items[0].other.line, 13);
    assert_int_equal(found.items[0].place.line, 21);
    assert_string_equal(
        found.items[0].text, "PENDING on PAY is already a transition of order: to CHARGING");
    assert_string_equal(
        found.items[0].hint, "write OVERRIDE(PENDING, PAY, PAID) if that is intended");
    det_machine_builder_close(b);
}

static void override_on_the_earlier_row_alone_is_refused(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    ON(b, "PAID", "EXPIRED", "CHARGING");
    expect(b, "override-nothing@21", NULL, NULL);
    b = open_order();
    OVERRIDE(b, "PENDING", "PAY", "PAID");
    ON(b, "PENDING", "PAY", "CHARGING");
    expect(b, "overrides@21 duplicate-transition@22", NULL, NULL);
}

static void override_on_the_later_row_reports_both_targets(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    OVERRIDE(b, "PAID", "CANCEL", "PENDING");
    machine =
        expect_machine(b, "overrides@21", "PAID on CANCEL: to PENDING instead of CANCELLED", NULL);
    assert_int_equal(det_machine_step(machine, 2, 2)->to, 0);
    assert_int_equal(det_machine_step(machine, 1, 2)->to, 4);
    det_machine_close(machine);
}

static void last_override_of_a_chain_wins_completely(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;
    const struct det_transition *transition;

    (void)context;
    det_machine_builder_hook(b, "look", NULL);
    OVERRIDE(
        b, "PAID", "CANCEL", "PENDING", .hook = "look", .effects = DET_LIST("charge_card"),
        .within = { DET_SECOND, "EXPIRED", NULL });
    OVERRIDE(b, "PAID", "CANCEL", "SHIPPED");
    machine = expect_machine(
        b, "overrides@22 overrides@23", "PAID on CANCEL: to PENDING instead of CANCELLED", NULL);
    transition = det_machine_step(machine, 2, 2);
    assert_int_equal(transition->to, 3);
    assert_int_equal(transition->row, 23);
    assert_null(transition->more);
    assert_null(det_machine_timeout(machine, transition));
    det_machine_close(machine);
}

/* Every pair of a row must override something, as in the compiler. */
static void every_override_without_a_base_row_is_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    OVERRIDE(b, "SHIPPED", "CANCEL", "PENDING");
    expect(b, "override-nothing@21 override-nothing@22", NULL, NULL);
    b = open_order();
    ON_LISTS(
        b, .from = DET_LIST("PAID", "SHIPPED"), .events = DET_LIST("CANCEL"),
        .outcome = DET_OUTCOME_GOTO, .to = "PENDING", .is_override = true);
    expect(
        b, "overrides@21 override-nothing@21", "PAID on CANCEL: to PENDING instead of CANCELLED",
        NULL);
}

static void override_without_a_base_is_an_error_unless_composed(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);

    (void)context;
    STATE(b, "red", .flags = DET_STATE_INITIAL);
    STATE(b, "green");
    EVENT(b, "tick");
    OVERRIDE(b, "red", "tick", "green");
    ON(b, "green", "tick", "red");
    expect(
        b, "override-nothing@4",
        "red on tick is not a transition of light yet: no earlier row to override", NULL);
    b = open_builder("light", NULL);
    include_light(b);
    ON(b, "green", "tick", "red");
    STATE(b, "blue");
    ON(b, "blue", "tick", "green");
    OVERRIDE(b, "red", "tick", "blue");
    expect(b, "overrides@8", "red on tick: to blue instead of green", NULL);
}

static void state_and_event_lists_expand_to_every_pair(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    ON_LISTS(
        b, .from = DET_LIST("SHIPPED", "CANCELLED"), .events = DET_LIST("PAY", "SHIP"),
        .outcome = DET_OUTCOME_STAY);
    machine = expect_machine(b, "", NULL, NULL);
    for (unsigned state = 0; state < 5; state++) {
        for (unsigned event = 0; event < 6; event++) {
            bool is_listed = state >= 3 && event < 2;

            assert_int_equal(det_machine_step(machine, state, event)->row == 21, is_listed);
        }
    }
    det_machine_close(machine);
}

static void state_and_event_lists_fire(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    ON_LISTS(
        b, .from = DET_LIST("SHIPPED", "CANCELLED"), .events = DET_LIST("PAY", "SHIP"),
        .outcome = DET_OUTCOME_GOTO, .to = "SHIPPED");
    machine = expect_machine(b, "final-left@21", NULL, NULL);
    for (unsigned state = 3; state < 5; state++) {
        for (unsigned event = 0; event < 2; event++) {
            assert_int_equal(det_machine_step(machine, state, event)->outcome, DET_OUTCOME_GOTO);
            assert_int_equal(det_machine_step(machine, state, event)->to, 3);
        }
    }
    det_machine_close(machine);
}

static void lists_match_what_single_names_match(void **context)
{
    static const char *const states[] = { "PENDING", "CHARGING", "PAID", "SHIPPED", "CANCELLED" };
    struct det_machine_builder *listed = open_order(), *single = open_order();
    struct det_machine *a, *b;

    (void)context;
    EVENT(listed, "poke");
    EVENT(single, "poke");
    ON_LISTS(
        listed, .from = DET_LIST("PENDING", "CHARGING", "PAID", "SHIPPED", "CANCELLED"),
        .events = DET_LIST("poke"), .outcome = DET_OUTCOME_STAY);
    for (int i = 0; i < 5; i++)
        STAY(single, states[i], DET_LIST("poke"));
    a = expect_machine(listed, "", NULL, NULL);
    b = expect_machine(single, "", NULL, NULL);
    for (unsigned i = 0; i < 5U * a->event_count; i++) {
        assert_int_equal(a->table[i].outcome, b->table[i].outcome);
        assert_int_equal(a->table[i].to, b->table[i].to);
    }
    det_machine_close(a);
    det_machine_close(b);
}

static void a_group_may_stay_and_may_stop(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_machine *machine;

    (void)context;
    EVENT(b, "poke");
    EVENT(b, "kill");
    ON_LISTS(
        b, .from = DET_LIST("PENDING", "CHARGING"), .events = DET_LIST("poke"),
        .outcome = DET_OUTCOME_STAY);
    ON_LISTS(
        b, .from = DET_LIST("PENDING", "CHARGING"), .events = DET_LIST("kill"),
        .outcome = DET_OUTCOME_STOP, .reason = "killed");
    machine = expect_machine(b, "", NULL, NULL);
    for (unsigned state = 0; state < 2; state++) {
        assert_int_equal(det_machine_step(machine, state, 6)->outcome, DET_OUTCOME_STAY);
        assert_int_equal(det_machine_step(machine, state, 6)->to, state);
        assert_int_equal(det_machine_step(machine, state, 7)->outcome, DET_OUTCOME_STOP);
        assert_string_equal(det_machine_step(machine, state, 7)->more->reason, "killed");
    }
    det_machine_close(machine);
}

static void an_effect_that_produces_a_foreign_event_is_refused(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    EFFECT(b, "refund", .produces = DET_LIST("REFUNDED"));
    STAY(b, "SHIPPED", DET_LIST("CANCEL"), .effects = DET_LIST("refund"));
    expect(b, "unknown-event@21", "REFUNDED is not an event of order", NULL);
}

static void an_empty_machine_is_refused(void **context)
{
    (void)context;
    expect(open_builder("nothing", NULL), "no-states@0 no-states@0", "nothing has no states", NULL);
}

static void fragment_without_a_name_is_not_a_machine(void **context)
{
    struct det_machine_builder *b = open_builder(NULL, NULL);

    (void)context;
    include_light(b);
    ON(b, "green", "tick", "red");
    expect(b, "no-name@0", NULL, NULL);
}

static void duplicates_across_two_fragments_are_refused(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);

    (void)context;
    include_light(b);
    ON(b, "green", "tick", "red");
    ON(b, "red", "tick", "red");
    expect(
        b, "duplicate-transition@6", "red on tick is already a transition of light: to green",
        "write OVERRIDE(red, tick, red) if that is intended");
    b = open_builder("light", NULL);
    include_light(b);
    ON(b, "green", "tick", "red");
    ON_LISTS(
        b, .from = DET_LIST("red", "green"), .events = DET_LIST("tick"),
        .outcome = DET_OUTCOME_STAY);
    expect(b, "duplicate-transition@6 duplicate-transition@6", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_the_same_whatever_its_payload),
        cmocka_unit_test(groups_are_not_states),
        cmocka_unit_test(a_group_has_exactly_its_leaves),
        cmocka_unit_test(names_with_the_same_32_bit_hash_are_distinct),
        cmocka_unit_test(rows_keep_their_order_and_number_through_fragments),
        cmocka_unit_test(duplicate_unmarked_names_both_rows_and_both_targets),
        cmocka_unit_test(override_on_the_earlier_row_alone_is_refused),
        cmocka_unit_test(override_on_the_later_row_reports_both_targets),
        cmocka_unit_test(last_override_of_a_chain_wins_completely),
        cmocka_unit_test(every_override_without_a_base_row_is_reported),
        cmocka_unit_test(override_without_a_base_is_an_error_unless_composed),
        cmocka_unit_test(state_and_event_lists_expand_to_every_pair),
        cmocka_unit_test(state_and_event_lists_fire),
        cmocka_unit_test(lists_match_what_single_names_match),
        cmocka_unit_test(a_group_may_stay_and_may_stop),
        cmocka_unit_test(an_effect_that_produces_a_foreign_event_is_refused),
        cmocka_unit_test(an_empty_machine_is_refused),
        cmocka_unit_test(fragment_without_a_name_is_not_a_machine),
        cmocka_unit_test(duplicates_across_two_fragments_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
