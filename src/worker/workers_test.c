/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_test.c - the life of one worker, from its wish to its end. */
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
    assert_int_equal(det_workers_stop(lab.workers, &error), 0);
    assert_false(lab.plant.is_up);
    assert_int_equal(lab.plant.closes, 1);
    lab_assert_log(&lab, "state_transition lab/a up closing");
    lab_assert_log(&lab, "state_transition lab/a closing stopped");
    lab_close(&lab);
}

static void without_a_spec_there_is_the_root(void **state)
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
        cmocka_unit_test(without_a_spec_there_is_the_root),
        cmocka_unit_test(a_link_comes_up_and_goes_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
