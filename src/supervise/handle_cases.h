/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* handle_cases.h - handles from other threads, in whatever world: the threads are the world's. */
#ifndef DET_SUPERVISE_HANDLE_CASES_H
#define DET_SUPERVISE_HANDLE_CASES_H

#include "supervise/pump_test.h"

#include "os/os.h"

#define THREADS 4
#define SENDS   200

/* A pump on a loop that has its own thread. */
struct stage {
    struct det_world *world;
    struct det_loop *loop;
    struct det_executor *executor;
    struct det_handle *handle;
    struct pump pump;
    struct {
        struct det_thread *thread;
        struct stage *stage;
        uint64_t accepted, changes;
        int result;
    } workers[THREADS];
};

typedef void stage_fn(struct stage *stage);

static inline void stage_open(struct stage *stage, struct det_world *world)
{
    struct det_supervise_options options = { .control_capacity = 8 };

    memset(stage, 0, sizeof *stage);
    stage->world = world;
    assert_int_equal(det_loop_open(world, NULL, &stage->loop), 0);
    assert_int_equal(det_executor_open(stage->loop, NULL, &stage->executor, NULL), 0);
    assert_int_equal(
        pump_supervise(stage->executor, &stage->pump, &options, &stage->handle, NULL), 0);
    assert_int_equal(det_loop_start(stage->loop, "loop"), 0);
}

static inline void stage_close(struct stage *stage)
{
    det_loop_stop(stage->loop);
    det_handle_close(stage->handle);
    det_executor_close(stage->executor);
    det_loop_close(stage->loop);
    assert_int_equal(stage->pump.completions, 1);
}

static det_time soon(struct stage *stage)
{
    return det_world_now(stage->world, DET_CLOCK_MONOTONIC) + DET_MILLISECOND;
}

static void start_workers(struct stage *stage, det_thread_fn *run)
{
    for (int i = 0; i < THREADS; i++) {
        stage->workers[i].stage = stage;
        assert_int_equal(
            det_thread_start(
                stage->world, "worker", run, &stage->workers[i], &stage->workers[i].thread),
            0);
    }
}

static void join_workers(struct stage *stage)
{
    for (int i = 0; i < THREADS; i++)
        det_thread_join(stage->world, stage->workers[i].thread);
}

/* Sends until DET_ERR_CLOSED; waits while the queue is full. */
static void send_ticks(void *argument)
{
    __typeof__(((struct stage *)0)->workers[0]) *worker = argument;
    struct stage *stage = worker->stage;
    int r = 0;

    while (worker->accepted < SENDS && (r == 0 || r == DET_ERR_LIMIT)) {
        r = pump_handle_send(stage->handle, pump_tick());
        if (r == DET_ERR_LIMIT)
            assert_true(det_handle_wait_change(stage->handle, UINT64_MAX, soon(stage)) <= 0);
        else if (r == 0)
            worker->accepted++;
    }
    worker->result = r;
}

static void wait_for_state(struct stage *stage, enum pump_state state)
{
    for (uint64_t seen = 0; pump_handle_state(stage->handle) != state;) {
        assert_int_equal(det_handle_wait_change(stage->handle, seen, DET_NEVER), 0);
        seen = det_handle_changes(stage->handle);
    }
}

static void send_and_wait(struct stage *stage)
{
    struct det_component_end end;
    uint64_t accepted = 0;

    assert_int_equal(pump_handle_send(stage->handle, start_event()), 0);
    wait_for_state(stage, PUMP_RUNNING);
    start_workers(stage, send_ticks);
    join_workers(stage);
    while (pump_handle_send(stage->handle, pump_quit()) == DET_ERR_LIMIT)
        assert_true(det_handle_wait_change(stage->handle, UINT64_MAX, soon(stage)) <= 0);
    assert_int_equal(det_handle_wait(stage->handle, DET_NEVER, &end), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(stage->workers[i].result, 0);
        accepted += stage->workers[i].accepted;
    }
    assert_int_equal(accepted, THREADS * SENDS);
    assert_int_equal(stage->pump.ticks, 2 * accepted);
    assert_int_equal(end.state, PUMP_RUNNING);
    assert_int_equal(end.failure.code, 0);
}

static void abort_under_fire(struct stage *stage)
{
    struct det_component_end end;

    assert_int_equal(pump_handle_send(stage->handle, start_event()), 0);
    wait_for_state(stage, PUMP_RUNNING);
    start_workers(stage, send_ticks);
    det_handle_abort(stage->handle);
    assert_int_equal(det_handle_wait(stage->handle, DET_NEVER, &end), 0);
    assert_int_equal(end.failure.source, DET_FAILURE_ABORTED);
    join_workers(stage);
    assert_int_equal(pump_handle_send(stage->handle, pump_tick()), DET_ERR_CLOSED);
}

/* Counts what it sees; changes never go back, and the end wakes it. */
static void watch(void *argument)
{
    __typeof__(((struct stage *)0)->workers[0]) *worker = argument;
    struct det_handle *handle = worker->stage->handle;
    uint64_t seen = 0, changes;

    while (!det_handle_has_ended(handle)) {
        worker->result = det_handle_wait_change(handle, seen, DET_NEVER);
        changes = det_handle_changes(handle);
        assert_true(changes >= seen);
        seen = changes;
    }
    worker->changes = det_handle_changes(handle);
}

static void change_and_watch(struct stage *stage)
{
    start_workers(stage, watch);
    assert_int_equal(pump_handle_send(stage->handle, start_event()), 0);
    for (int i = 0; i < 50; i++) {
        wait_for_state(stage, PUMP_RUNNING);
        assert_int_equal(pump_handle_send(stage->handle, pump_pause()), 0);
        wait_for_state(stage, PUMP_PAUSED);
        assert_int_equal(pump_handle_send(stage->handle, pump_resume()), 0);
        det_handle_wake(stage->handle);
    }
    det_handle_hang_up(stage->handle);
    assert_int_equal(det_handle_wait(stage->handle, DET_NEVER, NULL), 0);
    join_workers(stage);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(stage->workers[i].result, 0);
        /* idle, opening, running, (paused, running) * 50, draining, done */
        assert_int_equal(stage->workers[i].changes, 3 + 100 + 2);
    }
}

static void close_while_it_runs(struct stage *stage)
{
    assert_int_equal(pump_handle_send(stage->handle, start_event()), 0);
    start_workers(stage, send_ticks);
    join_workers(stage);
    /* The machine decides: the pump drains, and ends by itself. */
    det_handle_close(stage->handle);
    stage->handle = NULL;
}

/* HANDLE_CASE(name of the test, function) */
#define HANDLE_CASES(HANDLE_CASE)                                      \
    HANDLE_CASE(every_accepted_event_is_delivered, send_and_wait)      \
    HANDLE_CASE(abort_ends_a_component_under_load, abort_under_fire)   \
    HANDLE_CASE(watchers_see_the_states_and_the_end, change_and_watch) \
    HANDLE_CASE(a_handle_may_be_closed_while_it_runs, close_while_it_runs)

#define HANDLE_CASE_TEST(name, run) \
    static void name(void **unused) \
    {                               \
        (void)unused;               \
        in_this_world(run);         \
    }
#define HANDLE_CASE_ENTRY(name, run) cmocka_unit_test(name),

#endif
