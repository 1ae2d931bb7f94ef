/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_stop_test.c - stopping by hand and by a transition, and events that a state does not
 * take: ignored, deferred, put aside; always counted. */
#include "runtime/contract_test.h"

static int count_timer(void *context, const struct det_timer_record *row)
{
    (void)row;
    ++*(size_t *)context;
    return 0;
}

static size_t timers_of(struct lab *lab, const char *instance)
{
    size_t count = 0;

    assert_int_equal(
        det_runtime_timers(lab->runtime, &probe_machine, instance, count_timer, &count, NULL), 0);
    return count;
}

static int stop(struct lab *lab, const char *instance, const char *reason, struct det_sent *ret)
{
    return probe_instance_cancel(lab->runtime, instance, reason, ret);
}

static void a_manual_stop_is_recorded_with_its_reason(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance at;
    struct det_sent sent;
    struct lab_picture *picture;

    (void)unused;
    lab_busy(lab, "a");
    lab_advance(lab, DET_SECOND);
    assert_int_equal(stop(lab, "a", "no longer wanted", &sent), 0);
    assert_int_equal(sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(sent.state, PROBE_BUSY);
    assert_int_equal(sent.sequence, 2);
    at = lab_get(lab, "a");
    assert_true(at.is_stopped);
    assert_string_equal(at.reason, "no longer wanted");
    assert_int_equal(at.sequence, 2);
    assert_int_equal(at.state, PROBE_BUSY);
    picture = lab_picture(lab, "a");
    assert_non_null(strstr(picture->text, "event 2 2 1>1 65535 3 0 [-] [-] none"));
    free(picture);
    lab_close(lab);
}

static void the_timers_of_a_stopped_instance_are_gone(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_busy(lab, "b");
    lab_send(lab, "a", probe_arm_both());
    lab_send(lab, "b", probe_arm_both());
    assert_int_equal(timers_of(lab, "a"), 3);
    assert_int_equal(stop(lab, "a", "enough", NULL), 0);
    lab_send(lab, "b", probe_quit());
    assert_int_equal(timers_of(lab, "a"), 0);
    assert_int_equal(timers_of(lab, "b"), 0);
    lab_advance(lab, DET_DAY);
    lab_reopen(lab);
    lab_advance(lab, DET_DAY);
    assert_int_equal(lab_counts(lab).timeouts_fired, 0);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    assert_int_equal(lab_get(lab, "b").sequence, 3);
    assert_int_equal(lab->incident_count, 0);
    lab_close(lab);
}

static void stopping_again_is_fine_and_keeps_the_first_reason(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    assert_int_equal(stop(lab, "a", "first", NULL), 0);
    before = lab_picture(lab, "a");
    lab->note_count = 0;
    assert_int_equal(stop(lab, "a", "second", &sent), 0);
    assert_int_equal(sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(sent.sequence, 2);
    assert_int_equal(lab->note_count, 0);
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_stop_is_durable(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    assert_int_equal(stop(lab, "a", "first", NULL), 0);
    before = lab_picture(lab, "a");
    lab_reopen(lab);
    lab_assert_unchanged(lab, "a", before);
    assert_int_equal(probe_send(lab->runtime, "a", probe_touch(), NULL), DET_ERR_STOPPED);
    assert_int_equal(stop(lab, "a", "second", NULL), 0);
    assert_string_equal(lab_get(lab, "a").reason, "first");
    lab_close(lab);
}

static void a_stop_transition_leaves_the_state_with_the_rows_reason(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance at;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_quit());
    assert_string_equal(lab->log, "exit_busy check_quit note:2");
    at = lab_get(lab, "a");
    assert_true(at.is_stopped);
    assert_string_equal(at.reason, "quit was sent");
    assert_int_equal(at.state, PROBE_BUSY);
    lab_busy(lab, "b");
    lab_send(lab, "b", probe_crash());
    assert_string_equal(lab_get(lab, "b").reason, "");
    lab_close(lab);
}

static void a_send_to_a_stopped_instance_commits_nothing(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event event = probe_touch();
    const void *events[] = { &event };
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_quit());
    before = lab_picture(lab, "a");
    lab->log[0] = '\0';
    assert_int_equal(probe_send(lab->runtime, "a", event, NULL), DET_ERR_STOPPED);
    assert_int_equal(
        det_runtime_send_all(lab->runtime, &probe_machine, "a", events, 1, NULL, NULL, NULL),
        DET_ERR_STOPPED);
    assert_int_equal(probe_send(lab->runtime, "a", probe_shrug(), NULL), DET_ERR_STOPPED);
    assert_int_equal(
        probe_instance_start(lab->runtime, "a", (struct probe_data){ 0 }, NULL), DET_ERR_EXISTS);
    assert_string_equal(lab->log, "");
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_reason_has_at_most_reason_max_bytes(void **unused)
{
    struct lab *lab = lab_open();
    char reason[DET_REASON_MAX + 2];
    int r;

    (void)unused;
    memset(reason, 'x', sizeof reason);
    reason[DET_REASON_MAX + 1] = '\0';
    lab_start(lab, "a");
    lab_start(lab, "b");
    r = stop(lab, "a", reason, NULL);
    assert_true(r == DET_ERR_LIMIT || r == DET_ERR_INVALID);
    assert_false(lab_get(lab, "a").is_stopped);
    assert_int_equal(lab_get(lab, "a").sequence, 0);
    reason[DET_REASON_MAX] = '\0';
    assert_int_equal(stop(lab, "a", reason, NULL), 0);
    assert_string_equal(lab_get(lab, "a").reason, reason);
    assert_int_equal(stop(lab, "b", reason + 1, NULL), 0);
    assert_string_equal(lab_get(lab, "b").reason, reason + 1);
    lab_close(lab);
}

static void an_ignored_event_is_counted_and_not_recorded(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;
    struct lab_picture *before;

    (void)unused;
    lab_start(lab, "a");
    before = lab_picture(lab, "a");
    sent = lab_send(lab, "a", probe_shrug());
    assert_int_equal(sent.outcome, DET_OUTCOME_IGNORED);
    assert_int_equal(sent.state, PROBE_IDLE);
    assert_int_equal(sent.sequence, 0);
    assert_int_equal(sent.visit, 1);
    lab_assert_unchanged(lab, "a", before);
    assert_int_equal(lab_counts(lab).unhandled, 1);
    assert_int_equal(lab->incident_count, 0);
    lab_close(lab);
}

/* What is acknowledged is in the journal: only an ignored event is not recorded. */
static void a_dead_letter_is_recorded_counted_and_reported(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;
    struct det_instance at;

    (void)unused;
    lab_start(lab, "a");
    sent = lab_send(lab, "a", probe_letter());
    assert_int_equal(sent.outcome, DET_OUTCOME_DEAD_LETTER);
    assert_int_equal(sent.state, PROBE_IDLE);
    assert_int_equal(sent.sequence, 1);
    at = lab_get(lab, "a");
    assert_int_equal(at.visit, 1);
    assert_int_equal(at.transition_count, 0);
    assert_int_equal(lab->notes[1].note.event, PROBE_LETTER);
    assert_int_equal(lab->notes[1].note.outcome, DET_OUTCOME_DEAD_LETTER);
    assert_int_equal(lab_counts(lab).unhandled, 1);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.kind, DET_INCIDENT_EVENT_DEAD);
    assert_string_equal(lab->incidents[0].name, "letter");
    assert_string_equal(lab->incidents[0].instance, "a");
    assert_null(lab->incidents[0].incident.key);
    lab_close(lab);
}

static void every_unhandled_event_is_counted(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    assert_int_equal(probe_send(lab->runtime, "a", probe_again(), NULL), DET_ERR_UNHANDLED);
    lab_send(lab, "a", probe_shrug());
    lab_send(lab, "a", probe_letter());
    lab_send(lab, "a", lab_later(1));
    assert_int_equal(lab_counts(lab).unhandled, 4);
    lab_close(lab);
}

static void deferred_events_are_delivered_in_order_when_accepted(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    for (uint64_t i = 0; i < 5; i++) {
        sent = lab_send(lab, "a", lab_later(i));
        assert_int_equal(sent.outcome, DET_OUTCOME_DEFERRED);
        assert_int_equal(sent.sequence, i + 1);
        assert_int_equal(sent.visit, 1);
        assert_int_equal(lab_get(lab, "a").deferred_count, i + 1);
    }
    lab_send(lab, "a", probe_touch());
    lab_settle(lab);
    assert_int_equal(lab_get(lab, "a").deferred_count, 5);
    lab_send(lab, "a", probe_rest());
    lab_settle(lab);
    assert_int_equal(lab_get(lab, "a").deferred_count, 5);
    lab_send(lab, "a", probe_back());
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "abcde");
    assert_int_equal(lab_get(lab, "a").deferred_count, 0);
    assert_int_equal(lab_get(lab, "a").sequence, 14);
    lab_close(lab);
}

