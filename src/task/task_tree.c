/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_tree.c - which tasks may run: a task starts when the groups above it are open and its
 * dependencies are met.
 *
 * An event that may let a task start puts the task on the list `startable`, and settle() checks it
 * once; there is no scan over all tasks. These events are: its admission, the release of a group,
 * and a dependency that improves. A task that is held for one of these reasons gets the next such
 * event. */
#include "task/task_tree.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"

void det_tree_init(struct det_tasks *tasks)
{
    det_list_init(&tasks->tree.groups);
    det_list_init(&tasks->tree.startable);
    det_list_init(&tasks->checks.loose);
    det_map_init(
        &tasks->tree.group_names, tasks->allocator, det_tasks_chance(tasks),
        offsetof(struct group, name));
    det_map_init(
        &tasks->tree.anchors, tasks->allocator, det_tasks_chance(tasks),
        offsetof(struct anchor, name));
}

int det_tree_open(struct det_tasks *tasks)
{
    tasks->tree.root = DET_NEW(tasks->allocator, struct group);
    if (!tasks->tree.root)
        return DET_ERR_NO_MEMORY;
    tasks->tree.root->tasks = tasks;
    tasks->tree.root->node.is_group = true;
    det_list_init(&tasks->tree.root->members);
    return 0;
}

void det_tree_close(struct det_tasks *tasks)
{
    struct det_list *node;

    det_checks_close(tasks);
    while ((node = det_list_take(&tasks->tree.groups)))
        det_group_free(DET_CONTAINER(node, struct group, all));
    if (tasks->tree.root)
        DET_DELETE(tasks->allocator, tasks->tree.root);
    det_map_deinit(&tasks->tree.group_names);
    det_map_deinit(&tasks->tree.anchors);
}

struct group *det_group_find(struct det_tasks *tasks, const char *name)
{
    return det_map_get(&tasks->tree.group_names, name);
}

const char *det_group_name(const struct group *group)
{
    return group->name;
}

/* The conditions of a task that others may wait for. */

static uint8_t standing_of(const struct det_task *task)
{
    unsigned standing = task->attempts.has_succeeded ? 1u << DET_WHEN_COMPLETED : 0;

    if (!det_actor_is_running(task))
        return (uint8_t)standing;
    standing |= 1u << DET_WHEN_RUNNING;
    if (task->is_ready && task->is_healthy)
        standing |= 1u << DET_WHEN_HEALTHY;
    return (uint8_t)standing;
}

/* Invariant 2 of task_tree.h: the counts do not exceed the number of tasks. */
static void assert_group(const struct group *group)
{
    for (unsigned i = 0; i < STANDINGS; i++)
        det_assert(group->standing[i] <= group->task_count);
    det_assert(group->depth > 0 && group->depth <= DET_TASK_GROUP_DEPTH_MAX);
}

static void count_standing(struct group *group, unsigned before, unsigned now)
{
    for (unsigned i = 0; i < STANDINGS; i++)
        group->standing[i] = group->standing[i] + (now >> i & 1u) - (before >> i & 1u);
}

/* The root is not a dependency, and has no counts. */
static void set_standing(struct det_task *task, uint8_t standing)
{
    for (struct group *group = task->group; group->parent; group = group->parent) {
        count_standing(group, task->standing, standing);
        assert_group(group);
    }
    task->standing = standing;
}

static void report_groups_above(const struct det_task *task)
{
    for (const struct group *group = task->group; group->parent; group = group->parent)
        if (group->anchor)
            det_anchor_changed(group->anchor);
}

void det_tree_changed(struct det_task *task)
{
    uint8_t before = task->standing, now = standing_of(task);

    if (now == before)
        return;
    set_standing(task, now);
    if (!(now & ~before))
        return;
    if (task->anchor)
        det_anchor_changed(task->anchor);
    report_groups_above(task);
}

void det_tree_attempt_closed(struct det_task *task)
{
    if (task->attempts.ended.result == ATTEMPT_SUCCEEDED && !task->attempts.is_stopped)
        task->attempts.has_succeeded = true;
    det_tree_changed(task);
}

void det_tree_attempt_failed(struct det_task *task)
{
    det_group_member_failed(task->group, &task->member, task->reason ? task->reason : "failed");
}

void det_tree_held(struct det_task *task)
{
    det_group_member_held(task->group);
}

/* Joining and leaving. */

static void enter_groups(struct det_task *task)
{
    struct group *group = task->group;

    det_assert(task->standing == 0 && det_list_is_empty(&task->member.siblings));
    task->member.order = ++group->next_order;
    det_list_append(&group->members, &task->member.siblings);
    group->member_count++;
    for (; group->parent; group = group->parent) {
        group->task_count++;
        group->joined_count++;
    }
}

/* Skips a task that was never announced. */
static void leave_groups(struct det_task *task)
{
    struct group *group = task->group;
    bool was_there = task->attempts.outcome != DET_TASK_OUTCOME_NONE;

    set_standing(task, 0);
    det_group_member_leaves(group, &task->member);
    det_assert(group->member_count > 0);
    det_list_remove(&task->member.siblings);
    group->member_count--;
    for (; group->parent; group = group->parent) {
        det_assert(group->task_count > 0 && (was_there || group->joined_count > 0));
        group->task_count--;
        group->joined_count -= !was_there;
        group->has_lost |= was_there && task->attempts.outcome != DET_TASK_OUTCOME_COMPLETED;
    }
}

