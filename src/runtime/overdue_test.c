/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* overdue_test.c - a timer that is due when a tool sends to its instance fires first, as in an
 * active runtime; on every kind of store. */
#include <detent/lock.h>

#include "runtime/faulty_test.h"

static const struct det_runtime_options passive = { .is_passive = true };

/* CHARGING, from where LATE leads back to PENDING after ten minutes; closed, as commands do. */
static void charging(struct fixture *f)
{
    fixture_reopen(f, passive);
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    fixture_reopen(f, passive);
}

static void in_a_file(void (*test)(struct fixture *f))
{
    struct fixture *f = fixture_open(passive);
    char *folder = det_test_folder(), url[1024];

    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_store_close(f->store);
    snprintf(url, sizeof url, "sqlite:%s/orders.db", folder);
    assert_int_equal(
        det_store_open_with(
            url, &(struct det_store_options){ .world = det_sim_world(f->sim), .connections = 1 },
            &f->store, &f->error),
        0);
    test(f);
    fixture_close(f);
    det_test_folder_remove(folder);
}

static void in_every_store(void (*test)(struct fixture *f))
{
    in_fixture(test);
    in_a_file(test);
}

static void goes_first(struct fixture *f)
{
    const struct recorded *events;

    charging(f);
    advance(f, DET_HOUR);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.sequence, 3);
    events = events_after(f, "o-1", 0);
    assert_int_equal(events->count, 3);
    assert_int_equal(events->rows[1].event, LATE);
    assert_true(events->rows[1].is_timeout);
    assert_int_equal(events->rows[2].event, PING);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_int_equal(counts(f).timeouts_fired, 1);
    /* The one that was armed by it is due later, from now. */
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(
        timers(f, "o-1")->rows[0].due,
        det_world_now(det_sim_world(f->sim), DET_CLOCK_WALL) + 30 * DET_MINUTE);
    assert_int_equal(f->control.effects, 0);
}

static void overdue_timer_fires_before_a_send(void **state)
{
    (void)state;
    in_every_store(goes_first);
}

static void waits(struct fixture *f)
{
    charging(f);
    advance(f, 10 * DET_MINUTE - 1);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_UNHANDLED);
    assert_int_equal(get(f, "o-1").sequence, 1);
    advance(f, 1);
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(get(f, "o-1").sequence, 3);
}

static void a_timer_that_is_not_due_waits(void **state)
{
    (void)state;
    in_every_store(waits);
}

static void stops(struct fixture *f)
{
    charging(f);
    advance(f, DET_HOUR);
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", "enough", NULL, &f->sent, NULL), 0);
    assert_int_equal(events_after(f, "o-1", 0)->count, 3);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
    assert_int_equal(get(f, "o-1").state, PENDING);
    assert_true(get(f, "o-1").is_stopped);
}

static void it_precedes_a_manual_stop_too(void **state)
{
    (void)state;
    in_every_store(stops);
}

static void done(struct det_send *send)
{
    *(int *)send->user += 1;
}

static void submits(struct fixture *f)
{
    struct order_event ping = { .kind = PING };
    int reported = 0;
    struct det_send send = {
        .machine = f->order, .instance = "o-1", .event = &ping, .done = done, .user = &reported
    };

    charging(f);
    advance(f, DET_HOUR);
    assert_int_equal(det_runtime_submit(f->runtime, &send), 0);
    settle(f);
    assert_int_equal(reported, 1);
    assert_int_equal(send.result, 0);
    assert_int_equal(send.sent.sequence, 3);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
}

static void overdue_timer_fires_before_a_submission(void **state)
{
    (void)state;
    in_every_store(submits);
}

static void with_its_payload(struct fixture *f)
{
    const struct recorded *events;

    /* SHIPPED, with a reminder that is due after an hour and stays there. */
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    assert_int_equal(start(f, "o-1"), 0);
    assert_int_equal(send_kind(f, "o-1", PAY), 0);
    settle(f);
    assert_int_equal(send_kind(f, "o-1", SHIP), 0);
    fixture_reopen(f, passive);
    advance(f, 2 * DET_HOUR);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    events = events_after(f, "o-1", 0);
    assert_int_equal(events->count, 5);
    assert_int_equal(events->rows[3].event, REMIND);
    assert_int_equal(events->rows[3].value.as.remind.cents, 2000);
    assert_int_equal(events->rows[4].event, CANCEL);
    assert_int_equal(timers(f, "o-1")->count, 0);
}

