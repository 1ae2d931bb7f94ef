/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pool_cases.h - requirements on a pool in every world. See common_cases.h. */
#ifndef DET_OS_POOL_CASES_H
#define DET_OS_POOL_CASES_H

#include <detent/driver/loop.h>
#include <stdatomic.h>

#include "os/loop_cases.h"
#include "os/loop_loan.h"
#include "os/pool.h"

#define JOBS 20

struct work {
    struct det_job job;
    struct det_pool *pool;
    struct gate *gate;
    struct work *other;
    const void *ran_on, *done_on;
    int *next; /* the number that should run next; shared */
    int number;
    bool in_order;
    bool is_done;
};

static inline void work_run(void *argument)
{
    struct work *work = argument;

    work->ran_on = det_thread_self(work->gate->world);
    det_mutex_lock(work->gate->world, work->gate->mutex);
    work->in_order = (*work->next)++ == work->number;
    det_mutex_unlock(work->gate->world, work->gate->mutex);
}

static inline void work_done(void *argument)
{
    struct work *work = argument;

    work->done_on = det_thread_self(work->gate->world);
    work->is_done = true;
    gate_add(work->gate, 1);
}

static inline void works_init(
    struct work *works, struct det_loop *loop, struct gate *gate, int *next)
{
    *next = 0;
    for (int i = 0; i < JOBS; i++)
        works[i] = (struct work){
            .job = { .run = work_run, .done = work_done, .argument = &works[i], .loop = loop },
            .gate = gate,
            .number = i,
            .next = next,
        };
}

static void jobs_run_on_the_pool_and_are_done_on_the_loop(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[JOBS];
    struct det_pool *pool;
    struct det_loop *loop;
    struct gate gate;
    int next;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_loop_start(loop, "loop"));
    assert_int_equal(0, det_pool_open(fixture->world, NULL, 3, &pool));
    works_init(works, loop, &gate, &next);
    for (int i = 0; i < JOBS; i++)
        det_pool_submit(pool, &works[i].job);
    gate_wait(&gate, JOBS);
    assert_false(det_pool_is_closing(pool));
    det_pool_close(pool);
    det_loop_stop(loop);
    for (int i = 0; i < JOBS; i++) {
        assert_false(works[i].job.is_dropped);
        assert_ptr_equal(works[0].done_on, works[i].done_on);
        assert_ptr_not_equal(works[i].ran_on, works[i].done_on);
        assert_ptr_not_equal(works[i].ran_on, det_thread_self(fixture->world));
    }
    det_loop_close(loop);
    gate_deinit(&gate);
}

static void jobs_start_in_the_order_submitted(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[JOBS];
    struct det_pool *pool;
    struct det_loop *loop;
    struct gate gate;
    int next, done = 0;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_pool_open(fixture->world, NULL, 1, &pool));
    works_init(works, loop, &gate, &next);
    for (int i = 0; i < JOBS; i++)
        det_pool_submit(pool, &works[i].job);
    while (done < JOBS) {
        int count = det_loop_turn(loop, DET_NEVER);

        assert_true(count > 0);
        done += count;
    }
    for (int i = 0; i < JOBS; i++)
        assert_true(works[i].in_order && works[i].is_done);
    det_pool_close(pool);
    det_loop_close(loop);
    gate_deinit(&gate);
}

/* Holds its thread until the pool closes, then submits another job. */
static inline void run_until_closing(void *argument)
{
    struct work *work = argument;
    struct gate *gate = work->gate;

    gate_add(gate, 1);
    det_mutex_lock(gate->world, gate->mutex);
    while (!det_pool_is_closing(work->pool))
        (void)det_condition_wait(
            gate->world, gate->condition, gate->mutex,
            det_world_now(gate->world, DET_CLOCK_MONOTONIC) + DET_MILLISECOND);
    det_mutex_unlock(gate->world, gate->mutex);
    det_pool_submit(work->pool, &work->other->job);
}

static void jobs_that_did_not_start_are_dropped_when_the_pool_closes(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[JOBS];
    struct det_pool *pool;
    struct det_loop *loop;
    struct gate gate;
    int next;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_pool_open(fixture->world, NULL, 1, &pool));
    works_init(works, loop, &gate, &next);
    works[0].job.run = run_until_closing;
    works[0].pool = pool;
    works[0].other = &works[JOBS - 1];
    for (int i = 0; i < JOBS - 2; i++)
        det_pool_submit(pool, &works[i].job);
    gate_wait(&gate, 1);
    det_pool_close(pool);
    det_job_drop(&works[JOBS - 2].job);
    assert_false(works[JOBS - 2].is_done);
    det_loop_close(loop);
    assert_false(works[0].job.is_dropped);
    for (int i = 0; i < JOBS; i++) {
        assert_true(works[i].is_done);
        assert_true(i == 0 || (works[i].job.is_dropped && !works[i].ran_on));
    }
    gate_deinit(&gate);
    det_pool_close(NULL);
}

static inline void run_until_all_run(void *argument)
{
    struct work *work = argument;

    work->ran_on = det_thread_self(work->gate->world);
    gate_add(work->gate, 1);
    gate_wait(work->gate, JOBS);
}

/* When all others run: one more has to wait. */
static inline void run_after_late(void *argument)
{
    struct work *work = argument;
    unsigned threads;

    gate_wait(work->gate, JOBS - 1);
    work->in_order = !det_pool_submit(work->pool, &work->other->job) &&
                     det_pool_is_short(work->pool, &threads) && threads == JOBS;
    run_until_all_run(work);
}

