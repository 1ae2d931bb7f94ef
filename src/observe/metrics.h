/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics.h - metrics: counted from any thread, read as Prometheus text.
 *
 * metrics.def lists the metrics. A metric has a series for each combination of label values. A
 * lookup of a series takes a lock and a hash of the values; frequent callers look it up once and
 * keep the pointer, which is valid until the metrics are closed. Counting is then one to three
 * atomic additions.
 *
 * Invariants
 *   1. A series is never removed and never moves; it may be reset until it is used again.
 *   2. A metric has at most `series_max` series and one more, whose labels are all "other". It
 *      exists from the opening on, so lookups never fail: at the limit, or without memory, values
 *      are "other", and detent_series_refused_total counts them by metric.
 *   3. The output is valid: label values are UTF-8 without control characters except newline, of at
 *      most DET_LABEL_MAX bytes, from the moment they come in, so that two series never look the
 *      same. */
#ifndef DET_OBSERVE_METRICS_H
#define DET_OBSERVE_METRICS_H

#include <stdatomic.h>

#include <detent/world.h>

#include "base/buffer.h"

enum det_metric {
#define DET_METRIC(id, ...) DET_METRIC_##id,
#include "observe/metrics.def"
    DET_METRIC_COUNT, /* how many there are */
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
    const uint64_t *bounds; /* of buckets, rising; one more bucket is without bound */
    size_t bucket_count;    /* with that one; 0 where it is no histogram */
    const char *labels[DET_LABELS_MAX + 1]; /* up to the first NULL */
};

const struct det_metric_info *det_metric_info(enum det_metric metric);

/* Its members are for the functions below. */
struct det_series {
    const struct det_metric_info *info;
    char *key; /* its values of labels, each ended by DET_LABEL_END */
    struct det_series *next;
    atomic_bool is_shown;
    _Atomic uint64_t value;     /* a gauge's may be negative; the sum of a histogram */
    _Atomic uint64_t buckets[]; /* not cumulated */
};
#define DET_LABEL_END '\x1f'

/* A counter has gone up by so much. */
static inline void det_series_count(struct det_series *series, uint64_t more)
{
    atomic_fetch_add_explicit(&series->value, more, memory_order_relaxed);
}

/* Sets a gauge to `value`, or adds it. */
static inline void det_series_set(struct det_series *series, int64_t value)
{
    atomic_store_explicit(&series->value, (uint64_t)value, memory_order_relaxed);
    atomic_store_explicit(&series->is_shown, true, memory_order_relaxed);
}

static inline void det_series_move(struct det_series *series, int64_t value)
{
    atomic_fetch_add_explicit(&series->value, (uint64_t)value, memory_order_relaxed);
    atomic_store_explicit(&series->is_shown, true, memory_order_relaxed);
}

/* A histogram has one value more. A negative span of time, as a clock that was set back may give,
 * counts as none. */
void det_series_observe(struct det_series *series, int64_t value);

struct det_metrics;

struct det_metrics_options {
    struct det_world *world; /* NULL: the real one */
    const struct det_allocator *allocator;
    uint32_t series_max; /* of one metric; 0: 2,000 */
};

DET_MUST_CHECK int det_metrics_open(
    const struct det_metrics_options *options, struct det_metrics **ret);
void det_metrics_close(struct det_metrics *metrics);

/* The series with these values, as many as the metric has labels, which is made if it is not there;
 * never NULL. Any thread. */
struct det_series *det_metrics_series(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values);
/* The only one of a metric without labels. */
struct det_series *det_metrics_only(struct det_metrics *metrics, enum det_metric metric);
/* A gauge is not told until it is set or moved again, and moves from 0: for those that are taken
 * anew for each scrape, by det_series_move(), so that what does not fit adds up in "other". */
void det_metrics_take_back(struct det_metrics *metrics, enum det_metric metric);

/* What it was about is gone: the series is not told until it is looked up again, and begins at 0
 * then. Harmless where there is none. Nobody may have kept it. */
void det_metrics_forget(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values);

/* Called at each scrape, one at a time, before anything is written, on the scraper's thread; it may
 * use all of the above. At most DET_COLLECTORS_MAX, given before the first scrape. */
#define DET_COLLECTORS_MAX 8
typedef void det_collect_fn(void *user, struct det_metrics *metrics);
void det_metrics_collect(struct det_metrics *metrics, det_collect_fn *collect, void *user);
/* Calls it now, while nobody scrapes: of several changes a scrape sees all or none. Not from a
 * collector. */
void det_metrics_change(struct det_metrics *metrics, det_collect_fn *change, void *user);

enum det_metrics_format {
    DET_METRICS_TEXT, /* Prometheus text, version 0.0.4 */
    DET_METRICS_OPEN, /* OpenMetrics 1.0.0 */
};
/* The one to answer with, by the header Accept of a request; NULL: there is none. */
enum det_metrics_format det_metrics_format_wanted(const char *accept);
const char *det_metrics_content_type(enum det_metrics_format format);
/* Appends all series; the buffer's error says what went wrong. Any thread. */
void det_metrics_write(
    struct det_metrics *metrics, enum det_metrics_format format, struct det_buffer *buffer);

#endif
