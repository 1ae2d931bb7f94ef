/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* notices.c - prints task events between output lines: starts, readiness, ends and retries. An
 * event that follows at once from another is printed with it. With --json each event is an
 * object. */
#include <detent/driver/policy.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "daemon/daemon.h"
#include "daemon/flows.h"
#include "daemon/project_internal.h"
#include "daemon/slots.h"
#include "daemon/task_json.h"
#include "daemon/tasks_internal.h"
#include "daemon/telemetry.h"
#include "daemon/workers.h"

static void put(
    struct up *up, enum det_log_level level, const char *name, const char *format,
    va_list arguments) DET_PRINTF(4, 0);

static void put(
    struct up *up, enum det_log_level level, const char *name, const char *format,
    va_list arguments)
{
    char text[512];

    if (!serve_log_has_level(up, level))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    if (up_logger(up)) {
        serve_log_note(up, level, name, text);
        return;
    }
    prefix_note(up_prefix(up), name, det_world_now(up_cli(up)->world, DET_CLOCK_WALL), "%s", text);
}

void up_note(struct up *up, const char *name, const char *format, ...)
{
    va_list arguments;

    if (up_options(up)->is_quiet)
        return;
    va_start(arguments, format);
    put(up, DET_LOG_INFO, name, format, arguments);
    va_end(arguments);
}

void up_note_failure(struct up *up, const char *name, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put(up, DET_LOG_WARNING, name, format, arguments);
    va_end(arguments);
}

const char *up_span(det_time span, char target[UP_SPAN_TEXT])
{
    det_time unit = span >= DET_HOUR          ? DET_MINUTE
                    : span >= DET_MINUTE      ? DET_SECOND
                    : span >= DET_SECOND      ? 100 * DET_MILLISECOND
                    : span >= DET_MILLISECOND ? DET_MILLISECOND
                                              : 1;

    return det_format_duration(det_add_time(span, unit / 2) / unit * unit, target, UP_SPAN_TEXT);
}

/* The failure that caused this event; NULL: none. */
static const char *failure_of(struct up *up, const struct det_task_event *event)
{
    return up_tasks(up)->failure.id == event->id && *up_tasks(up)->failure.reason
               ? up_tasks(up)->failure.reason
               : NULL;
}

static bool has_schedule(const struct up *up, const char *name)
{
    int index = up_find_task(up_project(up), name);
    const struct det_schedule *schedule =
        index < 0 ? NULL : &up_config(up)->tasks[index].spec.schedule;

    return schedule && (schedule->every || schedule->cron);
}

static void note_start(struct up *up, const struct det_task_event *event)
{
    char text[DET_ID_MAX + 32];
    const char *job = up_durable_take_job(up, event->name, text, sizeof text);

    if (job) {
        up_note(up, event->name, "started: %s", job);
        return;
    }
    /* Runs of a schedule are not retries. */
    if (event->attempt <= 1 || has_schedule(up, event->name))
        up_note(up, event->name, "started");
    else
        up_note(up, event->name, "started, attempt %u", (unsigned)event->attempt);
}

static void note_failure(struct up *up, const struct det_task_event *event)
{
    up_tasks(up)->failure.id = event->id;
    (void)det_text_copy(
        up_tasks(up)->failure.reason, sizeof up_tasks(up)->failure.reason, event->reason);
}

static void note_pause(struct up *up, const struct det_task_event *event)
{
    const char *failure = failure_of(up, event);
    unsigned next = (unsigned)event->attempt + 1;
    char span[UP_SPAN_TEXT];

    /* A task that could not start has no earlier failure. */
    if (!failure && *event->reason)
        failure = event->reason;
    up_span(event->delay, span);
    if (event->source == DET_BACKOFF_AFTER_SUCCESS && has_schedule(up, event->name))
        up_note(up, event->name, "%s; next run in %s", failure ? failure : "succeeded", span);
    else if (failure)
        up_note(up, event->name, "%s; attempt %u in %s", failure, next, span);
    else if (event->source == DET_BACKOFF_AFTER_FAILURE)
        up_note(up, event->name, "failed; attempt %u in %s", next, span);
    else if (event->delay > DET_DELAY_FLOOR)
        up_note(up, event->name, "succeeded; starts again in %s", span);
    up_tasks(up)->failure.id = 0;
}

