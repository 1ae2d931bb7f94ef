/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_json.c - writes tasks, slots, groups, lines, events and ends as JSON objects. */
#include "daemon/task_json.h"

#include <string.h>

#include "base/text.h"
#include "terminal/terminal.h"

/* Null for an empty text, 0 or no time. */
static void put_text(struct det_json_writer *json, const char *key, const char *text)
{
    if (text && *text)
        det_json_bytes(json, key, text, strlen(text));
    else
        det_json_null(json, key);
}

static void put_number(struct det_json_writer *json, const char *key, int64_t number)
{
    if (number)
        det_json_signed(json, key, number);
    else
        det_json_null(json, key);
}

void up_write_time(struct det_json_writer *json, const char *key, det_time wall)
{
    if (wall)
        det_json_time(json, key, wall);
    else
        det_json_null(json, key);
}

static void put_outcome(struct det_json_writer *json, const struct det_task_end *end)
{
    det_json_text(json, "outcome", det_task_outcome_label(end->outcome));
    if (end->has_exit_code)
        det_json_signed(json, "exit_code", end->exit_code);
    else
        det_json_null(json, "exit_code");
    put_number(json, "signal", end->signal);
}

/* The outcome of the last attempt; "none" before the first end. */
static void put_last(struct det_json_writer *json, const struct det_task_end *last)
{
    det_json_open(json, "last", '{');
    put_outcome(json, last);
    det_json_close(json, '}');
}

void up_write_task(struct det_json_writer *json, const struct det_task_info *info)
{
    det_json_text(json, "kind", "task");
    det_json_number(json, "id", info->id);
    put_text(json, "name", info->name);
    put_text(json, "group", info->group);
    put_text(json, "slot", info->slot);
    det_json_text(json, "type", info->kind);
    det_json_text(json, "state", info->state);
    det_json_bool(json, "ready", info->is_ready);
    det_json_bool(json, "healthy", info->is_healthy);
    det_json_number(json, "attempt", info->attempt);
    det_json_number(json, "failures", info->failures);
    det_json_number(json, "restarts", info->restarts);
    up_write_time(json, "since", info->since);
    up_write_time(json, "next_at", info->next_at);
    put_text(json, "reason", info->reason);
    put_number(json, "process", info->process);
    put_text(json, "waits_for", info->waits_for);
    put_last(json, &info->last);
}

void up_write_group(struct det_json_writer *json, const struct det_task_group_info *info)
{
    static const char *const strategies[] = {
        [DET_STRATEGY_ONE_FOR_ONE] = "one-for-one",
        [DET_STRATEGY_ALL_FOR_ONE] = "all-for-one",
        [DET_STRATEGY_REST_FOR_ONE] = "rest-for-one",
    };

    det_json_text(json, "kind", "group");
    put_text(json, "name", info->name);
    put_text(json, "parent", info->parent);
    det_json_text(json, "strategy", strategies[info->strategy]);
    det_json_text(json, "state", info->state);
    det_json_number(json, "members", info->members);
    det_json_number(json, "restarts", info->restarts);
    det_json_number(json, "restarts_max", info->restarts_max);
    det_json_signed(json, "window_ns", info->window);
    put_text(json, "reason", info->reason);
}

static void put_unless(
    struct det_json_writer *json, const char *key, bool is_unknown, uint64_t number)
{
    if (is_unknown)
        det_json_null(json, key);
    else
        det_json_number(json, key, number);
}

void up_write_slot(struct det_json_writer *json, const struct det_slot_info *info, bool is_durable)
{
    det_json_text(json, "kind", "slot");
    det_json_text(json, "name", info->name);
    det_json_text(json, "state", info->state);
    det_json_number(json, "width", info->width);
    det_json_number(json, "depth", info->depth);
    put_unless(json, "depth_max", is_durable, info->depth_max);
    det_json_number(json, "owners", info->owner_count);
    put_number(json, "owner", (int64_t)info->owner);
    put_text(json, "owner_name", info->owner_name);
    up_write_time(json, "since", info->since);
    put_unless(json, "started", is_durable, info->started);
    put_unless(json, "rejected", is_durable, info->rejected);
    put_unless(json, "replaced", is_durable, info->replaced);
    det_json_bool(json, "durable", is_durable);
}

void up_write_end(struct det_json_writer *json, const struct det_task_end *end)
{
    det_json_text(json, "kind", "end");
    det_json_number(json, "id", end->id);
    put_outcome(json, end);
    put_text(json, "reason", end->reason);
    det_json_number(json, "attempts", end->attempts);
    det_json_text(json, "rejection", det_rejection_label(end->rejection));
}

/* The member only if it is not 0 or empty. */

static void put_found(struct det_json_writer *json, const char *key, int64_t number)
{
    if (number)
        det_json_signed(json, key, number);
}

static void put_word(struct det_json_writer *json, const char *key, const char *text, size_t most)
{
    size_t size = strnlen(text, most);

    if (size)
        det_json_bytes(json, key, text, size);
}

/* Same keys as det_task_event_json(). */
static void write_event_members(struct det_json_writer *json, const struct det_task_event *event)
{
    put_found(json, "attempt", event->attempt);
    put_found(json, "delay_ns", event->delay);
    put_found(json, "timeout_ns", event->timeout);
    put_found(json, "duration_ns", event->duration);
    put_found(json, "count", (int64_t)event->count);
    if (event->has_exit_code)
        det_json_signed(json, "exit_code", event->exit_code);
    put_found(json, "signal", event->signal);
    if (event->outcome)
        det_json_text(
            json, "outcome", det_task_outcome_label((enum det_task_outcome)event->outcome));
    if (event->rejection)
        det_json_text(json, "rejection", det_rejection_label((enum det_rejection)event->rejection));
    if (event->kind == DET_TASK_EVENT_BACKOFF_SCHEDULED)
        det_json_text(
            json, "source", event->source == DET_BACKOFF_AFTER_SUCCESS ? "success" : "failure");
    put_word(json, "reason", event->reason, DET_TASK_REASON_MAX);
}

void up_write_event(
    struct det_json_writer *json, const struct det_task_event *event, uint64_t missed)
{
    det_json_text(json, "kind", "event");
    det_json_text(json, "event", det_task_event_label(event->kind));
    det_json_number(json, "missed", missed);
    det_json_number(json, "sequence", event->sequence);
    det_json_time(json, "at", event->at);
    put_found(json, "id", (int64_t)event->id);
    put_word(json, "name", event->name, DET_TASK_NAME_MAX);
    write_event_members(json, event);
}

void up_write_line(struct det_json_writer *json, const struct up_line *line, uint64_t missed)
{
    det_json_text(json, "kind", "line");
    up_write_time(json, "at", line->at);
    det_json_bytes(json, "name", line->name, strlen(line->name));
    det_json_text(json, "stream", line->stream == DET_STREAM_ERROR ? "error" : "output");
    det_json_bytes(json, "text", line->text, line->size);
    det_json_bool(json, "cut", line->is_cut);
    det_json_number(json, "dropped", line->dropped);
    det_json_number(json, "missed", missed);
}
