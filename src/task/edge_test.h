/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* edge_test.h - a supervisor in a simulated world, on a loop that the test turns itself; for suites
 * that test one edge of tasks. */
#ifndef DET_TASK_EDGE_TEST_H
#define DET_TASK_EDGE_TEST_H

#include <detent/sim.h>
#include <detent/slot.h>

#include "lib/test.h"
#include "os/os.h"

#define ENDS_MAX 8

/* A supervisor on a loop that the test turns. */
struct fixture {
    struct det_sim *sim;
    struct det_loop *loop;
    struct det_tasks *tasks;
    struct det_test_memory memory;
    struct det_task_end ends[ENDS_MAX];
    size_t end_count;
    unsigned calls;
    bool may_end;
    int loop_answer;
};

static inline void keep_end(void *user, const struct det_task_end *end)
{
    struct fixture *f = user;

    if (f->end_count < ENDS_MAX)
        f->ends[f->end_count] = *end;
    f->end_count++;
}

static inline void open_seed(struct fixture *f, struct det_tasks_options options, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    det_test_memory_init(&f->memory);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = seed }, &f->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(f->sim), NULL, &f->loop), 0);
    options.loop = f->loop;
    options.allocator = &f->memory.allocator;
    options.on_end = keep_end;
    options.user = f;
    assert_int_equal(det_tasks_open(&options, &f->tasks, NULL), 0);
}

static inline void open_with(struct fixture *f, struct det_tasks_options options)
{
    open_seed(f, options, 1);
}

static inline void close_all(struct fixture *f)
{
    det_tasks_close(f->tasks);
    /* No message of it may be under way to the loop, except one with its own memory. */
    assert_true(det_loop_turn(f->loop, 0) >= 0);
    det_loop_close(f->loop);
    det_sim_close(f->sim);
    det_test_memory_deinit(&f->memory);
}

static inline det_time now(const struct fixture *f)
{
    return det_world_now(det_sim_world(f->sim), DET_CLOCK_MONOTONIC);
}

static inline void turn_for(struct fixture *f, det_time span)
{
    det_time until = now(f) + span;

    while (now(f) < until)
        assert_true(det_loop_turn(f->loop, until) >= 0);
}

static inline det_task_id add(struct fixture *f, struct det_task_spec spec)
{
    struct det_error error;
    det_task_id id = 0;

    spec.argument = f;
    if (det_tasks_add(f->tasks, &spec, NULL, &id, &error) < 0)
        fail_msg("%s", error.text);
    return id;
}

static inline int count(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    (void)context;
    f->calls++;
    return DET_STEP_DONE;
}

/* Ends when it is cancelled and may. */
static inline int hold_out(struct det_task_context *context, void *argument)
{
    struct fixture *f = argument;

    f->calls = det_task_attempt(context);
    return f->may_end && det_task_is_cancelled(context) ? DET_ERR_CANCELLED : DET_STEP_WAIT;
}

#endif
