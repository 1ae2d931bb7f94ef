/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_lifecycle_test.c - one task from its admission to its end: attempts, policies, cancel.
 * The numbers are those of the list of behaviours that the task layer is held to. */
#include "task/behaviour_test.h"

/* 100 ms, 200 ms, 400 ms, ...; nothing by chance. */
static const struct det_policy retrying = {
    .restart = DET_RESTART_ON_FAILURE,
    .backoff = { .first = 100 * DET_MILLISECOND, .factor = 2.0, .jitter = DET_JITTER_NONE },
};

static void a_task_that_runs_once_starts_finishes_and_is_removed_once(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "o", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &lab_once);

        lab_settle(lab);
        assert_int_equal(end.id, script.id);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(end.rejection, DET_REJECTION_NONE);
        assert_int_equal(end.attempts, 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_SUCCEEDED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, NULL), 0);
        assert_int_equal(script.runs, 1);
        assert_int_equal(script.released, 1);
        lab_close(lab);
    }
}

static void the_events_of_a_task_are_in_lifecycle_order(void **unused)
{
    static const enum det_task_event_kind order[] = {
        DET_TASK_EVENT_TASK_ADD_REQUESTED, DET_TASK_EVENT_TASK_ADDED,
        DET_TASK_EVENT_ATTEMPT_STARTING,   DET_TASK_EVENT_ATTEMPT_SUCCEEDED,
        DET_TASK_EVENT_TASK_FINISHED,      DET_TASK_EVENT_TASK_REMOVED,
    };
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "o" };
    uint64_t before = 0;

    (void)unused;
    (void)lab_run(lab, &script, "one", &lab_once);
    lab_settle(lab);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct det_task_event event = lab_event(lab, order[i], "one", 0);

        assert_true(event.sequence > before);
        before = event.sequence;
    }
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "one", 0).outcome, DET_TASK_OUTCOME_COMPLETED);
    lab_close(lab);
}

static void a_task_that_runs_once_does_not_retry_a_failure(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "f", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &lab_once);

        lab_settle(lab);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
        assert_non_null(strstr(end.reason, "trouble 1"));
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, NULL), 0);
        assert_non_null(
            strstr(lab_event(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one", 0).reason, "trouble 1"));
        assert_non_null(
            strstr(lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "one", 0).reason, "trouble 1"));
        assert_int_equal(
            lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "one", 0).outcome,
            DET_TASK_OUTCOME_FAILED);
        lab_close(lab);
    }
}

static void a_failure_without_text_gets_a_default_reason(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "p" };
    struct det_task_end end = lab_run(lab, &script, "one", &lab_once);

    (void)unused;
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
    assert_true(end.reason[0] != '\0');
    lab_close(lab);
}

static void two_failures_and_a_success_make_three_attempts_and_two_backoffs(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "ffo", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &retrying);

        lab_settle(lab);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(end.attempts, 3);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), 3);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one"), 2);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one"), 2);
        for (size_t i = 0; i < 2; i++) {
            struct det_task_event event =
                lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", i);

            assert_int_equal(event.source, DET_BACKOFF_AFTER_FAILURE);
            assert_int_equal(event.delay, (100 << i) * DET_MILLISECOND);
            assert_int_equal(event.attempt, i + 1);
            assert_true(event.reason[0] != '\0');
        }
        assert_int_equal(script.begun[1] - script.begun[0], 100 * DET_MILLISECOND);
        assert_int_equal(script.begun[2] - script.begun[1], 200 * DET_MILLISECOND);
        lab_close(lab);
    }
}

static void fatal_once(enum lab_kind kind, enum det_restart restart)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "F", .kind = kind, .exit_code = 17, .has_exit_code = true };
    struct det_policy policy = { .restart = restart };
    struct det_task_end end = lab_run(lab, &script, "one", &policy);
    struct det_task_event failed, finished;

    lab_settle(lab);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FATAL);
    assert_true(end.has_exit_code);
    assert_int_equal(end.exit_code, 17);
    assert_non_null(strstr(end.reason, "doom 1"));
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one"), 0);
    failed = lab_event(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one", 0);
    finished = lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "one", 0);
    assert_true(failed.has_exit_code && finished.has_exit_code);
    assert_int_equal(failed.exit_code, 17);
    assert_int_equal(finished.exit_code, 17);
    assert_int_equal(finished.outcome, DET_TASK_OUTCOME_FATAL);
    lab_close(lab);
}

