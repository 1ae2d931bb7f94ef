/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop_order_test.c - a shutdown in order, and what it costs. */
#include "task/tree_test.h"

static struct stage stage;

static void shut_down(const char *trace)
{
    assert_int_equal(det_tasks_shutdown(stage.tasks, NULL), 0);
    stage_expect(&stage, trace);
    stage_close(&stage);
}

static void tasks_at_the_top_stop_at_once(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    stage_add(&stage, "b", NULL);
    stage_player(&stage, "a")->stops_in = 2 * DET_SECOND;
    stage_player(&stage, "b")->stops_in = DET_SECOND;
    stage_expect(&stage, "+a +b");
    shut_down("-b #b -a #a");
    assert_true(stage.players[0].reported_at == stage.players[1].reported_at);
}

static void members_stop_one_after_the_other_from_the_last_to_the_first(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_group(&stage, "in", "g", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "x", "in");
    stage_add(&stage, "y", "in");
    stage_add(&stage, "b", "g");
    for (size_t i = 0; i < stage.count; i++)
        stage.players[i].stops_in = DET_SECOND;
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g G:in +a +x +y +b");
    shut_down("-b #b -y #y -x #x -a #a");
    assert_true(
        stage_player(&stage, "a")->reported_at - stage_player(&stage, "b")->reported_at ==
        3 * DET_SECOND);
}

static void dependents_stop_before_what_they_depend_on(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "db", NULL);
    assert_int_equal(stage_add_needing(&stage, "web", NULL, "db", DET_WHEN_RUNNING), 0);
    assert_int_equal(stage_add_needing(&stage, "mail", NULL, "db", DET_WHEN_RUNNING), 0);
    stage_player(&stage, "web")->stops_in = DET_SECOND;
    stage_expect(&stage, "+db +web +mail");
    shut_down("-mail #mail -web #web -db #db");
}

static void dependents_of_a_group_stop_before_its_members(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    assert_int_equal(stage_add_needing(&stage, "web", NULL, "g", DET_WHEN_RUNNING), 0);
    stage_player(&stage, "web")->stops_in = DET_SECOND;
    stage_expect(&stage, "G:g +a +b +web");
    shut_down("-web #web -b #b -a #a");
}

/* t was added after the group `in`, whose member u depends on it; w of `in` is needed by t. */
static void dependencies_override_the_tree_order_at_shutdown(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_group(&stage, "in", "g", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "w", "in");
    assert_int_equal(stage_add_needing(&stage, "t", "g", "w", DET_WHEN_RUNNING), 0);
    assert_int_equal(stage_add_needing(&stage, "u", "in", "t", DET_WHEN_RUNNING), 0);
    stage_expect(&stage, "G:g G:in +w +t +u");
    shut_down("-u #u -t #t -w #w");
}

static void batch_listed_in_reverse_stops_dependents_first(void **state)
{
    struct det_dependency need = { .name = "a", .when = DET_WHEN_RUNNING };
    struct det_task_spec specs[2];

    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    specs[0] = stage_spec(&stage, "b", "g");
    specs[0].depends_on = &need;
    specs[0].depends_on_count = 1;
    specs[1] = stage_spec(&stage, "a", "g");
    assert_int_equal(det_tasks_add_batch(stage.tasks, specs, 2, NULL, NULL), 0);
    stage_expect(&stage, "G:g +a +b");
    shut_down("-b #b -a #a");
}

static void a_shutdown_in_the_middle_of_a_restart_ends_all(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ALL_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_add(&stage, "c", "g");
    stage_player(&stage, "c")->stops_in = 5 * DET_SECOND;
    stage_play(&stage, "b", PART_FAIL);
    stage_expect(&stage, "G:g +a +b +c !b R:g");
    shut_down("-c #c #b -a #a");
}

static void force_does_not_wait_for_the_order(void **state)
{
    struct det_error error;

    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .grace = 3 * DET_SECOND }), 0);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "a", "g");
    stage_add(&stage, "b", "g");
    stage_player(&stage, "b")->stops_in = DET_HOUR;
    stage_expect(&stage, "G:g +a +b");
    assert_int_equal(det_tasks_shutdown(stage.tasks, &error), DET_ERR_TIMEOUT);
    assert_string_equal(error.text, "2 did not stop within the grace period: a, b");
    stage_close(&stage);
}

/* A chain, and a wide group: both would take minutes if each step walked through all. */
static void many_start_and_stop_in_linear_time(void **state)
{
    enum { MANY = 20000 };
    static char names[MANY][16];
    static struct player players[MANY];
    struct det_dependency need = { .when = DET_WHEN_RUNNING };
    struct det_task_spec spec = { .step = player_step };

    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ALL_FOR_ONE);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        players[i] = (struct player){ .part = PART_RUN };
        need.name = i >= 2 ? names[i - 2] : NULL;
        spec.name = names[i];
        spec.argument = &players[i];
        spec.group = i % 2 ? "g" : NULL;
        spec.depends_on = &need;
        spec.depends_on_count = i >= 2;
        assert_int_equal(det_tasks_add(stage.tasks, &spec, NULL, NULL, NULL), 0);
    }
    stage_pass(&stage, 0);
    assert_int_equal(det_tasks_counts(stage.tasks).running, MANY);
    players[1].part = PART_FAIL;
    assert_int_equal(det_tasks_wake(stage.tasks, det_tasks_find(stage.tasks, names[1])), 1);
    stage_pass(&stage, DET_SECOND);
    assert_int_equal(det_tasks_counts(stage.tasks).running, MANY);
    assert_int_equal(det_tasks_shutdown(stage.tasks, NULL), 0);
    assert_int_equal(det_tasks_counts(stage.tasks).finished, MANY);
    stage_close(&stage);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(players[i].starts, i % 2 ? 2 : 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_at_the_top_stop_at_once),
        cmocka_unit_test(members_stop_one_after_the_other_from_the_last_to_the_first),
        cmocka_unit_test(dependents_stop_before_what_they_depend_on),
        cmocka_unit_test(dependents_of_a_group_stop_before_its_members),
        cmocka_unit_test(dependencies_override_the_tree_order_at_shutdown),
        cmocka_unit_test(batch_listed_in_reverse_stops_dependents_first),
        cmocka_unit_test(a_shutdown_in_the_middle_of_a_restart_ends_all),
        cmocka_unit_test(force_does_not_wait_for_the_order),
        cmocka_unit_test(many_start_and_stop_in_linear_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
