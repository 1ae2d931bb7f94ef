/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_circuit_test.c - children that fail too often pause their subtree, and nothing else. */
#define SEEDS 8 /* minutes of a tree each */
#include "worker/forest_test.h"

/* The child x of a goes on wanting to begin anew; y is its sibling, b has nothing to do with it. */
#define YAML                                                                               \
    "children: [" NODE_OVER("a", NODE("x") ", " NODE_OVER("y", NODE("z"))) ", " NODE_OVER( \
        "b", NODE("x")) "]"

static struct lab_options circuit_options(uint64_t seed)
{
    struct lab_options options = forest_options(seed);

    options.limits.restart_backoff =
        (struct det_backoff){ .first = DET_SECOND, .max = DET_SECOND, .factor = 1 };
    options.limits.restarts = (struct det_intensity){ 1000, DET_MINUTE };
    options.limits.circuit = (struct det_intensity){ 3, DET_MINUTE };
    options.limits.circuit_backoff =
        (struct det_backoff){ .first = 8 * DET_SECOND, .max = 64 * DET_SECOND, .factor = 2 };
    return options;
}

static void run_until(struct lab *lab, enum det_worker_event_kind kind, const char *id, uint32_t n)
{
    det_time end = lab_now(lab) + 10 * DET_MINUTE;

    while (reported_times(kind, id) < n && lab_now(lab) < end)
        lab_run(lab, 50 * DET_MILLISECOND);
    reported_nth(lab, kind, id, n);
}

static void begin(struct lab *lab, uint64_t seed)
{
    lab_open(lab, circuit_options(seed));
    lab_apply(lab, YAML);
    lab_run(lab, 4 * DET_SECOND);
}

SENTENCE(children_that_fail_too_often_open_the_circuit_of_their_parent_only)
{
    struct lab lab;
    struct det_workers_summary summary;
    uint32_t nexts, acts, others, collects;

    begin(&lab, seed);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.circuits_open, 0);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/b"), 0);
    assert_true(lab_status(&lab, "lab/a").is_circuit_open);
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1)->reason, "all is lost");
    lab_run(&lab, 200 * DET_MILLISECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.circuits_open, 1);
    lab_assert_state(&lab, "lab", "degraded");
    lab_assert_state(&lab, "lab/b", "well");
    /* All below is paused: asked nothing, does nothing; but it is looked at. */
    node_of("lab/a/y")->is_lost = true;
    nexts = node_of("lab/a/y")->nexts + node_of("lab/a/y/z")->nexts;
    acts = node_of("lab/a/y")->acts + node_of("lab/a/x")->acts;
    others = node_of("lab/b/x")->nexts;
    collects = node_of("lab/a/y")->collects;
    lab_run(&lab, 3500 * DET_MILLISECOND);
    assert_int_equal(node_of("lab/a/y")->nexts + node_of("lab/a/y/z")->nexts, nexts);
    assert_int_equal(node_of("lab/a/y")->acts + node_of("lab/a/x")->acts, acts);
    assert_true(node_of("lab/b/x")->nexts > others + 30);
    assert_true(node_of("lab/a/y")->collects >= collects + 2);
    assert_int_equal(lab_status(&lab, "lab/a/y").freshness, DET_FRESHNESS_FRESH);
    forest_end(&lab);
}

SENTENCE(a_circuit_is_probed_and_heals)
{
    struct lab lab;
    const struct reported *opened, *probed, *closed;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    node_of("lab/a/x")->wants_restart = false;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a", 1);
    lab_run(&lab, 5 * DET_SECOND);
    opened = reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    probed = reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 1);
    closed = reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a", 1);
    assert_int_equal(probed->number, 1);
    assert_true(probed->at - opened->at >= 4 * DET_SECOND);
    assert_true(probed->at - opened->at <= 9 * DET_SECOND);
    assert_int_equal(closed->number, (closed->at - opened->at) / DET_MILLISECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a"), 1);
    assert_false(lab_status(&lab, "lab/a").is_circuit_open);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/x", "well");
    forest_end(&lab);
}

SENTENCE(one_failure_while_it_is_probed_opens_it_again_for_longer)
{
    struct lab lab;
    det_time first, second;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 2);
    first = reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 1)->at -
            reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1)->at;
    second = reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 2)->at -
             reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 2)->at;
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a"), 2);
    assert_true(second > first);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_ESCALATED, "lab/a"), 0);
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_ESCALATED, "lab/a", 1);
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_CIRCUIT_ESCALATED, "lab/a", 1)->number, 5);
    /* Told once, and it goes on trying. */
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 7);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_ESCALATED, "lab/a"), 1);
    node_of("lab/a/x")->wants_restart = false;
    lab_run(&lab, 4 * DET_MINUTE);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a"), 1);
    lab_assert_state(&lab, "lab/a/x", "well");
    forest_end(&lab);
}

