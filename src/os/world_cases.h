/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* world_cases.h - requirements in every world on clocks, random numbers, threads, mutexes,
 * conditions and pollers. See common_cases.h. */
#ifndef DET_OS_WORLD_CASES_H
#define DET_OS_WORLD_CASES_H

#include "os/common_cases.h"

static void sleep_lasts_at_least_its_duration(void **state)
{
    struct world_fixture *fixture = *state;
    det_time before = monotonic(fixture->world);

    assert_int_equal(0, det_world_sleep(fixture->world, DET_MILLISECOND));
    assert_true(monotonic(fixture->world) >= before + DET_MILLISECOND);
    assert_int_equal(0, det_world_sleep(fixture->world, 0));
    assert_int_equal(0, det_world_sleep(fixture->world, -DET_SECOND));
}

static void clocks_advance_during_a_wait(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    det_time before = monotonic(world), boot = det_world_now(world, DET_CLOCK_BOOT);
    det_time deadline = before + 2 * DET_MILLISECOND;
    struct gate gate;
    int r;

    gate_init(&gate, world);
    det_mutex_lock(world, gate.mutex);
    do
        r = det_condition_wait(world, gate.condition, gate.mutex, deadline);
    while (r == 0);
    det_mutex_unlock(world, gate.mutex);
    assert_int_equal(DET_ERR_TIMEOUT, r);
    assert_true(monotonic(world) >= deadline);
    assert_true(det_world_now(world, DET_CLOCK_BOOT) >= boot + 2 * DET_MILLISECOND);
    assert_true(det_world_now(world, DET_CLOCK_WALL) > 1700000000 * DET_SECOND);
    gate_deinit(&gate);
}

static void tick_clock_lags_the_monotonic_clock_slightly(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    det_time last = 0;

    for (int i = 0; i < 1000; i++) {
        det_time before = monotonic(world), tick = det_world_now(world, DET_CLOCK_TICK);

        assert_true(tick >= last && tick <= monotonic(world));
        assert_true(before - tick <= DET_SECOND);
        last = tick;
    }
}

static void a_deadline_in_the_past_does_not_wait(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    const det_time deadlines[] = { INT64_MIN, -1, 0, monotonic(world) };
    struct gate gate;
    int r;

    gate_init(&gate, world);
    det_mutex_lock(world, gate.mutex);
    for (size_t i = 0; i < sizeof deadlines / sizeof *deadlines; i++) {
        do
            r = det_condition_wait(world, gate.condition, gate.mutex, deadlines[i]);
        while (r == 0);
        assert_int_equal(DET_ERR_TIMEOUT, r);
    }
    det_mutex_unlock(world, gate.mutex);
    gate_deinit(&gate);
}

static void random_bytes_fill_all_and_do_not_repeat(void **state)
{
    struct world_fixture *fixture = *state;
    unsigned char a[1003] = { 0 }, b[1003] = { 0 };
    int zeroes = 0;

    det_world_random(fixture->world, a, sizeof a - 1);
    det_world_random(fixture->world, b, sizeof b - 1);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t i = 0; i < sizeof a - 1; i++)
        zeroes += a[i] == 0;
    assert_true(zeroes < 40);
    assert_int_equal(0, a[sizeof a - 1]);
    det_world_random(fixture->world, NULL, 0);
    assert_true(det_world_random_u64(fixture->world) != det_world_random_u64(fixture->world));
}

static void set_self(void *argument)
{
    struct gate *gate = argument;

    gate->self = det_thread_self(gate->world);
    gate->value = 1;
}

static void a_joined_thread_has_run_and_was_another(void **state)
{
    struct world_fixture *fixture = *state;
    struct gate gate = { .world = fixture->world };
    const void *self = det_thread_self(fixture->world);
    struct det_thread *thread = start(fixture->world, set_self, &gate);

    det_thread_join(fixture->world, thread);
    assert_int_equal(1, gate.value);
    assert_non_null(gate.self);
    assert_ptr_not_equal(gate.self, self);
    assert_ptr_equal(det_thread_self(fixture->world), self);
}

#define INCREMENTS 200
#define THREADS    4

static void increment(void *argument)
{
    struct gate *gate = argument;

    for (int i = 0; i < INCREMENTS; i++) {
        int value;

        det_mutex_lock(gate->world, gate->mutex);
        value = gate->value;
        det_thread_preempt(gate->world);
        gate->value = value + 1;
        det_mutex_unlock(gate->world, gate->mutex);
    }
}

static void a_mutex_lets_one_in_at_a_time(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *threads[THREADS];
    struct gate gate;

    gate_init(&gate, fixture->world);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fixture->world, increment, &gate);
    for (int i = 0; i < THREADS; i++)
        det_thread_join(fixture->world, threads[i]);
    assert_int_equal(THREADS * INCREMENTS, gate.value);
    gate_deinit(&gate);
}

#define ROUNDS 50

