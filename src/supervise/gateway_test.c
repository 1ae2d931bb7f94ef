/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gateway_test.c - the run loop: what it calls and in which order, and what becomes of errors. */
#include "supervise/pump_test.h"

struct fixture {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_executor *executor;
    struct det_handle *handle;
    struct pump pump;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    assert_int_equal(det_sim_open(NULL, &fixture->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(fixture->sim), NULL, &fixture->loop), 0);
    assert_int_equal(det_executor_open(fixture->loop, NULL, &fixture->executor, NULL), 0);
    assert_int_equal(
        pump_supervise(fixture->executor, &fixture->pump, NULL, &fixture->handle, NULL), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    det_handle_close(fixture->handle);
    det_executor_close(fixture->executor);
    det_loop_close(fixture->loop);
    det_sim_close(fixture->sim);
    free(fixture);
    return 0;
}

static void turn(struct fixture *fixture)
{
    while (det_loop_turn(fixture->loop, 0) > 0)
        continue;
}

static void a_component_parks_until_it_is_told_to_start(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    turn(fixture);
    assert_string_equal(pump->trace, "");
    assert_int_equal(pump->component.state, PUMP_IDLE);
    assert_int_equal(
        pump_handle_send(fixture->handle, pump_start((struct pump_port){ .number = 3 })), 0);
    turn(fixture);
    assert_string_equal(pump->trace, "open_port open_step enter_running run_step ");
    assert_int_equal(pump_handle_state(fixture->handle), PUMP_RUNNING);
    assert_int_equal(pump_offer(pump, pump_tick()), 0);
    assert_int_equal(pump->ticks, 2);
    assert_int_equal(pump_offer(pump, pump_drain()), 0);
    turn(fixture);
    assert_int_equal(pump->component.def == NULL, true);
    assert_int_equal(pump->completions, 1);
    assert_int_equal(pump_offer(pump, pump_tick()), DET_ERR_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_component_parks_until_it_is_told_to_start, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
