/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_tree_test.c - parents and children: specs that are wrong, the order of ticks, states of
 * parents in which children run, what a parent sees. */
#include "worker/forest_test.h"

SENTENCE(invalid_child_spec_is_refused_and_siblings_continue)
{
    static const struct det_child_spec specs[] = {
        { .name = "first", .kind = "node" },
        { .name = "", .kind = "node" },
        { .name = "no/name", .kind = "node" },
        { .name = NULL, .kind = "node" },
        { .name = "kindless", .kind = "" },
        { .name = "none", .kind = NULL },
        { .name = "unknown", .kind = "nobody" },
        { .name = "first", .kind = "twin" },
        { .name = "badly", .kind = "node", .variables = "[no, map]" },
        { .name = "nowhere", .kind = "node", .location = "{planet: mars}" },
        { .name = "last", .kind = "twin" },
    };
    struct lab lab;
    struct node *a;

    lab_open(&lab, forest_options(seed));
    a = node_of("lab/a");
    a->children = specs;
    a->child_count = sizeof specs / sizeof specs[0];
    lab_apply(&lab, "children: [" NODE("a") ", " NODE("b") "]");
    lab_run(&lab, 6 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/b", "well");
    lab_assert_state(&lab, "lab/a/first", "well");
    lab_assert_state(&lab, "lab/a/last", "not_stopped_degraded");
    assert_int_equal(lab_status(&lab, "lab/a").child_count, 2);
    assert_true(reported_times(DET_WORKER_EVENT_CHILD_REFUSED, "lab/a") >= 9);
    lab_assert_log(&lab, "nobody");
    lab_assert_log(&lab, "planet");
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

SENTENCE(refused_child_is_reported_once_and_rechecked_on_change)
{
    static const struct det_child_spec wrong[] = { { .name = "x", .kind = "nobody" },
                                                   { .name = "", .kind = "node" },
                                                   { .name = "y", .kind = "node" } };
    static const struct det_child_spec right[] = { { .name = "x", .kind = "twin" },
                                                   { .name = "y", .kind = "node" } };
    struct lab lab;
    struct node *a;
    uint32_t refused;

    lab_open(&lab, forest_options(seed));
    a = node_of("lab/a");
    a->children = wrong;
    a->child_count = 3;
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 5 * DET_SECOND);
    refused = reported_times(DET_WORKER_EVENT_CHILD_REFUSED, "lab/a");
    for (uint64_t i = 0; i < 10; i++) {
        a->noise++; /* so that children() is asked again */
        lab_run(&lab, DET_SECOND);
    }
    assert_true(a->asked > 8);
    assert_int_equal(reported_times(DET_WORKER_EVENT_CHILD_REFUSED, "lab/a"), refused);
    assert_false(lab_has(&lab, "lab/a/x"));
    assert_int_equal(node_of("lab/a/y")->derives, 1);
    a->children = right;
    a->child_count = 2;
    a->noise++;
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/x", "not_stopped_degraded");
    assert_int_equal(node_of("lab/a/y")->derives, 1);
    assert_int_equal(node_of("lab/a/y")->opened, 1);
    forest_end(&lab);
}

SENTENCE(failed_children_call_keeps_the_previous_children)
{
    static const struct det_child_spec specs[] = { { .name = "x", .kind = "node" } };
    struct lab lab;
    struct node *a;

    lab_open(&lab, forest_options(seed));
    a = node_of("lab/a");
    a->children = specs;
    a->child_count = 1;
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 5 * DET_SECOND);
    a->child_count = 0;
    a->children_error = DET_ERR_IO;
    a->noise++;
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/x", "well");
    assert_int_equal(node_of("lab/a/x")->opened, 1);
    a->children_error = 0;
    a->noise++;
    lab_run(&lab, 5 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a/x"));
    forest_end(&lab);
}

/* Each tick by hand; opening and observing take no time of their own. */
static void three_levels_begin_with_one_tick(void **state)
{
    struct lab_options options = forest_options(3);
    struct lab lab;

    (void)state;
    options.is_paused = true;
    lab_open(&lab, options);
    det_workers_tick(lab.workers);
    lab_run(&lab, 10 * DET_MILLISECOND);
    det_workers_tick(lab.workers);
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c"))) ", " NODE("d") "]");
    for (int i = 0; i < 8 && !reported_times(DET_WORKER_EVENT_TRANSITION, "lab/a/b/c"); i++) {
        lab_run(&lab, 10 * DET_MILLISECOND);
        det_workers_tick(lab.workers);
    }
    lab_assert_log(&lab, "state_transition lab/a down starting");
    lab_assert_log(&lab, "state_transition lab/a/b down starting");
    lab_assert_log(&lab, "state_transition lab/a/b/c down starting");
    lab_assert_log(&lab, "state_transition lab/d down starting");
    forest_end(&lab);
}

