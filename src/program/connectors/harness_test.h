/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* harness_test.h - runs the functions of one connector, without a pipeline.
 *
 *     struct harness harness;
 *     harness_open(&harness, &lines_source, (struct det_stage){ .out = { .get = text_row_record }
 * },
 *                  "{path: in.txt}");
 *     harness_run(&harness);                       until the source has ended, or is idle
 *     harness_close(&harness);                     and open again: the cursor stays
 *
 * Rows and errors are collected. As in a pipeline, a wake of any thread counts once. */
#ifndef DET_CONNECTORS_HARNESS_TEST_H
#define DET_CONNECTORS_HARNESS_TEST_H

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <detent/world.h>

#include "connectors/connectors.h"
#include "lib/patience.h"
#include "lib/test.h"

#define REC_SPEC "connectors/harness_test.rec"
#include <detent/rec/declare.h>

#define HARNESS_ROWS   65536
#define HARNESS_ERRORS 64

struct harness {
    struct det_stage_call call; /* first: the fake functions get it */
    struct det_stage stage;
    const struct det_connector *connector;
    void *cursor;
    char *rows; /* emitted, of row_size each */
    size_t row_size, row_count;
    char errors[HARNESS_ERRORS][DET_ERROR_TEXT_MAX]; /* of rejected rows */
    size_t error_count;
    enum det_row_rejection last_rejection;
    struct det_error failure; /* of the stage; code 0: none */
    uint32_t room;            /* of each call of next() */
    det_time wake_at;
    int event; /* wakes */
    atomic_bool is_cancelled;
    bool is_open;
};

static inline struct harness *harness_of(struct det_stage_call *call)
{
    return (struct harness *)(void *)call;
}

static inline int harness_emit(struct det_stage_call *call, const void *value, det_time event_time)
{
    struct harness *harness = harness_of(call);
    const struct det_record *record = det_record_of(harness->stage.out);
    struct det_error error;
    int r;

    (void)event_time;
    r = det_record_validate(record, value, &error);
    if (r < 0)
        fail_msg("an invalid row: %s", error.text);
    assert_true(harness->row_count < HARNESS_ROWS);
    memcpy(harness->rows + harness->row_count++ * harness->row_size, value, harness->row_size);
    return 0;
}

DET_PRINTF(3, 4)
static inline int harness_reject(
    struct det_stage_call *call, enum det_row_rejection why, const char *format, ...)
{
    struct harness *harness = harness_of(call);
    va_list arguments;

    assert_true(harness->error_count < HARNESS_ERRORS);
    va_start(arguments, format);
    (void)vsnprintf(harness->errors[harness->error_count++], DET_ERROR_TEXT_MAX, format, arguments);
    va_end(arguments);
    harness->last_rejection = why;
    return DET_ERR_REFUSED;
}

DET_PRINTF(3, 4)
static inline int harness_fail(struct det_stage_call *call, int code, const char *format, ...)
{
    struct harness *harness = harness_of(call);
    va_list arguments;

    assert_true(code < 0);
    harness->failure.code = code;
    va_start(arguments, format);
    (void)vsnprintf(harness->failure.text, DET_ERROR_TEXT_MAX, format, arguments);
    va_end(arguments);
    return code;
}

static inline bool harness_is_cancelled(struct det_stage_call *call)
{
    return atomic_load(&harness_of(call)->is_cancelled);
}

/* Waits for a wake, or until a monotonic time. */
static inline bool harness_wait_until(struct harness *harness, det_time deadline)
{
    struct pollfd one = { .fd = harness->event, .events = POLLIN };
    det_time span = deadline - det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
    uint64_t count;

    if (span < 0)
        span = 0;
    if (poll(&one, 1, (int)(span / DET_MILLISECOND) + (span > 0)) <= 0)
        return false;
    assert_int_equal(read(harness->event, &count, sizeof count), sizeof count);
    return true;
}

static inline int harness_wait(struct det_stage_call *call, det_time deadline)
{
    struct harness *harness = harness_of(call);

    if (harness_is_cancelled(call))
        return DET_ERR_CANCELLED;
    if (!harness_wait_until(harness, deadline))
        return DET_ERR_TIMEOUT;
    return harness_is_cancelled(call) ? DET_ERR_CANCELLED : 0;
}

static inline void harness_wake(struct det_stage_call *call)
{
    uint64_t one = 1;

    assert_int_equal(write(harness_of(call)->event, &one, sizeof one), sizeof one);
}

static inline void harness_wake_at(struct det_stage_call *call, det_time monotonic)
{
    struct harness *harness = harness_of(call);

    if (monotonic < harness->wake_at)
        harness->wake_at = monotonic;
}