static const char *reason_of(const struct det_task_event *event, const char *otherwise)
{
    return *event->reason ? event->reason : otherwise;
}

static void note_end(struct up *up, const struct det_task_event *event)
{
    const char *attempts = event->attempt == 1 ? "attempt" : "attempts";

    switch ((enum det_task_outcome)event->outcome) {
    case DET_TASK_OUTCOME_COMPLETED:
        up_note(up, event->name, "completed");
        break;
    case DET_TASK_OUTCOME_FAILED:
        up_note_failure(
            up, event->name, "failed permanently after %u %s: %s", (unsigned)event->attempt,
            attempts, reason_of(event, "no reason given"));
        break;
    case DET_TASK_OUTCOME_FATAL:
        up_note_failure(
            up, event->name, "failed permanently, not retried: %s",
            reason_of(event, "no reason given"));
        break;
    case DET_TASK_OUTCOME_FORCE_ABORTED:
        up_note_failure(up, event->name, "killed: it did not stop by itself");
        break;
    case DET_TASK_OUTCOME_REJECTED:
        up_note(
            up, event->name, "not run: %s",
            det_rejection_label((enum det_rejection)event->rejection));
        break;
    case DET_TASK_OUTCOME_CANCELLED:
    case DET_TASK_OUTCOME_NONE:
    case DET_TASK_OUTCOME_COUNT:
        break;
    }
    up_tasks(up)->failure.id = 0;
}

/* A killed task is reported at its end. */
static void note_stop(struct up *up, const struct det_task_event *event)
{
    char span[UP_SPAN_TEXT];

    if (event->signal != SIGKILL)
        up_note(up, event->name, "stopped after %s", up_span(event->duration, span));
}

static void note_group(struct up *up, const struct det_task_event *event)
{
    if (event->kind == DET_TASK_EVENT_GROUP_RESTARTING)
        up_note(up, event->name, "restarts its members: %s", reason_of(event, "one has failed"));
    else if (event->kind == DET_TASK_EVENT_GROUP_FAILED)
        up_note_failure(
            up, event->name, "the group has failed: %s", reason_of(event, "too many restarts"));
    else if (!up_is_stopping(up))
        up_note(up, event->name, "the group is stopped");
}

/* Emptied queues are not reported while detent stops. */
static void note_slot(struct up *up, const struct det_task_event *event)
{
    const char *name =
        up_is_refusal((enum det_rejection)event->rejection) ? up_slots_submitting(up) : NULL;

    if (up_is_stopping(up))
        return;
    for (size_t i = 0; i < up_config(up)->task_count && !name; i++) {
        if (up_project(up)->configured[i].id == event->id)
            name = up_config(up)->tasks[i].spec.name;
    }
    up_note(
        up, event->name, "does not run %s: %s", name ? name : "a job",
        reason_of(event, det_rejection_label((enum det_rejection)event->rejection)));
}

static void note_supervisor(struct up *up, const struct det_task_event *event)
{
    if (event->kind == DET_TASK_EVENT_GRACE_EXCEEDED)
        up_note_failure(up, UP_NAME, "did not stop in time and were killed: %s", event->reason);
    else
        up_note_failure(up, UP_NAME, "%s: %s", det_task_event_label(event->kind), event->reason);
}

