/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loop_call.c - calls from other threads, in three ways.
 *
 *     borrowed   the loop is ours and sleeps: the caller takes the loop and runs the call itself
 *     queued     the loop is awake, or the user's: it runs the call, the caller waits
 *     posted     the caller does not wait; the loop runs the call and answers by a callback
 *
 * Invariants
 *   1. Calls of one thread run in order: the loop is not borrowed while a posted call is under way.
 *   2. `intake` counts the queued and posted calls that have not run; at most intake_max.
 *   3. Each waiting thread has its own condition, so that a wake reaches only that thread.
 *      Conditions are reused. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/loop_loan.h"
#include "task/extras.h"
#include "task/registry.h"

/* Rounds of messages that det_tasks_try() runs: added tasks start in the first ones. */
#define TRY_ROUNDS 3

bool det_tasks_is_waiting_for_itself(const struct det_tasks *tasks)
{
    return tasks->own_loop && det_loop_is_mine(tasks->own_loop);
}

/* Conditions, under the mutex. */

struct det_signal *det_signal_take(struct det_tasks *tasks)
{
    struct det_signal *signal = tasks->intake.signals;

    if (signal) {
        tasks->intake.signals = signal->next;
        return signal;
    }
    signal = DET_NEW(tasks->allocator, struct det_signal);
    if (signal && det_condition_open(tasks->world, &signal->condition) < 0) {
        DET_DELETE(tasks->allocator, signal);
        return NULL;
    }
    return signal;
}

void det_signal_put(struct det_tasks *tasks, struct det_signal *signal)
{
    if (!signal)
        return;
    signal->next = tasks->intake.signals;
    tasks->intake.signals = signal;
}

struct det_condition *det_signal_condition(struct det_tasks *tasks, struct det_signal *signal)
{
    return signal ? signal->condition : tasks->status.changed;
}

void det_signals_close(struct det_tasks *tasks)
{
    struct det_signal *signal;

    det_assert(tasks->intake.count == 0 && tasks->intake.waiters == 0);
    while ((signal = tasks->intake.signals)) {
        tasks->intake.signals = signal->next;
        det_condition_close(tasks->world, signal->condition);
        DET_DELETE(tasks->allocator, signal);
    }
}

/* Waits for room, under the mutex. */

static int enter(struct det_tasks *tasks, bool may_wait)
{
    int r = 0;

    while (tasks->intake.count >= tasks->options.intake_max && r == 0) {
        if (!may_wait)
            return DET_ERR_BUSY;
        tasks->intake.waiters++;
        r = det_condition_wait(
            tasks->world, tasks->intake.has_room, tasks->status.mutex, DET_NEVER);
        tasks->intake.waiters--;
    }
    if (r == 0)
        tasks->intake.count++;
    return r;
}

static void leave(struct det_tasks *tasks)
{
    det_assert(tasks->intake.count > 0);
    tasks->intake.count--;
    if (tasks->intake.waiters > 0)
        det_condition_broadcast(tasks->world, tasks->intake.has_room);
}

/* Waits with new work while subscribers cannot keep up. */

int det_tasks_wait_for_subscribers(struct det_tasks *tasks, bool may_wait, struct det_error *reterr)
{
    int r = 0;

    if (!det_bus_is_pressed(tasks->bus))
        return 0;
    if (!may_wait || det_loop_is_mine(tasks->loop) || det_bus_is_reader(tasks->bus))
        return det_error_set(
            reterr, DET_ERR_BUSY,
            "the queue of a lossless subscriber is full; retry when it has caught up");
    det_mutex_lock(tasks->world, tasks->status.mutex);
    while (det_bus_is_pressed(tasks->bus) && !tasks->status.is_shutting_down && r == 0)
        r = det_condition_wait(
            tasks->world, tasks->intake.has_room, tasks->status.mutex, DET_NEVER);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return r < 0 ? det_error_set(reterr, r, "waiting for subscribers: %s", det_error_text(r)) : 0;
}

void det_tasks_relieved(void *argument)
{
    struct det_tasks *tasks = argument;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    det_condition_broadcast(tasks->world, tasks->intake.has_room);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    det_tasks_settle_soon(tasks);
}

/* Queued. */

struct call {
    struct det_post post;
    struct det_tasks *tasks;
    int (*run)(struct det_tasks *tasks, void *argument);
    void *argument;
    struct det_signal *signal; /* NULL: no memory; use the common condition */
    int result;
    bool is_answered;
};

