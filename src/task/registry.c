/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* registry.c - the registry: tasks from their admission until their end is reported.
 *
 *     make -> index -> announce -> ... actor ... -> ended -> reap
 *
 * The end of a task, in order: out of both indexes and of the tree; TASK_FINISHED; waiters
 * notified; TASK_REMOVED; on_end; its slot gets its place back. So a receiver of the end finds the
 * name free, and the next task in a slot may have the same name. */
#include <detent/driver/loop.h>

#include "task/registry.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "base/text.h"
#include "base/unset.h"
#include "task/extras.h"

/* A task without references: invariant 1 of registry.h, and it is in no list. */
static void assert_forgotten(const struct det_task *task)
{
    det_assert(!task->is_registered && !task->has_permit && !task->attempt);
    det_assert(!task->anchor && !task->waiters);
    det_assert(det_list_is_empty(&task->line) && det_list_is_empty(&task->turn));
    det_assert(det_list_is_empty(&task->place) && det_list_is_empty(&task->member.siblings));
}

/* Making. */

static bool is_name(const char *name)
{
    size_t length = name ? strlen(name) : 0;

    if (length == 0 || length > DET_TASK_NAME_MAX || det_utf8_check(name, length) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return true;
}

int det_name_check(const char *what, const char *name, struct det_error *reterr)
{
    if (is_name(name))
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "the name of a %s is 1 to %d bytes of UTF-8 without control characters", what,
        DET_TASK_NAME_MAX);
}

static int check_spec(const struct det_task_spec *spec, struct det_error *reterr)
{
    int kinds = !!spec->function + !!spec->step + !!spec->process, r;

    r = det_name_check("task", spec->name, reterr);
    if (r < 0)
        return r;
    if (kinds != 1)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "task %s: set exactly one of function, step and process, not %d", spec->name, kinds);
    if (spec->process && (!spec->process->argv || !spec->process->argv[0]))
        return det_error_set(
            reterr, DET_ERR_INVALID, "task %s: argv of its process is empty", spec->name);
    r = det_reserved_check(spec->reserved, "a task", reterr);
    if (r == 0 && spec->process)
        r = det_reserved_check(spec->process->reserved, "a process", reterr);
    return r < 0 ? r : det_checks_validate(spec, reterr);
}

static enum task_kind kind_of(const struct det_task_spec *spec)
{
    if (spec->function)
        return TASK_FUNCTION;
    return spec->step ? TASK_STEP : TASK_PROCESS;
}

/* A task with a schedule is not restarted by default. */
static int set_policy(
    struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr)
{
    struct det_policy policy = spec->policy;

    if (policy.restart == DET_RESTART_INHERIT && (spec->schedule.every || spec->schedule.cron))
        policy.restart = DET_RESTART_NEVER;
    return det_tasks_share_policy(task->tasks, &policy, &task->policy, reterr);
}

static void set_work(struct det_task *task, const struct det_task_spec *spec)
{
    task->kind = (uint8_t)kind_of(spec);
    if (spec->function)
        task->work.function = spec->function;
    else
        task->work.step = spec->step;
    task->work.argument = spec->argument;
    task->work.release = spec->release;
}

static struct det_task *new_task(struct det_tasks *tasks, const char *name)
{
    size_t length = strlen(name);
    struct det_task *task = det_alloc_zero(tasks->allocator, sizeof *task + length + 1);

    if (!task)
        return NULL;
    task->tasks = tasks;
    task->name = memcpy(task + 1, name, length + 1);
    task->times.since = det_loop_now(tasks->loop);
    task->times.deadline = DET_NEVER;
    det_list_init(&task->line);
    det_list_init(&task->turn);
    det_list_init(&task->member.siblings);
    det_list_init(&task->place);
    return task;
}

static int set_group(
    struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr)
{
    task->group = spec->group ? det_group_find(task->tasks, spec->group) : task->tasks->tree.root;
    if (task->group)
        return 0;
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND, "task %s: the group %s does not exist; add it first", spec->name,
        spec->group);
}

/* Everything except its id. */
static int prepare(
    struct det_task *task, const struct det_task_spec *spec, struct det_error *reterr)
{
    int r;

    set_work(task, spec);
    r = set_group(task, spec, reterr);
    if (r < 0)
        return r;
    r = set_policy(task, spec, reterr);
    if (r < 0)
        return r;
    r = det_task_extras_open(task, spec, reterr);
    if (r < 0)
        return r;
    r = det_id_map_reserve(&task->tasks->index.ids);
    return r < 0 ? det_error_set(reterr, r, "task %s: out of memory", spec->name) : 0;
}

int det_task_make(
    struct det_tasks *tasks, const struct det_task_spec *spec, struct det_task **ret,
    struct det_error *reterr)
{
    struct det_task *task;
    int r;

