/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gateway_test.c - the run loop: what it calls, in which order, and when a component ends. */
#include "supervise/pump_test.h"

static void component_parks_until_the_start_event(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    assert_string_equal(pump->trace, "");
    assert_int_equal(det_component_state(&pump->component), PUMP_IDLE);
    assert_int_equal(pump_handle_send(fixture->handle, start_event()), 0);
    assert_string_equal(pump->trace, "");
    turn(fixture);
    assert_string_equal(pump->trace, "open_port open_step enter_running run_step ");
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_RUNNING);
    assert_true(pump_is_open(pump_handle_state(fixture->handle)));
}

static void a_step_runs_exit_hook_then_entry_hook_then_actions(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_drain()), 0);
    assert_string_equal(pump->trace, "leave_running check_drain drain_step close_port completed ");
}

static void a_stay_runs_its_actions_and_no_hook_of_the_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_tick()), 0);
    assert_string_equal(pump->trace, "count_tick count_tick run_step ");
    assert_int_equal(pump->ticks, 2);
}

static void refused_guard_selects_the_alternative(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->is_restless = true;
    assert_int_equal(offered(fixture, pump, pump_tick()), 0);
    assert_string_equal(pump->trace, "leave_running ");
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    assert_int_equal(det_component_failure(&pump->component)->code, 0);
}

static void produced_events_run_after_all_actions_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_burst()), 0);
    assert_string_equal(
        pump->trace, "make_echo make_echo count_tick count_tick count_tick run_step ");
}

static void an_offer_that_the_state_does_not_take_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_UNHANDLED);
    assert_int_equal(
        offered(fixture, pump, pump_start((struct pump_port){ .number = 0 })), DET_ERR_REFUSED);
    assert_string_equal(pump->trace, "");
    assert_int_equal(det_component_state(&pump->component), PUMP_IDLE);
    assert_int_equal(pump->component.internal.phase == 1, true);
    assert_int_equal(det_executor_counts(fixture->executor).steps, 0);
}

static void offer_leaves_the_dispatch_to_its_own_turn(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(pump_offer(pump, pump_tick()), 0);
    assert_int_equal(pump->ticks, 2);
    assert_null(strstr(pump->trace, "run_step"));
    turn(fixture);
    assert_non_null(strstr(pump->trace, "run_step"));
}

static void unhandled_offer_keeps_a_pending_wake(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    det_component_wake(&pump->component);
    assert_int_equal(pump_offer(pump, pump_finish()), DET_ERR_UNHANDLED);
    assert_string_equal(pump->trace, "");
    turn(fixture);
    assert_string_equal(pump->trace, "run_step ");
}

static void an_event_that_is_to_be_ignored_is_ignored(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_remark()), 0);
    assert_int_equal(pump_handle_send(fixture->handle, pump_remark()), 0);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_RUNNING);
    assert_int_equal(pump->completions, 0);
}

static void unknown_and_internal_events_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;
    struct pump_event event = pump_tick();

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_echo()), DET_ERR_INVALID);
    assert_int_equal(pump_handle_send(fixture->handle, pump_echo()), DET_ERR_INVALID);
    event.kind = pump_event_count;
    assert_int_equal(offered(fixture, pump, event), DET_ERR_INVALID);
    assert_int_equal(pump_handle_send(fixture->handle, event), DET_ERR_INVALID);
    assert_string_equal(pump->trace, "");
}

static void final_state_ends_the_component_once(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;
    struct det_component_end end;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_drain()), 0);
    assert_int_equal(pump->completions, 1);
    assert_int_equal(pump->end.state, PUMP_DONE);
    assert_int_equal(pump->end.failure.code, 0);
    assert_int_equal(pump->end.failure.source, DET_FAILURE_NONE);
    assert_int_equal(det_handle_wait(fixture->handle, 0, &end), 0);
    assert_int_equal(end.state, PUMP_DONE);
    assert_int_equal(offered(fixture, pump, pump_tick()), DET_ERR_CLOSED);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), DET_ERR_CLOSED);
    det_component_wake(&pump->component);
    assert_int_equal(det_component_wake_at(&pump->component, 1), 0);
    det_handle_wake(fixture->handle);
    det_handle_abort(fixture->handle);
    turn(fixture);
    assert_int_equal(pump->completions, 1);
    assert_int_equal(det_executor_counts(fixture->executor).ended, 1);
    assert_int_equal(det_executor_counts(fixture->executor).failed, 0);
}

static void terminate_ends_the_component_in_its_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->answer = DET_DIRECTIVE_TERMINATE;
    det_component_wake(&pump->component);
    turn(fixture);
    assert_string_equal(pump->trace, "run_step completed ");
    assert_int_equal(pump->end.state, PUMP_RUNNING);
    assert_int_equal(pump->end.failure.code, 0);
}

