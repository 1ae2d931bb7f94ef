/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* behaviour_many_test.c - children by the thousand: made in portions, so that no tick is long, and
 * whatever is wanted meanwhile. */
#define SEEDS 2
#include "worker/forest_test.h"

#define MANY 3000

static struct det_buffer yaml;

/* Children with these numbers, in this order. */
static const char *spec_of(uint32_t first, uint32_t count, int step)
{
    det_buffer_deinit(&yaml);
    det_buffer_init(&yaml, NULL);
    det_buffer_append_text(&yaml, "children:\n");
    for (uint32_t i = 0; i < count; i++)
        det_buffer_format(
            &yaml, "- {name: p%04u, kind: puppet}\n", (unsigned)((int)first + (int)i * step));
    return det_buffer_text(&yaml);
}

static uint32_t count_workers(struct lab *lab)
{
    struct det_workers_summary summary;

    det_workers_summary(lab->workers, &summary);
    return summary.workers;
}

struct order {
    uint32_t count;
    int first, step;
    bool is_right;
};

static int inspect_order(void *user, const struct det_worker_status *status)
{
    struct order *order = user;
    char name[16];

    if (!status->depth)
        return 0;
    snprintf(name, sizeof name, "p%04d", order->first + (int)order->count++ * order->step);
    order->is_right = order->is_right && !strcmp(name, status->name);
    return 0;
}

static void assert_children(struct lab *lab, int first, uint32_t count, int step)
{
    struct order order = { .first = first, .step = step, .is_right = true };

    assert_int_equal(det_workers_each(lab->workers, inspect_order, &order), 0);
    assert_int_equal(order.count, count);
    assert_true(order.is_right);
}

static void begin(struct lab *lab, uint64_t seed)
{
    struct lab_options options = forest_options(seed);

    options.watch = NULL;
    lab_open(lab, options);
}

SENTENCE(a_tick_makes_a_bounded_number_of_children)
{
    struct lab lab;
    struct det_workers_summary summary;

    begin(&lab, seed);
    lab_apply(&lab, spec_of(0, MANY, 1));
    assert_in_range(count_workers(&lab), 2, 600);
    /* The rest does not wait for further ticks. */
    lab_run(&lab, 90 * DET_MILLISECOND);
    assert_int_equal(count_workers(&lab), MANY + 1);
    lab_run(&lab, 5 * DET_SECOND);
    det_workers_summary(lab.workers, &summary);
    assert_int_equal(summary.by_phase[DET_PHASE_RUNNING], MANY + 1);
    assert_children(&lab, 0, MANY, 1);
    forest_end(&lab);
}

SENTENCE(newest_spec_applies_while_children_are_created)
{
    struct lab lab;

    begin(&lab, seed);
    lab_apply(&lab, spec_of(0, MANY, 1));
    lab_apply(&lab, spec_of(2500, 1000, -1));
    lab_run(&lab, 10 * DET_SECOND);
    assert_children(&lab, 2500, 1000, -1);
    lab_apply(&lab, spec_of(0, MANY, 1));
    lab_run(&lab, 10 * DET_SECOND);
    assert_children(&lab, 0, MANY, 1);
    lab_apply(&lab, "children: []");
    lab_run(&lab, 20 * DET_SECOND);
    assert_int_equal(count_workers(&lab), 1);
    forest_end(&lab);
}

SENTENCE(manual_children_change_while_others_are_created)
{
    struct det_child_spec spec = { .name = "h", .kind = "puppet" };
    struct lab lab;
    char name[16];

    begin(&lab, seed);
    lab_apply(&lab, spec_of(0, MANY, 1));
    spec.name = name;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    }
    assert_int_equal(det_workers_delete(lab.workers, "lab/h7", NULL), 0);
    /* The spec has these already, or will. */
    spec.name = "p2999";
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), DET_ERR_EXISTS);
    lab_run(&lab, 10 * DET_SECOND);
    assert_int_equal(count_workers(&lab), MANY + 100);
    assert_false(lab_has(&lab, "lab/h7"));
    lab_assert_state(&lab, "lab/h99", "working");
    /* One that both want stays when the hand lets it go. */
    spec.name = "h3";
    lab_apply(&lab, "children: [{name: h3, kind: puppet}]");
    lab_run(&lab, 20 * DET_SECOND);
    assert_int_equal(count_workers(&lab), 100);
    assert_int_equal(det_workers_delete(lab.workers, "lab/h3", NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/h3", "working");
    forest_end(&lab);
}

static unsigned refused_children;

static void watch_refused(const struct det_worker_event *event)
{
    refused_children += event->kind == DET_WORKER_EVENT_CHILD_REFUSED;
}

SENTENCE(manual_children_are_not_refused_by_a_later_round)
{
    struct det_child_spec spec = { .name = "h", .kind = "puppet" };
    struct lab_options options = forest_options(seed);
    struct lab lab;

    refused_children = 0;
    options.watch = watch_refused;
    lab_open(&lab, options);
    lab_apply(&lab, spec_of(0, MANY, 1));
    assert_in_range(count_workers(&lab), 2, 600);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    assert_in_range(count_workers(&lab), 2, MANY - 1);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 10 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "working");
    assert_int_equal(refused_children, 0);
    forest_end(&lab);
}

