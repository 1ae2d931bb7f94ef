/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree_test.c - groups in virtual time: their strategies, their limits, and what stops and starts
 * them. */
#include "task/tree_test.h"

static struct stage stage;

static void open_three(enum det_strategy strategy)
{
    stage_open(&stage);
    stage_group(&stage, "g", NULL, strategy);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_add(&stage, "c", "g");
    stage_expect(&stage, "G:g +a +b +c");
}

static void one_for_one_restarts_only_the_one_that_failed(void **state)
{
    (void)state;
    open_three(DET_ONE_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "+b");
    stage_expect_group(&stage, "g", "running in top, 3 members, 1 of 5 restarts");
    stage_close(&stage);
}

static void all_for_one_stops_the_others_in_reverse_order_and_starts_all_in_order(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
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

static void rest_for_one_leaves_those_before_it_alone(void **state)
{
    (void)state;
    open_three(DET_REST_FOR_ONE);
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

static void each_is_waited_for_before_the_next_is_stopped(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
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

static void a_failure_of_an_earlier_one_in_the_middle_of_it_concerns_more(void **state)
{
    (void)state;
    open_three(DET_REST_FOR_ONE);
    stage_player(&stage, "c")->stops_in = DET_SECOND / 2;
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "-c");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "G:g +a +b +c");
    /* The same when the others are held already. */
    stage_play(&stage, "c", PART_FAIL);
    stage_expect(&stage, "!c R:g");
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g");
    stage_pass(&stage, 10 * DET_SECOND);
    stage_expect(&stage, "G:g +b +c");
    stage_close(&stage);
}

static void a_second_failure_in_the_middle_of_it_counts_and_starts_with_the_others(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
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

static void a_culprit_that_is_removed_is_not_waited_for(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c -a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "b")->id), 1);
    stage_expect(&stage, "#b G:g +a +c");
    stage_close(&stage);
}

static void one_that_is_removed_while_it_is_held_back_is_not_waited_for(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
    stage_player(&stage, "c")->stops_in = 2 * DET_SECOND;
    stage_play(&stage, "a", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!a R:g");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "c")->id), 1);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "-c #c -b G:g +a +b");
    stage_close(&stage);
}

static void a_restart_by_hand_does_not_run_ahead_of_the_group(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
    stage_player(&stage, "a")->stops_in = DET_SECOND / 4;
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b R:g -c");
    assert_int_equal(det_tasks_restart(stage.tasks, stage_player(&stage, "b")->id), 1);
    assert_string_equal(stage_state(&stage, "b"), "held group g: restarting");
    stage_pass(&stage, DET_SECOND / 4);
    stage_expect(&stage, "-a G:g +a +b +c");
    stage_close(&stage);
}

static void fail_times(const char *name, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        stage_play(&stage, name, PART_FAIL);
        stage_pass(&stage, 0);
        assert_int_equal(det_tasks_restart(stage.tasks, stage_player(&stage, name)->id), 1);
        stage_pass(&stage, 0);
    }
}

static void as_many_restarts_as_the_limit_are_allowed_and_one_more_fails_the_group(void **state)
{
    (void)state;
    open_three(DET_ONE_FOR_ONE);
    fail_times("b", 5);
    stage_expect(&stage, "!b +b !b +b !b +b !b +b !b +b");
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "!b F:g -c -a #a #b #c");
    assert_string_equal(stage.reason, "5 restarts in 10s; the last: b: broken");
    assert_int_equal(stage.end_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stage.ends[i].outcome, DET_OUTCOME_FAILED);
        assert_string_equal(
            stage.ends[i].reason, "group g: 5 restarts in 10s; the last: b: broken");
    }
    stage_expect_group(&stage, "g", "failed in top, 0 members, 5 of 5 restarts");
    stage_close(&stage);
}

