/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervisor.c - one shutdown for all callers: the functions that supervisor.fsm names.
 *
 *     SHUTDOWN_REQUESTED -> no more admissions, slots purged -> all asked to stop, dependents first
 *        -> all gone in time:               ALL_STOPPED
 *        -> the grace is over: kill        -> gone then:    GRACE_EXCEEDED with the names
 *                                           -> still there:  GRACE_EXCEEDED; they are stuck
 *
 * Fields for callers on other threads (the verdict, whether it is over) are under the mutex. */
#include <detent/driver/loop.h>

#include "task/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

#define FSM_LOCAL
#define FSM_SPEC "task/supervisor.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "task/supervisor.fsm"
#include <detent/fsm/define.h>

/* Time for a killed process to end. */
#define KILL_SPAN (5 * DET_SECOND)

static void offer(struct det_tasks *tasks, struct supervisor_event event)
{
    int r;

    if (!det_component_is_supervised(&tasks->component))
        return;
    r = supervisor_offer(tasks, event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_NO_MEMORY);
}

static void publish(struct det_tasks *tasks, enum det_task_event_kind kind, const char *reason)
{
    struct det_task_event event = { .kind = kind };

    det_event_set_text(event.reason, sizeof event.reason, reason);
    det_tasks_publish(tasks, &event);
}

bool det_tasks_is_open(const struct det_tasks *tasks)
{
    return det_component_is_supervised(&tasks->component) &&
           det_component_state(&tasks->component) == SUPERVISOR_OPEN;
}

/* Guards. */

static bool has_nobody(const struct det_tasks *tasks)
{
    return tasks->index.registered == 0 && tasks->index.queued == 0;
}

static bool is_stubborn(const struct det_tasks *tasks, const struct supervisor_event *event)
{
    (void)event;
    return tasks->shutdown.stubborn_count > 0;
}

/* Actions. */

static int announce(
    struct det_tasks *tasks, const struct supervisor_event *event, struct supervisor_event *ret)
{
    (void)event;
    (void)ret;
    publish(tasks, DET_TASK_EVENT_SHUTDOWN_REQUESTED, "");
    return DET_EFFECT_DONE;
}

static int arm(struct det_tasks *tasks, det_time span)
{
    return det_loop_timer_set(
        tasks->loop, &tasks->shutdown.deadline, det_add_time(det_loop_now(tasks->loop), span));
}

static int stop_all(
    struct det_tasks *tasks, const struct supervisor_event *event, struct supervisor_event *ret)
{
    int r;

    (void)event;
    r = arm(tasks, tasks->options.grace > 0 ? tasks->options.grace : 0);
    if (r < 0)
        return r;
    det_mutex_lock(tasks->world, tasks->status.mutex);
    tasks->status.is_shutting_down = true;
    det_condition_broadcast(tasks->world, tasks->intake.has_room);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    det_slots_close(tasks);
    det_tree_stop_all(tasks);
    if (!has_nobody(tasks))
        return DET_EFFECT_DONE;
    *ret = supervisor_empty();
    return DET_EFFECT_PRODUCED;
}

/* Appends names to one text, as far as there is room. */
static void note_stubborn(struct det_tasks *tasks, const struct det_task *task)
{
    char *names = tasks->shutdown.stubborn;
    size_t used = strlen(names), left = sizeof tasks->shutdown.stubborn - used;

    tasks->shutdown.stubborn_count++;
    if (left > strlen(task->name) + 8)
        snprintf(names + used, left, "%s%s", used ? ", " : "", task->name);
    else if (left > 6 && (used < 3 || strcmp(names + used - 3, "...") != 0))
        snprintf(names + used, left, ", ...");
}

static int force_one(struct det_task *task, void *argument)
{
    (void)argument;
    if (!det_actor_has_attempt(task))
        return 0;
    note_stubborn(task->tasks, task);
    det_actor_cancel(task);
    det_actor_force(task);
    return 0;
}

/* True if only functions are left, which cannot be killed. */
static int count_forced(struct det_task *task, void *argument)
{
    unsigned *count = argument;

    *count += !task->is_stuck && det_actor_has_attempt(task);
    return 0;
}

static int force_all(
    struct det_tasks *tasks, const struct supervisor_event *event, struct supervisor_event *ret)
{
    unsigned dying = 0;
    int r;

    (void)event;
    (void)ret;
    det_tree_stop_at_once(tasks);
    (void)det_tree_each_task(tasks, force_one, NULL);
    (void)det_tree_each_task(tasks, count_forced, &dying);
    r = arm(tasks, dying ? KILL_SPAN : 0);
    return r < 0 ? r : DET_EFFECT_DONE;
}

