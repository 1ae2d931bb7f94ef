/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* status_test.c - what is shown of a task: since when it is in its state, how its last attempt
 * ended, how often it was restarted. */
#include "task/behaviour_test.h"

struct status {
    char state[32];
    det_time since;
    uint64_t restarts;
    struct det_task_end last;
};

static int copy_status(void *user, const struct det_task_info *info)
{
    struct status *status = user;

    (void)snprintf(status->state, sizeof status->state, "%s", info->state);
    status->since = info->since;
    status->restarts = info->restarts;
    status->last = info->last;
    return 0;
}

static struct status status_of(struct lab *lab, const struct script *script)
{
    struct status status = { .since = 0 };

    assert_int_equal(det_tasks_get(lab->tasks, script->id, copy_status, &status), 0);
    return status;
}

static det_time wall_now(struct lab *lab)
{
    return det_world_now(lab->world, DET_CLOCK_WALL);
}

static void success_after_a_cancel_keeps_the_cancelled_end(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "l", .kind = kind };
        struct det_waiter *waiter = lab_add(lab, &script, "late", &lab_once);

        lab_settle(lab);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 1);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        lab_settle(lab);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, "late"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_CANCELLED, "late"), 0);
        assert_int_equal(
            lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "late", 0).outcome,
            DET_TASK_OUTCOME_CANCELLED);
        lab_close(lab);
    }
}

static void success_during_a_manual_restart_is_not_completion(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "lh" };
    const struct det_dependency completed = { "late", DET_WHEN_COMPLETED };
    struct det_waiter *waiter = lab_add(lab, &script, "late", NULL);

    (void)unused;
    lab_settle(lab);
    assert_int_equal(det_tasks_restart(lab->tasks, script.id), 1);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, "late"), 1);
    assert_int_equal(script.runs, 2);
    assert_int_equal(det_tasks_is_met(lab->tasks, &completed), 0);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void the_last_attempt_is_shown_while_the_next_one_runs(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "fowh", .kind = kind, .span = DET_HOUR };
        struct det_policy policy = {
            .restart = DET_RESTART_ALWAYS,
            .interval = DET_MINUTE,
            .backoff = { .first = DET_MINUTE, .jitter = DET_JITTER_NONE },
        };
        struct det_waiter *waiter = lab_add(lab, &script, "one", &policy);

        lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one", 1);
        lab_settle(lab);
        assert_int_equal(status_of(lab, &script).last.outcome, DET_TASK_OUTCOME_FAILED);
        lab_advance(lab, DET_MINUTE);
        assert_string_equal(status_of(lab, &script).state, "resting");
        assert_int_equal(status_of(lab, &script).last.outcome, DET_TASK_OUTCOME_COMPLETED);
        lab_advance(lab, DET_MINUTE);
        assert_string_equal(status_of(lab, &script).state, "running");
        assert_int_equal(status_of(lab, &script).last.outcome, DET_TASK_OUTCOME_COMPLETED);
        det_waiter_close(waiter);
        lab_close(lab);
    }
}

static void no_last_attempt_before_the_first_has_ended(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "h" };
    struct det_waiter *waiter = lab_add(lab, &script, "one", NULL);

    (void)unused;
    lab_settle(lab);
    assert_string_equal(status_of(lab, &script).state, "running");
    assert_int_equal(status_of(lab, &script).last.outcome, DET_TASK_OUTCOME_NONE);
    det_waiter_close(waiter);
    lab_close(lab);
}

static void scheduled_runs_are_not_counted_as_restarts_but_retries_are(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "oofo", .lab = lab };
    struct det_policy policy = {
        .restart = DET_RESTART_ON_FAILURE,
        .backoff = { .first = DET_SECOND, .jitter = DET_JITTER_NONE },
    };
    struct det_task_spec spec = script_spec(&script, "planned", &policy);

    (void)unused;
    spec.schedule.every = DET_HOUR;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &script.id, NULL), 0);
    lab_advance(lab, 2 * DET_HOUR + DET_MINUTE);
    assert_int_equal(script.runs, 2);
    assert_int_equal(status_of(lab, &script).restarts, 0);
    assert_int_equal(det_tasks_counts(lab->tasks).restarts, 0);
    lab_advance(lab, DET_HOUR);
    assert_int_equal(script.runs, 4);
    assert_int_equal(status_of(lab, &script).restarts, 1);
    assert_int_equal(det_tasks_counts(lab->tasks).restarts, 1);
    lab_close(lab);
}

static void task_end_has_the_number_of_restarts(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "ffo" };
    struct det_policy policy = { .backoff = { .first = DET_SECOND } };

    (void)unused;
    assert_int_equal(lab_run(lab, &script, "one", &policy).restarts, 2);
    lab_close(lab);
}

/* Each state has its own beginning. */
static void since_is_the_beginning_of_the_state_that_is_shown(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = 1 });
    struct script script = { .acts = "s" }, second = { .acts = "h" };
    struct det_policy policy = { .grace = DET_NEVER };
    struct det_waiter *waiter = lab_add(lab, &script, "one", &policy), *other;
    det_time began, stopped;

    (void)unused;
    lab_settle(lab);
    began = wall_now(lab);
    assert_int_equal(status_of(lab, &script).since, began);
    lab_advance(lab, DET_HOUR);
    stopped = wall_now(lab);
    other = lab_add(lab, &second, "two", NULL);
    assert_int_equal(det_tasks_hold(lab->tasks, script.id), 1);
    lab_settle(lab);
    assert_string_equal(status_of(lab, &script).state, "holding");
    assert_int_equal(status_of(lab, &script).since, stopped);
    assert_string_equal(status_of(lab, &second).state, "waiting");
    assert_int_equal(status_of(lab, &second).since, stopped);
    lab_advance(lab, DET_HOUR);
    lab_report(lab, &script);
    lab_settle(lab);
    assert_string_equal(status_of(lab, &script).state, "held");
    assert_int_equal(status_of(lab, &script).since, stopped + DET_HOUR);
    /* The span of the attempt is from its start, not from the stop. */
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, "one", 0).duration, 2 * DET_HOUR);
    det_waiter_close(waiter);
    det_waiter_close(other);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_after_a_cancel_keeps_the_cancelled_end),
        cmocka_unit_test(success_during_a_manual_restart_is_not_completion),
        cmocka_unit_test(the_last_attempt_is_shown_while_the_next_one_runs),
        cmocka_unit_test(no_last_attempt_before_the_first_has_ended),
        cmocka_unit_test(scheduled_runs_are_not_counted_as_restarts_but_retries_are),
        cmocka_unit_test(task_end_has_the_number_of_restarts),
        cmocka_unit_test(since_is_the_beginning_of_the_state_that_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