static void deferred_event_that_leaves_the_state_keeps_the_rest(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", lab_later(0));
    lab_send(lab, "a", probe_hop());
    lab_send(lab, "a", lab_later(1));
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_int_equal(lab_get(lab, "a").state, PROBE_RESTING);
    assert_int_equal(lab_get(lab, "a").deferred_count, 1);
    assert_string_equal(lab_data(lab, "a").trail, "a");
    lab_send(lab, "a", probe_back());
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "ab");
    assert_int_equal(lab_get(lab, "a").deferred_count, 0);
    lab_close(lab);
}

static void deferred_events_outlive_the_runtime(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", lab_later(2));
    lab_send(lab, "a", lab_later(1));
    lab_reopen(lab);
    assert_int_equal(lab_get(lab, "a").deferred_count, 2);
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "cb");
    lab_close(lab);
}

static void a_timeout_that_changes_the_state_brings_deferred_events_back(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_rest());
    lab_send(lab, "a", lab_later(3));
    lab_send(lab, "a", probe_back());
    lab_send(lab, "a", probe_rush());
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "d");
    lab_close(lab);
}

static void a_deferred_event_of_an_instance_that_stops_is_reported(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", lab_later(1));
    lab_send(lab, "a", probe_quit());
    assert_int_equal(lab_get(lab, "a").deferred_count, 0);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.kind, DET_INCIDENT_EVENT_DEAD);
    assert_string_equal(lab->incidents[0].name, "later");
    lab_start(lab, "b");
    lab_send(lab, "b", lab_later(1));
    assert_int_equal(stop(lab, "b", "by hand", NULL), 0);
    assert_int_equal(lab->incident_count, 2);
    assert_string_equal(lab->incidents[1].instance, "b");
    lab_close(lab);
}

