/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* context.c - the context of a task's work: queries and reports. A function runs on its own thread;
 * its reports are stored in its attempt until the loop handles its end. */
#include <stdarg.h>
#include <stdio.h>

#include "task/attempt.h"

/* The context is a part of its task; a const pointer to it does not make the task constant. */
static struct det_task *task_of(const struct det_task_context *context)
{
    uintptr_t place = (uintptr_t)context - offsetof(struct det_task, context);

    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a cast of the pointer would drop its const */
    return (struct det_task *)place;
}

const char *det_task_name(const struct det_task_context *context)
{
    return task_of(context)->name;
}

det_task_id det_task_id_of(const struct det_task_context *context)
{
    return task_of(context)->node.id;
}

uint32_t det_task_attempt(const struct det_task_context *context)
{
    return task_of(context)->attempts.number;
}

struct det_world *det_task_world(const struct det_task_context *context)
{
    return task_of(context)->tasks->world;
}

bool det_task_is_cancelled(const struct det_task_context *context)
{
    return __atomic_load_n(&context->is_cancelled, __ATOMIC_ACQUIRE) != 0;
}

int det_task_wait(struct det_task_context *context, det_time deadline)
{
    struct det_tasks *tasks = task_of(context)->tasks;
    int r = 0;

    det_mutex_lock(tasks->world, tasks->status.mutex);
    while (!det_task_is_cancelled(context) && r == 0)
        r = det_condition_wait(tasks->world, tasks->status.changed, tasks->status.mutex, deadline);
    det_mutex_unlock(tasks->world, tasks->status.mutex);
    if (det_task_is_cancelled(context))
        return DET_ERR_CANCELLED;
    return r == DET_ERR_TIMEOUT ? 0 : r;
}

int det_task_unless_cancelled(struct det_task_context *context, det_task_fn *run, void *argument)
{
    return det_task_is_cancelled(context) ? DET_ERR_CANCELLED : run(context, argument);
}

DET_PRINTF(2, 0)
static void set_text(struct det_task_context *context, const char *format, va_list arguments)
{
    char *text = det_attempt_text(task_of(context));

    (void)vsnprintf(text, DET_TASK_REASON_MAX + 1, format, arguments);
}

int det_task_fail(struct det_task_context *context, int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set_text(context, format, arguments);
    va_end(arguments);
    return code;
}

int det_task_fatal(struct det_task_context *context, int code, const char *format, ...)
{
    va_list arguments;

    context->is_fatal = true;
    va_start(arguments, format);
    set_text(context, format, arguments);
    va_end(arguments);
    return code;
}

void det_task_set_exit_code(struct det_task_context *context, int32_t code)
{
    context->exit_code = code;
    context->has_exit_code = true;
}

void det_task_ready(struct det_task_context *context)
{
    det_attempt_notify(task_of(context));
}

void det_task_wake_at(struct det_task_context *context, det_time at)
{
    struct det_tasks *tasks = task_of(context)->tasks;

    if (at < tasks->step.wake_at)
        tasks->step.wake_at = at;
}

void det_scope_cancel(struct det_scope *scope)
{
    __atomic_store_n(&scope->internal.is_cancelled, 1, __ATOMIC_RELEASE);
}

bool det_scope_is_cancelled(const struct det_scope *scope)
{
    const struct det_task_context *context = NULL;

    for (; scope; scope = scope->parent) {
        if (__atomic_load_n(&scope->internal.is_cancelled, __ATOMIC_ACQUIRE))
            return true;
        context = scope->context ? scope->context : context;
    }
    return context && det_task_is_cancelled(context);
}
