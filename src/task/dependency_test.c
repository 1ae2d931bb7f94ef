/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dependency_test.c - dependencies: conditions of each kind, on tasks and on groups; cycles; the
 * memory of completed tasks. */
#include "task/tree_test.h"

static struct stage stage;

static void one_waits_until_another_runs(void **state)
{
    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .concurrent_max = 1 }), 0);
    stage_add(&stage, "other", NULL);
    stage_expect(&stage, "+other");
    stage_add(&stage, "a", NULL);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_RUNNING), 0);
    assert_string_equal(stage_state(&stage, "a"), "waiting a permit: 1 of 1 is taken by other");
    assert_string_equal(stage_state(&stage, "b"), "held a: not running yet");
    stage_play(&stage, "other", PART_SUCCEED);
    stage_expect(&stage, "=other #other +a");
    assert_string_equal(stage_state(&stage, "b"), "waiting a permit: 1 of 1 is taken by a");
    stage_close(&stage);
}

static void one_waits_until_another_is_ready(void **state)
{
    struct det_task_spec spec;

    (void)state;
    stage_open(&stage);
    spec = stage_spec(&stage, "db", NULL);
    spec.readiness.by = DET_READY_BY_NOTIFY;
    assert_int_equal(stage_try_add(&stage, &spec), 0);
    assert_int_equal(stage_add_needing(&stage, "web", NULL, "db", DET_WHEN_HEALTHY), 0);
    stage_expect(&stage, "+db");
    assert_string_equal(stage_state(&stage, "web"), "held db: not healthy yet");
    stage_play(&stage, "db", PART_READY);
    stage_expect(&stage, "r:db +web");
    /* A running task continues when its dependency restarts; a held one waits again. */
    stage_play(&stage, "db", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!db +db");
    stage_play(&stage, "web", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!web");
    assert_string_equal(stage_state(&stage, "web"), "held db: not healthy yet");
    stage_play(&stage, "db", PART_READY);
    stage_expect(&stage, "r:db +web");
    stage_close(&stage);
}

static void one_waits_until_another_has_completed_and_that_is_remembered(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "migrate", NULL);
    assert_int_equal(stage_add_needing(&stage, "web", NULL, "migrate", DET_WHEN_COMPLETED), 0);
    stage_expect(&stage, "+migrate");
    assert_string_equal(stage_state(&stage, "web"), "held migrate: not completed yet");
    stage_play(&stage, "migrate", PART_SUCCEED);
    stage_expect(&stage, "=migrate #migrate +web");
    /* As long as a task depends on it, later tasks find it completed, too. */
    assert_int_equal(stage_add_needing(&stage, "late", NULL, "migrate", DET_WHEN_COMPLETED), 0);
    assert_int_equal(stage_add_needing(&stage, "later", NULL, "migrate", DET_WHEN_RUNNING), 0);
    stage_expect(&stage, "+late +later");
    stage_play(&stage, "web", PART_FAIL);
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "!web +web");
    stage_play(&stage, "web", PART_SUCCEED);
    stage_play(&stage, "late", PART_SUCCEED);
    stage_play(&stage, "later", PART_SUCCEED);
    stage_pass(&stage, 0);
    assert_int_equal(
        stage_add_needing(&stage, "last", NULL, "migrate", DET_WHEN_COMPLETED), DET_ERR_NOT_FOUND);
    stage_close(&stage);
}

static void repeated_task_counts_as_completed_after_one_success(void **state)
{
    struct det_task_spec spec;

    (void)state;
    stage_open(&stage);
    spec = stage_spec(&stage, "poll", NULL);
    spec.policy = (struct det_policy){ .restart = DET_RESTART_ALWAYS, .interval = DET_MINUTE };
    assert_int_equal(stage_try_add(&stage, &spec), 0);
    assert_int_equal(stage_add_needing(&stage, "use", NULL, "poll", DET_WHEN_COMPLETED), 0);
    stage_expect(&stage, "+poll");
    stage_play(&stage, "poll", PART_SUCCEED);
    stage_expect(&stage, "=poll +use");
    stage_close(&stage);
}

static void a_dependency_that_was_cancelled_holds_its_dependents_until_it_is_added_again(
    void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_COMPLETED), 0);
    stage_expect(&stage, "+a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_expect(&stage, "-a #a");
    assert_string_equal(stage_state(&stage, "b"), "held a: no longer exists");
    stage_add(&stage, "a", NULL);
    assert_string_equal(stage_state(&stage, "b"), "held a: not completed yet");
    stage_play(&stage, "a", PART_SUCCEED);
    stage_expect(&stage, "+a =a #a +b");
    stage_close(&stage);
}

