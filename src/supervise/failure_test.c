/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* failure_test.c - errors drive the machine: every way to fail, and the last resort where that
 * cannot be. */
#include "supervise/pump_test.h"

/* A pump that runs and whose function `name` will fail. */
static struct pump *break_it(struct fixture *fixture, const char *name)
{
    run_it(fixture);
    fixture->pump.broken = name;
    fixture->pump.error = DET_ERR_IO;
    return &fixture->pump;
}

static void assert_reported(
    struct fixture *fixture, enum det_failure_source source, int code, const char *text)
{
    struct pump *pump = &fixture->pump;

    assert_int_equal(pump->reported.source, source);
    assert_int_equal(pump->reported.code, code);
    assert_false(pump->reported.is_last_resort);
    assert_string_equal(pump->reported.text, text);
    assert_int_equal(pump->completions, 0);
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_BROKEN);
    assert_int_equal(det_component_failure(&pump->component)->code, 0);
}

static void assert_ended(
    struct fixture *fixture, enum det_failure_source source, int code, const char *text)
{
    struct det_component_end end;

    assert_int_equal(fixture->pump.completions, 1);
    assert_int_equal(det_handle_wait(fixture->handle, 0, &end), 0);
    assert_string_equal(end.failure.text, text);
    assert_int_equal(end.failure.source, source);
    assert_int_equal(end.failure.code, code);
    assert_true(end.failure.is_last_resort);
    assert_int_equal(det_executor_counts(fixture->executor).failed, 1);
    turn(fixture);
    assert_int_equal(fixture->pump.completions, 1);
}

/* Statement 1. */
static void a_dispatch_error_runs_failure_actions_once_then_the_completion_once(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");
    struct det_component_end end;

    det_component_wake(&pump->component);
    turn(fixture);
    assert_string_equal(pump->trace, "run_step leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_DISPATCH, DET_ERR_IO, "dispatch of running: input or output failed");
    assert_int_equal(offered(fixture, pump, pump_quit()), 0);
    assert_string_equal(pump->trace, "run_step leave_running note_failure close_port completed ");
    assert_int_equal(det_handle_wait(fixture->handle, 0, &end), 0);
    assert_int_equal(end.failure.source, DET_FAILURE_DISPATCH);
    assert_false(end.failure.is_last_resort);
    assert_int_equal(pump->completions, 1);
}

/* Statement 5. */
static void a_watcher_sees_the_failed_state_after_a_dispatch_error(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");
    uint64_t changes = det_handle_changes(fixture->handle);

    det_component_wake(&pump->component);
    turn(fixture);
    assert_int_equal(det_handle_wait_change(fixture->handle, changes, 0), 0);
    assert_int_equal(det_handle_changes(fixture->handle), changes + 1);
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_BROKEN);
}

static void a_failure_has_the_text_that_its_function_gave(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");

    pump->text = "port 3";
    det_component_wake(&pump->component);
    turn(fixture);
    assert_reported(
        fixture, DET_FAILURE_DISPATCH, DET_ERR_IO,
        "dispatch of running: port 3: input or output failed");
}

static void note_in_vain(struct pump *pump)
{
    (void)det_component_fail(&pump->component, DET_ERR_IO, "never mind");
}

static void unused_failure_text_is_discarded(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "count_tick");

    pump->in_step = note_in_vain;
    det_component_wake(&pump->component);
    turn(fixture);
    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_IO);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action count_tick in state running: input or output failed");
}

static void a_text_that_is_too_long_is_cut(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");
    char text[500];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    pump->text = text;
    det_component_wake(&pump->component);
    turn(fixture);
    assert_int_equal(strlen(pump->reported.text), DET_ERROR_TEXT_MAX - 1);
}

static void failing_action_skips_the_later_actions(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "count_tick");

    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_IO);
    assert_string_equal(pump->trace, "count_tick leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action count_tick in state running: input or output failed");
}

static void events_produced_before_a_failing_action_are_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "count_tick");

    assert_int_equal(offered(fixture, pump, pump_burst()), DET_ERR_IO);
    assert_string_equal(
        pump->trace, "make_echo make_echo count_tick leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action count_tick in state running: input or output failed");
}

static void failing_exit_hook_keeps_the_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "leave_running");

    /* The failure event leaves the state too, so that the hook fails again: the last resort. */
    assert_int_equal(offered(fixture, pump, pump_pause()), DET_ERR_IO);
    assert_string_equal(pump->trace, "leave_running leave_running completed ");
    assert_int_equal(pump->end.state, PUMP_RUNNING);
    assert_ended(
        fixture, DET_FAILURE_HOOK, DET_ERR_IO,
        "exit hook of running: input or output failed; while handling this: "
        "exit hook of running: input or output failed");
}

