/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tree.c - who may run: groups, dependencies, readiness. */
#include "base/assert.h"
#include "base/memory.h"
#include "task/registry.h"

struct group {
    const char *name;
    struct det_list members; /* tasks, by `siblings` */
};

int det_tree_open(struct det_tasks *tasks)
{
    tasks->root = DET_NEW(tasks->allocator, struct group);
    if (!tasks->root)
        return DET_ERR_NO_MEMORY;
    det_list_init(&tasks->root->members);
    return 0;
}

void det_tree_close(struct det_tasks *tasks)
{
    if (tasks->root)
        DET_DELETE(tasks->allocator, tasks->root);
}

struct group *det_group_find(struct det_tasks *tasks, const char *name)
{
    (void)tasks;
    (void)name;
    return NULL;
}

const char *det_group_name(const struct group *group)
{
    return group->name;
}

int det_tree_join(struct det_task *task, struct det_error *reterr)
{
    (void)reterr;
    det_list_append(&task->group->members, &task->siblings);
    return 0;
}

void det_tree_leave(struct det_task *task)
{
    det_list_remove(&task->siblings);
}

bool det_tree_allows(const struct det_task *task)
{
    return det_tasks_is_open(task->tasks);
}

const char *det_tree_obstacle(const struct det_task *task)
{
    (void)task;
    return NULL;
}

void det_tree_attempt_started(struct det_task *task)
{
    task->is_ready = true;
}

void det_tree_ready(struct det_task *task)
{
    task->is_ready = true;
}

void det_tree_attempt_failed(struct det_task *task)
{
    (void)task;
}

void det_tree_attempt_closed(struct det_task *task)
{
    (void)task;
}

int det_tree_each_task(
    struct det_tasks *tasks, int (*each)(struct det_task *task, void *argument), void *argument)
{
    struct det_list *head = &tasks->root->members, *next;
    int r = 0;

    for (struct det_list *node = head->next; node != head && r >= 0; node = next) {
        next = node->next;
        r = each(DET_CONTAINER(node, struct det_task, siblings), argument);
    }
    return r < 0 ? r : 0;
}

static int release(struct det_task *task, void *argument)
{
    (void)argument;
    if (det_actor_is_held(task) && det_tree_allows(task))
        det_actor_release(task);
    return 0;
}

void det_tree_settle(struct det_tasks *tasks)
{
    if (!tasks->tree_dirty)
        return;
    tasks->tree_dirty = false;
    (void)det_tree_each_task(tasks, release, NULL);
}

static int stop(struct det_task *task, void *argument)
{
    (void)argument;
    (void)det_task_remove(task);
    return 0;
}

void det_tree_stop_all(struct det_tasks *tasks)
{
    (void)det_tree_each_task(tasks, stop, NULL);
}

void det_tree_stop_at_once(struct det_tasks *tasks)
{
    det_tree_stop_all(tasks);
}

int det_checks_start(struct det_task *task)
{
    (void)task;
    return 0;
}

void det_checks_stop(struct det_task *task)
{
    (void)task;
}
