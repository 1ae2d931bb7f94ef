/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_threads_cases.h - what holds of a thread pool in every world. See os/common_cases.h. */
#ifndef DET_WORKER_THREADS_CASES_H
#define DET_WORKER_THREADS_CASES_H

#include "os/common_cases.h"
#include "worker/worker_threads.h"

#define WORKS 20

/* A thread pool, its loop, which the test turns, and the gates at which jobs wait. */
struct yard {
    struct det_world *world;
    struct det_loop *loop;
    struct det_worker_threads *pool;
    struct gate started; /* how many have started */
    struct gate open;    /* from which number on they go on */
    int next;            /* the number that starts next; under the mutex of `started` */
};

struct work {
    struct det_worker_threads_job job;
    struct yard *yard;
    struct work *other; /* to be submitted by run() */
    const void *ran_on, *done_on;
    det_time wait_until;
    int number, waited, runs, dones, place;
    bool was_late, was_dropped;
};

static inline void yard_init(
    struct yard *yard, struct det_world *world, unsigned threads, unsigned hung_max)
{
    *yard = (struct yard){ .world = world };
    gate_init(&yard->started, world);
    gate_init(&yard->open, world);
    assert_int_equal(0, det_loop_open(world, NULL, &yard->loop));
    assert_int_equal(
        0, det_worker_threads_open(NULL, yard->loop, "crew", threads, hung_max, &yard->pool));
}

/* The loop goes last: it runs what `done` is left. */
static inline void yard_deinit(struct yard *yard)
{
    det_worker_threads_close(yard->pool);
    det_loop_close(yard->loop);
    gate_deinit(&yard->open);
    gate_deinit(&yard->started);
}

static inline void work_start(struct work *work)
{
    struct yard *yard = work->yard;

    work->ran_on = det_thread_self(yard->world);
    work->runs++;
    det_mutex_lock(yard->world, yard->started.mutex);
    work->place = yard->next++;
    det_mutex_unlock(yard->world, yard->started.mutex);
    gate_add(&yard->started, 1);
}

static inline void run_at_once(void *argument)
{
    work_start(argument);
}

static inline void run_to_the_gate(void *argument)
{
    struct work *work = argument;

    work_start(work);
    gate_wait(&work->yard->open, work->number + 1);
}

static inline void run_and_wait(void *argument)
{
    struct work *work = argument;

    work_start(work);
    work->waited = det_worker_threads_wait(work->yard->pool, &work->job, work->wait_until);
    if (work->other)
        det_worker_threads_submit(work->yard->pool, &work->other->job);
}

static inline void work_done(void *argument)
{
    struct work *work = argument;

    work->done_on = det_thread_self(work->yard->world);
    work->was_late = work->job.is_late;
    work->was_dropped = work->job.is_dropped;
    work->dones++;
}

static inline struct work work_of(struct yard *yard, int number, void (*run)(void *argument))
{
    return (struct work){
        .job = { .run = run, .done = work_done },
        .yard = yard,
        .number = number,
        .wait_until = DET_NEVER,
    };
}

static inline void submit(struct work *work)
{
    work->job.argument = work;
    det_worker_threads_submit(work->yard->pool, &work->job);
}

static inline void turn_until_done(const struct work *work, int dones)
{
    while (work->dones < dones)
        assert_true(det_loop_turn(work->yard->loop, DET_NEVER) > 0);
    assert_int_equal(dones, work->dones);
}

static void jobs_run_on_threads_and_are_done_on_the_loop(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[WORKS];
    struct yard yard;

    yard_init(&yard, fixture->world, 3, 0);
    for (int i = 0; i < WORKS; i++) {
        works[i] = work_of(&yard, i, run_at_once);
        submit(&works[i]);
    }
    for (int i = 0; i < WORKS; i++) {
        turn_until_done(&works[i], 1);
        assert_true(works[i].job.is_started && works[i].job.started_at > 0);
        assert_false(works[i].was_late || works[i].was_dropped || works[i].job.is_cancelled);
        assert_ptr_equal(det_thread_self(fixture->world), works[i].done_on);
        assert_ptr_not_equal(works[i].done_on, works[i].ran_on);
    }
    assert_true(det_worker_threads_count(yard.pool) <= 3);
    assert_int_equal(
        0, det_worker_threads_queued(yard.pool) + det_worker_threads_running(yard.pool));
    yard_deinit(&yard);
}

