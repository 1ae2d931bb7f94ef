/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_names_test.c - valid and duplicate names, and the findings about unknown names. */
#include "machine/builder_test.h"

static void a_machine_without_a_name_is_found(void **context)
{
    struct det_machine_builder *b = open_builder(NULL, NULL);

    (void)context;
    add_order_rows(b);
    expect(b, "no-name@0", "the machine has no name", NULL);
    b = open_builder("", NULL);
    add_order_rows(b);
    expect(b, "no-name@0", NULL, NULL);
}

static void missing_name_reported_by_the_front_end_is_not_repeated(void **context)
{
    struct det_machine_builder *b = open_builder(NULL, NULL);

    (void)context;
    add_order_rows(b);
    det_machine_builder_report(
        b, DET_RULE_NO_NAME, &(struct det_place){ .line = 1 }, "this is a %s", "fragment");
    expect(b, "no-name@1", "this is a fragment", NULL);
}

static void names_are_identifiers(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_hook(b, "2nd", NULL);
    expect(
        b, "bad-name@21", "2nd is not an identifier of C and cannot be the name of a hook", NULL);
    b = open_order();
    STATE(b, "A-B", .wire = "a_b");
    ON(b, "PAID", "EXPIRED", "A-B");
    expect(b, "bad-name@21", NULL, NULL);
    b = open_order();
    STATE(b, "AB", .wire = "a.b");
    ON(b, "PAID", "EXPIRED", "AB");
    expect(b, "bad-name@21", NULL, NULL);
    b = open_builder("my order", NULL);
    add_order_rows(b);
    expect(
        b, "bad-name@0", "my order is not an identifier of C and cannot be the name of a machine",
        NULL);
}

static void names_are_not_keywords(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_guard(b, "while", NULL);
    expect(b, "bad-name@21", "while is a keyword of C and cannot be the name of a guard", NULL);
    b = open_order();
    EVENT(b, "TRUTH", .wire = "true");
    STAY(b, "PAID", DET_LIST("TRUTH"));
    expect(b, "bad-name@21", "true is a keyword of C and cannot be the name of an event", NULL);
}

static void names_have_at_most_128_bytes(void **context)
{
    struct det_machine_builder *b = open_order();
    char name[130];

    (void)context;
    memset(name, 'x', sizeof name - 1);
    name[129] = '\0';
    STATE(b, name);
    ON(b, "PAID", "EXPIRED", name);
    ON(b, name, "EXPIRED", "PAID");
    expect(b, "bad-name@21", "xxxxxxxxxxxxxxxxxxxx... is too long for the name of a state", NULL);
    b = open_order();
    name[128] = '\0';
    STATE(b, name);
    ON(b, "PAID", "EXPIRED", name);
    ON(b, name, "EXPIRED", "PAID");
    expect(b, "", NULL, NULL);
}

static void missing_name_is_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, NULL);
    expect(b, "bad-name@21", "a state of order has no name", NULL);
}

static void unprintable_name_is_escaped_in_the_message(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "a\nb\xFF", "PENDING");
    expect(b, "unknown-event@21", "a?b? is not an event of order", NULL);
}

static void a_name_is_declared_once(void **context)
{
    struct det_machine_builder *b = open_order();
    struct det_diagnostics found;
    struct det_machine *machine;

    (void)context;
    STATE(b, "PAID", .wire = "paid_again");
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].rule, DET_RULE_DUPLICATE_NAME);
    assert_string_equal(found.items[0].text, "PAID is already a state of order");
    assert_int_equal(found.items[0].place.line, 21);
    assert_int_equal(found.items[0].other.line, 3);
    det_machine_builder_close(b);
    b = open_order();
    EVENT(b, "PAID");
    expect(b, "duplicate-name@21", "PAID is already a state of order", NULL);
    b = open_order();
    det_machine_builder_update(b, "charge_card", NULL);
    expect(b, "duplicate-name@21", "charge_card is already an effect of order", NULL);
}

static void names_of_different_spaces_may_be_the_same(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    GROUP(b, "charge_card", "PAID");
    EVENT_GROUP(b, "charge_card", "PAY");
    TIMER(b, "charge_card", DET_SECOND, "PAY");
    STAY(b, "PENDING", DET_LIST("SHIP"), .arms = DET_LIST("charge_card"));
    det_machine_builder_event_unhandled(b, "PAY", DET_UNHANDLED_IGNORE);
    expect(b, "", NULL, NULL);
}

static void a_wire_name_is_used_once_among_states_and_among_events(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST", .wire = "paid", .flags = DET_STATE_FINAL);
    ON(b, "PAID", "EXPIRED", "LOST");
    expect(
        b, "duplicate-name@21", "paid is already the name on disk of the state PAID of order",
        NULL);
    b = open_order();
    EVENT(b, "LOSE", .wire = "pay");
    STAY(b, "PAID", DET_LIST("LOSE"));
    expect(
        b, "duplicate-name@21", "pay is already the name on disk of the event PAY of order", NULL);
    b = open_order();
    EVENT(b, "LOSE", .wire = "paid");
    STAY(b, "PAID", DET_LIST("LOSE"));
    expect(b, "", NULL, NULL);
}

