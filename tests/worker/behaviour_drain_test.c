/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_drain_test.c - a tree stops: children first, siblings at the same time, each level with
 * a grace of its own, and what does not come by itself is taken down. */
#include "worker/forest_test.h"

#define THREE_LEVELS \
    "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c") ", " NODE("d"))) ", " NODE("e") "]"

static det_time stop_takes(struct lab *lab, int expected, struct det_error *error)
{
    det_time begin = lab_now(lab);

    *error = (struct det_error){ 0 };
    assert_int_equal(det_workers_stop(lab->workers, error), expected);
    return lab_now(lab) - begin;
}

SENTENCE(a_clean_stop_of_what_has_nothing_to_end_takes_less_than_half_a_second)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(
        &lab, "children: [{name: p, kind: puppet, children: [{name: q, kind: puppet, children: "
              "[{name: r, kind: puppet}]}]}, {name: s, kind: puppet}]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/p/q/r", "working");
    assert_true(stop_takes(&lab, 0, &error) < 500 * DET_MILLISECOND);
    lab_assert_no_log(&lab, "graceful_shutdown");
    /* A second one has nothing to do. */
    assert_int_equal(stop_takes(&lab, 0, &error), 0);
    forest_end(&lab);
}

SENTENCE(three_levels_stop_within_the_grace_without_warnings)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b/c")->end_takes = 2 * DET_SECOND;
    node_of("lab/a/b")->end_takes = 2 * DET_SECOND;
    node_of("lab/a")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    assert_true(stop_takes(&lab, 0, &error) < 15 * DET_SECOND);
    lab_assert_no_log(&lab, "graceful_shutdown");
    assert_true(node_of("lab/a/b/c")->ended_at < node_of("lab/a/b")->ended_at);
    assert_true(node_of("lab/a/b")->ended_at < node_of("lab/a")->ended_at);
    assert_false(node_of("lab/a")->is_up);
    forest_end(&lab);
}

SENTENCE(siblings_stop_at_the_same_time)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b/c")->end_takes = 3 * DET_SECOND;
    node_of("lab/a/b/d")->end_takes = 3 * DET_SECOND;
    node_of("lab/e")->end_takes = 3 * DET_SECOND;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    assert_true(stop_takes(&lab, 0, &error) < 8 * DET_SECOND);
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(stuck_level_is_stopped_by_its_own_budget)
{
    struct det_error error;
    struct lab lab;
    det_time took;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->is_stuck = true;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    took = stop_takes(&lab, DET_ERR_TIMEOUT, &error);
    /* Its own level and the one below it. */
    assert_true(took >= 5 * DET_SECOND && took <= 13 * DET_SECOND);
    assert_non_null(strstr(error.text, "lab(application)/a(node)/b(node)"));
    assert_int_equal(reported_times(DET_WORKER_EVENT_STOP_TIMEOUT, "lab/a/b"), 1);
    /* Nobody else had to be. */
    assert_int_equal(lab_count(&lab, "graceful_shutdown_timeout"), 1);
    assert_false(node_of("lab/a/b/c")->is_up);
    assert_false(node_of("lab/a")->is_up);
    assert_int_equal(node_of("lab/a")->ends, 1);
    forest_end(&lab);
}

SENTENCE(two_stuck_levels_each_have_their_own_budget)
{
    struct det_error error;
    struct lab lab;
    det_time begin;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b/c")->is_stuck = true;
    node_of("lab/a")->is_stuck = true;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    begin = lab_now(&lab);
    stop_takes(&lab, DET_ERR_TIMEOUT, &error);
    assert_non_null(strstr(error.text, "c(node)"));
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_STOP_TIMEOUT, "lab/a/b/c", 1)->at - begin <
        6 * DET_SECOND);
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_STOP_TIMEOUT, "lab/a", 1)->at - begin >=
        14 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STOP_TIMEOUT, "lab/a/b"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STOP_TIMEOUT, "lab/e"), 0);
    forest_end(&lab);
}

SENTENCE(worker_stops_during_an_action)
{
    struct det_error error;
    struct lab lab;
    det_time took;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->act_takes = DET_MINUTE; /* may be cancelled */
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/b", "starting");
    assert_true(lab_status(&lab, "lab/a/b").is_action_pending);
    took = stop_takes(&lab, 0, &error);
    assert_true(took < 5 * DET_SECOND);
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(an_action_that_hangs_does_not_keep_the_stop_for_ever)
{
    struct det_error error = { 0 };
    struct lab lab;
    det_time begin;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->act_hangs = 10 * DET_MINUTE;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    begin = lab_now(&lab);
    (void)!det_workers_stop(lab.workers, &error);
    assert_true(lab_now(&lab) - begin < 40 * DET_SECOND);
    assert_false(node_of("lab/e")->is_up);
    assert_false(node_of("lab/a/b/c")->is_up);
    /* The thread is still there: closing waits for it, as it uses what is freed then. */
    forest_end(&lab);
    assert_int_equal(node_of("lab/a/b")->closed, 1);
}

SENTENCE(a_collect_that_hangs_does_not_keep_the_stop_for_ever)
{
    struct det_error error = { 0 };
    struct lab lab;
    det_time begin;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    node_of("lab/a/b")->collect_hangs = 10 * DET_MINUTE;
    node_of("lab/e")->collect_hangs = 10 * DET_MINUTE;
    lab_run(&lab, 3 * DET_SECOND);
    begin = lab_now(&lab);
    assert_int_equal(det_workers_stop(lab.workers, &error), DET_ERR_TIMEOUT);
    assert_true(lab_now(&lab) - begin < 30 * DET_SECOND);
    assert_false(node_of("lab/a/b/c")->is_up);
    assert_false(node_of("lab/a")->is_up);
    forest_end(&lab);
}

SENTENCE(a_collect_that_fails_does_not_keep_the_stop_for_ever)
{
    struct det_error error = { 0 };
    struct lab lab;
    det_time begin;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    node_of("lab/a/b")->collect_error = DET_ERR_IO;
    lab_run(&lab, 3 * DET_SECOND);
    begin = lab_now(&lab);
    (void)!det_workers_stop(lab.workers, &error);
    assert_true(lab_now(&lab) - begin < 15 * DET_SECOND);
    assert_false(node_of("lab/a")->is_up);
    forest_end(&lab);
}

SENTENCE(an_open_that_hangs_does_not_keep_the_stop_for_ever)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->open_hangs = 10 * DET_MINUTE;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    assert_true(stop_takes(&lab, DET_ERR_TIMEOUT, &error) < 30 * DET_SECOND);
    assert_false(node_of("lab/a")->is_up);
    forest_end(&lab);
}