static void overdue_named_timer_fires_first_with_its_payload(void **state)
{
    (void)state;
    in_every_store(with_its_payload);
}

/* CHARGING, with the reminder that is due after an hour, and LATE after two: then PAID. */
static struct det_machine *two_timers(bool is_reminder_handled)
{
    struct det_machine_builder *b;

    assert_int_equal(det_machine_builder_open("order", NULL, &b), 0);
    det_machine_builder_data(b, &order_data_record);
    order_names(b, true);
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST("PAY"),
                                 .outcome = DET_OUTCOME_GOTO,
                                 .to = "CHARGING",
                                 .arms = DET_LIST("reminder") });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST(is_reminder_handled ? "CHARGING" : "SHIPPED"),
                                 .events = DET_LIST("REMIND"),
                                 .outcome = DET_OUTCOME_STAY,
                                 .guard = "can_pay",
                                 .hook = "check" });
    det_machine_builder_on(
        b, &(struct det_on_row){ .from = DET_LIST("PENDING"),
                                 .events = DET_LIST(
                                     "CHARGED", "DECLINED", "EXPIRE", "TOUCH", "PING", "HALT",
                                     "NOTE", "NOISE", "JUNK"),
                                 .outcome = DET_OUTCOME_STAY });
    order_on(b, "CHARGING", "LATE", "PAID");
    order_on(b, "CHARGING", "SHIP", "CANCELLED");
    order_on(b, "PAID", "SHIP", "SHIPPED");
    order_on(b, "SHIPPED", "CANCEL", "CANCELLED");
    det_machine_builder_after(
        b, DET_LIST("CHARGING"),
        &(struct det_timeout_row){ .after = 2 * DET_HOUR, .event = "LATE" });
    return built(b);
}

static void both_due(struct fixture *f, bool is_reminder_handled)
{
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_machine_close(f->order);
    f->order = two_timers(is_reminder_handled);
    charging(f);
    advance(f, 3 * DET_HOUR);
}

static void two_in_order(struct fixture *f)
{
    const struct recorded *events;

    both_due(f, true);
    assert_int_equal(send_kind(f, "o-1", SHIP), 0);
    events = events_after(f, "o-1", 0);
    assert_int_equal(events->count, 4);
    assert_int_equal(events->rows[1].event, REMIND);
    assert_int_equal(events->rows[2].event, LATE);
    assert_int_equal(events->rows[3].event, SHIP);
    assert_int_equal(counts(f).timeouts_fired, 2);
    assert_int_equal(counts(f).timeouts_rejected, 0);
    assert_int_equal(timers(f, "o-1")->count, 0);
}

static void two_overdue_timers_fire_in_order(void **state)
{
    (void)state;
    in_every_store(two_in_order);
}

static void check_only_late(struct fixture *f)
{
    const struct recorded *events;

    assert_int_equal(send_kind(f, "o-1", SHIP), 0);
    events = events_after(f, "o-1", 0);
    assert_int_equal(events->count, 3);
    assert_int_equal(events->rows[1].event, LATE);
    assert_int_equal(events->rows[2].event, SHIP);
    assert_int_equal(get(f, "o-1").state, SHIPPED);
    assert_int_equal(counts(f).timeouts_fired, 1);
}

/* As in an active runtime: the timer is removed. */
static void check_rejected(struct fixture *f, int code)
{
    check_only_late(f);
    assert_int_equal(counts(f).timeouts_rejected, 1);
    assert_int_equal(f->control.incident_counts[DET_INCIDENT_TIMEOUT_REJECTED], 1);
    assert_int_equal(f->control.incident.code, code);
    assert_string_equal(f->control.incident.name, "reminder");
    /* Where the state has no use for it, it is gone. */
    assert_int_equal(timers(f, "o-1")->count, code != DET_ERR_UNHANDLED);
}

static void unhandled(struct fixture *f)
{
    both_due(f, false);
    check_rejected(f, DET_ERR_UNHANDLED);
}

static void refused(struct fixture *f)
{
    both_due(f, true);
    f->control.guard_refuses = true;
    check_rejected(f, DET_ERR_REFUSED);
}

