/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan_test.c - the times of a schedule, when a task is also run manually, when its group begins
 * again, and when the clock is set. */
#include "task/edge_test.h"

static const struct det_schedule hourly = { .every = DET_HOUR };

static void manual_run_does_not_shift_the_schedule(void **state)
{
    static struct fixture f;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    id = add(&f, (struct det_task_spec){ .name = "hourly", .step = count, .schedule = hourly });
    turn_for(&f, 30 * DET_MINUTE);
    assert_int_equal(det_tasks_restart(f.tasks, id), 1);
    turn_for(&f, DET_MINUTE);
    assert_int_equal(f.calls, 1);
    turn_for(&f, 30 * DET_MINUTE);
    assert_int_equal(f.calls, 2);
    close_all(&f);
}

static void group_restart_loses_no_scheduled_time(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(
        det_tasks_add_group(f.tasks, &(struct det_task_group_spec){ .name = "group" }, NULL), 0);
    add(&f, (struct det_task_spec){
                .name = "hourly", .step = count, .schedule = hourly, .group = "group" });
    turn_for(&f, 30 * DET_MINUTE);
    assert_int_equal(det_tasks_group_cancel(f.tasks, "group"), 1);
    turn_for(&f, DET_MINUTE);
    assert_int_equal(det_tasks_group_start(f.tasks, "group"), 1);
    turn_for(&f, 30 * DET_MINUTE);
    assert_int_equal(f.calls, 1);
    close_all(&f);
}

static int keep_missed(void *user, const struct det_task_event *event)
{
    uint64_t *missed = user;

    *missed += event->kind == DET_TASK_EVENT_RUNS_MISSED ? event->count : 0;
    return 0;
}

static int long_at_first(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    if (f->calls == 0) {
        f->calls = 1;
        det_task_wake_at(context, now(f) + 150 * DET_MINUTE);
        return DET_STEP_WAIT;
    }
    f->calls++;
    return DET_STEP_DONE;
}

static void missed_times_are_reported_once_even_after_a_manual_run(void **state)
{
    static struct fixture f;
    uint64_t missed = 0;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(
        det_bus_subscribe(
            det_tasks_bus(f.tasks),
            &(struct det_subscriber){
                .delivery = DET_DELIVER_LOSSLESS, .on_event = keep_missed, .user = &missed },
            NULL, NULL),
        0);
    id = add(
        &f, (struct det_task_spec){ .name = "hourly", .step = long_at_first, .schedule = hourly });
    turn_for(&f, 215 * DET_MINUTE);
    assert_int_equal(missed, 2);
    assert_int_equal(det_tasks_restart(f.tasks, id), 1);
    turn_for(&f, DET_MINUTE);
    assert_int_equal(missed, 2);
    close_all(&f);
}

static void a_clock_that_is_set_back_does_not_stop_a_schedule(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "hourly", .step = count, .schedule = hourly });
    turn_for(&f, 30 * DET_MINUTE);
    det_sim_jump_wall(f.sim, -1000 * DET_DAY);
    turn_for(&f, 10 * DET_HOUR);
    assert_in_range(f.calls, 9, 10);
    close_all(&f);
}

static void clock_set_back_slightly_repeats_no_run(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "hourly", .step = count, .schedule = hourly });
    turn_for(&f, 65 * DET_MINUTE);
    assert_int_equal(f.calls, 1);
    det_sim_jump_wall(f.sim, -10 * DET_MINUTE);
    turn_for(&f, 64 * DET_MINUTE);
    assert_int_equal(f.calls, 1);
    turn_for(&f, 2 * DET_MINUTE);
    assert_int_equal(f.calls, 2);
    close_all(&f);
}

static void incomplete_schedule_is_refused(void **state)
{
    static struct fixture f;
    struct det_task_spec spec = { .name = "half", .step = count, .schedule.spread = DET_SECOND };

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(det_tasks_add(f.tasks, &spec, NULL, NULL, NULL), DET_ERR_INVALID);
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_run_does_not_shift_the_schedule),
        cmocka_unit_test(group_restart_loses_no_scheduled_time),
        cmocka_unit_test(missed_times_are_reported_once_even_after_a_manual_run),
        cmocka_unit_test(a_clock_that_is_set_back_does_not_stop_a_schedule),
        cmocka_unit_test(clock_set_back_slightly_repeats_no_run),
        cmocka_unit_test(incomplete_schedule_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
