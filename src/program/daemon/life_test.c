/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* life_test.c - the states of a run: every event in every state, and calls of the handler. */
#include "daemon/run.h"
#include "lib/test.h"

#include <detent/sim.h>

struct stage {
    struct up up; /* the first member */
    struct cli cli;
    struct det_sim *sim;
    unsigned stops, forces, reports, late_reports, idles;
    const char *why;
    bool is_empty, is_stuck, is_empty_at_once;
};

static struct stage *stage_of(const struct up *up)
{
    return (struct stage *)(void *)(uintptr_t)up;
}

static void count_stop(struct up *up, const char *why)
{
    struct stage *stage = stage_of(up);

    stage->stops++;
    stage->why = why;
    stage->is_empty = stage->is_empty || stage->is_empty_at_once;
    /* As without tasks: in the middle of the stop. */
    up_check_empty(up);
}

static void count_force(struct up *up, const char *why)
{
    stage_of(up)->forces++;
    stage_of(up)->why = why;
}

static bool is_empty(const struct up *up)
{
    return stage_of(up)->is_empty;
}

static det_time get_grace(const struct up *up)
{
    (void)up;
    return 6 * DET_SECOND;
}

static void count_report(struct up *up, bool is_late)
{
    stage_of(up)->reports++;
    stage_of(up)->late_reports += is_late;
}

static bool count_idle(struct up *up)
{
    stage_of(up)->idles++;
    return stage_of(up)->is_stuck;
}

static const struct up_life_handler handler = {
    .stop = count_stop,
    .force = count_force,
    .is_empty = is_empty,
    .grace = get_grace,
    .report_stop = count_report,
    .report_idle = count_idle,
};

static int open_life(struct stage *stage, const struct det_allocator *allocator)
{
    *stage = (struct stage){ .cli = { .allocator = allocator } };
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &stage->sim, NULL), 0);
    stage->cli.world = det_sim_world(stage->sim);
    stage->up.cli = &stage->cli;
    assert_int_equal(det_loop_open(stage->cli.world, NULL, &stage->up.loop), 0);
    return up_life_open(&stage->up, &handler);
}

static void close_life(struct stage *stage)
{
    up_life_close(stage->up.life);
    assert_null(stage->up.life);
    det_loop_close(stage->up.loop);
    det_sim_close(stage->sim);
}

static void spend(struct stage *stage, det_time span)
{
    det_time end = det_loop_now(stage->up.loop) + span;

    while (det_world_now(stage->cli.world, DET_CLOCK_MONOTONIC) < end)
        assert_true(det_loop_turn(stage->up.loop, end) >= 0);
}

/* Every event in every state. */

enum state { STARTING, RUNNING, DRAINING, STOPPING, OVER, STATES };
enum event { BEGIN, DRAIN, STOP, FINISH, EMPTY, EVENTS };

static enum state state_of(const struct up *up)
{
    const char *name = up_state_name(up);

    assert_int_equal(up_is_stopping(up), strcmp(name, "stopping") == 0);
    assert_int_equal(up_is_running(up), strcmp(name, "running") == 0);
    if (up_is_over(up) || !up_has_begun(up)) {
        assert_int_equal(up_is_stopping(up), up_is_over(up));
        return up_is_over(up) ? OVER : STARTING;
    }
    if (up_is_stopping(up))
        return STOPPING;
    return up_is_running(up) ? RUNNING : DRAINING;
}

static void bring(struct stage *stage, enum state state)
{
    struct up *up = &stage->up;

    if (state != STARTING)
        up_begin(up);
    if (state == DRAINING)
        up_set_draining(up);
    if (state == STOPPING || state == OVER)
        up_stop(up, "test");
    stage->is_empty = state == OVER;
    up_check_empty(up);
    assert_int_equal(state_of(up), state);
}

static void give(struct stage *stage, enum event event)
{
    struct up *up = &stage->up;

    switch (event) {
    case BEGIN:
        up_begin(up);
        break;
    case DRAIN:
        up_set_draining(up);
        break;
    case STOP:
        up_stop(up, "again");
        break;
    case FINISH:
        up_begin_stop(up);
        break;
    case EMPTY:
        stage->is_empty = true;
        up_check_empty(up);
        break;
    case EVENTS:
        break;
    }
}

static void every_event_in_every_state_matches_the_table(void **state)
{
    static const enum state table[STATES][EVENTS] = {
        [STARTING] = { RUNNING, STARTING, STOPPING, STOPPING, STARTING },
        [RUNNING] = { RUNNING, DRAINING, STOPPING, STOPPING, RUNNING },
        [DRAINING] = { DRAINING, DRAINING, STOPPING, STOPPING, DRAINING },
        [STOPPING] = { STOPPING, STOPPING, STOPPING, STOPPING, OVER },
        [OVER] = { OVER, OVER, OVER, OVER, OVER },
    };

    (void)state;
    for (unsigned from = STARTING; from < STATES; from++) {
        for (unsigned event = BEGIN; event < EVENTS; event++) {
            bool was_stopping = from == STOPPING || from == OVER;
            struct stage stage;

            assert_int_equal(open_life(&stage, NULL), 0);
            bring(&stage, (enum state)from);
            spend(&stage, DET_SECOND);
            give(&stage, (enum event)event);
            assert_int_equal(state_of(&stage.up), table[from][event]);
            assert_int_equal(stage.stops, was_stopping || table[from][event] == STOPPING);
            assert_int_equal(stage.forces, from == STOPPING && event == STOP);
            close_life(&stage);
        }
    }
}

/* Stops. */

