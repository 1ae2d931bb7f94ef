/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_list.c - lists tasks, as one step on the loop, so that the list is consistent. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/registry.h"

struct reading {
    det_task_id id;
    int (*each)(void *user, const struct det_task_info *info);
    void *user;
    struct det_tasks_counts counts;
    /* The texts of waiting tasks: the holders are determined once for all of them. */
    char obstacles[2][DET_TASK_REASON_MAX + 1];
};

/* The running attempt, if any, is not the last ended one. */
static struct det_task_end last_end(const struct det_task *task)
{
    const struct attempt_end *last = &task->attempts.last;

    return (struct det_task_end){
        .id = task->node.id,
        .outcome = task->attempts.has_last ? det_attempt_outcome(last) : DET_TASK_OUTCOME_NONE,
        .attempts = task->attempts.number,
        .restarts = task->attempts.restarts,
        .exit_code = last->exit_code,
        .has_exit_code = last->has_exit_code,
        .signal = last->signal,
    };
}

static const char *kind_name(const struct det_task *task)
{
    static const char *const names[] = {
        [TASK_FUNCTION] = "function", [TASK_STEP] = "step", [TASK_PROCESS] = "process"
    };

    return names[task->kind];
}

static const char *obstacle_of(const struct det_task *task, struct reading *reading)
{
    char *text = reading->obstacles[task->kind == TASK_FUNCTION];

    if (!task->is_registered)
        return NULL;
    if (det_actor_is_held(task))
        return det_tree_obstacle(task);
    if (!det_actor_is_waiting(task))
        return NULL;
    if (!*text)
        det_permit_obstacle(task, text, sizeof reading->obstacles[0]);
    return text;
}

static int show(struct det_task *task, struct reading *reading)
{
    struct det_tasks *tasks = task->tasks;
    bool is_root = task->group == tasks->tree.root;
    struct det_task_info info = {
        .id = task->node.id,
        .name = task->name,
        .group = is_root ? NULL : det_group_name(task->group),
        .slot = task->slot ? det_slot_name(task->slot) : NULL,
        .kind = kind_name(task),
        .state = det_actor_state(task),
        .waits_for = obstacle_of(task, reading),
        .reason = task->reason ? task->reason : "",
        .is_ready = task->is_ready,
        .is_healthy = task->is_healthy,
        .is_removing = task->is_removing,
        .is_on_hold = task->is_on_hold,
        .attempt = task->attempts.number,
        .failures = task->attempts.failures,
        .restarts = task->attempts.restarts,
        .since = det_tasks_wall_of(tasks, task->times.since),
        .next_at = det_actor_is_paused(task) ? det_plan_next_wall(task) : 0,
        .process = det_attempt_process(task),
        .last = last_end(task),
    };

    return reading->each(reading->user, &info);
}

static int by_id(const void *a, const void *b)
{
    struct det_task *const *x = a, *const *y = b;

    return ((*x)->node.id > (*y)->node.id) - ((*x)->node.id < (*y)->node.id);
}

static int inspect_all(struct det_tasks *tasks, void *argument)
{
    struct reading *reading = argument;
    size_t count = tasks->index.ids.count, n = 0;
    struct det_task **all;
    int r = 0;

    all = DET_NEW_ARRAY(tasks->allocator, count, struct det_task *);
    if (!all)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < tasks->index.ids.capacity; i++)
        for (struct det_id_node *node = tasks->index.ids.chains[i]; node; node = node->next)
            all[n++] = DET_CONTAINER(node, struct det_task, node);
    qsort(all, n, sizeof(struct det_task *), by_id);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = show(all[i], reading);
    DET_DELETE_ARRAY(tasks->allocator, all, count);
    return r < 0 ? r : 0;
}

int det_tasks_each(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_info *info), void *user)
{
    struct reading reading = { .each = each, .user = user };

    return det_tasks_call(tasks, true, inspect_all, &reading);
}

static int inspect_one(struct det_tasks *tasks, void *argument)
{
    struct reading *reading = argument;
    struct det_task *task = det_task_find(tasks, reading->id);

    return task ? show(task, reading) : DET_ERR_NOT_FOUND;
}

int det_tasks_get(
    struct det_tasks *tasks, det_task_id id,
    int (*each)(void *user, const struct det_task_info *info), void *user)
{
    struct reading reading = { .id = id, .each = each, .user = user };

    return det_tasks_call(tasks, true, inspect_one, &reading);
}

static int inspect_counts(struct det_tasks *tasks, void *argument)
{
    struct reading *reading = argument;

    reading->counts = tasks->counts;
    reading->counts.registered = tasks->index.registered;
    reading->counts.queued = tasks->index.queued;
    reading->counts.events_lost = det_bus_lost(tasks->bus);
    return det_tree_each_task(tasks, det_actor_count, &reading->counts);
}

struct det_tasks_counts det_tasks_counts(struct det_tasks *tasks)
{
    struct reading reading = { .each = NULL };
    int r;

    r = det_tasks_call(tasks, true, inspect_counts, &reading);
    (void)r;
    return reading.counts;
}
