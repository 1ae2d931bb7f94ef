/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_line.c - formats JSON log lines and passes them to a writer. */
#include "observe/log_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/memory.h"
#include "os/os.h"

/* Always fits after the last member. */
#define LINE_END ",\"is_cut\":true}\n"
#define LEVELS   (sizeof level_names / sizeof *level_names)

struct det_logger {
    struct det_world *world;
    const struct det_allocator *allocator;
    enum det_log_level level;
    det_logger_write_fn *write;
    void *user;
    struct det_mutex *mutex;    /* held while writing */
    struct det_series *dropped; /* NULL: not counted */
};

static const char *const level_names[] = {
#define LEVEL_NAME(name, text) [DET_LOG_##name] = (text),
    DET_LOG_LEVELS(LEVEL_NAME)
#undef LEVEL_NAME
};

const char *det_log_level_name(enum det_log_level level)
{
    det_assert((size_t)level < LEVELS);
    return level_names[level];
}

int det_logger_open(const struct det_logger_options *options, struct det_logger **ret)
{
    struct det_logger *log = DET_NEW(options->allocator, struct det_logger);
    int r;

    det_assert(options->write && (size_t)options->level < LEVELS);
    if (!log)
        return DET_ERR_NO_MEMORY;
    log->world = det_world_or_real(options->world);
    log->allocator = options->allocator;
    log->write = options->write;
    log->user = options->user;
    log->level = options->level;
    if (options->metrics)
        log->dropped = det_metrics_only(options->metrics, DET_METRIC_LOG_DROPPED);
    r = det_mutex_open(log->world, &log->mutex);
    if (r < 0) {
        det_logger_close(log);
        return r;
    }
    *ret = log;
    return 0;
}

void det_logger_close(struct det_logger *log)
{
    if (!log)
        return;
    det_mutex_close(log->world, log->mutex);
    DET_DELETE(log->allocator, log);
}

static bool is_wanted(const struct det_logger *log, enum det_log_level level)
{
    return log && level >= log->level;
}

/* Between two members the end of the line fits. */
static void assert_line(const struct det_log_line *line)
{
    det_assert(line->output.target == line->text);
    det_assert(line->output.length + strlen(LINE_END) < line->output.capacity);
}

/* Keeps the member that began at `start` if the end of the line fits after it. */
static bool keep_member(struct det_log_line *line, size_t start)
{
    if (line->output.length + strlen(LINE_END) < line->output.capacity)
        return true;
    line->output.length = start;
    line->is_cut = true;
    return false;
}

static size_t begin_member(struct det_log_line *line, const char *key)
{
    size_t start = line->output.length;

    assert_line(line);
    det_output_text(&line->output, start > 1 ? ",\"" : "\"");
    det_output_text(&line->output, key);
    det_output_text(&line->output, "\":");
    return start;
}

static bool put_text(struct det_log_line *line, const char *key, struct det_view value)
{
    size_t start = begin_member(line, key);

    det_output_quoted(&line->output, value);
    return keep_member(line, start);
}

static void put_raw(struct det_log_line *line, const char *key, const char *value)
{
    size_t start = begin_member(line, key);

    det_output_text(&line->output, value);
    (void)keep_member(line, start);
}

/* Escapes may make the text six times as long: halves it until it fits. */
static void put_message(struct det_log_line *line, const char *text)
{
    size_t size = strlen(text);

    while (!put_text(line, "message", det_view_of(text, size))) {
        det_assert(size > 0);
        size = det_utf8_check(text, size / 2);
    }
}

void det_log_line_begin(
    struct det_logger *log, struct det_log_line *line, enum det_log_level level,
    const char *component, const char *format, ...)
{
    char time[DET_TIME_TEXT], message[DET_LOG_MESSAGE_MAX];
    va_list arguments;

    line->log = is_wanted(log, level) ? log : NULL;
    if (!line->log)
        return;
    line->output = (struct det_output){ .target = line->text, .capacity = sizeof line->text };
    va_start(arguments, format);
    line->is_cut = vsnprintf(message, sizeof message, format, arguments) >= (int)sizeof message;
    va_end(arguments);
    det_format_time(det_world_now(log->world, DET_CLOCK_WALL), time, sizeof time);
    det_output_char(&line->output, '{');
    (void)put_text(line, "time", det_view_text(time));
    (void)put_text(line, "level", det_view_text(level_names[level]));
    (void)put_text(line, "component", det_view_text(component));
    put_message(line, message);
}

void det_log_line_text(struct det_log_line *line, const char *key, const char *value)
{
    if (line->log && value)
        (void)put_text(line, key, det_view_text(value));
}

void det_log_line_number(struct det_log_line *line, const char *key, int64_t value)
{
    char text[24];

    if (!line->log)
        return;
    snprintf(text, sizeof text, "%" PRId64, value);
    put_raw(line, key, text);
}

void det_log_line_span(struct det_log_line *line, const char *key, det_time span)
{
    char text[32];
    bool is_negative = span < 0;
    uint64_t size = is_negative ? -(uint64_t)span : (uint64_t)span;

    if (!line->log)
        return;
    snprintf(
        text, sizeof text, "%s%" PRIu64 ".%09" PRIu64, is_negative ? "-" : "", size / DET_SECOND,
        size % DET_SECOND);
    put_raw(line, key, text);
}

void det_log_line_trace(struct det_log_line *line, const struct det_trace_context *context)
{
    char text[2 * sizeof context->trace_id + 1];

    if (!line->log || !context)
        return;
    det_hex_write(context->trace_id, sizeof context->trace_id, text);
    det_log_line_text(line, "trace_id", text);
    det_hex_write(context->span_id, sizeof context->span_id, text);
    det_log_line_text(line, "span_id", text);
}

void det_log_line_end(struct det_log_line *line)
{
    struct det_logger *log = line->log;
    int r;

    if (!log)
        return;
    assert_line(line);
    det_output_text(&line->output, line->is_cut ? LINE_END : "}\n");
    det_mutex_lock(log->world, log->mutex);
    r = log->write(log->user, line->text, line->output.length);
    det_mutex_unlock(log->world, log->mutex);
    if (r < 0 && log->dropped)
        det_series_count(log->dropped, 1);
    line->log = NULL;
}