static void restarts_that_are_long_ago_do_not_count(void **state)
{
    (void)state;
    open_three(DET_ONE_FOR_ONE);
    fail_times("b", 5);
    stage_pass(&stage, 10 * DET_SECOND - 1);
    stage_expect_group(&stage, "g", "running in top, 3 members, 5 of 5 restarts");
    stage_pass(&stage, 1);
    stage_expect_group(&stage, "g", "running in top, 3 members, 0 of 5 restarts");
    fail_times("b", 5);
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
            &(struct det_group_spec){ .name = "g",
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
    assert_int_equal(stage.ends[0].outcome, DET_OUTCOME_FAILED);
    assert_int_equal(stage.ends[1].outcome, DET_OUTCOME_FAILED);
    stage_close(&stage);
}

static void a_failed_group_takes_no_task_until_it_is_started(void **state)
{
    struct det_task_spec spec;

    (void)state;
    open_three(DET_ONE_FOR_ONE);
    stage_play(&stage, "b", PART_FATAL);
    stage_expect(&stage, "!b F:g #b -c -a #a #c");
    assert_string_equal(stage.reason, "b is lost: hopeless");
    spec = stage_spec(&stage, "d", "g");
    assert_int_equal(stage_try_add(&stage, &spec), DET_ERR_CLOSED);
    assert_string_equal(stage.text, "task d: group g has failed: b is lost: hopeless");
    assert_int_equal(det_tasks_group_stop(stage.tasks, "g"), 1);
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_add(&stage, "d", "g");
    stage_expect(&stage, "G:g +d");
    stage_close(&stage);
}

static void success_and_cancel_do_not_trouble_the_group(void **state)
{
    (void)state;
    open_three(DET_ALL_FOR_ONE);
    stage_play(&stage, "a", PART_SUCCEED);
    stage_expect(&stage, "=a #a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "c")->id), 1);
    stage_expect(&stage, "-c #c");
    stage_expect_group(&stage, "g", "running in top, 1 members, 0 of 5 restarts");
    stage_close(&stage);
}

static void a_task_that_fails_at_the_top_troubles_nobody(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    stage_add(&stage, "b", NULL);
    stage_play(&stage, "a", PART_FATAL);
    stage_expect(&stage, "+a +b !a #a");
    assert_int_equal(stage.ends[0].outcome, DET_OUTCOME_FATAL);
    stage_close(&stage);
}

/* Groups in groups. */

static void open_nested(enum det_strategy outer)
{
    stage_open(&stage);
    stage_group(&stage, "top", NULL, outer);
    stage_add(&stage, "a", "top");
    stage_group(&stage, "in", "top", DET_ONE_FOR_ONE);
    stage_add(&stage, "x", "in");
    stage_add(&stage, "y", "in");
    stage_add(&stage, "z", "top");
    stage_expect(&stage, "G:top G:in +a +x +y +z");
}

static void a_group_that_fails_within_one_for_one_begins_anew_by_itself(void **state)
{
    (void)state;
    open_nested(DET_ONE_FOR_ONE);
    stage_play(&stage, "x", PART_FATAL);
    stage_expect(&stage, "!x F:in #x -y");
    stage_expect_group(&stage, "in", "backoff in top, 1 members, 0 of 5 restarts");
    stage_expect_group(&stage, "top", "running in top, 3 members, 1 of 5 restarts");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:in +y");
    stage_close(&stage);
}

static void the_window_of_a_group_that_began_anew_is_empty(void **state)
{
    (void)state;
    open_nested(DET_ONE_FOR_ONE);
    fail_times("x", 5);
    stage_play(&stage, "x", PART_FAIL);
    stage_expect(&stage, "!x +x !x +x !x +x !x +x !x +x !x F:in -y");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:in +x +y");
    stage_expect_group(&stage, "in", "running in top, 2 members, 0 of 5 restarts");
    stage_close(&stage);
}

static void a_group_that_fails_within_all_for_one_takes_all_with_it(void **state)
{
    (void)state;
    open_nested(DET_ALL_FOR_ONE);
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
    open_nested(DET_ALL_FOR_ONE);
    stage_player(&stage, "y")->stops_in = DET_SECOND / 2;
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:top -z");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "-y -x S:in");
    stage_pass(&stage, DET_SECOND / 2);
    stage_expect(&stage, "G:top G:in +a +x +y +z");
    stage_close(&stage);
}

static void a_restart_within_is_given_up_for_one_above(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "top", NULL, DET_ALL_FOR_ONE);
    stage_group(&stage, "in", "top", DET_ALL_FOR_ONE);
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

static void failures_go_up_until_the_top_has_failed(void **state)
{
    (void)state;
    stage_open(&stage);
    assert_int_equal(
        det_tasks_add_group(
            stage.tasks, &(struct det_group_spec){ .name = "top", .intensity = { .count = 1 } },
            NULL),
        0);
    assert_int_equal(
        det_tasks_add_group(
            stage.tasks,
            &(struct det_group_spec){ .name = "in", .parent = "top", .intensity = { .count = 1 } },
            NULL),
        0);
    stage_add(&stage, "x", "in");
    stage_player(&stage, "x")->keeps_part = true;
    stage_play(&stage, "x", PART_FAIL);
    stage_pass(&stage, DET_MINUTE);
    stage_expect(&stage, "G:top G:in +x !x +x !x F:in G:in +x !x +x !x F:in F:top S:in #x");
    assert_string_equal(
        stage.ends[0].reason,
        "group top: 1 restarts in 10s; the last: in: 1 restarts in 10s; the last: x: broken");
    stage_close(&stage);
}

/* By hand. */

static void a_group_is_stopped_in_reverse_order_and_started_again(void **state)
{
    (void)state;
    open_nested(DET_ONE_FOR_ONE);
    assert_int_equal(det_tasks_group_stop(stage.tasks, "top"), 1);
    stage_expect(&stage, "-z -y -x S:in -a S:top");
    assert_string_equal(stage_state(&stage, "x"), "held group in: stopped");
    stage_pass(&stage, DET_HOUR);
    assert_int_equal(det_tasks_group_start(stage.tasks, "top"), 1);
    stage_expect(&stage, "G:top G:in +a +x +y +z");
    stage_close(&stage);
}

static void what_was_stopped_by_hand_stays_so_when_the_group_above_begins_anew(void **state)
{
    (void)state;
    open_nested(DET_ALL_FOR_ONE);
    assert_int_equal(det_tasks_group_stop(stage.tasks, "in"), 1);
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
    open_three(DET_ONE_FOR_ONE);
    stage_player(&stage, "b")->stops_in = DET_SECOND;
    assert_int_equal(det_tasks_group_stop(stage.tasks, "g"), 1);
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
    open_nested(DET_ONE_FOR_ONE);
    stage_play(&stage, "x", PART_FATAL);
    stage_expect(&stage, "!x F:in #x -y");
    assert_int_equal(det_tasks_group_stop(stage.tasks, "in"), 1);
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
    open_three(DET_ONE_FOR_ONE);
    assert_int_equal(det_tasks_group_stop(stage.tasks, "g"), 1);
    stage_expect(&stage, "-c -b -a S:g");
    stage_add(&stage, "d", "g");
    stage_group(&stage, "sub", "g", DET_ONE_FOR_ONE);
    stage_add(&stage, "e", "sub");
    stage_expect(&stage, "");
    assert_string_equal(stage_state(&stage, "e"), "held group sub: stopped");
    assert_int_equal(det_tasks_group_start(stage.tasks, "sub"), 1);
    stage_expect(&stage, "");
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_expect(&stage, "G:g G:sub +a +b +c +d +e");
    stage_close(&stage);
}

static void nobody_of_a_closed_group_gets_a_permit(void **state)
{
    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .concurrent_max = 1 }), 0);
    stage_group(&stage, "g", NULL, DET_ALL_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_expect(&stage, "G:g +a");
    assert_string_equal(stage_state(&stage, "b"), "waiting");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a R:g");
    assert_string_equal(stage_state(&stage, "b"), "held group g: paused");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g +a");
    stage_close(&stage);
}

