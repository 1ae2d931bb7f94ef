/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_basic_test.c - the basic behaviour of a runtime: transitions, history, hooks, effects,
 * timers and stops. */
#include "runtime/runtime_test.h"

#include <limits.h>

static void moves(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(f->sent.sequence, 0);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.sequence, 2);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(f->sent.sequence, 3);
    assert_int_equal(f->sent.state, CANCELLED);
    all = events_after(f, "o-1", 0);
    assert_int_equal(all->count, 3);
    assert_int_equal(all->rows[0].sequence, 1);
    assert_int_equal(all->rows[0].event, TOUCH);
    assert_int_equal(all->rows[1].sequence, 2);
    assert_int_equal(all->rows[1].event, PING);
    assert_int_equal(all->rows[2].sequence, 3);
    assert_int_equal(all->rows[2].event, CANCEL);
    assert_int_equal(all->rows[2].from, PENDING);
    assert_int_equal(all->rows[2].to, CANCELLED);
}

static void a_valid_event_moves_the_state_and_is_stored_with_its_number(void **state)
{
    (void)state;
    in_fixture(moves);
}

static void invalid(struct fixture *f)
{
    struct det_instance before, after;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    assert_int_equal(send_kind(f, "o-1", SHIP), DET_ERR_UNHANDLED);
    assert_int_equal(f->error.code, DET_ERR_UNHANDLED);
    assert_string_equal(f->error.state, "PENDING");
    assert_string_equal(f->error.event, "SHIP");
    after = get(f, "o-1");
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(events_after(f, "o-1", 0)->count, 0);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(counts(f).unhandled, 1);
}

static void invalid_event_carries_state_and_event_and_changes_nothing(void **state)
{
    (void)state;
    in_fixture(invalid);
}

static void stays(struct fixture *f)
{
    struct listed_timers armed;

    assert_int_equal(start(f, "o-1"), 0);
    armed = *timers(f, "o-1");
    advance(f, DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STAY);
    assert_int_equal(f->sent.state, PENDING);
    assert_int_equal(f->sent.visit, 1);
    assert_int_equal(get(f, "o-1").history_count, 0);
    assert_int_equal(get(f, "o-1").transition_count, 0);
    assert_memory_equal(&armed, timers(f, "o-1"), sizeof armed);
    assert_string_equal(f->control.trace, "start");
}

static void stay_keeps_the_state_and_is_not_in_the_history(void **state)
{
    (void)state;
    in_fixture(stays);
}

static void histories(struct fixture *f)
{
    struct det_instance order;

    assert_int_equal(start(f, "o-1"), 0);
    order = get(f, "o-1");
    assert_int_equal(order.history_count, 0);
    assert_int_equal(order.previous, UINT_MAX);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    order = get(f, "o-1");
    assert_int_equal(order.state, PAID);
    assert_int_equal(order.history_count, 2);
    assert_int_equal(order.history[0], CHARGING);
    assert_int_equal(order.history[1], PENDING);
    assert_int_equal(order.previous, CHARGING);
}

static void the_history_has_the_most_recent_state_first(void **state)
{
    (void)state;
    in_fixture(histories);
}

static void counted(struct fixture *f)
{
    struct det_instance before, after;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    assert_int_equal(before.started_at, before.last_transition_at);
    advance(f, DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    after = get(f, "o-1");
    assert_int_equal(after.transition_count, 1);
    assert_int_equal(after.started_at, before.started_at);
    assert_int_equal(after.last_transition_at, before.started_at + DET_MINUTE);
}

static void one_transition_counts_one_and_the_start_time_stays(void **state)
{
    (void)state;
    in_fixture(counted);
}

static void ordered(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    f->control.trace[0] = 0;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_string_equal(f->control.trace, "exit hook entry");
    f->control.trace[0] = 0;
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-2", TOUCH), 0);
    assert_string_equal(f->control.trace, "start exit entry");
}

static void exit_of_the_old_state_comes_before_entry_of_the_new(void **state)
{
    (void)state;
    in_fixture(ordered);
}

static void entered(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_string_equal(f->control.trace, "start");
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_string_equal(f->control.trace, "start");
    f->control.entry_result = DET_ERR_IO;
    assert_int_equal(start(f, "o-2"), DET_ERR_ACTION_FAILED);
    assert_int_equal(send_kind(f, "o-2", PING), DET_ERR_NOT_FOUND);
}

static void the_entry_hook_of_the_initial_state_runs_at_the_start_and_once(void **state)
{
    (void)state;
    in_fixture(entered);
}

static void stopped(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", "enough", NULL, &f->sent, NULL), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(f->sent.sequence, 1);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", "again", NULL, &f->sent, NULL), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(f->sent.sequence, 1);
    assert_true(get(f, "o-1").is_stopped);
    assert_string_equal(get(f, "o-1").reason, "enough");
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_STOPPED);
    assert_non_null(strstr(f->error.text, "enough"));
    assert_int_equal(events_after(f, "o-1", 0)->count, 1);
    assert_int_equal(events_after(f, "o-1", 0)->rows[0].event, UINT16_MAX);
}

