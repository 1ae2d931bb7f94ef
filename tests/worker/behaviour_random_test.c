/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_random_test.c - a plant where anything goes wrong at any time, and specs that change
 * while it does: whatever came before, when all is well again all comes up, stops and is closed. */
#include "worker/behaviour_test.h"

#include "worker/faulty_test.h"

#define STEPS 60

static const char *const specs[] = {
    "children: [{name: a, kind: link, config: {host: h, port: 7, children: 2}}, "
    "{name: p, kind: puppet}]",
    "children: [{name: a, kind: link, config: {host: other, port: 7, children: 1}}]",
    "children: [{name: a, kind: puppet}, {name: p, kind: puppet, disabled: true}, "
    "{name: b, kind: link, config: {host: h, port: 7, children: 3}}]",
    "children: [{name: a, kind: link, config: {host: h, port: 666}}, {name: p, kind: none}, "
    "{name: b, kind: link, config: \"{{ .NOT_THERE }}\"}]",
    "children: [{name: p, kind: puppet}, "
    "{name: a, kind: link, config: {host: \"{{ .global.name }}\", port: 7, children: 2}}]",
    "children: []",
};
#define SPECS (sizeof specs / sizeof specs[0])

static struct det_sim *chance;

static uint64_t below(uint64_t bound)
{
    return det_sim_random_below(chance, bound);
}

static struct det_next check_and_act(const struct det_worker_view *view)
{
    assert_true(view->stop_wanted || view->observed_at > 0);
    assert_true(view->stop_wanted || view->now - view->observed_at < 10 * DET_SECOND);
    if (view->last_action->action)
        assert_true(view->stop_wanted || view->observed_at >= view->last_action->at);
    if (view->state == PUPPET_WORKING && below(3) == 0)
        return (struct det_next){ DET_NEXT_DO, (uint16_t)below(3), "by chance" };
    if (view->state == PUPPET_WORKING && below(200) == 0)
        return (struct det_next){ DET_NEXT_RESTART, 0, "by chance" };
    if (view->state == PUPPET_ENDING && below(2))
        return (struct det_next){ DET_NEXT_DO, (uint16_t)below(3), "by chance" };
    return puppet_walk(view);
}

static int act_by_chance(struct det_worker_context *context, int action)
{
    (void)action;
    switch (below(8)) {
    case 0:
        det_worker_panic(context, "by chance");
        return 0;
    case 1:
        return det_worker_fail(context, DET_ERR_IO, "by chance");
    case 2:
        return lab_take(context, (det_time)below(5) * DET_SECOND, 0);
    case 3:
        return below(10) ? 0 : lab_take(context, 0, (det_time)below(200) * DET_SECOND);
    default:
        return 0;
    }
}

static void change_the_plant(struct plant *plant)
{
    switch (below(15)) {
    case 0:
        plant->is_up = !plant->is_up;
        break;
    case 1:
        plant->open_error = below(2) ? DET_ERR_IO : 0;
        break;
    case 2:
        plant->connect_error = below(2) ? DET_ERR_IO : 0;
        break;
    case 3:
        plant->connect_takes = (det_time)below(2) * 3 * DET_SECOND;
        break;
    case 4:
        plant->connect_hangs = (det_time)below(2) * 100 * DET_SECOND;
        break;
    case 5:
        plant->connect_panics = below(2);
        break;
    case 6:
        plant->close_error = below(2) ? DET_ERR_IO : 0;
        break;
    case 7:
        plant->collect_error = below(2) ? DET_ERR_IO : 0;
        break;
    case 8:
        plant->collect_hangs = (det_time)below(2) * 50 * DET_SECOND;
        break;
    case 9:
        plant->collect_panics = below(2);
        break;
    case 10:
        plant->is_stuck = below(2);
        break;
    case 11:
        plant->wants_restart = below(2);
        break;
    case 12:
        plant->is_wrong = below(2);
        break;
    case 13:
        fault = below(2) ? DET_ERR_IO : 0;
        break;
    default:
        plant->noise++;
        break;
    }
}

static void change_the_request(struct lab *lab)
{
    static const char *const ids[] = { "lab/a", "lab/p", "lab/b", "lab/a/c0", "lab/d" };
    static const char *const names[] = { "{name: x}", "{name: y}" };
    const char *id = ids[below(5)];
    struct det_child_spec by_hand = { .name = "d", .kind = below(2) ? "puppet" : "link" };

    switch (below(6)) {
    case 0:
        (void)!det_workers_upsert(lab->workers, below(2) ? NULL : "lab/a", &by_hand, NULL);
        break;
    case 1:
        (void)!det_workers_delete(lab->workers, below(2) ? "lab/d" : "lab/a/d", NULL);
        break;
    case 2:
        assert_int_equal(det_workers_set_globals(lab->workers, names[below(2)], NULL), 0);
        break;
    case 3:
        (void)!det_workers_order(lab->workers, id, (enum det_worker_order)below(3), NULL);
        break;
    default:
        lab_apply(lab, specs[below(SPECS)]);
        break;
    }
}

