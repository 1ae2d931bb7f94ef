/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* actor.c - the actor of a task: the functions that actor.fsm names.
 *
 * Invariants, checked by actor_is_sound()
 *   1. an attempt lives only with a permit, and the holder of a permit runs or is about to;
 *   2. the line for a permit contains exactly the tasks that wait and have none;
 *   3. an outcome is known exactly when the task is done. */
#include "task/registry.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"
#include "base/unset.h"
#include "task/attempt.h"

#define FSM_LOCAL
#define FSM_SPEC "task/actor.fsm"
#include <detent/fsm/declare.h>
#define FSM_LOCAL
#define FSM_SPEC "task/actor.fsm"
#include <detent/fsm/define.h>

/* A step may remove or restart its own task, shut everything down, or replace itself in its slot.
 * The actor is then inside of its dispatch: these requests wait until the step returns. */
enum options {
    WISH_RESTART = 1,
    WISH_CANCEL = 2,
    WISH_FORCE = 4,
};

static void options(struct det_task *task, enum actor_event_kind kind)
{
    det_assert(kind == ACTOR_RESTART || kind == ACTOR_CANCEL || kind == ACTOR_OVERDUE);
    if (kind == ACTOR_RESTART)
        task->wishes |= WISH_RESTART;
    else
        task->wishes |= kind == ACTOR_CANCEL ? WISH_CANCEL : WISH_FORCE;
}

/* Removes a request; true if it was set and the state accepts it. */
static bool take_options(struct det_task *task, enum options options, bool is_taken)
{
    bool is_wished = task->wishes & options;

    task->wishes = (uint8_t)(task->wishes & ~(unsigned)options);
    return is_wished && is_taken;
}

/* Steps the machine. Its table must accept the event in every state except the named ones, where a
 * late event, such as a restart during a cancel, is harmless. */
static void offer(struct det_task *task, struct actor_event event)
{
    int r;

    if (!det_component_is_supervised(&task->component))
        return;
    if (task->tasks->step.task == task) {
        options(task, event.kind);
        return;
    }
    r = actor_offer(task, event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_NO_MEMORY);
}

/* Guards. */

static bool may_start(const struct det_task *task, const struct actor_event *event)
{
    (void)event;
    return det_tree_allows(task);
}

static bool is_planned(const struct det_task *task, const struct actor_event *event)
{
    (void)event;
    return task->extras && task->extras->plan && task->times.deadline == DET_NEVER;
}

static bool will_retry(const struct det_task *task, const struct actor_event *event)
{
    (void)event;
    return det_plan_will_retry(task, det_component_state(&task->component) == ACTOR_ENDING);
}

static bool will_repeat(const struct det_task *task, const struct actor_event *event)
{
    (void)event;
    return det_plan_will_repeat(task, det_component_state(&task->component) == ACTOR_ENDING);
}

/* Permits. */

static int ask_permit(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    task->times.deadline = DET_NEVER;
    task->times.since = det_loop_now(task->tasks->loop);
    if (!det_permit_ask(task))
        return DET_EFFECT_DONE;
    *ret = actor_granted();
    return DET_EFFECT_PRODUCED;
}

static int leave_line(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    det_permit_leave(task);
    return DET_EFFECT_DONE;
}

static int report_held(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    task->times.since = det_loop_now(task->tasks->loop);
    det_tree_held(task);
    return DET_EFFECT_DONE;
}

static int make_due(struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    task->times.deadline = det_loop_now(task->tasks->loop);
    return DET_EFFECT_DONE;
}

/* Attempts. */

static void report_starting(struct det_task *task)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, DET_TASK_EVENT_ATTEMPT_STARTING);
    event.is_restart = task->attempts.is_restarting;
    task->attempts.is_restarting = false;
    det_tasks_publish(task->tasks, &event);
}

