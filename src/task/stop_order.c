/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop_order.c - an ordered shutdown: dependents before their dependencies, the members of a group
 * one after the other from the last to the first, and everything else at once.
 *
 * One walk, along dependencies first and then in the order of the tree, finds an order in which all
 * tasks could start; the reverse is the order of stops. Each group at the top has a line of its
 * tasks in that order, and only the first of the line is asked to stop. So whatever the
 * dependencies, across groups or against the order of adding, the first of the remaining tasks
 * never waits, and each task is checked once per neighbour and once per dependency. */
#include "task/task_tree.h"

#include "base/assert.h"

static struct group *top_of(struct group *group)
{
    while (group->parent && group->parent->parent)
        group = group->parent;
    return group;
}

static bool is_needed(const struct anchor *anchor)
{
    return anchor && !det_list_is_empty(&anchor->needs);
}

static bool may_stop(const struct det_task *task)
{
    const struct group *top = top_of(task->group);

    if (is_needed(task->anchor))
        return false;
    for (const struct group *group = task->group; group; group = group->parent)
        if (is_needed(group->anchor))
            return false;
    return !top->parent || top->stop_line.next == &task->turn;
}

static void stop_if_it_may(struct det_task *task)
{
    if (may_stop(task))
        (void)det_task_remove(task);
}

/* The first task in the line of a group at the top. */
static void stop_first(struct group *top)
{
    if (top->parent && !det_list_is_empty(&top->stop_line))
        stop_if_it_may(DET_CONTAINER(top->stop_line.next, struct det_task, turn));
}

/* The walk visits a task after its dependencies, so it is put in front of them. A leaf may be
 * visited several times. */
static void put_in_line(struct det_task *task)
{
    if (det_list_is_empty(&task->turn))
        det_list_prepend(&task->tasks->tree.startable, &task->turn);
}

static void stop_line(struct det_tasks *tasks, struct det_list *line)
{
    struct det_list *node;

    while ((node = det_list_take(line))) {
        struct det_task *task = DET_CONTAINER(node, struct det_task, turn);
        struct group *top = top_of(task->group);

        if (top->parent)
            det_list_append(&top->stop_line, &task->turn);
        else
            stop_if_it_may(task);
    }
    DET_LIST_EACH(place, &tasks->tree.groups)
    stop_first(top_of(DET_CONTAINER(place, struct group, all)));
}

void det_tree_stop_all(struct det_tasks *tasks)
{
    if (tasks->tree.is_stopping)
        return;
    det_assert(!det_tasks_is_open(tasks));
    tasks->tree.is_stopping = true;
    while (det_list_take(&tasks->tree.startable))
        continue;
    (void)det_walk(&(struct walk){ .tasks = tasks, .leave = put_in_line }, &tasks->tree.root->node);
    stop_line(tasks, &tasks->tree.startable);
}

void det_stop_left(struct det_task *task)
{
    if (task->tasks->tree.is_stopping)
        stop_first(top_of(task->group));
}

void det_stop_unneeded(struct anchor *anchor)
{
    if (!anchor->tasks->tree.is_stopping)
        return;
    if (anchor->task)
        stop_if_it_may(anchor->task);
    else if (anchor->group)
        stop_first(top_of(anchor->group));
}

static int stop_one(struct det_task *task, void *argument)
{
    (void)argument;
    (void)det_task_remove(task);
    return 0;
}

void det_tree_stop_at_once(struct det_tasks *tasks)
{
    tasks->tree.is_stopping = true;
    (void)det_tree_each_task(tasks, stop_one, NULL);
}
