/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract_clock_test.c - timers when the wall clock jumps, when many are due at once, in a race
 * with a sender, and on a loop of the caller's. */
#include <detent/driver/loop.h>

#include "runtime/contract_test.h"

static void a_forward_jump_of_the_wall_fires_each_overdue_timer_once_in_order(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    lab_send(lab, "a", probe_arm_both());
    lab->note_count = 0;
    det_sim_jump_wall(lab->sim, DET_MINUTE);
    lab_advance(lab, 9 * DET_SECOND);
    assert_int_equal(lab->note_count, 3);
    assert_int_equal(lab->notes[0].note.event, PROBE_REMIND);
    assert_int_equal(lab->notes[1].note.event, PROBE_ALARM);
    assert_int_equal(lab->notes[2].note.event, PROBE_EXPIRE);
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_counts(lab).timeouts_fired, 3);
    lab_close(lab);
}

static void a_machine_that_slept_fires_what_is_overdue_once(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    det_sim_suspend(lab->sim, DET_MINUTE);
    lab_advance(lab, 29 * DET_SECOND);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    lab_close(lab);
}

static void a_backward_jump_of_the_wall_delays_by_the_jump_and_never_fires_early(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    lab_busy(lab, "a");
    det_sim_jump_wall(lab->sim, -10 * DET_SECOND);
    lab_advance(lab, 40 * DET_SECOND - 1);
    assert_int_equal(lab_get(lab, "a").sequence, 1);
    lab_advance(lab, 1);
    assert_int_equal(lab_get(lab, "a").sequence, 2);
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_counts(lab).timeouts_fired, 1);
    lab_close(lab);
}

static void many_timers_due_at_one_instant_fire_once_each(void **unused)
{
    struct lab *lab = lab_open();
    char name[16];

    (void)unused;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "i%u", i);
        lab_busy(lab, name);
    }
    lab->note_count = 0;
    lab_advance(lab, 30 * DET_SECOND - 1);
    assert_int_equal(lab->note_count, 0);
    lab_advance(lab, 1);
    assert_int_equal(lab->note_count, 100);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(lab->notes[i].note.event, PROBE_EXPIRE);
        assert_int_equal(lab->notes[i].note.at, lab_wall(lab));
        for (unsigned j = 0; j < i; j++)
            assert_string_not_equal(lab->notes[i].instance, lab->notes[j].instance);
    }
    lab_close(lab);
}

struct race {
    struct lab *lab;
    struct det_loop *loop;
    struct det_timer timer;
    det_time at;
    int result;
};

static void race_send(void *argument)
{
    struct race *race = argument;

    race->result = probe_send(race->lab->runtime, "a", probe_back(), NULL);
}

static void race_arm(void *argument)
{
    struct race *race = argument;

    race->result = det_loop_timer_set(race->loop, &race->timer, race->at);
}

/* Whoever wins, the state is left once, and the loser hears of it. */
static void a_timer_and_a_send_at_the_same_instant_move_the_instance_once(void **unused)
{
    unsigned sender_won = 0, timer_won = 0;

    (void)unused;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct lab *lab = lab_open_with(seed, NULL, NULL);
        struct race race = { .lab = lab, .timer = { .run = race_send } };
        struct det_post post = { .run = race_arm, .argument = &race };

        race.timer.argument = &race;
        lab_busy(lab, "a");
        race.at = det_world_now(lab->world, DET_CLOCK_MONOTONIC) + 30 * DET_SECOND;
        assert_int_equal(det_loop_open(lab->world, NULL, &race.loop), 0);
        assert_int_equal(det_loop_start(race.loop, "sender"), 0);
        det_loop_post(race.loop, &post);
        lab_advance(lab, 31 * DET_SECOND);
        assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
        assert_int_equal(lab_get(lab, "a").sequence, 2);
        assert_int_equal(lab->incident_count, 0);
        if (race.result == 0) {
            sender_won++;
            assert_int_equal(lab_counts(lab).timeouts_fired, 0);
        } else {
            timer_won++;
            assert_int_equal(race.result, DET_ERR_UNHANDLED);
            assert_int_equal(lab_counts(lab).timeouts_fired, 1);
        }
        det_loop_stop(race.loop);
        det_loop_close(race.loop);
        lab_close(lab);
    }
    assert_true(sender_won > 0);
    assert_true(timer_won > 0);
}

static void timers_fire_when_the_user_loop_runs(void **unused)
{
    struct lab *lab = lab_open();

    (void)unused;
    det_runtime_close(lab->runtime);
    assert_int_equal(det_loop_open(lab->world, NULL, &lab->options.loop), 0);
    lab_runtime_open(lab);
    lab_busy(lab, "a");
    lab_advance(lab, DET_MINUTE);
    assert_int_equal(lab_get(lab, "a").state, PROBE_BUSY);
    for (unsigned i = 0; i < 10; i++)
        assert_true(det_loop_turn(lab->options.loop, 0) >= 0);
    assert_int_equal(lab_get(lab, "a").state, PROBE_IDLE);
    det_runtime_close(lab->runtime);
    lab->runtime = NULL;
    det_loop_close(lab->options.loop);
    lab_close(lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_jump_of_the_wall_fires_each_overdue_timer_once_in_order),
        cmocka_unit_test(a_machine_that_slept_fires_what_is_overdue_once),
        cmocka_unit_test(a_backward_jump_of_the_wall_delays_by_the_jump_and_never_fires_early),
        cmocka_unit_test(many_timers_due_at_one_instant_fire_once_each),
        cmocka_unit_test(a_timer_and_a_send_at_the_same_instant_move_the_instance_once),
        cmocka_unit_test(timers_fire_when_the_user_loop_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