static void failing_call_hook_keeps_the_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "check_drain");

    assert_int_equal(offered(fixture, pump, pump_drain()), DET_ERR_IO);
    assert_string_equal(
        pump->trace, "leave_running check_drain leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_HOOK, DET_ERR_IO,
        "hook check_drain in state running: input or output failed");
}

static void failing_entry_hook_leaves_the_new_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    pump->broken = "enter_running";
    pump->error = DET_ERR_BUSY;
    assert_int_equal(offered(fixture, pump, start_event()), 0);
    assert_string_equal(
        pump->trace, "open_port open_step enter_running leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_HOOK, DET_ERR_BUSY, "entry hook of running: in use; try again");
}

static void hooks_and_actions_with_invalid_results_fail(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "check_drain");

    pump->error = 5;
    assert_int_equal(offered(fixture, pump, pump_drain()), DET_ERR_INVALID);
    assert_int_equal(offered(fixture, pump, pump_reset()), 0);
    pump->broken = "count_tick";
    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_INVALID);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_INVALID,
        "action count_tick in state running: an argument is not valid");
}

static void action_that_produces_an_undeclared_event_fails(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->echo_wrong = true;
    assert_int_equal(offered(fixture, pump, pump_burst()), DET_ERR_INVALID);
    assert_int_equal(offered(fixture, pump, pump_reset()), 0);
    /* Nor what it never wrote. */
    pump->is_silent = true;
    assert_int_equal(offered(fixture, pump, pump_burst()), DET_ERR_INVALID);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_INVALID,
        "action make_echo in state running: an argument is not valid");
}

static void endless_chain_of_produced_events_fails(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_circle()), DET_ERR_LIMIT);
    assert_int_equal(pump->rounds, DET_COMPONENT_CHAIN_MAX + 1);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_LIMIT,
        "events that actions produce in running: a limit was exceeded");
}

static void more_events_than_may_wait_are_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    /* Six wait; each brings two more in the place of one. */
    assert_int_equal(offered(fixture, pump, pump_flood()), DET_ERR_LIMIT);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_LIMIT,
        "action make_echo in state running: a limit was exceeded");
}

static void an_unhandled_control_event_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, pump_finish()), 0);
    turn(fixture);
    assert_string_equal(pump->trace, "leave_running note_failure close_port ");
    assert_reported(
        fixture, DET_FAILURE_UNHANDLED, DET_ERR_UNHANDLED,
        "event finish in state running: the state does not accept this event");
}

static void a_refused_control_event_is_a_failure(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(
        pump_handle_send(fixture->handle, pump_start((struct pump_port){ .number = 0 })), 0);
    turn(fixture);
    assert_reported(
        fixture, DET_FAILURE_UNHANDLED, DET_ERR_REFUSED,
        "event start in state idle: a guard refused the event");
}

static void an_unhandled_event_of_a_dispatch_function_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->answer = DET_DIRECTIVE_TRANSITION;
    pump->event = pump_finish();
    det_component_wake(&pump->component);
    turn(fixture);
    assert_reported(
        fixture, DET_FAILURE_UNHANDLED, DET_ERR_UNHANDLED,
        "event finish in state running: the state does not accept this event");
}

static void invalid_dispatch_answer_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->answer = 4;
    det_component_wake(&pump->component);
    turn(fixture);
    assert_reported(
        fixture, DET_FAILURE_DISPATCH, DET_ERR_INVALID,
        "dispatch of running: an argument is not valid");
}

static void an_event_that_does_not_exist_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->answer = DET_DIRECTIVE_TRANSITION;
    pump->event.kind = pump_event_count;
    det_component_wake(&pump->component);
    turn(fixture);
    assert_reported(
        fixture, DET_FAILURE_DISPATCH, DET_ERR_INVALID,
        "dispatch of running: an argument is not valid");
}

static void failing_failure_action_ends_the_component(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");

    pump->broken_too = "close_port";
    det_component_wake(&pump->component);
    turn(fixture);
    assert_string_equal(pump->trace, "run_step leave_running note_failure close_port completed ");
    assert_int_equal(pump->end.state, PUMP_BROKEN);
    assert_ended(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action close_port in state broken: input or output failed; while handling this: "
        "dispatch of running: input or output failed");
}

static void unhandled_failure_event_ends_the_component(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "close_port");

    /* It fails in the final state, where no event is taken. */
    assert_int_equal(offered(fixture, pump, pump_drain()), 0);
    assert_int_equal(pump->end.state, PUMP_DONE);
    assert_ended(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action close_port in state done: input or output failed; event error in state done: "
        "the state does not accept this event");
}

