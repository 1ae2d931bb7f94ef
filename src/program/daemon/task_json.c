/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_json.c - tasks, slots, groups, lines, events and ends as objects. */
#include "daemon/task_json.h"

#include <string.h>

#include "base/text.h"
#include "terminal/terminal.h"

static json_t *text_or_null(const char *text)
{
    return text && *text ? cli_json_text(text) : json_null();
}

static json_t *number_or_null(int64_t number)
{
    return number ? json_integer(number) : json_null();
}

json_t *up_json_time(det_time wall)
{
    char text[DET_TIME_TEXT];

    return wall ? json_string(det_format_time(wall, text, sizeof text)) : json_null();
}

static json_t *code_or_null(const struct det_task_end *end)
{
    return end->has_exit_code ? json_integer(end->exit_code) : json_null();
}

/* Null where there is none. */
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

static void put_time(struct det_json_writer *json, const char *key, det_time wall)
{
    if (wall)
        det_json_time(json, key, wall);
    else
        det_json_null(json, key);
}

/* How the last attempt ended; "none" while none has. */
static void put_last(struct det_json_writer *json, const struct det_task_end *last)
{
    det_json_open(json, "last", '{');
    det_json_text(json, "outcome", det_task_outcome_label(last->outcome));
    if (last->has_exit_code)
        det_json_signed(json, "exit_code", last->exit_code);
    else
        det_json_null(json, "exit_code");
    put_number(json, "signal", last->signal);
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
    put_time(json, "since", info->since);
    put_time(json, "next_at", info->next_at);
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

json_t *up_json_slot(const struct det_slot_info *info)
{
    return json_pack(
        "{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "kind", "slot", "name",
        cli_json_text(info->name), "state", info->state, "width", (json_int_t)info->width, "depth",
        (json_int_t)info->depth, "depth_max", (json_int_t)info->depth_max, "owners",
        (json_int_t)info->owner_count, "owner", number_or_null((int64_t)info->owner), "owner_name",
        text_or_null(info->owner_name), "since", up_json_time(info->since), "started",
        (json_int_t)info->started, "rejected", (json_int_t)info->rejected, "replaced",
        (json_int_t)info->replaced);
}

json_t *up_json_end(const struct det_task_end *end)
{
    return json_pack(
        "{s:s, s:I, s:s, s:o, s:o, s:o, s:I, s:s}", "kind", "end", "id", (json_int_t)end->id,
        "outcome", det_task_outcome_label(end->outcome), "exit_code", code_or_null(end), "signal",
        number_or_null(end->signal), "reason", text_or_null(end->reason), "attempts",
        (json_int_t)end->attempts, "rejection", det_rejection_label(end->rejection));
}

json_t *up_json_event(const struct det_task_event *event, uint64_t missed)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:I}", "kind", "event", "event", det_task_event_label(event->kind), "missed",
        (json_int_t)missed);
    char text[DET_TASK_EVENT_LINE_MAX];
    json_t *members;

    det_task_event_json(event, text, sizeof text);
    members = json_loads(text, 0, NULL);
    if (!object || !members || json_object_del(members, "kind") < 0 ||
        json_object_update(object, members) < 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(members);
    return object;
}

json_t *up_json_line(const struct up_line *line, uint64_t missed)
{
    return json_pack(
        "{s:s, s:o, s:o, s:s, s:o, s:b, s:I, s:I}", "kind", "line", "at", up_json_time(line->at),
        "name", cli_json_text(line->name), "stream",
        line->stream == DET_STREAM_ERROR ? "error" : "output", "text",
        cli_json_text_n(line->text, line->size), "cut", line->is_cut, "dropped",
        (json_int_t)line->dropped, "missed", (json_int_t)missed);
}
