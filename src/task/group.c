/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* group.c - a group of tasks: the functions that group.fsm names.
 *
 *                 failure                swept                 resume
 *     running -------------> restarting -------> paused ------------------> running
 *        |  exhaust             swept               due
 *        +----------> failing -------> backoff -------------------> running   (within a group)
 *        |                    \------> failed: the tasks end as failed        (at the top)
 *        |  stop, hold          swept
 *        +----------> stopping ------> stopped
 *
 * A sweep holds the members from the last to the first, each after the one before is held. It
 * continues in separate turns, whenever a member reports that it is held or has left.
 *
 * Invariants, checked by group_is_sound()
 *   1. the cursor points to a member or to the head of the list;
 *   2. a culprit is set only during a restart, whose scope includes it. */
#include <detent/driver/policy.h>

#include "task/task_tree.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"

#define FSM_LOCAL
#define FSM_SPEC "task/group.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "task/group.fsm"
#include <detent/fsm/define.h>

/* A late event is harmless. */
static void offer(struct group *group, struct group_event event)
{
    int r;

    if (!det_component_is_supervised(&group->component))
        return;
    r = group_offer(group, event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_NO_MEMORY);
}

static enum group_state state_of(const struct group *group)
{
    return (enum group_state)det_component_state(&group->component);
}

static void publish(struct group *group, enum det_task_event_kind kind)
{
    struct det_task_event event = { .kind = kind };

    det_event_set_text(event.name, sizeof event.name, group->name);
    if (kind == DET_TASK_EVENT_GROUP_FAILED || kind == DET_TASK_EVENT_GROUP_RESTARTING)
        det_event_set_text(event.reason, sizeof event.reason, group->reason);
    det_tasks_publish(group->tasks, &event);
}

/* Guards. */

static bool is_wanted(const struct group *group, const struct group_event *event)
{
    const struct member *member = &group->member;

    (void)event;
    if (group->is_stopped_by_hand || !det_tasks_is_open(group->tasks))
        return false;
    for (const struct group *above = group->parent; above; above = above->parent) {
        if (!det_group_is_open_for(above, member))
            return false;
        member = &above->member;
    }
    return true;
}

static bool is_joint(const struct group *group, const struct group_event *event)
{
    (void)event;
    return group->strategy != DET_STRATEGY_ONE_FOR_ONE;
}

static bool is_nested(const struct group *group, const struct group_event *event)
{
    (void)event;
    return group->parent->parent != NULL;
}

/* Starting. */

static int begin(struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    det_intensity_clear(group->window);
    group->culprit = NULL;
    group->joined_count = group->task_count;
    group->has_lost = false;
    group->since = det_loop_now(group->tasks->loop);
    publish(group, DET_TASK_EVENT_GROUP_STARTED);
    return DET_EFFECT_DONE;
}

static int release_members(
    struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    det_tree_release_members(group, 0);
    return DET_EFFECT_DONE;
}

static int resume_members(
    struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    group->culprit = NULL;
    publish(group, DET_TASK_EVENT_GROUP_STARTED);
    det_tree_release_members(group, group->scope_from);
    return DET_EFFECT_DONE;
}

/* Stopping. */

static void set_scope(struct group *group, uint64_t scope_from)
{
    det_assert(scope_from <= group->next_order);
    group->scope_from = scope_from;
    group->cursor = group->members.previous;
}

static int blame(struct group *group, const struct group_event *event, struct group_event *ret)
{
    struct member *blamed = group->blamed;

    (void)event;
    (void)ret;
    det_assert(blamed && blamed->order > 0 && blamed->order <= group->next_order);
    group->culprit = blamed;
    set_scope(group, group->strategy == DET_STRATEGY_REST_FOR_ONE ? blamed->order : 0);
    publish(group, DET_TASK_EVENT_GROUP_RESTARTING);
    return DET_EFFECT_DONE;
}

/* A member in the scope is held in its turn, and restarts with the others. */
static int widen(struct group *group, const struct group_event *event, struct group_event *ret)
{
    if (group->blamed->order >= group->scope_from)
        return DET_EFFECT_DONE;
    return blame(group, event, ret);
}

static int rewind_all(struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    group->culprit = NULL;
    set_scope(group, 0);
    return DET_EFFECT_DONE;
}

/* The restart time, by the default policy of tasks. */
static void plan_backoff(struct group *group)
{
    const struct det_backoff *backoff = &group->tasks->defaults.backoff;
    det_time now = det_loop_now(group->tasks->loop);

    if (now - group->since >= backoff->stable_after)
        group->failures = 0;
    group->delay = det_backoff_delay(
        backoff, group->failures, group->failures ? group->delay : 0,
        det_tasks_chance(group->tasks));
    group->failures += group->failures < UINT32_MAX;
    group->due = det_add_time(now, group->delay);
}

static int fail(struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    plan_backoff(group);
    publish(group, DET_TASK_EVENT_GROUP_FAILED);
    det_group_member_failed(group->parent, &group->member, group->reason);
    return DET_EFFECT_DONE;
}

static int give_up_task(struct det_task *task, void *argument)
{
    const struct group *group = argument;
    char text[DET_TASK_NAME_MAX + DET_TASK_REASON_MAX + 16];

    snprintf(text, sizeof text, "group %s: %s", group->name, group->reason);
    det_actor_give_up(task, text);
    return 0;
}

static int give_up(struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    (void)det_tree_each_below(group, give_up_task, group);
    return DET_EFFECT_DONE;
}

static int report_stopped(
    struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    publish(group, DET_TASK_EVENT_GROUP_STOPPED);
    return DET_EFFECT_DONE;
}