static void jobs_start_in_the_order_submitted(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[WORKS];
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 0);
    for (int i = 0; i < WORKS; i++) {
        works[i] = work_of(&yard, i, run_at_once);
        submit(&works[i]);
    }
    for (int i = 0; i < WORKS; i++) {
        turn_until_done(&works[i], 1);
        assert_int_equal(i, works[i].place);
    }
    assert_int_equal(1, det_worker_threads_count(yard.pool));
    yard_deinit(&yard);
}

static void thread_starts_when_no_thread_is_idle(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[4];
    struct yard yard;

    yard_init(&yard, fixture->world, 3, 0);
    assert_int_equal(1, det_worker_threads_count(yard.pool));
    for (int i = 0; i < 4; i++) {
        works[i] = work_of(&yard, 0, run_to_the_gate);
        submit(&works[i]);
        if (i < 3)
            gate_wait(&yard.started, i + 1);
    }
    assert_int_equal(3, det_worker_threads_count(yard.pool));
    assert_int_equal(3, det_worker_threads_running(yard.pool));
    assert_int_equal(1, det_worker_threads_queued(yard.pool));
    assert_true(works[2].job.is_started && !works[3].job.is_started);
    gate_add(&yard.open, 1);
    for (int i = 0; i < 4; i++)
        turn_until_done(&works[i], 1);
    /* One after the other finds a free thread. */
    for (int i = 0; i < WORKS; i++) {
        submit(&works[0]);
        turn_until_done(&works[0], i + 2);
    }
    assert_int_equal(3, det_worker_threads_count(yard.pool));
    yard_deinit(&yard);
}

static void unstarted_jobs_are_dropped_at_close(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[WORKS];
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 1);
    for (int i = 0; i < WORKS; i++)
        works[i] = work_of(&yard, i, run_and_wait);
    works[0].other = &works[WORKS - 1];
    works[WORKS - 1].job.argument = &works[WORKS - 1];
    for (int i = 0; i < WORKS - 1; i++)
        submit(&works[i]);
    gate_wait(&yard.started, 1);
    yard_deinit(&yard);
    assert_int_equal(DET_ERR_CANCELLED, works[0].waited);
    for (int i = 0; i < WORKS; i++) {
        assert_int_equal(1, works[i].dones);
        assert_int_equal(i == 0, works[i].runs);
        assert_int_equal(i > 0, works[i].was_dropped);
        assert_false(works[i].was_late);
    }
    det_worker_threads_close(NULL);
}

static void unstarted_job_can_be_withdrawn(void **state)
{
    struct world_fixture *fixture = *state;
    struct work first, second;
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 0);
    first = work_of(&yard, 0, run_to_the_gate);
    second = work_of(&yard, 0, run_at_once);
    assert_false(det_worker_threads_withdraw(yard.pool, &second.job));
    submit(&first);
    gate_wait(&yard.started, 1);
    submit(&second);
    assert_true(det_worker_threads_withdraw(yard.pool, &second.job));
    assert_false(det_worker_threads_withdraw(yard.pool, &second.job));
    assert_false(det_worker_threads_withdraw(yard.pool, &first.job));
    assert_int_equal(0, det_worker_threads_queued(yard.pool));
    gate_add(&yard.open, 1);
    turn_until_done(&first, 1);
    assert_false(det_worker_threads_withdraw(yard.pool, &first.job));
    assert_int_equal(0, second.runs + second.dones);
    submit(&second);
    turn_until_done(&second, 1);
    yard_deinit(&yard);
}

static void a_wait_ends_at_its_deadline_or_when_cancelled(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[4];
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 0);
    for (int i = 0; i < 4; i++)
        works[i] = work_of(&yard, 0, run_and_wait);
    works[0].wait_until = monotonic(fixture->world) + 2 * DET_MILLISECOND;
    submit(&works[0]);
    turn_until_done(&works[0], 1);
    assert_int_equal(0, works[0].waited);
    assert_true(monotonic(fixture->world) >= works[0].wait_until);
    works[1].wait_until = 0;
    submit(&works[1]);
    turn_until_done(&works[1], 1);
    assert_int_equal(0, works[1].waited);
    /* While it runs, and before it has started. */
    works[3].wait_until = 0;
    submit(&works[2]);
    submit(&works[3]);
    det_worker_threads_cancel(yard.pool, &works[3].job);
    gate_wait(&yard.started, 3);
    det_worker_threads_cancel(yard.pool, &works[2].job);
    turn_until_done(&works[3], 1);
    for (int i = 2; i < 4; i++)
        assert_int_equal(DET_ERR_CANCELLED, works[i].waited);
    /* The next submit begins again. */
    submit(&works[3]);
    turn_until_done(&works[3], 2);
    assert_int_equal(0, works[3].waited);
    yard_deinit(&yard);
}

