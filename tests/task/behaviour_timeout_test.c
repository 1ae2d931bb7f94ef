/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_timeout_test.c - attempts that take too long, and work that does not stop when asked.
 *
 * Work is not dropped here as a future is elsewhere: it is asked, and no further attempt begins
 * while it lives. A step can be dropped by force after its grace, a function cannot. */
#include "task/behaviour_test.h"

static const struct det_policy hasty = {
    .restart = DET_RESTART_ON_FAILURE,
    .timeout = 50 * DET_MILLISECOND,
    .backoff = { .first = 100 * DET_MILLISECOND, .jitter = DET_JITTER_NONE },
};

/* How many of the four ends of an attempt there were. */
static size_t attempt_ends(struct lab *lab, const char *name)
{
    return lab_count(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, name) +
           lab_count(lab, DET_TASK_EVENT_ATTEMPT_FAILED, name) +
           lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, name) +
           lab_count(lab, DET_TASK_EVENT_ATTEMPT_CANCELLED, name);
}

static void an_attempt_that_times_out_is_retried(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "w", .span = DET_HOUR, .kind = kind };
        struct det_policy policy = hasty;
        struct det_task_end end;

        policy.retries_max = 1;
        end = lab_run(lab, &script, "slow", &policy);
        lab_settle(lab);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
        assert_int_equal(end.attempts, 2);
        assert_non_null(strstr(end.reason, "timed out"));
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "slow"), 2);
        for (size_t i = 0; i < 2; i++) {
            struct det_task_event event =
                lab_event(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "slow", i);

            assert_int_equal(event.timeout, 50 * DET_MILLISECOND);
            assert_int_equal(event.attempt, i + 1);
            assert_int_equal(event.duration, 50 * DET_MILLISECOND);
        }
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "slow"), 1);
        assert_int_equal(attempt_ends(lab, "slow"), 2);
        assert_int_equal(script.begun[1] - script.begun[0], 150 * DET_MILLISECOND);
        lab_close(lab);
    }
}

/* The permit is waited for before the attempt begins. */
static void waiting_for_a_permit_does_not_count_toward_the_timeout(void **unused)
{
    struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = 1 });
    struct script holder = { .acts = "w", .span = DET_HOUR };
    struct script script = { .acts = "o" };
    struct det_waiter *first, *second;

    (void)unused;
    first = lab_add(lab, &holder, "holder", &lab_once);
    lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "holder", 1);
    second = lab_add(lab, &script, "waits", &hasty);
    assert_int_equal(lab_end(first).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(lab_end(second).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(script.runs, 1);
    lab_close(lab);
}

static void a_timeout_followed_by_success_completes(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "ho", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &hasty);

        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(end.attempts, 2);
        lab_close(lab);
    }
}

/* What it says after its time was over does not count. */
static void success_after_the_timeout_counts_as_a_timeout(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "l", .kind = kind };
        struct det_policy policy = hasty;
        struct det_task_end end;

        policy.restart = DET_RESTART_NEVER;
        end = lab_run(lab, &script, "one", &policy);
        lab_settle(lab);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "one"), 1);
        assert_int_equal(attempt_ends(lab, "one"), 1);
        lab_close(lab);
    }
}

static void an_explicit_absence_of_timeout_overrides_the_default(void **unused)
{
    struct det_tasks_options options = { .defaults = { .timeout = DET_SECOND } };

    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct script script = { .acts = "w", .span = DET_DAY, .kind = kind };
        struct script unlimited = { .acts = "w", .span = DET_DAY, .kind = kind };
        struct script inherits = { .acts = "w", .span = DET_DAY, .kind = kind };
        struct det_policy none = { .restart = DET_RESTART_NEVER, .timeout = DET_NO_TIMEOUT };
        struct lab *lab = lab_open(NULL);

        assert_int_equal(
            lab_run(lab, &script, "one", &lab_once).outcome, DET_TASK_OUTCOME_COMPLETED);
        lab_close(lab);
        lab = lab_open(&options);
        assert_int_equal(
            lab_run(lab, &unlimited, "one", &none).outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(
            lab_run(lab, &inherits, "two", &lab_once).outcome, DET_TASK_OUTCOME_FAILED);
        assert_int_equal(
            lab_event(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "two", 0).timeout, DET_SECOND);
        lab_close(lab);
    }
}

static void a_task_that_returns_timeout_has_failed(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "to", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &hasty);

        lab_settle(lab);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "one"), 0);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one"), 1);
        lab_close(lab);
    }
}

/* Who wins when both come at the same moment is nobody's promise; that one does, is. */
static void a_result_at_the_deadline_gives_one_consistent_end(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct script script = { .acts = "w",
                                 .span = hasty.timeout,
                                 .kind = seed % 2 ? LAB_STEP : LAB_FUNCTION };
        struct det_policy policy = hasty;
        struct det_task_end end;

        policy.restart = DET_RESTART_NEVER;
        end = lab_run(lab, &script, "one", &policy);
        lab_settle(lab);
        assert_int_equal(attempt_ends(lab, "one"), 1);
        assert_int_equal(
            end.outcome == DET_TASK_OUTCOME_COMPLETED,
            lab_count(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, "one"));
        assert_int_equal(
            end.outcome == DET_TASK_OUTCOME_FAILED,
            lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "one"));
        lab_close(lab);
    }
}

