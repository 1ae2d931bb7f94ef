/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_line.h - JSON log lines, one object each, from any thread.
 *
 *     {"time":"2026-01-31T10:00:00.25Z","level":"warning","component":"effect","message":"...",
 *      "machine":"order","instance":"o-1","attempt":3,"trace_id":"...","span_id":"..."}
 *
 *     det_log_line_begin(log, &line, DET_LOG_WARNING, "effect", "an attempt failed: %s", why);
 *     det_log_line_text(&line, "machine", "order");
 *     det_log_line_end(&line);
 *
 * Invariants
 *   1. One line is one object of at most DET_LOG_LINE_MAX bytes with its newline, for any input:
 *      control characters, and everything that could control a terminal, are escaped; bytes that
 *      are not UTF-8 are replaced. A member that does not fit is omitted, a message is truncated,
 *      and the line is marked: "is_cut":true.
 *   2. Nothing is allocated and nothing fails: a line that could not be written is dropped and
 *      counted.
 *   3. The level is fixed when the log is opened. */
#ifndef DET_OBSERVE_LOG_LINE_H
#define DET_OBSERVE_LOG_LINE_H

#include <detent/trace.h>
#include <detent/world.h>

#include "observe/metrics.h"
#include "record/text_sink.h"

/* Least important first: DET_LOG_LEVEL(NAME, "name"). */
#define DET_LOG_LEVELS(DET_LOG_LEVEL) \
    DET_LOG_LEVEL(DEBUG, "debug")     \
    DET_LOG_LEVEL(INFO, "info")       \
    DET_LOG_LEVEL(WARNING, "warning") \
    DET_LOG_LEVEL(ERROR, "error")
enum det_log_level {
#define DET_LOG_LEVEL_ENUM(name, text) DET_LOG_##name,
    DET_LOG_LEVELS(DET_LOG_LEVEL_ENUM)
#undef DET_LOG_LEVEL_ENUM
};

#define DET_LOG_LINE_MAX    8192
#define DET_LOG_MESSAGE_MAX 4608 /* a line of a task fits */

/* Writes one whole line with its newline; an error means that it was not written. Called by one
 * thread at a time. */
typedef int det_logger_write_fn(void *user, const char *line, size_t size);

struct det_logger_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    enum det_log_level level; /* less important lines are not written */
    det_logger_write_fn *write;
    void *user;
    struct det_metrics *metrics; /* counts dropped lines; NULL: not counted */
};

struct det_logger;

DET_MUST_CHECK int det_logger_open(
    const struct det_logger_options *options, struct det_logger **ret);
void det_logger_close(struct det_logger *log);

/* A line under construction, in the caller's memory. Only the functions below access its
 * members. */
struct det_log_line {
    struct det_logger *log; /* NULL: not wanted, all calls have no effect */
    struct det_output output;
    bool is_cut;
    char text[DET_LOG_LINE_MAX];
};

/* `log` may be NULL. The component is a constant of the code: "http", "effect", "task". */
void det_log_line_begin(
    struct det_logger *log, struct det_log_line *line, enum det_log_level level,
    const char *component, const char *format, ...) DET_PRINTF(5, 6);
/* Members; keys are constants of the code. A NULL text is omitted. */
void det_log_line_text(struct det_log_line *line, const char *key, const char *value);
void det_log_line_number(struct det_log_line *line, const char *key, int64_t value);
/* In seconds. */
void det_log_line_span(struct det_log_line *line, const char *key, det_time span);
/* NULL: none. */
void det_log_line_trace(struct det_log_line *line, const struct det_trace_context *context);
void det_log_line_end(struct det_log_line *line);

/* Returns "debug", ... */
const char *det_log_level_name(enum det_log_level level);

#endif