SENTENCE(next_is_called_once_per_worker_in_a_tick)
{
    struct lab_options options = forest_options(seed);
    struct lab lab;
    uint32_t before[4];
    static const char *const ids[] = { "lab/a", "lab/a/b", "lab/a/b/c", "lab/d" };

    options.is_paused = true;
    lab_open(&lab, options);
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c"))) ", " NODE("d") "]");
    for (int i = 0; i < 60; i++) {
        det_workers_tick(lab.workers);
        lab_run(&lab, 100 * DET_MILLISECOND);
    }
    lab_assert_state(&lab, "lab/a/b/c", "well");
    for (int i = 0; i < 4; i++)
        before[i] = node_of(ids[i])->nexts;
    for (uint32_t tick = 1; tick <= 5; tick++) {
        det_workers_tick(lab.workers);
        for (int i = 0; i < 4; i++)
            assert_int_equal(node_of(ids[i])->nexts, before[i] + tick);
    }
    forest_end(&lab);
}

SENTENCE(a_child_runs_in_the_states_of_its_parent_that_its_spec_names)
{
    struct lab lab;
    struct node *a;

    lab_open(&lab, forest_options(seed));
    a = node_of("lab/a");
    a->act_error = DET_ERR_IO;
    a->rests_ill = true;
    lab_apply(
        &lab, "children: [{name: a, kind: node, children: [{name: always, kind: node},"
              " {name: empty, kind: node, run_in: []}, {name: well, kind: node, run_in: [well]},"
              " {name: ill, kind: twin, run_in: [starting, ill]}]}]");
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "starting");
    lab_assert_state(&lab, "lab/a/always", "well");
    lab_assert_state(&lab, "lab/a/empty", "well");
    lab_assert_state(&lab, "lab/a/well", "down");
    lab_assert_state(&lab, "lab/a/ill", "not_stopped_degraded");
    assert_true(lab_status(&lab, "lab/a/well").stop_wanted);
    assert_false(lab_status(&lab, "lab/a/well").shutdown_wanted);
    a->act_error = 0;
    lab_run(&lab, 70 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/well", "well");
    lab_assert_state(&lab, "lab/a/ill", "running_connected");
    a->is_ill = true;
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/always", "well");
    lab_assert_state(&lab, "lab/a/well", "down");
    lab_assert_state(&lab, "lab/a/ill", "not_stopped_degraded");
    /* It only rested. */
    assert_int_equal(node_of("lab/a/well")->opened, 1);
    assert_int_equal(node_of("lab/a/ill")->opened, 1);
    forest_end(&lab);
}

