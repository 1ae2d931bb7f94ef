/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* step_calls_test.c - a step may do to its own task what others may, in the middle of itself. */
#include "task/edge_test.h"

static int remove_self(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    f->calls++;
    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    assert_int_equal(det_tasks_remove(f->tasks, det_task_id_of(context)), 1);
    assert_int_equal(det_tasks_remove(f->tasks, det_task_id_of(context)), 0);
    return DET_STEP_WAIT;
}

static void a_step_may_remove_its_own_task(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "self", .step = remove_self });
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.calls, 2);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_CANCELLED);
    close_all(&f);
}

static int remove_self_and_end(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    f->calls++;
    assert_int_equal(det_tasks_remove(f->tasks, det_task_id_of(context)), 1);
    return det_task_fail(context, DET_ERR_IO, "and fails");
}

static void a_step_that_removes_its_task_and_ends_is_not_called_again(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "self", .step = remove_self_and_end });
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_CANCELLED);
    close_all(&f);
}

static int restart_self(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    f->calls = det_task_attempt(context);
    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    if (det_task_attempt(context) == 3)
        return DET_STEP_DONE;
    assert_int_equal(det_tasks_restart(f->tasks, det_task_id_of(context)), 1);
    assert_int_equal(det_tasks_restart(f->tasks, det_task_id_of(context)), 1);
    return det_task_attempt(context) == 1 ? DET_STEP_WAIT : DET_STEP_DONE;
}

static void a_step_may_restart_its_own_task(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "self", .step = restart_self });
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.calls, 3);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(f.ends[0].attempts, 3);
    close_all(&f);
}

static int replace_self(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;
    struct det_task_spec spec = { .name = "self", .step = count, .argument = f };
    struct det_admitted admitted;

    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    assert_int_equal(
        det_slot_submit(
            f->tasks,
            &(struct det_submission){
                .slot = "slot", .admission = DET_ADMIT_REPLACE, .task = &spec },
            NULL, &admitted, NULL),
        0);
    assert_false(admitted.is_started);
    return DET_STEP_WAIT;
}

static void a_step_may_replace_itself_in_its_slot(void **state)
{
    static struct fixture f;
    struct det_task_spec spec = { .name = "self", .step = replace_self, .argument = &f };

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    assert_int_equal(
        det_slot_submit(
            f.tasks,
            &(struct det_submission){ .slot = "slot", .admission = DET_ADMIT_QUEUE, .task = &spec },
            NULL, NULL, NULL),
        0);
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_CANCELLED);
    assert_int_equal(f.ends[1].outcome, DET_TASK_OUTCOME_COMPLETED);
    close_all(&f);
}

static int shut_down(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    det_tasks_begin_shutdown(f->tasks);
    return DET_STEP_WAIT;
}

static void a_step_may_begin_the_shutdown(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "last", .step = shut_down });
    add(&f, (struct det_task_spec){ .name = "other", .step = hold_out });
    f.may_end = true;
    assert_int_equal(det_tasks_run(f.tasks, NULL), 0);
    assert_int_equal(f.end_count, 2);
    close_all(&f);
}

static int force_all(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    (void)context;
    f->calls++;
    det_tasks_force(f->tasks);
    return DET_STEP_WAIT;
}

static void a_step_may_force_the_end_of_all(void **state)
{
    static struct fixture f;

    (void)state;
    open_with(&f, (struct det_tasks_options){ 0 });
    add(&f, (struct det_task_spec){ .name = "hasty", .step = force_all });
    assert_int_equal(det_tasks_run(f.tasks, NULL), DET_ERR_TIMEOUT);
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.ends[0].outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_may_remove_its_own_task),
        cmocka_unit_test(a_step_that_removes_its_task_and_ends_is_not_called_again),
        cmocka_unit_test(a_step_may_restart_its_own_task),
        cmocka_unit_test(a_step_may_replace_itself_in_its_slot),
        cmocka_unit_test(a_step_may_begin_the_shutdown),
        cmocka_unit_test(a_step_may_force_the_end_of_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
