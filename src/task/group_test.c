/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_test.c - groups within groups, and groups that are stopped and started manually. */
#include "task/tree_test.h"

static struct stage stage;

static void open_nested(enum det_strategy outer)
{
    stage_open(&stage);
    stage_group(&stage, "top", NULL, outer);
    stage_add(&stage, "a", "top");
    stage_group(&stage, "in", "top", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "x", "in");
    stage_add(&stage, "y", "in");
    stage_add(&stage, "z", "top");
    stage_expect(&stage, "G:top G:in +a +x +y +z");
}

static void group_failing_within_one_for_one_restarts_alone(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ONE_FOR_ONE);
    stage_play(&stage, "x", PART_FATAL);
    stage_expect(&stage, "!x F:in #x -y");
    stage_expect_group(&stage, "in", "backoff in top, 1 members, 0 of 5 restarts");
    stage_expect_group(&stage, "top", "running in top, 3 members, 1 of 5 restarts");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:in +y");
    stage_close(&stage);
}

static void restarted_group_has_an_empty_intensity_window(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ONE_FOR_ONE);
    stage_fail_times(&stage, "x", 5);
    stage_play(&stage, "x", PART_FAIL);
    stage_expect(&stage, "!x +x !x +x !x +x !x +x !x +x !x F:in -y");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:in +x +y");
    stage_expect_group(&stage, "in", "running in top, 2 members, 0 of 5 restarts");
    stage_close(&stage);
}

static void group_failing_within_all_for_one_restarts_all(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ALL_FOR_ONE);
    stage_play(&stage, "y", PART_FATAL);
    stage_expect(&stage, "!y F:in R:top #y -z -x -a");
    stage_expect_group(&stage, "top", "paused in top, 3 members, 1 of 5 restarts");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:top G:in +a +x +z");
    stage_close(&stage);
}

static void a_task_of_the_outer_group_takes_the_inner_one_with_it(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ALL_FOR_ONE);
    stage_player(&stage, "y")->stops_in = DET_SECOND / 2;
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:top -z");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "-y -x S:in");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "G:top G:in +a +x +y +z");
    stage_close(&stage);
}

static void outer_group_restart_replaces_an_inner_one(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "top", NULL, DET_STRATEGY_ALL_FOR_ONE);
    stage_group(&stage, "in", "top", DET_STRATEGY_ALL_FOR_ONE);
    stage_add(&stage, "x", "in");
    stage_add(&stage, "y", "in");
    stage_add(&stage, "a", "top");
    stage_expect(&stage, "G:top G:in +x +y +a");
    stage_play(&stage, "x", PART_FAIL);
    stage_expect(&stage, "!x R:in -y");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:top S:in");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:top G:in +x +y +a");
    stage_close(&stage);
}

static void group_failures_escalate_to_the_top(void **state)
{
    (void)state;
    stage_open(&stage);
    assert_int_equal(
        det_tasks_add_group(
            stage.tasks,
            &(struct det_task_group_spec){ .name = "top", .intensity = { .count = 1 } }, NULL),
        0);
    assert_int_equal(
        det_tasks_add_group(
            stage.tasks,
            &(struct det_task_group_spec){
                .name = "in", .parent = "top", .intensity = { .count = 1 } },
            NULL),
        0);
    stage_add(&stage, "x", "in");
    stage_player(&stage, "x")->keeps_part = true;
    stage_play(&stage, "x", PART_FAIL);
    stage_pass(&stage, DET_MINUTE);
    stage_expect(&stage, "G:top G:in +x !x +x !x F:in G:in +x !x +x !x F:in F:top S:in #x");
    assert_string_equal(
        stage.ends[0].reason,
        "group top: 1 restart in 10s; the last: in: 1 restart in 10s; the last: x: broken");
    stage_close(&stage);
}

/* By hand. */