SENTENCE(parent_sees_children_by_phase_not_by_state_name)
{
    struct lab lab;
    struct det_children_view *view;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/ill")->is_ill = true;
    node_of("lab/a/starting")->act_error = DET_ERR_IO;
    lab_apply(
        &lab, "children: [{name: a, kind: node, children: [{name: well, kind: twin},"
              " {name: ill, kind: twin}, {name: starting, kind: twin},"
              " {name: off, kind: twin, disabled: true}, {name: other, kind: node}]}]");
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/well", "not_stopped_degraded");
    lab_assert_state(&lab, "lab/a/ill", "running_healthy");
    lab_assert_state(&lab, "lab/a/starting", "stopped_running");
    lab_assert_state(&lab, "lab/a/off", "running_connected");
    view = &node_of("lab/a")->view;
    assert_int_equal(view->count, 5);
    assert_int_equal(view->healthy, 2);
    assert_int_equal(view->operational, 3);
    assert_int_equal(view->stopped, 1);
    assert_int_equal(view->unhealthy, 2);
    assert_false(det_children_all_healthy(view));
    assert_false(det_children_all_stopped(view));
    assert_string_equal(view->list[0]->name, "well");
    assert_string_equal(view->list[4]->name, "other");
    assert_string_equal(view->list[1]->reason, "ill");
    assert_string_equal(view->list[1]->path, "lab(application)/a(node)/ill(twin)");
    assert_true(view->list[3]->is_disabled);
    view = &node_of("lab/a/well")->view;
    assert_true(
        det_children_all_healthy(view) && det_children_all_stopped(view) &&
        det_children_all_operational(view));
    forest_end(&lab);
}

SENTENCE(another_kind_with_the_same_name_is_another_worker)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, "children: [" NODE("a") ", " NODE("b") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_apply(&lab, "children: [{name: a, kind: twin, children: [" NODE("c") "]}, " NODE("b") "]");
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_log(&lab, "state_transition lab/a well ending");
    lab_assert_log(&lab, "state_transition lab/a ending down");
    assert_string_equal(lab_status(&lab, "lab/a").kind, "twin");
    assert_string_equal(lab_status(&lab, "lab/a").path, "lab(application)/a(twin)");
    lab_assert_state(&lab, "lab/a", "not_stopped_degraded");
    lab_assert_state(&lab, "lab/a/c", "well");
    assert_int_equal(node_of("lab/a")->opened, 2);
    assert_int_equal(node_of("lab/b")->opened, 1);
    /* Back before it is gone. */
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 50 * DET_MILLISECOND);
    lab_apply(&lab, "children: [{name: a, kind: twin}]");
    lab_run(&lab, 50 * DET_MILLISECOND);
    lab_apply(&lab, "children: [" NODE("a") "]");
    lab_run(&lab, 8 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    assert_false(lab_has(&lab, "lab/b"));
    assert_false(lab_has(&lab, "lab/a/c"));
    forest_end(&lab);
}

SENTENCE(child_wanted_again_while_stopping_restarts)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("c")) ", " NODE("b") "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_apply(&lab, "children: [" NODE("b") "]");
    lab_run(&lab, DET_SECOND);
    assert_true(lab_has(&lab, "lab/a"));
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE("c")) ", " NODE("b") "]");
    lab_run(&lab, 12 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/c", "well");
    assert_false(lab_status(&lab, "lab/a").shutdown_wanted);
    assert_int_equal(node_of("lab/b")->opened, 1);
    forest_end(&lab);
}

SENTENCE(a_parent_is_not_gone_before_its_children_are)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a/b/c")->end_takes = DET_SECOND;
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c"))) "]");
    lab_run(&lab, 4 * DET_SECOND);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/a"));
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/a/b/c", 1)->at <=
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/a/b", 1)->at);
    assert_true(
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/a/b", 1)->at <=
        reported_nth(&lab, DET_WORKER_EVENT_REMOVED, "lab/a", 1)->at);
    assert_true(node_of("lab/a/b/c")->ended_at <= node_of("lab/a/b")->ended_at);
    assert_true(node_of("lab/a/b")->ended_at <= node_of("lab/a")->ended_at);
    lab_assert_no_log(&lab, "graceful_shutdown_timeout");
    forest_end(&lab);
}

