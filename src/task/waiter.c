/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* waiter.c - waiters for the end of a task.
 *
 * A waiter belongs to its user. It is in the list of its task until the task ends or the user
 * closes it, so that occasional polls leave nothing in a task that runs for ever. Only the loop
 * adds to a list; any thread may remove its waiter. */
#include <detent/driver/loop.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/loop_loan.h"
#include "task/registry.h"

struct det_waiter {
    struct det_tasks *tasks;
    struct det_waiter *next;   /* of the same task; all fields below are under the mutex of
                                * `tasks` */
    struct det_waiter **place; /* the pointer to this one; NULL: none */
    struct det_signal *signal; /* of the waiting threads; NULL: none waited, or no memory */
    void (*report)(void *context, const struct det_task_end *end); /* NULL: a thread waits */
    void *context;
    bool has_ended;
    struct det_task_end end;
};

int det_waiter_open(struct det_task *task, struct det_waiter **ret)
{
    struct det_tasks *tasks = task->tasks;
    struct det_waiter *waiter = DET_NEW(tasks->allocator, struct det_waiter);

    if (!waiter)
        return DET_ERR_NO_MEMORY;
    det_assert(task->node.id);
    waiter->tasks = tasks;
    det_mutex_lock(tasks->world, tasks->status.mutex);
    waiter->place = &task->waiters;
    waiter->next = task->waiters;
    if (waiter->next)
        waiter->next->place = &waiter->next;
    task->waiters = waiter;
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    *ret = waiter;
    return 0;
}

/* Under the mutex. */
static void leave(struct det_waiter *waiter)
{
    if (!waiter->place)
        return;
    det_assert(*waiter->place == waiter && !waiter->has_ended);
    *waiter->place = waiter->next;
    if (waiter->next)
        waiter->next->place = waiter->place;
    waiter->place = NULL;
}

void det_waiters_notify(struct det_task *task, const struct det_task_end *end)
{
    struct det_tasks *tasks = task->tasks;
    struct det_condition *last = NULL;
    struct det_waiter *waiter, *reported = NULL;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    while ((waiter = task->waiters)) {
        leave(waiter);
        waiter->end = *end;
        waiter->has_ended = true;
        if (waiter->report) {
            waiter->next = reported;
            reported = waiter;
            continue;
        }
        if (last)
            det_condition_broadcast(tasks->world, last);
        last = det_signal_condition(tasks, waiter->signal);
    }
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    /* The woken thread finds the mutex free. Conditions outlive their users. */
    if (last)
        det_condition_broadcast(tasks->world, last);
    while ((waiter = reported)) {
        reported = waiter->next;
        waiter->report(waiter->context, end);
    }
}

void det_waiter_set_notify(
    struct det_waiter *waiter, void (*report)(void *context, const struct det_task_end *end),
    void *context)
{
    bool has_ended;

    det_mutex_lock(waiter->tasks->world, waiter->tasks->status.mutex);
    det_assert(report && !waiter->report && !waiter->signal);
    waiter->report = report;
    waiter->context = context;
    has_ended = waiter->has_ended;
    det_mutex_unlock(waiter->tasks->world, waiter->tasks->status.mutex);
    if (has_ended)
        report(context, &waiter->end);
}

/* True after the end. */
static bool has_come(void *argument)
{
    struct det_waiter *waiter = argument;
    struct det_tasks *tasks = waiter->tasks;
    bool has_ended;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    has_ended = waiter->has_ended;
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return has_ended;
}

/* The waiting thread does the loop's work itself: no thread switch is needed. */
static void help(struct det_waiter *waiter, det_time deadline)
{
    struct det_tasks *tasks = waiter->tasks;

    if (!tasks->own_loop || deadline <= 0 || det_loop_is_mine(tasks->own_loop) || has_come(waiter))
        return;
    det_loop_help(tasks->own_loop, deadline, has_come, waiter);
}

int det_waiter_wait(struct det_waiter *waiter, det_time deadline, struct det_task_end *ret)
{
    struct det_tasks *tasks = waiter->tasks;
    int r = 0;

    help(waiter, deadline);
    det_mutex_lock(tasks->world, tasks->status.mutex);
    if (!waiter->has_ended && !waiter->signal)
        waiter->signal = det_signal_take(tasks);
    while (!waiter->has_ended && r == 0)
        r = det_tasks_is_waiting_for_itself(tasks)
                ? DET_ERR_DEADLOCK
                : det_condition_wait(
                      tasks->world, det_signal_condition(tasks, waiter->signal),
                      tasks->status.mutex, deadline);
    if (waiter->has_ended) {
        r = 0;
        if (ret)
            *ret = waiter->end;
    }
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return r;
}

void det_waiter_close(struct det_waiter *waiter)
{
    struct det_tasks *tasks;

    if (!waiter)
        return;
    tasks = waiter->tasks;
    det_mutex_lock(tasks->world, tasks->status.mutex);
    leave(waiter);
    det_signal_put(tasks, waiter->signal);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    DET_DELETE(tasks->allocator, waiter);
}