static int check_group(const struct det_task *task, struct det_error *reterr)
{
    for (const struct group *group = task->group; group->parent; group = group->parent)
        if (det_group_has_failed(group))
            return det_error_set(
                reterr, DET_ERR_CLOSED, "task %s: group %s has failed: %s", task->name, group->name,
                group->reason);
    return 0;
}

int det_tree_join(struct det_task *task, struct det_error *reterr)
{
    int r;

    r = check_group(task, reterr);
    if (r < 0)
        return r;
    enter_groups(task);
    det_anchor_attach(task->tasks, task, NULL);
    r = det_needs_open(task, reterr);
    if (r < 0)
        det_tree_leave(task);
    else
        det_tree_inspect(task);
    return r;
}

void det_tree_leave(struct det_task *task)
{
    enum det_task_outcome outcome = (enum det_task_outcome)task->attempts.outcome;

    if (det_list_is_empty(&task->member.siblings))
        return;
    det_needs_close(task);
    leave_groups(task);
    det_list_remove(&task->turn);
    if (task->anchor)
        det_anchor_detach(task->anchor, outcome == DET_TASK_OUTCOME_COMPLETED);
    report_groups_above(task);
    if (outcome == DET_TASK_OUTCOME_FAILED || outcome == DET_TASK_OUTCOME_FATAL)
        det_group_member_lost(task->group, &task->member, task->reason ? task->reason : "failed");
    det_stop_left(task);
}

/* Permission to start. */

/* The first group above it that is not open for it; NULL: all are. */
static const struct group *closed_group(const struct det_task *task)
{
    const struct member *member = &task->member;

    for (const struct group *group = task->group; group; group = group->parent) {
        if (!det_group_is_open_for(group, member))
            return group;
        member = &group->member;
    }
    return NULL;
}

bool det_tree_allows(const struct det_task *task)
{
    return det_tasks_is_open(task->tasks) && !task->is_on_hold && !closed_group(task) &&
           !det_needs_unmet(task);
}

const char *det_tree_obstacle(const struct det_task *task)
{
    char *text = task->tasks->obstacle;
    const size_t size = sizeof task->tasks->obstacle;
    const struct group *group = closed_group(task);
    const struct need *need;

    if (task->is_on_hold)
        return "stopped manually";
    if (group) {
        snprintf(text, size, "group %s: %s", group->name, det_group_state(group));
        return text;
    }
    need = det_needs_unmet(task);
    if (!need)
        return NULL;
    snprintf(text, size, "%s: %s", need->anchor->name, det_need_text(need));
    return text;
}

void det_tree_inspect(struct det_task *task)
{
    if (task->tasks->tree.is_stopping || !det_list_is_empty(&task->turn))
        return;
    det_list_append(&task->tasks->tree.startable, &task->turn);
    det_tasks_settle_soon(task->tasks);
}

void det_tree_resume(struct det_task *task)
{
    det_assert(task->is_registered);
    task->is_on_hold = false;
    if (!det_actor_is_held(task))
        return;
    task->attempts.failures = 0;
    task->times.delay = 0;
    task->attempts.restarts++;
    task->tasks->counts.restarts++;
    task->times.deadline = det_loop_now(task->tasks->loop);
    det_tree_inspect(task);
}

void det_tree_settle(struct det_tasks *tasks)
{
    struct det_list *node;

    det_assert(tasks->settling.is_running);
    while (!det_bus_is_crowded(tasks->bus) && (node = det_list_take(&tasks->tree.startable))) {
        struct det_task *task = DET_CONTAINER(node, struct det_task, turn);

        if (det_actor_is_held(task) && det_tree_allows(task))
            det_actor_release(task);
    }
}

/* Walks through the tree without recursion: down into `group` if requested, and up again at its
 * end. */
struct place {
    const struct group *top;
    struct group *group;
    struct det_list *node;
};

static struct place place_in(struct group *group)
{
    return (struct place){ .top = group, .group = group, .node = group->members.next };
}

static void go_down(struct place *place, struct group *group)
{
    place->group = group;
    place->node = group->members.next;
}

/* The member at this place, which then moves to the next one; NULL at the end. */
static struct member *take_member(struct place *place)
{
    struct member *member;

    while (place->node == &place->group->members) {
        if (place->group == place->top)
            return NULL;
        place->node = place->group->member.siblings.next;
        place->group = place->group->parent;
    }
    member = member_at(place->node);
    place->node = place->node->next;
    return member;
}

void det_tree_release_members(struct group *group, uint64_t from)
{
    struct place place = place_in(group);
    struct member *member;

    while ((member = take_member(&place))) {
        if (place.group == group && member->order < from)
            continue;
        if (!member->is_group)
            det_tree_inspect(task_of_member(member));
        else if (det_group_release(group_of_member(member)))
            go_down(&place, group_of_member(member));
    }
}

int det_tree_each_below(
    struct group *group, int (*each)(struct det_task *task, void *argument), void *argument)
{
    struct place place = place_in(group);
    struct member *member;
    int r = 0;

    while (r >= 0 && (member = take_member(&place))) {
        if (member->is_group)
            go_down(&place, group_of_member(member));
        else
            r = each(task_of_member(member), argument);
    }
    return r < 0 ? r : 0;
}

int det_tree_each_task(
    struct det_tasks *tasks, int (*each)(struct det_task *task, void *argument), void *argument)
{
    return det_tree_each_below(tasks->tree.root, each, argument);
}