SENTENCE(a_close_that_hangs_does_not_keep_the_stop_for_ever)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->close_hangs = 10 * DET_MINUTE;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    assert_true(stop_takes(&lab, DET_ERR_TIMEOUT, &error) < 30 * DET_SECOND);
    assert_non_null(strstr(error.text, "b(node)"));
    assert_false(node_of("lab/a")->is_up);
    assert_int_equal(node_of("lab/a/b")->closed, 0);
    forest_end(&lab);
}

SENTENCE(second_stop_request_ends_the_rest_at_once)
{
    struct lab lab;
    det_time begin;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->is_stuck = true;
    node_of("lab/e")->end_takes = 4 * DET_SECOND;
    node_of("lab/a/b/d")->end_hangs = DET_MINUTE;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    begin = lab_now(&lab);
    det_workers_cancel(lab.workers);
    lab_run(&lab, DET_SECOND);
    assert_true(lab_has(&lab, "lab/a/b"));
    assert_int_equal(reported_times(DET_WORKER_EVENT_STOP_FORCED, "lab"), 0);
    det_workers_cancel(lab.workers);
    assert_int_equal(det_workers_stop(lab.workers, NULL), DET_ERR_TIMEOUT);
    assert_true(lab_now(&lab) - begin < 2 * DET_SECOND);
    lab_assert_log(&lab, "graceful_shutdown_force_exit");
    forest_end(&lab);
}

SENTENCE(worker_awaiting_a_restart_stops_with_the_tree)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    node_of("lab/a/b")->wants_restart = true;
    node_of("lab/a/b")->end_takes = 2 * DET_SECOND;
    lab_run(&lab, 500 * DET_MILLISECOND);
    lab_assert_log(&lab, "worker_restart_requested lab/a/b");
    assert_true(stop_takes(&lab, 0, &error) < 10 * DET_SECOND);
    assert_int_equal(node_of("lab/a/b")->opened, 1);
    forest_end(&lab);
}

SENTENCE(a_wrong_config_does_not_keep_a_worker_from_stopping)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 4 * DET_SECOND);
    lab_apply(
        &lab, "children: [{name: a, kind: node, config: {port: 666}, children: [{name: b, kind: "
              "node, config: \"{{ .NO }}\"}]}, {name: x, kind: node, config: {nothing: 1}}]");
    lab_run(&lab, 4 * DET_SECOND);
    assert_true(stop_takes(&lab, 0, &error) < 5 * DET_SECOND);
    assert_false(node_of("lab/a/b")->is_up);
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(worker_that_failed_to_open_does_not_delay_the_stop)
{
    struct det_error error;
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b")->open_error = DET_ERR_IO;
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, 20 * DET_SECOND);
    assert_true(stop_takes(&lab, 0, &error) < 5 * DET_SECOND);
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(a_stop_at_any_moment_of_the_begin_is_clean)
{
    struct lab_options options = forest_options(seed);
    struct det_error error;
    struct lab lab;

    lab_open(&lab, options);
    lab_apply(&lab, THREE_LEVELS);
    lab_run(&lab, (det_time)det_sim_random_below(lab.sim, 3000) * DET_MILLISECOND);
    assert_true(stop_takes(&lab, 0, &error) < 5 * DET_SECOND);
    assert_int_equal(det_workers_apply(lab.workers, "children: []", &error), DET_ERR_CLOSED);
    assert_true(error.text[0]);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_stop_of_what_has_nothing_to_end_takes_less_than_half_a_second),
        cmocka_unit_test(three_levels_stop_within_the_grace_without_warnings),
        cmocka_unit_test(siblings_stop_at_the_same_time),
        cmocka_unit_test(stuck_level_is_stopped_by_its_own_budget),
        cmocka_unit_test(two_stuck_levels_each_have_their_own_budget),
        cmocka_unit_test(worker_stops_during_an_action),
        cmocka_unit_test(an_action_that_hangs_does_not_keep_the_stop_for_ever),
        cmocka_unit_test(a_collect_that_hangs_does_not_keep_the_stop_for_ever),
        cmocka_unit_test(a_collect_that_fails_does_not_keep_the_stop_for_ever),
        cmocka_unit_test(an_open_that_hangs_does_not_keep_the_stop_for_ever),
        cmocka_unit_test(a_close_that_hangs_does_not_keep_the_stop_for_ever),
        cmocka_unit_test(second_stop_request_ends_the_rest_at_once),
        cmocka_unit_test(worker_awaiting_a_restart_stops_with_the_tree),
        cmocka_unit_test(a_wrong_config_does_not_keep_a_worker_from_stopping),
        cmocka_unit_test(worker_that_failed_to_open_does_not_delay_the_stop),
        cmocka_unit_test(a_stop_at_any_moment_of_the_begin_is_clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