static void a_stop_is_for_ever_and_stopping_again_is_fine(void **state)
{
    (void)state;
    in_fixture(stopped);
}

static void halted(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-1", HALT), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STOP);
    assert_int_equal(f->sent.state, PAID);
    assert_true(get(f, "o-1").is_stopped);
    assert_string_equal(get(f, "o-1").reason, "done");
}

static void a_stop_transition_stops_with_its_reason(void **state)
{
    (void)state;
    in_fixture(halted);
}

static void separate(struct fixture *f)
{
    char id[16];

    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(start(f, id), 0);
    }
    for (int i = 0; i < 200; i += 2) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(send_kind(f, id, CANCEL), 0);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(get(f, id).state, i % 2 ? PENDING : CANCELLED);
    }
    assert_int_equal(counts(f).instances, 200);
}

static void instances_do_not_interfere(void **state)
{
    (void)state;
    in_fixture(separate);
}

static void hooked(struct fixture *f)
{
    struct det_instance before, after;

    assert_int_equal(start(f, "o-1"), 0);
    before = get(f, "o-1");
    f->control.hook_result = -77;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_ACTION_FAILED);
    assert_int_equal(f->error.cause, -77);
    assert_string_equal(f->error.action, "check");
    assert_string_equal(f->error.state, "PENDING");
    assert_string_equal(f->error.event, "PAY");
    after = get(f, "o-1");
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(events_after(f, "o-1", 0)->count, 0);
    f->control.hook_result = 0;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(f->control.hooks, 2);
    assert_int_equal(f->control.move.from, PENDING);
    assert_int_equal(f->control.move.to, CHARGING);
    assert_int_equal(f->control.move.sequence, 1);
    assert_int_equal(f->control.move.visit, 1);
    assert_string_equal(f->control.move.machine, "order");
    assert_string_equal(f->control.move.instance, "o-1");
}

static void a_hook_sees_event_and_target_and_its_failure_leaves_nothing(void **state)
{
    (void)state;
    in_fixture(hooked);
}

static void produced(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    f->control.effect_failures = 2;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(f->sent.state, CHARGING);
    advance(f, DET_MINUTE);
    assert_int_equal(f->control.effects, 3);
    assert_int_equal(f->control.incidents, 2);
    assert_int_equal(get(f, "o-1").state, PAID);
    all = events_after(f, "o-1", 1);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].event, CHARGED);
    assert_key(all->rows[0].cause, "order/o-1/1/0");
}

static void effect_runs_after_the_send_and_its_product_arrives(void **state)
{
    (void)state;
    in_fixture(produced);
}

static void outcomes(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_GOTO);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STAY);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", NULL, NULL, &f->sent, NULL), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_STOP);
}

static void outcome_is_goto_stay_or_stop(void **state)
{
    (void)state;
    in_fixture(outcomes);
}

static void fires(struct fixture *f)
{
    const struct recorded *all;

    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 30 * DET_MINUTE - 1);
    assert_int_equal(get(f, "o-1").state, PENDING);
    advance(f, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    all = events_after(f, "o-1", 0);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].event, EXPIRE);
    assert_true(all->rows[0].is_timeout);
    assert_int_equal(counts(f).timeouts_fired, 1);
}