static inline uint32_t harness_room(struct det_stage_call *call)
{
    return harness_of(call)->room;
}

static const struct det_stage_calls harness_calls = {
    .emit = harness_emit,
    .reject = harness_reject,
    .fail = harness_fail,
    .is_cancelled = harness_is_cancelled,
    .wait = harness_wait,
    .wake = harness_wake,
    .wake_at = harness_wake_at,
    .room = harness_room,
};

/* Prepares a stage; harness_start() opens it. `stage` has its records. */
static inline void harness_init(
    struct harness *harness, const struct det_connector *connector, struct det_stage stage,
    const char *settings)
{
    const struct det_record *cursor = det_record_of(connector->cursor);
    const struct det_record *out = det_record_of(stage.out);

    *harness = (struct harness){ .connector = connector, .room = 1000, .wake_at = DET_NEVER };
    harness->stage = stage;
    harness->stage.name = "box";
    harness->stage.kind = (enum det_stage_kind)__builtin_ctz(connector->kinds);
    harness->stage.use = connector->name;
    harness->stage.settings = settings;
    harness->stage.functions = &connector->functions;
    harness->call = (struct det_stage_call){
        .calls = &harness_calls,
        .stage = &harness->stage,
        .flow = "test",
        .world = det_world_real(),
        .now = det_world_now(det_world_real(), DET_CLOCK_WALL),
        .row = { .position = 1, .sequence = 1, .correlation = 1 },
    };
    harness->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(harness->event >= 0);
    harness->row_size = out ? out->size : 0;
    harness->rows = calloc(HARNESS_ROWS, harness->row_size + 1);
    harness->cursor = cursor ? calloc(1, cursor->size) : NULL;
    assert_non_null(harness->rows);
}

/* Returns the result of open(). */
static inline int harness_start(struct harness *harness)
{
    const struct det_stage_functions *functions = &harness->connector->functions;
    int r;

    harness->failure = (struct det_error){ 0 };
    harness->call.self = NULL;
    r = functions->open ? functions->open(&harness->call) : 0;
    harness->is_open = r == 0;
    return r;
}

static inline void harness_stop(struct harness *harness)
{
    if (harness->is_open && harness->connector->functions.close)
        harness->connector->functions.close(&harness->call);
    harness->is_open = false;
}

static inline void harness_deinit(struct harness *harness)
{
    harness_stop(harness);
    free(harness->rows);
    free(harness->cursor);
    (void)close(harness->event);
}

/* A stage that must open. */
static inline void harness_open(
    struct harness *harness, const struct det_connector *connector, struct det_stage stage,
    const char *settings)
{
    harness_init(harness, connector, stage, settings);
    if (harness_start(harness) < 0)
        fail_msg("%s: %s", settings, harness->failure.text);
}

static inline int harness_next(struct harness *harness)
{
    /* As in a pipeline: what the source has emitted before. */
    harness->call.row.sequence = harness->row_count;
    return harness->connector->functions.next(&harness->call, harness->cursor);
}

/* Calls next() until the source has ended or failed, or has at least `rows` rows. Waits while it is
 * idle. Returns the last result. */
static inline int harness_run_until(struct harness *harness, size_t rows)
{
    det_time end = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) + DET_TEST_HANG;
    int r;

    for (;;) {
        r = harness_next(harness);
        if (r < 0 || r == DET_SOURCE_DONE || harness->row_count + harness->error_count >= rows)
            return r;
        if (r == DET_SOURCE_MORE)
            continue;
        (void)harness_wait_until(harness, harness->wake_at < end ? harness->wake_at : end);
        harness->wake_at = DET_NEVER;
        assert_true(det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) < end);
    }
}

static inline int harness_run(struct harness *harness)
{
    return harness_run_until(harness, SIZE_MAX);
}

static inline const void *harness_row(const struct harness *harness, size_t index)
{
    assert_true(index < harness->row_count);
    return harness->rows + index * harness->row_size;
}

/* The settings must be refused by check() and by open(), with this text in the error. */
static inline void harness_refuses(
    const struct det_connector *connector, struct det_stage stage, const char *settings,
    const char *text)
{
    struct harness harness;
    struct det_error error = { 0 };

    harness_init(&harness, connector, stage, settings);
    assert_true(connector->check(&harness.stage, NULL, &error) < 0);
    if (!strstr(error.text, text))
        fail_msg("%s: expected '%s' in: %s", settings, text, error.text);
    assert_true(harness_start(&harness) < 0);
    if (!strstr(harness.failure.text, text))
        fail_msg("%s: expected '%s' in: %s", settings, text, harness.failure.text);
    harness_deinit(&harness);
}

#endif
