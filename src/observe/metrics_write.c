/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_write.c - all series as text: Prometheus 0.0.4, and OpenMetrics 1.0.0, which differs in
 * the names of counters in comments, units, the bounds of buckets, and the last line.
 *
 * Numbers are whole or have up to nine fraction digits; they are never converted to a double, so
 * neither a locale nor rounding changes them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "observe/metrics_internal.h"

#define TOTAL   "_total"
#define MILLION 1000000

struct writer {
    struct det_buffer *buffer;
    bool is_open; /* OpenMetrics */
};

static const char *const kind_names[] = {
    [DET_METRIC_COUNTER] = "counter",
    [DET_METRIC_GAUGE] = "gauge",
    [DET_METRIC_HISTOGRAM] = "histogram",
};

static const char *const unit_names[] = {
    [DET_UNIT_ONE] = NULL,
    [DET_UNIT_SECONDS] = "seconds",
    [DET_UNIT_BYTES] = "bytes",
    [DET_UNIT_FRACTION] = NULL,
};

/* In comments, OpenMetrics omits the suffix of a counter's name. */
static int name_length(const struct writer *writer, const struct det_metric_info *info)
{
    size_t length = strlen(info->name);

    if (writer->is_open && info->kind == DET_METRIC_COUNTER) {
        det_assert(length > strlen(TOTAL));
        length -= strlen(TOTAL);
    }
    return (int)length;
}

static void write_help_and_type(struct writer *writer, const struct det_metric_info *info)
{
    int length = name_length(writer, info);

    det_buffer_format(writer->buffer, "# HELP %.*s %s\n", length, info->name, info->help);
    det_buffer_format(
        writer->buffer, "# TYPE %.*s %s\n", length, info->name, kind_names[info->kind]);
    if (writer->is_open && unit_names[info->unit])
        det_buffer_format(
            writer->buffer, "# UNIT %.*s %s\n", length, info->name, unit_names[info->unit]);
}

/* Writes nanoseconds as decimal seconds, and millionths as a decimal number. */
static void write_value(struct writer *writer, enum det_metric_unit unit, uint64_t value)
{
    bool is_time = unit == DET_UNIT_SECONDS;
    uint64_t one = is_time ? (uint64_t)DET_SECOND : MILLION;
    char text[32];
    int length;

    if (!is_time && unit != DET_UNIT_FRACTION) {
        det_buffer_format(writer->buffer, "%" PRIu64, value);
        return;
    }
    length = snprintf(
        text, sizeof text, "%" PRIu64 ".%0*" PRIu64, value / one, is_time ? 9 : 6, value % one);
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    det_buffer_append(writer->buffer, text, (size_t)length);
}

static void write_signed(struct writer *writer, enum det_metric_unit unit, int64_t value)
{
    if (value < 0)
        det_buffer_append_char(writer->buffer, '-');
    write_value(writer, unit, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static void write_escaped(struct det_buffer *buffer, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            det_buffer_append_text(buffer, "\\n");
            continue;
        }
        if (text[i] == '\\' || text[i] == '"')
            det_buffer_append_char(buffer, '\\');
        det_buffer_append_char(buffer, text[i]);
    }
}

static void write_label(struct writer *writer, const char *name, const char *value, size_t size)
{
    det_buffer_format(writer->buffer, "%s=\"", name);
    write_escaped(writer->buffer, value, size);
    det_buffer_append_char(writer->buffer, '"');
}

/* Writes the labels of the series, without braces. Returns their number. */
static size_t write_labels(struct writer *writer, const struct det_series *series)
{
    const char *value = series->key;
    size_t i = 0;

    for (; series->info->labels[i]; i++) {
        size_t size = strcspn(value, (char[]){ DET_LABEL_END, '\0' });

        if (i > 0)
            det_buffer_append_char(writer->buffer, ',');
        write_label(writer, series->info->labels[i], value, size);
        value += size + 1;
    }
    det_assert(*value == '\0');
    return i;
}