static void a_fatal_failure_is_not_retried(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        fatal_once(kind, DET_RESTART_ON_FAILURE);
        fatal_once(kind, DET_RESTART_ALWAYS);
        fatal_once(kind, DET_RESTART_NEVER);
    }
}

static void retries(enum lab_kind kind, uint32_t retries_max)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "f", .kind = kind, .exit_code = 3, .has_exit_code = true };
    struct det_policy policy = retrying;
    struct det_task_end end;
    char reason[32];

    policy.retries_max = retries_max;
    end = lab_run(lab, &script, "one", &policy);
    lab_settle(lab);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
    assert_int_equal(end.attempts, retries_max + 1);
    assert_int_equal(script.runs, retries_max + 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), retries_max + 1);
    assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one"), retries_max);
    for (size_t i = 0; i <= retries_max; i++) {
        struct det_task_event event = lab_event(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "one", i);

        assert_true(event.has_exit_code);
        assert_int_equal(event.exit_code, 3);
        assert_int_equal(event.attempt, i + 1);
    }
    snprintf(reason, sizeof reason, "trouble %u", retries_max + 1);
    assert_non_null(strstr(end.reason, reason));
    lab_close(lab);
}

static void a_limit_of_n_retries_permits_n_plus_one_attempts(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        retries(kind, 1);
        retries(kind, 2);
        retries(kind, 5);
    }
}

/* A success in between begins a new streak, and successes use nothing of it up. */
static void success_resets_the_count_of_failures(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script script = { .acts = "ffofffo" };
    struct det_policy policy = retrying;
    struct det_task_end end;

    (void)unused;
    policy.restart = DET_RESTART_ALWAYS;
    policy.interval = DET_SECOND;
    policy.retries_max = 2;
    end = lab_run(lab, &script, "one", &policy);
    lab_settle(lab);
    assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
    assert_int_equal(end.attempts, 6);
    assert_int_equal(
        lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 3).delay, 100 * DET_MILLISECOND);
    lab_close(lab);
}

static void a_repeated_task_without_interval_runs_at_most_once_a_millisecond(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "o", .kind = kind };
        struct det_policy policy = { .restart = DET_RESTART_ALWAYS };
        struct det_waiter *waiter = lab_add(lab, &script, "hot", &policy);

        lab_advance(lab, 20 * DET_MILLISECOND);
        assert_in_range(script.runs, 5, 21);
        for (unsigned i = 1; i < script.runs; i++)
            assert_true(script.begun[i] - script.begun[i - 1] >= DET_DELAY_FLOOR);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "hot"), 0);
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 1);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        lab_close(lab);
    }
}

static void a_repeated_task_reports_its_interval_between_runs(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "w", .span = 7 * DET_MILLISECOND, .kind = kind };
        struct det_policy policy = { .restart = DET_RESTART_ALWAYS,
                                     .interval = 5 * DET_MILLISECOND };
        struct det_waiter *waiter = lab_add(lab, &script, "poll", &policy);

        lab_advance(lab, 100 * DET_MILLISECOND);
        assert_in_range(script.runs, 8, 9);
        assert_in_range(lab_count(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "poll"), 7, 8);
        for (size_t i = 0; i < 7; i++) {
            struct det_task_event event =
                lab_event(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "poll", i);

            assert_int_equal(event.source, DET_BACKOFF_AFTER_SUCCESS);
            assert_int_equal(event.delay, 5 * DET_MILLISECOND);
            assert_string_equal(event.reason, "");
            /* From the end of one to the start of the next. */
            assert_int_equal(script.begun[i + 1] - script.begun[i], 12 * DET_MILLISECOND);
        }
        assert_int_equal(det_tasks_remove(lab->tasks, script.id), 1);
        (void)lab_end(waiter);
        lab_close(lab);
    }
}

