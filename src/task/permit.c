/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* permit.c - limits concurrent attempts: a line, first come first served.
 *
 * A function needs a thread of the pool beside its permit. The pool grows up to pool_threads; then
 * functions wait, which is published once (POOL_EXHAUSTED) and listed for each. Functions have
 * their own line, so that other tasks do not wait for a thread; of the two heads the earlier one
 * goes first. */
#include "task/registry.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/unset.h"

static void assert_permits(const struct det_tasks *tasks)
{
    const struct permits *permits = &tasks->permits;

    det_assert(permits->pool_used <= permits->used);
    det_assert(permits->pool_used <= permits->pool_size);
    det_assert(permits->pool_size <= tasks->options.pool_threads);
    det_assert(!tasks->options.concurrent_max || permits->used <= tasks->options.concurrent_max);
}

static bool has_permit_left(const struct det_tasks *tasks)
{
    if (det_bus_is_pressed(tasks->bus))
        return false;
    return tasks->options.concurrent_max == 0 ||
           tasks->permits.used < tasks->options.concurrent_max;
}

/* The pool grows on demand. A thread that the system refuses is requested again with the next
 * function that needs it. */
static bool has_thread_left(struct det_tasks *tasks)
{
    if (tasks->permits.pool_used < tasks->permits.pool_size)
        return true;
    if (tasks->permits.pool_size >= tasks->options.pool_threads ||
        !det_pool_grow(tasks->pool, tasks->permits.pool_size + 1))
        return false;
    tasks->permits.pool_size++;
    return true;
}

static struct det_list *line_of(struct det_task *task)
{
    return task->kind == TASK_FUNCTION ? &task->tasks->permits.pool_line
                                       : &task->tasks->permits.line;
}

static void take_permit(struct det_task *task)
{
    det_assert(!task->has_permit && det_list_is_empty(&task->line));
    task->has_permit = true;
    task->tasks->permits.used++;
    if (task->kind == TASK_FUNCTION)
        task->tasks->permits.pool_used++;
    assert_permits(task->tasks);
}

static struct det_task *head_of(struct det_list *line)
{
    return det_list_is_empty(line) ? NULL : DET_CONTAINER(line->next, struct det_task, line);
}

/* The first task that can run; NULL: none. */
static struct det_task *first_in_line(struct det_tasks *tasks)
{
    struct det_task *function = head_of(&tasks->permits.pool_line);
    struct det_task *other = head_of(&tasks->permits.line);

    /* Called only for a waiting function: the pool may grow by it. */
    if (function && !has_thread_left(tasks))
        function = NULL;
    if (!function || !other)
        return function ? function : other;
    /* Tickets wrap around; two of them are never that far apart. */
    return (int32_t)(function->ticket - other->ticket) < 0 ? function : other;
}

struct holders {
    char *text;
    size_t size, used;
    bool are_functions;
};

static int add_holder(struct det_task *task, void *argument)
{
    struct holders *holders = argument;
    size_t left = holders->size - holders->used;
    int length;

    if (!task->has_permit || (holders->are_functions && task->kind != TASK_FUNCTION))
        return 0;
    if (left < strlen(task->name) + sizeof ", , ...") {
        (void)snprintf(holders->text + holders->used, left, ", ...");
        return DET_ERR_LIMIT;
    }
    length = snprintf(
        holders->text + holders->used, left, "%s%s", holders->used ? ", " : "", task->name);
    holders->used += (size_t)length;
    return 0;
}

void det_permit_obstacle(const struct det_task *task, char *target, size_t size)
{
    struct det_tasks *tasks = task->tasks;
    bool is_thread =
        task->kind == TASK_FUNCTION && tasks->permits.pool_used >= tasks->permits.pool_size;
    unsigned used = (unsigned)(is_thread ? tasks->permits.pool_used : tasks->permits.used);
    char names[DET_TASK_REASON_MAX - 64] = "";
    struct holders holders = { .text = names, .size = sizeof names, .are_functions = is_thread };
    const char *of = "";

    if (det_bus_is_pressed(tasks->bus)) {
        (void)snprintf(
            target, size, "subscriber %s, whose queue is full", det_bus_presser(tasks->bus));
        return;
    }
    (void)det_tree_each_task(tasks, add_holder, &holders);
    if (is_thread && tasks->permits.pool_size < tasks->options.pool_threads)
        of = "; the system provides no more threads";
    (void)snprintf(
        target, size,
        is_thread ? "a pool thread: %u of %u %s taken by %s%s"
                  : "a permit: %u of %u %s taken by %s%s",
        used, (unsigned)(is_thread ? tasks->permits.pool_size : tasks->options.concurrent_max),
        det_is_or_are(used), names, of);
}

/* Published once, until no function waits for a thread. */
static void report_exhausted(struct det_task *task)
{
    DET_UNSET struct det_task_event event;
    struct det_tasks *tasks = task->tasks;

    if (tasks->permits.is_pool_exhausted || task->kind != TASK_FUNCTION || has_thread_left(tasks))
        return;
    tasks->permits.is_pool_exhausted = true;
    det_task_event_init(&event, task, DET_TASK_EVENT_POOL_EXHAUSTED);
    det_permit_obstacle(task, event.reason, sizeof event.reason);
    det_tasks_publish(tasks, &event);
}

static void look_exhausted(struct det_tasks *tasks)
{
    if (det_list_is_empty(&tasks->permits.pool_line))
        tasks->permits.is_pool_exhausted = false;
}

bool det_permit_ask(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;
    struct det_list *line = line_of(task);

    det_assert(!task->has_permit && det_list_is_empty(&task->line));
    /* No task overtakes another, not even at the moment when a permit is returned. */
    if (has_permit_left(tasks) && det_list_is_empty(line) && !first_in_line(tasks) &&
        (task->kind != TASK_FUNCTION || has_thread_left(tasks))) {
        take_permit(task);
        return true;
    }
    task->ticket = tasks->permits.next_ticket++;
    det_list_append(line, &task->line);
    report_exhausted(task);
    if (has_permit_left(tasks))
        det_tasks_settle_soon(tasks);
    return false;
}

void det_permit_leave(struct det_task *task)
{
    det_assert(!task->has_permit);
    det_list_remove(&task->line);
    look_exhausted(task->tasks);
}

void det_permit_return(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;

    det_assert(task->has_permit && tasks->permits.used > 0);
    det_assert(task->kind != TASK_FUNCTION || tasks->permits.pool_used > 0);
    task->has_permit = false;
    tasks->permits.used--;
    if (task->kind == TASK_FUNCTION)
        tasks->permits.pool_used--;
    assert_permits(tasks);
    if (!det_list_is_empty(&tasks->permits.line) || !det_list_is_empty(&tasks->permits.pool_line))
        det_tasks_settle_soon(tasks);
}

void det_permits_grant(struct det_tasks *tasks)
{
    struct det_task *task;

    det_assert(tasks->settling.is_running);
    while (has_permit_left(tasks) && !det_bus_is_crowded(tasks->bus) &&
           (task = first_in_line(tasks))) {
        det_list_remove(&task->line);
        /* Its group may have been closed, or a dependency lost, while it waited in line. */
        if (!det_tree_allows(task)) {
            det_actor_hold(task);
            continue;
        }
        take_permit(task);
        det_actor_grant(task);
    }
    look_exhausted(tasks);
}