static void set_verdict(struct det_tasks *tasks, int verdict)
{
    det_mutex_lock(tasks->world, tasks->status.mutex);
    det_assert(!tasks->status.has_verdict && !tasks->status.is_over);
    tasks->status.verdict = verdict;
    tasks->status.has_verdict = true;
    det_condition_broadcast(tasks->world, tasks->status.changed);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
}

static int report_stopped(
    struct det_tasks *tasks, const struct supervisor_event *event, struct supervisor_event *ret)
{
    (void)event;
    (void)ret;
    publish(tasks, DET_TASK_EVENT_ALL_STOPPED, "");
    set_verdict(tasks, 0);
    return DET_EFFECT_DONE;
}

static int report_exceeded(
    struct det_tasks *tasks, const struct supervisor_event *event, struct supervisor_event *ret)
{
    (void)event;
    (void)ret;
    publish(tasks, DET_TASK_EVENT_GRACE_EXCEEDED, tasks->shutdown.stubborn);
    set_verdict(tasks, DET_ERR_TIMEOUT);
    return DET_EFFECT_DONE;
}

static void on_deadline(void *argument)
{
    struct det_tasks *tasks = argument;

    offer(
        tasks, det_component_state(&tasks->component) == SUPERVISOR_FORCING
                   ? supervisor_give_up()
                   : supervisor_deadline());
}

static int supervisor_completed(struct det_tasks *tasks, const struct det_component_end *end)
{
    (void)end;
    det_loop_timer_cancel(tasks->loop, &tasks->shutdown.deadline);
    det_mutex_lock(tasks->world, tasks->status.mutex);
    det_assert(!tasks->status.is_over && tasks->status.is_empty);
    tasks->status.is_over = true;
    det_condition_broadcast(tasks->world, tasks->status.changed);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return 0;
}

/* The timer is set from the start, at least to never, so a shutdown needs no memory for it. */
int det_supervisor_start(struct det_tasks *tasks)
{
    int r;

    tasks->shutdown.deadline.run = on_deadline;
    tasks->shutdown.deadline.argument = tasks;
    r = det_loop_timer_set(tasks->loop, &tasks->shutdown.deadline, DET_NEVER);
    if (r < 0)
        return r;
    return supervisor_supervise(
        tasks->executor, tasks, &(struct det_supervise_options){ .without_handle = true }, NULL,
        NULL);
}

void det_supervisor_stop(struct det_tasks *tasks)
{
    det_loop_timer_cancel(tasks->loop, &tasks->shutdown.deadline);
}

/* Empty or not. */

/* Under the mutex. */
static void look_idle(struct det_tasks *tasks)
{
    bool was_idle = tasks->status.is_idle;

    tasks->status.is_idle = tasks->status.is_empty && tasks->status.holds == 0;
    /* Callers wait until the supervisor is idle, never until it is busy. */
    if (tasks->status.is_idle && !was_idle)
        det_condition_broadcast(tasks->world, tasks->status.changed);
}