static int report_above(
    struct group *group, const struct group_event *event, struct group_event *ret)
{
    (void)event;
    (void)ret;
    det_group_member_held(group->parent);
    return DET_EFFECT_DONE;
}

/* Dispatch. */

/* True if no part of the member runs; otherwise it was asked to stop, and will report its end. */
static bool hold(struct member *member)
{
    struct group *group;
    struct det_task *task;

    if (member->is_group) {
        group = group_of_member(member);
        if (!group_is_resting(state_of(group)))
            offer(group, group_hold());
        return group_is_resting(state_of(group));
    }
    task = task_of_member(member);
    if (!det_actor_is_held(task))
        det_actor_hold(task);
    return det_actor_is_held(task) || task->attempts.outcome != DET_TASK_OUTCOME_NONE;
}

static int sweep(struct group *group, struct group_event *ret)
{
    for (; group->cursor != &group->members; group->cursor = group->cursor->previous) {
        struct member *member = member_at(group->cursor);

        if (member->order < group->scope_from)
            break;
        if (member != group->culprit && !hold(member))
            return DET_DIRECTIVE_CONTINUE;
    }
    group->cursor = &group->members;
    *ret = group_swept();
    return DET_DIRECTIVE_TRANSITION;
}

static bool is_at_rest(struct member *member)
{
    if (member->is_group)
        return group_is_resting(state_of(group_of_member(member)));
    return det_actor_is_held(task_of_member(member));
}

static int watch_culprit(struct group *group, struct group_event *ret)
{
    if (group->culprit && !is_at_rest(group->culprit))
        return DET_DIRECTIVE_CONTINUE;
    *ret = group_resume();
    return DET_DIRECTIVE_TRANSITION;
}

static int watch_pause(struct group *group, struct group_event *ret)
{
    int r;

    if (group->due > det_loop_now(group->tasks->loop)) {
        r = det_component_wake_at(&group->component, group->due);
        return r < 0 ? r : DET_DIRECTIVE_CONTINUE;
    }
    *ret = group_due();
    return DET_DIRECTIVE_TRANSITION;
}

static bool group_is_sound(const struct group *group)
{
    const struct member *culprit = group->culprit;

    if (!group->cursor || !group->parent)
        return false;
    if (!culprit)
        return true;
    return group_is_repairing(state_of(group)) && culprit->order >= group->scope_from;
}

/* Called from outside. */

int det_group_start(struct group *group, struct det_error *reterr)
{
    return group_supervise(
        group->tasks->executor, group, &(struct det_supervise_options){ .without_handle = true },
        NULL, reterr);
}

bool det_group_is_open_for(const struct group *group, const struct member *member)
{
    if (!group->parent || state_of(group) == GROUP_RUNNING)
        return true;
    return group_is_repairing(state_of(group)) && member->order < group->scope_from;
}

bool det_group_has_failed(const struct group *group)
{
    return group->parent && state_of(group) == GROUP_FAILED;
}

bool det_group_gives_up(const struct group *group)
{
    return group->parent && !group_is_active(state_of(group));
}

const char *det_group_state(const struct group *group)
{
    return group_state_name(det_component_state(&group->component));
}

/* True if failures of its members count now. */
static bool is_counting(const struct group *group)
{
    return group->parent && det_tasks_is_open(group->tasks) && group_is_active(state_of(group));
}

static const char *name_of(struct member *member)
{
    return member->is_group ? group_of_member(member)->name : task_of_member(member)->name;
}

/* "web: exit code 1", at every restart: without the cost of formatting. */
static void set_reason(struct group *group, struct member *member, const char *reason)
{
    size_t used;

    det_event_set_text(group->reason, sizeof group->reason, name_of(member));
    used = strlen(group->reason);
    det_event_set_text(group->reason + used, sizeof group->reason - used, ": ");
    used = strlen(group->reason);
    det_event_set_text(group->reason + used, sizeof group->reason - used, reason);
}

void det_group_member_failed(struct group *group, struct member *member, const char *reason)
{
    char span[DET_DURATION_TEXT];
    const struct det_intensity *limit = &group->intensity;

    if (!is_counting(group))
        return;
    group->blamed = member;
    if (det_intensity_note(group->window, det_loop_now(group->tasks->loop))) {
        set_reason(group, member, reason);
        offer(group, group_failure());
        return;
    }
    snprintf(
        group->reason, sizeof group->reason, "%u restart%s in %s; the last: %s: %s",
        (unsigned)limit->count, det_plural(limit->count),
        det_format_duration(limit->window, span, sizeof span), name_of(member), reason);
    offer(group, group_exhaust());
}

void det_group_member_lost(struct group *group, struct member *member, const char *reason)
{
    if (!is_counting(group))
        return;
    snprintf(group->reason, sizeof group->reason, "%s is lost: %s", name_of(member), reason);
    offer(group, group_exhaust());
}

void det_group_member_held(struct group *group)
{
    if (group->parent && group_is_attentive(state_of(group)))
        det_component_wake(&group->component);
}

void det_group_member_leaves(struct group *group, struct member *member)
{
    if (group->culprit == member)
        group->culprit = NULL;
    if (group->cursor == &member->siblings)
        group->cursor = member->siblings.previous;
    det_group_member_held(group);
}

void det_group_stop(struct group *group)
{
    group->is_stopped_by_hand = true;
    offer(group, group_stop());
}

void det_group_go(struct group *group)
{
    group->is_stopped_by_hand = false;
    offer(group, group_start());
}

bool det_group_release(struct group *group)
{
    offer(group, group_release());
    return state_of(group) == GROUP_RUNNING;
}
