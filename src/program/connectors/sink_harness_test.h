/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sink_harness_test.h - drives a sink as a pipeline does: open, begin once, deliver, flush; and
 * kills it between two of these. The cursor is that of the last receipt. */
#ifndef DET_CONNECTORS_SINK_HARNESS_TEST_H
#define DET_CONNECTORS_SINK_HARNESS_TEST_H

#include "connectors/harness_test.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

#define SINK_CURSOR_MAX 4096

struct sink_harness {
    struct harness base; /* first: the fake functions get it */
    char saved[SINK_CURSOR_MAX];
    size_t cursor_size;
    uint64_t rejected[HARNESS_ERRORS]; /* positions */
    struct det_stage_calls calls;
    bool has_begun;
};

DET_PRINTF(3, 4)
static inline int sink_harness_reject(
    struct det_stage_call *call, enum det_row_rejection why, const char *format, ...)
{
    struct sink_harness *sink = (struct sink_harness *)(void *)call;
    struct harness *base = &sink->base;
    va_list arguments;

    assert_true(base->error_count < HARNESS_ERRORS);
    sink->rejected[base->error_count] = call->row.position;
    va_start(arguments, format);
    (void)vsnprintf(base->errors[base->error_count++], DET_ERROR_TEXT_MAX, format, arguments);
    va_end(arguments);
    base->last_rejection = why;
    return DET_ERR_REFUSED;
}

/* Opens the sink at the last receipt. Returns the result of open() or begin(). */
static inline int sink_start(struct sink_harness *sink)
{
    const struct det_stage_functions *functions = &sink->base.connector->functions;
    int r;

    if (sink->cursor_size)
        memcpy(sink->base.cursor, sink->saved, sink->cursor_size);
    r = harness_start(&sink->base);
    if (r < 0 || sink->has_begun)
        return r;
    if (functions->begin)
        r = functions->begin(&sink->base.call, sink->base.cursor);
    if (r < 0)
        return r;
    sink->has_begun = true;
    if (sink->cursor_size)
        memcpy(sink->saved, sink->base.cursor, sink->cursor_size);
    return 0;
}

static inline void sink_init(
    struct sink_harness *sink, const struct det_connector *connector,
    const struct det_record *(*record)(void), const char *settings)
{
    const struct det_record *cursor = det_record_of(connector->cursor);

    harness_init(&sink->base, connector, (struct det_stage){ .in = { .get = record } }, settings);
    sink->calls = *sink->base.call.calls;
    sink->calls.reject = sink_harness_reject;
    sink->base.call.calls = &sink->calls;
    sink->base.call.run = 0xfeed;
    sink->has_begun = false;
    sink->cursor_size = cursor ? cursor->size : 0;
    assert_true(sink->cursor_size <= SINK_CURSOR_MAX);
    memset(sink->saved, 0, sizeof sink->saved);
}

static inline void sink_open(
    struct sink_harness *sink, const struct det_connector *connector,
    const struct det_record *(*record)(void), const char *settings)
{
    sink_init(sink, connector, record, settings);
    if (sink_start(sink) < 0)
        fail_msg("%s: %s", settings, sink->base.failure.text);
}

/* A row of a stage, by the number of its stream. */
static inline int sink_deliver_from(
    struct sink_harness *sink, uint16_t stream, uint64_t position, const void *row)
{
    sink->base.call.row = (struct det_row_info){ .position = position,
                                                 .sequence = position,
                                                 .correlation = position,
                                                 .stream = stream,
                                                 .event_time = 1 };
    return sink->base.connector->functions.deliver(&sink->base.call, sink->base.cursor, row);
}

static inline int sink_deliver(struct sink_harness *sink, uint64_t position, const void *row)
{
    return sink_deliver_from(sink, 3, position, row);
}

/* Without a receipt: what a crash after it leaves. */
static inline int sink_flush_only(struct sink_harness *sink)
{
    const struct det_stage_functions *functions = &sink->base.connector->functions;

    return functions->flush ? functions->flush(&sink->base.call, sink->base.cursor) : 0;
}

static inline int sink_flush(struct sink_harness *sink)
{
    int r = sink_flush_only(sink);

    if (r == 0 && sink->cursor_size)
        memcpy(sink->saved, sink->base.cursor, sink->cursor_size);
    return r;
}

/* Ends it without a flush, and opens it at the last receipt. */
static inline void sink_crash(struct sink_harness *sink)
{
    harness_stop(&sink->base);
    if (sink_start(sink) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static inline void sink_close(struct sink_harness *sink)
{
    harness_deinit(&sink->base);
}

static inline void sink_refuses(
    const struct det_connector *connector, const struct det_record *(*record)(void),
    const char *settings, const char *text)
{
    harness_refuses(connector, (struct det_stage){ .in = { .get = record } }, settings, text);
}

static inline struct reading reading_of(uint64_t id)
{
    struct reading reading = { .id = id,
                               .celsius = 20.5,
                               .at = INT64_C(1700000000) * DET_SECOND,
                               .mood = MOOD_HOT,
                               .is_valid = true };

    (void)snprintf(reading.sensor, sizeof reading.sensor, "s%llu", (unsigned long long)id % 10);
    return reading;
}

#endif