static void exit_codes_may_be_absent_or_negative(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct script without = { .acts = "f" };
    struct script negative = { .acts = "f", .exit_code = -9, .has_exit_code = true };
    struct det_task_end end;

    (void)unused;
    end = lab_run(lab, &without, "without", &lab_once);
    assert_false(end.has_exit_code);
    end = lab_run(lab, &negative, "negative", &lab_once);
    assert_true(end.has_exit_code);
    assert_int_equal(end.exit_code, -9);
    lab_settle(lab);
    assert_false(lab_event(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "without", 0).has_exit_code);
    assert_false(lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "without", 0).has_exit_code);
    assert_int_equal(lab_event(lab, DET_TASK_EVENT_ATTEMPT_FAILED, "negative", 0).exit_code, -9);
    assert_int_equal(lab_event(lab, DET_TASK_EVENT_TASK_FINISHED, "negative", 0).exit_code, -9);
    lab_close(lab);
}

/* C has no panic to catch: its place is taken by work that answers what it may not. */
static void an_invalid_result_counts_as_a_failure_and_is_retried(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script once = { .acts = "x", .kind = kind };
        struct script again = { .acts = "xo", .kind = kind };
        struct det_task_end end = lab_run(lab, &once, "once", &lab_once);

        assert_int_equal(end.outcome, DET_TASK_OUTCOME_FAILED);
        assert_true(end.reason[0] != '\0');
        assert_int_equal(end.attempts, 1);
        end = lab_run(lab, &again, "again", &retrying);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_COMPLETED);
        assert_int_equal(end.attempts, 2);
        assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
        assert_int_equal(det_tasks_counts(lab->tasks).registered, 0);
        lab_close(lab);
    }
}

static void a_task_that_returns_cancelled_is_not_run_again(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "c", .kind = kind };
        struct det_policy policy = { .restart = DET_RESTART_ALWAYS };
        struct det_waiter *waiter = lab_add(lab, &script, "liar", &policy);

        assert_int_equal(det_tasks_run(lab->tasks, NULL), 0);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(script.runs, 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "liar"), 1);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_REMOVED, "liar"), 1);
        lab_close(lab);
    }
}

static void success_after_a_cancel_is_reported_as_cancelled(void **unused)
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
        lab_close(lab);
    }
}

static void a_cancel_during_the_wait_for_a_permit_ends_without_a_start(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(&(struct det_tasks_options){ .concurrent_max = 1 });
        struct script holder = { .acts = "h", .kind = kind };
        struct script waits = { .acts = "o", .kind = kind };
        struct det_waiter *first = lab_add(lab, &holder, "holder", &lab_once);
        struct det_waiter *second;
        struct det_task_end end;

        lab_await(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "holder", 1);
        second = lab_add(lab, &waits, "waits", &lab_once);
        lab_settle(lab);
        assert_string_equal(lab_inspect(lab, waits.id).state, "waiting");
        assert_int_equal(det_tasks_remove(lab->tasks, waits.id), 1);
        end = lab_end(second);
        assert_int_equal(end.outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(end.attempts, 0);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "waits"), 0);
        assert_int_equal(det_tasks_remove(lab->tasks, holder.id), 1);
        (void)lab_end(first);
        lab_settle(lab);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_FINISHED, "waits"), 1);
        assert_int_equal(waits.runs, 0);
        assert_int_equal(waits.released, 1);
        lab_close(lab);
    }
}

static void a_cancel_during_backoff_or_an_interval_ends_the_task_at_once(void **unused)
{
    static const char *const acts[] = { "f", "o" };
    static const char *const states[] = { "backoff", "resting" };

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = acts[i] };
        struct det_policy policy = { .restart = DET_RESTART_ALWAYS, .interval = DET_HOUR };
        struct det_waiter *waiter;
        det_time began;

        policy.backoff.first = DET_HOUR;
        policy.backoff.max = DET_DAY;
        waiter = lab_add(lab, &script, "one", &policy);
        lab_await(lab, DET_TASK_EVENT_BACKOFF_SCHEDULED, "one", 1);
        lab_settle(lab);
        began = lab_now(lab);
        assert_string_equal(lab_inspect(lab, script.id).state, states[i]);
        assert_int_equal(det_tasks_stop(lab->tasks, script.id, DET_NEVER), 1);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_CANCELLED);
        assert_int_equal(lab_now(lab), began);
        lab_advance(lab, 3 * DET_DAY);
        assert_int_equal(script.runs, 1);
        lab_close(lab);
    }
}

struct scoped {
    unsigned inner_runs;
    bool child_reached_parent, parent_reached_child, orphan_reached;
    int unless;
    int before;
};