void det_tasks_keep(struct det_tasks *tasks)
{
    det_mutex_lock(tasks->world, tasks->status.mutex);
    tasks->status.holds++;
    look_idle(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
}

void det_tasks_let_go(struct det_tasks *tasks)
{
    det_mutex_lock(tasks->world, tasks->status.mutex);
    det_assert(tasks->status.holds > 0);
    tasks->status.holds--;
    look_idle(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
}

static int do_nothing(struct det_tasks *tasks, void *argument)
{
    (void)tasks;
    (void)argument;
    return 0;
}

/* A thread that turns its own loop checks again after a turn; for our own loop the condition is
 * signalled already. */
void det_tasks_nudge(struct det_tasks *tasks)
{
    int r = tasks->own_loop ? 0 : det_tasks_call(tasks, true, do_nothing, NULL);

    (void)r;
}

void det_tasks_check_empty(struct det_tasks *tasks)
{
    bool is_empty = has_nobody(tasks), was_empty;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    was_empty = tasks->status.is_empty;
    tasks->status.is_empty = is_empty;
    if (is_empty != was_empty)
        look_idle(tasks);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    if (!is_empty || was_empty)
        return;
    offer(tasks, supervisor_empty());
    if (tasks->options.on_empty)
        tasks->options.on_empty(tasks->options.user);
}

/* Callers. */

static int ask_shut_down(struct det_tasks *tasks, void *argument)
{
    (void)argument;
    offer(tasks, supervisor_shut_down());
    return 0;
}

static int ask_run_out(struct det_tasks *tasks, void *argument)
{
    (void)argument;
    offer(tasks, supervisor_run_out());
    return 0;
}

static int ask_force(struct det_tasks *tasks, void *argument)
{
    (void)argument;
    offer(tasks, supervisor_force());
    return 0;
}

/* Waits for a flag under the mutex; on the loop's own thread by turning it. */
static int wait_for(struct det_tasks *tasks, const bool *a, const bool *b)
{
    int r = 0;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    while (!*a && !*b && r >= 0) {
        if (det_tasks_is_waiting_for_itself(tasks)) {
            r = DET_ERR_DEADLOCK;
            continue;
        }
        if (tasks->own_loop || !det_loop_is_mine(tasks->loop)) {
            r = det_condition_wait(
                tasks->world, tasks->status.changed, tasks->status.mutex, DET_NEVER);
            continue;
        }
        det_mutex_unlock(tasks->world, tasks->status.mutex);
        r = det_loop_turn(tasks->loop, DET_NEVER);
        det_mutex_lock(tasks->world, tasks->status.mutex);
    }
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return r < 0 ? r : 0;
}

void det_supervisor_wait_over(struct det_tasks *tasks)
{
    (void)wait_for(tasks, &tasks->status.is_over, &tasks->status.is_over);
}

/* On the loop, since a waiting thread may turn it. */
static int note_bus_ended(struct det_tasks *tasks, void *argument)
{
    (void)argument;
    det_mutex_lock(tasks->world, tasks->status.mutex);
    tasks->status.has_ended_bus = true;
    det_condition_broadcast(tasks->world, tasks->status.changed);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    return 0;
}

/* The first caller drains the subscribers, the others wait for it. */
static int end_bus(struct det_tasks *tasks)
{
    det_time now = det_world_now(tasks->world, DET_CLOCK_MONOTONIC);
    det_time grace = tasks->options.subscriber_grace;
    bool is_mine;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    is_mine = !tasks->status.is_ending_bus;
    tasks->status.is_ending_bus = true;
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    if (!is_mine)
        return wait_for(tasks, &tasks->status.has_ended_bus, &tasks->status.has_ended_bus);
    (void)det_bus_end(tasks->bus, grace > 0 ? det_add_time(now, grace) : 0);
    return det_tasks_call(tasks, true, note_bus_ended, NULL);
}

static int end_with_verdict(struct det_tasks *tasks, struct det_error *reterr)
{
    char names[sizeof tasks->shutdown.stubborn];
    int r;

    r = wait_for(tasks, &tasks->status.has_verdict, &tasks->status.is_over);
    if (r < 0)
        return det_error_set(reterr, r, "waiting for tasks to stop: %s", det_error_text(r));
    r = end_bus(tasks);
    if (r < 0)
        return det_error_set(reterr, r, "waiting for subscribers to end: %s", det_error_text(r));
    if (tasks->status.verdict == 0)
        return 0;
    memcpy(names, tasks->shutdown.stubborn, sizeof names);
    return det_error_set(
        reterr, tasks->status.verdict, "%u did not stop within the grace period: %s",
        (unsigned)tasks->shutdown.stubborn_count, names);
}

int det_tasks_shutdown(struct det_tasks *tasks, struct det_error *reterr)
{
    int r;

    r = det_tasks_call(tasks, true, ask_shut_down, NULL);
    if (r < 0)
        return det_error_set(reterr, r, "requesting a shutdown: %s", det_error_text(r));
    return end_with_verdict(tasks, reterr);
}

int det_tasks_run(struct det_tasks *tasks, struct det_error *reterr)
{
    bool was_running;
    int r;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    was_running = tasks->status.is_running;
    tasks->status.is_running = true;
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    if (was_running)
        return det_error_set(reterr, DET_ERR_BUSY, "det_tasks_run() was called already");
    r = wait_for(tasks, &tasks->status.is_idle, &tasks->status.has_verdict);
    if (r == 0)
        r = det_tasks_call(tasks, true, ask_run_out, NULL);
    if (r < 0)
        return det_error_set(reterr, r, "running tasks: %s", det_error_text(r));
    return end_with_verdict(tasks, reterr);
}

void det_tasks_begin_shutdown(struct det_tasks *tasks)
{
    (void)ask_shut_down(tasks, NULL);
}

void det_tasks_force(struct det_tasks *tasks)
{
    int r;

    r = det_tasks_call(tasks, true, ask_force, NULL);
    (void)r;
}
