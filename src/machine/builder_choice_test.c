/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_choice_test.c - alternatives of a pair: valid places of an ELSE, its result in the
 * machine, and the checks of it. */
#include <detent/tool/machine.h>

#include "machine/builder_test.h"

#define ELSE(b, s, e, ...)                                                          \
    ON_LISTS(                                                                       \
        b, .from = DET_LIST(s), .events = DET_LIST(e), .outcome = DET_OUTCOME_GOTO, \
        .is_else = true, .to = __VA_ARGS__)
#define ELSE_STAY(b, s, ...)                                                  \
    ON_LISTS(                                                                 \
        b, .from = DET_LIST(s), .outcome = DET_OUTCOME_STAY, .is_else = true, \
        .events = __VA_ARGS__)

/* With two guards, rows 21 and 22, and SHIPPED on PAY as row 23: guarded. */
static struct det_machine_builder *open_choice(void)
{
    struct det_machine_builder *b = open_order();

    det_machine_builder_guard(b, "is_rich", NULL);
    det_machine_builder_guard(b, "is_known", NULL);
    STAY(b, "CHARGING", DET_LIST("SHIP"), .guard = "is_rich");
    return b;
}

static void an_else_comes_after_the_row_of_its_pair(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ELSE(b, "PAID", "EXPIRED", "PENDING");
    expect(
        b, "else-nothing@21",
        "PAID on EXPIRED is not a transition of order yet: no earlier row for this ELSE",
        "write ON(PAID, EXPIRED, PENDING), or move the row after the one that decides the pair");
    b = open_order();
    ELSE_STAY(b, "PAID", DET_LIST("EXPIRED"));
    ELSE_STAY(b, "PAID", DET_LIST("EXPIRED"));
    STAY(b, "PAID", DET_LIST("EXPIRED"));
    expect(
        b, "else-nothing@21", NULL,
        "write STAY(PAID, EXPIRED), or move the row after the one that decides the pair");
    b = open_order();
    ELSE_STAY(b, "PAID", DET_LIST("EXPIRED"));
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    expect(b, "else-nothing@21", NULL, NULL);
}

/* Mistakes in the pairs of one ELSE row are one finding, at the first pair. */
static void mistake_in_an_else_list_is_reported_once(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ON_LISTS(
        b, .from = DET_LIST("PAID", "CHARGING"), .events = DET_LIST("EXPIRED"),
        .outcome = DET_OUTCOME_STAY, .is_else = true);
    expect(
        b, "else-nothing@21",
        "PAID on EXPIRED is not a transition of order yet: no earlier row for this ELSE", NULL);
    b = open_order();
    STAY(b, "PENDING", DET_LIST("SHIP"));
    ELSE_STAY(b, "PENDING", DET_LIST("PAY", "SHIP"));
    expect(
        b, "else-never@22", "the row of PENDING on PAY has no IF, so this ELSE is never taken",
        NULL);
}

static void an_else_that_is_never_taken_is_an_error(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    ELSE_STAY(b, "PENDING", DET_LIST("PAY"));
    expect(
        b, "else-never@21", "the row of PENDING on PAY has no IF, so this ELSE is never taken",
        "give it an IF(guard); events that the guard refuses then reach the ELSE");
    b = open_choice();
    ELSE(b, "CHARGING", "SHIP", "PAID");
    ELSE(b, "CHARGING", "SHIP", "PENDING", .guard = "is_known");
    ELSE_STAY(b, "CHARGING", DET_LIST("SHIP"));
    expect(
        b, "else-never@26",
        "CHARGING on SHIP already has an ELSE without IF, so this one is never taken",
        "give one of the two an IF(guard)");
    b = open_choice();
    ELSE_STAY(b, "CHARGING", DET_LIST("SHIP", "SHIP"));
    ELSE_STAY(b, "CHARGING", DET_LIST("SHIP"), .guard = "is_known");
    expect(b, "else-never@24", NULL, "the row lists the pair more than once");
}

static void an_override_of_a_choice_has_a_guard_and_comes_first(void **context)
{
    struct det_machine_builder *b = open_choice();

    (void)context;
    OVERRIDE(b, "CHARGING", "SHIP", "PAID");
    OVERRIDE(b, "CHARGING", "SHIP", "PAID", .guard = "is_known");
    ELSE(b, "CHARGING", "SHIP", "PENDING");
    expect(b, "overrides@24 overrides@25 else-never@26", NULL, NULL);
    b = open_choice();
    ELSE(b, "CHARGING", "SHIP", "PENDING", .guard = "is_known");
    OVERRIDE(b, "CHARGING", "SHIP", "PAID", .guard = "is_rich");
    OVERRIDE(b, "CHARGING", "SHIP", "PAID");
    expect(
        b, "override-else@25 override-else@26",
        "CHARGING on SHIP has ELSE rows already, which an OVERRIDE cannot replace",
        "move it before the ELSE rows, which then belong to it, or leave them out");
    b = open_choice();
    OVERRIDE(b, "CHARGING", "SHIP", "PAID", .is_else = true, .guard = "is_known");
    expect(b, "row-arguments@24", NULL, NULL);
}