static void note_event(struct up *up, const struct det_task_event *event)
{
    switch (event->kind) {
    case DET_TASK_EVENT_ATTEMPT_STARTING:
        note_start(up, event);
        break;
    case DET_TASK_EVENT_ATTEMPT_FAILED:
    case DET_TASK_EVENT_ATTEMPT_TIMED_OUT:
        note_failure(up, event);
        break;
    case DET_TASK_EVENT_ATTEMPT_CANCELLED:
        note_stop(up, event);
        break;
    case DET_TASK_EVENT_BACKOFF_SCHEDULED:
        note_pause(up, event);
        break;
    case DET_TASK_EVENT_RUNS_MISSED:
        up_note(
            up, event->name, "%llu run%s missed", (unsigned long long)event->count,
            event->count == 1 ? " was" : "s were");
        break;
    case DET_TASK_EVENT_TASK_READY:
        up_note(up, event->name, "ready");
        break;
    case DET_TASK_EVENT_TASK_UNHEALTHY:
        up_note(up, event->name, "unhealthy: %s", reason_of(event, "its check fails"));
        break;
    case DET_TASK_EVENT_CHECK_POSTPONED:
        up_note(up, event->name, "not checked: %s", event->reason);
        break;
    case DET_TASK_EVENT_TASK_STUCK:
        up_note_failure(up, event->name, "stuck: it does not stop");
        break;
    case DET_TASK_EVENT_POOL_EXHAUSTED:
        up_note(up, event->name, "waits for %s", event->reason);
        break;
    case DET_TASK_EVENT_TASK_FINISHED:
        note_end(up, event);
        break;
    case DET_TASK_EVENT_TASK_ADD_FAILED:
        up_note_failure(up, event->name, "not admitted: %s", event->reason);
        break;
    case DET_TASK_EVENT_SLOT_REJECTED:
        note_slot(up, event);
        break;
    case DET_TASK_EVENT_GROUP_RESTARTING:
    case DET_TASK_EVENT_GROUP_FAILED:
    case DET_TASK_EVENT_GROUP_STOPPED:
        note_group(up, event);
        break;
    case DET_TASK_EVENT_GRACE_EXCEEDED:
    case DET_TASK_EVENT_SUBSCRIBER_OVERFLOWED:
    case DET_TASK_EVENT_SUBSCRIBER_FAILED:
    case DET_TASK_EVENT_RUNTIME_FAILURE:
        note_supervisor(up, event);
        break;
    case DET_TASK_EVENT_ATTEMPT_SUCCEEDED:
    case DET_TASK_EVENT_TASK_ADD_REQUESTED:
    case DET_TASK_EVENT_TASK_ADDED:
    case DET_TASK_EVENT_TASK_REMOVE_REQUESTED:
    case DET_TASK_EVENT_TASK_REMOVED:
    case DET_TASK_EVENT_SLOT_SUBMITTED:
    case DET_TASK_EVENT_SLOT_CHANGED:
    case DET_TASK_EVENT_GROUP_STARTED:
    case DET_TASK_EVENT_ORDERED:
    case DET_TASK_EVENT_SHUTDOWN_REQUESTED:
    case DET_TASK_EVENT_ALL_STOPPED:
    case DET_TASK_EVENT_COUNT:
        break;
    }
}

/* Sets the exit code according to an end; jobs do not count. */
static void record_outcome(struct up *up, const struct det_task_event *event)
{
    if (event->outcome == DET_TASK_OUTCOME_FORCE_ABORTED && up_is_stopping(up) && !up_is_over(up))
        up_set_forced(up);
    if ((event->outcome == DET_TASK_OUTCOME_FAILED || event->outcome == DET_TASK_OUTCOME_FATAL) &&
        up_find_task(up_project(up), event->name) >= 0)
        up_set_failed(up);
}

/* Workers share the grace of tasks. */
static void end_tasks(struct up *up, bool is_late)
{
    up_tasks(up)->are_over = true;
    if (is_late)
        up_workers_stop(up);
    up_check_empty(up);
}

/* Applies an event to the run. */
static void apply_event(struct up *up, const struct det_task_event *event)
{
    up_check_again(up);
    if (event->kind == DET_TASK_EVENT_ATTEMPT_STARTING)
        up_waits_started(up, event->id);
    else if (event->kind == DET_TASK_EVENT_ATTEMPT_CANCELLED)
        up_waits_stopped(up, event->id);
    else if (event->kind == DET_TASK_EVENT_GROUP_STOPPED)
        up_waits_group_stopped(up, event->name);
    else if (
        event->kind == DET_TASK_EVENT_ALL_STOPPED || event->kind == DET_TASK_EVENT_GRACE_EXCEEDED)
        end_tasks(up, event->kind == DET_TASK_EVENT_GRACE_EXCEEDED);
    else if (event->kind == DET_TASK_EVENT_TASK_FINISHED)
        record_outcome(up, event);
    if (event->kind == DET_TASK_EVENT_GRACE_EXCEEDED)
        up_set_forced(up);
}