/* Writes a line up to the space before the value. */
static void write_name(struct writer *writer, const struct det_series *series, const char *suffix)
{
    det_buffer_format(writer->buffer, "%s%s", series->info->name, suffix);
    if (series->info->labels[0]) {
        det_buffer_append_char(writer->buffer, '{');
        (void)write_labels(writer, series);
        det_buffer_append_char(writer->buffer, '}');
    }
    det_buffer_append_char(writer->buffer, ' ');
}

/* OpenMetrics requires a decimal point in each bound. */
static void write_bound(struct writer *writer, const struct det_metric_info *info, size_t bucket)
{
    size_t before = writer->buffer->size;

    det_assert(bucket < info->bucket_count);
    if (bucket == info->bucket_count - 1) {
        det_buffer_append_text(writer->buffer, "+Inf");
        return;
    }
    write_value(writer, info->unit, info->bounds[bucket]);
    if (writer->is_open && !strchr(det_buffer_text(writer->buffer) + before, '.'))
        det_buffer_append_text(writer->buffer, ".0");
}

/* The count is the sum of the buckets, so that both agree while other threads count. */
static void write_histogram(struct writer *writer, struct det_series *series)
{
    const struct det_metric_info *info = series->info;
    uint64_t sum = atomic_load_explicit(&series->value, memory_order_relaxed), count = 0;

    for (size_t i = 0; i < info->bucket_count; i++) {
        count += atomic_load_explicit(&series->buckets[i], memory_order_relaxed);
        det_buffer_format(writer->buffer, "%s_bucket{", info->name);
        if (write_labels(writer, series) > 0)
            det_buffer_append_char(writer->buffer, ',');
        det_buffer_append_text(writer->buffer, "le=\"");
        write_bound(writer, info, i);
        det_buffer_format(writer->buffer, "\"} %" PRIu64 "\n", count);
    }
    write_name(writer, series, "_sum");
    write_value(writer, info->unit, sum);
    det_buffer_append_char(writer->buffer, '\n');
    write_name(writer, series, "_count");
    det_buffer_format(writer->buffer, "%" PRIu64 "\n", count);
}

static void write_series(struct writer *writer, struct det_series *series)
{
    const struct det_metric_info *info = series->info;
    uint64_t value = atomic_load_explicit(&series->value, memory_order_relaxed);

    switch (info->kind) {
    case DET_METRIC_HISTOGRAM:
        write_histogram(writer, series);
        return;
    case DET_METRIC_COUNTER:
        write_name(writer, series, "");
        write_value(writer, info->unit, value);
        break;
    case DET_METRIC_GAUGE:
        write_name(writer, series, "");
        write_signed(writer, info->unit, (int64_t)value);
        break;
    }
    det_buffer_append_char(writer->buffer, '\n');
}

/* With the lock. A metric without a shown series is omitted. */
static void write_family(struct writer *writer, const struct det_family *family)
{
    bool has_head = false;

    for (struct det_series *series = family->first; series; series = series->next) {
        if (!atomic_load_explicit(&series->is_shown, memory_order_relaxed))
            continue;
        if (!has_head)
            write_help_and_type(writer, family->info);
        has_head = true;
        write_series(writer, series);
    }
}

void det_metrics_write(
    struct det_metrics *metrics, enum det_metrics_format format, struct det_buffer *buffer)
{
    struct writer writer = { buffer, format == DET_METRICS_OPEN };

    det_mutex_lock(metrics->world, metrics->scrape);
    det_mutex_lock(metrics->world, metrics->mutex);
    for (size_t i = 0; i < DET_METRIC_COUNT; i++)
        write_family(&writer, &metrics->families[i]);
    det_mutex_unlock(metrics->world, metrics->mutex);
    det_mutex_unlock(metrics->world, metrics->scrape);
    if (writer.is_open)
        det_buffer_append_text(buffer, "# EOF\n");
}

enum det_metrics_format det_metrics_format_wanted(const char *accept)
{
    return accept && strstr(accept, "application/openmetrics-text") ? DET_METRICS_OPEN
                                                                    : DET_METRICS_TEXT;
}

const char *det_metrics_content_type(enum det_metrics_format format)
{
    return format == DET_METRICS_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}