SENTENCE(a_child_deleted_during_a_round_stays_in_the_list_until_it_is_gone)
{
    struct det_child_spec spec = { .name = "h", .kind = "node" };
    struct lab lab;

    begin(&lab, seed);
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/h", "well");
    node_of("lab/h")->end_takes = 2 * DET_SECOND;
    lab_apply(&lab, spec_of(0, MANY, 1));
    /* The round has not come to it, but the upsert has. */
    assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
    assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
    assert_in_range(count_workers(&lab), 2, MANY - 1);
    lab_run(&lab, DET_SECOND);
    assert_int_equal(count_workers(&lab), MANY + 2);
    lab_assert_state(&lab, "lab/h", "ending");
    lab_run(&lab, 10 * DET_SECOND);
    assert_false(lab_has(&lab, "lab/h"));
    assert_children(&lab, 0, MANY, 1);
    forest_end(&lab);
}

SENTENCE(a_stop_does_not_wait_for_children_that_are_to_be_made)
{
    struct lab lab;

    begin(&lab, seed);
    lab_apply(&lab, spec_of(0, MANY, 1));
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
}

/* The index of requests is made, or not, and goes without memory; the children are the same. */
static void children_are_found_without_memory_for_an_index(void **state)
{
    struct det_child_spec spec = { .name = "h", .kind = "puppet" };
    struct det_test_memory memory;
    struct lab lab;
    int refused = 0;

    (void)state;
    for (uint64_t failing = 1; failing < 60; failing++) {
        struct lab_options options = forest_options(1);

        options.watch = NULL;
        options.limits.compact_every = DET_NEVER;
        det_test_memory_init(&memory);
        options.allocator = &memory.allocator;
        lab_open(&lab, options);
        lab_apply(&lab, spec_of(0, 31, 1));
        lab_run(&lab, 3 * DET_SECOND);
        det_test_memory_fail(&memory, failing, false);
        refused += det_workers_upsert(lab.workers, NULL, &spec, NULL) < 0;
        det_test_memory_fail(&memory, 0, false);
        if (!lab_has(&lab, "lab/h"))
            assert_int_equal(det_workers_upsert(lab.workers, NULL, &spec, NULL), 0);
        lab_run(&lab, 3 * DET_SECOND);
        lab_assert_state(&lab, "lab/h", "working");
        assert_int_equal(det_workers_delete(lab.workers, "lab/h", NULL), 0);
        lab_run(&lab, 3 * DET_SECOND);
        assert_int_equal(count_workers(&lab), 32);
        forest_end(&lab);
        det_test_memory_deinit(&memory);
    }
    assert_true(refused > 0);
}

static int teardown(void **state)
{
    (void)state;
    det_buffer_deinit(&yaml);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tick_makes_a_bounded_number_of_children),
        cmocka_unit_test(newest_spec_applies_while_children_are_created),
        cmocka_unit_test(manual_children_change_while_others_are_created),
        cmocka_unit_test(manual_children_are_not_refused_by_a_later_round),
        cmocka_unit_test(a_child_deleted_during_a_round_stays_in_the_list_until_it_is_gone),
        cmocka_unit_test(a_stop_does_not_wait_for_children_that_are_to_be_made),
        cmocka_unit_test(children_are_found_without_memory_for_an_index),
    };

    return cmocka_run_group_tests(tests, NULL, teardown);
}
