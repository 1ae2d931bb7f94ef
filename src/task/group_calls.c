/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group_calls.c - requests about groups, each executed as one step on the loop: add, stop, start,
 * list. */
#include <detent/driver/policy.h>
#include <string.h>

#include "base/memory.h"
#include "base/reserved.h"
#include "task/task_tree.h"

struct add_group {
    const struct det_task_group_spec *spec;
    struct det_error *reterr;
};

static size_t size_of_group(const char *name)
{
    return sizeof(struct group) + strlen(name) + 1;
}

void det_group_free(struct group *group)
{
    struct det_tasks *tasks = group->tasks;

    if (det_component_is_supervised(&group->component))
        det_component_forget(&group->component);
    det_intensity_close(group->window);
    det_free(tasks->allocator, group, size_of_group(group->name));
}

static int check_name(
    struct det_tasks *tasks, const struct det_task_group_spec *spec, struct det_error *reterr)
{
    int r;

    r = det_name_check("group", spec->name, reterr);
    if (r < 0)
        return r;
    if (!det_tasks_is_open(tasks))
        return det_error_set(
            reterr, DET_ERR_CLOSED, "group %s: the supervisor is shutting down", spec->name);
    if (det_map_get(&tasks->index.names, spec->name))
        return det_error_set(reterr, DET_ERR_EXISTS, "group %s: a task has this name", spec->name);
    if (det_group_find(tasks, spec->name))
        return det_error_set(reterr, DET_ERR_EXISTS, "group %s already exists", spec->name);
    if ((unsigned)spec->strategy > DET_STRATEGY_REST_FOR_ONE)
        return det_error_set(
            reterr, DET_ERR_INVALID, "group %s: the strategy %u is unknown", spec->name,
            (unsigned)spec->strategy);
    return det_reserved_check(spec->reserved, "a group", reterr);
}

static struct group *new_group(struct group *parent, const struct det_task_group_spec *spec)
{
    struct det_tasks *tasks = parent->tasks;
    struct group *group = det_alloc_zero(tasks->allocator, size_of_group(spec->name));

    if (!group)
        return NULL;
    group->name = memcpy(group + 1, spec->name, strlen(spec->name) + 1);
    group->tasks = tasks;
    group->parent = parent;
    group->depth = parent->depth + 1;
    group->strategy = spec->strategy;
    group->intensity.count = spec->intensity.count ? spec->intensity.count : 5;
    group->intensity.window = spec->intensity.window ? spec->intensity.window : 10 * DET_SECOND;
    group->node.is_group = group->member.is_group = true;
    det_list_init(&group->member.siblings);
    det_list_init(&group->all);
    det_list_init(&group->members);
    det_list_init(&group->stop_line);
    group->cursor = &group->members;
    return group;
}

/* All operations that may fail. */
static int prepare(struct group *group, struct det_error *reterr)
{
    struct det_tasks *tasks = group->tasks;
    int r;

    r = det_intensity_open(&group->intensity, tasks->allocator, &group->window, reterr);
    if (r < 0)
        return r;
    r = det_group_start(group, reterr);
    if (r < 0)
        return r;
    r = det_map_put(&tasks->tree.group_names, group);
    return r < 0 ? det_error_set(reterr, r, "group %s: out of memory", group->name) : 0;
}

static int add_below(struct group *parent, const struct add_group *add)
{
    struct det_tasks *tasks = parent->tasks;
    struct group *group = new_group(parent, add->spec);
    int r;

    if (!group)
        return det_error_set(
            add->reterr, DET_ERR_NO_MEMORY, "group %s: out of memory", add->spec->name);
    r = prepare(group, add->reterr);
    if (r < 0) {
        det_group_free(group);
        return r;
    }
    group->member.order = ++parent->next_order;
    parent->member_count++;
    det_list_append(&parent->members, &group->member.siblings);
    det_list_append(&tasks->tree.groups, &group->all);
    det_anchor_attach(tasks, NULL, group);
    (void)det_group_release(group);
    return 0;
}

static int add_group(struct det_tasks *tasks, void *argument)
{
    const struct add_group *add = argument;
    const struct det_task_group_spec *spec = add->spec;
    struct group *parent;
    int r;

    r = check_name(tasks, spec, add->reterr);
    if (r < 0)
        return r;
    parent = spec->parent ? det_group_find(tasks, spec->parent) : tasks->tree.root;
    if (!parent)
        return det_error_set(
            add->reterr, DET_ERR_NOT_FOUND, "group %s: the group %s does not exist; add it first",
            spec->name, spec->parent);
    if (parent->depth >= DET_TASK_GROUP_DEPTH_MAX)
        return det_error_set(
            add->reterr, DET_ERR_LIMIT, "group %s: groups are at most %d deep", spec->name,
            DET_TASK_GROUP_DEPTH_MAX);
    return add_below(parent, add);
}

int det_tasks_add_group(
    struct det_tasks *tasks, const struct det_task_group_spec *spec, struct det_error *reterr)
{
    struct add_group add = { .spec = spec, .reterr = reterr };

    return det_tasks_call(tasks, true, add_group, &add);
}

struct by_name {
    const char *name;
    void (*run)(struct group *group);
};

static int run_by_name(struct det_tasks *tasks, void *argument)
{
    const struct by_name *call = argument;
    struct group *group = call->name ? det_group_find(tasks, call->name) : NULL;

    if (!group)
        return 0;
    call->run(group);
    return 1;
}

int det_tasks_group_cancel(struct det_tasks *tasks, const char *group)
{
    struct by_name call = { .name = group, .run = det_group_stop };

    return det_tasks_call(tasks, true, run_by_name, &call);
}

int det_tasks_group_start(struct det_tasks *tasks, const char *group)
{
    struct by_name call = { .name = group, .run = det_group_go };

    return det_tasks_call(tasks, true, run_by_name, &call);
}

struct reading {
    int (*each)(void *user, const struct det_task_group_info *info);
    void *user;
};

static int show(const struct group *group, const struct reading *reading)
{
    struct det_task_group_info info = {
        .name = group->name,
        .parent = group->parent->name,
        .strategy = group->strategy,
        .state = det_group_state(group),
        .members = group->member_count,
        .restarts = det_intensity_count(group->window, det_loop_now(group->tasks->loop)),
        .restarts_max = group->intensity.count,
        .window = group->intensity.window,
        .reason = group->reason,
    };

    return reading->each(reading->user, &info);
}

static int inspect_groups(struct det_tasks *tasks, void *argument)
{
    int r = 0;

    for (struct det_list *node = tasks->tree.groups.next; node != &tasks->tree.groups && r >= 0;
         node = node->next)
        r = show(DET_CONTAINER(node, struct group, all), argument);
    return r < 0 ? r : 0;
}

int det_tasks_each_group(
    struct det_tasks *tasks, int (*each)(void *user, const struct det_task_group_info *info),
    void *user)
{
    struct reading reading = { .each = each, .user = user };

    return det_tasks_call(tasks, true, inspect_groups, &reading);
}
