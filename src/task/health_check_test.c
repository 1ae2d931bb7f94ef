/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* health_check_test.c - readiness and health in virtual time: by notification, by a process, by a
 * function; and what our own shortage does not count for. */
#include <detent/driver/sim.h>

#include "lib/poor_world.h"
#include "os/os.h"
#include "task/tree_test.h"

static struct stage stage;

/* The current answer of checks, their duration, and the number that ran. */
static int answer;
static det_time takes;
static unsigned asked;

static int check_function(struct det_task_context *context, void *argument)
{
    (void)argument;
    asked++;
    /* Some checks read their context, some do not. */
    if (takes > 0)
        return det_task_wait(context, stage_now(&stage) + takes) < 0 ? DET_ERR_CANCELLED : answer;
    if (takes < 0)
        return det_world_sleep(det_task_world(context), -takes);
    return answer;
}

static int check_program(struct det_world *world, int argc, const char *const *argv)
{
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + takes;

    (void)argc;
    (void)argv;
    asked++;
    /* Waits without memory, which would be lost when it is killed. */
    while (det_sim_wait_caught(world, until) >= 0)
        continue;
    return answer;
}

static void open_checked(void)
{
    stage_open(&stage);
    assert_int_equal(det_sim_program(stage.sim, "check", check_program), 0);
    answer = 0;
    takes = 0;
    asked = 0;
}

static struct det_task_spec checked(const char *name, enum det_ready_by by, bool is_process)
{
    static const char *const argv[] = { "check", NULL };
    struct det_task_spec spec = stage_spec(&stage, name, NULL);

    spec.readiness.by = by;
    if (is_process)
        spec.readiness.check.argv = argv;
    else
        spec.readiness.check.run = check_function;
    return spec;
}

static void add(const struct det_task_spec *spec)
{
    if (stage_try_add(&stage, spec) < 0)
        fail_msg("%s", stage.text);
}

static void notifying_task_becomes_ready_once(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = stage_spec(&stage, "a", NULL);
    spec.readiness.by = DET_READY_BY_NOTIFY;
    add(&spec);
    stage_pass(&stage, 59 * DET_SECOND);
    stage_expect(&stage, "+a");
    stage_play(&stage, "a", PART_READY);
    stage_expect(&stage, "r:a");
    stage_play(&stage, "a", PART_READY);
    stage_pass(&stage, DET_HOUR);
    stage_expect(&stage, "");
    stage_close(&stage);
}

static void task_not_ready_in_time_has_failed(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = stage_spec(&stage, "a", NULL);
    spec.readiness.by = DET_READY_BY_NOTIFY;
    add(&spec);
    stage_pass(&stage, 60 * DET_SECOND - 1);
    stage_expect(&stage, "+a");
    stage_pass(&stage, 1);
    stage_expect(&stage, "!a");
    assert_string_equal(stage.reason, "not ready within 1m");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "+a");
    /* A stopping task is no longer checked. */
    stage_player(&stage, "a")->stops_in = 5 * DET_SECOND;
    stage_pass(&stage, 58 * DET_SECOND);
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_pass(&stage, 5 * DET_SECOND);
    stage_expect(&stage, "-a #a");
    stage_close(&stage);
}

static void readiness_may_have_no_deadline(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = stage_spec(&stage, "a", NULL);
    spec.readiness = (struct det_readiness){ .by = DET_READY_BY_NOTIFY, .within = DET_NEVER };
    add(&spec);
    stage_pass(&stage, 1000 * DET_HOUR);
    stage_expect(&stage, "+a");
    stage_close(&stage);
}

static void ready_by_check(bool is_process)
{
    struct det_task_spec spec;

    open_checked();
    spec = checked("a", DET_READY_BY_CHECK, is_process);
    spec.readiness.check.only_readiness = true;
    answer = is_process ? 7 : DET_ERR_IO;
    add(&spec);
    stage_pass(&stage, 4 * DET_SECOND + 1);
    stage_expect(&stage, "+a");
    assert_int_equal(asked, 5); /* at once, and then each second: more than fails_max */
    answer = 0;
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "r:a");
    answer = 7;
    stage_pass(&stage, DET_HOUR);
    stage_expect(&stage, "");
    assert_int_equal(asked, 6);
    stage_close(&stage);
}

