/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* incident_test.c - the incidents reported to the observer: their texts and attempts. */
#include "lib/test.h"
#include "runtime/runtime_test.h"

static void pay(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
}

static void assert_reported(
    const struct fixture *f, enum det_incident_kind kind, uint32_t attempt, const char *text)
{
    assert_string_equal(f->control.incident_text, text);
    assert_int_equal(f->control.incident.kind, kind);
    assert_int_equal(f->control.incident.attempt, attempt);
}

static void failing(struct fixture *f)
{
    f->control.effect_failures = 99;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_EFFECT_FAILED, 1,
        "charge_card of order o-1 failed with IO in attempt 1, and is retried");
    advance(f, 10 * DET_MINUTE - 1);
    assert_reported(
        f, DET_INCIDENT_EFFECT_DEAD, 8,
        "charge_card of order o-1 failed with IO in attempt 8, and is a dead letter");
}

static void failed_attempt_reports_its_error_and_the_next_retry(void **state)
{
    (void)state;
    in_fixture(failing);
}

static void numbered(struct fixture *f)
{
    f->control.effect_result = -4711;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_EFFECT_FAILED, 1,
        "charge_card of order o-1 failed with -4711 in attempt 1, and is retried");
}

static void an_error_that_is_not_ours_is_reported_by_its_number(void **state)
{
    (void)state;
    in_fixture(numbered);
}

static void answering(struct fixture *f)
{
    f->control.effect_result = 7;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_EFFECT_FAILED, 1,
        "charge_card of order o-1 failed with INVALID in attempt 1, and is retried: "
        "returned 7, which is neither DET_EFFECT_DONE, DET_EFFECT_PRODUCED, DET_EFFECT_POSTPONED "
        "nor an error");
}

static void invalid_effect_result_is_named_in_the_report(void **state)
{
    (void)state;
    in_fixture(answering);
}

static void unlisted(struct fixture *f)
{
    f->control.effect_failures = 1;
    f->control.product = SHIP;
    pay(f);
    advance(f, DET_MINUTE);
    assert_reported(
        f, DET_INCIDENT_PRODUCT_REJECTED, 2,
        "the event that charge_card of order o-1 produced is rejected: EFFECT(charge_card) does "
        "not list "
        "SHIP");
    assert_int_equal(f->control.incident.code, DET_ERR_INVALID);
    assert_int_equal(effects(f, "o-1")->first.attempts, 2);
}

static void a_product_that_the_effect_does_not_list_is_named_with_its_attempt(void **state)
{
    (void)state;
    in_fixture(unlisted);
}

static void foreign(struct fixture *f)
{
    f->control.product = 4711;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_PRODUCT_REJECTED, 1,
        "the event that charge_card of order o-1 produced is rejected: 4711 is not an event of "
        "order");
}

static void a_product_that_is_no_event_is_reported_by_its_number(void **state)
{
    (void)state;
    in_fixture(foreign);
}

static void unwritten(struct fixture *f)
{
    f->control.writes_nothing = true;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_PRODUCT_REJECTED, 1,
        "the event that charge_card of order o-1 produced is rejected: returned "
        "DET_EFFECT_PRODUCED, but wrote no event");
    assert_int_equal(f->control.incident.code, DET_ERR_INVALID);
    assert_int_equal(get(f, "o-1").state, CHARGING);
}

static void an_effect_that_produces_without_writing_an_event_is_reported(void **state)
{
    (void)state;
    in_fixture(unwritten);
}

static void leave_first(void *context)
{
    struct fixture *f = context;

    f->control.in_effect = NULL;
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
}

static void not_taken(struct fixture *f)
{
    f->control.effect_failures = 1;
    pay(f);
    settle(f);
    f->control.in_effect = leave_first;
    f->control.context = f;
    advance(f, DET_SECOND);
    assert_reported(
        f, DET_INCIDENT_PRODUCT_REJECTED, 2,
        "the event that charge_card of order o-1 produced is rejected: order o-1 is CANCELLED, "
        "which does "
        "not accept CHARGED");
}

static void unhandled_product_report_names_the_state(void **state)
{
    (void)state;
    in_fixture(not_taken);
}

static void stale_product_report_says_the_visit_is_over(void **state)
{
    struct fixture *f =
        fixture_open((struct det_runtime_options){ .effects = { .same_visit_only = true } });

    (void)state;
    f->control.in_effect = leave_first;
    f->control.context = f;
    pay(f);
    settle(f);
    assert_reported(
        f, DET_INCIDENT_PRODUCT_REJECTED, 1,
        "the event that charge_card of order o-1 produced is rejected: the visit that requested it "
        "has ended");
    assert_int_equal(f->control.incident.code, DET_ERR_CONFLICT);
    fixture_close(f);
}

static void timing_out(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.exit_result = DET_ERR_BUSY;
    advance(f, 30 * DET_MINUTE);
    assert_reported(
        f, DET_INCIDENT_TIMEOUT_REJECTED, 1,
        "the timeout of order o-1 is rejected: order o-1: leave failed with BUSY");
}

static void unhandled_timeout_report_says_why(void **state)
{
    (void)state;
    in_fixture(timing_out);
}

static void reminding(struct fixture *f)
{
    pay(f);
    settle(f);
    assert_int_equal(send_kind(f, "o-1", SHIP), 0);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-1", "lost", NULL, NULL, NULL), 0);
    assert_int_equal(f->control.incidents, 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-2", JUNK), 0);
    assert_reported(
        f, DET_INCIDENT_EVENT_DEAD, 0,
        "event JUNK of order o-2 is a dead letter: the state does not accept this event");
    assert_int_equal(send_kind(f, "o-2", NOTE), 0);
    assert_int_equal(det_runtime_cancel(f->runtime, f->order, "o-2", "lost", NULL, NULL, NULL), 0);
    assert_reported(
        f, DET_INCIDENT_EVENT_DEAD, 0,
        "event NOTE of order o-2 is a dead letter: the instance has stopped");
}

static void dead_letter_report_says_why(void **state)
{
    (void)state;
    in_fixture(reminding);
}

static void hooked(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.hook_result = DET_ERR_INVALID;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    assert_string_equal(f->error.text, "order o-1: check failed with INVALID");
    assert_int_equal(f->error.cause, DET_ERR_INVALID);
    f->control.hook_result = 42;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    assert_string_equal(f->error.text, "order o-1: check failed with 42");
    assert_int_equal(f->error.cause, 42);
}

static void a_sender_gets_the_name_of_the_hooks_error(void **state)
{
    (void)state;
    in_fixture(hooked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_attempt_reports_its_error_and_the_next_retry),
        cmocka_unit_test(an_error_that_is_not_ours_is_reported_by_its_number),
        cmocka_unit_test(invalid_effect_result_is_named_in_the_report),
        cmocka_unit_test(a_product_that_the_effect_does_not_list_is_named_with_its_attempt),
        cmocka_unit_test(a_product_that_is_no_event_is_reported_by_its_number),
        cmocka_unit_test(an_effect_that_produces_without_writing_an_event_is_reported),
        cmocka_unit_test(unhandled_product_report_names_the_state),
        cmocka_unit_test(stale_product_report_says_the_visit_is_over),
        cmocka_unit_test(unhandled_timeout_report_says_why),
        cmocka_unit_test(dead_letter_report_says_why),
        cmocka_unit_test(a_sender_gets_the_name_of_the_hooks_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