static int start_attempt(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    det_time now = det_loop_now(task->tasks->loop);
    int r;

    (void)event;
    det_assert(task->has_permit && !task->attempt && det_list_is_empty(&task->line));
    det_assert(task->attempts.outcome == DET_TASK_OUTCOME_NONE);
    if (task->attempts.number < UINT32_MAX)
        task->attempts.number++;
    task->times.since = task->times.started_at = now;
    task->times.deadline = task->policy->timeout == DET_NO_TIMEOUT
                               ? DET_NEVER
                               : det_add_time(now, task->policy->timeout);
    task->context = (struct det_task_context){ .is_cancelled = 0 };
    task->attempts.ended = (struct attempt_end){ .result = ATTEMPT_SUCCEEDED };
    task->is_stuck = task->attempts.is_unhealthy = task->is_ready = task->attempts.has_stepped =
        false;
    task->attempts.is_stopped = false;
    task->wishes = 0;
    task->is_healthy = true;
    if (task->kind != TASK_PROCESS)
        report_starting(task);
    r = det_attempt_start(task);
    /* The process has started only now, or not at all if we lack a descriptor for it. */
    if (task->kind == TASK_PROCESS && !task->attempts.ended.is_shortage)
        report_starting(task);
    if (r < 0) {
        *ret = actor_ended();
        return DET_EFFECT_PRODUCED;
    }
    det_checks_begin(task);
    return DET_EFFECT_DONE;
}

static int stop_clock(struct det_task *task)
{
    det_time grace = task->policy->grace;

    task->times.deadline =
        grace == DET_NEVER ? DET_NEVER : det_add_time(det_loop_now(task->tasks->loop), grace);
    return DET_EFFECT_DONE;
}

static int ask_stop(struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    det_assert(task->has_permit);
    task->times.since = det_loop_now(task->tasks->loop);
    (void)stop_clock(task);
    __atomic_store_n(&task->context.is_cancelled, 1, __ATOMIC_RELEASE);
    det_checks_quiet(task);
    det_tree_changed(task);
    if (!det_attempt_stop(task))
        return DET_EFFECT_DONE;
    *ret = actor_ended();
    return DET_EFFECT_PRODUCED;
}

static int force_stop(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    task->times.deadline = DET_NEVER;
    if (!det_checks_are_last(task) && !det_attempt_force(task))
        return DET_EFFECT_DONE;
    if (det_checks_delay(task)) {
        det_attempt_report_stuck(task);
        return DET_EFFECT_DONE;
    }
    *ret = actor_ended();
    return DET_EFFECT_PRODUCED;
}

/* Publishes the end of an attempt as `kind`. */
static int close_as(struct det_task *task, enum det_task_event_kind kind)
{
    DET_UNSET struct det_task_event event;

    det_task_event_init(&event, task, kind);
    event.duration = det_loop_now(task->tasks->loop) - task->times.started_at;
    event.exit_code = task->attempts.ended.exit_code;
    event.has_exit_code = task->attempts.ended.has_exit_code;
    event.signal = task->attempts.ended.signal;
    if (kind == DET_TASK_EVENT_ATTEMPT_TIMED_OUT)
        event.timeout = task->policy->timeout;
    if (task->attempts.ended.result != ATTEMPT_SUCCEEDED && task->reason)
        det_event_set_text(event.reason, sizeof event.reason, task->reason);
    det_assert(task->has_permit && task->attempts.number > 0);
    task->times.deadline = DET_NEVER;
    task->attempts.last = task->attempts.ended;
    task->attempts.has_last = true;
    task->is_ready = task->is_healthy = task->is_stuck = false;
    det_attempt_close(task);
    /* An attempt that was not published as started has no end event; its postponement is
     * published. */
    if (!task->attempts.ended.is_shortage)
        det_tasks_publish(task->tasks, &event);
    det_permit_return(task);
    det_tree_attempt_closed(task);
    return DET_EFFECT_DONE;
}

