/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp.c - writes spans as OTLP in JSON. */
#include "observe/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hex.h"

#define STATUS_ERROR 2

/* Bytes that are not UTF-8 become U+FFFD. */
static void write_text(struct det_json_writer *json, const char *key, const char *text)
{
    det_json_key(json, key);
    det_json_quote(&json->text, det_view_text(text));
}

static void write_id(
    struct det_json_writer *json, const char *key, const unsigned char *id, size_t size)
{
    char text[2 * sizeof((struct det_trace_context *)0)->trace_id + 1];

    det_assert(2 * size < sizeof text);
    det_hex_write(id, size, text);
    det_json_text(json, key, text);
}

/* OTLP writes 64-bit numbers as strings. */
static void write_number(struct det_json_writer *json, const char *key, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, number);
    det_json_text(json, key, text);
}

static void open_attribute(struct det_json_writer *json, const char *key)
{
    det_json_open(json, NULL, '{');
    det_json_text(json, "key", key);
    det_json_open(json, "value", '{');
}

static void close_attribute(struct det_json_writer *json)
{
    det_json_close(json, '}');
    det_json_close(json, '}');
}

static void write_text_attribute(struct det_json_writer *json, const char *key, const char *value)
{
    if (!value)
        return;
    open_attribute(json, key);
    write_text(json, "stringValue", value);
    close_attribute(json);
}

static void write_attribute(
    struct det_json_writer *json, const struct det_span *span,
    const struct det_span_attribute *attribute)
{
    if (!attribute->is_number) {
        write_text_attribute(json, attribute->key, span->text + attribute->offset);
        return;
    }
    open_attribute(json, attribute->key);
    write_number(json, "intValue", attribute->number);
    close_attribute(json);
}

static bool has_id(const unsigned char *id, size_t size)
{
    static const unsigned char none[16];

    det_assert(size <= sizeof none);
    return memcmp(id, none, size) != 0;
}

static void write_cause(struct det_json_writer *json, const struct det_trace_context *cause)
{
    if (!has_id(cause->trace_id, sizeof cause->trace_id))
        return;
    det_json_open(json, "links", '[');
    det_json_open(json, NULL, '{');
    write_id(json, "traceId", cause->trace_id, sizeof cause->trace_id);
    write_id(json, "spanId", cause->span_id, sizeof cause->span_id);
    det_json_close(json, '}');
    det_json_close(json, ']');
}

static void write_status(struct det_json_writer *json, const struct det_span *span)
{
    if (!span->is_failed)
        return;
    det_json_open(json, "status", '{');
    det_json_signed(json, "code", STATUS_ERROR);
    write_text(json, "message", span->status);
    det_json_close(json, '}');
}

static void write_span(struct det_json_writer *json, const struct det_span *span)
{
    det_json_open(json, NULL, '{');
    write_id(json, "traceId", span->context.trace_id, sizeof span->context.trace_id);
    write_id(json, "spanId", span->context.span_id, sizeof span->context.span_id);
    if (has_id(span->parent, sizeof span->parent))
        write_id(json, "parentSpanId", span->parent, sizeof span->parent);
    write_text(json, "name", span->name);
    det_json_signed(json, "kind", span->kind);
    write_number(json, "startTimeUnixNano", span->start);
    write_number(json, "endTimeUnixNano", span->end);
    det_json_open(json, "attributes", '[');
    for (size_t i = 0; i < span->attribute_count; i++)
        write_attribute(json, span, &span->attributes[i]);
    det_json_close(json, ']');
    if (span->left_out)
        det_json_number(json, "droppedAttributesCount", span->left_out);
    write_cause(json, &span->cause);
    write_status(json, span);
    det_json_close(json, '}');
}

static void write_resource(struct det_json_writer *json, const struct det_otlp_resource *resource)
{
    det_json_open(json, "resource", '{');
    det_json_open(json, "attributes", '[');
    write_text_attribute(json, "service.name", resource->service_name);
    write_text_attribute(json, "service.version", resource->service_version);
    write_text_attribute(json, "service.instance.id", resource->instance_id);
    det_json_close(json, ']');
    det_json_close(json, '}');
}

/* One resource, with the spans of one scope. */
void det_otlp_write(
    struct det_json_writer *json, const struct det_otlp_resource *resource,
    const struct det_span *spans, size_t count)
{
    unsigned depth = json->depth;

    det_json_open(json, NULL, '{');
    det_json_open(json, "resourceSpans", '[');
    det_json_open(json, NULL, '{');
    write_resource(json, resource);
    det_json_open(json, "scopeSpans", '[');
    det_json_open(json, NULL, '{');
    det_json_open(json, "scope", '{');
    det_json_text(json, "name", "detent");
    det_json_text(json, "version", det_version());
    det_json_close(json, '}');
    det_json_open(json, "spans", '[');
    for (size_t i = 0; i < count; i++)
        write_span(json, &spans[i]);
    det_json_close(json, ']');
    det_json_close(json, '}');
    det_json_close(json, ']');
    det_json_close(json, '}');
    det_json_close(json, ']');
    det_json_close(json, '}');
    det_assert(json->depth == depth);
}