static void a_timer_fires_after_its_time_and_moves_the_state(void **state)
{
    (void)state;
    in_fixture(fires);
}

static void cancels(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(timers(f, "o-1")->count, 0);
    advance(f, 2 * DET_HOUR);
    assert_int_equal(get(f, "o-1").state, PAID);
    assert_int_equal(counts(f).timeouts_fired, 0);
}

static void leaving_the_state_cancels_its_timer(void **state)
{
    (void)state;
    in_fixture(cancels);
}

static void differ(struct fixture *f)
{
    f->control.effect_result = DET_EFFECT_DONE;
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(get(f, "o-2").state, PENDING);
    assert_int_equal(events_after(f, "o-2", 1)->rows[0].event, LATE);
    advance(f, 20 * DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(events_after(f, "o-1", 0)->rows[0].event, EXPIRE);
    assert_int_equal(get(f, "o-2").state, PENDING);
    advance(f, 10 * DET_MINUTE);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
}

static void timeouts_of_different_states_send_different_events(void **state)
{
    (void)state;
    in_fixture(differ);
}

static void preempts(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 29 * DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    advance(f, DET_HOUR);
    assert_int_equal(events_after(f, "o-1", 0)->count, 1);
    assert_int_equal(events_after(f, "o-1", 0)->rows[0].event, CANCEL);
}

static void event_sent_before_the_deadline_prevents_the_timer(void **state)
{
    (void)state;
    in_fixture(preempts);
}

static void rejected(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-1", SHIP), 0);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(timers(f, "o-1")->count, 0);
    assert_int_equal(send_kind(f, "o-1", EXPIRE), DET_ERR_UNHANDLED);
    assert_string_equal(f->error.state, "CANCELLED");
}

static void a_timeout_event_in_a_state_that_does_not_take_it_is_rejected(void **state)
{
    (void)state;
    in_fixture(rejected);
}

static void lists_of_states_and_events_match_at_run_time(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    char id[8];

    (void)state;
    f->control.effect_result = DET_EFFECT_DONE;
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "o-%d", i);
        assert_int_equal(start(f, id), 0);
        if (i > 0) {
            f->control.effect_result = i == 1 ? DET_EFFECT_DONE : DET_EFFECT_PRODUCED;
            assert_int_equal(send_kind(f, id, PAY), 0);
            settle(f);
        }
        assert_int_equal(get(f, id).state, i);
        assert_int_equal(send_kind(f, id, CANCEL), 0);
        assert_int_equal(get(f, id).state, CANCELLED);
    }
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_valid_event_moves_the_state_and_is_stored_with_its_number),
        cmocka_unit_test(invalid_event_carries_state_and_event_and_changes_nothing),
        cmocka_unit_test(stay_keeps_the_state_and_is_not_in_the_history),
        cmocka_unit_test(the_history_has_the_most_recent_state_first),
        cmocka_unit_test(one_transition_counts_one_and_the_start_time_stays),
        cmocka_unit_test(exit_of_the_old_state_comes_before_entry_of_the_new),
        cmocka_unit_test(the_entry_hook_of_the_initial_state_runs_at_the_start_and_once),
        cmocka_unit_test(a_stop_is_for_ever_and_stopping_again_is_fine),
        cmocka_unit_test(a_stop_transition_stops_with_its_reason),
        cmocka_unit_test(instances_do_not_interfere),
        cmocka_unit_test(a_hook_sees_event_and_target_and_its_failure_leaves_nothing),
        cmocka_unit_test(effect_runs_after_the_send_and_its_product_arrives),
        cmocka_unit_test(outcome_is_goto_stay_or_stop),
        cmocka_unit_test(a_timer_fires_after_its_time_and_moves_the_state),
        cmocka_unit_test(leaving_the_state_cancels_its_timer),
        cmocka_unit_test(timeouts_of_different_states_send_different_events),
        cmocka_unit_test(event_sent_before_the_deadline_prevents_the_timer),
        cmocka_unit_test(a_timeout_event_in_a_state_that_does_not_take_it_is_rejected),
        cmocka_unit_test(lists_of_states_and_events_match_at_run_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