    r = check_spec(spec, reterr);
    if (r < 0)
        return r;
    if (tasks->index.ids.count >= tasks->options.tasks_max)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "task %s: the limit tasks_max (%u) is reached", spec->name,
            (unsigned)tasks->options.tasks_max);
    task = new_task(tasks, spec->name);
    if (!task)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "task %s: out of memory", spec->name);
    r = prepare(task, spec, reterr);
    if (r < 0) {
        det_task_free(task);
        return r;
    }
    det_assert(tasks->index.next_id > 0 && task->policy && task->group);
    task->node.id = tasks->index.next_id++;
    det_id_map_put(&tasks->index.ids, &task->node);
    *ret = task;
    return 0;
}

void det_task_free(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;

    assert_forgotten(task);
    if (task->node.id)
        det_id_map_remove(&tasks->index.ids, &task->node);
    det_task_extras_close(task);
    det_tasks_unshare_policy(tasks, task->policy);
    det_free_string(tasks->allocator, task->reason);
    det_free(tasks->allocator, task, sizeof *task + strlen(task->name) + 1);
}

struct det_task *det_task_find(struct det_tasks *tasks, det_task_id id)
{
    struct det_id_node *node = det_id_map_get(&tasks->index.ids, id);

    return node ? DET_CONTAINER(node, struct det_task, node) : NULL;
}

/* Admission. */

int det_task_index(struct det_task *task, struct det_error *reterr)
{
    struct det_tasks *tasks = task->tasks;
    int r;

    det_assert(!task->is_registered && task->node.id);
    if (!det_tasks_is_open(tasks))
        return det_error_set(
            reterr, DET_ERR_CLOSED, "task %s: the supervisor is shutting down", task->name);
    if (det_group_find(tasks, task->name))
        return det_error_set(reterr, DET_ERR_EXISTS, "task %s: a group has this name", task->name);
    r = det_map_put(&tasks->index.names, task);
    if (r == DET_ERR_EXISTS)
        return det_error_set(
            reterr, r, "task %s: the name is in use until its task is removed", task->name);
    if (r < 0)
        return det_error_set(reterr, r, "task %s: out of memory", task->name);
    task->is_registered = true;
    tasks->index.registered++;
    det_assert(tasks->index.registered <= tasks->index.ids.count);
    return 0;
}

void det_task_unindex(struct det_task *task)
{
    void *found;

    det_assert(task->is_registered && task->tasks->index.registered > 0);
    found = det_map_remove(&task->tasks->index.names, task->name);
    det_assert(found == task);
    task->is_registered = false;
    task->tasks->index.registered--;
}

int det_task_enter(struct det_task *task, struct det_error *reterr)
{
    int r;

    det_assert(task->is_registered && !det_component_is_supervised(&task->component));
    r = det_tree_join(task, reterr);
    if (r < 0)
        return r;
    r = det_actor_start(task, reterr);
    if (r < 0)
        det_tree_leave(task);
    return r;
}

void det_task_announce(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;

    det_assert(task->is_registered && !det_list_is_empty(&task->member.siblings));
    tasks->counts.added++;
    /* Not earlier: a task that is undone was never published, and its end would not be noticed. */
    if (tasks->status.is_empty)
        det_tasks_check_empty(tasks);
    det_task_publish(task, DET_TASK_EVENT_TASK_ADDED);
    det_tasks_settle_soon(tasks);
}

int det_task_admit(struct det_task *task, struct det_error *reterr)
{
    int r;

    r = det_task_index(task, reterr);
    if (r < 0)
        return r;
    r = det_task_enter(task, reterr);
    if (r < 0) {
        det_task_unindex(task);
        return r;
    }
    det_task_announce(task);
    return 0;
}

enum det_rejection det_rejection_of(int code)
{
    if (code == DET_ERR_EXISTS)
        return DET_REJECTION_ALREADY_EXISTS;
    if (code == DET_ERR_CLOSED)
        return DET_REJECTION_SHUTTING_DOWN;
    return DET_REJECTION_FAILED;
}

void det_task_publish_refused(
    struct det_task *task, enum det_rejection rejection, const char *reason)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, DET_TASK_EVENT_TASK_ADD_FAILED);
    event.rejection = (uint8_t)rejection;
    det_event_set_text(event.reason, sizeof event.reason, reason);
    det_tasks_publish(task->tasks, &event);
}

/* The end. */

bool det_task_remove(struct det_task *task)
{
    if (task->is_removing || task->attempts.outcome != DET_TASK_OUTCOME_NONE)
        return false;
    task->is_removing = true;
    det_task_publish(task, DET_TASK_EVENT_TASK_REMOVE_REQUESTED);
    if (!task->is_registered) {
        det_assert(task->slot);
        det_slot_take_out(task);
        return true;
    }
    if (task->slot)
        det_slot_owner_stopping(task);
    det_actor_cancel(task);
    return true;
}