static void passing_check_process_makes_the_task_ready(void **state)
{
    (void)state;
    ready_by_check(true);
}

static void passing_check_function_makes_the_task_ready(void **state)
{
    (void)state;
    ready_by_check(false);
}

static void readiness_timeout_reports_the_last_check(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_BY_CHECK, true);
    spec.readiness.within = 3 * DET_SECOND + 1;
    answer = 7;
    add(&spec);
    stage_pass(&stage, 3 * DET_SECOND + 1);
    stage_expect(&stage, "+a !a");
    assert_string_equal(stage.reason, "not ready within 3.000000001s; the last check: exit code 7");
    stage_close(&stage);
}

static void unhealthy(bool is_process, const char *reason)
{
    struct det_task_spec spec;

    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, is_process);
    add(&spec);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_HEALTHY), 0);
    stage_pass(&stage, 30 * DET_SECOND + 1);
    stage_expect(&stage, "+a +b");
    assert_int_equal(asked, 3);
    answer = is_process ? 1 : DET_ERR_IO;
    stage_pass(&stage, 20 * DET_SECOND);
    stage_expect(&stage, "u:a");
    answer = 0;
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "r:a"); /* healthy again: what was before does not count */
    answer = is_process ? 1 : DET_ERR_IO;
    stage_pass(&stage, 30 * DET_SECOND);
    stage_expect(&stage, "u:a !a");
    assert_string_equal(stage.reason, reason);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "+a");
    stage_close(&stage);
}

static void a_process_that_fails_too_often_ends_the_attempt(void **state)
{
    (void)state;
    unhealthy(true, "unhealthy: the check failed 3 times, the last time: exit code 1");
}

static void a_function_that_fails_too_often_ends_the_attempt(void **state)
{
    (void)state;
    unhealthy(false, "unhealthy: the check failed 3 times, the last time: input or output failed");
}

static void dependents_wait_while_their_task_is_unhealthy(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, false);
    add(&spec);
    stage_expect(&stage, "+a");
    answer = 5;
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "u:a");
    assert_string_equal(stage.reason, "answered 5");
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_HEALTHY), 0);
    assert_string_equal(stage_state(&stage, "b"), "held a: not healthy yet");
    answer = 0;
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "r:a +b");
    stage_close(&stage);
}

static void checks_begin_after_a_notification(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_BY_NOTIFY, false);
    spec.readiness.check.every = 2 * DET_SECOND;
    spec.readiness.check.fails_max = 1;
    add(&spec);
    stage_pass(&stage, 30 * DET_SECOND);
    assert_int_equal(asked, 0);
    stage_play(&stage, "a", PART_READY);
    stage_pass(&stage, 2 * DET_SECOND);
    assert_int_equal(asked, 1);
    answer = DET_ERR_IO;
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "+a r:a u:a !a");
    stage_close(&stage);
}

static void slow(bool is_process)
{
    struct det_task_spec spec;

    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, is_process);
    spec.readiness.check.fails_max = 1;
    takes = DET_MINUTE;
    add(&spec);
    stage_pass(&stage, 15 * DET_SECOND - 1);
    stage_expect(&stage, "+a");
    stage_pass(&stage, 1);
    stage_expect(&stage, "u:a !a");
    assert_string_equal(
        stage.reason, "unhealthy: the check failed 1 time, the last time: timed out after 5s");
    assert_int_equal(asked, 1);
    stage_close(&stage);
}

static void a_process_that_takes_too_long_has_failed_and_is_killed(void **state)
{
    (void)state;
    slow(true);
}

static void a_function_that_takes_too_long_has_failed_and_is_cancelled(void **state)
{
    (void)state;
    slow(false);
}

static void the_next_check_waits_for_the_end_of_one_that_is_late(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, false);
    takes = -30 * DET_SECOND; /* ignores its context */
    add(&spec);
    stage_pass(&stage, 40 * DET_SECOND);
    stage_expect(&stage, "+a u:a");
    assert_int_equal(asked, 1);
    takes = 0;
    stage_pass(&stage, 10 * DET_SECOND);
    assert_int_equal(asked, 2);
    stage_expect(&stage, "r:a");
    stage_close(&stage);
}