static void a_timer_that_is_not_accepted_is_removed_and_later_ones_fire(void **state)
{
    (void)state;
    in_every_store(unhandled);
    in_every_store(refused);
}

static void fails(struct fixture *f)
{
    both_due(f, true);
    f->control.hook_result = DET_ERR_IO;
    check_only_late(f);
    assert_int_equal(f->control.hooks, 1);
    assert_int_equal(counts(f).timeouts_rejected, 0);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_string_equal(timers(f, "o-1")->rows[0].name, "reminder");
}

static void a_timer_that_fails_stays_and_later_ones_fire(void **state)
{
    (void)state;
    in_every_store(fails);
}

/* Entering PENDING calls a hook that is not bound here. */
static void stays(struct fixture *f)
{
    struct det_machine *named = order_machine(false);
    struct order_event noise = { .kind = NOISE };

    charging(f);
    advance(f, DET_HOUR);
    assert_int_equal(det_runtime_send(f->runtime, named, "o-1", &noise, NULL, &f->sent, NULL), 0);
    assert_int_equal(f->sent.outcome, DET_OUTCOME_IGNORED);
    fixture_reopen(f, (struct det_runtime_options){ 0 });
    det_machine_close(named);
    assert_int_equal(timers(f, "o-1")->count, 1);
    assert_int_equal(det_runtime_serve(f->runtime, f->order, &f->error), 0);
    settle(f);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
}

static void a_timer_that_cannot_fire_here_is_left_to_an_active_runtime(void **state)
{
    (void)state;
    in_a_file(stays);
}

/* A holder that releases a lock after a while. */
struct holder {
    struct fixture *f;
    struct det_lock *lock;
};

static void hold(void *argument)
{
    struct holder *holder = argument;

    wait_in(det_sim_world(holder->f->sim), 3 * DET_SECOND);
    det_lock_close(holder->lock);
}

/* Calls `act` while another holder has the lock of o-1, where LATE is due. */
static void locked(struct fixture *f, det_time wait, void (*act)(struct fixture *f))
{
    struct det_world *world = det_sim_world(f->sim);
    struct det_lock_options options = { .wait = wait };
    struct holder holder = { .f = f };
    struct det_thread *thread;

    charging(f);
    fixture_reopen(f, (struct det_runtime_options){ .is_passive = true, .lock = &options });
    advance(f, DET_HOUR);
    assert_int_equal(
        det_lock_open(f->runtime, f->order, "o-1", &options, &holder.lock, &f->error), 0);
    assert_int_equal(det_thread_start(world, "holder", hold, &holder, &thread), 0);
    act(f);
    det_thread_join(world, thread);
}

static void ping_in_turn(struct fixture *f)
{
    assert_int_equal(send_kind(f, "o-1", PING), 0);
    assert_int_equal(f->sent.sequence, 3);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
}

static void stop_in_turn(struct fixture *f)
{
    assert_int_equal(
        det_runtime_cancel(f->runtime, f->order, "o-1", "enough", NULL, &f->sent, NULL), 0);
    assert_int_equal(events_after(f, "o-1", 0)->count, 3);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
}

static void ping_in_vain(struct fixture *f)
{
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_LOCKED);
    assert_non_null(strstr(f->error.text, "order o-1 is locked by"));
    assert_int_equal(get(f, "o-1").sequence, 1);
    assert_int_equal(timers(f, "o-1")->count, 1);
}

static void sends_after_a_lock(struct fixture *f)
{
    locked(f, 5 * DET_SECOND, ping_in_turn);
}

static void stops_after_a_lock(struct fixture *f)
{
    locked(f, 5 * DET_SECOND, stop_in_turn);
}

static void does_not_wait(struct fixture *f)
{
    locked(f, -1, ping_in_vain);
}

static void a_passive_send_waits_for_the_lock_of_another_holder(void **state)
{
    (void)state;
    in_every_store(sends_after_a_lock);
    in_every_store(stops_after_a_lock);
    in_every_store(does_not_wait);
}

static void nap(void *context)
{
    struct fixture *f = context;

    wait_in(det_sim_world(f->sim), 20 * DET_SECOND);
}

static void pay(void *argument)
{
    struct fixture *f = argument;
    struct order_event event = { .kind = PAY, .as.pay = { .cents = 1, .card = "1" } };

    assert_int_equal(det_runtime_send(f->runtime, f->order, "o-1", &event, NULL, NULL, NULL), 0);
}

