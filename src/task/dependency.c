/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dependency.c - dependencies of tasks: needs, and the anchors that they refer to.
 *
 * A dependency is by name. It is checked only when its task is about to start: a running task
 * continues when its dependency stops. A task that has completed permanently meets every condition,
 * and is remembered as long as another task depends on it. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "task/task_tree.h"

/* Anchors. */

static size_t size_of_anchor(const char *name)
{
    return sizeof(struct anchor) + strlen(name) + 1;
}

static struct anchor *make_anchor(struct det_tasks *tasks, const char *name)
{
    struct anchor *anchor = det_alloc_zero(tasks->allocator, size_of_anchor(name));

    if (!anchor)
        return NULL;
    anchor->name = memcpy(anchor + 1, name, strlen(name) + 1);
    anchor->tasks = tasks;
    det_list_init(&anchor->needs);
    if (det_map_put(&tasks->tree.anchors, anchor) < 0) {
        det_free(tasks->allocator, anchor, size_of_anchor(name));
        return NULL;
    }
    return anchor;
}

/* An anchor belongs to a task or to a group, never to both, and they refer to each other. */
static void assert_anchor(const struct anchor *anchor)
{
    det_assert(!anchor->task || !anchor->group);
    det_assert(!anchor->task || anchor->task->anchor == anchor);
    det_assert(!anchor->group || anchor->group->anchor == anchor);
}

static void free_anchor(struct anchor *anchor)
{
    struct det_tasks *tasks = anchor->tasks;

    assert_anchor(anchor);
    det_assert(det_list_is_empty(&anchor->needs));
    if (anchor->task)
        anchor->task->anchor = NULL;
    if (anchor->group)
        anchor->group->anchor = NULL;
    (void)det_map_remove(&tasks->tree.anchors, anchor->name);
    det_free(tasks->allocator, anchor, size_of_anchor(anchor->name));
}

void det_anchor_attach(struct det_tasks *tasks, struct det_task *task, struct group *group)
{
    struct anchor *anchor;

    if (tasks->tree.anchors.count == 0)
        return;
    anchor = det_map_get(&tasks->tree.anchors, task ? task->name : group->name);
    if (!anchor)
        return;
    anchor->task = task;
    anchor->group = group;
    if (task)
        task->anchor = anchor;
    else
        group->anchor = anchor;
    assert_anchor(anchor);
}

void det_anchor_detach(struct anchor *anchor, bool has_completed)
{
    assert_anchor(anchor);
    det_assert(anchor->task && !det_list_is_empty(&anchor->needs));
    anchor->task->anchor = NULL;
    anchor->task = NULL;
    anchor->has_completed |= has_completed;
    det_anchor_changed(anchor);
}

/* Binds the name to its current task or group. */
static void bind(struct anchor *anchor)
{
    struct det_tasks *tasks = anchor->tasks;
    struct det_task *task = det_map_get(&tasks->index.names, anchor->name);
    struct group *group = task ? NULL : det_group_find(tasks, anchor->name);

    /* A task of the same batch that has not joined yet takes the anchor when it joins. */
    if (task && !det_list_is_empty(&task->member.siblings))
        det_anchor_attach(tasks, task, NULL);
    else if (group)
        det_anchor_attach(tasks, NULL, group);
}

/* Evaluation. */

static bool group_stands(const struct group *group, enum det_condition_kind when)
{
    if (group->joined_count == 0)
        return false;
    if (group->task_count == 0 || when == DET_WHEN_COMPLETED)
        return !group->has_lost && group->standing[when] == group->task_count;
    return group->standing[when] == group->task_count;
}

static bool is_met(const struct need *need)
{
    const struct anchor *anchor = need->anchor;

    if (anchor->has_completed)
        return true;
    if (anchor->group)
        return group_stands(anchor->group, need->when);
    return anchor->task && anchor->task->standing & (1u << need->when);
}

static int inspect_dependency(struct det_tasks *tasks, void *argument)
{
    const struct det_dependency *dependency = argument;
    const struct anchor *anchor = det_map_get(&tasks->tree.anchors, dependency->name);
    const struct det_task *task = det_map_get(&tasks->index.names, dependency->name);
    const struct group *group = det_group_find(tasks, dependency->name);

    if ((unsigned)dependency->when >= STANDINGS)
        return 0;
    if (anchor && anchor->has_completed)
        return 1;
    if (group)
        return group_stands(group, dependency->when);
    return task && task->standing & (1u << dependency->when);
}

int det_tasks_is_met(struct det_tasks *tasks, const struct det_dependency *dependency)
{
    struct det_dependency copy = *dependency;

    return det_tasks_call(tasks, true, inspect_dependency, &copy);
}

void det_anchor_changed(struct anchor *anchor)
{
    DET_LIST_EACH(node, &anchor->needs)
    {
        struct need *need = DET_CONTAINER(node, struct need, others);

        if (is_met(need))
            det_tree_inspect(need->task);
    }
}