static struct det_task_end end_of(const struct det_task *task)
{
    struct det_task_end end = {
        .id = task->node.id,
        .outcome = (enum det_task_outcome)task->attempts.outcome,
        .rejection = (enum det_rejection)task->attempts.rejection,
        .attempts = task->attempts.number,
        .restarts = task->attempts.restarts,
        .exit_code = task->attempts.ended.exit_code,
        .has_exit_code = task->attempts.ended.has_exit_code,
        .signal = task->attempts.ended.signal,
    };

    if (end.outcome != DET_TASK_OUTCOME_COMPLETED && end.outcome != DET_TASK_OUTCOME_CANCELLED &&
        task->reason)
        det_event_set_text(end.reason, sizeof end.reason, task->reason);
    return end;
}

static void report_finished(struct det_task *task, const struct det_task_end *end)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, DET_TASK_EVENT_TASK_FINISHED);
    event.outcome = (uint8_t)end->outcome;
    event.rejection = (uint8_t)end->rejection;
    event.exit_code = end->exit_code;
    event.has_exit_code = end->has_exit_code;
    event.signal = (uint8_t)end->signal;
    det_event_set_text(event.reason, sizeof event.reason, end->reason);
    det_tasks_publish(task->tasks, &event);
}

/* Receivers may use the tasks, so the state of this task is final before. A waiter for the end may
 * free the argument, so it is released first. */
static void report_end(struct det_task *task, const struct det_task_end *end)
{
    struct det_tasks *tasks = task->tasks;

    tasks->counts.finished++;
    if (task->work.release)
        task->work.release(task->work.argument);
    det_waiters_notify(task, end);
    det_task_free(task);
    if (tasks->options.on_end)
        tasks->options.on_end(tasks->options.user, end);
}

static void reap(struct det_task *task)
{
    struct det_task_end end = end_of(task);

    det_assert(end.outcome != DET_TASK_OUTCOME_NONE && !task->has_permit && !task->attempt);
    det_task_unindex(task);
    det_tree_leave(task);
    report_finished(task, &end);
    det_task_publish(task, DET_TASK_EVENT_TASK_REMOVED);
    if (task->slot)
        det_slot_owner_removed(task);
    report_end(task, &end);
}

/* The task never ran: it left the queue of its slot, which has published the event. */
static void report_rejection(struct det_task *task)
{
    struct det_task_end end;

    det_assert(!task->is_registered && task->attempts.number == 0);
    det_assert(task->attempts.outcome == DET_TASK_OUTCOME_NONE);
    det_assert(task->attempts.rejection != DET_REJECTION_NONE);
    task->attempts.outcome = DET_TASK_OUTCOME_REJECTED;
    task->tasks->counts.rejected++;
    end = end_of(task);
    report_end(task, &end);
}

/* Settling. */

static void reap_ended(struct det_tasks *tasks)
{
    struct det_list *node;

    while (!det_bus_is_crowded(tasks->bus) && (node = det_list_take(&tasks->settling.ended)))
        reap(DET_CONTAINER(node, struct det_task, line));
}

static void report_rejected(struct det_tasks *tasks)
{
    struct det_list *node;

    while ((node = det_list_take(&tasks->settling.rejected))) {
        struct det_task *task = DET_CONTAINER(node, struct det_task, line);

        report_rejection(task);
    }
}

static void settle(struct det_tasks *tasks)
{
    if (tasks->settling.is_running)
        return;
    tasks->settling.is_running = true;
    do {
        tasks->settling.is_wanted = false;
        reap_ended(tasks);
        report_rejected(tasks);
        det_tree_settle(tasks);
        det_permits_grant(tasks);
    } while (tasks->settling.is_wanted && !det_bus_is_crowded(tasks->bus));
    tasks->settling.is_running = false;
    det_tasks_check_empty(tasks);
    /* The rest follows after the turn of the bus, which was posted before this. */
    if (det_bus_is_crowded(tasks->bus))
        det_tasks_settle_soon(tasks);
}

static void settle_posted(void *argument)
{
    struct det_tasks *tasks = argument;

    det_assert(tasks->settling.is_posted && !tasks->settling.is_running);
    tasks->settling.is_posted = false;
    settle(tasks);
}

void det_tasks_settle_soon(struct det_tasks *tasks)
{
    tasks->settling.is_wanted = true;
    if (tasks->settling.is_running || tasks->settling.is_posted)
        return;
    tasks->settling.is_posted = true;
    tasks->settling.post = (struct det_post){ .run = settle_posted, .argument = tasks };
    det_loop_post(tasks->loop, &tasks->settling.post);
}