/* Mistakes. */

static int try_group(struct det_group_spec spec)
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
    open_three(DET_ONE_FOR_ONE);
    assert_int_equal(try_group((struct det_group_spec){ .name = "" }), DET_ERR_INVALID);
    assert_int_equal(try_group((struct det_group_spec){ .name = "a" }), DET_ERR_EXISTS);
    assert_string_equal(stage.text, "group a: a task has this name");
    assert_int_equal(try_group((struct det_group_spec){ .name = "g" }), DET_ERR_EXISTS);
    assert_int_equal(
        try_group((struct det_group_spec){ .name = "h", .parent = "no" }), DET_ERR_NOT_FOUND);
    assert_string_equal(stage.text, "group h: there is no group no; add that first");
    assert_int_equal(
        try_group((struct det_group_spec){ .name = "h", .strategy = (enum det_strategy)9 }),
        DET_ERR_INVALID);
    assert_int_equal(
        try_group((struct det_group_spec){ .name = "h",
                                           .intensity = { .count = DET_INTENSITY_MAX + 1 } }),
        DET_ERR_INVALID);
    assert_int_equal(det_tasks_group_stop(stage.tasks, "no"), 0);
    assert_int_equal(det_tasks_group_start(stage.tasks, NULL), 0);
    for (int i = 0; i < 17 && r == 0; i++) {
        snprintf(name, sizeof name, "deep%d", i);
        snprintf(parent, sizeof parent, "deep%d", i - 1);
        r = try_group((struct det_group_spec){ .name = name, .parent = i ? parent : NULL });
    }
    assert_int_equal(r, DET_ERR_LIMIT);
    assert_string_equal(name, "deep16");
    stage_close(&stage);
}

