/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_event.c - formats events of workers as key=value, and as members of objects. */
#include "inspect/worker_event.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define LEVEL_TRACE DET_LOG_DEBUG
#define LEVEL_DEBUG DET_LOG_DEBUG
#define LEVEL_INFO  DET_LOG_INFO
#define LEVEL_WARN  DET_LOG_WARNING
#define LEVEL_ERROR DET_LOG_ERROR

enum det_log_level worker_event_level(enum det_worker_event_kind kind)
{
    static const enum det_log_level levels[] = {
#define DET_WORKER_EVENT(name, wire, level, text) [DET_WORKER_EVENT_##name] = LEVEL_##level,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
    };

    det_assert(kind < sizeof levels / sizeof *levels);
    return levels[kind];
}

/* Words are printed unquoted. */
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
        det_json_quote(buffer, det_view_text(value));
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

static void put_text(struct det_json_writer *json, const char *key, const char *value)
{
    if (value && *value)
        det_json_text(json, key, value);
}

void worker_event_members(struct det_json_writer *json, const struct det_worker_event *event)
{
    const struct det_worker_identity *identity = event->identity;

    put_text(json, "event", det_worker_event_name(event->kind));
    put_text(json, "worker", identity ? identity->path : NULL);
    put_text(json, "id", identity ? identity->id : NULL);
    put_text(json, "from", event->from);
    put_text(json, "to", event->to);
    put_text(json, "action", event->action);
    put_text(json, "reason", event->reason);
    put_text(json, "error", event->code < 0 ? det_error_name(event->code) : NULL);
    if (event->number > 0)
        det_json_number(json, "number", event->number);
    if (event->took > 0)
        det_json_signed(json, "took_ns", event->took);
}

static void log_text(struct det_log_line *line, const char *key, const char *value)
{
    det_log_line_text(line, key, value && *value ? value : NULL);
}

void worker_event_line(struct det_log_line *line, const struct det_worker_event *event)
{
    const struct det_worker_identity *identity = event->identity;

    log_text(line, "worker", identity ? identity->path : NULL);
    log_text(line, "id", identity ? identity->id : NULL);
    log_text(line, "from", event->from);
    log_text(line, "to", event->to);
    log_text(line, "action", event->action);
    log_text(line, "reason", event->reason);
    log_text(line, "error", event->code < 0 ? det_error_name(event->code) : NULL);
    if (event->number > 0)
        det_log_line_number(line, "number", (int64_t)event->number);
    if (event->took > 0)
        det_log_line_span(line, "took", event->took);
}
