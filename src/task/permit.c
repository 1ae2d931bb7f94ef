/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* permit.c - how many attempts run at the same time: a line, first come first served.
 *
 * A function needs a thread of the pool beside its permit. Functions stand in a line of their own,
 * so that nobody waits behind one for whom there is no thread; between the two heads the one who
 * came first goes first. */
#include "task/registry.h"

#include "base/assert.h"

static bool has_permit_left(const struct det_tasks *tasks)
{
    return tasks->options.concurrent_max == 0 ||
           tasks->permits_used < tasks->options.concurrent_max;
}

static bool has_thread_left(const struct det_tasks *tasks)
{
    return tasks->pool_used < tasks->options.pool_threads;
}

static struct det_list *line_of(struct det_task *task)
{
    return task->kind == TASK_FUNCTION ? &task->tasks->pool_line : &task->tasks->permit_line;
}

static void take(struct det_task *task)
{
    task->has_permit = true;
    task->tasks->permits_used++;
    if (task->kind == TASK_FUNCTION)
        task->tasks->pool_used++;
}

static struct det_task *head_of(struct det_list *line)
{
    return det_list_is_empty(line) ? NULL : DET_CONTAINER(line->next, struct det_task, line);
}

/* The first of those who could run; NULL: nobody could. */
static struct det_task *first_in_line(struct det_tasks *tasks)
{
    struct det_task *function = has_thread_left(tasks) ? head_of(&tasks->pool_line) : NULL;
    struct det_task *other = head_of(&tasks->permit_line);

    if (!function || !other)
        return function ? function : other;
    /* Tickets wrap around; the two are never so far apart. */
    return (int32_t)(function->ticket - other->ticket) < 0 ? function : other;
}

bool det_permit_ask(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;
    struct det_list *line = line_of(task);

    det_assert(!task->has_permit && det_list_is_empty(&task->line));
    /* Nobody overtakes, also not in the moment in which one who runs has given its permit back. */
    if (has_permit_left(tasks) && det_list_is_empty(line) && !first_in_line(tasks) &&
        (task->kind != TASK_FUNCTION || has_thread_left(tasks))) {
        take(task);
        return true;
    }
    task->ticket = tasks->next_ticket++;
    det_list_append(line, &task->line);
    if (has_permit_left(tasks))
        det_tasks_settle_soon(tasks);
    return false;
}

void det_permit_leave(struct det_task *task)
{
    det_list_remove(&task->line);
}

void det_permit_return(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;

    det_assert(task->has_permit && tasks->permits_used > 0);
    task->has_permit = false;
    tasks->permits_used--;
    if (task->kind == TASK_FUNCTION)
        tasks->pool_used--;
    if (!det_list_is_empty(&tasks->permit_line) || !det_list_is_empty(&tasks->pool_line))
        det_tasks_settle_soon(tasks);
}

void det_permits_grant(struct det_tasks *tasks)
{
    struct det_task *task;

    while (has_permit_left(tasks) && (task = first_in_line(tasks))) {
        det_list_remove(&task->line);
        /* Its group may have been closed, or a dependency lost, while it stood in line. */
        if (!det_tree_allows(task)) {
            det_actor_hold(task);
            continue;
        }
        take(task);
        det_actor_grant(task);
    }
}