static void running_check_process_does_not_delay_the_end(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, true);
    takes = DET_MINUTE;
    add(&spec);
    stage_pass(&stage, 11 * DET_SECOND);
    assert_int_equal(asked, 1);
    stage_play(&stage, "a", PART_SUCCEED);
    stage_expect(&stage, "+a =a #a");
    stage_close(&stage);
}

static void the_end_of_an_attempt_waits_for_a_function_that_checks_it(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, false);
    spec.readiness.check.timeout = DET_HOUR;
    takes = -30 * DET_SECOND;
    add(&spec);
    stage_pass(&stage, 11 * DET_SECOND);
    stage_play(&stage, "a", PART_SUCCEED);
    stage_pass(&stage, 28 * DET_SECOND);
    stage_expect(&stage, "+a");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "=a #a");
    assert_int_equal(stage.ends[0].outcome, DET_TASK_OUTCOME_COMPLETED);
    stage_close(&stage);
}

static void a_function_that_never_returns_makes_its_task_stuck(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, false);
    spec.policy.grace = DET_SECOND;
    spec.readiness.check.timeout = DET_HOUR;
    takes = -10 * DET_MINUTE;
    stage_player(&stage, "a")->stops_in = DET_HOUR;
    add(&spec);
    stage_pass(&stage, 11 * DET_SECOND);
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "+a");
    assert_string_equal(stage_state(&stage, "a"), "stuck");
    stage_pass(&stage, 10 * DET_MINUTE);
    stage_expect(&stage, "-a #a");
    assert_int_equal(stage.ends[0].outcome, DET_TASK_OUTCOME_FORCE_ABORTED);
    stage_close(&stage);
}

static void a_check_that_cannot_be_started_has_failed(void **state)
{
    static const char *const argv[] = { "nowhere", NULL };
    struct det_task_spec spec;

    (void)state;
    open_checked();
    spec = checked("a", DET_READY_WHEN_STARTED, false);
    spec.readiness.check = (struct det_check){ .argv = argv, .fails_max = 2 };
    add(&spec);
    stage_pass(&stage, 20 * DET_SECOND);
    stage_expect(&stage, "+a u:a !a");
    stage_close(&stage);
}

static void local_shortage_is_not_a_failed_check(void **state)
{
    static const int codes[] = { DET_ERR_LIMIT, DET_ERR_NO_MEMORY };
    struct det_test_poor_world poor;
    struct det_task_spec spec;

    (void)state;
    open_checked();
    det_test_poor_world_open(&poor, det_sim_world(stage.sim));
    spec = checked("a", DET_READY_WHEN_STARTED, true);
    add(&spec);
    stage_expect(&stage, "+a");
    for (unsigned i = 0; i < 2; i++) {
        poor.start_fails_with = codes[i];
        stage_pass(&stage, 10 * DET_MINUTE);
        stage_expect(&stage, "p:a"); /* once for the whole time */
        assert_string_equal(stage.reason, "too many open files");
        poor.start_fails_with = 0;
        stage_pass(&stage, 10 * DET_SECOND);
        assert_int_equal(asked, i + 1);
        stage_expect(&stage, "");
    }
    /* Failures before it still count; it does not. */
    answer = 1;
    stage_pass(&stage, 20 * DET_SECOND);
    stage_expect(&stage, "u:a");
    poor.start_fails_with = DET_ERR_LIMIT;
    stage_pass(&stage, DET_HOUR);
    stage_expect(&stage, "p:a");
    poor.start_fails_with = 0;
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "!a");
    det_test_poor_world_close(&poor);
    stage_close(&stage);
}

