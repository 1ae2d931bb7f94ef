/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_timer_test.c - timers: never early, once, of the visit or by name, over restarts, and
 * when the instance does not take them. */
#include "runtime/contract_test.h"

struct seen_timers {
    struct det_timer_record rows[4];
    char names[4][32];
    size_t count;
};

static int see_timer(void *context, const struct det_timer_record *row)
{
    struct seen_timers *seen = context;

    if (seen->count < 4) {
        seen->rows[seen->count] = *row;
        snprintf(seen->names[seen->count], sizeof seen->names[0], "%s", row->name);
    }
    seen->count++;
    return 0;
}

static size_t inspect(struct lab *lab, const char *name, struct det_timer_record *ret)
{
    struct seen_timers seen = { 0 };
    size_t count = 0;

    assert_int_equal(
        det_runtime_timers(lab->runtime, &probe_machine, "a", see_timer, &seen, NULL), 0);
    for (size_t i = 0; i < seen.count; i++) {
        if (strcmp(seen.names[i], name) != 0)
            continue;
        if (ret != NULL)
            *ret = seen.rows[i];
        count++;
    }
    return count;
}

static const struct lab_note *last_note(const struct lab *lab)
{
    return &lab->notes[lab->note_count - 1];
}

static void a_states_timer_fires_at_exactly_its_deadline_and_once(void **unused)
{
    struct lab *lab = lab_open();
    struct det_timer_record row;
    det_time due;

    (void)unused;
    lab_busy(lab, "a");
    due = lab_wall(lab) + 30 * DET_SECOND;
    assert_int_equal(inspect(lab, "", &row), 1);
    assert_int_equal(row.due, due);
    assert_int_equal(row.visit, 2);
    assert_int_equal(row.event, PROBE_EXPIRE);
    lab_advance(lab, 30 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_int_equal(last_note(lab)->note.event, PROBE_EXPIRE);
    assert_true(last_note(lab)->note.is_timeout);
    assert_int_equal(last_note(lab)->note.at, due);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    lab_close(lab);
}

static void a_timer_of_less_than_a_second_is_as_exact(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_blink());
    lab_advance(lab, 250 * DET_MILLISECOND - 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static void within_replaces_the_states_own_timeout_for_one_entry(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_rush());
    lab_advance(lab, 5 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_send(lab, "a", lab_go());
    lab_advance(lab, 29 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_close(lab);
}

static void leaving_a_state_takes_its_timer_away(void **unused)
{
    struct lab *lab = lab_open();
    struct det_timer_record row;

    (void)unused;
    lab_busy(lab, "a");
    lab_advance(lab, 29 * DET_SECOND);
    lab_send(lab, "a", probe_back());
    assert_int_equal(inspect(lab, "", &row), 1);
    assert_int_equal(row.event, PROBE_NUDGE);
    assert_int_equal(row.visit, 3);
    lab_send(lab, "a", probe_rest());
    assert_int_equal(inspect(lab, "", NULL), 0);
    lab_advance(lab, DET_DAY);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    lab_close(lab);
}

static void timeout_handled_by_a_stay_fires_once(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_advance(lab, DET_DAY);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    assert_int_equal(inspect(lab, "", NULL), 0);
    lab_close(lab);
}

static void a_named_timer_survives_changes_of_state(void **unused)
{
    struct lab *lab = lab_open();
    det_time armed_at;
    struct det_timer_record row;

    (void)unused;
    lab_start(lab, "a");
    lab_advance(lab, 5);
    armed_at = lab_wall(lab);
    lab_send(lab, "a", probe_arm());
    lab_send(lab, "a", lab_go());
    lab_send(lab, "a", probe_back());
    lab_send(lab, "a", probe_rest());
    assert_int_equal(inspect(lab, "reminder", &row), 1);
    assert_int_equal(row.visit, 1);
    assert_int_equal(row.event, PROBE_REMIND);
    assert_int_equal(row.due, armed_at + 10 * DET_SECOND);
    lab_advance(lab, 10 * DET_SECOND);
    assert_int_equal(last_note(lab)->note.event, PROBE_REMIND);
    assert_int_equal(last_note(lab)->event.remind.armed_at, armed_at);
    assert_int_equal(inspect(lab, "reminder", NULL), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 5);
    lab_close(lab);
}

static void arming_an_armed_timer_moves_it(void **unused)
{
    struct lab *lab = lab_open();
    struct det_timer_record row;
    det_time armed_at;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm());
    lab_advance(lab, 9 * DET_SECOND);
    armed_at = lab_wall(lab);
    lab_send(lab, "a", probe_arm());
    assert_int_equal(inspect(lab, "reminder", &row), 1);
    assert_int_equal(row.due, armed_at + 10 * DET_SECOND);
    lab_advance(lab, 10 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").sequence, 4);
    assert_int_equal(last_note(lab)->event.remind.armed_at, armed_at);
    lab_close(lab);
}

static void cleared_timer_does_not_fire(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    assert_int_equal(inspect(lab, "reminder", NULL) + inspect(lab, "alarm", NULL), 2);
    lab_send(lab, "a", probe_disarm());
    lab_send(lab, "a", probe_disarm());
    assert_int_equal(inspect(lab, "reminder", NULL) + inspect(lab, "alarm", NULL), 0);
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    assert_int_equal(lab->incident_count, 0);
    lab_close(lab);
}

static void a_timeout_that_the_state_does_not_accept_is_reported_and_removed(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.kind, DET_INCIDENT_TIMEOUT_REJECTED);
    assert_int_equal(lab->incidents[0].incident.code, DET_ERR_UNHANDLED);
    assert_string_equal(lab->incidents[0].name, "alarm");
    assert_string_equal(lab->incidents[0].instance, "a");
    assert_null(lab->incidents[0].incident.key);
    assert_int_equal(lab_counts(lab).timeouts_rejected, 1);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    assert_int_equal(inspect(lab, "alarm", NULL), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_close(lab);
}

static void a_states_own_timeout_that_a_hook_refuses_is_reported_and_retried(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab->deny = "exit_busy";
    lab_advance(lab, 30 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    assert_int_equal(lab->incident_count, 1);
    assert_int_equal(lab->incidents[0].incident.kind, DET_INCIDENT_TIMEOUT_REJECTED);
    assert_int_equal(lab->incidents[0].incident.code, DET_ERR_ACTION_FAILED);
    assert_string_equal(lab->incidents[0].name, "");
    lab->deny = NULL;
    lab_advance(lab, 10 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    assert_int_equal(lab_counts(lab).timeouts_rejected, 0);
    lab_close(lab);
}

static void a_timeout_that_is_always_refused_becomes_a_dead_letter(void **unused)
{
    struct lab *lab = lab_open();
    size_t reported;

    (void)unused;
    lab_busy(lab, "a");
    lab->deny = "exit_busy";
    lab_advance(lab, DET_DAY);
    reported = lab_incidents(lab, DET_INCIDENT_TIMEOUT_REJECTED);
    assert_true(reported > 1 && reported < 100);
    assert_int_equal(lab_counts(lab).timeouts_rejected, 1);
    assert_int_equal(lab_counts(lab).timeouts_fired, 0);
    lab->deny = NULL;
    lab_advance(lab, DET_DAY);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    assert_int_equal(lab_send(lab, "a", probe_back()).sequence, 2);
    lab_close(lab);
}

static void any_call_that_names_a_machine_lets_its_timers_continue(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance at;

    (void)unused;
    lab_busy(lab, "a");
    det_runtime_close(lab->runtime);
    lab_advance(lab, DET_MINUTE);
    lab_runtime_open(lab);
    lab_settle(lab);
    assert_int_equal(lab_counts(lab).timeouts_fired, 0);
    assert_int_equal(
        det_runtime_get(lab->runtime, &probe_machine, "nobody", &at, NULL, NULL),
        DET_ERR_NOT_FOUND);
    lab_settle(lab);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static void a_restart_restores_the_deadline_and_never_restarts_it(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    for (unsigned i = 0; i < 4; i++) {
        lab_advance(lab, 2 * DET_SECOND);
        before = lab_picture(lab, "a");
        lab_reopen(lab);
        lab_assert_unchanged(lab, "a", before);
    }
    lab_advance(lab, 2 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    lab_reopen(lab);
    lab_advance(lab, 20 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static void timers_due_while_closed_fire_in_order_of_deadline(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    det_runtime_close(lab->runtime);
    lab->runtime = NULL;
    lab_advance(lab, DET_MINUTE);
    lab->note_count = 0;
    lab_runtime_open(lab);
    lab_settle(lab);
    assert_int_equal(lab->note_count, 0);
    assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
    lab_settle(lab);
    assert_int_equal(lab->note_count, 3);
    assert_int_equal(lab->notes[0].note.event, PROBE_REMIND);
    assert_int_equal(lab->notes[1].note.event, PROBE_ALARM);
    assert_int_equal(lab->notes[2].note.event, PROBE_EXPIRE);
    lab_close(lab);
}

/* Serving again and firing are two threads' work, so the order must not be chance. */
static void overdue_timers_fire_by_deadline_whatever_the_arming_order(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);

        lab_start(lab, "a");
        lab_send(lab, "a", probe_arm_both());
        lab_send(lab, "a", probe_rush());
        det_runtime_close(lab->runtime);
        lab->runtime = NULL;
        lab_advance(lab, DET_MINUTE);
        lab->note_count = 0;
        lab_runtime_open(lab);
        assert_int_equal(det_runtime_serve(lab->runtime, &probe_machine, NULL), 0);
        lab_settle(lab);
        assert_int_equal(lab->note_count, 2);
        assert_int_equal(lab->notes[0].note.event, PROBE_EXPIRE);
        assert_int_equal(lab->notes[1].note.event, PROBE_REMIND);
        assert_int_equal(lab_incidents(lab, DET_INCIDENT_TIMEOUT_REJECTED), 1);
        assert_string_equal(lab->incidents[0].name, "alarm");
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_states_timer_fires_at_exactly_its_deadline_and_once),
        cmocka_unit_test(a_timer_of_less_than_a_second_is_as_exact),
        cmocka_unit_test(within_replaces_the_states_own_timeout_for_one_entry),
        cmocka_unit_test(leaving_a_state_takes_its_timer_away),
        cmocka_unit_test(timeout_handled_by_a_stay_fires_once),
        cmocka_unit_test(a_named_timer_survives_changes_of_state),
        cmocka_unit_test(arming_an_armed_timer_moves_it),
        cmocka_unit_test(cleared_timer_does_not_fire),
        cmocka_unit_test(a_timeout_that_the_state_does_not_accept_is_reported_and_removed),
        cmocka_unit_test(a_states_own_timeout_that_a_hook_refuses_is_reported_and_retried),
        cmocka_unit_test(a_timeout_that_is_always_refused_becomes_a_dead_letter),
        cmocka_unit_test(any_call_that_names_a_machine_lets_its_timers_continue),
        cmocka_unit_test(a_restart_restores_the_deadline_and_never_restarts_it),
        cmocka_unit_test(timers_due_while_closed_fire_in_order_of_deadline),
        cmocka_unit_test(overdue_timers_fire_by_deadline_whatever_the_arming_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
