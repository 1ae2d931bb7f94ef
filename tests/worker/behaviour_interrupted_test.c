/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_interrupted_test.c - failures in the middle of another step: requests that change while
 * a worker closes, functions that hang, too few threads, locks that were held. */
#define SEEDS 4
#include "worker/forest_test.h"

#include "worker/faulty_test.h"
#include "worker/worker_tree.h"

/* A node whose action that hangs is stopped by way of its ending, as it may still come to be. */
static const struct det_worker_state late_states[] = {
    { "down", DET_PHASE_STOPPED, 0, node_next },
    { "starting", DET_PHASE_STARTING, NODE_ENDING, node_next },
    { "well", DET_PHASE_RUNNING, NODE_ENDING, node_next },
    { "ill", DET_PHASE_DEGRADED, NODE_ENDING, node_next },
    { "ending", DET_PHASE_STOPPING, 0, node_next },
};
static const struct det_worker_kind late_kind = NODE_KIND(late);
static const struct det_worker_kind *const kinds[] = { &node_kind, &late_kind, &puppet_kind, NULL };

static struct lab_options options_of(uint64_t seed)
{
    struct lab_options options = forest_options(seed);

    options.kinds = kinds;
    return options;
}

static void run_until_life(struct lab *lab, const char *id, const char *life)
{
    for (int i = 0; i < 1000 && strcmp(lab_status(lab, id).life, life) != 0; i++)
        lab_run(lab, 10 * DET_MILLISECOND);
    assert_string_equal(lab_status(lab, id).life, life);
}

/* Many workers in one spec. */
static void apply_many(struct lab *lab, const char *first, const char *kind, unsigned count)
{
    struct det_buffer yaml;

    det_buffer_init(&yaml, NULL);
    det_buffer_format(&yaml, "children: [%s", first);
    for (unsigned i = 0; i < count; i++)
        det_buffer_format(&yaml, ", {name: s%u, kind: %s, config: {host: h, port: 1}}", i, kind);
    det_buffer_append_text(&yaml, "]");
    lab_apply(lab, det_buffer_text(&yaml));
    det_buffer_deinit(&yaml);
}

SENTENCE(subtree_removed_while_its_root_closes_is_removed)
{
    struct lab lab;

    lab_open(&lab, options_of(seed));
    node_of("lab/w")->close_hangs = 50 * DET_MILLISECOND;
    lab_apply(&lab, "children: [" NODE_OVER("w", NODE_OVER("c", NODE("g"))) "]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/w/c/g", "well");
    assert_int_equal(det_workers_order(lab.workers, "lab/w", DET_WORKER_ORDER_RESTART, NULL), 0);
    run_until_life(&lab, "lab/w", "closing");
    lab_apply(&lab, "children: []");
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/w"));
    assert_false(lab_has(&lab, "lab/w/c"));
    assert_false(lab_has(&lab, "lab/w/c/g"));
    assert_int_equal(node_of("lab/w")->opened, 1);
    forest_end(&lab);
}

