/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_send_test.c - what one send does, in which order, and that a refusal leaves nothing. */
#include "runtime/contract_test.h"

static void a_start_creates_an_instance_in_the_initial_state(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;
    struct det_instance at;

    (void)unused;
    lab_advance(lab, 3 * DET_SECOND);
    assert_int_equal(
        probe_instance_start(lab->runtime, "a", (struct probe_data){ .amount = 5 }, &sent), 0);
    at = lab_get(lab, "a");
    assert_int_equal(sent.state, PROBE_IDLE);
    assert_int_equal(sent.sequence, 0);
    assert_int_equal(sent.visit, 1);
    assert_false(sent.is_duplicate);
    assert_int_equal(at.state, PROBE_IDLE);
    assert_int_equal(at.previous, UINT_MAX);
    assert_int_equal(at.sequence, 0);
    assert_int_equal(at.visit, 1);
    assert_int_equal(at.transition_count, 0);
    assert_int_equal(at.history_count, 0);
    assert_int_equal(at.started_at, lab_wall(lab));
    assert_false(at.is_stopped);
    assert_int_equal(lab_data(lab, "a").amount, 5);
    lab_close(lab);
}

static void at_the_start_the_entry_hook_runs_and_the_timeout_is_armed(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *picture;
    char expected[64];

    (void)unused;
    lab_start(lab, "a");
    assert_string_equal(lab->log, "enter_idle note:0");
    snprintf(
        expected, sizeof expected, "timer [] %u 1 %lld\n", PROBE_NUDGE,
        (long long)lab_wall(lab) + DET_HOUR);
    picture = lab_picture(lab, "a");
    assert_non_null(strstr(picture->text, expected));
    free(picture);
    lab_advance(lab, DET_HOUR - 1);
    assert_int_equal(lab_get(lab, "a").sequence, 0);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    lab_close(lab);
}

static void data_that_is_null_is_all_zero(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_data data;

    (void)unused;
    assert_int_equal(
        det_runtime_start(lab->runtime, &probe_machine, "a", NULL, NULL, NULL, NULL), 0);
    data = lab_data(lab, "a");
    assert_int_equal(data.amount, 0);
    assert_int_equal(data.count, 0);
    assert_string_equal(data.note, "");
    assert_string_equal(data.trail, "");
    lab_close(lab);
}

static void second_start_returns_exists_and_changes_nothing(void **unused)
{
    struct lab *lab = lab_open();
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    before = lab_picture(lab, "a");
    assert_int_equal(
        probe_instance_start(lab->runtime, "a", (struct probe_data){ .amount = 1 }, NULL),
        DET_ERR_EXISTS);
    lab_assert_unchanged(lab, "a", before);
    lab_close(lab);
}

static void a_start_that_its_entry_hook_refuses_leaves_nothing(void **unused)
{
    struct lab *lab = lab_open();
    struct det_error error = { 0 };
    struct det_send_options options = { .event_id = "first" };
    int r;

    (void)unused;
    lab->deny = "enter_idle";
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, NULL, &error);
    assert_int_equal(r, DET_ERR_ACTION_FAILED);
    assert_string_equal(error.action, "enter_idle");
    assert_int_equal(error.cause, LAB_DENIED);
    lab_assert_unchanged(lab, "nobody", lab_picture(lab, "a"));
    assert_int_equal(lab->note_count, 0);
    lab->deny = NULL;
    r = det_runtime_start(lab->runtime, &probe_machine, "a", NULL, &options, NULL, &error);
    assert_int_equal(r, 0);
    lab_close(lab);
}

static void hooks_run_guard_exit_transition_entry_then_commit_then_observer(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_start(lab, "a");
    lab->log[0] = '\0';
    lab_send(lab, "a", lab_go());
    assert_string_equal(lab->log, "may_go exit_idle check_go enter_busy note:1");
    lab->log[0] = '\0';
    lab_send(lab, "a", probe_back());
    assert_string_equal(lab->log, "exit_busy enter_idle note:2");
    lab_close(lab);
}

static void an_effect_runs_after_the_observer_has_seen_the_commit(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", lab_work(1));
    lab_settle(lab);
    assert_string_equal(lab->log, "note:2 job");
    lab_close(lab);
}

