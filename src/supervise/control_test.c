/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* control_test.c - the decorator: Block, Poll and Ignore, closed channels, published states. */
#include "supervise/pump_test.h"

/* Statement 2, in a Poll state without a CLOSED. */
static void a_closed_channel_in_a_poll_state_is_a_failure_and_not_a_dispatch(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->drain_answers = 1;
    assert_int_equal(offered(fixture, pump, pump_drain()), 0);
    pump->trace[0] = '\0';
    det_handle_hang_up(fixture->handle);
    turn(fixture);
    /* Broken waits for external events: it gets the report, too. */
    assert_string_equal(pump->trace, "note_failure close_port note_failure ");
    assert_int_equal(pump->reported.source, DET_FAILURE_CLOSED);
    assert_int_equal(pump->reported.code, DET_ERR_CLOSED);
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
}

/* Statement 2, in a Block state. */
static void a_closed_channel_in_a_block_state_is_a_failure(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    det_handle_hang_up(fixture->handle);
    turn(fixture);
    assert_string_equal(pump->trace, "note_failure close_port note_failure ");
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    assert_int_equal(pump->reported.source, DET_FAILURE_CLOSED);
    assert_string_equal(pump->reported.text, "control channel in broken: already closed");
}

/* Statement 2, where the spec says what it means. */
static void a_closed_channel_is_the_event_that_the_spec_names(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    det_handle_hang_up(fixture->handle);
    turn(fixture);
    assert_string_equal(pump->trace, "leave_running check_drain drain_step close_port completed ");
    assert_int_equal(pump->end.failure.code, 0);
}

static void queued_events_precede_the_closed_event(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    det_handle_hang_up(fixture->handle);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), DET_ERR_CLOSED);
    turn(fixture);
    assert_int_equal(pump->ticks, 4);
    assert_int_equal(pump->completions, 1);
}

static void closed_channel_is_reported_once_to_polling_states(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    /* Draining has no CLOSED row; it gets no second report, and drains. */
    pump->drain_answers = 1;
    det_handle_hang_up(fixture->handle);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_DRAINING);
    assert_string_equal(pump->trace, "leave_running check_drain drain_step ");
    det_component_wake(&pump->component);
    turn(fixture);
    assert_int_equal(pump->end.state, PUMP_DONE);
    assert_int_equal(pump->end.failure.code, 0);
}

/* Statement 3. */
static void ignore_leaves_a_queued_event_for_the_next_poll(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;
    uint64_t turns;

    turn(fixture);
    pump->open_answers = 1;
    assert_int_equal(offered(fixture, pump, start_event()), 0);
    assert_int_equal(det_component_state(&pump->component), PUMP_OPENING);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    turns = det_executor_counts(fixture->executor).turns;
    turn(fixture);
    assert_string_equal(pump->trace, "open_port open_step ");
    assert_int_equal(det_executor_counts(fixture->executor).turns, turns);
    det_component_wake(&pump->component);
    turn(fixture);
    assert_string_equal(
        pump->trace, "open_port open_step open_step enter_running count_tick count_tick run_step ");
}

static void ignore_does_not_see_a_closed_channel(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    pump->open_answers = 1;
    assert_int_equal(offered(fixture, pump, start_event()), 0);
    det_handle_hang_up(fixture->handle);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_OPENING);
}

/* Statement 4. */
static void poll_with_a_ready_event_does_not_call_the_dispatch_function_first(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, pump_pause()), 0);
    turn(fixture);
    assert_string_equal(pump->trace, "leave_running ");
    assert_int_equal(det_component_state(&pump->component), PUMP_PAUSED);
}

static void block_state_uses_no_turns(void **state)
{
    struct fixture *fixture = *state;
    uint64_t turns;

    turn(fixture);
    turns = det_executor_counts(fixture->executor).turns;
    pass(fixture, DET_DAY);
    assert_int_equal(det_executor_counts(fixture->executor).turns, turns);
}

static void events_are_taken_in_the_order_sent_and_no_more_than_fit(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, start_event()), 0);
    for (int i = 1; i < 100; i++)
        assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), DET_ERR_LIMIT);
    turn(fixture);
    assert_int_equal(pump->ticks, 2 * 99);
    /* The queue goes round. */
    for (int i = 0; i < 99; i++)
        assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    assert_int_equal(pump_handle_send(fixture->handle, pump_quit()), 0);
    turn(fixture);
    assert_int_equal(pump->ticks, 4 * 99);
    assert_int_equal(pump->completions, 1);
}

static void many_sends_are_one_turn(void **state)
{
    struct fixture *fixture = *state;
    uint64_t turns;

    run_it(fixture);
    turns = det_executor_counts(fixture->executor).turns;
    for (int i = 0; i < 20; i++)
        assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    turn(fixture);
    assert_int_equal(fixture->pump.ticks, 40);
    assert_int_equal(det_executor_counts(fixture->executor).turns, turns + 1);
}

struct published {
    struct fixture *fixture;
    char text[256];
};

static void on_state(void *user, unsigned state)
{
    struct published *published = user;
    size_t length = strlen(published->text);

    snprintf(
        published->text + length, sizeof published->text - length, "%s ", pump_state_name(state));
}