/* True if the file has this task or slot. */
static bool is_in_file(const struct up *up, const struct det_task_event *event)
{
    const struct config *config = up_config(up);

    if (event->kind != DET_TASK_EVENT_SLOT_SUBMITTED &&
        event->kind != DET_TASK_EVENT_SLOT_REJECTED && event->kind != DET_TASK_EVENT_SLOT_CHANGED)
        return up_find_task(up_project(up), event->name) >= 0;
    for (size_t i = 0; i < config->slot_count; i++) {
        if (strcmp(config->slots[i].name, event->name) == 0)
            return true;
    }
    return false;
}

static void print_event(struct cli *cli, const struct det_task_event *event)
{
    struct det_json_writer json;

    cli_json_begin(cli, &json, NULL);
    up_write_event(&json, event, 0);
    cli_json_end(cli, &json);
}

static int on_event(void *user, const struct det_task_event *event)
{
    struct up *up = user;
    char job[DET_ID_MAX + 32];

    apply_event(up, event);
    if (up_observe(up))
        det_monitor_task(up_observe(up)->monitor, event, is_in_file(up, event));
    if (event->kind == DET_TASK_EVENT_ATTEMPT_STARTING && event->attempt > 1)
        atomic_fetch_add(&up_tasks(up)->restarts, 1);
    if (up_cli(up)->is_json && event->kind == DET_TASK_EVENT_ATTEMPT_STARTING)
        (void)up_durable_take_job(up, event->name, job, sizeof job);
    if (up_cli(up)->is_json && !up_options(up)->is_quiet && up_has_output_room(up))
        print_event(up_cli(up), event);
    else if (!up_cli(up)->is_json)
        note_event(up, event);
    return 0;
}

struct det_subscriber up_notes_subscriber(struct up *up)
{
    return (struct det_subscriber){
        .name = "notes",
        .delivery = DET_DELIVER_LOSSLESS,
        .on_event = on_event,
        .user = up,
    };
}

/* Parts that have not stopped yet. */

struct stopping {
    struct up *up;
    struct det_buffer names;
    size_t count;
    det_time forced_in;
};

/* End of the grace of the task; the policy of the file applies to its tasks. */
static det_time grace_of(const struct up *up, const char *name)
{
    int index = up_find_task(up_project(up), name);
    struct det_policy policy = { 0 };
    struct det_error error;

    if (index >= 0)
        policy = up_config(up)->tasks[index].spec.policy;
    if (det_policy_resolve(&policy, &up_config(up)->defaults, &policy, &error) < 0)
        return DET_NEVER;
    return policy.grace;
}

static int add_stopping(void *user, const struct det_task_info *info)
{
    struct stopping *stopping = user;
    struct up *up = stopping->up;
    det_time ran, grace;

    if (info->process == 0)
        return 0;
    ran = det_world_now(up_cli(up)->world, DET_CLOCK_WALL) - info->since;
    grace = grace_of(up, info->name);
    if (info->is_removing && grace != DET_NEVER && grace - ran < stopping->forced_in)
        stopping->forced_in = grace > ran ? grace - ran : 0;
    det_buffer_format(&stopping->names, "%s%s", stopping->count++ ? ", " : "", info->name);
    return 0;
}

det_time up_grace(const struct up *up)
{
    return up_config(up)->limits.grace ? up_config(up)->limits.grace : 60 * DET_SECOND;
}

void up_note_stopping(struct up *up)
{
    struct stopping stopping = { .up = up };
    char span[UP_SPAN_TEXT];

    det_buffer_init(&stopping.names, up_allocator(up));
    stopping.forced_in = up_stop_began_at(up) + up_grace(up) - det_loop_now(up_loop(up));
    if (stopping.forced_in < 0)
        stopping.forced_in = 0;
    if (!up_workers_are_over(up))
        det_buffer_format(
            &stopping.names, "%s%zu worker%s", stopping.count++ ? ", " : "", up_workers_count(up),
            det_plural(up_workers_count(up)));
    if (up_flows_open_count(up) > 0)
        det_buffer_format(
            &stopping.names, "%s%zu flow%s", stopping.count++ ? ", " : "", up_flows_open_count(up),
            det_plural(up_flows_open_count(up)));
    if (det_tasks_each(up_tasks_supervisor(up), add_stopping, &stopping) == 0 && stopping.count > 0)
        up_note(
            up, UP_NAME, "still running: %s; killed in %s, or by another Ctrl-C",
            det_buffer_text(&stopping.names), up_span(stopping.forced_in, span));
    det_buffer_deinit(&stopping.names);
}