static void duplicate_rows_get_the_hint_to_write_else(void **context)
{
    struct det_machine_builder *b = open_choice();

    (void)context;
    ON(b, "CHARGING", "SHIP", "PAID", .guard = "is_known");
    expect(
        b, "duplicate-transition@24", NULL,
        "write ELSE(CHARGING, SHIP, PAID) if it is the next alternative");
    b = open_choice();
    STAY(b, "CHARGING", DET_LIST("SHIP"));
    expect(
        b, "duplicate-transition@24", NULL,
        "write ELSE_STAY(CHARGING, SHIP) if it is the next alternative");
    b = open_choice();
    ON(b, "PENDING", "PAY", "PAID", .guard = "is_known");
    expect(
        b, "duplicate-transition@24", NULL,
        "a choice begins with the row that has IF: put it first, and use ELSE for the other");
}

static void a_misspelt_else_is_one_mistake(void **context)
{
    struct det_machine_builder *b = open_choice();

    (void)context;
    ELSE(b, "CHARGNG", "SHIP", "PAID", .guard = "is_known");
    expect(b, "unknown-state@24", NULL, NULL);
    b = open_choice();
    ON(b, "SHPPED", "SHIP", "PAID", .guard = "is_known");
    ELSE(b, "SHIPPED", "SHIP", "PAID");
    expect(b, "unknown-state@24", NULL, NULL);
    b = open_choice();
    ELSE(b, "SHIP", "CHARGING", "PAID", .guard = "is_known");
    expect(
        b, "unknown-state@24", NULL,
        "state and event are swapped: write ELSE(CHARGING, SHIP, PAID)");
}

/* Lists the alternatives of the pair as "state:row", in order. */
static void list_choices(
    const struct det_machine *machine, unsigned state, unsigned event, char *target, size_t size)
{
    const struct det_transition *first = det_machine_step(machine, state, event);
    const struct det_choice *choice = NULL;
    size_t used = (size_t)snprintf(target, size, "%u:%u", first->to, first->row);

    while ((choice = det_machine_choice(machine, state, event, choice)) != NULL) {
        assert_int_equal(choice->state, state);
        assert_int_equal(choice->event, event);
        used += (size_t)snprintf(
            target + used, size - used, " %u:%u", choice->transition.to, choice->transition.row);
    }
}

static void alternatives_are_tried_in_order_and_the_bare_one_last(void **context)
{
    struct det_machine_builder *b = open_choice();
    struct det_machine *machine;
    char list[64];

    (void)context;
    det_machine_builder_guard(b, "is_late", NULL);
    ELSE(b, "CHARGING", "SHIP", "PAID");
    ELSE(b, "CHARGING", "SHIP", "PENDING", .guard = "is_known");
    STAY(b, "PAID", DET_LIST("EXPIRED"), .guard = "is_rich");
    ELSE(b, "PAID", "EXPIRED", "PENDING", .guard = "is_late");
    ELSE(b, "CHARGING", "SHIP", "CANCELLED", .guard = "is_late");
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(machine->choice_count, 4);
    list_choices(machine, 1, 1, list, sizeof list);
    assert_string_equal(list, "1:23 0:26 4:29 2:25");
    list_choices(machine, 2, 5, list, sizeof list);
    assert_string_equal(list, "2:27 0:28");
    list_choices(machine, 0, 0, list, sizeof list);
    assert_string_equal(list, "1:13");
    det_machine_close(machine);
}

static void else_with_lists_covers_every_pair(void **context)
{
    struct det_machine_builder *b = open_builder("order", NULL);
    struct det_machine *machine;

    (void)context;
    det_machine_builder_data(b, &payment_record);
    add_order_rows(b);
    EVENT(b, "AGAIN", .payload = &payment_record);
    det_machine_builder_guard(b, "is_rich", NULL);
    ON_LISTS(
        b, .from = DET_LIST("SHIPPED", "CANCELLED"), .events = DET_LIST("PAY", "AGAIN"),
        .outcome = DET_OUTCOME_STAY, .guard = "is_rich");
    ON_LISTS(
        b, .from = DET_LIST("SHIPPED", "CANCELLED"), .events = DET_LIST("PAY", "AGAIN"),
        .outcome = DET_OUTCOME_STOP, .is_else = true, .keeps = DET_LIST("cents"), .reason = "poor");
    machine = expect_machine(b, "", NULL, NULL);
    assert_int_equal(machine->choice_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(machine->choices[i].state, i / 2 + 3);
        assert_int_equal(machine->choices[i].event, i % 2 == 0 ? 0 : 6);
        assert_int_equal(machine->choices[i].transition.outcome, DET_OUTCOME_STOP);
        assert_int_equal(machine->choices[i].transition.to, i / 2 + 3);
        assert_string_equal(machine->choices[i].transition.more->reason, "poor");
        assert_int_equal(machine->choices[i].transition.more->keep_count, 1);
    }
    assert_ptr_equal(machine->choices[0].transition.more, machine->choices[2].transition.more);
    det_machine_close(machine);
}

