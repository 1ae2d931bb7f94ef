/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_text.c - formats events as a line for people and as a line of JSON, and has the labels of
 * their enums.
 *
 * One list of fields serves both. A zero field does not belong to the event and is omitted. */
#include <detent/bus.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/text_sink.h"

static const char *const kind_labels[] = {
#define DET_TASK_EVENT(name, label, about) [DET_TASK_EVENT_##name] = (label),
#include <detent/task_events.def>
};

static const char *const outcome_labels[] = {
    [DET_TASK_OUTCOME_NONE] = "none",           [DET_TASK_OUTCOME_COMPLETED] = "completed",
    [DET_TASK_OUTCOME_FAILED] = "failed",       [DET_TASK_OUTCOME_FATAL] = "fatal",
    [DET_TASK_OUTCOME_CANCELLED] = "cancelled", [DET_TASK_OUTCOME_FORCE_ABORTED] = "force_aborted",
    [DET_TASK_OUTCOME_REJECTED] = "rejected",
};

static const char *const rejection_labels[] = {
    [DET_REJECTION_NONE] = "none",
    [DET_REJECTION_ALREADY_EXISTS] = "already_exists",
    [DET_REJECTION_BATCH_REJECTED] = "batch_rejected",
    [DET_REJECTION_SLOT_BUSY] = "slot_busy",
    [DET_REJECTION_QUEUE_FULL] = "queue_full",
    [DET_REJECTION_SUPERSEDED] = "superseded",
    [DET_REJECTION_REMOVED] = "removed",
    [DET_REJECTION_PURGED] = "purged",
    [DET_REJECTION_SHUTTING_DOWN] = "shutting_down",
    [DET_REJECTION_FAILED] = "failed",
};

_Static_assert(
    sizeof outcome_labels / sizeof outcome_labels[0] == DET_TASK_OUTCOME_COUNT, "each once");
_Static_assert(
    sizeof rejection_labels / sizeof rejection_labels[0] == DET_REJECTION_COUNT, "each once");

const char *det_task_event_label(enum det_task_event_kind kind)
{
    return (unsigned)kind < DET_TASK_EVENT_COUNT ? kind_labels[kind] : "unknown";
}

const char *det_task_outcome_label(enum det_task_outcome outcome)
{
    return (unsigned)outcome < DET_TASK_OUTCOME_COUNT ? outcome_labels[outcome] : "unknown";
}

const char *det_rejection_label(enum det_rejection rejection)
{
    return (unsigned)rejection < DET_REJECTION_COUNT ? rejection_labels[rejection] : "unknown";
}

struct writer {
    struct det_output output;
    bool for_people;
};

static void put_key(struct writer *writer, const char *key)
{
    det_output_text(&writer->output, writer->for_people ? " " : ",\"");
    det_output_text(&writer->output, key);
    det_output_text(&writer->output, writer->for_people ? "=" : "\":");
}

static void put_number(struct writer *writer, const char *key, int64_t number)
{
    char text[24];

    put_key(writer, key);
    snprintf(text, sizeof text, "%" PRId64, number);
    det_output_text(&writer->output, text);
}

static void put_count_unless_0(struct writer *writer, const char *key, uint64_t count)
{
    char text[24];

    if (count == 0)
        return;
    put_key(writer, key);
    snprintf(text, sizeof text, "%" PRIu64, count);
    det_output_text(&writer->output, text);
}

/* "delay=1.5s" for people, "delay_ns":1500000000 for programs. */
static void put_span(struct writer *writer, const char *key, const char *json_key, det_time span)
{
    char text[DET_DURATION_TEXT];

    if (span == 0)
        return;
    if (!writer->for_people) {
        put_number(writer, json_key, span);
        return;
    }
    put_key(writer, key);
    det_output_text(&writer->output, det_format_duration(span, text, sizeof text));
}

static void put_word(struct writer *writer, const char *key, const char *word)
{
    put_key(writer, key);
    if (writer->for_people)
        det_output_text(&writer->output, word);
    else
        det_output_quoted(&writer->output, det_view_text(word));
}