static void run_call(void *argument)
{
    struct call *call = argument;
    struct det_tasks *tasks = call->tasks;
    int result = call->run(tasks, call->argument);
    struct det_condition *condition;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    condition = det_signal_condition(tasks, call->signal);
    call->result = result;
    call->is_answered = true;
    leave(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    /* The woken thread finds the mutex free. Conditions outlive their users. */
    det_condition_broadcast(tasks->world, condition);
}

static int post_and_wait(struct det_tasks *tasks, struct call *call)
{
    int r = 0;

    call->signal = det_signal_take(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    det_loop_post(tasks->loop, &call->post);
    det_mutex_lock(tasks->world, tasks->status.mutex);
    while (!call->is_answered && r == 0)
        r = det_condition_wait(
            tasks->world, det_signal_condition(tasks, call->signal), tasks->status.mutex,
            DET_NEVER);
    det_signal_put(tasks, call->signal);
    return r < 0 ? r : call->result;
}

static int queue(
    struct det_tasks *tasks, bool may_wait, int (*run)(struct det_tasks *tasks, void *argument),
    void *argument)
{
    struct call call = { .tasks = tasks, .run = run, .argument = argument };
    int r;

    call.post = (struct det_post){ .run = run_call, .argument = &call };
    det_mutex_lock(tasks->world, tasks->status.mutex);
    r = enter(tasks, may_wait);
    if (r == 0)
        r = post_and_wait(tasks, &call);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return r;
}

static bool borrow(struct det_tasks *tasks)
{
    return tasks->own_loop && atomic_load(&tasks->intake.posted) == 0 &&
           det_loop_borrow(tasks->loop);
}

static bool is_last_round(void *argument)
{
    return ++*(unsigned *)argument == TRY_ROUNDS;
}

bool det_tasks_try(
    struct det_tasks *tasks, int (*run)(struct det_tasks *tasks, void *argument), void *argument,
    int *ret)
{
    bool is_mine = det_loop_is_mine(tasks->loop);
    unsigned rounds = 0;

    if (!is_mine && !borrow(tasks))
        return false;
    *ret = run(tasks, argument);
    if (!is_mine)
        det_loop_work_and_return(tasks->loop, is_last_round, &rounds);
    return true;
}

int det_tasks_call(
    struct det_tasks *tasks, bool may_wait, int (*run)(struct det_tasks *tasks, void *argument),
    void *argument)
{
    int r;

    if (det_loop_is_mine(tasks->loop))
        return run(tasks, argument);
    if (!borrow(tasks))
        return queue(tasks, may_wait, run, argument);
    r = run(tasks, argument);
    det_loop_return(tasks->loop);
    return r;
}

/* Posted. */

static void run_posted(void *argument)
{
    struct det_posted_call *call = argument;
    struct det_tasks *tasks = call->tasks;

    call->run(tasks, call);
    atomic_fetch_sub(&tasks->intake.posted, 1);
    det_mutex_lock(tasks->world, tasks->status.mutex);
    leave(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
}

/* Queued even on the loop's own thread: the answer never comes before the return. */
int det_tasks_post(struct det_tasks *tasks, struct det_posted_call *call)
{
    int r;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    r = enter(tasks, false);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    if (r < 0)
        return r;
    atomic_fetch_add(&tasks->intake.posted, 1);
    call->tasks = tasks;
    call->post = (struct det_post){ .run = run_posted, .argument = call };
    det_loop_post(tasks->loop, &call->post);
    return 0;
}

static void free_posted(struct det_posted_task *posted)
{
    const struct det_allocator *allocator = posted->arena.allocator;

    det_arena_deinit(&posted->arena);
    DET_DELETE(allocator, posted);
}

static int copy_posted(
    struct det_posted_task *posted, const struct det_task_spec *spec, const char *slot)
{
    int r;

    r = det_task_spec_copy(&posted->arena, spec, &posted->spec);
    if (r < 0 || !slot)
        return r;
    posted->slot = det_arena_copy(&posted->arena, slot);
    return posted->slot ? 0 : DET_ERR_NO_MEMORY;
}

static int make_posted(
    struct det_tasks *tasks, const struct det_task_spec *spec, const char *slot,
    struct det_posted_task **ret)
{
    struct det_posted_task *posted;
    int r;

    r = det_tasks_wait_for_subscribers(tasks, false, NULL);
    if (r < 0)
        return r;
    posted = DET_NEW(tasks->allocator, struct det_posted_task);
    if (!posted)
        return DET_ERR_NO_MEMORY;
    det_arena_init(&posted->arena, tasks->allocator);
    r = copy_posted(posted, spec, slot);
    if (r < 0)
        free_posted(posted);
    else
        *ret = posted;
    return r;
}

int det_tasks_post_task(
    struct det_tasks *tasks, const struct det_task_spec *spec, const char *slot, int admission,
    const struct det_answer *answer,
    void (*run)(struct det_tasks *tasks, struct det_posted_call *call))
{
    struct det_posted_task *posted;
    int r;

    r = make_posted(tasks, spec, slot, &posted);
    if (r == 0) {
        posted->admission = admission;
        posted->call.run = run;
        if (answer)
            posted->answer = *answer;
        r = det_tasks_post(tasks, &posted->call);
        if (r < 0)
            free_posted(posted);
    }
    if (r < 0 && spec->release)
        spec->release(spec->argument);
    return r;
}

void det_posted_task_end(
    struct det_posted_task *posted, int result, det_task_id id, const struct det_error *error)
{
    if (result < 0 && posted->spec.release)
        posted->spec.release(posted->spec.argument);
    if (posted->answer.run)
        posted->answer.run(posted->answer.user, result, id, result < 0 ? error : NULL);
    free_posted(posted);
}
