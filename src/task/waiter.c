/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* waiter.c - who waits for the end of a task.
 *
 * A waiter belongs to its task and to its user; the last of the two to let go frees it. */
#include "base/memory.h"
#include "task/registry.h"

struct det_waiter {
    struct det_tasks *tasks;
    struct det_waiter *next; /* of the same task; loop only */
    bool has_ended;          /* these two under the mutex of `tasks` */
    bool is_given_up;
    struct det_task_end end;
};

int det_waiter_open(struct det_task *task, struct det_waiter **ret)
{
    struct det_waiter *waiter = DET_NEW(task->tasks->allocator, struct det_waiter);

    if (!waiter)
        return DET_ERR_NO_MEMORY;
    waiter->tasks = task->tasks;
    waiter->next = task->waiters;
    task->waiters = waiter;
    *ret = waiter;
    return 0;
}

void det_waiter_forget(struct det_task *task)
{
    struct det_waiter *waiter = task->waiters;

    task->waiters = waiter->next;
    DET_DELETE(task->tasks->allocator, waiter);
}

void det_waiters_tell(struct det_task *task, const struct det_task_end *end)
{
    struct det_tasks *tasks = task->tasks;
    struct det_waiter *waiter = task->waiters, *next;

    if (!waiter)
        return;
    det_mutex_lock(tasks->world, tasks->mutex);
    for (; waiter; waiter = next) {
        next = waiter->next;
        if (waiter->is_given_up) {
            DET_DELETE(tasks->allocator, waiter);
            continue;
        }
        waiter->end = *end;
        waiter->has_ended = true;
    }
    det_condition_broadcast(tasks->world, tasks->changed);
    det_mutex_unlock(tasks->world, tasks->mutex);
    task->waiters = NULL;
}

int det_waiter_wait(struct det_waiter *waiter, det_time deadline, struct det_task_end *ret)
{
    struct det_tasks *tasks = waiter->tasks;
    int r = 0;

    det_mutex_lock(tasks->world, tasks->mutex);
    while (!waiter->has_ended && r == 0)
        r = det_condition_wait(tasks->world, tasks->changed, tasks->mutex, deadline);
    if (waiter->has_ended) {
        r = 0;
        if (ret)
            *ret = waiter->end;
    }
    det_mutex_unlock(tasks->world, tasks->mutex);
    return r;
}

void det_waiter_close(struct det_waiter *waiter)
{
    struct det_tasks *tasks;
    bool is_last;

    if (!waiter)
        return;
    tasks = waiter->tasks;
    det_mutex_lock(tasks->world, tasks->mutex);
    is_last = waiter->has_ended;
    waiter->is_given_up = true;
    det_mutex_unlock(tasks->world, tasks->mutex);
    if (is_last)
        DET_DELETE(tasks->allocator, waiter);
}
