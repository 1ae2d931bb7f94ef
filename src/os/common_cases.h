/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* common_cases.h - shared by suites that run the same tests in several worlds: the fixture, which
 * each suite creates in its world_setup(), and a gate for threads. Nothing is asserted on a second
 * thread: a failing assertion uses longjmp() on the stack of the test. */
#ifndef DET_OS_COMMON_CASES_H
#define DET_OS_COMMON_CASES_H

#include "lib/test.h"

#include <detent/sim.h>

#include "os/os.h"

struct world_fixture {
    struct det_world *world;
    struct det_sim *sim; /* NULL: the real world */
    char *folder;
};

static int world_setup(void **state);
static int world_teardown(void **state);

#define WORLD_CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static inline det_time monotonic(struct det_world *world)
{
    return det_world_now(world, DET_CLOCK_MONOTONIC);
}

/* A mutex, a condition and a number that is changed under them. */
struct gate {
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *condition;
    int value;
    const void *self;
};

static inline void gate_init(struct gate *gate, struct det_world *world)
{
    *gate = (struct gate){ .world = world };
    assert_int_equal(0, det_mutex_open(world, &gate->mutex));
    assert_int_equal(0, det_condition_open(world, &gate->condition));
}

static inline void gate_deinit(struct gate *gate)
{
    det_condition_close(gate->world, gate->condition);
    det_mutex_close(gate->world, gate->mutex);
}

static inline void gate_add(struct gate *gate, int by)
{
    det_mutex_lock(gate->world, gate->mutex);
    gate->value += by;
    det_condition_broadcast(gate->world, gate->condition);
    det_mutex_unlock(gate->world, gate->mutex);
}

static inline void gate_wait(struct gate *gate, int value)
{
    det_mutex_lock(gate->world, gate->mutex);
    while (gate->value < value)
        (void)det_condition_wait(gate->world, gate->condition, gate->mutex, DET_NEVER);
    det_mutex_unlock(gate->world, gate->mutex);
}

static inline struct det_thread *start(struct det_world *world, det_thread_fn *run, void *argument)
{
    struct det_thread *thread = NULL;

    assert_int_equal(
        0, det_thread_start(world, "a thread with a long name", run, argument, &thread));
    assert_non_null(thread);
    return thread;
}

#endif