static int close_attempt(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    switch ((enum attempt_result)task->attempts.ended.result) {
    case ATTEMPT_SUCCEEDED:
        return close_as(task, DET_TASK_EVENT_ATTEMPT_SUCCEEDED);
    case ATTEMPT_FAILED:
    case ATTEMPT_FATAL:
    case ATTEMPT_FORCED:
        return close_as(task, DET_TASK_EVENT_ATTEMPT_FAILED);
    case ATTEMPT_CANCELLED:
        return close_as(task, DET_TASK_EVENT_ATTEMPT_CANCELLED);
    }
    return DET_ERR_INVALID;
}

static int close_expired(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    char text[DET_TASK_REASON_MAX + 1], span[DET_DURATION_TEXT];

    (void)event;
    (void)ret;
    task->attempts.ended.result = ATTEMPT_FAILED;
    if (task->attempts.is_unhealthy)
        return close_as(task, DET_TASK_EVENT_ATTEMPT_FAILED);
    snprintf(
        text, sizeof text, "timed out after %s",
        det_format_duration(task->policy->timeout, span, sizeof span));
    det_task_set_reason(task, text);
    return close_as(task, DET_TASK_EVENT_ATTEMPT_TIMED_OUT);
}

static int close_stopped(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    task->attempts.is_stopped = true;
    /* Work that reports success has succeeded, whatever follows; a process that exits with 0 after
     * its stop signal has only obeyed. */
    if (task->attempts.ended.result == ATTEMPT_SUCCEEDED && task->kind != TASK_PROCESS)
        return close_as(task, DET_TASK_EVENT_ATTEMPT_SUCCEEDED);
    if (task->attempts.ended.result != ATTEMPT_FORCED)
        task->attempts.ended.result = ATTEMPT_CANCELLED;
    return close_as(task, DET_TASK_EVENT_ATTEMPT_CANCELLED);
}

/* Pauses. */

static int plan_backoff(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    if (task->attempts.ended.is_shortage)
        return det_plan_put_off(task);
    det_tree_attempt_failed(task);
    return det_plan_backoff(task);
}

static int plan_rest(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    return det_plan_rest(task);
}

static int drop_plan(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    det_plan_drop(task);
    return DET_EFFECT_DONE;
}

static int forget_failures(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    task->attempts.failures = 0;
    task->times.delay = 0;
    det_plan_count_restart(task);
    return DET_EFFECT_DONE;
}

/* The outcome. */

enum det_task_outcome det_attempt_outcome(const struct attempt_end *end)
{
    switch ((enum attempt_result)end->result) {
    case ATTEMPT_SUCCEEDED:
        return DET_TASK_OUTCOME_COMPLETED;
    case ATTEMPT_FAILED:
        return DET_TASK_OUTCOME_FAILED;
    case ATTEMPT_FATAL:
        return DET_TASK_OUTCOME_FATAL;
    case ATTEMPT_CANCELLED:
        return DET_TASK_OUTCOME_CANCELLED;
    case ATTEMPT_FORCED:
        return DET_TASK_OUTCOME_FORCE_ABORTED;
    }
    return DET_TASK_OUTCOME_NONE;
}

/* The outcome of a task is set once, when none of its parts runs. */
static void set_outcome(struct det_task *task, enum det_task_outcome outcome)
{
    det_assert(task->attempts.outcome == DET_TASK_OUTCOME_NONE && outcome != DET_TASK_OUTCOME_NONE);
    det_assert(!task->attempt && !task->has_permit);
    task->attempts.outcome = (uint8_t)outcome;
}

static int conclude(struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    set_outcome(task, det_attempt_outcome(&task->attempts.ended));
    return DET_EFFECT_DONE;
}

/* Cancelled, even if its last attempt succeeded. */
static int conclude_stopped(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    if (task->attempts.ended.result == ATTEMPT_FORCED)
        set_outcome(task, DET_TASK_OUTCOME_FORCE_ABORTED);
    else
        set_outcome(task, DET_TASK_OUTCOME_CANCELLED);
    return DET_EFFECT_DONE;
}

static int conclude_cancelled(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    set_outcome(task, DET_TASK_OUTCOME_CANCELLED);
    return DET_EFFECT_DONE;
}