/* A stubborn function: reported as stuck after its grace, and nothing else of it begins. */
static void the_next_attempt_waits_for_the_end_of_a_timed_out_one(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "ro", .span = DET_MINUTE };
    struct det_policy policy = hasty;
    struct det_task_end end;
    struct det_waiter *waiter;

    (void)unused;
    policy.grace = DET_SECOND;
    waiter = lab_add(lab, &script, "deaf", &policy);
    lab_advance(lab, 30 * DET_SECOND);
    assert_int_equal(script.runs, 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_STUCK, "deaf"), 1);
    assert_int_equal(det_tasks_counts(lab->tasks).stuck, 1);
    end = lab_end(waiter);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(script.runs, 2);
    assert_false(script.overlapped);
    assert_true(script.begun[1] - script.begun[0] >= DET_MINUTE);
    lab_settle(lab);
    assert_int_equal(attempt_ends(lab, "deaf"), 2);
    assert_int_equal(det_tasks_counts(lab->tasks).stuck, 0);
    lab_close(lab);
}

/* A stubborn step is dropped after its grace, and tried again. */
static void a_step_that_ignores_its_timeout_is_dropped_after_its_grace(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "so", .kind = LAB_STEP };
    struct det_policy policy = hasty;
    struct det_task_end end;

    (void)unused;
    policy.grace = DET_SECOND;
    end = lab_run(lab, &script, "deaf", &policy);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(end.attempts, 2);
    assert_true(script.begun[1] - script.begun[0] >= DET_SECOND + 50 * DET_MILLISECOND);
    lab_settle(lab);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_TIMED_OUT, "deaf"), 1);
    lab_close(lab);
}

static void a_removed_step_that_does_not_stop_is_forced_after_its_grace(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script deaf = { .acts = "s", .kind = LAB_STEP };
    struct script polite = { .acts = "h", .kind = LAB_STEP };
    struct det_policy policy = { .restart = DET_RESTART_NEVER, .grace = 200 * DET_MILLISECOND };
    struct det_waiter *first = lab_add(lab, &deaf, "deaf", &policy);
    struct det_waiter *second = lab_add(lab, &polite, "polite", &lab_once);
    det_time began = lab_now(lab);

    (void)unused;
    lab_settle(lab);
    assert_int_equal(det_tasks_remove(lab->tasks, deaf.id), 1);
    /* The others do not wait behind it. */
    assert_int_equal(det_tasks_stop(lab->tasks, polite.id, DET_NEVER), 1);
    assert_int_equal(lab_now(lab), began);
    assert_int_equal(lab_end(second).outcome, DET_TASK_OUTCOME_CANCELLED);
    assert_int_equal(lab_end(first).outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    assert_int_equal(lab_now(lab) - began, 200 * DET_MILLISECOND);
    lab_settle(lab);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "deaf", 0).outcome,
        DET_TASK_OUTCOME_FORCE_ABORTED);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "deaf"), 1);
    assert_int_equal(det_tasks_find(lab->tasks, "deaf"), 0);
    lab_close(lab);
}

static void a_removed_function_that_does_not_stop_is_stuck_and_keeps_its_name(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script deaf = { .acts = "r", .span = DET_HOUR };
    struct script other = { .acts = "o" };
    struct det_policy policy = { .restart = DET_RESTART_NEVER, .grace = 200 * DET_MILLISECOND };
    struct det_waiter *waiter = lab_add(lab, &deaf, "deaf", &policy);
    struct det_task_spec again;
    det_task_id id = 0;

    (void)unused;
    lab_settle(lab);
    assert_int_equal(
        det_tasks_stop(lab->tasks, deaf.id, lab_now(lab) + DET_SECOND), DET_ERR_TIMEOUT);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_STUCK, "deaf"), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "deaf"), 0);
    again = script_spec(&other, "deaf", &lab_once);
    other.lab = lab;
    assert_int_equal(det_tasks_add(lab->tasks, &again, NULL, &id, NULL), DET_ERR_EXISTS);
    assert_int_equal(det_tasks_find(lab->tasks, "deaf"), deaf.id);
    /* Others go on: it has its thread, but nothing else. */
    assert_int_equal(lab_run(lab, &other, "other", &lab_once).outcome, DET_TASK_OUTCOME_COMPLETED);
    assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    assert_int_equal(det_tasks_find(lab->tasks, "deaf"), 0);
    lab_close(lab);
}

static void a_removal_without_force_waits_for_the_task(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "s", .kind = kind };
        struct det_policy policy = { .restart = DET_RESTART_NEVER, .grace = DET_NEVER };
        struct det_waiter *waiter = lab_add(lab, &script, "one", &policy);

        lab_settle(lab);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 1);
        lab_advance(lab, DET_DAY);
        assert_true(lab_inspect(lab, script.id).is_removing);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_STUCK, NULL), 0);
        lab_report(lab, &script);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_attempt_that_times_out_is_retried),
        cmocka_unit_test(waiting_for_a_permit_does_not_count_toward_the_timeout),
        cmocka_unit_test(a_timeout_followed_by_success_completes),
        cmocka_unit_test(success_after_the_timeout_counts_as_a_timeout),
        cmocka_unit_test(an_explicit_absence_of_timeout_overrides_the_default),
        cmocka_unit_test(a_task_that_returns_timeout_has_failed),
        cmocka_unit_test(a_result_at_the_deadline_gives_one_consistent_end),
        cmocka_unit_test(the_next_attempt_waits_for_the_end_of_a_timed_out_one),
        cmocka_unit_test(a_step_that_ignores_its_timeout_is_dropped_after_its_grace),
        cmocka_unit_test(a_removed_step_that_does_not_stop_is_forced_after_its_grace),
        cmocka_unit_test(a_removed_function_that_does_not_stop_is_stuck_and_keeps_its_name),
        cmocka_unit_test(a_removal_without_force_waits_for_the_task),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