SENTENCE(failing_children_of_the_root_do_not_pause_it)
{
    struct lab lab;
    struct det_worker_status status;

    lab_open(&lab, circuit_options(seed));
    node_of("lab/b")->wants_restart = true;
    lab_apply(&lab, "children: [" NODE("a") ", " NODE("b") "]");
    lab_run(&lab, DET_MINUTE);
    assert_true(reported_times(DET_WORKER_EVENT_RESTART_REQUESTED, "lab/b") > 5);
    lab_assert_no_log(&lab, "circuit_breaker_opened");
    lab_assert_state(&lab, "lab/a", "well");
    status = lab_status(&lab, "lab");
    assert_false(status.is_circuit_open);
    forest_end(&lab);
}

SENTENCE(a_stop_passes_an_open_circuit)
{
    struct lab lab;
    det_time from;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    lab_run(&lab, DET_SECOND);
    from = lab_now(&lab);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_true(lab_now(&lab) - from < 5 * DET_SECOND);
    assert_false(node_of("lab/a/y")->is_up || node_of("lab/a/y/z")->is_up);
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(removed_worker_goes_although_its_circuit_is_open)
{
    struct lab lab;
    struct det_workers_summary summary;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    lab_apply(&lab, "children: [" NODE("b") "]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    assert_false(lab_has(&lab, "lab/a/y/z"));
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.circuits_open, 0);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_no_log(&lab, "graceful_shutdown");
    forest_end(&lab);
}

SENTENCE(manual_restart_closes_an_open_circuit)
{
    struct lab lab;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    node_of("lab/a/x")->wants_restart = false;
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 30 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/x", "well");
    lab_assert_state(&lab, "lab/a/y/z", "well");
    assert_false(lab_status(&lab, "lab/a").is_circuit_open);
    lab_assert_state(&lab, "lab", "running");
    forest_end(&lab);
}

SENTENCE(children_that_cannot_be_opened_open_the_circuit_too)
{
    struct lab lab;

    lab_open(&lab, circuit_options(seed));
    node_of("lab/a/x")->open_error = DET_ERR_IO;
    lab_apply(&lab, YAML);
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    lab_assert_log(&lab, "worker_add_failed lab/a/x");
    node_of("lab/a/x")->open_error = 0;
    lab_run(&lab, DET_MINUTE);
    lab_assert_state(&lab, "lab/a/x", "well");
    lab_assert_log(&lab, "circuit_breaker_closed lab/a");
    forest_end(&lab);
}

SENTENCE(failures_that_are_rare_do_not_open_a_circuit)
{
    struct lab lab;

    begin(&lab, seed);
    for (int i = 0; i < 6; i++) {
        lab_run(&lab, 40 * DET_SECOND);
        node_of("lab/a/x")->wants_restart = true;
        run_until(&lab, DET_WORKER_EVENT_RESTART_REQUESTED, "lab/a/x", (uint32_t)i + 1);
        node_of("lab/a/x")->wants_restart = false;
    }
    lab_assert_no_log(&lab, "circuit_breaker_opened");
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/x", "well");
    forest_end(&lab);
}

SENTENCE(a_circuit_inside_of_another_one_pauses_until_both_are_closed)
{
    struct lab lab;
    uint32_t nexts;

    begin(&lab, seed);
    node_of("lab/a/y/z")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a/y", 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a"), 0);
    lab_assert_state(&lab, "lab/a/x", "well");
    nexts = node_of("lab/a/x")->nexts;
    lab_run(&lab, 3 * DET_SECOND);
    assert_true(node_of("lab/a/x")->nexts > nexts + 20);
    node_of("lab/a/y/z")->wants_restart = false;
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    node_of("lab/a/x")->wants_restart = false;
    lab_run(&lab, 2 * DET_MINUTE);
    lab_assert_state(&lab, "lab/a/y/z", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a"), 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a/y"), 1);
    lab_assert_state(&lab, "lab", "running");
    forest_end(&lab);
}

