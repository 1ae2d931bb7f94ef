/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_flow_test.c - what a compiler cannot see: paths, ways out, things nobody uses, products and
 * timers that nobody answers. */
#include "machine/builder_test.h"

static void a_state_off_every_path_is_unreachable(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST");
    STATE(b, "FOUND");
    ON(b, "LOST", "PAY", "FOUND");
    ON(b, "FOUND", "PAY", "LOST");
    expect(
        b, "unreachable@21 unreachable@22",
        "LOST cannot be reached from PENDING, where order starts", NULL);
    b = open_order();
    STATE(b, "LOST");
    STATE(b, "FOUND");
    ON(b, "LOST", "PAY", "FOUND");
    ON(b, "FOUND", "PAY", "LOST");
    ON(b, "PAID", "EXPIRED", "FOUND");
    expect(b, "", NULL, NULL);
}

static void a_state_that_nothing_leaves_is_a_dead_end_unless_final(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST", .wire = "lost");
    ON(b, "PAID", "EXPIRED", "LOST");
    STAY(b, "LOST", DET_LIST("PAY"));
    ON(b, "LOST", "SHIP", "LOST");
    expect(
        b, "dead-end@21", "no transition of order leaves LOST, and it is not final",
        "write STATE(LOST, lost, FINAL) if that is intended");
    b = open_builder("lamp", NULL);
    assert_non_null(b);
    STATE(b, "ON", .wire = "on", .flags = DET_STATE_INITIAL);
    EVENT(b, "PRESS", .wire = "press");
    STAY(b, "ON", DET_LIST("PRESS"));
    expect(
        b, "dead-end@1", "no transition of lamp leaves ON, and it is not final",
        "add a transition: ON(ON, EVENT, ...)");
    b = open_order();
    STATE(b, "LOST", .flags = DET_STATE_FINAL);
    ON(b, "PAID", "EXPIRED", "LOST");
    STAY(b, "LOST", DET_LIST("PAY"));
    expect(b, "", NULL, NULL);
}

static void stop_row_counts_as_a_way_out(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST");
    ON(b, "PAID", "EXPIRED", "LOST");
    STOP(b, "LOST", DET_LIST("SHIP"));
    expect(b, "", NULL, NULL);
}

static void transition_out_of_a_final_state_is_reported_once(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON_LISTS(
        b, .from = DET_LIST("PAID", "SHIPPED"), .events = DET_LIST("EXPIRED"),
        .outcome = DET_OUTCOME_GOTO, .to = "PENDING");
    ON(b, "SHIPPED", "CANCEL", "CANCELLED");
    expect(
        b, "final-left@22", "SHIPPED is a final state of order, but CANCEL leads to CANCELLED",
        NULL);
    b = open_order();
    STOP(b, "SHIPPED", DET_LIST("CANCEL"));
    ON(b, "SHIPPED", "PAY", "SHIPPED");
    STAY(b, "SHIPPED", DET_LIST("SHIP"));
    expect(b, "", NULL, NULL);
}

static void unused_declarations_are_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_data(b, det_empty_record());
    EFFECT(b, "e");
    det_machine_builder_guard(b, "g", NULL);
    det_machine_builder_hook(b, "h", NULL);
    det_machine_builder_update(b, "u", NULL);
    det_machine_builder_fill(b, "f", NULL);
    TIMER(b, "t", DET_SECOND, "EXPIRED");
    STAY(b, "PAID", DET_LIST("EXPIRED"), .disarms = DET_LIST("t"));
    expect(
        b, "not-used@21 not-used@22 not-used@23 not-used@24 not-used@25 not-used@26",
        "the effect e of order is never used", NULL);
    b = open_order();
    TIMER(b, "t", DET_SECOND, "EXPIRED");
    expect(b, "not-used@21", "the timer t of order is never armed", NULL);
}