static void is_busy(struct fixture *f)
{
    struct det_world *world = det_sim_world(f->sim);
    struct det_thread *thread;
    det_time began;

    fixture_reopen(
        f, (struct det_runtime_options){
               .is_passive = true, .hook_deadline = DET_NEVER, .send_deadline = 3 * DET_SECOND });
    assert_int_equal(start(f, "o-1"), 0);
    f->control.in_guard = nap;
    f->control.context = f;
    assert_int_equal(det_thread_start(world, "payer", pay, f, &thread), 0);
    settle(f);
    began = det_world_now(world, DET_CLOCK_MONOTONIC);
    assert_int_equal(send_kind(f, "o-1", PING), DET_ERR_TIMEOUT);
    assert_int_equal(det_world_now(world, DET_CLOCK_MONOTONIC) - began, 3 * DET_SECOND);
    assert_int_equal(f->error.waited, 3 * DET_SECOND);
    det_thread_join(world, thread);
}

static void a_busy_instance_is_waited_for_once(void **state)
{
    (void)state;
    in_every_store(is_busy);
}

static void fails_to_commit(struct fixture *f)
{
    struct faulty faulty = { 0 };

    faulty_wrap(&faulty, f, false);
    charging(f);
    advance(f, DET_HOUR);
    faulty_set(&faulty, FAULT_BEFORE, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", CANCEL), DET_ERR_IO);
    assert_string_equal(f->error.text, "order o-1: the commit failed: input or output failed");
    assert_int_equal(get(f, "o-1").sequence, 1);
    faulty_set(&faulty, FAULT_AFTER, DET_ERR_IO, 0);
    assert_int_equal(send_kind(f, "o-1", CANCEL), 0);
    assert_int_equal(f->sent.sequence, 3);
    assert_int_equal(events_after(f, "o-1", 0)->rows[1].event, LATE);
    assert_int_equal(counts(f).timeouts_fired, 1);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    det_store_close(f->store);
    f->store = NULL;
}

static void send_fails_when_its_overdue_timer_cannot_commit(void **state)
{
    (void)state;
    in_fixture(fails_to_commit);
}

static int send_without_memory(struct det_test_memory *memory, void *argument)
{
    struct det_runtime *runtime = NULL;
    struct fixture *f = fixture_open(passive);
    struct order_event ping = { .kind = PING };
    int r;

    (void)argument;
    charging(f);
    advance(f, DET_HOUR);
    det_runtime_close(f->runtime);
    f->runtime = NULL;
    r = det_runtime_open(
        f->store,
        &(struct det_runtime_options){ .is_passive = true,
                                       .world = det_sim_world(f->sim),
                                       .user = &f->control,
                                       .allocator = &memory->allocator },
        &runtime, NULL);
    if (r == 0)
        r = det_runtime_send(runtime, f->order, "o-1", &ping, NULL, &f->sent, NULL);
    if (r == 0)
        assert_int_equal(f->sent.sequence, 3);
    det_runtime_close(runtime);
    fixture_close(f);
    return r;
}

static void allocation_failure_keeps_timers_before_sends(void **state)
{
    (void)state;
    det_test_each_failure(send_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overdue_timer_fires_before_a_send),
        cmocka_unit_test(a_timer_that_is_not_due_waits),
        cmocka_unit_test(it_precedes_a_manual_stop_too),
        cmocka_unit_test(overdue_timer_fires_before_a_submission),
        cmocka_unit_test(overdue_named_timer_fires_first_with_its_payload),
        cmocka_unit_test(two_overdue_timers_fire_in_order),
        cmocka_unit_test(a_timer_that_is_not_accepted_is_removed_and_later_ones_fire),
        cmocka_unit_test(a_timer_that_fails_stays_and_later_ones_fire),
        cmocka_unit_test(a_timer_that_cannot_fire_here_is_left_to_an_active_runtime),
        cmocka_unit_test(a_passive_send_waits_for_the_lock_of_another_holder),
        cmocka_unit_test(a_busy_instance_is_waited_for_once),
        cmocka_unit_test(send_fails_when_its_overdue_timer_cannot_commit),
        cmocka_unit_test(allocation_failure_keeps_timers_before_sends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