static void heal(struct lab *lab)
{
    struct plant *plant = &lab->plant;

    plant->open_error = plant->connect_error = plant->close_error = plant->collect_error = 0;
    plant->connect_takes = plant->connect_hangs = plant->collect_hangs = 0;
    plant->connect_panics = plant->collect_panics = false;
    plant->is_stuck = plant->wants_restart = plant->is_wrong = false;
    puppet.next = NULL;
    puppet.act = NULL;
    fault = 0;
}

static int wake(void *user, const struct det_worker_status *status)
{
    char *id = user;

    if (strcmp(status->life, "down") != 0)
        return 0;
    snprintf(id, DET_WORKER_PATH_MAX + 1, "%s", status->id);
    return 1;
}

static void want_the_first_tree(struct lab *lab)
{
    char id[DET_WORKER_PATH_MAX + 1];

    (void)!det_workers_delete(lab->workers, "lab/d", NULL);
    (void)!det_workers_delete(lab->workers, "lab/a/d", NULL);
    lab_apply(lab, specs[0]);
    lab_run(lab, 60 * DET_SECOND);
    while (det_workers_each(lab->workers, wake, id) == 1) {
        assert_int_equal(det_workers_order(lab->workers, id, DET_WORKER_ORDER_RESTART, NULL), 0);
        lab_run(lab, DET_SECOND);
    }
    (void)!det_workers_order(lab->workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL);
    (void)!det_workers_order(lab->workers, "lab/a/c0", DET_WORKER_ORDER_ENABLE, NULL);
    (void)!det_workers_order(lab->workers, "lab/p", DET_WORKER_ORDER_ENABLE, NULL);
    /* The longest pause is that of panics, then that of circuits. */
    lab_run(lab, 12 * DET_MINUTE);
}

SENTENCE(tree_recovers_and_stops_after_random_faults)
{
    struct lab_options options = behaviour_options(seed);
    struct det_error error = { 0 };
    struct lab lab;

    options.watch = NULL;
    options.globals = "{name: x}";
    options.store = seed % 2 ? "memory:" : NULL;
    behaviour_begin(&lab, options, specs[0], 2 * DET_SECOND);
    fault = 0;
    if (lab.store)
        make_faulty(&lab);
    chance = lab.sim;
    puppet.next = check_and_act;
    puppet.act = act_by_chance;
    for (int i = 0; i < STEPS; i++) {
        if (below(3))
            change_the_plant(&lab.plant);
        else
            change_the_request(&lab);
        lab_run(&lab, (det_time)below(8000) * DET_MILLISECOND);
    }
    heal(&lab);
    want_the_first_tree(&lab);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_state(&lab, "lab/a", "up");
    lab_assert_state(&lab, "lab/a/c0", "up");
    lab_assert_state(&lab, "lab/a/c1", "up");
    lab_assert_state(&lab, "lab/p", "working");
    assert_int_equal(lab_status(&lab, "lab").child_count, 2);
    if (det_workers_stop(lab.workers, &error) < 0)
        fail_msg("%llu: %s", (unsigned long long)seed, error.text);
    lab_close(&lab);
}

SENTENCE(close_during_random_faults_leaks_nothing)
{
    struct lab_options options = behaviour_options(seed);
    struct lab lab;

    options.watch = NULL;
    options.globals = "{name: x}";
    behaviour_begin(&lab, options, specs[0], (det_time)(seed % 5) * 300 * DET_MILLISECOND);
    chance = lab.sim;
    puppet.next = check_and_act;
    puppet.act = act_by_chance;
    for (uint64_t i = below(STEPS); i > 0; i--) {
        if (below(3))
            change_the_plant(&lab.plant);
        else
            change_the_request(&lab);
        lab_run(&lab, (det_time)below(2000) * DET_MILLISECOND);
    }
    if (seed % 3 == 0)
        det_workers_cancel(lab.workers);
    if (seed % 6 == 0)
        det_workers_cancel(lab.workers);
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_recovers_and_stops_after_random_faults),
        cmocka_unit_test(close_during_random_faults_leaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