static int inner(struct det_task_context *context, void *argument)
{
    struct scoped *scoped = argument;

    (void)context;
    scoped->inner_runs++;
    return 5;
}

static int scope_function(struct det_task_context *context, void *argument)
{
    struct scoped *scoped = argument;
    struct det_scope outer = { .context = context }, child = { .parent = &outer };
    struct det_scope other = { .context = context }, orphan = { 0 };

    scoped->before = det_task_unless_cancelled(context, inner, argument);
    det_scope_cancel(&child);
    scoped->child_reached_parent = det_scope_is_cancelled(&outer) ||
                                   det_task_is_cancelled(context) ||
                                   !det_scope_is_cancelled(&child);
    if (det_task_wait(context, DET_NEVER) != DET_ERR_CANCELLED)
        return 0;
    child = (struct det_scope){ .parent = &other };
    scoped->parent_reached_child = det_scope_is_cancelled(&other) && det_scope_is_cancelled(&child);
    scoped->orphan_reached = det_scope_is_cancelled(&orphan);
    scoped->unless = det_task_unless_cancelled(context, inner, argument);
    return DET_ERR_CANCELLED;
}

static void a_cancel_reaches_children_but_not_parents_and_prevents_new_work(void **unused)
{
    struct lab *lab = lab_open(NULL);
    struct scoped scoped = { 0 };
    struct det_task_spec spec = {
        .name = "one", .function = scope_function, .argument = &scoped, .policy = lab_once
    };
    det_task_id id = 0;

    (void)unused;
    assert_int_equal(det_tasks_add(lab->tasks, &spec, NULL, &id, NULL), 0);
    lab_settle(lab);
    assert_int_equal(det_tasks_stop(lab->tasks, id, DET_NEVER), 1);
    assert_int_equal(scoped.before, 5);
    assert_false(scoped.child_reached_parent);
    assert_true(scoped.parent_reached_child);
    assert_false(scoped.orphan_reached);
    assert_int_equal(scoped.unless, DET_ERR_CANCELLED);
    assert_int_equal(scoped.inner_runs, 1);
    lab_close(lab);
}

static void work_is_called_once_per_attempt(void **unused)
{
    (void)unused;
    FOR_EACH_KIND(kind)
    {
        struct lab *lab = lab_open(NULL);
        struct script script = { .acts = "fffffffo", .kind = kind };
        struct det_task_end end = lab_run(lab, &script, "one", &retrying);

        assert_int_equal(end.attempts, 8);
        assert_int_equal(script.runs, 8);
        assert_int_equal(script.attempt, 8);
        assert_false(script.overlapped);
        lab_settle(lab);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_ATTEMPT_STARTING, "one"), 8);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_runs_once_starts_finishes_and_is_removed_once),
        cmocka_unit_test(the_events_of_a_task_are_in_lifecycle_order),
        cmocka_unit_test(a_task_that_runs_once_does_not_retry_a_failure),
        cmocka_unit_test(a_failure_without_text_gets_a_default_reason),
        cmocka_unit_test(two_failures_and_a_success_make_three_attempts_and_two_backoffs),
        cmocka_unit_test(a_fatal_failure_is_not_retried),
        cmocka_unit_test(a_limit_of_n_retries_permits_n_plus_one_attempts),
        cmocka_unit_test(success_resets_the_count_of_failures),
        cmocka_unit_test(a_repeated_task_without_interval_runs_at_most_once_a_millisecond),
        cmocka_unit_test(a_repeated_task_reports_its_interval_between_runs),
        cmocka_unit_test(exit_codes_may_be_absent_or_negative),
        cmocka_unit_test(an_invalid_result_counts_as_a_failure_and_is_retried),
        cmocka_unit_test(a_task_that_returns_cancelled_is_not_run_again),
        cmocka_unit_test(success_after_a_cancel_is_reported_as_cancelled),
        cmocka_unit_test(a_cancel_during_the_wait_for_a_permit_ends_without_a_start),
        cmocka_unit_test(a_cancel_during_backoff_or_an_interval_ends_the_task_at_once),
        cmocka_unit_test(a_cancel_reaches_children_but_not_parents_and_prevents_new_work),
        cmocka_unit_test(work_is_called_once_per_attempt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
