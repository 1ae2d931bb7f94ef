/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* edge_test.c - tasks at their edges: undone adds, drains, order, memory that must not grow, and
 * two threads at one loop. */
#include <detent/driver/loop.h>

#include "task/edge_test.h"

/* An add that was undone leaves nothing. */

static struct det_task_spec orphan(const char *name)
{
    static const struct det_dependency nobody = { .name = "nobody" };

    return (struct det_task_spec){
        .name = name, .step = count, .depends_on = &nobody, .depends_on_count = 1
    };
}

static void refused_task_does_not_keep_run_waiting(void **state)
{
    static struct fixture f;
    struct det_task_spec spec = orphan("orphan");

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(det_tasks_add(f.tasks, &spec, NULL, NULL, NULL), DET_ERR_NOT_FOUND);
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    close_all(&f);
}

static void a_batch_that_is_refused_leaves_nothing_to_the_loop(void **state)
{
    static struct fixture f;
    struct det_task_spec specs[] = { { .name = "good", .step = count }, orphan("orphan") };

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(det_tasks_add_batch(f.tasks, specs, 2, NULL, NULL), DET_ERR_NOT_FOUND);
    close_all(&f);
}

/* Drained: none follows. */

static void drain_during_a_restart_starts_no_attempt(void **state)
{
    static struct fixture f;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    id = add(&f, (struct det_task_spec){ .name = "task", .step = hold_out });
    turn_for(&f, DET_MILLISECOND);
    assert_int_equal(det_tasks_restart(f.tasks, id), 1);
    assert_int_equal(det_tasks_drain(f.tasks, id), 1);
    assert_int_equal(det_tasks_drain(f.tasks, id), 0);
    f.may_end = true;
    assert_int_equal(det_tasks_wake(f.tasks, id), 1);
    turn_for(&f, DET_SECOND);
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.end_count, 1);
    close_all(&f);
}

static void drained_task_does_not_restart_with_its_group(void **state)
{
    static struct fixture f;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(
        det_tasks_add_group(f.tasks, &(struct det_task_group_spec){ .name = "group" }, NULL), 0);
    id = add(&f, (struct det_task_spec){ .name = "task", .step = hold_out, .group = "group" });
    f.may_end = true;
    turn_for(&f, DET_MILLISECOND);
    assert_int_equal(det_tasks_drain(f.tasks, id), 1);
    assert_int_equal(det_tasks_group_cancel(f.tasks, "group"), 1);
    turn_for(&f, DET_SECOND);
    assert_int_equal(f.end_count, 1);
    assert_int_equal(det_tasks_group_start(f.tasks, "group"), 1);
    turn_for(&f, DET_SECOND);
    assert_int_equal(f.calls, 1);
    close_all(&f);
}

/* Permits. */

static int note_order(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    f->calls = f->calls * 10 + (det_task_attempt(context) == 1 ? 1 : 2);
    return 0;
}

static int note_again(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    if (det_task_attempt(context) == 1)
        return DET_STEP_WAIT;
    f->calls = f->calls * 10 + 2;
    return DET_STEP_DONE;
}

static void restarting_step_does_not_overtake_a_waiting_function(void **state)
{
    static struct fixture f;
    det_task_id id;

    (void)state;
    open_with(&f, (struct det_tasks_options){ .concurrent_max = 1 });
    id = add(&f, (struct det_task_spec){ .name = "step", .step = note_again });
    turn_for(&f, DET_MILLISECOND);
    add(&f, (struct det_task_spec){ .name = "function", .function = note_order });
    turn_for(&f, DET_MILLISECOND);
    assert_int_equal(det_tasks_restart(f.tasks, id), 1);
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.calls, 12);
    close_all(&f);
}

/* Slots of any size. */

enum { CROWD = 3000 };

/* All with the same name, or each with its own. */
static void submit_crowd(struct fixture *f, const char *same)
{
    for (unsigned i = 0; i < CROWD; i++) {
        struct det_task_spec spec = { .step = hold_out, .argument = f };
        char name[32];

        snprintf(name, sizeof name, "task-%u", i);
        spec.name = same ? same : name;
        assert_int_equal(
            det_slot_submit(
                f->tasks,
                &(struct det_submission){
                    .slot = "slot", .admission = DET_ADMIT_QUEUE, .task = &spec },
                NULL, NULL, NULL),
            0);
    }
}