static void hung_thread_is_replaced_and_its_late_return_ignored(void **state)
{
    struct world_fixture *fixture = *state;
    struct work hung, next;
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 1);
    hung = work_of(&yard, 0, run_to_the_gate);
    next = work_of(&yard, 0, run_at_once);
    submit(&hung);
    gate_wait(&yard.started, 1);
    submit(&next);
    assert_int_equal(DET_ERR_NOT_FOUND, det_worker_threads_abandon(yard.pool, &next.job));
    assert_int_equal(0, det_worker_threads_abandon(yard.pool, &hung.job));
    assert_int_equal(DET_ERR_NOT_FOUND, det_worker_threads_abandon(yard.pool, &hung.job));
    turn_until_done(&next, 1);
    assert_false(next.was_late);
    assert_int_equal(0, hung.dones);
    assert_ptr_not_equal(hung.ran_on, next.ran_on);
    assert_int_equal(1, det_worker_threads_hung(yard.pool));
    assert_int_equal(0, det_worker_threads_running(yard.pool));
    assert_int_equal(2, det_worker_threads_count(yard.pool));
    gate_add(&yard.open, 1);
    turn_until_done(&hung, 1);
    assert_true(hung.was_late);
    assert_int_equal(0, det_worker_threads_hung(yard.pool));
    assert_int_equal(1, det_worker_threads_count(yard.pool));
    /* Done is done: the same memory may be another job. */
    submit(&hung);
    turn_until_done(&hung, 2);
    assert_false(hung.was_late);
    yard_deinit(&yard);
}

static void number_of_abandoned_threads_is_limited(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[5];
    struct yard yard;

    yard_init(&yard, fixture->world, 2, 2);
    for (int i = 0; i < 5; i++)
        works[i] = work_of(&yard, i, run_to_the_gate);
    for (int i = 0; i < 2; i++) {
        submit(&works[i]);
        gate_wait(&yard.started, i + 1);
        assert_int_equal(0, det_worker_threads_abandon(yard.pool, &works[i].job));
    }
    for (int i = 2; i < 4; i++)
        submit(&works[i]);
    gate_wait(&yard.started, 4);
    assert_int_equal(DET_ERR_LIMIT, det_worker_threads_abandon(yard.pool, &works[2].job));
    assert_int_equal(DET_ERR_LIMIT, det_worker_threads_abandon(yard.pool, &works[3].job));
    assert_int_equal(4, det_worker_threads_count(yard.pool));
    /* Each time one returns, another has room. */
    for (int i = 0; i < 3; i++) {
        gate_add(&yard.open, 1);
        turn_until_done(&works[i], 1);
        assert_true(works[i].was_late);
        if (i == 2) {
            submit(&works[4]);
            gate_wait(&yard.started, 5);
        }
        assert_int_equal(0, det_worker_threads_abandon(yard.pool, &works[2 + i].job));
    }
    gate_add(&yard.open, 2);
    turn_until_done(&works[3], 1);
    turn_until_done(&works[4], 1);
    assert_true(works[3].was_late && works[4].was_late);
    assert_int_equal(0, det_worker_threads_hung(yard.pool));
    yard_deinit(&yard);
}

static void finished_job_cannot_be_abandoned(void **state)
{
    struct world_fixture *fixture = *state;
    struct work work;
    struct yard yard;
    bool has_started;

    yard_init(&yard, fixture->world, 1, 1);
    work = work_of(&yard, 0, run_at_once);
    submit(&work);
    do
        has_started = work.job.is_started;
    while (det_worker_threads_running(yard.pool) > 0 || !has_started);
    assert_int_equal(DET_ERR_NOT_FOUND, det_worker_threads_abandon(yard.pool, &work.job));
    turn_until_done(&work, 1);
    assert_false(work.was_late);
    yard_deinit(&yard);
}