static void unknown_states_are_found_wherever_they_stand(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "CHARGNG");
    expect(b, "unknown-state@21", "CHARGNG is not a state of order", "did you mean CHARGING?");
    b = open_order();
    ON(b, "NOWHERE", "EXPIRED", "CHARGING");
    AFTER(b, "NOWHERE", DET_SECOND, "EXPIRED");
    GROUP(b, "open", "PENDING", "NOWHERE");
    expect(
        b, "unknown-state@21 unknown-state@22 unknown-state@23", "NOWHERE is not a state of order",
        NULL);
    b = open_order();
    det_machine_builder_hook(b, "look", NULL);
    det_machine_builder_entry(b, DET_LIST("PAYD"), "look");
    expect(b, "unknown-state@22", NULL, "did you mean PAID?");
    b = open_order();
    GROUP(b, "open", "PENDING");
    ON(b, "PAID", "EXPIRED", "open");
    expect(b, "unknown-state@22", "open is a group of order, not a state", NULL);
}

static void a_misspelt_name_is_one_finding(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "RETURNED", .flags = DET_STATE_FINAL);
    EVENT(b, "GIVE_BACK");
    ON(b, "SHIPED", "GIVE_BACK", "RETURNED");
    expect(b, "unknown-state@23", NULL, "did you mean SHIPPED?");
    b = open_order();
    STATE(b, "RETURNED", .flags = DET_STATE_FINAL);
    EVENT(b, "GIVE_BACK");
    ON(b, "PAID", "GIVE_BACK", "RETURNT");
    expect(b, "unknown-state@23", NULL, "did you mean RETURNED?");
    b = open_order();
    STATE(b, "RETURNED", .flags = DET_STATE_FINAL);
    EVENT(b, "LATE", .is_internal = true);
    AFTER(b, "CHARGING", DET_SECOND, "LATTE");
    ON(b, "CHARGING", "LATE", "RETURNED");
    expect(b, "unknown-event@23", "LATTE is not an event of order", "did you mean LATE?");
    b = open_order();
    ON(b, "PENDINGS", "PAY", "PAID");
    expect(b, "unknown-state@21", NULL, "did you mean PENDING?");
}

static void unknown_events_are_found_wherever_they_stand(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STAY(b, "PAID", DET_LIST("REFUND"));
    EFFECT(b, "refund", .produces = DET_LIST("REFUNDED"));
    TIMER(b, "later", DET_SECOND, "REFUNDED");
    EVENT_GROUP(b, "input", "PAY", "CLICK");
    det_machine_builder_event_unhandled(b, "CLICK", DET_UNHANDLED_DEFER);
    expect(
        b, "unknown-event@21 unknown-event@22 unknown-event@23 unknown-event@24 unknown-event@25",
        "REFUND is not an event of order", NULL);
}

static void name_of_another_kind_is_reported_with_its_kind(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "SHIP");
    expect(b, "unknown-state@21", "SHIP is an event of order, not a state", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PAID", .guard = "charge_card");
    expect(b, "unknown-function@21", "charge_card is an effect of order, not a guard", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PAID", .effects = DET_LIST("PAY"));
    expect(b, "unknown-effect@21", "PAY is an event of order, not an effect", NULL);
}

static void unknown_effects_timers_and_functions_are_found(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "PAID", .effects = DET_LIST("charge_crad"));
    expect(
        b, "unknown-effect@21", "charge_crad is not an effect of order",
        "did you mean charge_card?");
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PAID", .arms = DET_LIST("t"));
    STAY(b, "SHIPPED", DET_LIST("EXPIRED"), .disarms = DET_LIST("u"));
    expect(b, "unknown-timer@21 unknown-timer@22", "t is not a timer of order", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PAID", .guard = "g");
    STAY(b, "SHIPPED", DET_LIST("EXPIRED"), .hook = "h");
    STAY(b, "SHIPPED", DET_LIST("SHIP"), .update = "u");
    TIMER(b, "t", DET_SECOND, "EXPIRED", .fill = "f");
    det_machine_builder_exit(b, DET_LIST("PAID"), "h");
    expect(
        b,
        "unknown-function@21 unknown-function@22 unknown-function@23 unknown-function@24 "
        "unknown-function@25",
        "g is not a guard of order", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_a_name_is_found),
        cmocka_unit_test(missing_name_reported_by_the_front_end_is_not_repeated),
        cmocka_unit_test(names_are_identifiers),
        cmocka_unit_test(names_are_not_keywords),
        cmocka_unit_test(names_have_at_most_128_bytes),
        cmocka_unit_test(missing_name_is_reported),
        cmocka_unit_test(unprintable_name_is_escaped_in_the_message),
        cmocka_unit_test(a_name_is_declared_once),
        cmocka_unit_test(names_of_different_spaces_may_be_the_same),
        cmocka_unit_test(a_wire_name_is_used_once_among_states_and_among_events),
        cmocka_unit_test(unknown_states_are_found_wherever_they_stand),
        cmocka_unit_test(a_misspelt_name_is_one_finding),
        cmocka_unit_test(unknown_events_are_found_wherever_they_stand),
        cmocka_unit_test(name_of_another_kind_is_reported_with_its_kind),
        cmocka_unit_test(unknown_effects_timers_and_functions_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
