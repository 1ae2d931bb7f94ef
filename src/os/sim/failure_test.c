/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* failure_test.c - a simulation that cannot go on says so: deadlocks, too many steps, mistakes. */
#include "os/sim/shared_cases.h"

#include <detent/driver/loop.h>
#include <detent/loop.h>

static void wait_for_ever(void *argument)
{
    struct shared *shared = argument;

    det_mutex_lock(shared->world, shared->mutex);
    det_mutex_lock(shared->world, shared->other_mutex);
    while (!shared->is_ready)
        (void)det_condition_wait(
            shared->world, shared->other_condition, shared->other_mutex, DET_NEVER);
    det_mutex_unlock(shared->world, shared->other_mutex);
    det_mutex_unlock(shared->world, shared->mutex);
}

static void a_deadlock_can_be_seen_and_resolved(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_thread *thread;
    struct det_loop *loop;
    struct shared shared;
    int r;

    (void)state;
    shared_init(&shared, sim);
    assert_int_equal(0, det_loop_open(shared.world, NULL, &loop));
    assert_int_equal(DET_ERR_DEADLOCK, det_loop_turn(loop, DET_NEVER));
    assert_int_equal(DET_ERR_DEADLOCK, det_loop_run(loop));
    assert_int_equal(0, det_loop_turn(loop, det_loop_now(loop) + DET_HOUR));
    /* The thread takes the mutex while we wait, and keeps it; the error comes back with it all the
     * same, and giving it up gives it back. */
    det_mutex_lock(shared.world, shared.mutex);
    thread = start(&shared, wait_for_ever);
    do
        r = det_condition_wait(shared.world, shared.condition, shared.mutex, DET_NEVER);
    while (r == 0);
    assert_int_equal(DET_ERR_DEADLOCK, r);
    det_mutex_unlock(shared.world, shared.mutex);
    det_mutex_lock(shared.world, shared.other_mutex);
    shared.is_ready = true;
    det_condition_broadcast(shared.world, shared.other_condition);
    det_mutex_unlock(shared.world, shared.other_mutex);
    det_thread_join(shared.world, thread);
    det_mutex_lock(shared.world, shared.mutex);
    det_mutex_unlock(shared.world, shared.mutex);
    det_loop_close(loop);
    shared_deinit(&shared);
    det_sim_close(sim);
}

/* The robbed one gives up first. */
static void a_stolen_mutex_may_be_unlocked_by_either(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_thread *thread;
    struct shared shared;
    int r;

    (void)state;
    shared_init(&shared, sim);
    det_mutex_lock(shared.world, shared.mutex);
    thread = start(&shared, wait_for_ever);
    do
        r = det_condition_wait(shared.world, shared.condition, shared.mutex, DET_NEVER);
    while (r == 0);
    det_mutex_lock(shared.world, shared.other_mutex);
    shared.is_ready = true;
    det_condition_broadcast(shared.world, shared.other_condition);
    det_mutex_unlock(shared.world, shared.other_mutex);
    det_thread_join(shared.world, thread);
    det_mutex_unlock(shared.world, shared.mutex);
    det_mutex_lock(shared.world, shared.mutex);
    det_mutex_unlock(shared.world, shared.mutex);
    shared_deinit(&shared);
    det_sim_close(sim);
}

/* Fails a wait, so that the rest of the simulation can be closed. */
static void a_failed_simulation_is_closed_with_what_is_left(void **state)
{
    struct det_sim *sim = open_sim(1);
    struct det_file *file;
    struct shared shared;
    int r;

    (void)state;
    shared_init(&shared, sim);
    (void)start(&shared, wait_for_ever);
    assert_int_equal(0, det_file_open(shared.world, "a", DET_FILE_WRITE | DET_FILE_CREATE, &file));
    assert_int_equal(0, det_sim_settle(sim));
    det_mutex_lock(shared.world, shared.other_mutex);
    do
        r = det_condition_wait(shared.world, shared.condition, shared.other_mutex, DET_NEVER);
    while (r == 0);
    assert_int_equal(DET_ERR_DEADLOCK, r);
    det_mutex_unlock(shared.world, shared.other_mutex);
    shared_deinit(&shared);
    det_sim_close(sim);
}

static void take_and_keep(void *argument)
{
    struct shared *shared = argument;

    det_mutex_lock(shared->world, shared->mutex);
}

static void turn_again(void *argument)
{
    (void)det_loop_turn(argument, 0);
}

static void turn_in_a_turn(void *argument)
{
    struct det_post post = { .run = turn_again };
    struct det_sim *sim;
    struct det_loop *loop;

    (void)argument;
    assert_int_equal(0, det_sim_open(NULL, &sim, NULL));
    assert_int_equal(0, det_loop_open(det_sim_world(sim), NULL, &loop));
    post.argument = loop;
    det_loop_post(loop, &post);
    (void)det_loop_turn(loop, 0);
}

static void lock_for_ever(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct shared shared;

    (void)argument;
    shared_init(&shared, sim);
    det_thread_join(shared.world, start(&shared, take_and_keep));
    det_mutex_lock(shared.world, shared.mutex);
}