/* Each thread that takes a job wakes the next one for the rest. */
static void as_many_jobs_that_block_run_at_once_as_there_are_threads(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[JOBS];
    struct det_pool *pool;
    struct det_loop *loop;
    struct gate gate;
    int next;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_loop_start(loop, "loop"));
    assert_int_equal(0, det_pool_open(fixture->world, NULL, JOBS, &pool));
    for (int round = 1; round <= 3; round++) {
        gate_add(&gate, -gate.value);
        works_init(works, loop, &gate, &next);
        for (int i = 0; i < JOBS; i++) {
            works[i].job.run = run_until_all_run;
            det_pool_submit(pool, &works[i].job);
        }
        /* All run, then all are done. */
        gate_wait(&gate, 2 * JOBS);
    }
    det_pool_close(pool);
    det_loop_stop(loop);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(works[i].ran_on, works[k].ran_on);
    det_loop_close(loop);
    gate_deinit(&gate);
}

/* The last job finds all threads in use, and gets one when they are done. */
static void pool_grows_to_its_limit_and_reports_waiting_jobs(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[JOBS], late;
    struct det_pool *pool;
    struct det_loop *loop;
    struct gate gate;
    unsigned threads;
    int next;

    gate_init(&gate, fixture->world);
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &loop));
    assert_int_equal(0, det_loop_start(loop, "loop"));
    assert_int_equal(0, det_pool_open_growing(fixture->world, NULL, 1, JOBS, &pool));
    assert_false(det_pool_is_short(pool, &threads));
    assert_int_equal(1, threads);
    works_init(works, loop, &gate, &next);
    late = works[0];
    late.job.argument = &late;
    for (int i = 0; i < JOBS; i++) {
        works[i].job.run = i < JOBS - 1 ? run_until_all_run : run_after_late;
        works[i].pool = pool;
        works[i].other = &late;
        assert_true(det_pool_submit(pool, &works[i].job));
    }
    /* All run and are done, and the late one is. */
    gate_wait(&gate, 2 * JOBS + 1);
    assert_false(det_pool_is_short(pool, &threads));
    assert_int_equal(JOBS, threads);
    assert_true(works[JOBS - 1].in_order);
    assert_non_null(late.ran_on);
    det_pool_close(pool);
    det_loop_stop(loop);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < i; k++)
            assert_ptr_not_equal(works[i].ran_on, works[k].ran_on);
    det_loop_close(loop);
    gate_deinit(&gate);
}

#define MESSAGES_MAX 1000

/* A message that posts itself again until a job has run. */
struct chatter {
    struct det_job first, second;
    struct det_pool *pool;
    struct gate *gate;
    struct det_post post;
    struct det_loop *loop;
    int messages;
    atomic_bool has_run;
};

static inline void chatter_message(void *argument)
{
    struct chatter *chatter = argument;

    (void)!det_world_sleep(chatter->gate->world, DET_MILLISECOND);
    if (chatter->messages++ == 0)
        det_pool_submit(chatter->pool, &chatter->second);
    if (!atomic_load(&chatter->has_run) && chatter->messages < MESSAGES_MAX)
        det_loop_post(chatter->loop, &chatter->post);
}

static inline void chatter_nothing(void *argument)
{
    (void)argument;
}

static inline void chatter_begin(void *argument)
{
    struct chatter *chatter = argument;

    det_loop_post(chatter->loop, &chatter->post);
}

static inline void chatter_run(void *argument)
{
    struct chatter *chatter = argument;

    atomic_store(&chatter->has_run, true);
}

static inline void chatter_done(void *argument)
{
    struct chatter *chatter = argument;

    gate_add(chatter->gate, 1);
}

/* Its only thread has borrowed a loop that never runs out of messages. */
static void pool_thread_returns_its_borrowed_loop_for_the_next_job(void **state)
{
    struct world_fixture *fixture = *state;
    struct chatter chatter = { .messages = 0 };
    struct gate gate;

    if (!fixture->sim)
        skip();
    gate_init(&gate, fixture->world);
    chatter.gate = &gate;
    chatter.post = (struct det_post){ .run = chatter_message, .argument = &chatter };
    assert_int_equal(0, det_loop_open(fixture->world, NULL, &chatter.loop));
    det_loop_lend(chatter.loop, 0);
    assert_int_equal(0, det_loop_start(chatter.loop, "loop"));
    assert_int_equal(0, det_pool_open(fixture->world, NULL, 1, &chatter.pool));
    chatter.first = (struct det_job){ .run = chatter_nothing,
                                      .done = chatter_begin,
                                      .argument = &chatter,
                                      .loop = chatter.loop,
                                      .may_borrow = true };
    chatter.second = chatter.first;
    chatter.second.run = chatter_run;
    chatter.second.done = chatter_done;
    assert_int_equal(0, det_sim_settle(fixture->sim));
    det_pool_submit(chatter.pool, &chatter.first);
    gate_wait(&gate, 1);
    assert_in_range(chatter.messages, 1, 10);
    det_pool_close(chatter.pool);
    det_loop_stop(chatter.loop);
    det_loop_close(chatter.loop);
    gate_deinit(&gate);
}

#define POOL_CASES                                                            \
    WORLD_CASE(jobs_run_on_the_pool_and_are_done_on_the_loop),                \
        WORLD_CASE(jobs_start_in_the_order_submitted),                        \
        WORLD_CASE(pool_thread_returns_its_borrowed_loop_for_the_next_job),   \
        WORLD_CASE(as_many_jobs_that_block_run_at_once_as_there_are_threads), \
        WORLD_CASE(pool_grows_to_its_limit_and_reports_waiting_jobs),         \
        WORLD_CASE(jobs_that_did_not_start_are_dropped_when_the_pool_closes)

#endif