static void task_that_cannot_be_checked_gets_more_time(void **state)
{
    struct det_test_poor_world poor;
    struct det_task_spec spec;

    (void)state;
    open_checked();
    det_test_poor_world_open(&poor, det_sim_world(stage.sim));
    spec = checked("a", DET_READY_BY_CHECK, true);
    poor.start_fails_with = DET_ERR_LIMIT;
    add(&spec);
    stage_pass(&stage, 10 * DET_MINUTE + DET_MILLISECOND);
    stage_expect(&stage, "+a p:a");
    poor.start_fails_with = 0;
    answer = 7;
    stage_pass(&stage, 58 * DET_SECOND);
    stage_expect(&stage, "");
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "!a");
    assert_string_equal(stage.reason, "not ready within 1m; the last check: exit code 7");
    answer = 0;
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "+a r:a");
    det_test_poor_world_close(&poor);
    stage_close(&stage);
}

static void attempt_that_cannot_be_started_is_not_counted(void **state)
{
    static const char *const argv[] = { "check", NULL };
    static const struct det_process_spec process = { .argv = argv };
    struct det_test_poor_world poor;
    struct det_task_spec spec;

    (void)state;
    open_checked();
    det_test_poor_world_open(&poor, det_sim_world(stage.sim));
    spec = (struct det_task_spec){ .name = "a", .process = &process };
    poor.start_fails_with = DET_ERR_LIMIT;
    add(&spec);
    stage_pass(&stage, DET_MINUTE);
    stage_expect(&stage, "");
    poor.start_fails_with = 0;
    takes = DET_HOUR;
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "+a");
    assert_int_equal(asked, 1);
    det_test_poor_world_close(&poor);
    stage_close(&stage);
}

static void expect_refused(struct det_readiness readiness, const char *text)
{
    struct det_task_spec spec = stage_spec(&stage, "a", NULL);

    spec.readiness = readiness;
    assert_int_equal(stage_try_add(&stage, &spec), DET_ERR_INVALID);
    assert_string_equal(stage.text, text);
}

static void invalid_readiness_options_are_refused(void **state)
{
    static const char *const none[] = { NULL }, *const some[] = { "check", NULL };

    (void)state;
    open_checked();
    expect_refused(
        (struct det_readiness){ .by = (enum det_ready_by)7 }, "task a: unknown readiness");
    expect_refused(
        (struct det_readiness){ .by = DET_READY_BY_CHECK },
        "task a: ready by a check, but the check has neither argv nor run");
    expect_refused(
        (struct det_readiness){ .check = { .argv = some, .run = check_function } },
        "task a: a check has argv or run, not both");
    expect_refused(
        (struct det_readiness){ .check = { .argv = none } }, "task a: argv of its check is empty");
    expect_refused(
        (struct det_readiness){ .within = -1 }, "task a: a time of readiness is negative");
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifying_task_becomes_ready_once),
        cmocka_unit_test(task_not_ready_in_time_has_failed),
        cmocka_unit_test(readiness_may_have_no_deadline),
        cmocka_unit_test(passing_check_process_makes_the_task_ready),
        cmocka_unit_test(passing_check_function_makes_the_task_ready),
        cmocka_unit_test(readiness_timeout_reports_the_last_check),
        cmocka_unit_test(a_process_that_fails_too_often_ends_the_attempt),
        cmocka_unit_test(a_function_that_fails_too_often_ends_the_attempt),
        cmocka_unit_test(dependents_wait_while_their_task_is_unhealthy),
        cmocka_unit_test(checks_begin_after_a_notification),
        cmocka_unit_test(a_process_that_takes_too_long_has_failed_and_is_killed),
        cmocka_unit_test(a_function_that_takes_too_long_has_failed_and_is_cancelled),
        cmocka_unit_test(the_next_check_waits_for_the_end_of_one_that_is_late),
        cmocka_unit_test(running_check_process_does_not_delay_the_end),
        cmocka_unit_test(the_end_of_an_attempt_waits_for_a_function_that_checks_it),
        cmocka_unit_test(a_function_that_never_returns_makes_its_task_stuck),
        cmocka_unit_test(a_check_that_cannot_be_started_has_failed),
        cmocka_unit_test(local_shortage_is_not_a_failed_check),
        cmocka_unit_test(task_that_cannot_be_checked_gets_more_time),
        cmocka_unit_test(attempt_that_cannot_be_started_is_not_counted),
        cmocka_unit_test(invalid_readiness_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