/* The reason is set already. */
static int conclude_given_up(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    set_outcome(task, DET_TASK_OUTCOME_FAILED);
    return DET_EFFECT_DONE;
}

static int conclude_failure(
    struct det_task *task, const struct actor_event *event, struct actor_event *ret)
{
    (void)event;
    (void)ret;
    det_task_set_reason(task, det_component_failure(&task->component)->text);
    set_outcome(task, DET_TASK_OUTCOME_FAILED);
    return DET_EFFECT_DONE;
}

/* Dispatch. */

static bool is_late(const struct det_task *task)
{
    return task->times.deadline <= det_loop_now(task->tasks->loop);
}

static int wait_until(struct det_task *task, det_time at)
{
    int r = det_component_wake_at(&task->component, at);

    return r < 0 ? r : DET_DIRECTIVE_CONTINUE;
}

/* True if the end in `task->ended` must not be published yet. A limit of the work does not apply to
 * the check it waits for. */
static bool is_delayed(struct det_task *task)
{
    if (!det_checks_delay(task))
        return false;
    if (det_component_state(&task->component) == ACTOR_RUNNING)
        task->times.deadline = DET_NEVER;
    return true;
}

/* Takes the step's requests, and then its end, one at a time. */
static bool take_news(struct det_task *task, struct actor_event *ret)
{
    enum actor_state state = (enum actor_state)det_component_state(&task->component);
    bool is_for_good = task->wishes & WISH_CANCEL || state == ACTOR_CANCELLING;

    if (take_options(task, WISH_RESTART, !is_for_good && state != ACTOR_RECYCLING)) {
        *ret = actor_restart();
    } else if (take_options(task, WISH_CANCEL, state != ACTOR_CANCELLING)) {
        *ret = actor_cancel();
    } else if (task->attempts.has_stepped) {
        task->attempts.has_stepped = false;
        *ret = actor_ended();
    } else if (take_options(task, WISH_FORCE, state != ACTOR_RUNNING)) {
        *ret = actor_overdue();
    } else {
        return false;
    }
    return true;
}

static int run_attempt(struct det_task *task, struct actor_event *ret)
{
    int r;

    if (take_news(task, ret))
        return DET_DIRECTIVE_TRANSITION;
    if (is_late(task)) {
        *ret = det_component_state(&task->component) == ACTOR_RUNNING ? actor_expired()
                                                                      : actor_overdue();
        return DET_DIRECTIVE_TRANSITION;
    }
    if (task->kind != TASK_STEP || det_checks_are_last(task))
        return wait_until(task, task->times.deadline);
    r = det_attempt_step(task);
    task->attempts.has_stepped = r == DET_DIRECTIVE_TRANSITION && !is_delayed(task);
    if (take_news(task, ret))
        return DET_DIRECTIVE_TRANSITION;
    if (r == DET_DIRECTIVE_CONTINUE && task->tasks->step.wake_at < task->times.deadline)
        return wait_until(task, task->tasks->step.wake_at);
    return r == DET_DIRECTIVE_AGAIN ? r : wait_until(task, task->times.deadline);
}

static int watch_pause(struct det_task *task, struct actor_event *ret)
{
    if (!is_late(task))
        return wait_until(task, det_plan_check(task));
    *ret = actor_due();
    return DET_DIRECTIVE_TRANSITION;
}

static int actor_completed(struct det_task *task, const struct det_component_end *end)
{
    /* The last resort, or the executor is being closed: the outcome is a failure. */
    if (task->attempts.outcome == DET_TASK_OUTCOME_NONE) {
        task->attempts.outcome = DET_TASK_OUTCOME_FAILED;
        det_task_set_reason(task, end->failure.text);
    }
    det_list_append(&task->tasks->settling.ended, &task->line);
    det_tasks_settle_soon(task->tasks);
    return 0;
}