static int keep_move(struct lab *lab, const char *name, const struct det_move *move)
{
    struct det_move *moves = lab->context;

    if (strcmp(name, "exit_idle") == 0)
        moves[0] = *move;
    else if (strcmp(name, "enter_busy") == 0)
        moves[1] = *move;
    else if (strcmp(name, "check_touch") == 0)
        moves[2] = *move;
    else if (strcmp(name, "enter_idle") == 0)
        moves[3] = *move;
    return 0;
}

static void move_describes_the_coming_step(void **unused)
{
    struct lab *lab = lab_open();
    struct det_move moves[4] = { 0 };

    (void)unused;
    lab->hook = keep_move;
    lab->context = moves;
    lab_start(lab, "a");
    assert_int_equal(moves[3].sequence, 0);
    assert_int_equal(moves[3].from, PROBE_IDLE);
    assert_int_equal(moves[3].to, PROBE_IDLE);
    lab_advance(lab, 5);
    lab_send(lab, "a", lab_go());
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(moves[i].sequence, 1);
        assert_int_equal(moves[i].visit, 1);
        assert_int_equal(moves[i].from, PROBE_IDLE);
        assert_int_equal(moves[i].to, PROBE_BUSY);
        assert_int_equal(moves[i].now, lab_wall(lab));
        assert_string_equal(moves[i].machine, "probe");
        assert_ptr_equal(moves[i].user, lab);
    }
    lab_send(lab, "a", probe_touch());
    assert_int_equal(moves[2].sequence, 2);
    assert_int_equal(moves[2].visit, 2);
    assert_int_equal(moves[2].from, PROBE_BUSY);
    assert_int_equal(moves[2].to, PROBE_BUSY);
    lab_close(lab);
}

