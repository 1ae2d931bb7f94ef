/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* due_test.c - timers: never early, once, for the visit that armed them, over jumps of the clock
 * and over restarts. */
#include "runtime/runtime_test.h"

static void re_armed(struct fixture *f)
{
    det_time due;

    assert_int_equal(start(f, "o-1"), 0);
    due = timers(f, "o-1")->rows[0].due;
    advance(f, 29 * DET_MINUTE);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(timers(f, "o-1")->rows[0].due, due + 29 * DET_MINUTE);
    assert_int_equal(timers(f, "o-1")->rows[0].visit, 2);
    advance(f, 30 * DET_MINUTE - 1);
    assert_int_equal(get(f, "o-1").state, PENDING);
    advance(f, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void a_transition_to_itself_arms_the_timer_again(void **state)
{
    (void)state;
    in_fixture(re_armed);
}

static void barely_moved(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 500 * DET_MILLISECOND);
    assert_int_equal(send_kind(f, "o-1", TOUCH), 0);
    advance(f, 30 * DET_MINUTE - 1);
    assert_int_equal(get(f, "o-1").state, PENDING);
    advance(f, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void timer_moved_slightly_does_not_fire_early(void **state)
{
    (void)state;
    in_fixture(barely_moved);
}

static void stay_keeps(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    for (int i = 0; i < 29; i++) {
        advance(f, DET_MINUTE);
        assert_int_equal(send_kind(f, "o-1", PING), 0);
    }
    assert_int_equal(get(f, "o-1").sequence, 29);
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(counts(f).timeouts_fired, 1);
}

static void a_stay_keeps_the_timer_of_the_visit(void **state)
{
    (void)state;
    in_fixture(stay_keeps);
}

static void not_restarted(struct fixture *f)
{
    det_time due;

    assert_int_equal(start(f, "o-1"), 0);
    due = timers(f, "o-1")->rows[0].due;
    for (int i = 0; i < 29; i++) {
        advance(f, DET_MINUTE);
        fixture_reopen(f, (struct det_runtime_options){ 0 });
        assert_int_equal(timers(f, "o-1")->rows[0].due, due);
    }
    assert_int_equal(get(f, "o-1").state, PENDING);
    advance(f, DET_MINUTE);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void loading_does_not_restart_a_deadline(void **state)
{
    (void)state;
    in_fixture(not_restarted);
}

static void by_itself(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    advance(f, DET_HOUR);
    /* The new runtime does not serve the machine yet: the timer is overdue, and fires at once. */
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    settle(f);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void served_machine_fires_timers_without_any_call(void **state)
{
    (void)state;
    in_fixture(by_itself);
}

static void completes(struct fixture *f)
{
    f->control.trace[0] = 0;
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 30 * DET_MINUTE);
    /* Exit of the old state and entry of the new: the firing did not cancel itself half way. */
    assert_string_equal(f->control.trace, "start exit entry");
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(timers(f, "o-1")->count, 0);
    /* One armed by the loading of an instance fires just as well. */
    assert_int_equal(start(f, "o-2"), 0);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(get(f, "o-2").state, PENDING);
    advance(f, 30 * DET_MINUTE);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
}

static void a_firing_timer_does_not_cancel_itself(void **state)
{
    (void)state;
    in_fixture(completes);
}

static void forward(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    det_sim_jump_wall(f->sim, 31 * DET_MINUTE);
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(get(f, "o-2").state, CANCELLED);
    advance(f, DET_DAY);
    assert_int_equal(counts(f).timeouts_fired, 2);
    assert_int_equal(get(f, "o-1").sequence, 1);
}

static void a_jump_forward_fires_what_is_overdue_once_and_within_a_second(void **state)
{
    (void)state;
    in_fixture(forward);
}

static void backward(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 29 * DET_MINUTE);
    det_sim_jump_wall(f->sim, -10 * DET_MINUTE);
    advance(f, 11 * DET_MINUTE - 1);
    assert_int_equal(get(f, "o-1").state, PENDING);
    advance(f, 1);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void clock_jump_back_fires_nothing_early(void **state)
{
    (void)state;
    in_fixture(backward);
}

static void sleeping(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    det_sim_suspend(f->sim, DET_HOUR);
    advance(f, DET_SECOND);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
}

static void timer_due_during_suspend_fires_within_a_second(void **state)
{
    (void)state;
    in_fixture(sleeping);
}

static void ship(struct fixture *f, const char *id)
{
    assert_int_equal(start(f, id), 0);
    assert_int_equal(send_kind(f, id, PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, id, SHIP), 0);
}

static void named(struct fixture *f)
{
    const struct recorded *all;

    ship(f, "o-1");
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_string_equal(timers(f, "o-1")->rows[0].name, "reminder");
    assert_int_equal(timers(f, "o-1")->rows[0].event, REMIND);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(timers(f, "o-1")->count, 1);
    advance(f, DET_HOUR);
    all = events_after(f, "o-1", 3);
    assert_int_equal(all->count, 1);
    assert_int_equal(all->rows[0].event, REMIND);
    assert_int_equal(all->rows[0].outcome, DET_OUTCOME_STAY);
    assert_true(all->rows[0].is_timeout);
    /* The payload was computed when it was armed, from the data of then. */
    assert_int_equal(all->rows[0].value.as.remind.cents, 2000);
    assert_int_equal(timers(f, "o-1")->count, 0);
}

static void a_named_timer_fires_with_the_payload_it_was_armed_with(void **state)
{
    (void)state;
    in_fixture(named);
}

static void disarmed(struct fixture *f)
{
    ship(f, "o-1");
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(timers(f, "o-1")->count, 0);
    advance(f, 2 * DET_HOUR);
    assert_int_equal(get(f, "o-1").sequence, 4);
    assert_int_equal(f->control.incidents, 0);
}

static void cleared_timer_does_not_fire(void **state)
{
    (void)state;
    in_fixture(disarmed);
}

static bool may_dim(const struct det_move *move, const void *data, const void *event)
{
    const struct order_control *control = move->user;

    (void)data;
    (void)event;
    return !control->guard_refuses;
}

/* A machine whose named timer may fire in a state that does not accept its event. */
static struct det_machine *lamp_machine(void)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("lamp", NULL, &b), 0);
    det_machine_builder_state(
        b, &(struct det_state_row){ .name = "OFF", .flags = DET_STATE_INITIAL });
    det_machine_builder_state(b, &(struct det_state_row){ .name = "ON" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "PRESS" });
    det_machine_builder_event(b, &(struct det_event_row){ .name = "DIM" });
    det_machine_builder_guard(b, "may_dim", may_dim);
    det_machine_builder_hook(b, "enter", order_enter);
    det_machine_builder_timer(
        b, &(struct det_timer_row){ .name = "fade", .timeout = { DET_MINUTE, "DIM", NULL } });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("OFF"),
                                 .events = DET_LIST("PRESS"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "ON",
                                 .arms = DET_LIST("fade") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("ON"),
                                 .events = DET_LIST("PRESS"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "OFF" });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("ON"),
                                 .events = DET_LIST("DIM"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "OFF",
                                 .guard = "may_dim" });
    det_machine_builder_entry(b, DET_LIST("OFF"), "enter");
    return built(b);
}

struct lamp {
    struct fixture *f;
    struct det_machine *machine;
};

static struct lamp lamp_open(void)
{
    struct lamp lamp = { fixture_open((struct det_runtime_options){ 0 }), lamp_machine() };

    assert_int_equal(
        det_runtime_start(lamp.f->runtime, lamp.machine, "l", NULL, NULL, NULL, NULL), 0);
    return lamp;
}

static void lamp_close(struct lamp lamp)
{
    det_runtime_close(lamp.f->runtime);
    lamp.f->runtime = NULL;
    det_machine_close(lamp.machine);
    fixture_close(lamp.f);
}

static struct det_instance press(struct lamp lamp, int times)
{
    unsigned event[8] = { 0 };
    struct det_instance instance;

    for (int i = 0; i < times; i++)
        assert_int_equal(
            det_runtime_send(lamp.f->runtime, lamp.machine, "l", event, NULL, NULL, NULL), 0);
    assert_int_equal(det_runtime_get(lamp.f->runtime, lamp.machine, "l", &instance, NULL, NULL), 0);
    return instance;
}

static void a_timeout_that_is_not_accepted_is_removed_and_reported(void **state)
{
    struct lamp lamp = lamp_open();

    (void)state;
    press(lamp, 2);
    advance(lamp.f, DET_HOUR);
    assert_int_equal(lamp.f->control.incidents, 1);
    assert_int_equal(lamp.f->control.incident.kind, DET_INCIDENT_TIMEOUT_REJECTED);
    assert_int_equal(lamp.f->control.incident.code, DET_ERR_UNHANDLED);
    assert_string_equal(lamp.f->control.incident.name, "fade");
    assert_int_equal(counts(lamp.f).timeouts_rejected, 1);
    assert_int_equal(press(lamp, 0).sequence, 2);
    fixture_reopen(lamp.f, (struct det_runtime_options){ 0 });
    assert_int_equal(det_runtime_serve(lamp.f->runtime, lamp.machine, NULL), 0);
    advance(lamp.f, DET_HOUR);
    assert_int_equal(lamp.f->control.incidents, 1);
    lamp_close(lamp);
}

static void timeout_refused_by_a_guard_is_not_retried(void **state)
{
    struct lamp lamp = lamp_open();

    (void)state;
    press(lamp, 1);
    lamp.f->control.guard_refuses = true;
    advance(lamp.f, DET_HOUR);
    assert_int_equal(lamp.f->control.incidents, 1);
    assert_int_equal(lamp.f->control.incident.code, DET_ERR_REFUSED);
    assert_int_equal(press(lamp, 0).state, 1);
    lamp_close(lamp);
}

static void a_hook_that_fails_has_the_timeout_tried_again(void **state)
{
    struct lamp lamp = lamp_open();

    (void)state;
    press(lamp, 1);
    lamp.f->control.entry_result = -1;
    advance(lamp.f, DET_MINUTE + 50 * DET_MILLISECOND);
    assert_int_equal(lamp.f->control.incidents, 1);
    assert_int_equal(lamp.f->control.incident.code, DET_ERR_ACTION_FAILED);
    lamp.f->control.entry_result = 0;
    advance(lamp.f, DET_SECOND);
    assert_int_equal(press(lamp, 0).state, 0);
    assert_int_equal(counts(lamp.f).timeouts_fired, 1);
    lamp_close(lamp);
}

static void a_hook_that_keeps_failing_ends_the_timeout_after_the_last_attempt(void **state)
{
    struct lamp lamp = lamp_open();

    (void)state;
    press(lamp, 1);
    lamp.f->control.entry_result = -1;
    advance(lamp.f, DET_HOUR);
    assert_int_equal(lamp.f->control.incidents, 8);
    assert_int_equal(lamp.f->control.incident.attempt, 8);
    assert_int_equal(counts(lamp.f).timeouts_rejected, 1);
    assert_int_equal(press(lamp, 0).state, 1);
    lamp_close(lamp);
}

static void arming_again_moves_the_deadline_and_fires_once(void **state)
{
    struct lamp lamp = lamp_open();

    (void)state;
    press(lamp, 1);
    advance(lamp.f, 30 * DET_SECOND);
    press(lamp, 2);
    advance(lamp.f, 59 * DET_SECOND);
    assert_int_equal(press(lamp, 0).state, 1);
    advance(lamp.f, DET_SECOND);
    assert_int_equal(press(lamp, 0).state, 0);
    assert_int_equal(press(lamp, 0).sequence, 4);
    lamp_close(lamp);
}

static void hold(void *context)
{
    /* The timer falls due while the instance has a writer. */
    assert_int_equal(det_sim_advance(((struct fixture *)context)->sim, 4 * DET_SECOND), 0);
}

static void held(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    advance(f, 30 * DET_MINUTE - DET_SECOND);
    f->control.in_guard = hold;
    f->control.context = f;
    f->control.guard_refuses = true;
    assert_int_equal(send_kind(f, "o-1", PAY), DET_ERR_REFUSED);
    settle(f);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    assert_int_equal(counts(f).timeouts_fired, 1);
    /* And when the writer leaves the state, it does not fire at all. */
    assert_int_equal(start(f, "o-2"), 0);
    advance(f, 30 * DET_MINUTE - DET_SECOND);
    f->control.guard_refuses = false;
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    f->control.in_guard = NULL;
    advance(f, DET_SECOND);
    assert_int_equal(counts(f).timeouts_fired, 1);
    assert_int_equal(get(f, "o-2").state, PAID);
}

static void timer_due_during_a_send_waits_for_it(void **state)
{
    (void)state;
    in_fixture(held);
}

static void settled(struct fixture *f)
{
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(det_runtime_settle(f->runtime, DET_SECOND), 0);
    f->control.effect_failures = 3;
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    assert_int_equal(det_runtime_settle(f->runtime, 10 * DET_MILLISECOND), DET_ERR_TIMEOUT);
    assert_int_equal(det_runtime_settle(f->runtime, DET_MINUTE), 0);
    assert_int_equal(get(f, "o-1").state, PAID);
}

static void settling_waits_for_effects_and_due_timers(void **state)
{
    (void)state;
    in_fixture(settled);
}

static void user_loop_fires_timers_when_it_runs(void **state)
{
    struct fixture *f = fixture_open((struct det_runtime_options){ 0 });
    struct det_world *world = det_sim_world(f->sim);
    struct det_loop *loop;
    int r;

    (void)state;
    assert_int_equal(det_loop_open(world, NULL, &loop), 0);
    fixture_reopen(f, (struct det_runtime_options){ .loop = loop });
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(start(f, "o-2"), 0);
    assert_int_equal(send_kind(f, "o-2", PAY), 0);
    assert_int_equal(det_runtime_settle(f->runtime, DET_MINUTE), 0);
    assert_int_equal(get(f, "o-2").state, PAID);
    advance(f, DET_HOUR);
    assert_int_equal(get(f, "o-1").state, PENDING);
    do
        r = det_loop_turn(loop, 0);
    while (r > 0);
    assert_int_equal(get(f, "o-1").state, CANCELLED);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_loop_close(loop);
    fixture_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transition_to_itself_arms_the_timer_again),
        cmocka_unit_test(timer_moved_slightly_does_not_fire_early),
        cmocka_unit_test(a_stay_keeps_the_timer_of_the_visit),
        cmocka_unit_test(loading_does_not_restart_a_deadline),
        cmocka_unit_test(served_machine_fires_timers_without_any_call),
        cmocka_unit_test(a_firing_timer_does_not_cancel_itself),
        cmocka_unit_test(a_jump_forward_fires_what_is_overdue_once_and_within_a_second),
        cmocka_unit_test(clock_jump_back_fires_nothing_early),
        cmocka_unit_test(timer_due_during_suspend_fires_within_a_second),
        cmocka_unit_test(a_named_timer_fires_with_the_payload_it_was_armed_with),
        cmocka_unit_test(cleared_timer_does_not_fire),
        cmocka_unit_test(a_timeout_that_is_not_accepted_is_removed_and_reported),
        cmocka_unit_test(timeout_refused_by_a_guard_is_not_retried),
        cmocka_unit_test(a_hook_that_fails_has_the_timeout_tried_again),
        cmocka_unit_test(a_hook_that_keeps_failing_ends_the_timeout_after_the_last_attempt),
        cmocka_unit_test(arming_again_moves_the_deadline_and_fires_once),
        cmocka_unit_test(timer_due_during_a_send_waits_for_it),
        cmocka_unit_test(settling_waits_for_effects_and_due_timers),
        cmocka_unit_test(user_loop_fires_timers_when_it_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