SENTENCE(a_circuit_does_not_close_over_a_child_that_is_down)
{
    struct lab_options options = circuit_options(seed);
    struct lab lab;

    options.limits.restarts = (struct det_intensity){ 3, DET_MINUTE };
    options.limits.circuit = (struct det_intensity){ 2, DET_MINUTE };
    lab_open(&lab, options);
    lab_apply(&lab, YAML);
    lab_run(&lab, 4 * DET_SECOND);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a/x", 1);
    node_of("lab/a/x")->wants_restart = false;
    lab_run(&lab, 5 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab/a/x").life, "down");
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a"), 0);
    lab_assert_state(&lab, "lab", "degraded");
    assert_int_equal(det_workers_order(lab.workers, "lab/a/x", DET_WORKER_ORDER_RESTART, NULL), 0);
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a", 1);
    lab_assert_state(&lab, "lab/a/x", "well");
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    forest_end(&lab);
}

SENTENCE(a_circuit_does_not_close_before_those_below_were_observed)
{
    struct lab lab;

    begin(&lab, seed);
    node_of("lab/a/x")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/a", 1);
    node_of("lab/a/x")->wants_restart = false;
    run_until(&lab, DET_WORKER_EVENT_RESTART_DONE, "lab/a/x", 1);
    node_of("lab/a/x")->collect_error = DET_ERR_IO;
    assert_int_equal(det_workers_order(lab.workers, "lab/a/x", DET_WORKER_ORDER_RESTART, NULL), 0);
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_PROBING, "lab/a", 1);
    lab_run(&lab, 9500 * DET_MILLISECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a"), 0);
    node_of("lab/a/x")->collect_error = 0;
    run_until(&lab, DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/a", 1);
    forest_end(&lab);
}

SENTENCE(subtree_health_includes_descendants_that_are_down)
{
    struct lab_options options = circuit_options(seed);
    struct lab lab;

    options.limits.restarts = (struct det_intensity){ 2, DET_MINUTE };
    lab_open(&lab, options);
    lab_apply(&lab, YAML);
    lab_run(&lab, 4 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab").reason, "2 of 2 are healthy");
    node_of("lab/a/y/z")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a/y/z", 1);
    lab_run(&lab, 5 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a/y/z").life, "down");
    lab_assert_state(&lab, "lab", "degraded");
    assert_int_equal(node_of("lab/a")->view.down, 1);
    assert_int_equal(node_of("lab/a")->view.healthy, 1);
    assert_int_equal(node_of("lab/a")->view.unhealthy, 1);
    assert_int_equal(node_of("lab/b")->view.down, 0);
    node_of("lab/a/y/z")->wants_restart = false;
    assert_int_equal(
        det_workers_order(lab.workers, "lab/a/y/z", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 5 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab").reason, "2 of 2 are healthy");
    assert_int_equal(node_of("lab/a")->view.healthy, 2);
    forest_end(&lab);
}

SENTENCE(worker_removed_while_down_is_no_longer_counted)
{
    struct lab_options options = circuit_options(seed);
    struct lab lab;

    options.limits.restarts = (struct det_intensity){ 2, DET_MINUTE };
    lab_open(&lab, options);
    lab_apply(&lab, YAML);
    lab_run(&lab, 4 * DET_SECOND);
    node_of("lab/a/y/z")->wants_restart = true;
    run_until(&lab, DET_WORKER_EVENT_RESTART_INTENSITY, "lab/a/y/z", 1);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab", "degraded");
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("x") ", " NODE("y")) ", " NODE("b") "]");
    lab_run(&lab, 2 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab").reason, "2 of 2 are healthy");
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_that_fail_too_often_open_the_circuit_of_their_parent_only),
        cmocka_unit_test(a_circuit_is_probed_and_heals),
        cmocka_unit_test(one_failure_while_it_is_probed_opens_it_again_for_longer),
        cmocka_unit_test(failing_children_of_the_root_do_not_pause_it),
        cmocka_unit_test(a_stop_passes_an_open_circuit),
        cmocka_unit_test(removed_worker_goes_although_its_circuit_is_open),
        cmocka_unit_test(manual_restart_closes_an_open_circuit),
        cmocka_unit_test(children_that_cannot_be_opened_open_the_circuit_too),
        cmocka_unit_test(failures_that_are_rare_do_not_open_a_circuit),
        cmocka_unit_test(a_circuit_inside_of_another_one_pauses_until_both_are_closed),
        cmocka_unit_test(a_circuit_does_not_close_over_a_child_that_is_down),
        cmocka_unit_test(a_circuit_does_not_close_before_those_below_were_observed),
        cmocka_unit_test(subtree_health_includes_descendants_that_are_down),
        cmocka_unit_test(worker_removed_while_down_is_no_longer_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