SENTENCE(worker_deleted_while_closing_takes_its_manual_children)
{
    struct det_child_spec above = { .name = "w", .kind = "node" };
    struct det_child_spec below = { .name = "c", .kind = "node" };
    struct lab lab;

    lab_open(&lab, options_of(seed));
    node_of("lab/w")->close_hangs = 50 * DET_MILLISECOND;
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &above, NULL), 0);
    assert_int_equal(det_workers_upsert(lab.workers, "lab/w", &below, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/w/c", "well");
    assert_int_equal(det_workers_order(lab.workers, "lab/w", DET_WORKER_ORDER_RESTART, NULL), 0);
    run_until_life(&lab, "lab/w", "closing");
    assert_int_equal(det_workers_delete(lab.workers, "lab/w", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/w"));
    assert_false(lab_has(&lab, "lab/w/c"));
    forest_end(&lab);
}

SENTENCE(hung_opens_are_reported_and_abandoned)
{
    struct lab lab;
    char id[32];

    lab_open(&lab, options_of(seed));
    for (unsigned i = 0; i < 10; i++) {
        snprintf(id, sizeof id, "lab/s%u", i);
        node_of(id)->open_hangs = DET_HOUR;
    }
    apply_many(&lab, "{name: p, kind: puppet}", "node", 10);
    lab_run(&lab, DET_SECOND);
    lab_apply(
        &lab, "children: [{name: p, kind: puppet}, " NODE("s0") ", " NODE("s1") ", " NODE("a") "]");
    lab_run(&lab, 92 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(reported_nth(&lab, DET_WORKER_EVENT_ACTION_STUCK, "lab/s0", 1)->number, 60000);
    assert_string_equal(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_STUCK, "lab/s0", 1)->action, "open");
    ASSERT_SPAN(
        reported_nth(&lab, DET_WORKER_EVENT_ACTION_QUARANTINED, "lab/s0", 1)->at -
            reported_nth(&lab, DET_WORKER_EVENT_ACTION_STUCK, "lab/s0", 1)->at,
        30 * DET_SECOND);
    forest_end(&lab);
}

static struct det_next act_once(const struct det_worker_view *view)
{
    if (view->state == PUPPET_WORKING && !view->last_action->action)
        return (struct det_next){ DET_NEXT_DO, PUPPET_ONE, "once" };
    return puppet_walk(view);
}

static int panic_with_lock(struct det_worker_context *context, int action)
{
    (void)action;
    det_worker_lock(context);
    det_worker_panic(context, "while locked");
    return 0;
}

static int collect_with_lock(struct det_worker_context *context, struct link_observed *observed)
{
    (void)observed;
    det_worker_lock(context);
    det_worker_unlock(context);
    return 0;
}

SENTENCE(panic_with_the_lock_held_releases_it)
{
    struct lab_options options = options_of(seed);
    struct lab lab;

    puppet.next = act_once;
    puppet.act = panic_with_lock;
    puppet.collect = collect_with_lock;
    behaviour_begin(&lab, options, LAB_PUPPET, 30 * DET_SECOND);
    assert_int_equal(reported_times(DET_WORKER_EVENT_ACTION_PANIC, "lab/p"), 1);
    lab_assert_no_log(&lab, "collector_stuck");
    assert_int_equal(lab_status(&lab, "lab/p").freshness, DET_FRESHNESS_FRESH);
    forest_end(&lab);
}

static void too_few_collector_threads_take_no_worker_down(void **state)
{
    struct lab_options options = options_of(1);
    struct lab lab;

    (void)state;
    options.limits.collector_threads = 4;
    lab_open(&lab, options);
    lab.plant.collect_takes = 2 * DET_SECOND;
    apply_many(&lab, "{name: a, kind: link, config: {host: h, port: 1}}", "link", 79);
    lab_run(&lab, 3 * DET_MINUTE);
    lab_assert_log(&lab, "collectors_busy");
    lab_assert_no_log(&lab, "collector_restarting");
    lab_assert_no_log(&lab, "collector_unresponsive");
    lab.plant.collect_takes = 0;
    lab_run(&lab, DET_MINUTE);
    assert_int_equal(lab_status(&lab, "lab/s78").freshness, DET_FRESHNESS_FRESH);
    lab_close(&lab);
}

SENTENCE(hung_collects_cost_few_threads_each)
{
    struct det_workers_summary summary;
    struct lab lab;
    char id[32];

    lab_open(&lab, options_of(seed));
    for (unsigned i = 0; i < 8; i++) {
        snprintf(id, sizeof id, "lab/s%u", i);
        node_of(id)->collect_hangs = DET_HOUR;
    }
    apply_many(&lab, NODE("good"), "node", 8);
    lab_run(&lab, 5 * DET_MINUTE);
    lab_assert_state(&lab, "lab/good", "well");
    assert_int_equal(lab_status(&lab, "lab/good").freshness, DET_FRESHNESS_FRESH);
    assert_int_equal(reported_times(DET_WORKER_EVENT_STALE, "lab/good"), 0);
    det_workers_summary(lab.workers, &summary);
    assert_in_range(summary.hung, 8, 8 * (DET_LOST_MAX + 3));
    forest_end(&lab);
}

SENTENCE(a_circuit_does_not_heal_while_its_child_cannot_be_opened)
{
    struct lab lab;

    if (seed > 2) /* They are long. */
        return;
    lab_open(&lab, options_of(seed));
    node_of("lab/g/a")->open_error = DET_ERR_IO;
    lab_apply(
        &lab, "children: [{name: g, kind: application, children: [{name: a, kind: node, config: "
              "{host: h, port: 1}}]}]");
    lab_run(&lab, 30 * DET_MINUTE);
    assert_true(reported_times(DET_WORKER_EVENT_CIRCUIT_OPENED, "lab/g") > 0);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/g"), 0);
    assert_true(reported_times(DET_WORKER_EVENT_CIRCUIT_ESCALATED, "lab/g") > 0);
    node_of("lab/g/a")->open_error = 0;
    lab_run(&lab, 5 * DET_MINUTE);
    lab_assert_state(&lab, "lab/g/a", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_CIRCUIT_CLOSED, "lab/g"), 1);
    forest_end(&lab);
}

SENTENCE(config_change_during_shutdown_restarts_the_worker)
{
    struct lab lab;

    behaviour_begin(&lab, options_of(seed), "children: [" NODE("a") "]", 3 * DET_SECOND);
    node_of("lab/a")->collect_error = DET_ERR_IO;
    node_of("lab/a")->is_stuck = true;
    for (int i = 0; i < 1000 && !lab_count(&lab, "collector_unresponsive"); i++)
        lab_run(&lab, 100 * DET_MILLISECOND);
    lab_run(&lab, DET_SECOND);
    lab_assert_log(&lab, "collector_unresponsive");
    node_of("lab/a")->collect_error = 0;
    node_of("lab/a")->is_stuck = false;
    lab_apply(&lab, "children: [{name: a, kind: node, config: {host: h, port: 2}}]");
    lab_run(&lab, DET_MINUTE);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(node_of("lab/a")->port, 2);
    forest_end(&lab);
}

#define WITH_VARIABLE(value) \
    "variables: {P: " value  \
    "}\nchildren: [{name: a, kind: node, config: {host: h, port: '{{ .P }}'}}]"

SENTENCE(reordered_config_keys_do_not_restart_a_down_worker)
{
    struct det_child_spec spec = { .name = "h", .kind = "link", .config = "{host: h, port: 1}" };
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.limits.restarts = (struct det_intensity){ 2, DET_MINUTE };
    behaviour_begin(&lab, options, LAB_LINK, 4 * DET_SECOND);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 4 * DET_SECOND);
    lab.plant.wants_restart = true;
    lab_run(&lab, 5 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    assert_string_equal(lab_status(&lab, "lab/h").life, "down");
    lab_apply(&lab, "children: [{kind: link, config: {port: 1, host: h}, name: a}]");
    spec.config = "port: 1\nhost: h\n";
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab.plant.wants_restart = false;
    lab_run(&lab, 10 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    assert_string_equal(lab_status(&lab, "lab/h").life, "down");
    lab_close(&lab);
}

SENTENCE(changed_variable_restarts_a_worker_that_is_down)
{
    struct lab lab;

    behaviour_begin(&lab, options_of(seed), WITH_VARIABLE("1"), 3 * DET_SECOND);
    node_of("lab/a")->collect_error = DET_ERR_IO;
    lab_run(&lab, 100 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    node_of("lab/a")->collect_error = 0;
    lab_apply(&lab, WITH_VARIABLE("1"));
    lab_run(&lab, 10 * DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    lab_apply(&lab, WITH_VARIABLE("2"));
    lab_run(&lab, DET_MINUTE);
    lab_assert_state(&lab, "lab/a", "well");
    assert_int_equal(node_of("lab/a")->port, 2);
    lab_assert_state(&lab, "lab", "running");
    forest_end(&lab);
}

SENTENCE(action_finished_during_the_stop_is_undone)
{
    struct lab lab;

    lab_open(&lab, options_of(seed));
    node_of("lab/a")->act_hangs = 300 * DET_MILLISECOND;
    lab_apply(&lab, "children: [{name: a, kind: late, config: {host: h, port: 1}}]");
    for (int i = 0; i < 1000 && !node_of("lab/a")->acts; i++)
        lab_run(&lab, 10 * DET_MILLISECOND);
    assert_int_equal(node_of("lab/a")->acts, 1);
    assert_false(node_of("lab/a")->is_up);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    assert_int_equal(node_of("lab/a")->ends, 1);
    assert_false(node_of("lab/a")->is_up);
    forest_end(&lab);
}

SENTENCE(open_from_before_a_restart_is_ignored_after_it)
{
    struct lab lab;

    lab_open(&lab, options_of(seed));
    node_of("lab/p/c")->open_hangs = 2 * DET_SECOND;
    lab_apply(&lab, "children: [" NODE_OVER("p", NODE("c")) "]");
    lab_run(&lab, DET_SECOND);
    assert_string_equal(lab_status(&lab, "lab/p/c").life, "opening");
    node_of("lab/p/c")->open_error = DET_ERR_IO;
    assert_int_equal(det_workers_order(lab.workers, "lab/p", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 1500 * DET_MILLISECOND);
    node_of("lab/p/c")->open_error = 0;
    lab_run(&lab, DET_MINUTE);
    lab_assert_state(&lab, "lab/p/c", "well");
    assert_int_equal(reported_times(DET_WORKER_EVENT_ADDED, "lab/p/c"), 1);
    assert_int_equal(node_of("lab/p/c")->opened, 1);
    forest_end(&lab);
}

SENTENCE(child_that_is_down_is_unhealthy_for_its_parent)
{
    struct lab lab;

    behaviour_begin(&lab, options_of(seed), "children: [" NODE("a") "]", 3 * DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    node_of("lab/a")->wants_restart = true;
    lab_run(&lab, 5 * DET_MINUTE);
    assert_string_equal(lab_status(&lab, "lab/a").life, "down");
    lab_assert_state(&lab, "lab", "degraded");
    assert_string_equal(lab_status(&lab, "lab").degraded_by, "");
    forest_end(&lab);
}

static void an_observation_is_copied_only_into_its_own_record(void **state)
{
    struct det_worker_status status;
    struct link_observed observed = { 0 };
    struct det_error error;
    struct lab lab;
    const struct det_record *link = link_observed_record();

    (void)state;
    behaviour_begin(&lab, options_of(1), "children: [" NODE("a") "]", 3 * DET_SECOND);
    assert_int_equal(det_workers_get(lab.workers, "lab/a", link, &status, &observed, NULL), 0);
    assert_true(observed.is_up);
    assert_int_equal(
        det_workers_get(lab.workers, "lab/a", NULL, &status, &observed, NULL), DET_ERR_INVALID);
    assert_int_equal(
        det_workers_get(lab.workers, "lab", link, &status, &observed, &error), DET_ERR_INVALID);
    assert_string_equal(
        error.text, "lab is a worker of the kind application, whose observed record is empty, not "
                    "link_observed");
    assert_int_equal(
        det_workers_get(lab.workers, "lab/b", link, &status, NULL, &error), DET_ERR_NOT_FOUND);
    assert_string_equal(error.text, "there is no worker lab/b");
    assert_int_equal(
        det_workers_get(lab.workers, "lab", det_empty_record(), &status, &observed, NULL), 0);
    assert_int_equal(det_workers_get(lab.workers, "lab", link, &status, NULL, NULL), 0);
    forest_end(&lab);
}

static void upserted_worker_exists_when_the_call_returns(void **state)
{
    struct det_child_spec spec = { .name = "a", .kind = "node" };
    struct det_worker_status status;
    struct lab lab;

    (void)state;
    lab_open(&lab, options_of(1));
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    assert_int_equal(det_workers_get(lab.workers, "lab/a", NULL, &status, NULL, NULL), 0);
    assert_int_equal(det_workers_delete(lab.workers, "lab/a", NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    forest_end(&lab);
}

static void kind_observed_once_a_minute_is_never_stale(void **state)
{
    struct det_worker_kind rare = node_kind;
    const struct det_worker_kind *rare_kinds[] = { &rare, NULL };
    struct lab_options options = options_of(1);
    struct lab lab;

    (void)state;
    rare.name = "rare";
    rare.observe_every = DET_MINUTE;
    options.kinds = rare_kinds;
    lab_open(&lab, options);
    lab_apply(&lab, "children: [{name: a, kind: rare, config: {host: h, port: 1}}]");
    lab_run(&lab, 10 * DET_MINUTE);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_no_log(&lab, "data_stale");
    assert_in_range(node_of("lab/a")->collects, 10, 13);
    forest_end(&lab);
}

SENTENCE(passing_the_observation_gate_is_reported)
{
    struct lab lab;

    behaviour_begin(&lab, options_of(seed), "children: [" NODE("a") "]", 3 * DET_SECOND);
    assert_int_equal(node_of("lab/a")->acts, 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_GATE_PENDING, "lab/a"), 1);
    assert_int_equal(reported_times(DET_WORKER_EVENT_GATE_CLEARED, "lab/a"), 1);
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_GATE_CLEARED, "lab/a", 1)->at >=
        reported_nth(&lab, DET_WORKER_EVENT_GATE_PENDING, "lab/a", 1)->at);
    forest_end(&lab);
}

static void state_since_is_independent_of_the_wall_clock(void **state)
{
    struct lab lab;
    det_time since;

    (void)state;
    behaviour_begin(&lab, options_of(1), "children: [" NODE("a") "]", 3 * DET_SECOND);
    since = lab_status(&lab, "lab/a").since;
    lab_run(&lab, 1234567890);
    assert_int_equal(lab_status(&lab, "lab/a").since, since);
    det_sim_jump_wall(lab.sim, DET_HOUR);
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/a").since, since);
    forest_end(&lab);
}

SENTENCE(an_observation_that_cannot_be_saved_is_told_and_tried_again_after_a_second)
{
    struct lab_options options = options_of(seed);
    struct lab lab;

    options.store = "memory:";
    behaviour_begin(&lab, options, "children: [" NODE("a") "]", 3 * DET_SECOND);
    make_faulty(&lab);
    fault = DET_ERR_IO;
    node_of("lab/a")->noise = 4711;
    lab_run(&lab, 10 * DET_SECOND);
    /* Those of a, and those of its parent if that has something to say. */
    assert_in_range(faults, 5, 22);
    lab_assert_log(&lab, "store_failed lab/a #1: the disk is on fire");
    fault = 0;
    lab_run(&lab, 2 * DET_SECOND);
    saves = 0;
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(saves, 0);
    forest_end(&lab);
}

SENTENCE(disable_order_that_cannot_be_recorded_is_refused)
{
    struct lab_options options = options_of(seed);
    struct lab lab;

    options.store = "memory:";
    behaviour_begin(&lab, options, "children: [" NODE("a") "]", 3 * DET_SECOND);
    make_faulty(&lab);
    fault = DET_ERR_IO;
    assert_int_equal(
        det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), DET_ERR_IO);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_false(lab_status(&lab, "lab/a").is_disabled);
    fault = 0;
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "down");
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subtree_removed_while_its_root_closes_is_removed),
        cmocka_unit_test(worker_deleted_while_closing_takes_its_manual_children),
        cmocka_unit_test(hung_opens_are_reported_and_abandoned),
        cmocka_unit_test(panic_with_the_lock_held_releases_it),
        cmocka_unit_test(too_few_collector_threads_take_no_worker_down),
        cmocka_unit_test(hung_collects_cost_few_threads_each),
        cmocka_unit_test(a_circuit_does_not_heal_while_its_child_cannot_be_opened),
        cmocka_unit_test(config_change_during_shutdown_restarts_the_worker),
        cmocka_unit_test(reordered_config_keys_do_not_restart_a_down_worker),
        cmocka_unit_test(changed_variable_restarts_a_worker_that_is_down),
        cmocka_unit_test(action_finished_during_the_stop_is_undone),
        cmocka_unit_test(open_from_before_a_restart_is_ignored_after_it),
        cmocka_unit_test(child_that_is_down_is_unhealthy_for_its_parent),
        cmocka_unit_test(an_observation_is_copied_only_into_its_own_record),
        cmocka_unit_test(upserted_worker_exists_when_the_call_returns),
        cmocka_unit_test(kind_observed_once_a_minute_is_never_stale),
        cmocka_unit_test(passing_the_observation_gate_is_reported),
        cmocka_unit_test(state_since_is_independent_of_the_wall_clock),
        cmocka_unit_test(
            an_observation_that_cannot_be_saved_is_told_and_tried_again_after_a_second),
        cmocka_unit_test(disable_order_that_cannot_be_recorded_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