const struct need *det_needs_unmet(const struct det_task *task)
{
    const struct needs *needs = task->extras ? task->extras->needs : NULL;

    for (size_t i = 0; needs && i < needs->count; i++)
        if (!is_met(&needs->list[i]))
            return &needs->list[i];
    return NULL;
}

const char *det_need_text(const struct need *need)
{
    static const char *const texts[STANDINGS] = {
        [DET_WHEN_RUNNING] = "not running yet",
        [DET_WHEN_HEALTHY] = "not healthy yet",
        [DET_WHEN_COMPLETED] = "not completed yet",
    };
    const struct anchor *anchor = need->anchor;

    if (!anchor->task && !anchor->group)
        return "no longer exists";
    if (anchor->task && anchor->task->is_on_hold)
        return "stopped manually";
    if (anchor->group && anchor->group->joined_count == 0)
        return "has no tasks yet";
    return texts[need->when];
}

/* Cycles. */

/* Reverses the path from the goal that the walk has left. */
static void turn_around(struct node *goal)
{
    struct node *to = goal, *at = goal->from;

    while (at != goal) {
        struct node *before = at->from;

        at->from = to;
        to = at;
        at = before;
    }
    goal->from = to;
}

static int report_cycle(struct det_task *task, struct det_error *reterr)
{
    struct node *goal = &task->extras->needs->node;
    char path[DET_ERROR_TEXT_MAX];
    size_t used;

    turn_around(goal);
    used = (size_t)snprintf(path, sizeof path, "%s", task->name);
    for (struct node *node = goal->from; used < sizeof path; node = node->from) {
        used += (size_t)snprintf(path + used, sizeof path - used, " -> %s", det_node_name(node));
        if (node == goal)
            break;
    }
    return det_error_set(
        reterr, DET_ERR_INVALID, "task %s depends on itself: %s", task->name, path);
}

/* A task without dependents cannot be part of a cycle: no walk is needed. */
static bool is_needed(const struct det_task *task)
{
    if (task->anchor)
        return true;
    for (const struct group *group = task->group; group; group = group->parent)
        if (group->anchor)
            return true;
    return false;
}

static int check_cycle(struct det_task *task, struct det_error *reterr)
{
    struct node *node = &task->extras->needs->node;

    if (!is_needed(task) || !det_walk(&(struct walk){ .tasks = task->tasks, .goal = node }, node))
        return 0;
    return report_cycle(task, reterr);
}

/* Needs. */

static bool is_known(struct det_tasks *tasks, const char *name)
{
    const struct anchor *anchor = det_map_get(&tasks->tree.anchors, name);

    return (anchor && anchor->has_completed) || det_map_get(&tasks->index.names, name) ||
           det_group_find(tasks, name);
}

static int open_need(
    struct need *need, const struct det_dependency *dependency, struct det_error *reterr)
{
    struct det_task *task = need->task;
    struct det_tasks *tasks = task->tasks;

    if (!dependency->name || !is_known(tasks, dependency->name))
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "task %s depends on %s, which does not exist; add it first, or in the same batch",
            task->name, dependency->name ? dependency->name : "no name");
    if ((unsigned)dependency->when >= STANDINGS)
        return det_error_set(
            reterr, DET_ERR_INVALID, "task %s depends on %s by an unknown condition", task->name,
            dependency->name);
    need->anchor = det_map_get(&tasks->tree.anchors, dependency->name);
    if (!need->anchor) {
        need->anchor = make_anchor(tasks, dependency->name);
        if (!need->anchor)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "task %s: out of memory", task->name);
        bind(need->anchor);
    }
    need->when = dependency->when;
    det_list_append(&need->anchor->needs, &need->others);
    return 0;
}

static struct needs *make_needs(struct det_task *task)
{
    struct task_extras *extras = task->extras;
    struct needs *needs;

    needs = det_arena_alloc(
        &extras->arena, sizeof *needs + extras->depends_on_count * sizeof needs->list[0]);
    if (needs)
        needs->task = task;
    return needs;
}

int det_needs_open(struct det_task *task, struct det_error *reterr)
{
    struct task_extras *extras = task->extras;
    int r = 0;

    if (!extras || extras->depends_on_count == 0)
        return 0;
    extras->needs = make_needs(task);
    if (!extras->needs)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "task %s: out of memory", task->name);
    for (size_t i = 0; i < extras->depends_on_count && r == 0; i++) {
        extras->needs->list[i].task = task;
        r = open_need(&extras->needs->list[i], &extras->depends_on[i], reterr);
        extras->needs->count += r == 0;
    }
    if (r == 0)
        r = check_cycle(task, reterr);
    if (r < 0)
        det_needs_close(task);
    return r;
}

static void close_need(struct need *need)
{
    struct anchor *anchor = need->anchor;

    det_list_remove(&need->others);
    if (!det_list_is_empty(&anchor->needs))
        return;
    det_stop_unneeded(anchor);
    free_anchor(anchor);
}

void det_needs_close(struct det_task *task)
{
    struct needs *needs = task->extras ? task->extras->needs : NULL;

    if (!needs)
        return;
    task->extras->needs = NULL;
    for (size_t i = 0; i < needs->count; i++)
        close_need(&needs->list[i]);
}