static void dependency_name_may_become_a_group(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_COMPLETED), 0);
    stage_expect(&stage, "+a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_expect(&stage, "-a #a");
    stage_group(&stage, "a", NULL, DET_STRATEGY_ONE_FOR_ONE);
    assert_string_equal(stage_state(&stage, "b"), "held a: has no tasks yet");
    stage_add(&stage, "x", "a");
    stage_play(&stage, "x", PART_SUCCEED);
    stage_expect(&stage, "G:a +x =x #x +b");
    stage_close(&stage);
}

/* Groups. */

static void a_group_is_running_when_all_below_it_are(void **state)
{
    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .concurrent_max = 2 }), 0);
    stage_add(&stage, "other", NULL);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_group(&stage, "in", "g", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "x", "g");
    stage_add(&stage, "y", "in");
    assert_int_equal(stage_add_needing(&stage, "z", NULL, "g", DET_WHEN_RUNNING), 0);
    stage_expect(&stage, "G:g G:in +other +x");
    assert_string_equal(stage_state(&stage, "z"), "held g: not running yet");
    stage_play(&stage, "other", PART_SUCCEED);
    stage_expect(&stage, "=other #other +y");
    assert_string_equal(stage_state(&stage, "z"), "waiting a permit: 2 of 2 are taken by y, x");
    stage_close(&stage);
}

static void group_completes_when_every_member_has_completed(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "x", "g");
    stage_add(&stage, "y", "g");
    assert_int_equal(stage_add_needing(&stage, "z", NULL, "g", DET_WHEN_COMPLETED), 0);
    stage_play(&stage, "x", PART_SUCCEED);
    stage_expect(&stage, "G:g +x +y =x #x");
    stage_play(&stage, "y", PART_SUCCEED);
    stage_expect(&stage, "=y #y +z");
    stage_add(&stage, "x", "g");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "x")->id), 1);
    stage_expect(&stage, "#x");
    assert_int_equal(stage_add_needing(&stage, "w", NULL, "g", DET_WHEN_COMPLETED), 0);
    assert_string_equal(stage_state(&stage, "w"), "held g: not completed yet");
    /* A group that begins again has lost no member, and completed nothing. */
    assert_int_equal(det_tasks_group_cancel(stage.tasks, "g"), 1);
    stage_expect(&stage, "S:g");
    assert_int_equal(det_tasks_group_start(stage.tasks, "g"), 1);
    assert_string_equal(stage_state(&stage, "w"), "held g: has no tasks yet");
    stage_add(&stage, "v", "g");
    stage_play(&stage, "v", PART_SUCCEED);
    stage_expect(&stage, "G:g +v =v #v +w");
    stage_close(&stage);
}

/* Batches and cycles. */

struct pair {
    const char *name, *group, *need;
};

static int try_batch(const struct pair *pairs, size_t count)
{
    struct det_task_spec specs[8];
    struct det_dependency needs[8];
    det_task_id ids[8] = { 0 };
    struct det_error error = { .code = 0 };
    int r;

    for (size_t i = 0; i < count; i++) {
        specs[i] = stage_spec(&stage, pairs[i].name, pairs[i].group);
        needs[i] = (struct det_dependency){ .name = pairs[i].need, .when = DET_WHEN_RUNNING };
        specs[i].depends_on = &needs[i];
        specs[i].depends_on_count = pairs[i].need != NULL;
    }
    r = det_tasks_add_batch(stage.tasks, specs, count, ids, &error);
    for (size_t i = 0; i < count; i++)
        stage_player(&stage, pairs[i].name)->id = ids[i];
    snprintf(stage.text, sizeof stage.text, "%s", error.text);
    return r;
}

static void a_batch_may_depend_on_each_other_in_any_order(void **state)
{
    const struct pair pairs[] = {
        { "d", NULL, "c" }, { "b", NULL, "a" }, { "c", NULL, "b" }, { "a", NULL, NULL }
    };

    (void)state;
    stage_open(&stage);
    assert_int_equal(try_batch(pairs, 4), 0);
    stage_expect(&stage, "+a +b +c +d");
    stage_close(&stage);
}

