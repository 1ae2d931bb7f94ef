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

/* How the last attempt ended; "none" while none has. */
static json_t *last_of(const struct det_task_end *last)
{
    return json_pack(
        "{s:s, s:o, s:o}", "outcome", det_task_outcome_label(last->outcome), "exit_code",
        code_or_null(last), "signal", number_or_null(last->signal));
}

json_t *up_json_task(const struct det_task_info *info)
{
    return json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "kind", "task", "id", (json_int_t)info->id, "name", cli_json_text(info->name), "group",
        text_or_null(info->group), "slot", text_or_null(info->slot), "type", info->kind, "state",
        info->state, "ready", info->is_ready, "healthy", info->is_healthy, "attempt",
        (json_int_t)info->attempt, "failures", (json_int_t)info->failures, "restarts",
        (json_int_t)info->restarts, "since", up_json_time(info->since), "next_at",
        up_json_time(info->next_at), "reason", text_or_null(info->reason), "process",
        number_or_null(info->process), "waits_for", text_or_null(info->waits_for), "last",
        last_of(&info->last));
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

json_t *up_json_group(const struct det_group_info *info)
{
    static const char *const strategies[] = {
        [DET_ONE_FOR_ONE] = "one-for-one",
        [DET_ALL_FOR_ONE] = "all-for-one",
        [DET_REST_FOR_ONE] = "rest-for-one",
    };

    return json_pack(
        "{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "kind", "group", "name",
        cli_json_text(info->name), "parent", text_or_null(info->parent), "strategy",
        strategies[info->strategy], "state", info->state, "members", (json_int_t)info->members,
        "restarts", (json_int_t)info->restarts, "restarts_max", (json_int_t)info->restarts_max,
        "window_ns", (json_int_t)info->window, "reason", text_or_null(info->reason));
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