static void send_returns_outcome_state_sequence_and_visit(void **unused)
{
    struct lab *lab = lab_open();
    struct det_sent sent;

    (void)unused;
    lab_start(lab, "a");
    sent = lab_send(lab, "a", lab_go());
    assert_int_equal(sent.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(sent.state, PROBE_BUSY);
    assert_int_equal(sent.sequence, 1);
    assert_int_equal(sent.visit, 2);
    sent = lab_send(lab, "a", probe_touch());
    assert_int_equal(sent.outcome, DET_OUTCOME_STAY);
    assert_int_equal(sent.state, PROBE_BUSY);
    assert_int_equal(sent.sequence, 2);
    assert_int_equal(sent.visit, 2);
    sent = lab_send(lab, "a", probe_quit());
    assert_int_equal(sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(sent.state, PROBE_BUSY);
    assert_int_equal(sent.sequence, 3);
    assert_false(sent.is_duplicate);
    lab_close(lab);
}

static void options_and_answer_may_be_null(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_event event = lab_go();
    const void *events[] = { &event };

    (void)unused;
    assert_int_equal(
        det_runtime_start(lab->runtime, &probe_machine, "a", NULL, NULL, NULL, NULL), 0);
    assert_int_equal(
        det_runtime_send(lab->runtime, &probe_machine, "a", &event, NULL, NULL, NULL), 0);
    event = probe_touch();
    assert_int_equal(
        det_runtime_send_all(lab->runtime, &probe_machine, "a", events, 1, NULL, NULL, NULL), 0);
    assert_int_equal(
        det_runtime_cancel(lab->runtime, &probe_machine, "a", "over", NULL, NULL, NULL), 0);
    assert_int_equal(lab_get(lab, "a").sequence, 3);
    lab_close(lab);
}

static void data_is_kept_and_then_updated(void **unused)
{
    struct lab *lab = lab_open();
    struct probe_data data;

    (void)unused;
    lab_start(lab, "a");
    lab_send(lab, "a", lab_go());
    lab_send(lab, "a", probe_touch());
    data = lab_data(lab, "a");
    assert_int_equal(data.amount, 7);
    assert_string_equal(data.note, "seven");
    assert_int_equal(data.count, 2);
    lab_close(lab);
}

/* Sends `event` to a busy or idle instance that has timers, events and an effect, with `deny`
 * saying no, and looks for anything that changed. */
static void assert_refused(const char *deny, bool is_busy, struct probe_event event, int expected)
{
    struct lab *lab = lab_open();
    struct det_error error = { 0 };
    struct det_send_options options = { .event_id = "once" };
    struct det_sent sent = { .sequence = 99 };
    struct lab_picture *before;

    lab_start(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    if (is_busy) {
        lab_send(lab, "a", lab_go());
        lab_send(lab, "a", lab_work(3));
    }
    lab_send(lab, "a", probe_touch());
    lab_advance(lab, DET_SECOND);
    before = lab_picture(lab, "a");
    lab->deny = deny;
    lab->note_count = 0;
    assert_int_equal(probe_send_with(lab->runtime, "a", event, &options, &sent, &error), expected);
    assert_int_equal(error.code, expected);
    assert_string_equal(error.action, deny);
    assert_string_equal(error.state, is_busy ? "busy" : "idle");
    assert_string_equal(error.event, probe_machine.events[event.kind].name);
    assert_int_equal(error.cause, expected == DET_ERR_ACTION_FAILED ? LAB_DENIED : 0);
    assert_int_equal(sent.sequence, 99);
    lab_assert_unchanged(lab, "a", before);
    assert_int_equal(lab->note_count, 0);
    lab->deny = NULL;
    assert_int_equal(probe_send_with(lab->runtime, "a", event, &options, &sent, &error), 0);
    assert_false(sent.is_duplicate);
    lab_close(lab);
}

static void refusing_guard_leaves_nothing(void **unused)
{
    (void)unused;
    assert_refused("may_go", false, lab_go(), DET_ERR_REFUSED);
}

static void a_refusing_exit_hook_leaves_nothing(void **unused)
{
    (void)unused;
    assert_refused("exit_idle", false, lab_go(), DET_ERR_ACTION_FAILED);
    assert_refused("exit_busy", true, probe_back(), DET_ERR_ACTION_FAILED);
}

static void a_refusing_hook_on_the_transition_leaves_nothing(void **unused)
{
    (void)unused;
    assert_refused("check_go", false, lab_go(), DET_ERR_ACTION_FAILED);
    assert_refused("check_again", true, probe_again(), DET_ERR_ACTION_FAILED);
    assert_refused("check_touch", true, probe_touch(), DET_ERR_ACTION_FAILED);
    assert_refused("check_quit", true, probe_quit(), DET_ERR_ACTION_FAILED);
}

static void a_refusing_entry_hook_leaves_nothing(void **unused)
{
    (void)unused;
    assert_refused("enter_busy", false, lab_go(), DET_ERR_ACTION_FAILED);
    assert_refused("enter_idle", true, probe_back(), DET_ERR_ACTION_FAILED);
}

static void first_refusal_prevents_the_remaining_calls(void **unused)
{
    static const struct {
        const char *deny;
        const char *log;
    } cases[] = {
        { "may_go", "may_go" },
        { "exit_idle", "may_go exit_idle" },
        { "check_go", "may_go exit_idle check_go" },
        { "enter_busy", "may_go exit_idle check_go enter_busy" },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab *lab = lab_open();

        lab_start(lab, "a");
        lab->log[0] = '\0';
        lab->deny = cases[i].deny;
        assert_true(probe_send(lab->runtime, "a", lab_go(), NULL) < 0);
        assert_string_equal(lab->log, cases[i].log);
        lab_close(lab);
    }
}

static void self_goto_begins_a_new_visit(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance at;
    struct lab_picture *picture;
    char expected[64];

    (void)unused;
    lab_busy(lab, "a");
    lab_advance(lab, 20 * DET_SECOND);
    lab_send(lab, "a", probe_again());
    assert_string_equal(lab->log, "exit_busy check_again enter_busy note:2");
    at = lab_get(lab, "a");
    assert_int_equal(at.visit, 3);
    assert_int_equal(at.transition_count, 2);
    assert_int_equal(at.history_count, 2);
    assert_int_equal(at.history[0], PROBE_BUSY);
    assert_int_equal(at.history[1], PROBE_IDLE);
    assert_int_equal(at.previous, PROBE_BUSY);
    assert_int_equal(at.last_transition_at, lab_wall(lab));
    snprintf(
        expected, sizeof expected, "timer [] %u 3 %lld\n", PROBE_EXPIRE,
        (long long)lab_wall(lab) + 30 * DET_SECOND);
    picture = lab_picture(lab, "a");
    assert_non_null(strstr(picture->text, expected));
    free(picture);
    lab_advance(lab, 30 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static void a_stay_is_recorded_in_the_same_visit_with_the_timer_untouched(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance before, after;

    (void)unused;
    lab_busy(lab, "a");
    before = lab_get(lab, "a");
    lab_advance(lab, 20 * DET_SECOND);
    lab_send(lab, "a", probe_touch());
    assert_string_equal(lab->log, "check_touch note:2");
    after = lab_get(lab, "a");
    assert_int_equal(after.sequence, 2);
    assert_int_equal(after.visit, before.visit);
    assert_int_equal(after.transition_count, before.transition_count);
    assert_int_equal(after.history_count, before.history_count);
    assert_int_equal(after.last_transition_at, before.last_transition_at);
    lab_advance(lab, 10 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    lab_close(lab);
}

static void final_state_accepts_no_event_but_is_not_stopped(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_finish());
    assert_false(lab_get(lab, "a").is_stopped);
    assert_int_equal(probe_send(lab->runtime, "a", probe_back(), NULL), DET_ERR_UNHANDLED);
    lab_close(lab);
}

static void an_event_the_state_does_not_take_leaves_nothing(void **unused)
{
    struct lab *lab = lab_open();
    struct det_error error = { 0 };
    struct lab_picture *before;

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm());
    before = lab_picture(lab, "a");
    assert_int_equal(
        probe_send_with(lab->runtime, "a", lab_go(), NULL, NULL, &error), DET_ERR_UNHANDLED);
    assert_string_equal(error.state, "busy");
    assert_string_equal(error.event, "go");
    assert_true(strlen(error.text) > 0);
    lab_assert_unchanged(lab, "a", before);
    assert_int_equal(lab_counts(lab).unhandled, 1);
    lab_close(lab);
}

static void a_send_to_an_unknown_instance_is_not_found(void **unused)
{
    struct lab *lab = lab_open();
    struct det_instance at;

    (void)unused;
    assert_int_equal(probe_send(lab->runtime, "a", lab_go(), NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(probe_instance_cancel(lab->runtime, "a", "why", NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(probe_instance_get(lab->runtime, "a", &at, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(lab_counts(lab).instances, 0);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_creates_an_instance_in_the_initial_state),
        cmocka_unit_test(at_the_start_the_entry_hook_runs_and_the_timeout_is_armed),
        cmocka_unit_test(data_that_is_null_is_all_zero),
        cmocka_unit_test(second_start_returns_exists_and_changes_nothing),
        cmocka_unit_test(a_start_that_its_entry_hook_refuses_leaves_nothing),
        cmocka_unit_test(hooks_run_guard_exit_transition_entry_then_commit_then_observer),
        cmocka_unit_test(an_effect_runs_after_the_observer_has_seen_the_commit),
        cmocka_unit_test(move_describes_the_coming_step),
        cmocka_unit_test(send_returns_outcome_state_sequence_and_visit),
        cmocka_unit_test(options_and_answer_may_be_null),
        cmocka_unit_test(data_is_kept_and_then_updated),
        cmocka_unit_test(refusing_guard_leaves_nothing),
        cmocka_unit_test(a_refusing_exit_hook_leaves_nothing),
        cmocka_unit_test(a_refusing_hook_on_the_transition_leaves_nothing),
        cmocka_unit_test(a_refusing_entry_hook_leaves_nothing),
        cmocka_unit_test(first_refusal_prevents_the_remaining_calls),
        cmocka_unit_test(self_goto_begins_a_new_visit),
        cmocka_unit_test(a_stay_is_recorded_in_the_same_visit_with_the_timer_untouched),
        cmocka_unit_test(final_state_accepts_no_event_but_is_not_stopped),
        cmocka_unit_test(an_event_the_state_does_not_take_leaves_nothing),
        cmocka_unit_test(a_send_to_an_unknown_instance_is_not_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
