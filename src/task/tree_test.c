/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree_test.c - groups in virtual time: their strategies and their limits. */
#include "task/tree_test.h"

static struct stage stage;

static void one_for_one_restarts_only_the_one_that_failed(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "+b");
    stage_expect_group(&stage, "g", "running in top, 3 members, 1 of 5 restarts");
    stage_close(&stage);
}

static void all_for_one_stops_in_reverse_order_and_restarts_in_order(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c -a");
    assert_string_equal(stage.reason, "b: broken");
    assert_string_equal(stage_state(&stage, "a"), "held group g: paused");
    assert_string_equal(stage_state(&stage, "b"), "backoff");
    stage_pass(&stage, DET_SECOND - 1);
    stage_expect(&stage, "");
    stage_pass(&stage, 1);
    stage_expect(&stage, "G:g +a +b +c");
    stage_close(&stage);
}

static void rest_for_one_keeps_the_earlier_members_running(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_REST_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g +b +c");
    stage_play(&stage, "c", PART_FAIL);
    stage_expect(&stage, "!c R:g");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g +c");
    stage_close(&stage);
}

static void each_member_has_stopped_before_the_next(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_player(&stage, "c")->stops_in = 3 * DET_SECOND;
    stage_player(&stage, "b")->stops_in = 2 * DET_SECOND;
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    stage_pass(&stage, DET_SECOND); /* its backoff is over, but not the stop */
    assert_string_equal(stage_state(&stage, "a"), "held group g: restarting");
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "-c");
    stage_pass(&stage, 2 * DET_SECOND);
    stage_expect(&stage, "-b G:g +a +b +c");
    stage_close(&stage);
}

static void failure_of_an_earlier_member_widens_the_restart(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_REST_FOR_ONE);
    stage_player(&stage, "c")->stops_in = DET_SECOND / 2;
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "-c");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "G:g +a +b +c");
    /* Again, with the others held already. */
    stage_play(&stage, "c", PART_FAIL);
    stage_expect(&stage, "!c R:g");
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g");
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "G:g +b +c");
    stage_close(&stage);
}

static void second_failure_during_a_group_restart_is_counted(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_player(&stage, "c")->stops_in = DET_SECOND / 2;
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b");
    stage_expect_group(&stage, "g", "restarting in top, 3 members, 2 of 5 restarts");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "-c G:g +a +b +c");
    stage_close(&stage);
}

static void removed_failed_member_does_not_delay_the_restart(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c -a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "b")->id), 1);
    stage_expect(&stage, "#b G:g +a +c");
    stage_close(&stage);
}

static void removed_held_member_does_not_delay_the_restart(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_player(&stage, "c")->stops_in = 2 * DET_SECOND;
    stage_play(&stage, "a", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!a R:g");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "c")->id), 1);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "-c #c -b G:g +a +b");
    stage_close(&stage);
}

static void manual_restart_waits_for_the_group_restart(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_player(&stage, "a")->stops_in = DET_SECOND / 4;
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c");
    assert_int_equal(det_tasks_restart(stage.tasks, stage_player(&stage, "b")->id), 1);
    assert_string_equal(stage_state(&stage, "b"), "held group g: restarting");
    stage_pass(&stage, DET_SECOND / 4);
    stage_expect(&stage, "-a G:g +a +b +c");
    stage_close(&stage);
}

static void as_many_restarts_as_the_limit_are_allowed_and_one_more_fails_the_group(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_fail_times(&stage, "b", 5);
    stage_expect(&stage, "!b +b !b +b !b +b !b +b !b +b");
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b F:g -c -a #a #b #c");
    assert_string_equal(stage.reason, "5 restarts in 10s; the last: b: broken");
    assert_int_equal(stage.end_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stage.ends[i].outcome, DET_TASK_OUTCOME_FAILED);
        assert_string_equal(
            stage.ends[i].reason, "group g: 5 restarts in 10s; the last: b: broken");
    }
    stage_expect_group(&stage, "g", "failed in top, 0 members, 5 of 5 restarts");
    stage_close(&stage);
}

static void old_restarts_leave_the_intensity_window(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_fail_times(&stage, "b", 5);
    stage_pass(&stage, 10 * DET_SECOND - 1);
    stage_expect_group(&stage, "g", "running in top, 3 members, 5 of 5 restarts");
    stage_pass(&stage, 1);
    stage_expect_group(&stage, "g", "running in top, 3 members, 0 of 5 restarts");
    stage_fail_times(&stage, "b", 5);
    stage_expect_group(&stage, "g", "running in top, 3 members, 5 of 5 restarts");
    stage_close(&stage);
}