static void a_group_is_stopped_in_reverse_order_and_started_again(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ONE_FOR_ONE);
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "top"), 1);
    stage_expect(&stage, "-z -y -x S:in -a S:top");
    assert_string_equal(stage_state(&stage, "x"), "held group in: stopped");
    stage_pass(&stage, DET_HOUR);
    assert_int_equal(det_tasks_group_start(stage.tasks, "top"), 1);
    stage_expect(&stage, "G:top G:in +a +x +y +z");
    stage_close(&stage);
}

static void manually_stopped_group_stays_stopped_on_outer_restart(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ALL_FOR_ONE);
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "in"), 1);
    stage_expect(&stage, "-y -x S:in");
    stage_play(&stage, "z", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!z R:top -a G:top +a +z");
    assert_int_equal(det_tasks_group_start(stage.tasks, "in"), 1);
    stage_expect(&stage, "G:in +x +y");
    stage_close(&stage);
}

static void a_start_in_the_middle_of_a_stop_comes_after_it(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_player(&stage, "b")->stops_in = DET_SECOND;
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "g"), 1);
    stage_expect(&stage, "-c");
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_expect(&stage, "");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "-b -a G:g +a +b +c");
    stage_close(&stage);
}

static void a_group_that_waits_for_its_next_try_can_be_stopped_and_started(void **state)
{
    (void)state;
    open_nested(DET_STRATEGY_ONE_FOR_ONE);
    stage_play(&stage, "x", PART_FATAL);
    stage_expect(&stage, "!x F:in #x -y");
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "in"), 1);
    stage_pass(&stage, DET_HOUR);
    stage_expect(&stage, "S:in");
    assert_int_equal(det_tasks_group_start(stage.tasks, "in"), 1);
    stage_expect(&stage, "G:in +y");
    stage_play(&stage, "y", PART_FATAL);
    stage_expect(&stage, "!y F:in #y");
    assert_int_equal(det_tasks_group_start(stage.tasks, "in"), 1);
    stage_expect(&stage, "G:in");
    stage_close(&stage);
}

static void tasks_and_groups_that_come_while_it_is_stopped_wait_for_its_start(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "g"), 1);
    stage_expect(&stage, "-c -b -a S:g");
    stage_add(&stage, "d", "g");
    stage_group(&stage, "sub", "g", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "e", "sub");
    stage_expect(&stage, "");
    assert_string_equal(stage_state(&stage, "e"), "held group sub: stopped");
    assert_int_equal(det_tasks_group_start(stage.tasks, "sub"), 1);
    stage_expect(&stage, "");
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_expect(&stage, "G:g G:sub +a +b +c +d +e");
    stage_close(&stage);
}

static void members_of_a_closed_group_get_no_permit(void **state)
{
    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .concurrent_max = 1 }), 0);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ALL_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_expect(&stage, "G:g +a");
    assert_string_equal(stage_state(&stage, "b"), "waiting a permit: 1 of 1 is taken by a");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    assert_string_equal(stage_state(&stage, "b"), "held group g: paused");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g +a");
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_failing_within_one_for_one_restarts_alone),
        cmocka_unit_test(restarted_group_has_an_empty_intensity_window),
        cmocka_unit_test(group_failing_within_all_for_one_restarts_all),
        cmocka_unit_test(a_task_of_the_outer_group_takes_the_inner_one_with_it),
        cmocka_unit_test(outer_group_restart_replaces_an_inner_one),
        cmocka_unit_test(group_failures_escalate_to_the_top),
        cmocka_unit_test(a_group_is_stopped_in_reverse_order_and_started_again),
        cmocka_unit_test(manually_stopped_group_stays_stopped_on_outer_restart),
        cmocka_unit_test(a_start_in_the_middle_of_a_stop_comes_after_it),
        cmocka_unit_test(a_group_that_waits_for_its_next_try_can_be_stopped_and_started),
        cmocka_unit_test(tasks_and_groups_that_come_while_it_is_stopped_wait_for_its_start),
        cmocka_unit_test(members_of_a_closed_group_get_no_permit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