static void immediate_second_stop_is_ignored_and_a_later_one_forces(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_begin(&stage.up);
    up_stop(&stage.up, "interrupted");
    assert_string_equal(stage.why, "interrupted");
    assert_int_equal(up_stop_began_at(&stage.up), det_loop_now(stage.up.loop));
    spend(&stage, UP_SAME_STOP - DET_MILLISECOND);
    up_stop(&stage.up, "interrupted");
    assert_int_equal(stage.forces, 0);
    spend(&stage, DET_MILLISECOND);
    up_begin_stop(&stage.up);
    assert_int_equal(stage.forces, 0);
    up_stop(&stage.up, "terminated");
    up_stop(&stage.up, "terminated");
    assert_int_equal(stage.forces, 2);
    assert_int_equal(stage.stops, 1);
    assert_string_equal(stage.why, "terminated");
    close_life(&stage);
}

static void a_stop_without_work_is_over_at_once(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_begin(&stage.up);
    stage.is_empty_at_once = true;
    up_begin_stop(&stage.up);
    assert_true(up_is_over(&stage.up));
    assert_null(stage.why);
    assert_string_equal(up_state_name(&stage.up), "stopping");
    /* Facts stay. */
    up_set_forced(&stage.up);
    assert_true(up_was_forced(&stage.up));
    assert_true(up_stop_began_at(&stage.up) > 0);
    close_life(&stage);
}

static void tasks_that_still_stop_are_reported_until_the_end(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_begin(&stage.up);
    spend(&stage, DET_MINUTE);
    assert_int_equal(stage.reports, 0);
    up_stop(&stage.up, "test");
    spend(&stage, 2 * DET_SECOND - DET_MILLISECOND);
    assert_int_equal(stage.reports, 0);
    spend(&stage, 2 * DET_MILLISECOND);
    assert_int_equal(stage.reports, 1);
    /* The next report is at the end of the grace, which comes before five seconds are over. */
    spend(&stage, 4 * DET_SECOND);
    assert_int_equal(stage.reports, 2);
    assert_int_equal(stage.late_reports, 1);
    spend(&stage, 5 * DET_SECOND);
    assert_int_equal(stage.late_reports, 2);
    stage.is_empty = true;
    up_check_empty(&stage.up);
    spend(&stage, DET_MINUTE);
    assert_int_equal(stage.reports, 3);
    close_life(&stage);
}

/* Idle. */

static void idle_run_is_checked_once(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_begin(&stage.up);
    up_idle_arm(&stage.up);
    spend(&stage, DET_SECOND);
    up_idle_arm(&stage.up);
    spend(&stage, 2 * DET_SECOND - DET_MILLISECOND);
    assert_int_equal(stage.idles, 0);
    spend(&stage, DET_MINUTE);
    assert_int_equal(stage.idles, 1);
    assert_true(up_is_running(&stage.up));
    stage.is_stuck = true;
    up_idle_arm(&stage.up);
    spend(&stage, 3 * DET_SECOND);
    assert_int_equal(stage.idles, 2);
    assert_true(up_is_stopping(&stage.up));
    assert_null(stage.why);
    close_life(&stage);
}

static void draining_run_is_not_idle(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_begin(&stage.up);
    up_idle_arm(&stage.up);
    up_set_draining(&stage.up);
    up_idle_arm(&stage.up);
    spend(&stage, DET_MINUTE);
    assert_int_equal(stage.idles, 0);
    close_life(&stage);
}

/* Facts. */

static void idle_check_runs_once_and_not_while_stopping(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    up_check_again(&stage.up);
    assert_true(up_take_check(&stage.up));
    assert_false(up_take_check(&stage.up));
    up_check_again(&stage.up);
    up_stop(&stage.up, "test");
    assert_false(up_take_check(&stage.up));
    assert_false(up_has_failed(&stage.up));
    up_set_failed(&stage.up);
    assert_true(up_has_failed(&stage.up));
    close_life(&stage);
}

static void end_too_early(void *argument)
{
    struct stage *stage = argument;

    up_set_forced(&stage->up);
    up_begin(&stage->up);
}

static void violated_invariant_aborts(void **state)
{
    struct stage stage;

    (void)state;
    assert_int_equal(open_life(&stage, NULL), 0);
    assert_true(
        det_test_aborts(end_too_early, &stage, "the invariant of up_life in state starting"));
    close_life(&stage);
}

static int open_once(struct det_test_memory *memory, void *argument)
{
    struct stage *stage = argument;
    int r = open_life(stage, &memory->allocator);

    assert_int_equal(r == 0, stage->up.life != NULL);
    if (r == 0) {
        up_begin(&stage->up);
        up_stop(&stage->up, "test");
        spend(stage, 3 * DET_SECOND);
        assert_int_equal(stage->reports, 1);
    }
    close_life(stage);
    return r;
}

static void open_fails_cleanly_on_allocation_failure(void **state)
{
    struct stage stage;

    (void)state;
    det_test_each_failure(open_once, &stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_matches_the_table),
        cmocka_unit_test(immediate_second_stop_is_ignored_and_a_later_one_forces),
        cmocka_unit_test(a_stop_without_work_is_over_at_once),
        cmocka_unit_test(tasks_that_still_stop_are_reported_until_the_end),
        cmocka_unit_test(idle_run_is_checked_once),
        cmocka_unit_test(draining_run_is_not_idle),
        cmocka_unit_test(idle_check_runs_once_and_not_while_stopping),
        cmocka_unit_test(violated_invariant_aborts),
        cmocka_unit_test(open_fails_cleanly_on_allocation_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
