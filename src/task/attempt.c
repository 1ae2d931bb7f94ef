/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* attempt.c - one attempt of a task of any kind: its start, its stop, its end.
 *
 *     function   a job on the pool; a flag asks it to stop; cannot be killed: it is stuck
 *     step       called by its actor's dispatch; a flag asks it to stop; killed by not calling it
 *     process    a child; its stop signal asks it to stop; killed by SIGKILL
 *
 * An end that is known at once (a program that does not exist, a step that is dropped) is the
 * return value; every other one comes through the loop, as det_actor_ended(). */
#include <detent/driver/loop.h>

#include "task/attempt.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "task/child.h"

struct attempt {
    struct det_task *task;
    struct det_child *child; /* of a process */
    struct det_job job;      /* of a function */
    struct det_post ready;   /* a function reports readiness */
    int code;
    char text[DET_TASK_REASON_MAX + 1];
};

void det_task_set_reason(struct det_task *task, const char *reason)
{
    /* Repeated failures mostly have the same reason. */
    if (task->reason && strcmp(task->reason, reason) == 0)
        return;
    det_free_string(task->tasks->allocator, task->reason);
    /* Without memory the reason is omitted. */
    task->reason = det_string_copy(task->tasks->allocator, reason);
}

char *det_attempt_text(struct det_task *task)
{
    return task->attempt ? task->attempt->text : task->tasks->step.failure;
}

/* The return value of the work, with the reports through its context. */
static struct attempt_end end_of_work(struct det_task *task, int code)
{
    const struct det_task_context *context = &task->context;
    struct attempt_end end = {
        .code = code < 0 ? code : 0,
        .exit_code = context->exit_code,
        .has_exit_code = context->has_exit_code,
        .result = ATTEMPT_SUCCEEDED,
    };

    if (code == DET_ERR_CANCELLED)
        end.result = ATTEMPT_CANCELLED;
    else if (code < 0)
        end.result = context->is_fatal ? ATTEMPT_FATAL : ATTEMPT_FAILED;
    return end;
}

static void set_reason_of_work(struct det_task *task, int code, const char *text)
{
    if (code < 0 && code != DET_ERR_CANCELLED && !det_task_is_cancelled(&task->context))
        det_task_set_reason(task, *text ? text : det_error_text(code));
}

/* Functions. */

static void function_run(void *argument)
{
    struct attempt *attempt = argument;
    struct det_task *task = attempt->task;

    attempt->code = task->work.function(&task->context, task->work.argument);
}

static void function_done(void *argument)
{
    struct attempt *attempt = argument;
    struct det_task *task = attempt->task;
    int code = attempt->job.is_dropped ? DET_ERR_CANCELLED : attempt->code;
    struct attempt_end end;

    det_assert(task->attempt == attempt && task->kind == TASK_FUNCTION && task->has_permit);
    if (code > 0) {
        snprintf(
            attempt->text, sizeof attempt->text, "returned %d, which is not a valid result", code);
        code = DET_ERR_INVALID;
    }
    end = end_of_work(task, code);
    /* Its return value after the grace period does not change that. */
    if (task->is_stuck)
        end.result = ATTEMPT_FORCED;
    set_reason_of_work(task, code, attempt->text);
    det_actor_ended(task, &end);
}

static void function_is_ready(void *argument)
{
    struct attempt *attempt = argument;

    det_checks_notified(attempt->task);
}

static void start_function(struct det_task *task)
{
    struct attempt *attempt = task->attempt;

    attempt->job = (struct det_job){
        .run = function_run,
        .done = function_done,
        .argument = attempt,
        .loop = task->tasks->loop,
        .may_borrow = true,
    };
    attempt->ready = (struct det_post){ .run = function_is_ready, .argument = attempt };
    det_pool_submit(task->tasks->pool, &attempt->job);
}

/* Processes. */

static void process_line(void *user, const struct det_line *line)
{
    struct attempt *attempt = user;
    struct det_task *task = attempt->task;
    struct det_line named = *line;

    named.id = task->node.id;
    named.name = task->name;
    task->tasks->options.on_line(task->tasks->options.user, &named);
}

static void process_notify(void *user, const char *message)
{
    struct attempt *attempt = user;

    if (strcmp(message, "READY=1") == 0)
        det_checks_notified(attempt->task);
}

void det_process_end_text(const struct det_process_end *end, char *target, size_t size)
{
    const char *name = end->signal ? sigabbrev_np(end->signal) : NULL;

    if (name)
        snprintf(target, size, "killed by signal %d (SIG%s)", end->signal, name);
    else if (end->signal)
        snprintf(target, size, "killed by signal %d", end->signal);
    else if (end->code < 0)
        snprintf(target, size, "ended, and other code has reaped it");
    else
        snprintf(target, size, "exit code %d", end->code);
}

static void process_end(void *user, const struct det_process_end *ended)
{
    struct attempt *attempt = user;
    struct det_task *task = attempt->task;
    int verdict = det_child_verdict(task->extras->process, ended);
    bool was_forced = task->attempts.ended.result == ATTEMPT_FORCED;
    char text[DET_TASK_REASON_MAX + 1];
    struct attempt_end end = {
        .exit_code = ended->code,
        .has_exit_code = ended->code >= 0,
        .signal = (uint8_t)ended->signal,
        .result = ATTEMPT_SUCCEEDED,
    };

    det_assert(task->attempt == attempt && task->kind == TASK_PROCESS && task->has_permit);
    if (verdict <= 0)
        end.result = verdict < 0 ? ATTEMPT_FATAL : ATTEMPT_FAILED;
    /* After a stop request it dies of our own signal: the reason of the request is more useful. */
    if (verdict <= 0 && !det_task_is_cancelled(&task->context)) {
        det_process_end_text(ended, text, sizeof text);
        det_task_set_reason(task, text);
    }
    if (was_forced)
        end.result = ATTEMPT_FORCED;
    det_actor_ended(task, &end);
}

