/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* span.c - spans, and the ring in which they wait for whoever exports them. */
#include "observe/span.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

#define QUEUE_MAX 2048
#define MILLION   1000000

struct det_tracer {
    struct det_world *world;
    const struct det_allocator *allocator;
    uint32_t kept_per_million;
    struct det_series *dropped; /* NULL: not counted */
    struct det_mutex *mutex;    /* of all below */
    struct det_condition *filled;
    struct det_span *ring;
    size_t capacity, first, count;
    size_t wanted; /* of the waiting thread; 0: none */
    bool is_awake;
};

int det_tracer_open(const struct det_tracer_options *options, struct det_tracer **ret)
{
    struct det_tracer *tracer = DET_NEW(options->allocator, struct det_tracer);
    int r;

    if (!tracer)
        return DET_ERR_NO_MEMORY;
    tracer->world = det_world_or_real(options->world);
    tracer->allocator = options->allocator;
    tracer->kept_per_million = options->kept_per_million ? options->kept_per_million : MILLION;
    tracer->capacity = options->queue_max ? options->queue_max : QUEUE_MAX;
    if (options->metrics)
        tracer->dropped = det_metrics_series(
            options->metrics, DET_METRIC_SPANS_DROPPED, (const char *const[]){ "full" });
    r = det_mutex_open(tracer->world, &tracer->mutex);
    if (r == 0)
        r = det_condition_open(tracer->world, &tracer->filled);
    if (r == 0) {
        tracer->ring = DET_NEW_ARRAY(tracer->allocator, tracer->capacity, struct det_span);
        r = tracer->ring ? 0 : DET_ERR_NO_MEMORY;
    }
    if (r < 0) {
        det_tracer_close(tracer);
        return r;
    }
    *ret = tracer;
    return 0;
}

void det_tracer_close(struct det_tracer *tracer)
{
    if (!tracer)
        return;
    if (tracer->ring)
        DET_DELETE_ARRAY(tracer->allocator, tracer->ring, tracer->capacity);
    det_condition_close(tracer->world, tracer->filled);
    det_mutex_close(tracer->world, tracer->mutex);
    DET_DELETE(tracer->allocator, tracer);
}

/* Zero is no id; chance gives it once in a very long time. */
static void draw_id(struct det_tracer *tracer, unsigned char *target, size_t size)
{
    det_world_random(tracer->world, target, size);
    if (target[0] == 0)
        target[0] = 1;
}

/* By the id, so that all who are asked about a trace with the same share agree. */
static bool is_kept(const struct det_tracer *tracer, const struct det_trace_context *context)
{
    uint32_t part;

    if (tracer->kept_per_million == UINT32_MAX)
        return false;
    memcpy(&part, context->trace_id + sizeof context->trace_id - sizeof part, sizeof part);
    return (uint64_t)part * MILLION >> 32 < tracer->kept_per_million;
}

static void begin_ids(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent)
{
    if (parent) {
        span->context = *parent;
        memcpy(span->parent, parent->span_id, sizeof span->parent);
    } else {
        draw_id(tracer, span->context.trace_id, sizeof span->context.trace_id);
        span->context.flags = is_kept(tracer, &span->context) ? DET_TRACE_SAMPLED : 0;
    }
    draw_id(tracer, span->context.span_id, sizeof span->context.span_id);
}

void det_span_begin(
    struct det_tracer *tracer, struct det_span *span, const struct det_trace_context *parent,
    enum det_span_kind kind, const char *name)
{
    /* The large arrays behind are written as far as they are used. */
    memset(span, 0, offsetof(struct det_span, name));
    span->name[0] = span->status[0] = '\0';
    if (!tracer)
        return;
    span->kind = kind;
    begin_ids(tracer, span, parent);
    (void)det_text_copy(span->name, sizeof span->name, name);
    span->start = det_world_now(tracer->world, DET_CLOCK_WALL);
    span->begun = det_world_now(tracer->world, DET_CLOCK_MONOTONIC);
}

static struct det_span_attribute *next_attribute(struct det_span *span, const char *key)
{
    struct det_span_attribute *attribute;

