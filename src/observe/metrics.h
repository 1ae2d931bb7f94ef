/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics.h - metrics: counted from any thread, read as Prometheus text.
 *
 * metrics.def lists the metrics. A metric has a series for each combination of label values. A
 * lookup of a series takes a lock and a hash of the values; frequent callers do that once and keep
 * the pointer, which is valid until the metrics are closed. Counting is then one to three atomic
 * additions.
 *
 * Invariants
 *   1. A series is never removed and never moves; it may be reset until it is used again.
 *   2. A metric has at most `series_max` series and one more, whose labels are all "other". It
 *      exists from the opening on, so lookups never fail: at the limit, or without memory, values
 *      are "other", and detent_series_refused_total counts them by metric.
 *   3. The output is valid: label values are UTF-8 without control characters except newline, of at
 *      most DET_LABEL_MAX bytes, when they are stored, so that no two series have the same
 *      output. */
#ifndef DET_OBSERVE_METRICS_H
#define DET_OBSERVE_METRICS_H

#include <stdatomic.h>

#include <detent/world.h>

#include "base/assert.h"
#include "base/buffer.h"

enum det_metric {
#define DET_METRIC(id, ...) DET_METRIC_##id,
#include "observe/metrics.def"
    DET_METRIC_COUNT, /* number of metrics */
};

enum det_metric_kind { DET_METRIC_COUNTER, DET_METRIC_GAUGE, DET_METRIC_HISTOGRAM };
enum det_metric_unit {
    DET_UNIT_ONE,
    DET_UNIT_SECONDS, /* counted in nanoseconds */
    DET_UNIT_BYTES,
    DET_UNIT_FRACTION, /* counted in millionths */
};

#define DET_LABELS_MAX  4
#define DET_LABEL_MAX   128 /* maximum bytes of a value; longer ones are truncated */
#define DET_BUCKETS_MAX 16

/* The entry of a metric in metrics.def. */
struct det_metric_info {
    const char *name, *help;
    enum det_metric_kind kind;
    enum det_metric_unit unit;
    const uint64_t *bounds; /* of buckets, ascending; the last bucket has no bound */
    size_t bucket_count;    /* including the last one; 0: not a histogram */
    const char *labels[DET_LABELS_MAX + 1]; /* up to the first NULL */
};

const struct det_metric_info *det_metric_info(enum det_metric metric);

/* Only the functions below access its members. */
struct det_series {
    const struct det_metric_info *info;
    char *key; /* its label values, each followed by DET_LABEL_END */
    struct det_series *next;
    atomic_bool is_shown;
    _Atomic uint64_t value;     /* signed for a gauge; the sum of a histogram */
    _Atomic uint64_t buckets[]; /* not cumulative */
};
#define DET_LABEL_END '\x1f'

/* Adds `more` to a counter. */
static inline void det_series_count(struct det_series *series, uint64_t more)
{
    det_check(series->info->kind == DET_METRIC_COUNTER);
    atomic_fetch_add_explicit(&series->value, more, memory_order_relaxed);
}

/* Sets a gauge to `value`, or a counter that is kept elsewhere; the second function adds to a
 * gauge. */
static inline void det_series_set(struct det_series *series, int64_t value)
{
    det_check(series->info->kind != DET_METRIC_HISTOGRAM);
    atomic_store_explicit(&series->value, (uint64_t)value, memory_order_relaxed);
    atomic_store_explicit(&series->is_shown, true, memory_order_relaxed);
}

static inline void det_series_move(struct det_series *series, int64_t value)
{
    det_check(series->info->kind == DET_METRIC_GAUGE);
    atomic_fetch_add_explicit(&series->value, (uint64_t)value, memory_order_relaxed);
    atomic_store_explicit(&series->is_shown, true, memory_order_relaxed);
}

/* Adds one value to a histogram. A negative duration, for example after a clock was set back,
 * counts as 0. */
void det_series_observe(struct det_series *series, int64_t value);

struct det_metrics;

struct det_metrics_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    uint32_t series_max; /* limit per metric; 0: 2,000 */
};

DET_MUST_CHECK int det_metrics_open(
    const struct det_metrics_options *options, struct det_metrics **ret);
void det_metrics_close(struct det_metrics *metrics);

/* Returns the series with these values, one per label of the metric; creates it if necessary. Never
 * NULL. Any thread. */
struct det_series *det_metrics_series(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values);
/* Returns the only series of a metric without labels. */
struct det_series *det_metrics_only(struct det_metrics *metrics, enum det_metric metric);
/* Hides all series of a gauge until they are set or moved again, then from 0. For gauges that are
 * computed as a whole by det_series_move(), in det_metrics_change(): values beyond the limit add up
 * in "other". */
void det_metrics_reset(struct det_metrics *metrics, enum det_metric metric);

/* Hides the series of an object that is gone; the next lookup starts it at 0. No effect if the
 * series does not exist. No caller may keep a pointer to it. */
void det_metrics_forget(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values);

/* Calls `change` now, but not during a scrape: a scrape sees all of its changes or none. Not from
 * `change` itself. */
typedef void det_change_fn(void *user, struct det_metrics *metrics);
void det_metrics_change(struct det_metrics *metrics, det_change_fn *change, void *user);

enum det_metrics_format {
    DET_METRICS_TEXT, /* Prometheus text, version 0.0.4 */
    DET_METRICS_OPEN, /* OpenMetrics 1.0.0 */
};
/* Selects the format by the header Accept of a request; NULL: no such header. */
enum det_metrics_format det_metrics_format_wanted(const char *accept);
const char *det_metrics_content_type(enum det_metrics_format format);
/* Appends all series; a failure is in the buffer's error. Any thread. */
void det_metrics_write(
    struct det_metrics *metrics, enum det_metrics_format format, struct det_buffer *buffer);

#endif
