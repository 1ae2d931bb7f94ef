/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_cells_test.c - every pair has one row, or is overridden on purpose. */
#include "machine/builder_test.h"

static void a_duplicate_transition_is_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PENDING", "PAY", "PAID");
    expect(
        b, "duplicate-transition@21",
        "PENDING on PAY is already a transition of order: to CHARGING",
        "write OVERRIDE(PENDING, PAY, PAID) if that is intended");
    b = open_order();
    STAY(b, "PAID", DET_LIST("PAY"));
    expect(
        b, "duplicate-transition@21", "PAID on PAY is already a transition of order: stay",
        "write OVERRIDE_STAY(PAID, PAY) if that is intended");
    b = open_order();
    STOP(b, "PAID", DET_LIST("PAY"));
    expect(
        b, "duplicate-transition@21", NULL, "write OVERRIDE_STOP(PAID, PAY) if that is intended");
}

static void row_that_lists_a_pair_twice_is_refused(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON_LISTS(
        b, .from = DET_LIST("SHIPPED", "SHIPPED"), .events = DET_LIST("CANCEL"),
        .outcome = DET_OUTCOME_STAY);
    expect(
        b, "duplicate-transition@21", "SHIPPED on CANCEL is already a transition of order: stay",
        "the row lists the pair more than once");
    b = open_order();
    ON_LISTS(
        b, .from = DET_LIST("PAID"), .events = DET_LIST("EXPIRED", "EXPIRED"),
        .outcome = DET_OUTCOME_STAY);
    expect(b, "duplicate-transition@21", NULL, NULL);
}

static void override_must_follow_the_row_it_overrides(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    expect(
        b, "override-nothing@21",
        "PAID on EXPIRED is not a transition of order yet: no earlier row to override",
        "write ON(PAID, EXPIRED, PENDING), or move the row after the one that it overrides");
    b = open_order();
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    OVERRIDE(b, "PAID", "EXPIRED", "CHARGING");
    STAY(b, "PAID", DET_LIST("EXPIRED"));
    expect(b, "override-nothing@21", NULL, NULL);
    b = open_order();
    STAY(b, "PAID", DET_LIST("EXPIRED"), .is_override = true);
    expect(
        b, "override-nothing@21", NULL,
        "write STAY(PAID, EXPIRED), or move the row after the one that it overrides");
}

static void an_override_is_reported_with_both_targets(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    OVERRIDE(b, "PAID", "CANCEL", "PENDING");
    expect(b, "overrides@21", "PAID on CANCEL: to PENDING instead of CANCELLED", NULL);
    b = open_order();
    STOP(b, "PAID", DET_LIST("PAY"), .is_override = true);
    expect(b, "overrides@21", "PAID on PAY: stop instead of stay", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duplicate_transition_is_reported),
        cmocka_unit_test(row_that_lists_a_pair_twice_is_refused),
        cmocka_unit_test(override_must_follow_the_row_it_overrides),
        cmocka_unit_test(an_override_is_reported_with_both_targets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
