/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sync.c - simulated threads, mutexes and conditions, as lists of waiters.
 *
 * A mutex is stolen only when the simulation has failed: a wait of the first thread that reports
 * the failure must return with its mutex, although its holder may never run again. */
#include "base/assert.h"
#include "base/memory.h"
#include "os/sim/simulation.h"

/* A condition may wake spuriously, this much more rarely than threads are preempted. */
#define SPURIOUS_RARITY 16

struct det_mutex {
    struct det_list waiters;
    struct det_thread *owner;
    struct det_thread *robbed; /* another thread that believes to be the owner, or NULL */
};

struct det_condition {
    struct det_list waiters;
};

int det_sim_thread_start(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    struct det_sim *sim = det_sim_of(world);
    int r;

    (void)name;
    r = det_schedule_start(sim, run, argument, sim->current->process, ret);
    if (r < 0)
        return r;
    det_schedule_preempt(sim);
    return 0;
}

void det_sim_thread_join(struct det_world *world, struct det_thread *thread)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    while (thread->state != THREAD_ENDED)
        if (det_schedule_wait(sim, &thread->joiners, WAIT_JOIN, DET_NEVER) < 0)
            return; /* The simulation has failed; closing it frees the thread. */
    det_schedule_free(sim, thread);
}

const void *det_sim_thread_self(struct det_world *world)
{
    return det_sim_of(world)->current;
}

void det_sim_preempt(struct det_world *world)
{
    det_schedule_preempt(det_sim_of(world));
}

int det_sim_mutex_open(struct det_world *world, struct det_mutex **ret)
{
    struct det_mutex *mutex;

    mutex = DET_NEW(det_sim_of(world)->allocator, struct det_mutex);
    if (!mutex)
        return DET_ERR_NO_MEMORY;
    det_list_init(&mutex->waiters);
    *ret = mutex;
    return 0;
}

void det_sim_mutex_close(struct det_world *world, struct det_mutex *mutex)
{
    struct det_sim *sim = det_sim_of(world);

    det_assert(sim->failed || (!mutex->owner && det_list_is_empty(&mutex->waiters)));
    det_list_remove(&mutex->waiters);
    DET_DELETE(sim->allocator, mutex);
}

static void steal_mutex(struct det_sim *sim, struct det_mutex *mutex)
{
    mutex->robbed = mutex->owner;
    mutex->owner = sim->current;
}

static void take_mutex(struct det_sim *sim, struct det_mutex *mutex)
{
    det_assert(mutex->owner != sim->current);
    while (mutex->owner) {
        if (det_schedule_wait(sim, &mutex->waiters, WAIT_MUTEX, DET_NEVER) < 0) {
            steal_mutex(sim, mutex);
            return;
        }
    }
    mutex->owner = sim->current;
}

static void pass_mutex(struct det_sim *sim, struct det_mutex *mutex)
{
    if (mutex->robbed == sim->current) {
        mutex->robbed = NULL;
        return;
    }
    det_assert(mutex->owner == sim->current);
    mutex->owner = mutex->robbed;
    mutex->robbed = NULL;
    if (!mutex->owner)
        det_schedule_wake_one(sim, &mutex->waiters);
}

void det_sim_mutex_lock(struct det_world *world, struct det_mutex *mutex)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    take_mutex(sim, mutex);
}

void det_sim_mutex_unlock(struct det_world *world, struct det_mutex *mutex)
{
    struct det_sim *sim = det_sim_of(world);

    pass_mutex(sim, mutex);
    det_schedule_preempt(sim);
}

int det_sim_condition_open(struct det_world *world, struct det_condition **ret)
{
    struct det_condition *condition;

    condition = DET_NEW(det_sim_of(world)->allocator, struct det_condition);
    if (!condition)
        return DET_ERR_NO_MEMORY;
    det_list_init(&condition->waiters);
    *ret = condition;
    return 0;
}

void det_sim_condition_close(struct det_world *world, struct det_condition *condition)
{
    struct det_sim *sim = det_sim_of(world);

    det_assert(sim->failed || det_list_is_empty(&condition->waiters));
    det_list_remove(&condition->waiters);
    DET_DELETE(sim->allocator, condition);
}

int det_sim_condition_wait(
    struct det_world *world, struct det_condition *condition, struct det_mutex *mutex,
    det_time deadline)
{
    struct det_sim *sim = det_sim_of(world);
    int r = 0;

    pass_mutex(sim, mutex);
    if (det_chance_happens(&sim->schedule_chance, sim->options.preempt / SPURIOUS_RARITY))
        det_schedule_yield(sim);
    else
        r = det_schedule_wait(sim, &condition->waiters, WAIT_CONDITION, deadline);
    if (mutex->owner && r < 0 && r != DET_ERR_TIMEOUT)
        steal_mutex(sim, mutex);
    else
        take_mutex(sim, mutex);
    return r;
}

void det_sim_condition_signal(struct det_world *world, struct det_condition *condition)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    det_schedule_wake_one(sim, &condition->waiters);
    det_schedule_preempt(sim);
}

void det_sim_condition_broadcast(struct det_world *world, struct det_condition *condition)
{
    struct det_sim *sim = det_sim_of(world);

    det_schedule_preempt(sim);
    det_schedule_wake_all(sim, &condition->waiters);
    det_schedule_preempt(sim);
}