static void at_most_deferred_max_events_are_kept(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_start(lab, "a");
    for (uint64_t i = 0; i < DET_DEFERRED_MAX; i++)
        lab_send(lab, "a", lab_later(i));
    before = lab_picture(lab, "a");
    assert_int_equal(probe_send(lab->runtime, "a", lab_later(25), NULL), DET_ERR_LIMIT);
    lab_assert_unchanged(lab, "a", before);
    lab_send(lab, "a", lab_go());
    lab_settle(lab);
    assert_string_equal(lab_data(lab, "a").trail, "abcdefghijklmnop");
    lab_send(lab, "a", probe_back());
    assert_int_equal(lab_send(lab, "a", lab_later(0)).outcome, DET_OUTCOME_DEFERRED);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_stop_is_recorded_with_its_reason),
        cmocka_unit_test(the_timers_of_a_stopped_instance_are_gone),
        cmocka_unit_test(stopping_again_is_fine_and_keeps_the_first_reason),
        cmocka_unit_test(a_stop_is_durable),
        cmocka_unit_test(a_stop_transition_leaves_the_state_with_the_rows_reason),
        cmocka_unit_test(a_send_to_a_stopped_instance_commits_nothing),
        cmocka_unit_test(a_reason_has_at_most_reason_max_bytes),
        cmocka_unit_test(an_ignored_event_is_counted_and_not_recorded),
        cmocka_unit_test(a_dead_letter_is_recorded_counted_and_reported),
        cmocka_unit_test(every_unhandled_event_is_counted),
        cmocka_unit_test(deferred_events_are_delivered_in_order_when_accepted),
        cmocka_unit_test(deferred_event_that_leaves_the_state_keeps_the_rest),
        cmocka_unit_test(deferred_events_outlive_the_runtime),
        cmocka_unit_test(a_timeout_that_changes_the_state_brings_deferred_events_back),
        cmocka_unit_test(a_deferred_event_of_an_instance_that_stops_is_reported),
        cmocka_unit_test(at_most_deferred_max_events_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
