/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.c - the life of one worker, from its request to its end. */
#include <detent/tool/workers.h>

#include "base/memory.h"
#include "worker/lab_test.h"

static void a_link_comes_up_and_goes_down(void **state)
{
    struct lab lab;
    struct det_error error = { 0 };

    (void)state;
    lab_open(&lab, (struct lab_options){ 0 });
    lab_apply(&lab, LAB_LINK);
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    lab_assert_state(&lab, "lab/a", "up");
    assert_int_equal(lab.plant.connects, 1);
    lab_assert_log(&lab, "state_transition lab/a stopped connecting");
    lab_assert_log(&lab, "state_transition lab/a connecting up");
    lab_assert_log(&lab, "observed_changed lab/a");
    assert_int_equal(det_workers_stop(lab.workers, &error), 0);
    assert_false(lab.plant.is_up);
    assert_int_equal(lab.plant.closes, 1);
    lab_assert_log(&lab, "state_transition lab/a up closing");
    lab_assert_log(&lab, "state_transition lab/a closing stopped");
    lab_close(&lab);
}

static void worker_is_shown_as_json(void **state)
{
    struct lab lab;
    char *text;
    size_t size;

    (void)state;
    lab_open(&lab, (struct lab_options){ 0 });
    lab_apply(&lab, "children: [{name: a, kind: link, config: {host: h, port: 1, secret: hush}}]");
    lab_run(&lab, 2 * DET_SECOND);
    lab.plant.port = 9;
    lab.plant.connect_error = DET_ERR_IO;
    lab_run(&lab, 2 * DET_SECOND);
    assert_int_equal(det_workers_show(lab.workers, "lab/a", &text, &size), 0);
    assert_int_equal(strlen(text), size);
    assert_non_null(strstr(text, "\"gap\":{\"port\":{\"desired\":1,\"observed\":9}}"));
    assert_non_null(strstr(text, "\"metrics\":{\"connects\":"));
    assert_non_null(strstr(text, "\"connecting\":{\"entered\":1,"));
    assert_null(strstr(text, "hush"));
    det_free(NULL, text, size + 1);
    assert_int_equal(det_workers_show(lab.workers, "lab/b", &text, &size), DET_ERR_NOT_FOUND);
    lab_close(&lab);
}

static void children_of_a_disabled_worker_are_stopped(void **state)
{
    struct lab lab;

    (void)state;
    lab_open(&lab, (struct lab_options){ 0 });
    lab_apply(
        &lab, "children: [{name: a, kind: link, config: {host: h, port: 1}, children: [{name: b, "
              "kind: link, config: {host: h, port: 1}}]}, {name: c, kind: link, disabled: true, "
              "config: {host: h, port: 1}}]");
    lab_run(&lab, 3 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/b", "up");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_DISABLE, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a", "stopped");
    lab_assert_state(&lab, "lab/a/b", "stopped");
    assert_string_equal(lab_status(&lab, "lab/a/b").reason, "an ancestor is disabled");
    assert_int_equal(det_workers_order(lab.workers, "lab/a", DET_WORKER_ORDER_ENABLE, NULL), 0);
    lab_run(&lab, 5 * DET_SECOND);
    lab_assert_state(&lab, "lab/a/b", "up");
    assert_int_equal(
        det_workers_order(lab.workers, "lab/c", DET_WORKER_ORDER_ENABLE, NULL), DET_ERR_REFUSED);
    lab_assert_state(&lab, "lab/c", "stopped");
    lab_apply(&lab, "children: []");
    lab_assert_log(&lab, "child_removing lab/c: no longer in the spec of its parent");
    lab_close(&lab);
}

static void root_worker_exists_without_a_spec(void **state)
{
    struct lab lab;

    (void)state;
    lab_open(&lab, (struct lab_options){ 0 });
    lab_run(&lab, DET_SECOND);
    lab_assert_state(&lab, "lab", "running");
    lab_close(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_worker_exists_without_a_spec),
        cmocka_unit_test(a_link_comes_up_and_goes_down),
        cmocka_unit_test(worker_is_shown_as_json),
        cmocka_unit_test(children_of_a_disabled_worker_are_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
