/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* shared_cases.h - a simulation and the state shared by its threads, for tests. */
#ifndef DET_OS_SIM_SHARED_CASES_H
#define DET_OS_SIM_SHARED_CASES_H

#include "lib/test.h"

#include <detent/sim.h>

#include "os/os.h"

static inline struct det_sim *open_sim(uint64_t seed)
{
    struct det_sim *sim = NULL;

    assert_int_equal(0, det_sim_open(&(struct det_sim_options){ .seed = seed }, &sim, NULL));
    return sim;
}

/* Shared by threads: locks, a number, and the simulation. */
struct shared {
    struct det_sim *sim;
    struct det_world *world;
    struct det_mutex *mutex;
    struct det_condition *condition;
    struct det_mutex *other_mutex;
    struct det_condition *other_condition;
    struct det_poller *poller;
    int value;
    bool is_ready;
    int result;
};

static inline void shared_init(struct shared *shared, struct det_sim *sim)
{
    struct det_world *world = det_sim_world(sim);

    *shared = (struct shared){ .sim = sim, .world = world };
    assert_int_equal(0, det_mutex_open(world, &shared->mutex));
    assert_int_equal(0, det_condition_open(world, &shared->condition));
    assert_int_equal(0, det_mutex_open(world, &shared->other_mutex));
    assert_int_equal(0, det_condition_open(world, &shared->other_condition));
    assert_int_equal(0, world->ops->poller_open(world, &shared->poller));
}

static inline void shared_deinit(struct shared *shared)
{
    shared->world->ops->poller_close(shared->world, shared->poller);
    det_condition_close(shared->world, shared->other_condition);
    det_mutex_close(shared->world, shared->other_mutex);
    det_condition_close(shared->world, shared->condition);
    det_mutex_close(shared->world, shared->mutex);
}

static inline struct det_thread *start(struct shared *shared, det_thread_fn *run)
{
    struct det_thread *thread = NULL;

    assert_int_equal(0, det_thread_start(shared->world, "thread", run, shared, &thread));
    return thread;
}

#endif