static void a_slot_may_be_widened_for_thousands(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ .slot_depth_max = CROWD });
    submit_crowd(&f, NULL);
    assert_int_equal(
        det_slot_configure(f.tasks, "slot", &(struct det_slot_options){ .width = CROWD }, NULL), 0);
    assert_int_equal(det_tasks_counts(f.tasks).registered, CROWD);
    f.may_end = true;
    close_all(&f);
}

static void thousands_of_queued_tasks_may_all_fail_to_start(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ .slot_depth_max = CROWD });
    f.may_end = true;
    assert_int_equal(
        det_slot_submit(
            f.tasks,
            &(struct det_submission){
                .slot = "slot",
                .admission = DET_ADMIT_QUEUE,
                .task =
                    &(struct det_task_spec){ .name = "owner", .step = hold_out, .argument = &f } },
            NULL, NULL, NULL),
        0);
    add(&f, (struct det_task_spec){ .name = "taken", .step = hold_out });
    submit_crowd(&f, "taken");
    assert_int_equal(det_slot_cancel(f.tasks, "slot"), 1);
    turn_for(&f, DET_SECOND);
    assert_int_equal(f.end_count, CROWD + 1);
    assert_int_equal(f.ends[1].rejection, DET_REJECTION_ALREADY_EXISTS);
    close_all(&f);
}

/* Memory that must not grow. */

static void cancelled_wait_leaks_nothing(void **state)
{
    static struct fixture f;
    struct det_waiter *waiters[3];
    struct det_task_end end;
    det_task_id id;
    uint64_t before;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    f.may_end = true;
    id = add(&f, (struct det_task_spec){ .name = "service", .step = hold_out });
    turn_for(&f, DET_MILLISECOND);
    before = f.memory.live_bytes;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(det_tasks_watch(f.tasks, id, &waiters[i]), 0);
    det_waiter_close(waiters[1]);
    det_waiter_close(waiters[2]);
    det_waiter_close(waiters[0]);
    assert_int_equal(f.memory.live_bytes, before);
    assert_int_equal(det_tasks_watch(f.tasks, id, &waiters[0]), 0);
    assert_int_equal(det_tasks_remove(f.tasks, id), 1);
    turn_for(&f, DET_MILLISECOND);
    assert_int_equal(det_waiter_wait(waiters[0], 0, &end), 0);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_CANCELLED);
    det_waiter_close(waiters[0]);
    close_all(&f);
}

static void policy_is_freed_with_its_last_task(void **state)
{
    static struct fixture f;
    uint64_t before = 0;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    for (unsigned i = 0; i < 100; i++) {
        add(&f, (struct det_task_spec){
                    .name = "task", .step = count, .policy.timeout = DET_SECOND + i });
        turn_for(&f, DET_MILLISECOND);
        before = i == 1 ? f.memory.live_bytes : before;
    }
    assert_int_equal(f.memory.live_bytes, before);
    close_all(&f);
}

/* Two threads and a loop that is turned. */

static int find_loop_owner(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;
    det_task_id id;

    (void)context;
    f->may_end = !det_loop_is_mine(f->loop);
    return det_tasks_add(
        f->tasks, &(struct det_task_spec){ .name = "next", .step = count, .argument = f }, NULL,
        &id, NULL);
}

static void running_loop_belongs_to_its_thread(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "function", .function = find_loop_owner });
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_true(f.may_end);
    assert_int_equal(f.calls, 1);
    close_all(&f);
}

static void shut_down_too(void *argument)
{
    struct fixture *f = argument;

    f->end_count = det_tasks_shutdown(f->tasks, NULL) == 0;
}

static void run_returns_when_another_thread_ends_the_bus(void **state)
{
    static struct fixture f;
    struct det_thread *thread;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        open_seed(&f, (struct det_tasks_options){ 0 }, seed);
        f.may_end = true;
        add(&f, (struct det_task_spec){ .name = "task", .step = hold_out });
        turn_for(&f, DET_MILLISECOND);
        assert_int_equal(
            det_thread_start(det_sim_world(f.sim), "other", shut_down_too, &f, &thread), 0);
        assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
        det_thread_join(det_sim_world(f.sim), thread);
        close_all(&f);
    }
}

