/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scenario_failing_test.c - the scenarios of actions that fail, panic or take long. */
#include "kinds/scenario_test.h"

static void failing_workers_recover_stay_down_or_restart(void **state)
{
    static const char recovers[] = "scenario-failing/recovers";
    static const char stays[] = "scenario-failing/stays-down";
    static const char restarts[] = "scenario-failing/restarts";
    struct play play = { 0 };
    size_t at;

    (void)state;
    play_named(&play, "failing");
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_ACTION_FAILED, recovers, "connect"), 3);
    at = play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, recovers, "connected");
    assert_true(at < play.count);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_TRANSITION, stays, "connected"), 0);
    assert_true(play_count(&play, DET_WORKER_EVENT_ACTION_FAILED, stays, "connect") >= 5);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_TRANSITION, restarts, "connected"), 0);
    assert_true(play_count(&play, DET_WORKER_EVENT_RESTART_REQUESTED, restarts, NULL) >= 1);
    assert_true(play_count(&play, DET_WORKER_EVENT_RESTART_DONE, restarts, NULL) >= 1);
    assert_true(play_count(&play, DET_WORKER_EVENT_TRANSITION, restarts, "trying_to_connect") >= 2);
    play_close(&play);
}

static void failures_come_with_growing_delays(void **state)
{
    static const char stays[] = "scenario-failing/stays-down";
    struct play play = { 0 };
    det_time delays[6], last = 0;
    size_t at = 0;

    (void)state;
    play_named(&play, "failing");
    for (int i = 0; i < 6; i++) {
        at = play_find(&play, at, DET_WORKER_EVENT_ACTION_FAILED, stays, "connect");
        assert_true(at < play.count);
        assert_int_equal(play.reported[at].number, i + 1);
        delays[i] = play.reported[at].at - last;
        last = play.reported[at++].at;
    }
    /* A second doubles each time; by chance it may be less, and a tick comes on top. */
    for (int i = 1; i < 6; i++) {
        assert_true(delays[i] <= (DET_SECOND << (i - 1)) * 6 / 5 + 300 * DET_MILLISECOND);
        assert_true(delays[i] >= (DET_SECOND << (i - 1)) / 2);
    }
    play_close(&play);
}

static void panic_is_reported_retried_and_contained(void **state)
{
    static const char panics[] = "scenario-panic/panics";
    struct play play = { 0 };
    size_t at;

    (void)state;
    play_named(&play, "panic");
    assert_true(play_count(&play, DET_WORKER_EVENT_ACTION_PANIC, panics, "connect") >= 2);
    at = play_find(&play, 0, DET_WORKER_EVENT_ACTION_PANIC, panics, "connect");
    assert_string_equal(play.reported[at].reason, "configured panic");
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_TRANSITION, panics, "connected"), 0);
    play_went(&play, "scenario-panic/beside-it", "trying_to_connect", "connected");
    play_close(&play);
}

static void a_slow_action_is_waited_for(void **state)
{
    static const char slow[] = "scenario-slow/slow";
    struct play play = { 0 };
    det_time span;
    size_t at;

    (void)state;
    play_named(&play, "slow");
    at = play_went(&play, slow, "trying_to_connect", "connected");
    span =
        play.reported[at].at -
        play.reported[play_find(&play, 0, DET_WORKER_EVENT_TRANSITION, slow, "trying_to_connect")]
            .at;
    assert_true(span >= 2 * DET_SECOND && span < 4 * DET_SECOND);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_ACTION_COMPLETED, slow, "connect"), 1);
    play_close(&play);
}

static void slow_action_can_be_cancelled(void **state)
{
    static const char slow[] = "scenario-slow/slow";
    struct play play = { .duration = 1500 * DET_MILLISECOND };

    (void)state;
    play_named(&play, "slow");
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_TRANSITION, slow, "connected"), 0);
    play_went(&play, slow, "trying_to_connect", "trying_to_stop", "stopped");
    /* Long before the two seconds are over that it would have taken. */
    assert_true(play.ended - play.began < 2200 * DET_MILLISECOND);
    play_close(&play);
}

static void quick_slow_and_failing_workers_are_independent(void **state)
{
    struct play play = { 0 };
    size_t quick, slow, retried;

    (void)state;
    play_named(&play, "timeout");
    quick = play_went(&play, "scenario-timeout/quick", "connected");
    slow = play_went(&play, "scenario-timeout/slow", "connected");
    retried = play_went(&play, "scenario-timeout/retried", "connected");
    play_went(&play, "scenario-timeout/combined", "connected");
    assert_true(quick < slow && slow < retried);
    assert_int_equal(
        play_count(&play, DET_WORKER_EVENT_ACTION_FAILED, "scenario-timeout/combined", NULL), 5);
    assert_int_equal(play_count(&play, DET_WORKER_EVENT_RESTART_REQUESTED, NULL, NULL), 0);
    play_close(&play);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_workers_recover_stay_down_or_restart),
        cmocka_unit_test(failures_come_with_growing_delays),
        cmocka_unit_test(panic_is_reported_retried_and_contained),
        cmocka_unit_test(a_slow_action_is_waited_for),
        cmocka_unit_test(slow_action_can_be_cancelled),
        cmocka_unit_test(quick_slow_and_failing_workers_are_independent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