SENTENCE(restarting_parent_restarts_its_children)
{
    struct lab lab;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c"))) ", " NODE("d") "]");
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 12 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "well");
    lab_assert_state(&lab, "lab/a/b", "well");
    lab_assert_state(&lab, "lab/a/b/c", "well");
    assert_int_equal(node_of("lab/a")->opened, 2);
    assert_int_equal(node_of("lab/a/b")->opened, 2);
    assert_int_equal(node_of("lab/a/b/c")->opened, 2);
    assert_int_equal(node_of("lab/d")->opened, 1);
    assert_false(lab_status(&lab, "lab/a/b/c").shutdown_wanted);
    forest_end(&lab);
}

SENTENCE(things_are_inherited_from_the_nearest_one_above_and_from_the_options_at_last)
{
    struct lab lab;
    int own, far;

    lab_open(&lab, forest_options(seed));
    node_of("lab/a")->offers = &far;
    node_of("lab/a/b")->offers = &own;
    lab_apply(
        &lab, "children: [" NODE_OVER("a", NODE_OVER("b", NODE("c")) ", " NODE("d")) ", " NODE(
                  "e") ", {name: l, kind: link}]");
    lab_run(&lab, 4 * DET_SECOND);
    assert_null(node_of("lab/a")->inherited);
    assert_ptr_equal(node_of("lab/a/b")->inherited, &far);
    assert_ptr_equal(node_of("lab/a/b/c")->inherited, &own);
    assert_ptr_equal(node_of("lab/a/d")->inherited, &far);
    assert_null(node_of("lab/e")->inherited);
    lab_assert_state(&lab, "lab/l", "up"); /* its plant is of the options */
    /* What is there anew is inherited anew. */
    node_of("lab/a/b")->offers = NULL;
    assert_int_equal(det_workers_order(lab.workers, "lab/a/b", DET_WORKER_ORDER_RESTART, NULL), 0);
    lab_run(&lab, 8 * DET_SECOND);
    assert_ptr_equal(node_of("lab/a/b/c")->inherited, &far);
    assert_int_equal(node_of("lab/a/b/c")->opened, 2);
    forest_end(&lab);
}

SENTENCE(a_parent_sees_the_reason_of_a_child_as_it_is_now)
{
    struct lab lab;
    const struct det_children_view *view;

    lab_open(&lab, forest_options(seed));
    lab_apply(&lab, "children: [{name: a, kind: node, children: [{name: l, kind: link}]}]");
    lab_run(&lab, 4 * DET_SECOND);
    view = &node_of("lab/a")->view;
    for (uint64_t i = 1; i < 5; i++) {
        char reason[64];

        lab.plant.noise = i;
        lab_run(&lab, 1400 * DET_MILLISECOND);
        snprintf(reason, sizeof reason, "noise %u,", (unsigned)i);
        assert_non_null(strstr(view->list[0]->reason, reason));
    }
    assert_int_equal(reported_times(DET_WORKER_EVENT_TRANSITION, "lab/a/l"), 2);
    forest_end(&lab);
}

static int always_one_more(const struct det_worker_view *view, struct det_children *children)
{
    struct det_child_spec spec = { .name = "c", .kind = "puppet" };

    (void)view;
    return children->add(children, &spec);
}

SENTENCE(a_kind_that_always_wants_one_more_below_ends_at_the_limit)
{
    struct lab lab;
    struct det_workers_summary summary;

    lab_open(&lab, forest_options(seed));
    puppet.children = always_one_more;
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 10 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.workers, DET_WORKER_DEPTH_MAX);
    assert_int_equal(lab_count(&lab, "child_spec_validation_failed"), 1);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