    if (!det_span_is_kept(span))
        return NULL;
    if (span->attribute_count == DET_SPAN_ATTRIBUTES_MAX) {
        span->left_out++;
        return NULL;
    }
    attribute = &span->attributes[span->attribute_count++];
    *attribute = (struct det_span_attribute){ .key = key };
    return attribute;
}

void det_span_text(struct det_span *span, const char *key, const char *value)
{
    size_t room = sizeof span->text - span->text_used, size = strlen(value) + 1;
    struct det_span_attribute *attribute;

    if (size > room) {
        span->left_out++;
        return;
    }
    attribute = next_attribute(span, key);
    if (!attribute)
        return;
    attribute->offset = span->text_used;
    memcpy(span->text + span->text_used, value, size);
    span->text_used = (uint16_t)(span->text_used + size);
}

void det_span_number(struct det_span *span, const char *key, int64_t value)
{
    struct det_span_attribute *attribute = next_attribute(span, key);

    if (!attribute)
        return;
    attribute->is_number = true;
    attribute->number = value;
}

void det_span_fail(struct det_span *span, const char *status)
{
    span->is_failed = true;
    (void)det_text_copy(span->status, sizeof span->status, status ? status : "");
}

/* With the lock. */
static bool put_span(struct det_tracer *tracer, const struct det_span *span)
{
    if (tracer->count == tracer->capacity)
        return false;
    tracer->ring[(tracer->first + tracer->count) % tracer->capacity] = *span;
    tracer->count++;
    if (tracer->wanted && tracer->count >= tracer->wanted)
        det_condition_signal(tracer->world, tracer->filled);
    return true;
}

static void finish_span(struct det_tracer *tracer, const struct det_span *span)
{
    bool is_put;

    if (!det_span_is_kept(span))
        return;
    det_mutex_lock(tracer->world, tracer->mutex);
    is_put = put_span(tracer, span);
    det_mutex_unlock(tracer->world, tracer->mutex);
    if (!is_put && tracer->dropped)
        det_series_count(tracer->dropped, 1);
}

void det_span_end(struct det_tracer *tracer, struct det_span *span)
{
    if (!tracer)
        return;
    span->end = span->start + det_world_now(tracer->world, DET_CLOCK_MONOTONIC) - span->begun;
    finish_span(tracer, span);
}

void det_span_end_at(struct det_tracer *tracer, struct det_span *span, det_time end, det_time took)
{
    if (!tracer)
        return;
    span->end = end;
    span->start = end - (took > 0 ? took : 0);
    finish_span(tracer, span);
}

/* With the lock: in the order in which they ended. */
static size_t take_spans(struct det_tracer *tracer, struct det_span *target, size_t most)
{
    size_t count = tracer->count < most ? tracer->count : most;

    det_assert(tracer->capacity > 0);
    for (size_t i = 0; i < count; i++)
        target[i] = tracer->ring[(tracer->first + i) % tracer->capacity];
    tracer->first = (tracer->first + count) % tracer->capacity;
    tracer->count -= count;
    return count;
}

size_t det_tracer_take(
    struct det_tracer *tracer, struct det_span *target, size_t most, det_time deadline)
{
    size_t count;
    int r = 0;

    det_mutex_lock(tracer->world, tracer->mutex);
    /* A queue that is full is worth taking, whatever was asked for. */
    tracer->wanted = most < tracer->capacity ? most : tracer->capacity;
    while (r == 0 && tracer->count < tracer->wanted && !tracer->is_awake)
        r = det_condition_wait(tracer->world, tracer->filled, tracer->mutex, deadline);
    tracer->wanted = 0;
    count = take_spans(tracer, target, most);
    det_mutex_unlock(tracer->world, tracer->mutex);
    return count;
}

void det_tracer_wake(struct det_tracer *tracer)
{
    det_mutex_lock(tracer->world, tracer->mutex);
    tracer->is_awake = true;
    det_condition_signal(tracer->world, tracer->filled);
    det_mutex_unlock(tracer->world, tracer->mutex);
}