static void stop_ends_the_component_after_its_exit_hook(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_quit()), 0);
    assert_string_equal(pump->trace, "leave_running completed ");
    assert_int_equal(pump->end.state, PUMP_RUNNING);
}

static void a_dispatch_function_makes_an_event(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->answer = DET_DIRECTIVE_TRANSITION;
    pump->event = pump_pause();
    det_component_wake(&pump->component);
    turn(fixture);
    assert_string_equal(pump->trace, "run_step leave_running ");
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_PAUSED);
}

static void a_context_may_be_supervised_again_once_it_has_ended(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;
    struct det_error error;
    struct det_handle *handle;

    assert_int_equal(
        pump_supervise(fixture->executor, pump, NULL, &handle, &error), DET_ERR_EXISTS);
    assert_non_null(strstr(error.text, "pump is supervised already"));
    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_quit()), 0);
    pump->completions = 0;
    assert_int_equal(pump_supervise(fixture->executor, pump, NULL, &handle, &error), 0);
    turn(fixture);
    assert_int_equal(pump_handle_state(handle), PUMP_IDLE);
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_RUNNING);
    det_handle_close(handle);
}

struct seen {
    char text[256];
};

static void see(
    void *observer, const struct det_component *component, unsigned from, unsigned to, int event)
{
    struct seen *seen = observer;
    size_t length = strlen(seen->text);

    (void)component;
    snprintf(
        seen->text + length, sizeof seen->text - length, "%s-%s-%s ", pump_state_name(from),
        event < 0 ? "start" : pump_machine.events[event].name, pump_state_name(to));
}

static void observer_is_called_for_every_step(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = { "" };
    struct det_executor *executor;
    static struct pump pump;

    assert_int_equal(
        det_executor_open(
            fixture->loop, &(struct det_executor_options){ .observe = see, .observer = &seen },
            &executor, NULL),
        0);
    assert_ptr_equal(det_executor_loop(executor), fixture->loop);
    assert_int_equal(
        pump_supervise(
            executor, &pump, &(struct det_supervise_options){ .without_handle = true }, NULL, NULL),
        0);
    assert_int_equal(offered(fixture, &pump, start_event()), 0);
    assert_int_equal(offered(fixture, &pump, pump_tick()), 0);
    assert_int_equal(offered(fixture, &pump, pump_drain()), 0);
    assert_string_equal(
        seen.text, "idle-start-idle idle-start-opening opening-opened-running "
                   "running-tick-running running-drain-draining draining-finish-done ");
    det_executor_close(executor);
}

static void unsound(void *argument)
{
    struct fixture *fixture = argument;

    fixture->pump.is_unsound = true;
    assert_int_equal(offered(fixture, &fixture->pump, pump_tick()), 0);
}

static void an_invariant_that_does_not_hold_ends_the_process(void **state)
{
    struct fixture *fixture = *state;

    run_it(fixture);
    assert_true(det_test_aborts(unsound, fixture, "the invariant of pump in state running"));
}

static void offer_to_itself(struct pump *pump)
{
    assert_int_equal(pump_offer(pump, pump_tick()), DET_ERR_BUSY);
}

static void an_offer_from_inside_the_same_component_is_refused(void **state)
{
    struct fixture *fixture = *state;

    run_it(fixture);
    fixture->pump.in_step = offer_to_itself;
    assert_int_equal(offered(fixture, &fixture->pump, pump_tick()), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUMP_TEST(component_parks_until_the_start_event),
        PUMP_TEST(a_step_runs_exit_hook_then_entry_hook_then_actions),
        PUMP_TEST(a_stay_runs_its_actions_and_no_hook_of_the_state),
        PUMP_TEST(refused_guard_selects_the_alternative),
        PUMP_TEST(produced_events_run_after_all_actions_in_order),
        PUMP_TEST(an_offer_that_the_state_does_not_take_changes_nothing),
        PUMP_TEST(offer_leaves_the_dispatch_to_its_own_turn),
        PUMP_TEST(unhandled_offer_keeps_a_pending_wake),
        PUMP_TEST(an_event_that_is_to_be_ignored_is_ignored),
        PUMP_TEST(unknown_and_internal_events_are_refused),
        PUMP_TEST(final_state_ends_the_component_once),
        PUMP_TEST(terminate_ends_the_component_in_its_state),
        PUMP_TEST(stop_ends_the_component_after_its_exit_hook),
        PUMP_TEST(a_dispatch_function_makes_an_event),
        PUMP_TEST(a_context_may_be_supervised_again_once_it_has_ended),
        PUMP_TEST(observer_is_called_for_every_step),
        PUMP_TEST(an_invariant_that_does_not_hold_ends_the_process),
        PUMP_TEST(an_offer_from_inside_the_same_component_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
