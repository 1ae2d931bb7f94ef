/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: sanitized */
/* behaviour_forest_memory_test.c - a tree that changes by spec and by hand, without memory at each
 * allocation once: every answer is right or says that there is no memory, nothing crashes, leaks or
 * hangs, and said again all becomes what is wanted. */
#include "worker/forest_test.h"

#define YAML                                                                                    \
    "variables: {IP: ip}\nchildren: [{name: a, kind: node, config: {host: \"{{ .IP }}\"}, "     \
    "children: [{name: x, kind: twin, run_in: [well]}]}, {name: bad, kind: node, config: {no: " \
    "1}}]"

static const struct det_child_spec below[] = {
    { .name = "one", .kind = "node", .variables = "{V: v}", .config = "host: {{ .V }}" },
    { .name = "", .kind = "node" },
    { .name = "two", .kind = "nobody" },
};
static const struct det_child_spec hand = {
    .name = "h", .kind = "node", .config = "host: {{ .IP }}", .variables = "{IP: own}"
};
static const struct det_child_spec other = { .name = "h", .kind = "twin" };
static const struct det_child_spec deep = { .name = "k", .kind = "node" };

static void fine(int r)
{
    if (r != 0 && r != DET_ERR_NO_MEMORY && r != DET_ERR_NOT_FOUND)
        fail_msg("%s", det_error_name(r));
}

/* Everything once, and with what is missing the second time. */
static void live(struct lab *lab)
{
    fine(det_workers_apply(lab->workers, YAML, NULL));
    fine(det_workers_upsert(lab->workers, NULL, &hand, NULL));
    lab_run(lab, 1500 * DET_MILLISECOND);
    fine(det_workers_upsert(lab->workers, "lab/h", &deep, NULL));
    fine(det_workers_set_globals(lab->workers, "{x: 1}", NULL));
    lab_run(lab, DET_SECOND);
    node_of("lab/a/one")->wants_restart = true;
    fine(det_workers_upsert(lab->workers, NULL, &other, NULL));
    lab_run(lab, 1500 * DET_MILLISECOND);
    node_of("lab/a/one")->wants_restart = false;
    fine(det_workers_delete(lab->workers, "lab/h", NULL));
    lab_run(lab, 500 * DET_MILLISECOND);
}

static bool is_in(struct lab *lab, const char *id, const char *state)
{
    struct det_worker_status status;

    return det_workers_get(lab->workers, id, NULL, &status, NULL, NULL) == 0 &&
           !strcmp(status.state, state);
}

static bool is_as_wanted(struct lab *lab)
{
    return is_in(lab, "lab/a", "well") && is_in(lab, "lab/a/x", "not_stopped_degraded") &&
           is_in(lab, "lab/a/one", "well") && is_in(lab, "lab/h", "well") &&
           is_in(lab, "lab/h/k", "well") && is_in(lab, "lab/bad", "down") &&
           !strcmp(node_of("lab/h")->host, "own") && !strcmp(node_of("lab/a/one")->host, "v");
}

static int print_again(struct lab *lab)
{
    int r = det_workers_apply(lab->workers, YAML, NULL);

    if (r == 0)
        r = det_workers_upsert(lab->workers, NULL, &hand, NULL);
    for (int i = 0; i < 20 && r == 0 && !is_in(lab, "lab/h", "well"); i++)
        lab_run(lab, 5 * DET_SECOND);
    return r ? r : det_workers_upsert(lab->workers, "lab/h", &deep, NULL);
}

static bool run_with_failure(uint64_t number, bool is_sticky)
{
    struct lab_options options = forest_options(number);
    struct det_test_memory memory;
    struct lab lab;
    bool has_failed;

    det_test_memory_init(&memory);
    options.allocator = &memory.allocator;
    options.store = "memory:";
    lab_open(&lab, options);
    node_of("lab/a")->children = below;
    node_of("lab/a")->child_count = sizeof below / sizeof below[0];
    lab_run(&lab, 300 * DET_MILLISECOND);
    det_test_memory_fail(&memory, number, is_sticky);
    live(&lab);
    has_failed = det_test_memory_fail(&memory, 0, false);
    reported_count = 0;
    assert_int_equal(print_again(&lab), 0);
    for (int i = 0; i < 40 && !is_as_wanted(&lab); i++)
        lab_run(&lab, 5 * DET_SECOND);
    if (!is_as_wanted(&lab))
        fail_msg("%u\n%s", (unsigned)number, det_buffer_text(&lab.log));
    assert_int_equal(det_workers_stop(lab.workers, NULL), 0);
    forest_end(&lab);
    det_test_memory_deinit(&memory);
    return has_failed;
}

static void worker_tree_survives_every_failed_allocation(void **state)
{
    (void)state;
    for (uint64_t number = 1; run_with_failure(number, false); number += 3)
        continue;
    for (uint64_t number = 2; run_with_failure(number, true); number += 10)
        continue;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_tree_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