static void a_cycle_is_refused_with_its_path_and_nothing_of_the_batch_is_left(void **state)
{
    const struct pair cycle[] = { { "a", NULL, "b" }, { "b", NULL, "c" }, { "c", NULL, "a" } };
    const struct pair fine[] = { { "a", NULL, "b" }, { "b", NULL, "c" }, { "c", NULL, NULL } };
    const struct pair self[] = { { "s", NULL, "s" } };

    (void)state;
    stage_open(&stage);
    assert_int_equal(try_batch(cycle, 3), DET_ERR_INVALID);
    assert_string_equal(stage.text, "task c depends on itself: c -> a -> b -> c");
    assert_int_equal(try_batch(self, 1), DET_ERR_INVALID);
    assert_string_equal(stage.text, "task s depends on itself: s -> s");
    assert_int_equal(try_batch(fine, 3), 0);
    stage_expect(&stage, "+c +b +a");
    stage_close(&stage);
}

static void a_cycle_through_groups_is_found(void **state)
{
    const struct pair inside[] = { { "x", "in", "g" } };
    const struct pair around[] = { { "t", NULL, "g" }, { "u", NULL, "t" }, { "v", "in", "u" } };

    (void)state;
    stage_open(&stage);
    stage_group(&stage, "g", NULL, DET_STRATEGY_ONE_FOR_ONE);
    stage_group(&stage, "in", "g", DET_STRATEGY_ONE_FOR_ONE);
    stage_add(&stage, "w", "g");
    assert_int_equal(try_batch(inside, 1), DET_ERR_INVALID);
    assert_string_equal(stage.text, "task x depends on itself: x -> g -> in -> x");
    assert_int_equal(try_batch(around, 3), DET_ERR_INVALID);
    assert_string_equal(stage.text, "task v depends on itself: v -> u -> t -> g -> in -> v");
    stage_expect(&stage, "G:g G:in +w");
    stage_close(&stage);
}

static void dependency_cycle_through_a_removed_task_is_found(void **state)
{
    (void)state;
    stage_open(&stage);
    stage_add(&stage, "a", NULL);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_RUNNING), 0);
    stage_expect(&stage, "+a +b");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_expect(&stage, "-a #a");
    assert_int_equal(stage_add_needing(&stage, "a", NULL, "b", DET_WHEN_RUNNING), DET_ERR_INVALID);
    assert_string_equal(stage.text, "task a depends on itself: a -> b -> a");
    stage_close(&stage);
}

static void a_long_path_is_cut(void **state)
{
    char names[40][16];

    (void)state;
    stage_open(&stage);
    stage_add(&stage, "first", NULL);
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "number-%d", i);
        assert_int_equal(
            stage_add_needing(&stage, names[i], NULL, i ? names[i - 1] : "first", DET_WHEN_RUNNING),
            0);
    }
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "first")->id), 1);
    stage_pass(&stage, 0);
    assert_int_equal(
        stage_add_needing(&stage, "first", NULL, names[39], DET_WHEN_RUNNING), DET_ERR_INVALID);
    assert_int_equal(strlen(stage.text), DET_ERROR_TEXT_MAX - 1);
    stage_close(&stage);
}

static void missing_dependency_is_refused(void **state)
{
    (void)state;
    stage_open(&stage);
    assert_int_equal(
        stage_add_needing(&stage, "a", NULL, "ghost", DET_WHEN_RUNNING), DET_ERR_NOT_FOUND);
    assert_string_equal(
        stage.text,
        "task a depends on ghost, which does not exist; add it first, or in the same batch");
    assert_int_equal(
        stage_add_needing(&stage, "a", NULL, NULL, DET_WHEN_RUNNING), DET_ERR_NOT_FOUND);
    stage_add(&stage, "b", NULL);
    assert_int_equal(
        stage_add_needing(&stage, "a", NULL, "b", (enum det_condition_kind)9), DET_ERR_INVALID);
    stage_close(&stage);
}

static void task_waiting_for_a_permit_is_held_without_dependency(void **state)
{
    (void)state;
    assert_int_equal(
        stage_try_open(&stage, 1, (struct det_tasks_options){ .concurrent_max = 1 }), 0);
    stage_add(&stage, "a", NULL);
    assert_int_equal(stage_add_needing(&stage, "b", NULL, "a", DET_WHEN_RUNNING), 0);
    stage_expect(&stage, "+a");
    assert_string_equal(stage_state(&stage, "b"), "waiting a permit: 1 of 1 is taken by a");
    stage_play(&stage, "a", PART_FAIL);
    stage_expect(&stage, "!a");
    assert_string_equal(stage_state(&stage, "b"), "held a: not running yet");
    stage_close(&stage);
}