static struct det_view view_of(const char *text, size_t size_max)
{
    return det_view_of(text, strnlen(text, size_max));
}

/* The inside of a quoted string. */
static void put_inside(struct det_output *output, struct det_view text)
{
    char quoted[DET_TASK_REASON_MAX * 6 + 3];
    struct det_output inner = { quoted, sizeof quoted, 0 };

    det_output_quoted(&inner, text);
    det_output_append(output, quoted + 1, inner.length - 2);
}

/* A text for people: quotes are not escaped, everything else is as in a JSON string. */
static void put_text(struct det_output *output, struct det_view text)
{
    while (text.size > 0) {
        const char *quote = memchr(text.data, '"', text.size);
        size_t size = quote ? (size_t)(quote - text.data) : text.size;

        put_inside(output, det_view_of(text.data, size));
        text = det_view_of(text.data + size, text.size - size);
        if (quote) {
            det_output_char(output, '"');
            text = det_view_of(text.data + 1, text.size - 1);
        }
    }
}

static void put_fields(struct writer *writer, const struct det_task_event *event)
{
    put_count_unless_0(writer, "attempt", event->attempt);
    put_span(writer, "delay", "delay_ns", event->delay);
    put_span(writer, "timeout", "timeout_ns", event->timeout);
    put_span(writer, "duration", "duration_ns", event->duration);
    put_count_unless_0(writer, "count", event->count);
    if (event->has_exit_code)
        put_number(writer, "exit_code", event->exit_code);
    put_count_unless_0(writer, "signal", event->signal);
    if (event->outcome)
        put_word(writer, "outcome", det_task_outcome_label((enum det_task_outcome)event->outcome));
    if (event->rejection)
        put_word(writer, "rejection", det_rejection_label((enum det_rejection)event->rejection));
    if (event->kind == DET_TASK_EVENT_BACKOFF_SCHEDULED)
        put_word(
            writer, "source", event->source == DET_BACKOFF_AFTER_SUCCESS ? "success" : "failure");
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through `writer` */
size_t det_task_event_text(const struct det_task_event *event, char *target, size_t size)
{
    struct writer writer = { { target, size, 0 }, true };
    struct det_view name = view_of(event->name, DET_TASK_NAME_MAX);
    struct det_view reason = view_of(event->reason, DET_TASK_REASON_MAX);
    char text[32];

    snprintf(text, sizeof text, "[%" PRIu64 "] ", event->sequence);
    det_output_text(&writer.output, text);
    det_output_text(&writer.output, det_task_event_label(event->kind));
    if (name.size > 0) {
        det_output_char(&writer.output, ' ');
        put_text(&writer.output, name);
    }
    put_fields(&writer, event);
    if (reason.size > 0) {
        det_output_text(&writer.output, ": ");
        put_text(&writer.output, reason);
    }
    return det_output_finish(&writer.output);
}

static void put_json_text(struct writer *writer, const char *key, const char *text, size_t size_max)
{
    struct det_view view = view_of(text, size_max);

    if (view.size == 0)
        return;
    put_key(writer, key);
    det_output_quoted(&writer->output, view);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written through `writer` */
size_t det_task_event_json(const struct det_task_event *event, char *target, size_t size)
{
    struct writer writer = { { target, size, 0 }, false };
    char text[48];

    snprintf(text, sizeof text, "{\"sequence\":%" PRIu64, event->sequence);
    det_output_text(&writer.output, text);
    put_word(&writer, "at", det_format_time(event->at, text, sizeof text));
    put_word(&writer, "kind", det_task_event_label(event->kind));
    put_count_unless_0(&writer, "id", event->id);
    put_json_text(&writer, "name", event->name, DET_TASK_NAME_MAX);
    put_fields(&writer, event);
    put_json_text(&writer, "reason", event->reason, DET_TASK_REASON_MAX);
    det_output_char(&writer.output, '}');
    return det_output_finish(&writer.output);
}