static void failing_completion_ends_the_component_and_runs_once(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "completed");

    pump->text = "no ink";
    assert_int_equal(offered(fixture, pump, pump_quit()), DET_ERR_IO);
    assert_int_equal(pump->end.failure.code, 0);
    assert_ended(
        fixture, DET_FAILURE_COMPLETION, DET_ERR_IO,
        "completion of pump: no ink: input or output failed");
}

static void completion_with_an_invalid_result_fails(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "completed");

    pump->error = 1;
    assert_int_equal(offered(fixture, pump, pump_quit()), DET_ERR_INVALID);
    assert_ended(
        fixture, DET_FAILURE_COMPLETION, DET_ERR_INVALID,
        "completion of pump: an argument is not valid");
}

static void abort_ends_a_component_without_its_machine(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    det_handle_abort(fixture->handle);
    assert_int_equal(pump->completions, 0);
    turn(fixture);
    assert_string_equal(pump->trace, "completed ");
    assert_int_equal(pump->end.state, PUMP_RUNNING);
    assert_ended(fixture, DET_FAILURE_ABORTED, DET_ERR_CANCELLED, "aborted in running: cancelled");
}

static void a_second_failure_after_the_first_was_handled_is_a_new_one(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = break_it(fixture, "run_step");

    det_component_wake(&pump->component);
    turn(fixture);
    pump->broken = "count_tick";
    assert_int_equal(offered(fixture, pump, pump_reset()), 0);
    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_IO);
    assert_reported(
        fixture, DET_FAILURE_ACTION, DET_ERR_IO,
        "action count_tick in state running: input or output failed");
    /* The end knows the last one. */
    assert_int_equal(offered(fixture, pump, pump_quit()), 0);
    assert_int_equal(pump->end.failure.source, DET_FAILURE_ACTION);
}

static void a_failure_is_also_kept_without_a_handle(void **state)
{
    struct fixture *fixture = *state;
    static struct pump pump;
    static const struct det_supervise_options options = { .without_handle = true };

    memset(&pump, 0, sizeof pump);
    pump.broken = "enter_running";
    pump.error = DET_ERR_IO;
    assert_int_equal(pump_supervise(fixture->executor, &pump, &options, NULL, NULL), 0);
    assert_int_equal(offered(fixture, &pump, start_event()), 0);
    assert_int_equal(offered(fixture, &pump, pump_reset()), DET_ERR_IO);
    assert_int_equal(offered(fixture, &pump, pump_quit()), 0);
    assert_string_equal(pump.end.failure.text, "entry hook of running: input or output failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUMP_TEST(a_dispatch_error_runs_failure_actions_once_then_the_completion_once),
        PUMP_TEST(a_watcher_sees_the_failed_state_after_a_dispatch_error),
        PUMP_TEST(a_failure_has_the_text_that_its_function_gave),
        PUMP_TEST(unused_failure_text_is_discarded),
        PUMP_TEST(a_text_that_is_too_long_is_cut),
        PUMP_TEST(failing_action_skips_the_later_actions),
        PUMP_TEST(events_produced_before_a_failing_action_are_dropped),
        PUMP_TEST(failing_exit_hook_keeps_the_state),
        PUMP_TEST(failing_call_hook_keeps_the_state),
        PUMP_TEST(failing_entry_hook_leaves_the_new_state),
        PUMP_TEST(hooks_and_actions_with_invalid_results_fail),
        PUMP_TEST(action_that_produces_an_undeclared_event_fails),
        PUMP_TEST(endless_chain_of_produced_events_fails),
        PUMP_TEST(more_events_than_may_wait_are_a_failure),
        PUMP_TEST(an_unhandled_control_event_is_a_failure),
        PUMP_TEST(a_refused_control_event_is_a_failure),
        PUMP_TEST(an_unhandled_event_of_a_dispatch_function_is_a_failure),
        PUMP_TEST(invalid_dispatch_answer_is_a_failure),
        PUMP_TEST(an_event_that_does_not_exist_is_a_failure),
        PUMP_TEST(failing_failure_action_ends_the_component),
        PUMP_TEST(unhandled_failure_event_ends_the_component),
        PUMP_TEST(failing_completion_ends_the_component_and_runs_once),
        PUMP_TEST(completion_with_an_invalid_result_fails),
        PUMP_TEST(abort_ends_a_component_without_its_machine),
        PUMP_TEST(a_second_failure_after_the_first_was_handled_is_a_new_one),
        PUMP_TEST(a_failure_is_also_kept_without_a_handle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