static void join_for_ever(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct shared shared;

    (void)argument;
    shared_init(&shared, sim);
    det_thread_join(shared.world, start(&shared, wait_for_ever));
}

static void ignore_for_ever(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct det_loop *loop;

    (void)argument;
    assert_int_equal(0, det_loop_open(det_sim_world(sim), NULL, &loop));
    for (;;)
        (void)det_loop_turn(loop, DET_NEVER);
}

static void leave_a_thread(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct shared shared;

    (void)argument;
    shared_init(&shared, sim);
    (void)start(&shared, wait_for_ever);
    det_sim_close(sim);
}

static void settle_elsewhere(void *argument)
{
    int r = det_sim_settle(argument);

    (void)r;
}

static void use_from_two_threads(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct det_world *real = det_world_real();
    struct det_thread *thread;

    (void)argument;
    assert_int_equal(0, det_thread_start(real, "other", settle_elsewhere, sim, &thread));
    det_thread_join(real, thread);
}

static void unlock_what_is_not_ours(void *argument)
{
    struct det_sim *sim = open_sim(1);
    struct shared shared;

    (void)argument;
    shared_init(&shared, sim);
    det_mutex_unlock(shared.world, shared.mutex);
}

static void ask_for_a_clock_that_is_none(void *argument)
{
    (void)argument;
    (void)det_world_now(det_sim_world(open_sim(1)), (enum det_clock)99);
}

static void simulation_misuse_aborts(void **state)
{
    (void)state;
    assert_true(det_test_aborts(turn_in_a_turn, NULL, "is_turning"));
    assert_true(det_test_aborts(lock_for_ever, NULL, "simulated deadlock"));
    assert_true(det_test_aborts(join_for_ever, NULL, "simulated deadlock"));
    assert_true(det_test_aborts(ignore_for_ever, NULL, "continues to wait"));
    assert_true(det_test_aborts(leave_a_thread, NULL, "threads_count"));
    assert_true(det_test_aborts(use_from_two_threads, NULL, "owner"));
    assert_true(det_test_aborts(unlock_what_is_not_ours, NULL, "owner"));
    assert_true(det_test_aborts(ask_for_a_clock_that_is_none, NULL, "no such clock"));
}

/* Keeps the mutex and never waits for anything, but lets others in. */
static void spin_with_the_mutex(void *argument)
{
    struct shared *shared = argument;
    struct det_world *world = shared->world;
    struct det_poll_event event;

    det_mutex_lock(world, shared->mutex);
    shared->value = 1;
    while (!shared->is_ready)
        (void)world->ops->poller_wait(world, shared->poller, &event, 1, 0);
    det_mutex_unlock(world, shared->mutex);
}

static struct det_sim *open_limited(void)
{
    struct det_sim *sim = NULL;

    assert_int_equal(0, det_sim_open(&(struct det_sim_options){ .steps_max = 1000 }, &sim, NULL));
    return sim;
}

static void too_many_steps_end_every_wait_of_the_first_thread(void **state)
{
    struct det_sim *sim = open_limited();
    struct det_thread *thread;
    struct shared shared;

    (void)state;
    shared_init(&shared, sim);
    thread = start(&shared, spin_with_the_mutex);
    assert_int_equal(DET_ERR_LIMIT, det_sim_settle(sim));
    assert_int_equal(1001, det_sim_steps(sim));
    assert_int_equal(DET_ERR_LIMIT, det_sim_advance(sim, 1));
    assert_int_equal(1, shared.value);
    /* None of these waits, though the other thread has the mutex and does not end. */
    det_mutex_lock(shared.world, shared.mutex);
    assert_int_equal(
        DET_ERR_LIMIT, det_condition_wait(shared.world, shared.condition, shared.mutex, DET_NEVER));
    det_mutex_unlock(shared.world, shared.mutex);
    det_thread_join(shared.world, thread);
    shared_deinit(&shared);
    det_sim_close(sim);
}

static void too_many_steps_end_a_wait_for_a_mutex(void **state)
{
    struct det_sim *sim = open_limited();
    struct shared shared;

    (void)state;
    shared_init(&shared, sim);
    (void)start(&shared, spin_with_the_mutex);
    while (!shared.value)
        det_thread_preempt(shared.world);
    det_mutex_lock(shared.world, shared.mutex);
    assert_int_equal(DET_ERR_LIMIT, det_sim_settle(sim));
    det_mutex_unlock(shared.world, shared.mutex);
    shared_deinit(&shared);
    det_sim_close(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadlock_can_be_seen_and_resolved),
        cmocka_unit_test(a_stolen_mutex_may_be_unlocked_by_either),
        cmocka_unit_test(a_failed_simulation_is_closed_with_what_is_left),
        cmocka_unit_test(simulation_misuse_aborts),
        cmocka_unit_test(too_many_steps_end_every_wait_of_the_first_thread),
        cmocka_unit_test(too_many_steps_end_a_wait_for_a_mutex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
