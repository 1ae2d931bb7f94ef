/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_random_cases.h - a thread pool that is used in every way at once, by a seed. In
 * any case the `done` of each submit that was not withdrawn runs once, and is late if it was
 * abandoned. */
#ifndef DET_WORKER_THREADS_RANDOM_CASES_H
#define DET_WORKER_THREADS_RANDOM_CASES_H

#include "worker/worker_threads_cases.h"

#define CROWD 12

struct member {
    struct det_worker_threads_job job;
    struct crowd *crowd;
    det_time span;
    bool is_deaf; /* it does not look whether it is cancelled */
    /* Used by the loop. */
    bool is_submitted, is_given_up;
    unsigned submits, withdrawn, dones;
};

struct crowd {
    struct det_world *world;
    struct det_loop *loop;
    struct det_worker_threads *pool;
    struct gate gate; /* where the deaf ones sleep; never opened */
    uint64_t seed;
    unsigned wrong, late, dropped;
    struct member members[CROWD];
};

static inline void sleep_deaf(struct crowd *crowd, det_time deadline)
{
    struct gate *gate = &crowd->gate;
    int r = 0;

    det_mutex_lock(gate->world, gate->mutex);
    while (r != DET_ERR_TIMEOUT)
        r = det_condition_wait(gate->world, gate->condition, gate->mutex, deadline);
    det_mutex_unlock(gate->world, gate->mutex);
}

static inline void member_run(void *argument)
{
    struct member *member = argument;
    struct crowd *crowd = member->crowd;
    det_time deadline = monotonic(crowd->world) + member->span;

    if (member->is_deaf)
        sleep_deaf(crowd, deadline);
    else if (member->span > 0)
        (void)!det_worker_threads_wait(crowd->pool, &member->job, deadline);
}

static inline void member_done(void *argument)
{
    struct member *member = argument;
    struct crowd *crowd = member->crowd;

    crowd->wrong += !member->is_submitted || member->is_given_up != member->job.is_late ||
                    (member->job.is_dropped && member->job.is_started);
    crowd->late += member->job.is_late;
    crowd->dropped += member->job.is_dropped;
    member->is_submitted = member->is_given_up = false;
    member->dones++;
}

static inline void member_submit(struct member *member)
{
    uint64_t number = det_test_random(&member->crowd->seed);

    if (member->is_submitted)
        return;
    member->span = (det_time)(number % 4) * 50 * DET_MICROSECOND;
    member->is_deaf = number / 4 % 4 == 0;
    member->is_submitted = true;
    member->submits++;
    det_worker_threads_submit(member->crowd->pool, &member->job);
}

static inline void member_withdraw(struct member *member)
{
    if (!member->is_submitted || !det_worker_threads_withdraw(member->crowd->pool, &member->job))
        return;
    member->is_submitted = false;
    member->withdrawn++;
}

static inline void member_give_up(struct member *member)
{
    int r;

    if (!member->is_submitted)
        return;
    r = det_worker_threads_abandon(member->crowd->pool, &member->job);
    if (r == 0) {
        member->crowd->wrong += member->is_given_up;
        member->is_given_up = true;
    } else
        member->crowd->wrong += r != DET_ERR_NOT_FOUND && r != DET_ERR_LIMIT;
}

static inline void crowd_step(struct crowd *crowd)
{
    uint64_t number = det_test_random(&crowd->seed);
    struct member *member = &crowd->members[number / 16 % CROWD];

    switch (number % 16) {
    case 0:
        member_withdraw(member);
        break;
    case 1:
        if (member->is_submitted)
            det_worker_threads_cancel(crowd->pool, &member->job);
        break;
    case 2:
    case 3:
        member_give_up(member);
        break;
    case 4:
        (void)det_loop_turn(crowd->loop, monotonic(crowd->world) + 60 * DET_MICROSECOND);
        break;
    case 5:
    case 6:
        (void)det_loop_turn(crowd->loop, 0);
        break;
    default:
        member_submit(member);
        break;
    }
}

static inline void crowd_run(struct crowd *crowd, struct det_world *world, uint64_t seed, int steps)
{
    *crowd = (struct crowd){ .world = world, .seed = seed };
    gate_init(&crowd->gate, world);
    assert_int_equal(0, det_loop_open(world, NULL, &crowd->loop));
    assert_int_equal(
        0, det_worker_threads_open(
               NULL, crowd->loop, "crew", (unsigned)(1 + seed % 3), (unsigned)(seed / 3 % 4),
               &crowd->pool));
    for (int i = 0; i < CROWD; i++)
        crowd->members[i] = (struct member){
            .crowd = crowd,
            .job = { .run = member_run, .done = member_done, .argument = &crowd->members[i] },
        };
    for (int i = 0; i < steps; i++)
        crowd_step(crowd);
    det_worker_threads_close(crowd->pool);
    det_loop_close(crowd->loop);
    gate_deinit(&crowd->gate);
    assert_int_equal(0, crowd->wrong);
    for (int i = 0; i < CROWD; i++) {
        const struct member *member = &crowd->members[i];

        assert_false(member->is_submitted);
        assert_int_equal(member->submits, member->withdrawn + member->dones);
    }
}

#endif