/* Waiting for what only this thread could do. */

static void shut_down_and_wait(void *user, const struct det_task_end *end)
{
    struct fixture *f = user;

    (void)end;
    if (f->end_count++ == 0)
        f->loop_answer = det_tasks_shutdown(f->tasks, NULL);
}

static void a_shutdown_on_its_own_thread_begins_and_does_not_wait(void **state)
{
    static struct fixture f;
    struct det_tasks_options options = { .on_end = shut_down_and_wait, .user = &f };
    struct det_task_spec specs[] = {
        { .name = "first", .step = count, .argument = &f },
        { .name = "second", .step = hold_out, .argument = &f },
    };

    (void)state;
    memset(&f, 0, sizeof f);
    f.may_end = true;
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &f.sim, NULL), 0);
    options.world = det_sim_world(f.sim);
    assert_int_equal(det_tasks_open(&options, &f.tasks, NULL), 0);
    assert_int_equal(det_tasks_add_batch(f.tasks, specs, 2, NULL, NULL), 0);
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    det_tasks_close(f.tasks);
    assert_int_equal(f.loop_answer, DET_ERR_DEADLOCK);
    assert_int_equal(f.end_count, 2);
    det_sim_close(f.sim);
}

static int take_event(void *user, const struct det_task_event *event)
{
    (void)user;
    (void)event;
    return 0;
}

static void count_close(void *user)
{
    unsigned *closes = user;

    ++*closes;
}

static void a_subscription_outlives_the_shutdown(void **state)
{
    static struct fixture f;
    struct det_subscription *subscription;
    unsigned closes;

    (void)state;
    for (int delivery = DET_DELIVER_THREAD; delivery <= DET_DELIVER_LOSSLESS; delivery++) {
        closes = 0;
        open_with(&f, (struct det_tasks_options){ 0 });
        assert_int_equal(
            det_bus_subscribe(
                det_tasks_bus(f.tasks),
                &(struct det_subscriber){ .delivery = (enum det_delivery)delivery,
                                          .on_event = take_event,
                                          .on_close = count_close,
                                          .user = &closes },
                &subscription, NULL),
            0);
        add(&f, (struct det_task_spec){ .name = "task", .step = count });
        assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
        turn_for(&f, DET_MILLISECOND);
        assert_int_equal(det_subscription_counts(subscription).delivered, 7);
        assert_int_equal(det_subscription_stop(subscription, DET_NEVER), 0);
        assert_int_equal(closes, 1);
        close_all(&f);
    }
}

static void a_ring_that_is_too_large_is_refused(void **state)
{
    struct det_tasks *tasks;

    (void)state;
    assert_int_equal(
        det_tasks_open(&(struct det_tasks_options){ .bus_capacity = 1048577 }, &tasks, NULL),
        DET_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_task_does_not_keep_run_waiting),
        cmocka_unit_test(a_batch_that_is_refused_leaves_nothing_to_the_loop),
        cmocka_unit_test(drain_during_a_restart_starts_no_attempt),
        cmocka_unit_test(drained_task_does_not_restart_with_its_group),
        cmocka_unit_test(restarting_step_does_not_overtake_a_waiting_function),
        cmocka_unit_test(a_slot_may_be_widened_for_thousands),
        cmocka_unit_test(thousands_of_queued_tasks_may_all_fail_to_start),
        cmocka_unit_test(cancelled_wait_leaks_nothing),
        cmocka_unit_test(policy_is_freed_with_its_last_task),
        cmocka_unit_test(running_loop_belongs_to_its_thread),
        cmocka_unit_test(run_returns_when_another_thread_ends_the_bus),
        cmocka_unit_test(a_shutdown_on_its_own_thread_begins_and_does_not_wait),
        cmocka_unit_test(a_subscription_outlives_the_shutdown),
        cmocka_unit_test(a_ring_that_is_too_large_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