static int start_process(struct det_task *task)
{
    struct attempt *attempt = task->attempt;
    const struct det_child_events events = {
        .on_line = task->tasks->options.on_line ? process_line : NULL,
        .on_notify = process_notify,
        .on_end = process_end,
        .user = attempt,
    };
    struct det_error error;
    int r;

    r = det_child_start(
        task->tasks->loop, task->tasks->allocator, task->extras->process, &events, &attempt->child,
        &error);
    if (r < 0)
        det_task_set_reason(task, error.text);
    return r;
}

/* All kinds. */

static int start_kind(struct det_task *task)
{
    if (task->kind == TASK_STEP) {
        task->tasks->step.failure[0] = 0;
        return 0;
    }
    task->attempt = DET_NEW(task->tasks->allocator, struct attempt);
    if (!task->attempt) {
        det_task_set_reason(task, det_error_text(DET_ERR_NO_MEMORY));
        return DET_ERR_NO_MEMORY;
    }
    task->attempt->task = task;
    if (task->kind == TASK_PROCESS)
        return start_process(task);
    start_function(task);
    return 0;
}

int det_attempt_start(struct det_task *task)
{
    int r;

    det_assert(!task->attempt && task->has_permit);
    det_assert(task->kind != TASK_PROCESS || (task->extras && task->extras->process));
    r = det_checks_start(task);
    if (r == 0)
        r = start_kind(task);
    if (r < 0)
        task->attempts.ended = (struct attempt_end){
            .code = r,
            .result = ATTEMPT_FAILED,
            .is_shortage =
                task->kind == TASK_PROCESS && (r == DET_ERR_LIMIT || r == DET_ERR_NO_MEMORY),
        };
    return r;
}

/* A waiting function waits on the common condition. */
void det_attempt_cancel_work(struct det_task *task)
{
    struct det_tasks *tasks = task->tasks;

    __atomic_store_n(&task->context.is_cancelled, 1, __ATOMIC_RELEASE);
    det_mutex_lock(tasks->world, tasks->status.mutex);
    det_condition_broadcast(tasks->world, tasks->status.changed);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
}

bool det_attempt_stop(struct det_task *task)
{
    if (task->kind == TASK_FUNCTION || (task->extras && task->extras->checks))
        det_attempt_cancel_work(task);
    switch ((enum task_kind)task->kind) {
    case TASK_FUNCTION:
        break;
    case TASK_STEP:
        det_component_wake(&task->component);
        break;
    case TASK_PROCESS:
        (void)det_child_stop(task->attempt->child);
        break;
    }
    return false;
}

void det_attempt_report_stuck(struct det_task *task)
{
    if (!task->is_stuck)
        det_task_publish(task, DET_TASK_EVENT_TASK_STUCK);
    task->is_stuck = true;
}

static void set_reason_of_force(struct det_task *task)
{
    char text[DET_DURATION_TEXT + 32], span[DET_DURATION_TEXT];
    det_time grace = task->policy->grace;

    if (task->attempts.is_unhealthy)
        return;
    snprintf(
        text, sizeof text, "did not stop within %s",
        grace == DET_NEVER ? "the grace period of the shutdown"
                           : det_format_duration(grace, span, sizeof span));
    det_task_set_reason(task, text);
}

bool det_attempt_force(struct det_task *task)
{
    switch ((enum task_kind)task->kind) {
    case TASK_FUNCTION:
        det_attempt_report_stuck(task);
        return false;
    case TASK_STEP:
        set_reason_of_force(task);
        task->attempts.ended = (struct attempt_end){ .result = ATTEMPT_FORCED };
        return true;
    case TASK_PROCESS:
        set_reason_of_force(task);
        task->attempts.ended.result = ATTEMPT_FORCED;
        (void)det_child_kill(task->attempt->child);
        return false;
    }
    return false;
}

/* Converts the return value of a step to a directive. */
int det_attempt_step(struct det_task *task)
{
    char *text = task->tasks->step.failure;
    int r;

    det_assert(task->kind == TASK_STEP && !task->tasks->step.task);
    text[0] = 0;
    task->tasks->step.wake_at = DET_NEVER;
    task->tasks->step.task = task;
    r = task->work.step(&task->context, task->work.argument);
    det_assert(task->tasks->step.task == task);
    task->tasks->step.task = NULL;
    if (r == DET_STEP_AGAIN)
        return DET_DIRECTIVE_AGAIN;
    if (r == DET_STEP_WAIT)
        return DET_DIRECTIVE_CONTINUE;
    if (r > 0) {
        snprintf(text, DET_TASK_REASON_MAX + 1, "returned %d, which is not a step result", r);
        r = DET_ERR_INVALID;
    }
    task->attempts.ended = end_of_work(task, r);
    set_reason_of_work(task, r, text);
    return DET_DIRECTIVE_TRANSITION;
}

void det_attempt_close(struct det_task *task)
{
    det_checks_stop(task);
    if (!task->attempt)
        return;
    det_child_close(task->attempt->child);
    DET_DELETE(task->tasks->allocator, task->attempt);
    task->attempt = NULL;
}

void det_attempt_notify(struct det_task *task)
{
    if (task->context.is_notified)
        return;
    task->context.is_notified = true;
    if (task->attempt)
        det_loop_post(task->tasks->loop, &task->attempt->ready);
    else
        det_checks_notified(task);
}

int64_t det_attempt_process(const struct det_task *task)
{
    return task->attempt && task->attempt->child ? det_child_number(task->attempt->child) : 0;
}