static void checks_follow_every_alternative(void **context)
{
    struct det_machine_builder *b = open_choice();

    (void)context;
    /* A state that only an ELSE reaches, and only an ELSE leaves. */
    STATE(b, "LOST");
    ELSE(b, "CHARGING", "SHIP", "LOST");
    STAY(b, "LOST", DET_LIST("PAY"), .guard = "is_known");
    ELSE(b, "LOST", "PAY", "PAID");
    expect(b, "", NULL, NULL);
    b = open_choice();
    STAY(b, "SHIPPED", DET_LIST("PAY"), .guard = "is_known");
    ELSE(b, "SHIPPED", "PAY", "PAID");
    expect(b, "final-left@25", NULL, NULL);
    b = open_choice();
    ELSE(b, "CHARGING", "SHIP", "CANCELLED", .effects = DET_LIST("charge_card"));
    expect(
        b, "not-used@22 product-unanswered@24", "the guard is_known of order is never used", NULL);
    b = open_choice();
    TIMER(b, "bell", DET_SECOND, "EXPIRED");
    ELSE(b, "CHARGING", "SHIP", "CANCELLED", .guard = "is_known", .arms = DET_LIST("bell"));
    expect(
        b, "timer-unanswered@24",
        "bell may fire in CANCELLED of order, which does not accept EXPIRED", NULL);
    b = open_choice();
    ELSE(
        b, "CHARGING", "SHIP", "CANCELLED", .guard = "is_known",
        .within = { DET_SECOND, "EXPIRED", NULL });
    expect(b, "timeout-unanswered@24", NULL, NULL);
}

static void repeated_guard_of_a_choice_is_reported(void **context)
{
    struct det_machine_builder *b = open_choice();

    (void)context;
    ELSE(b, "CHARGING", "SHIP", "PAID", .guard = "is_known");
    ELSE(b, "CHARGING", "SHIP", "PENDING", .guard = "is_rich");
    ELSE(b, "CHARGING", "SHIP", "PENDING");
    expect(
        b, "guard-again@25",
        "is_rich was already called for CHARGING on SHIP of order: if it returns the same, this "
        "ELSE is never taken",
        NULL);
}

/* Many alternatives of one pair, each with many duplicates. */
static void thousands_of_alternatives_are_checked_quickly(void **context)
{
    struct det_machine_builder *b = open_choice();
    const char *from[DET_LIST_MAX + 1] = { NULL }, *events[DET_LIST_MAX + 1] = { NULL };
    struct det_machine *machine = NULL;
    struct det_diagnostics found;

    (void)context;
    for (size_t i = 0; i < DET_LIST_MAX; i++) {
        from[i] = "CHARGING";
        events[i] = "SHIP";
    }
    for (size_t i = 0; i < 100; i++)
        ON_LISTS(b, .from = from, .events = events, .outcome = DET_OUTCOME_STAY, .is_else = true);
    assert_int_equal(det_machine_builder_build(b, &machine, &found), DET_ERR_DEFINITION);
    assert_int_equal(found.error_count, 100);
    det_machine_builder_close(b);
}

static int build_choice(struct det_test_memory *memory, void *argument)
{
    struct det_machine_builder *b = open_builder("order", &memory->allocator);
    struct det_machine *machine = NULL;
    struct det_diagnostics found;
    int r;

    (void)argument;
    if (b == NULL)
        return DET_ERR_NO_MEMORY;
    add_order_rows(b);
    det_machine_builder_guard(b, "is_rich", NULL);
    STAY(b, "CHARGING", DET_LIST("SHIP"), .guard = "is_rich");
    ELSE(b, "CHARGING", "SHIP", "PAID", .effects = DET_LIST("charge_card"));
    r = det_machine_builder_build(b, &machine, &found);
    if (r == 0)
        assert_int_equal(machine->choice_count, 1);
    det_machine_close(machine);
    det_machine_builder_close(b);
    return r;
}

static void a_choice_without_memory_fails_cleanly(void **context)
{
    (void)context;
    det_test_each_failure(build_choice, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_else_comes_after_the_row_of_its_pair),
        cmocka_unit_test(mistake_in_an_else_list_is_reported_once),
        cmocka_unit_test(an_else_that_is_never_taken_is_an_error),
        cmocka_unit_test(an_override_of_a_choice_has_a_guard_and_comes_first),
        cmocka_unit_test(duplicate_rows_get_the_hint_to_write_else),
        cmocka_unit_test(a_misspelt_else_is_one_mistake),
        cmocka_unit_test(alternatives_are_tried_in_order_and_the_bare_one_last),
        cmocka_unit_test(else_with_lists_covers_every_pair),
        cmocka_unit_test(checks_follow_every_alternative),
        cmocka_unit_test(repeated_guard_of_a_choice_is_reported),
        cmocka_unit_test(thousands_of_alternatives_are_checked_quickly),
        cmocka_unit_test(a_choice_without_memory_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