static void run_ends_when_a_group_at_the_top_has_failed(void **state)
{
    struct det_error error;

    (void)state;
    stage_open(&stage);
    assert_int_equal(
        det_tasks_add_group(
            stage.tasks,
            &(struct det_task_group_spec){ .name = "g",
                                           .intensity = { .count = 9, .window = DET_HOUR } },
            NULL),
        0);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_player(&stage, "a")->keeps_part = true;
    stage_play(&stage, "a", PART_FAIL);
    if (det_tasks_run(stage.tasks, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(stage_player(&stage, "a")->starts, 10);
    assert_int_equal(stage.end_count, 2);
    assert_int_equal(stage.ends[0].outcome, DET_TASK_OUTCOME_FAILED);
    assert_int_equal(stage.ends[1].outcome, DET_TASK_OUTCOME_FAILED);
    stage_close(&stage);
}

static void a_failed_group_takes_no_task_until_it_is_started(void **state)
{
    struct det_task_spec spec;

    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_play(&stage, "b", PART_FATAL);
    stage_expect(&stage, "!b F:g #b -c -a #a #c");
    assert_string_equal(stage.reason, "b is lost: hopeless");
    spec = stage_spec(&stage, "d", "g");
    assert_int_equal(stage_try_add(&stage, &spec), DET_ERR_CLOSED);
    assert_string_equal(stage.text, "task d: group g has failed: b is lost: hopeless");
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "g"), 1);
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_add(&stage, "d", "g");
    stage_expect(&stage, "G:g +d");
    stage_close(&stage);
}

static void success_and_cancel_do_not_affect_the_group(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ALL_FOR_ONE);
    stage_play(&stage, "a", PART_SUCCEED);
    stage_expect(&stage, "=a #a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "c")->id), 1);
    stage_expect(&stage, "-c #c");
    stage_expect_group(&stage, "g", "running in top, 1 members, 0 of 5 restarts");
    stage_close(&stage);
}

static void failed_top_level_task_affects_no_other_task(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    stage_add(&stage, "b", NULL);
    stage_play(&stage, "a", PART_FATAL);
    stage_expect(&stage, "+a +b !a #a");
    assert_int_equal(stage.ends[0].outcome, DET_TASK_OUTCOME_FATAL);
    stage_close(&stage);
}

/* Mistakes. */

static int try_group(struct det_task_group_spec spec)
{
    struct det_error error = { .code = 0 };
    int r = det_tasks_add_group(stage.tasks, &spec, &error);

    snprintf(stage.text, sizeof stage.text, "%s", error.text);
    return r;
}

static void groups_that_cannot_be_are_refused_with_a_reason(void **state)
{
    char name[16], parent[16];
    int r = 0;

    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    assert_int_equal(try_group((struct det_task_group_spec){ .name = "" }), DET_ERR_INVALID);
    assert_int_equal(try_group((struct det_task_group_spec){ .name = "a" }), DET_ERR_EXISTS);
    assert_string_equal(stage.text, "group a: a task has this name");
    assert_int_equal(try_group((struct det_task_group_spec){ .name = "g" }), DET_ERR_EXISTS);
    assert_int_equal(
        try_group((struct det_task_group_spec){ .name = "h", .parent = "no" }), DET_ERR_NOT_FOUND);
    assert_string_equal(stage.text, "group h: the group no does not exist; add it first");
    assert_int_equal(
        try_group((struct det_task_group_spec){ .name = "h", .strategy = (enum det_strategy)9 }),
        DET_ERR_INVALID);
    assert_int_equal(
        try_group((struct det_task_group_spec){ .name = "h",
                                                .intensity = { .count = DET_INTENSITY_MAX + 1 } }),
        DET_ERR_INVALID);
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "no"), 0);
    assert_int_equal(det_tasks_group_start(stage.tasks, NULL), 0);
    for (int i = 0; i < 17 && r == 0; i++) {
        snprintf(name, sizeof name, "deep%d", i);
        snprintf(parent, sizeof parent, "deep%d", i - 1);
        r = try_group((struct det_task_group_spec){ .name = name, .parent = i ? parent : NULL });
    }
    assert_int_equal(r, DET_ERR_LIMIT);
    assert_string_equal(name, "deep16");
    stage_close(&stage);
}

static void no_group_is_added_after_a_shutdown(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    assert_int_equal(det_tasks_shutdown(stage.tasks, NULL), 0);
    assert_int_equal(try_group((struct det_task_group_spec){ .name = "h" }), DET_ERR_CLOSED);
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_for_one_restarts_only_the_one_that_failed),
        cmocka_unit_test(all_for_one_stops_in_reverse_order_and_restarts_in_order),
        cmocka_unit_test(rest_for_one_keeps_the_earlier_members_running),
        cmocka_unit_test(each_member_has_stopped_before_the_next),
        cmocka_unit_test(failure_of_an_earlier_member_widens_the_restart),
        cmocka_unit_test(second_failure_during_a_group_restart_is_counted),
        cmocka_unit_test(removed_failed_member_does_not_delay_the_restart),
        cmocka_unit_test(removed_held_member_does_not_delay_the_restart),
        cmocka_unit_test(manual_restart_waits_for_the_group_restart),
        cmocka_unit_test(as_many_restarts_as_the_limit_are_allowed_and_one_more_fails_the_group),
        cmocka_unit_test(old_restarts_leave_the_intensity_window),
        cmocka_unit_test(run_ends_when_a_group_at_the_top_has_failed),
        cmocka_unit_test(a_failed_group_takes_no_task_until_it_is_started),
        cmocka_unit_test(success_and_cancel_do_not_affect_the_group),
        cmocka_unit_test(failed_top_level_task_affects_no_other_task),
        cmocka_unit_test(groups_that_cannot_be_are_refused_with_a_reason),
        cmocka_unit_test(no_group_is_added_after_a_shutdown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