static void too_deep_or_long_paths_are_refused_with_a_reason(void **state)
{
    static const char name[] = "a-name-that-is-as-long-as-a-name-may-be-and-not-a-byte-longer-64";
    struct det_child_spec spec = { .name = name, .kind = "puppet" };
    char parent[DET_WORKER_PATH_MAX + 128] = "lab";
    struct det_error error = { 0 };
    struct lab lab;
    int r = 0, depth = 1;

    (void)state;
    assert_int_equal(strlen(name), DET_WORKER_NAME_MAX);
    lab_open(&lab, forest_options(1));
    lab_run(&lab, DET_SECOND);
    for (; depth < 20 && r == 0; depth++) {
        r = det_workers_upsert(lab.workers, parent, &spec, &error);
        if (r == 0) {
            lab_run(&lab, DET_SECOND);
            snprintf(parent + strlen(parent), 66, "/%s", name);
            assert_true(lab_has(&lab, parent));
        }
    }
    assert_int_equal(r, DET_ERR_LIMIT);
    assert_true(error.text[0]);
    lab_assert_no_log(&lab, "child_spec_validation_failed");
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

static int many_children(const struct det_worker_view *view, struct det_children *children)
{
    const struct link_observed *observed = view->observed;
    int r = 0;

    if (strcmp(view->identity->id, "lab/p") != 0)
        return 0;
    for (uint32_t i = 0; i < 300 && r == 0; i++) {
        char name[16];
        struct det_child_spec spec = { .name = name, .kind = "puppet" };

        snprintf(name, sizeof name, "c%u", i + (uint32_t)observed->noise);
        r = children->add(children, &spec);
    }
    return r;
}

static uint64_t many_noise;
static int see_noise(struct det_worker_context *context, struct link_observed *observed)
{
    (void)context;
    observed->noise = many_noise;
    return 0;
}

static void hundreds_of_children_come_and_go(void **state)
{
    struct lab_options options = forest_options(1);
    struct lab lab;

    (void)state;
    options.watch = NULL;
    lab_open(&lab, options);
    many_noise = 0;
    puppet.children = many_children;
    puppet.collect = see_noise;
    lab_apply(&lab, LAB_PUPPET);
    lab_run(&lab, 3 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/p").child_count, 300);
    lab_assert_state(&lab, "lab/p/c0", "working");
    many_noise = 150;
    lab_run(&lab, 5 * DET_SECOND);
    assert_int_equal(lab_status(&lab, "lab/p").child_count, 300);
    assert_false(lab_has(&lab, "lab/p/c0"));
    lab_assert_state(&lab, "lab/p/c449", "working");
    /* Those that stayed did not notice. */
    assert_int_equal(lab_status(&lab, "lab/p/c200").counts.startups, 1);
    assert_int_equal(lab_status(&lab, "lab/p/c200").counts.transitions, 1);
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_child_spec_is_refused_and_siblings_continue),
        cmocka_unit_test(refused_child_is_reported_once_and_rechecked_on_change),
        cmocka_unit_test(failed_children_call_keeps_the_previous_children),
        cmocka_unit_test(three_levels_begin_with_one_tick),
        cmocka_unit_test(next_is_called_once_per_worker_in_a_tick),
        cmocka_unit_test(a_child_runs_in_the_states_of_its_parent_that_its_spec_names),
        cmocka_unit_test(parent_sees_children_by_phase_not_by_state_name),
        cmocka_unit_test(another_kind_with_the_same_name_is_another_worker),
        cmocka_unit_test(child_wanted_again_while_stopping_restarts),
        cmocka_unit_test(a_parent_is_not_gone_before_its_children_are),
        cmocka_unit_test(restarting_parent_restarts_its_children),
        cmocka_unit_test(
            things_are_inherited_from_the_nearest_one_above_and_from_the_options_at_last),
        cmocka_unit_test(a_parent_sees_the_reason_of_a_child_as_it_is_now),
        cmocka_unit_test(a_kind_that_always_wants_one_more_below_ends_at_the_limit),
        cmocka_unit_test(too_deep_or_long_paths_are_refused_with_a_reason),
        cmocka_unit_test(hundreds_of_children_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