/* Makes every odd value even. */
static void answer(void *argument)
{
    struct gate *gate = argument;

    det_mutex_lock(gate->world, gate->mutex);
    for (int i = 0; i < ROUNDS; i++) {
        while (gate->value % 2 == 0)
            (void)det_condition_wait(gate->world, gate->condition, gate->mutex, DET_NEVER);
        gate->value++;
        det_condition_signal(gate->world, gate->condition);
    }
    det_mutex_unlock(gate->world, gate->mutex);
}

static void a_signal_wakes_a_waiter(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct det_thread *thread;
    struct gate gate;

    gate_init(&gate, world);
    thread = start(world, answer, &gate);
    det_mutex_lock(world, gate.mutex);
    for (int i = 0; i < ROUNDS; i++) {
        gate.value++;
        det_condition_signal(world, gate.condition);
        while (gate.value % 2 == 1)
            (void)det_condition_wait(world, gate.condition, gate.mutex, DET_NEVER);
    }
    det_mutex_unlock(world, gate.mutex);
    det_thread_join(world, thread);
    assert_int_equal(2 * ROUNDS, gate.value);
    gate_deinit(&gate);
}

static void wait_for_hundred(void *argument)
{
    struct gate *gate = argument;

    gate_wait(gate, 100);
    gate_add(gate, 1);
}

static void a_broadcast_wakes_all_waiters(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_thread *threads[THREADS];
    struct gate gate;

    gate_init(&gate, fixture->world);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(fixture->world, wait_for_hundred, &gate);
    gate_add(&gate, 100);
    gate_wait(&gate, 100 + THREADS);
    for (int i = 0; i < THREADS; i++)
        det_thread_join(fixture->world, threads[i]);
    gate_deinit(&gate);
}

struct polling {
    struct det_world *world;
    struct det_poller *poller;
};

static void wake_poller(void *argument)
{
    struct polling *polling = argument;

    polling->world->ops->poller_wake(polling->world, polling->poller);
}

static int poll_until(struct polling *polling, det_time deadline)
{
    struct det_poll_event events[4];

    return polling->world->ops->poller_wait(polling->world, polling->poller, events, 4, deadline);
}

static void poller_setup(struct polling *polling, struct det_world *world)
{
    polling->world = world;
    assert_int_equal(0, world->ops->poller_open(world, &polling->poller));
}

static void a_wake_from_another_thread_ends_a_wait(void **state)
{
    struct world_fixture *fixture = *state;
    struct polling polling;
    struct det_thread *thread;

    poller_setup(&polling, fixture->world);
    thread = start(fixture->world, wake_poller, &polling);
    assert_int_equal(0, poll_until(&polling, DET_NEVER));
    det_thread_join(fixture->world, thread);
    fixture->world->ops->poller_close(fixture->world, polling.poller);
}

static void wakes_before_a_wait_coalesce(void **state)
{
    struct world_fixture *fixture = *state;
    struct polling polling;
    det_time deadline;

    poller_setup(&polling, fixture->world);
    wake_poller(&polling);
    wake_poller(&polling);
    assert_int_equal(0, poll_until(&polling, DET_NEVER));
    deadline = monotonic(fixture->world) + DET_MILLISECOND;
    assert_int_equal(0, poll_until(&polling, deadline));
    assert_true(monotonic(fixture->world) >= deadline);
    fixture->world->ops->poller_close(fixture->world, polling.poller);
}

static void a_poll_without_time_returns_at_once(void **state)
{
    struct world_fixture *fixture = *state;
    struct polling polling;

    poller_setup(&polling, fixture->world);
    assert_int_equal(0, poll_until(&polling, 0));
    assert_int_equal(0, poll_until(&polling, INT64_MIN));
    assert_int_equal(0, poll_until(&polling, monotonic(fixture->world)));
    fixture->world->ops->poller_close(fixture->world, polling.poller);
}

static void unwatching_an_unknown_descriptor_is_allowed(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_world *world = fixture->world;
    struct polling polling;

    poller_setup(&polling, world);
    assert_int_equal(0, world->ops->poller_watch(world, polling.poller, 0, 0, &polling));
    assert_int_equal(0, world->ops->poller_watch(world, polling.poller, -1, 0, &polling));
    world->ops->poller_close(world, polling.poller);
}

#define WORLD_CASES                                                                                \
    WORLD_CASE(sleep_lasts_at_least_its_duration), WORLD_CASE(clocks_advance_during_a_wait),       \
        WORLD_CASE(tick_clock_lags_the_monotonic_clock_slightly),                                  \
        WORLD_CASE(a_deadline_in_the_past_does_not_wait),                                          \
        WORLD_CASE(random_bytes_fill_all_and_do_not_repeat),                                       \
        WORLD_CASE(a_joined_thread_has_run_and_was_another),                                       \
        WORLD_CASE(a_mutex_lets_one_in_at_a_time), WORLD_CASE(a_signal_wakes_a_waiter),            \
        WORLD_CASE(a_broadcast_wakes_all_waiters),                                                 \
        WORLD_CASE(a_wake_from_another_thread_ends_a_wait),                                        \
        WORLD_CASE(wakes_before_a_wait_coalesce), WORLD_CASE(a_poll_without_time_returns_at_once), \
        WORLD_CASE(unwatching_an_unknown_descriptor_is_allowed)

#endif