static void no_group_is_added_after_a_shutdown(void **state)
{
    (void)state;
    open_three(DET_ONE_FOR_ONE);
    assert_int_equal(det_tasks_shutdown(stage.tasks, NULL), 0);
    assert_int_equal(try_group((struct det_group_spec){ .name = "h" }), DET_ERR_CLOSED);
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_for_one_restarts_only_the_one_that_failed),
        cmocka_unit_test(all_for_one_stops_the_others_in_reverse_order_and_starts_all_in_order),
        cmocka_unit_test(rest_for_one_leaves_those_before_it_alone),
        cmocka_unit_test(each_is_waited_for_before_the_next_is_stopped),
        cmocka_unit_test(a_failure_of_an_earlier_one_in_the_middle_of_it_concerns_more),
        cmocka_unit_test(a_second_failure_in_the_middle_of_it_counts_and_starts_with_the_others),
        cmocka_unit_test(a_culprit_that_is_removed_is_not_waited_for),
        cmocka_unit_test(one_that_is_removed_while_it_is_held_back_is_not_waited_for),
        cmocka_unit_test(a_restart_by_hand_does_not_run_ahead_of_the_group),
        cmocka_unit_test(as_many_restarts_as_the_limit_are_allowed_and_one_more_fails_the_group),
        cmocka_unit_test(restarts_that_are_long_ago_do_not_count),
        cmocka_unit_test(run_ends_when_a_group_at_the_top_has_failed),
        cmocka_unit_test(a_failed_group_takes_no_task_until_it_is_started),
        cmocka_unit_test(success_and_cancel_do_not_trouble_the_group),
        cmocka_unit_test(a_task_that_fails_at_the_top_troubles_nobody),
        cmocka_unit_test(a_group_that_fails_within_one_for_one_begins_anew_by_itself),
        cmocka_unit_test(the_window_of_a_group_that_began_anew_is_empty),
        cmocka_unit_test(a_group_that_fails_within_all_for_one_takes_all_with_it),
        cmocka_unit_test(a_task_of_the_outer_group_takes_the_inner_one_with_it),
        cmocka_unit_test(a_restart_within_is_given_up_for_one_above),
        cmocka_unit_test(failures_go_up_until_the_top_has_failed),
        cmocka_unit_test(a_group_is_stopped_in_reverse_order_and_started_again),
        cmocka_unit_test(what_was_stopped_by_hand_stays_so_when_the_group_above_begins_anew),
        cmocka_unit_test(a_start_in_the_middle_of_a_stop_comes_after_it),
        cmocka_unit_test(a_group_that_waits_for_its_next_try_can_be_stopped_and_started),
        cmocka_unit_test(tasks_and_groups_that_come_while_it_is_stopped_wait_for_its_start),
        cmocka_unit_test(nobody_of_a_closed_group_gets_a_permit),
        cmocka_unit_test(groups_that_cannot_be_are_refused_with_a_reason),
        cmocka_unit_test(no_group_is_added_after_a_shutdown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
