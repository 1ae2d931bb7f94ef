/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_event.c - events of workers as key=value, and as members of objects. */
#include "inspect/worker_event.h"

#include <string.h>

#include "base/text.h"
#include "observe/quote.h"

#define LEVEL_TRACE DET_LOG_DEBUG
#define LEVEL_DEBUG DET_LOG_DEBUG
#define LEVEL_INFO  DET_LOG_INFO
#define LEVEL_WARN  DET_LOG_WARNING
#define LEVEL_ERROR DET_LOG_ERROR

enum det_log_level worker_event_level(enum det_worker_event_kind kind)
{
    static const enum det_log_level levels[] = {
#define DET_WORKER_EVENT(name, wire, level, text) [DET_WORKER_##name] = LEVEL_##level,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
    };

    return levels[kind];
}

/* A word as it is, anything else between quotes. */
static bool is_word(const char *text)
{
    return *text && !text[strcspn(text, " \t\r\n\"\\=")];
}

void worker_event_pair(struct det_buffer *buffer, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    det_buffer_format(buffer, " %s=", key);
    if (is_word(value))
        det_buffer_append_text(buffer, value);
    else
        det_buffer_quote(buffer, det_view_text(value));
}

static void add_span(struct det_buffer *buffer, const char *key, det_time span)
{
    char text[DET_DURATION_TEXT];

    if (span <= 0)
        return;
    det_format_duration(span / DET_MILLISECOND * DET_MILLISECOND, text, sizeof text);
    worker_event_pair(buffer, key, text);
}

void worker_event_text(struct det_buffer *buffer, const struct det_worker_event *event)
{
    worker_event_pair(buffer, "worker", event->identity ? event->identity->path : NULL);
    worker_event_pair(buffer, "from", event->from);
    worker_event_pair(buffer, "to", event->to);
    worker_event_pair(buffer, "action", event->action);
    worker_event_pair(buffer, "reason", event->reason);
    if (event->code < 0)
        worker_event_pair(buffer, "error", det_error_name(event->code));
    if (event->number > 0)
        det_buffer_format(buffer, " number=%llu", (unsigned long long)event->number);
    add_span(buffer, "took", event->took);
}

static void set_text(json_t *object, const char *key, const char *value)
{
    if (object && value && *value)
        (void)json_object_set_new(object, key, cli_json_text(value));
}

void worker_event_members(json_t *object, const struct det_worker_event *event)
{
    const struct det_worker_identity *identity = event->identity;

    set_text(object, "event", det_worker_event_name(event->kind));
    set_text(object, "worker", identity ? identity->path : NULL);
    set_text(object, "id", identity ? identity->id : NULL);
    set_text(object, "from", event->from);
    set_text(object, "to", event->to);
    set_text(object, "action", event->action);
    set_text(object, "reason", event->reason);
    set_text(object, "error", event->code < 0 ? det_error_name(event->code) : NULL);
    if (object && event->number > 0)
        (void)json_object_set_new(object, "number", json_integer((json_int_t)event->number));
    if (object && event->took > 0)
        (void)json_object_set_new(object, "took_ns", json_integer((json_int_t)event->took));
}

static void det_json_text(struct det_log_line *line, const char *key, const char *value)
{
    det_log_line_text(line, key, value && *value ? value : NULL);
}

void worker_event_line(struct det_log_line *line, const struct det_worker_event *event)
{
    const struct det_worker_identity *identity = event->identity;

    det_json_text(line, "worker", identity ? identity->path : NULL);
    det_json_text(line, "id", identity ? identity->id : NULL);
    det_json_text(line, "from", event->from);
    det_json_text(line, "to", event->to);
    det_json_text(line, "action", event->action);
    det_json_text(line, "reason", event->reason);
    det_json_text(line, "error", event->code < 0 ? det_error_name(event->code) : NULL);
    if (event->number > 0)
        det_log_line_number(line, "number", (int64_t)event->number);
    if (event->took > 0)
        det_log_line_span(line, "took", event->took);
}
