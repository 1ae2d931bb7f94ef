/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timer_test.c - timeouts of states and wakes at a time, which share one timer. */
#include "supervise/pump_test.h"

static const struct det_supervise_options bare = { .without_handle = true };

static void a_timeout_comes_when_its_state_has_lasted(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_pause()), 0);
    pass(fixture, 4 * DET_SECOND);
    /* A stay leaves it alone. */
    assert_int_equal(offered(fixture, pump, pump_remark()), 0);
    assert_int_equal(det_component_state(&pump->component), PUMP_PAUSED);
    pass(fixture, DET_SECOND - 1);
    assert_int_equal(det_component_state(&pump->component), PUMP_PAUSED);
    pass(fixture, 1);
    assert_int_equal(det_component_state(&pump->component), PUMP_RUNNING);
    assert_int_equal(det_loop_deadline(fixture->loop), DET_NEVER);
}

static void timeout_with_a_stay_fires_once(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;
    uint64_t turns;

    run_it(fixture);
    pump->is_restless = true;
    assert_int_equal(offered(fixture, pump, pump_tick()), 0);
    assert_int_equal(det_component_state(&pump->component), PUMP_BROKEN);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 2 * DET_HOUR), 0);
    turns = det_executor_counts(fixture->executor).turns;
    pass(fixture, DET_DAY);
    assert_int_equal(pump->ticks, 1);
    /* And the wake that was to come later came. */
    assert_int_equal(det_executor_counts(fixture->executor).turns, turns + 2);
}

static void a_timeout_is_gone_with_its_state(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_pause()), 0);
    pass(fixture, 4 * DET_SECOND);
    assert_int_equal(offered(fixture, pump, pump_resume()), 0);
    assert_int_equal(det_loop_deadline(fixture->loop), DET_NEVER);
    assert_int_equal(offered(fixture, pump, pump_pause()), 0);
    pass(fixture, 4 * DET_SECOND);
    assert_int_equal(det_component_state(&pump->component), PUMP_PAUSED);
}

static void within_replaces_after(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_hurry()), 0);
    pass(fixture, DET_SECOND);
    assert_int_equal(det_component_state(&pump->component), PUMP_RUNNING);
}

static void timed_wake_comes_once_at_its_time(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 30), 0);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 20), 0);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 40), 0);
    pass(fixture, 19);
    assert_string_equal(pump->trace, "");
    pass(fixture, 1);
    assert_string_equal(pump->trace, "run_step ");
    pass(fixture, 100);
    assert_string_equal(pump->trace, "run_step ");
}

static void timed_wake_is_cancelled_explicitly_or_by_a_run(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 30), 0);
    assert_int_equal(det_component_wake_at(&pump->component, DET_NEVER), 0);
    assert_int_equal(det_loop_deadline(fixture->loop), DET_NEVER);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 30), 0);
    det_component_wake(&pump->component);
    turn(fixture);
    assert_int_equal(det_loop_deadline(fixture->loop), DET_NEVER);
}

static void timed_wake_and_timeout_share_a_timer(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_pause()), 0);
    /* In a state without a function a wake runs nothing, and the timeout still comes. */
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + DET_SECOND), 0);
    pass(fixture, 2 * DET_SECOND);
    assert_int_equal(det_component_state(&pump->component), PUMP_PAUSED);
    /* And the other way round. */
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + DET_MINUTE), 0);
    pass(fixture, 4 * DET_SECOND);
    assert_int_equal(det_component_state(&pump->component), PUMP_RUNNING);
    assert_int_equal(det_loop_deadline(fixture->loop), DET_NEVER);
}

static void both_may_be_due_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct pump *pump = &fixture->pump;

    run_it(fixture);
    assert_int_equal(offered(fixture, pump, pump_pause()), 0);
    assert_int_equal(det_component_wake_at(&pump->component, now(fixture) + 5 * DET_SECOND), 0);
    pass(fixture, 5 * DET_SECOND);
    assert_int_equal(det_component_state(&pump->component), PUMP_RUNNING);
    assert_string_equal(pump->trace, "leave_running enter_running run_step ");
}

/* A state whose timeout has no room in the loop is a failure of the move, which has happened. */
static void a_timeout_that_cannot_be_armed_is_a_failure_in_the_new_state(void **unused)
{
    struct det_test_memory memory;
    struct det_executor *executor;
    struct det_loop *loop;
    struct det_sim *sim;
    static struct pump pump;

    (void)unused;
    memset(&pump, 0, sizeof pump);
    det_test_memory_init(&memory);
    assert_int_equal(det_sim_open(NULL, &sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(sim), &memory.allocator, &loop), 0);
    assert_int_equal(det_executor_open(loop, NULL, &executor, NULL), 0);
    assert_int_equal(pump_supervise(executor, &pump, &bare, NULL, NULL), 0);
    assert_int_equal(pump_offer(&pump, start_event()), 0);
    while (det_loop_turn(loop, 0) > 0)
        continue;
    memory.fail_at = memory.calls + 1;
    assert_int_equal(det_component_wake_at(&pump.component, 5), DET_ERR_NO_MEMORY);
    assert_int_equal(det_loop_deadline(loop), DET_NEVER);
    memory.fail_at = memory.calls + 1;
    assert_int_equal(pump_offer(&pump, pump_pause()), DET_ERR_NO_MEMORY);
    assert_int_equal(pump.reported.source, DET_FAILURE_HOOK);
    assert_non_null(strstr(pump.reported.text, "timeout of paused: out of memory"));
    assert_int_equal(det_component_state(&pump.component), PUMP_BROKEN);
    det_executor_close(executor);
    det_loop_close(loop);
    det_sim_close(sim);
    det_test_memory_deinit(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PUMP_TEST(a_timeout_comes_when_its_state_has_lasted),
        PUMP_TEST(timeout_with_a_stay_fires_once),
        PUMP_TEST(a_timeout_is_gone_with_its_state),
        PUMP_TEST(within_replaces_after),
        PUMP_TEST(timed_wake_comes_once_at_its_time),
        PUMP_TEST(timed_wake_is_cancelled_explicitly_or_by_a_run),
        PUMP_TEST(timed_wake_and_timeout_share_a_timer),
        PUMP_TEST(both_may_be_due_at_once),
        cmocka_unit_test(a_timeout_that_cannot_be_armed_is_a_failure_in_the_new_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
