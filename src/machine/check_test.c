/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* check_test.c - what a whole definition must have is missed, alone and with its sentence, and the
 * nearest definition that is right is let through. */
#include "machine/builder_test.h"

static void the_order_machine_breaks_no_rule(void **context)
{
    (void)context;
    expect(open_order(), "", NULL, NULL);
}

static void invalid_record_is_reported(void **context)
{
    static const struct det_record nameless = { .size = 8 };
    struct det_machine_builder *b = open_order();

    (void)context;
    EVENT(b, "LOSE", .payload = &nameless);
    STAY(b, "PAID", DET_LIST("LOSE"));
    expect(b, "bad-record@21", NULL, NULL);
    b = open_order();
    det_machine_builder_data(b, &nameless);
    expect(b, "bad-record@0", NULL, NULL);
}

static void exactly_one_state_is_initial(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "START", .wire = "start", .flags = DET_STATE_INITIAL);
    ON(b, "START", "PAY", "PENDING");
    expect(b, "two-initial@21", "START is a second initial state of order, after PENDING", NULL);
    b = open_builder("light", NULL);
    STATE(b, "red", .wire = "r");
    EVENT(b, "tick");
    ON(b, "red", "tick", "red");
    expect(
        b, "no-initial@1", "light has no initial state",
        "write STATE(red, r, INITIAL) if it starts there");
}

static void a_machine_has_states_and_events(void **context)
{
    struct det_machine_builder *b = open_builder("light", NULL);

    (void)context;
    expect(b, "no-states@0 no-states@0", "light has no states", NULL);
    b = open_builder("light", NULL);
    STATE(b, "red", .flags = DET_STATE_INITIAL);
    expect(b, "no-states@0", "light has no events", NULL);
    b = open_builder("light", NULL);
    STATE(b, "red", .flags = DET_STATE_INITIAL | DET_STATE_FINAL);
    EVENT(b, "tick");
    STAY(b, "red", DET_LIST("tick"));
    expect(b, "", NULL, NULL);
}

static void an_internal_event_is_produced(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    EVENT(b, "LATE", .is_internal = true);
    STAY(b, "PAID", DET_LIST("LATE"));
    expect(
        b, "not-produced@21", "LATE is internal, and produced by no effect or timeout of order",
        NULL);
    b = open_order();
    EVENT(b, "LATE", .is_internal = true);
    STAY(b, "PAID", DET_LIST("LATE"));
    ON(b, "CHARGING", "PAY", "PAID", .within = { DET_SECOND, "LATE", NULL });
    expect(b, "", NULL, NULL);
}

static void every_event_is_taken(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    EVENT(b, "LOSE");
    expect(b, "not-taken@21", "LOSE is accepted by no transition of order", NULL);
}

static void every_state_is_entered(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST");
    ON(b, "LOST", "PAY", "PAID");
    expect(b, "not-entered@21", "LOST is entered by no transition of order", NULL);
    /* An overridden row enters as well, and then the table says that it is not reached. */
    b = open_order();
    STATE(b, "LOST");
    ON(b, "LOST", "PAY", "PAID");
    ON(b, "PAID", "EXPIRED", "LOST");
    OVERRIDE(b, "PAID", "EXPIRED", "PENDING");
    expect(
        b, "unreachable@21 overrides@24", "LOST cannot be reached from PENDING, where order starts",
        NULL);
}

static void timeout_must_be_handled_in_its_state(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    AFTER(b, "CHARGING", DET_SECOND, "EXPIRED");
    expect(
        b, "timeout-unanswered@21",
        "CHARGING of order has a timeout with EXPIRED, but does not accept it",
        "add a transition: ON(CHARGING, EXPIRED, ...)");
    b = open_order();
    ON(b, "PAID", "EXPIRED", "CHARGING", .within = { DET_SECOND, "EXPIRED", NULL });
    expect(
        b, "timeout-unanswered@21",
        "CHARGING of order is entered with the timeout EXPIRED, but does not accept it", NULL);
    /* The policy of the event does not count, as in C. */
    b = open_order();
    AFTER(b, "CHARGING", DET_SECOND, "EXPIRED");
    det_machine_builder_event_unhandled(b, "EXPIRED", DET_UNHANDLED_IGNORE);
    expect(b, "timeout-unanswered@21", NULL, NULL);
}

static void a_final_state_may_have_a_timeout(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STAY(b, "SHIPPED", DET_LIST("EXPIRED"));
    AFTER(b, "SHIPPED", DET_SECOND, "EXPIRED");
    expect(b, "", NULL, NULL);
}

static void unread_rows_suppress_findings_of_missing_parts(void **context)
{
    struct det_machine_builder *b = open_order();

    (void)context;
    STATE(b, "LOST");
    EVENT(b, "LOSE", .is_internal = true);
    AFTER(b, "CHARGING", DET_SECOND, "EXPIRED");
    det_machine_builder_report(
        b, DET_RULE_SYNTAX, &(struct det_place){ .line = 99 }, "there is no )");
    expect(b, "syntax@99", "there is no )", NULL);
    b = open_builder("light", NULL);
    det_machine_builder_report(
        b, DET_RULE_BAD_INCLUDE, &(struct det_place){ .line = 1 }, "it cannot be read");
    expect(b, "bad-include@1", NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_machine_breaks_no_rule),
        cmocka_unit_test(invalid_record_is_reported),
        cmocka_unit_test(exactly_one_state_is_initial),
        cmocka_unit_test(a_machine_has_states_and_events),
        cmocka_unit_test(an_internal_event_is_produced),
        cmocka_unit_test(every_event_is_taken),
        cmocka_unit_test(every_state_is_entered),
        cmocka_unit_test(timeout_must_be_handled_in_its_state),
        cmocka_unit_test(a_final_state_may_have_a_timeout),
        cmocka_unit_test(unread_rows_suppress_findings_of_missing_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