static void held_task_keeps_its_place_and_its_dependents_wait(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_REST_FOR_ONE);
    assert_int_equal(det_tasks_hold(stage.tasks, stage_player(&stage, "b")->id), 1);
    assert_int_equal(det_tasks_hold(stage.tasks, stage_player(&stage, "b")->id), 0);
    assert_int_equal(det_tasks_hold(stage.tasks, 4711), 0);
    stage_expect(&stage, "-b");
    assert_string_equal(stage_state(&stage, "b"), "held stopped manually");
    assert_int_equal(stage_add_needing(&stage, "d", NULL, "b", DET_WHEN_RUNNING), 0);
    assert_string_equal(stage_state(&stage, "d"), "held b: stopped manually");
    stage_play(&stage, "a", PART_FAIL); /* the group begins again, except tasks on hold */
    stage_expect(&stage, "!a R:g -c");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "G:g +a +c");
    assert_int_equal(det_tasks_restart(stage.tasks, stage_player(&stage, "b")->id), 1);
    stage_expect(&stage, "+b +d");
    stage_play(&stage, "b", PART_FAIL); /* its place is still before c */
    stage_expect(&stage, "!b R:g -c");
    stage_close(&stage);
}

static void stop_in_progress_can_be_revoked(void **state)
{
    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    stage_player(&stage, "a")->stops_in = DET_SECOND;
    assert_int_equal(det_tasks_hold(stage.tasks, stage_player(&stage, "a")->id), 1);
    assert_int_equal(det_tasks_restart(stage.tasks, stage_player(&stage, "a")->id), 1);
    stage_expect(&stage, "");
    stage_pass(&stage, DET_SECOND);
    stage_expect(&stage, "-a +a");
    assert_int_equal(det_tasks_remove(stage.tasks, stage_player(&stage, "a")->id), 1);
    assert_int_equal(det_tasks_hold(stage.tasks, stage_player(&stage, "a")->id), 0);
    stage_close(&stage);
}

static void a_dependency_can_be_asked_for(void **state)
{
    struct det_dependency on = { .name = "a", .when = DET_WHEN_COMPLETED };

    (void)state;
    stage_open_three(&stage, DET_STRATEGY_ONE_FOR_ONE);
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 0);
    on.when = DET_WHEN_HEALTHY;
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 1);
    on.name = "g";
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 1);
    on.name = "nobody";
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 0);
    on = (struct det_dependency){ .name = "a", .when = (enum det_condition_kind)7 };
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 0);
    on.when = DET_WHEN_COMPLETED;
    assert_int_equal(stage_add_needing(&stage, "d", NULL, "a", DET_WHEN_COMPLETED), 0);
    stage_play(&stage, "a", PART_SUCCEED);
    stage_settle(&stage);
    assert_int_equal(det_tasks_is_met(stage.tasks, &on), 1);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waits_until_another_runs),
        cmocka_unit_test(one_waits_until_another_is_ready),
        cmocka_unit_test(one_waits_until_another_has_completed_and_that_is_remembered),
        cmocka_unit_test(repeated_task_counts_as_completed_after_one_success),
        cmocka_unit_test(
            a_dependency_that_was_cancelled_holds_its_dependents_until_it_is_added_again),
        cmocka_unit_test(dependency_name_may_become_a_group),
        cmocka_unit_test(a_group_is_running_when_all_below_it_are),
        cmocka_unit_test(group_completes_when_every_member_has_completed),
        cmocka_unit_test(a_batch_may_depend_on_each_other_in_any_order),
        cmocka_unit_test(a_cycle_is_refused_with_its_path_and_nothing_of_the_batch_is_left),
        cmocka_unit_test(a_cycle_through_groups_is_found),
        cmocka_unit_test(dependency_cycle_through_a_removed_task_is_found),
        cmocka_unit_test(a_long_path_is_cut),
        cmocka_unit_test(missing_dependency_is_refused),
        cmocka_unit_test(task_waiting_for_a_permit_is_held_without_dependency),
        cmocka_unit_test(held_task_keeps_its_place_and_its_dependents_wait),
        cmocka_unit_test(stop_in_progress_can_be_revoked),
        cmocka_unit_test(a_dependency_can_be_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
