/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_return_test.c - a child that is wanted again before it is gone stays, and a new config
 * acts without waiting for a tick. */
#include "worker/forest_test.h"

#define A    "children: [" NODE("a") "]"
#define NONE "children: []"

SENTENCE(child_wanted_again_while_stopping_is_kept)
{
    struct lab lab;

    behaviour_begin(&lab, forest_options(seed), A, 5 * DET_SECOND);
    node_of("lab/a")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, NONE);
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/a", "ending");
    lab_apply(&lab, A);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CHILD_KEPT, "lab/a"), 1);
    lab_run(&lab, 20 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ADDED, "lab/a"), 1);
    assert_int_equal(node_of("lab/a")->opened, 1);
    forest_end(&lab);
}

SENTENCE(child_wanted_again_while_closing_restarts_as_itself)
{
    struct lab lab;

    behaviour_begin(&lab, forest_options(seed), A, 5 * DET_SECOND);
    node_of("lab/a")->close_hangs = 2 * DET_SECOND;
    lab_apply(&lab, NONE);
    lab_run(&lab, DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").life, "closing");
    node_of("lab/a")->close_hangs = 0;
    lab_apply(&lab, A);
    lab_run(&lab, 20 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 0);
    /* It is the second time that it was begun, and no restart. */
    assert_int_equal(lab_status(&lab, "lab/a").counts.startups, 2);
    assert_int_equal(lab_status(&lab, "lab/a").counts.restarts, 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab"), 0);
    forest_end(&lab);
}

SENTENCE(disabled_child_is_still_disabled_when_wanted_again)
{
    struct lab lab;

    behaviour_begin(&lab, forest_options(seed), A, 5 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    node_of("lab/a")->close_hangs = 2 * DET_SECOND;
    lab_apply(&lab, NONE);
    lab_run(&lab, DET_SECOND);
    lab_apply(&lab, A);
    lab_run(&lab, 20 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "down");
    assert_true(lab_status(&lab, "lab/a").stop_wanted);
    forest_end(&lab);
}

SENTENCE(wanted_children_return_with_their_parent)
{
    struct lab lab;

    behaviour_begin(
        &lab, forest_options(seed),
        "children: [" NODE_OVER("a", NODE("x") ", " NODE_OVER("y", NODE("z"))) "]", 8 * DET_SECOND);
    node_of("lab/a/x")->end_takes = 2 * DET_SECOND;
    node_of("lab/a/y/z")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, NONE);
    lab_run(&lab, DET_SECOND);
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("w") ", " NODE_OVER("y", NODE("z"))) "]");
    lab_run(&lab, 30 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/y/z", "well");
    lab_assert_state(&lab, "lab/a/w", "well");
    assert_false(lab_has(&lab, "lab/a/x"));
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a/y/z"), 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a/x"), 1);
    forest_end(&lab);
}

SENTENCE(worker_of_another_kind_waits_for_the_old_one_to_go)
{
    struct lab lab;

    behaviour_begin(&lab, forest_options(seed), A, 5 * DET_SECOND);
    node_of("lab/a")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, NONE);
    lab_run(&lab, DET_SECOND);
    lab_apply(&lab, "children: [{name: a, kind: twin, config: {host: h, port: 1}}]");
    lab_run(&lab, 20 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").kind, "twin");
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/a"), 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CHILD_KEPT, "lab/a"), 0);
    forest_end(&lab);
}

SENTENCE(deleted_worker_can_be_created_again)
{
    struct det_child_spec spec = { .name = "h", .kind = "node", .config = "{host: h, port: 1}" };
    struct lab lab;

    behaviour_begin(&lab, forest_options(seed), NONE, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    node_of("lab/h")->end_takes = 2 * DET_SECOND;
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    lab_run(&lab, DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 20 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_REMOVED, "lab/h"), 1);
    assert_int_equal(lab_status(&lab, "lab/h").counts.startups, 1);
    forest_end(&lab);
}

/* Ticks are rare: what happens within a second after a change did not wait for one. */
static struct lab_options rare_ticks(uint64_t seed)
{
    struct lab_options options = forest_options(seed);

    options.limits.tick = 20 * DET_SECOND;
    options.limits.observe_every = 20 * DET_SECOND;
    options.limits.stale_after = 100 * DET_SECOND;
    options.limits.collector_timeout = 200 * DET_SECOND;
    return options;
}

static struct det_next walk_in_a_circle(const struct det_worker_view *view)
{
    if (view->state == PUPPET_ENDING)
        return (struct det_next){ DET_NEXT_GOTO, PUPPET_STOPPED, "has ended" };
    return (struct det_next){ DET_NEXT_GOTO,
                              view->state == PUPPET_WORKING ? PUPPET_ILL : PUPPET_WORKING,
                              "round and round" };
}

SENTENCE(a_new_config_acts_without_a_tick)
{
    struct lab lab;

    behaviour_begin(&lab, rare_ticks(seed), A, 45 * DET_SECOND);
    node_of("lab/a")->is_ill = true;
    node_of("lab/a")->is_up = false;
    lab_apply(&lab, "children: [{name: a, kind: node, config: {host: h, port: 2}}]");
    lab_run(&lab, DET_SECOND);
    /* It went to another state, and acted there. */
    lab_assert_state(&lab, "lab/a", "ill");
    assert_int_equal(node_of("lab/a")->acted_port, 2);
    forest_end(&lab);
}

SENTENCE(orders_take_effect_without_waiting_for_a_tick)
{
    struct lab lab;

    behaviour_begin(&lab, rare_ticks(seed), A, 45 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/a", "down");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    forest_end(&lab);
}

SENTENCE(cycle_of_states_is_limited_per_tick)
{
    struct lab_options options = rare_ticks(seed);
    struct lab lab;

    behaviour_begin(&lab, options, LAB_PUPPET, 45 * DET_SECOND);
    puppet.next = walk_in_a_circle;
    puppet.nexts = 0;
    assert_int_equal(det_workers_order(lab.workers, "lab/p", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, DET_SECOND);
    assert_in_range(puppet.nexts, 8, 10);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_wanted_again_while_stopping_is_kept),
        cmocka_unit_test(child_wanted_again_while_closing_restarts_as_itself),
        cmocka_unit_test(disabled_child_is_still_disabled_when_wanted_again),
        cmocka_unit_test(wanted_children_return_with_their_parent),
        cmocka_unit_test(worker_of_another_kind_waits_for_the_old_one_to_go),
        cmocka_unit_test(deleted_worker_can_be_created_again),
        cmocka_unit_test(a_new_config_acts_without_a_tick),
        cmocka_unit_test(orders_take_effect_without_waiting_for_a_tick),
        cmocka_unit_test(cycle_of_states_is_limited_per_tick),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