static void used_declarations_are_not_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_data(b, det_empty_record());
    EFFECT(b, "e");
    det_machine_builder_guard(b, "g", NULL);
    det_machine_builder_hook(b, "h", NULL);
    det_machine_builder_hook(b, "entry", NULL);
    det_machine_builder_update(b, "u", NULL);
    det_machine_builder_fill(b, "f", NULL);
    STAY(
        b, "SHIPPED", DET_LIST("EXPIRED"), .effects = DET_LIST("e"), .guard = "g", .hook = "h",
        .update = "u");
    AFTER(b, "SHIPPED", DET_SECOND, "EXPIRED", .fill = "f");
    det_machine_builder_entry(b, DET_LIST("PAID"), "entry");
    expect(b, "", NULL, NULL);
}

static void product_unhandled_by_the_next_state_is_reported(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "PENDING", .effects = DET_LIST("charge_card"));
    expect(
        b, "product-unanswered@21",
        "charge_card may produce CHARGED, which PENDING of order does not accept",
        "add a transition: ON(PENDING, CHARGED, ...), or UNHANDLED(CHARGED, ...)");
    b = open_order();
    ON_LISTS(
        b, .from = DET_LIST("CHARGING", "SHIPPED"), .events = DET_LIST("SHIP"),
        .outcome = DET_OUTCOME_STAY, .effects = DET_LIST("charge_card"));
    expect(
        b, "product-unanswered@21",
        "charge_card may produce CHARGED, which SHIPPED of order does not accept", NULL);
}

static void product_may_be_handled_by_a_policy_or_a_final_state(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "PENDING", .effects = DET_LIST("charge_card"));
    det_machine_builder_event_unhandled(b, "CHARGED", DET_UNHANDLED_DEAD_LETTER);
    det_machine_builder_event_unhandled(b, "DECLINED", DET_UNHANDLED_IGNORE);
    expect(b, "", NULL, NULL);
    b = open_order();
    STOP(b, "PAID", DET_LIST("EXPIRED"), .effects = DET_LIST("charge_card"));
    expect(b, "", NULL, NULL);
    b = open_order();
    det_machine_builder_unhandled(b, DET_UNHANDLED_IGNORE);
    ON(b, "PAID", "EXPIRED", "PENDING", .effects = DET_LIST("charge_card"));
    expect(b, "", NULL, NULL);
}

static void an_overridden_row_has_no_products(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON(b, "PAID", "EXPIRED", "PENDING", .effects = DET_LIST("charge_card"));
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    expect(b, "overrides@22", NULL, NULL);
}

static void an_event_policy_row_wins_over_the_machine(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    det_machine_builder_unhandled(b, DET_UNHANDLED_IGNORE);
    det_machine_builder_event_unhandled(b, "DECLINED", DET_UNHANDLED_ERROR);
    ON(b, "PAID", "EXPIRED", "SHIPPED", .effects = DET_LIST("charge_card"));
    expect(
        b, "product-unanswered@22",
        "charge_card may produce DECLINED, which SHIPPED of order does not accept", NULL);
}

/* A line of states a -> b -> c -> d by `next`, with a timer that `next` arms in a. */
static struct det_machine_builder *open_line(void)
{
    struct det_machine_builder *b = open_builder("line", NULL);

    STATE(b, "a", .flags = DET_STATE_INITIAL);
    STATE(b, "b");
    STATE(b, "c");
    STATE(b, "d", .flags = DET_STATE_FINAL);
    EVENT(b, "next");
    EVENT(b, "ring");
    TIMER(b, "bell", DET_SECOND, "ring");
    ON(b, "a", "next", "b", .arms = DET_LIST("bell"));
    ON(b, "c", "next", "d");
    return b;
}