static void close_waits_for_abandoned_threads(void **state)
{
    struct world_fixture *fixture = *state;
    struct work works[4];
    struct yard yard;

    yard_init(&yard, fixture->world, 1, 2);
    for (int i = 0; i < 4; i++)
        works[i] = work_of(&yard, 0, run_and_wait);
    for (int i = 0; i < 3; i++) {
        submit(&works[i]);
        gate_wait(&yard.started, i + 1);
        if (i < 2)
            assert_int_equal(0, det_worker_threads_abandon(yard.pool, &works[i].job));
    }
    submit(&works[3]);
    yard_deinit(&yard);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(1, works[i].dones);
        assert_int_equal(i < 2, works[i].was_late);
        assert_int_equal(i == 3, works[i].was_dropped);
        assert_int_equal(i < 3 ? DET_ERR_CANCELLED : 0, works[i].waited);
    }
}

/* The operations of a world that may run out of threads; changed while there are none. */
struct poor_world {
    struct det_world_ops ops;
    const struct det_world_ops *before;
    atomic_bool is_poor;
};

static inline int start_if_rich(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    const struct poor_world *poor = (const struct poor_world *)world->ops;

    if (poor->is_poor)
        return DET_ERR_NO_MEMORY;
    return poor->before->thread_start(world, name, run, argument, ret);
}

static inline void poor_world_init(struct poor_world *poor, struct det_world *world)
{
    poor->ops = *world->ops;
    poor->ops.thread_start = start_if_rich;
    poor->before = world->ops;
    poor->is_poor = false;
    world->ops = &poor->ops;
}

static inline void poor_world_deinit(struct poor_world *poor, struct det_world *world)
{
    world->ops = poor->before;
}

static void existing_threads_continue_when_none_can_start(void **state)
{
    struct world_fixture *fixture = *state;
    struct det_worker_threads *pool = NULL;
    struct poor_world poor;
    struct work works[3];
    struct yard yard;

    poor_world_init(&poor, fixture->world);
    yard_init(&yard, fixture->world, 3, 2);
    for (int i = 0; i < 3; i++)
        works[i] = work_of(&yard, 0, i == 0 ? run_to_the_gate : run_at_once);
    submit(&works[0]);
    gate_wait(&yard.started, 1);
    poor.is_poor = true;
    assert_int_equal(
        DET_ERR_NO_MEMORY, det_worker_threads_open(NULL, yard.loop, "crew", 1, 0, &pool));
    submit(&works[1]);
    assert_int_equal(1, det_worker_threads_count(yard.pool));
    assert_int_equal(1, det_worker_threads_queued(yard.pool));
    assert_int_equal(DET_ERR_NO_MEMORY, det_worker_threads_abandon(yard.pool, &works[0].job));
    assert_int_equal(0, det_worker_threads_hung(yard.pool));
    assert_int_equal(1, det_worker_threads_running(yard.pool));
    poor.is_poor = false;
    assert_int_equal(0, det_worker_threads_abandon(yard.pool, &works[0].job));
    turn_until_done(&works[1], 1);
    gate_add(&yard.open, 1);
    turn_until_done(&works[0], 1);
    assert_true(works[0].was_late);
    submit(&works[2]);
    turn_until_done(&works[2], 1);
    yard_deinit(&yard);
    poor_world_deinit(&poor, fixture->world);
}

#define WORKER_THREADS_CASES                                             \
    WORLD_CASE(jobs_run_on_threads_and_are_done_on_the_loop),            \
        WORLD_CASE(jobs_start_in_the_order_submitted),                   \
        WORLD_CASE(thread_starts_when_no_thread_is_idle),                \
        WORLD_CASE(unstarted_jobs_are_dropped_at_close),                 \
        WORLD_CASE(unstarted_job_can_be_withdrawn),                      \
        WORLD_CASE(a_wait_ends_at_its_deadline_or_when_cancelled),       \
        WORLD_CASE(hung_thread_is_replaced_and_its_late_return_ignored), \
        WORLD_CASE(number_of_abandoned_threads_is_limited),              \
        WORLD_CASE(finished_job_cannot_be_abandoned),                    \
        WORLD_CASE(close_waits_for_abandoned_threads),                   \
        WORLD_CASE(existing_threads_continue_when_none_can_start)

#endif