static void states_are_published_once_per_change_after_their_actions(void **state)
{
    struct fixture *fixture = *state;
    struct published published = { fixture, "" };
    struct det_supervise_options options = { .on_state = on_state,
                                             .user = &published,
                                             .control_capacity = 1 };
    static struct pump pump;
    struct det_handle *handle;

    memset(&pump, 0, sizeof pump);
    assert_int_equal(pump_supervise(fixture->executor, &pump, &options, &handle, NULL), 0);
    assert_int_equal(det_handle_changes(handle), 1);
    assert_int_equal(pump_handle_send(handle, start_event()), 0);
    assert_int_equal(pump_handle_send(handle, pump_tick()), DET_ERR_LIMIT);
    turn(fixture);
    assert_int_equal(offered(fixture, &pump, pump_tick()), 0);
    assert_string_equal(published.text, "opening running ");
    assert_int_equal(det_handle_changes(handle), 3);
    /* A failure on the way is published in the state in which the machine ends. */
    pump.broken = "enter_running";
    pump.error = DET_ERR_IO;
    assert_int_equal(offered(fixture, &pump, pump_pause()), 0);
    assert_int_equal(offered(fixture, &pump, pump_resume()), DET_ERR_IO);
    assert_string_equal(published.text, "opening running paused broken ");
    pump.broken = NULL;
    det_handle_close(handle);
    turn(fixture);
}

static void on_state_without_a_handle_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct det_supervise_options options = { .on_state = on_state, .without_handle = true };
    static struct pump pump;
    struct det_error error;

    memset(&pump, 0, sizeof pump);
    assert_int_equal(
        pump_supervise(fixture->executor, &pump, &options, NULL, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "on_state of pump needs a handle"));
    assert_false(det_component_is_supervised(&pump.component));
}

static void wait_for_a_change_also_ends_at_completion(void **state)
{
    struct fixture *fixture = *state;
    uint64_t changes;

    run_it(fixture);
    changes = det_handle_changes(fixture->handle);
    assert_int_equal(det_handle_wait_change(fixture->handle, changes - 1, 0), 0);
    assert_int_equal(
        det_handle_wait_change(fixture->handle, changes, now(fixture) + 5), DET_ERR_TIMEOUT);
    assert_int_equal(det_handle_wait(fixture->handle, now(fixture) + 5, NULL), DET_ERR_TIMEOUT);
    assert_false(det_handle_has_ended(fixture->handle));
    assert_int_equal(offered(fixture, &fixture->pump, pump_quit()), 0);
    assert_true(det_handle_has_ended(fixture->handle));
    assert_int_equal(det_handle_wait_change(fixture->handle, changes, 0), 0);
    assert_int_equal(det_handle_changes(fixture->handle), changes);
}

static void a_wake_from_outside_runs_the_dispatch_function(void **state)
{
    struct fixture *fixture = *state;

    run_it(fixture);
    det_handle_wake(fixture->handle);
    det_handle_wake(fixture->handle);
    turn(fixture);
    assert_string_equal(fixture->pump.trace, "run_step ");
}

static void a_message_that_finds_nothing_to_do_runs_nothing(void **state)
{
    struct fixture *fixture = *state;
    uint64_t turns;

    run_it(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, pump_tick()), 0);
    /* The run of the offer handles the events that the message announced. */
    assert_int_equal(offered(fixture, &fixture->pump, pump_tick()), 0);
    assert_int_equal(fixture->pump.ticks, 4);
    turns = det_executor_counts(fixture->executor).turns;
    turn(fixture);
    assert_int_equal(det_executor_counts(fixture->executor).turns, turns);
}

static void second_drain_event_is_harmless_while_draining(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    pump->drain_answers = 10;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pump_handle_send(fixture->handle, pump_drain()), 0);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_DRAINING);
    assert_null(strstr(pump->trace, "note_failure"));
    assert_int_equal(det_executor_counts(fixture->executor).repeats, 2);
    /* An event that it does not accept is a failure as before. */
    assert_int_equal(pump_handle_send(fixture->handle, pump_pause()), 0);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    assert_int_equal(det_executor_counts(fixture->executor).repeats, 2);
}

/* After a failure a repeated request is not ignored: it must not be lost silently. */
static void a_request_that_comes_again_after_a_failure_is_not_ignored(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(pump_handle_send(fixture->handle, pump_drain()), 0);
    assert_int_equal(pump_handle_send(fixture->handle, pump_pause()), 0);
    turn(fixture);
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    pump->trace[0] = '\0';
    assert_int_equal(pump_handle_send(fixture->handle, pump_drain()), 0);
    turn(fixture);
    assert_string_equal(pump->trace, "note_failure ");
    assert_int_equal(det_executor_counts(fixture->executor).repeats, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUMP_TEST(a_closed_channel_in_a_poll_state_is_a_failure_and_not_a_dispatch),
        PUMP_TEST(a_closed_channel_in_a_block_state_is_a_failure),
        PUMP_TEST(a_closed_channel_is_the_event_that_the_spec_names),
        PUMP_TEST(second_drain_event_is_harmless_while_draining),
        PUMP_TEST(a_request_that_comes_again_after_a_failure_is_not_ignored),
        PUMP_TEST(queued_events_precede_the_closed_event),
        PUMP_TEST(closed_channel_is_reported_once_to_polling_states),
        PUMP_TEST(ignore_leaves_a_queued_event_for_the_next_poll),
        PUMP_TEST(ignore_does_not_see_a_closed_channel),
        PUMP_TEST(poll_with_a_ready_event_does_not_call_the_dispatch_function_first),
        PUMP_TEST(block_state_uses_no_turns),
        PUMP_TEST(events_are_taken_in_the_order_sent_and_no_more_than_fit),
        PUMP_TEST(many_sends_are_one_turn),
        PUMP_TEST(states_are_published_once_per_change_after_their_actions),
        PUMP_TEST(on_state_without_a_handle_is_refused),
        PUMP_TEST(wait_for_a_change_also_ends_at_completion),
        PUMP_TEST(a_wake_from_outside_runs_the_dispatch_function),
        PUMP_TEST(a_message_that_finds_nothing_to_do_runs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
