/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_resolve_test.c - mistakes in a single row: too few or too many arguments, duplicates,
 * wrong order. */
#include "machine/builder_test.h"

static void missing_parts_of_a_row_are_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON_LISTS(b, .from = DET_LIST("PAID"), .events = DET_LIST("EXPIRED"), .to = "PENDING");
    expect(b, "row-arguments@21", "a row of order has no outcome: add GOTO, STAY or STOP", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", NULL);
    expect(
        b, "row-arguments@21", "a row of order has an outcome GOTO without a target state", NULL);
    b = open_order();
    ON_LISTS(b, .events = DET_LIST("EXPIRED"), .outcome = DET_OUTCOME_STAY);
    expect(b, "row-arguments@21", "a row of order names no state", NULL);
    b = open_order();
    ON_LISTS(b, .from = DET_LIST("PAID"), .outcome = DET_OUTCOME_STAY);
    expect(b, "row-arguments@21", "a row of order names no event", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "");
    expect(b, "row-arguments@21", "a row of order has an empty name where a state belongs", NULL);
    b = open_order();
    AFTER(b, "CHARGING", DET_SECOND, NULL);
    expect(b, "row-arguments@21", "a timeout of order names no event", NULL);
    b = open_order();
    det_machine_builder_entry(b, DET_LIST("PAID"), NULL);
    expect(b, "row-arguments@21", "a row of order has an empty name where a hook belongs", NULL);
    b = open_order();
    det_machine_builder_group(b, &(struct det_group_row){ .name = "none" });
    expect(b, "row-arguments@21", "a row of order names no state", NULL);
}

static void unsuitable_parts_of_a_row_are_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STAY(b, "PAID", DET_LIST("EXPIRED"), .to = "PAID");
    expect(b, "row-arguments@21", "a row of order stays or stops, and cannot have a target", NULL);
    b = open_order();
    STOP(b, "PENDING", DET_LIST("SHIP"), .within = { DET_SECOND, "EXPIRED", NULL });
    expect(b, "row-arguments@21", "a row of order enters no state, and cannot have a WITHIN", NULL);
    b = open_order();
    STAY(b, "PAID", DET_LIST("EXPIRED"), .reason = "because");
    expect(b, "row-arguments@21", "a row of order does not stop, and cannot have a REASON", NULL);
    b = open_order();
    STOP(b, "PAID", DET_LIST("EXPIRED"), .reason = "because");
    expect(b, "", NULL, NULL);
}

static void durations_must_be_positive_and_at_most_ten_years(void **context)
{
    const det_time wrong[] = { 0, -1, DET_DELAY_MAX + 1, INT64_MIN };
    struct det_machine_builder *b;

    (void)context;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        b = open_order();
        STAY(b, "CHARGING", DET_LIST("EXPIRED"));
        AFTER(b, "CHARGING", wrong[i], "EXPIRED");
        expect(b, "bad-duration@22", NULL, NULL);
    }
    b = open_order();
    TIMER(b, "reminder", 0, "EXPIRED");
    expect(
        b, "bad-duration@21",
        "a row of order waits for 0s; it must be more than 0s and at most ten years", NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PENDING", .within = { 0, "EXPIRED", NULL });
    expect(b, "bad-duration@21", NULL, NULL);
    b = open_order();
    ON(b, "PAID", "EXPIRED", "PENDING", .within = { DET_DELAY_MAX, "EXPIRED", NULL });
    expect(b, "", NULL, NULL);
}

static void a_state_has_one_timeout(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    AFTER(b, "PENDING", DET_SECOND, "EXPIRED");
    expect(b, "duplicate-timeout@21", "PENDING of order already has a timeout", NULL);
}

static void a_state_has_one_hook_of_each_kind(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_hook(b, "look", NULL);
    det_machine_builder_entry(b, DET_LIST("PAID", "SHIPPED"), "look");
    det_machine_builder_exit(b, DET_LIST("PAID"), "look");
    expect(b, "", NULL, NULL);
    b = open_order();
    det_machine_builder_hook(b, "look", NULL);
    det_machine_builder_entry(b, DET_LIST("PAID", "SHIPPED"), "look");
    det_machine_builder_entry(b, DET_LIST("SHIPPED"), "look");
    expect(b, "duplicate-hook@23", "SHIPPED of order already has an entry hook", NULL);
    b = open_order();
    det_machine_builder_hook(b, "look", NULL);
    det_machine_builder_exit(b, DET_LIST("PAID", "PAID"), "look");
    expect(b, "duplicate-hook@22", "PAID of order already has an exit hook", NULL);
}

static void an_event_has_one_policy_row(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_event_unhandled(b, "PAY", DET_UNHANDLED_DEFER);
    det_machine_builder_event_unhandled(b, "PAY", DET_UNHANDLED_IGNORE);
    expect(b, "duplicate-policy@22", "event PAY of order already has an UNHANDLED row", NULL);
}

static void state_and_event_swapped_are_one_finding(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "EXPIRED", "CHARGING", "PAID");
    expect(
        b, "unknown-state@21", "EXPIRED is an event of order, not a state",
        "state and event are swapped: write ON(CHARGING, EXPIRED, PAID)");
    b = open_order();
    STAY(b, "EXPIRED", DET_LIST("CHARGING"));
    expect(b, "unknown-state@21", NULL, "state and event are swapped: CHARGING comes first");
    b = open_order();
    EVENT(b, "LATE", .is_internal = true);
    AFTER(b, "CHARGING", DET_SECOND, "LATE");
    OVERRIDE(b, "LATE", "CHARGING", "PAID");
    expect(
        b, "unknown-state@23", NULL,
        "state and event are swapped: write OVERRIDE(CHARGING, LATE, PAID)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_parts_of_a_row_are_reported),
        cmocka_unit_test(unsuitable_parts_of_a_row_are_reported),
        cmocka_unit_test(durations_must_be_positive_and_at_most_ten_years),
        cmocka_unit_test(a_state_has_one_timeout),
        cmocka_unit_test(a_state_has_one_hook_of_each_kind),
        cmocka_unit_test(an_event_has_one_policy_row),
        cmocka_unit_test(state_and_event_swapped_are_one_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
