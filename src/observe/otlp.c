/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp.c - writes spans as OTLP in JSON. */
#include "observe/otlp.h"

#include <inttypes.h>
#include <string.h>

#include "observe/hex.h"
#include "json/writer.h"

#define STATUS_ERROR 2

static void write_text(struct det_buffer *buffer, const char *key, const char *text)
{
    det_buffer_format(buffer, "\"%s\":", key);
    det_json_quote(buffer, det_view_text(text));
}

static void write_id(
    struct det_buffer *buffer, const char *key, const unsigned char *id, size_t size)
{
    char text[33];

    det_hex_write(id, size, text);
    det_buffer_format(buffer, "\"%s\":\"%s\"", key, text);
}

/* The separator of list elements. */
static void write_comma(struct det_buffer *buffer)
{
    if (buffer->size > 0 && !strchr("{[", det_buffer_text(buffer)[buffer->size - 1]))
        det_buffer_append_char(buffer, ',');
}

static void write_text_attribute(struct det_buffer *buffer, const char *key, const char *value)
{
    if (!value)
        return;
    write_comma(buffer);
    det_buffer_append_char(buffer, '{');
    write_text(buffer, "key", key);
    det_buffer_append_text(buffer, ",\"value\":{");
    write_text(buffer, "stringValue", value);
    det_buffer_append_text(buffer, "}}");
}

static void write_attribute(
    struct det_buffer *buffer, const struct det_span *span,
    const struct det_span_attribute *attribute)
{
    if (!attribute->is_number) {
        write_text_attribute(buffer, attribute->key, span->text + attribute->offset);
        return;
    }
    write_comma(buffer);
    det_buffer_append_char(buffer, '{');
    write_text(buffer, "key", attribute->key);
    det_buffer_format(buffer, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}", attribute->number);
}

static bool has_id(const unsigned char *id, size_t size)
{
    static const unsigned char none[16];

    return memcmp(id, none, size) != 0;
}

static void write_cause(struct det_buffer *buffer, const struct det_trace_context *cause)
{
    if (!has_id(cause->trace_id, sizeof cause->trace_id))
        return;
    det_buffer_append_text(buffer, ",\"links\":[{");
    write_id(buffer, "traceId", cause->trace_id, sizeof cause->trace_id);
    det_buffer_append_char(buffer, ',');
    write_id(buffer, "spanId", cause->span_id, sizeof cause->span_id);
    det_buffer_append_text(buffer, "}]");
}

static void write_status(struct det_buffer *buffer, const struct det_span *span)
{
    if (!span->is_failed)
        return;
    det_buffer_format(buffer, ",\"status\":{\"code\":%d,", STATUS_ERROR);
    write_text(buffer, "message", span->status);
    det_buffer_append_char(buffer, '}');
}

static void write_span(struct det_buffer *buffer, const struct det_span *span)
{
    write_comma(buffer);
    det_buffer_append_char(buffer, '{');
    write_id(buffer, "traceId", span->context.trace_id, sizeof span->context.trace_id);
    det_buffer_append_char(buffer, ',');
    write_id(buffer, "spanId", span->context.span_id, sizeof span->context.span_id);
    if (has_id(span->parent, sizeof span->parent)) {
        det_buffer_append_char(buffer, ',');
        write_id(buffer, "parentSpanId", span->parent, sizeof span->parent);
    }
    det_buffer_append_char(buffer, ',');
    write_text(buffer, "name", span->name);
    det_buffer_format(
        buffer,
        ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64 "\"",
        (int)span->kind, span->start, span->end);
    det_buffer_append_text(buffer, ",\"attributes\":[");
    for (size_t i = 0; i < span->attribute_count; i++)
        write_attribute(buffer, span, &span->attributes[i]);
    det_buffer_append_char(buffer, ']');
    if (span->left_out)
        det_buffer_format(buffer, ",\"droppedAttributesCount\":%" PRIu32, span->left_out);
    write_cause(buffer, &span->cause);
    write_status(buffer, span);
    det_buffer_append_char(buffer, '}');
}

void det_otlp_write(
    struct det_buffer *buffer, const struct det_otlp_resource *resource,
    const struct det_span *spans, size_t count)
{
    det_buffer_append_text(buffer, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    write_text_attribute(buffer, "service.name", resource->service_name);
    write_text_attribute(buffer, "service.version", resource->service_version);
    write_text_attribute(buffer, "service.instance.id", resource->instance_id);
    det_buffer_append_text(buffer, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"detent\",");
    write_text(buffer, "version", det_version());
    det_buffer_append_text(buffer, "},\"spans\":[");
    for (size_t i = 0; i < count; i++)
        write_span(buffer, &spans[i]);
    det_buffer_append_text(buffer, "]}]}]}");
}