static void timer_check_ends_where_it_fires_or_is_disarmed(void **context)
{
    struct det_machine_builder *b = open_line();

    (void)context;
    ON(b, "b", "next", "c");
    STAY(b, "b", DET_LIST("ring"));
    expect(
        b, "timer-unanswered@7",
        "bell may fire in c of line, which does not accept ring, and in 1 more",
        "DISARM(bell) on the way there, write ON(c, ring, ...), or UNHANDLED(ring, ...)");
    b = open_line();
    ON(b, "b", "next", "c", .disarms = DET_LIST("bell"));
    STAY(b, "b", DET_LIST("ring"));
    expect(b, "", NULL, NULL);
    b = open_line();
    ON(b, "b", "ring", "c");
    expect(b, "", NULL, NULL);
    b = open_line();
    ON(b, "b", "next", "c");
    STAY(b, "d", DET_LIST("ring"));
    STAY(b, "c", DET_LIST("ring"));
    expect(b, "timer-unanswered@7", "bell may fire in b of line, which does not accept ring", NULL);
}

static void timer_rearmed_in_a_cycle_is_checked_around_it(void **context)
{
    struct det_machine_builder *b = open_line();

    (void)context;
    EVENT(b, "back");
    ON(b, "b", "next", "c", .disarms = DET_LIST("bell"));
    ON(b, "c", "back", "a", .arms = DET_LIST("bell"));
    STAY(b, "b", DET_LIST("ring"));
    expect(b, "timer-unanswered@7", "bell may fire in a of line, which does not accept ring", NULL);
}

static void arming_wins_over_disarming_and_over_having_fired(void **context)
{
    struct det_machine_builder *b = open_line();

    (void)context;
    ON(b, "b", "ring", "c", .arms = DET_LIST("bell"), .disarms = DET_LIST("bell"));
    STAY(b, "d", DET_LIST("ring"));
    expect(b, "timer-unanswered@7", "bell may fire in c of line, which does not accept ring", NULL);
}

static void timer_may_be_handled_by_a_policy_or_a_final_state(void **context)
{
    struct det_machine_builder *b = open_line();

    (void)context;
    ON(b, "b", "next", "c");
    STAY(b, "b", DET_LIST("ring"));
    det_machine_builder_event_unhandled(b, "ring", DET_UNHANDLED_IGNORE);
    expect(b, "", NULL, NULL);
    b = open_line();
    ON(b, "b", "ring", "c");
    STOP(b, "b", DET_LIST("next"));
    expect(b, "", NULL, NULL);
}

static void unhandled_pairs_are_reported_with_their_policy(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);

    (void)context;
    STATE(b, "red", .flags = DET_STATE_INITIAL);
    STATE(b, "green");
    for (unsigned i = 0; i < 4; i++)
        EVENT(
            b, (const char *const[]){ "p", "q", "r", "s" }[i], .unhandled = (enum det_unhandled)i);
    ON_LISTS(
        b, .from = DET_LIST("red"), .events = DET_LIST("p", "q", "r", "s"),
        .outcome = DET_OUTCOME_GOTO, .to = "green");
    ON(b, "green", "p", "red");
    det_machine_builder_report_unhandled(b);
    expect(
        b, "unhandled-pair@2 unhandled-pair@2 unhandled-pair@2",
        "green does not accept q: the event is ignored", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_off_every_path_is_unreachable),
        cmocka_unit_test(a_state_that_nothing_leaves_is_a_dead_end_unless_final),
        cmocka_unit_test(stop_row_counts_as_a_way_out),
        cmocka_unit_test(transition_out_of_a_final_state_is_reported_once),
        cmocka_unit_test(unused_declarations_are_reported),
        cmocka_unit_test(used_declarations_are_not_reported),
        cmocka_unit_test(product_unhandled_by_the_next_state_is_reported),
        cmocka_unit_test(product_may_be_handled_by_a_policy_or_a_final_state),
        cmocka_unit_test(an_overridden_row_has_no_products),
        cmocka_unit_test(an_event_policy_row_wins_over_the_machine),
        cmocka_unit_test(timer_check_ends_where_it_fires_or_is_disarmed),
        cmocka_unit_test(timer_rearmed_in_a_cycle_is_checked_around_it),
        cmocka_unit_test(arming_wins_over_disarming_and_over_having_fired),
        cmocka_unit_test(timer_may_be_handled_by_a_policy_or_a_final_state),
        cmocka_unit_test(unhandled_pairs_are_reported_with_their_policy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