static bool actor_is_sound(const struct det_task *task)
{
    enum actor_state state = (enum actor_state)det_component_state(&task->component);

    if (actor_is_attempt(state) ? !task->has_permit : task->has_permit && state != ACTOR_WAITING)
        return false;
    if ((state == ACTOR_WAITING && !task->has_permit) == det_list_is_empty(&task->line))
        return false;
    return (state == ACTOR_DONE) == (task->attempts.outcome != DET_TASK_OUTCOME_NONE);
}

/* Called from outside. */

int det_actor_start(struct det_task *task, struct det_error *reterr)
{
    return actor_supervise(
        task->tasks->executor, task, &(struct det_supervise_options){ .without_handle = true },
        NULL, reterr);
}

void det_actor_release(struct det_task *task)
{
    offer(task, actor_release());
}

/* A drained task cannot be held: that would start it again. */
void det_actor_hold(struct det_task *task)
{
    if (task->attempts.is_last)
        (void)det_task_remove(task);
    else
        offer(task, actor_hold());
}

void det_actor_grant(struct det_task *task)
{
    offer(task, actor_granted());
}

void det_actor_restart(struct det_task *task)
{
    offer(task, actor_restart());
}

void det_actor_cancel(struct det_task *task)
{
    offer(task, actor_cancel());
}

void det_actor_ended(struct det_task *task, const struct attempt_end *end)
{
    const struct actor_event event = actor_ended();
    int r;

    task->attempts.ended = *end;
    if (is_delayed(task))
        return;
    /* Continues up to the start of the next attempt, if that is due at once: the caches are
     * warm. */
    r = det_component_deliver(&task->component, &event);
    det_assert(r == 0 || r == DET_ERR_UNHANDLED || r == DET_ERR_NO_MEMORY);
}

void det_actor_expire(struct det_task *task, const char *reason)
{
    task->attempts.is_unhealthy = true;
    det_task_set_reason(task, reason);
    offer(task, actor_expired());
}

void det_actor_force(struct det_task *task)
{
    offer(task, actor_overdue());
}

void det_actor_give_up(struct det_task *task, const char *reason)
{
    det_task_set_reason(task, reason);
    offer(task, actor_give_up());
}

const char *det_actor_state(const struct det_task *task)
{
    if (!task->is_registered)
        return "queued";
    return task->is_stuck ? "stuck" : actor_state_name(det_component_state(&task->component));
}

bool det_actor_is_held(const struct det_task *task)
{
    return det_component_state(&task->component) == ACTOR_HELD;
}

bool det_actor_is_waiting(const struct det_task *task)
{
    return task->is_registered && det_component_state(&task->component) == ACTOR_WAITING &&
           !task->has_permit;
}

bool det_actor_is_running(const struct det_task *task)
{
    return det_component_state(&task->component) == ACTOR_RUNNING;
}

bool det_actor_has_attempt(const struct det_task *task)
{
    return actor_is_attempt((enum actor_state)det_component_state(&task->component));
}

bool det_actor_restarts(const struct det_task *task)
{
    return det_component_state(&task->component) == ACTOR_RECYCLING ||
           det_component_state(&task->component) == ACTOR_HOLDING;
}

bool det_actor_is_paused(const struct det_task *task)
{
    return task->is_registered &&
           actor_is_paused((enum actor_state)det_component_state(&task->component));
}

void det_actor_abandon(struct det_task *task)
{
    det_component_forget(&task->component);
}

int det_actor_count(struct det_task *task, void *argument)
{
    struct det_tasks_counts *counts = argument;

    counts->stuck += task->is_stuck;
    switch ((enum actor_state)det_component_state(&task->component)) {
    case ACTOR_HELD:
        counts->held++;
        break;
    case ACTOR_WAITING:
        counts->waiting++;
        break;
    case ACTOR_RUNNING:
    case ACTOR_CANCELLING:
    case ACTOR_ENDING:
    case ACTOR_RECYCLING:
    case ACTOR_HOLDING:
        counts->running++;
        break;
    case ACTOR_BACKOFF:
        counts->backing_off++;
        break;
    case ACTOR_RESTING:
        counts->resting++;
        break;
    case ACTOR_DONE:
    case actor_state_count:
        break;
    }
    return 0;
}
