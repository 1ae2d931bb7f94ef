/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics.c - the series of all metrics: lookup, creation, counting. */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "observe/metrics_internal.h"

#define SERIES_MAX 2000
/* The values of all labels, each with its end, and a final 0. */
#define KEY_SIZE (DET_LABELS_MAX * (DET_LABEL_MAX + 1) + 1)

/* U+FFFD replaces an invalid byte. */
static const char replacement[] = { '\xEF', '\xBF', '\xBD' };

#define DET_BUCKETS(name, ...) static const uint64_t bounds_##name[] = { __VA_ARGS__ };
#include "observe/metrics.def"

#define DET_LABELS(...) \
    {                   \
        __VA_ARGS__     \
    }
#define DET_NO_LABELS \
    {                 \
        NULL          \
    }
#define DET_METRIC(id, name_, kind_, unit_, buckets, labels_, help_)                 \
    [DET_METRIC_##id] = {                                                            \
        .name = name_,                                                               \
        .help = help_,                                                               \
        .kind = DET_METRIC_##kind_,                                                  \
        .unit = DET_UNIT_##unit_,                                                    \
        .bounds = bounds_##buckets,                                                  \
        .bucket_count = DET_METRIC_##kind_ == DET_METRIC_HISTOGRAM                   \
                            ? sizeof bounds_##buckets / sizeof *bounds_##buckets + 1 \
                            : 0,                                                     \
        .labels = labels_,                                                           \
    },
static const struct det_metric_info infos[] = {
#include "observe/metrics.def"
};

const struct det_metric_info *det_metric_info(enum det_metric metric)
{
    det_assert(metric < DET_METRIC_COUNT);
    return &infos[metric];
}

void det_series_observe(struct det_series *series, int64_t value)
{
    const struct det_metric_info *info = series->info;
    uint64_t counted = value > 0 ? (uint64_t)value : 0;
    size_t bucket = 0;

    det_assert(info->kind == DET_METRIC_HISTOGRAM);
    while (bucket < info->bucket_count - 1 && counted > info->bounds[bucket])
        bucket++;
    atomic_fetch_add_explicit(&series->buckets[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&series->value, counted, memory_order_relaxed);
}

/* Returns true if a byte needs no replacement in a label; those of non-ASCII characters do not. */
static bool is_plain(char c)
{
    return c == '\n' || ((unsigned char)c >= 0x20 && c != 0x7F);
}

/* Appends the valid part of `value`, at most DET_LABEL_MAX bytes, and its end. */
static char *append_value(char *target, const char *value)
{
    size_t size = strlen(value), valid = det_utf8_check(value, size), used = 0;

    for (size_t at = 0; at < size; at++) {
        bool is_reported = at < valid && is_plain(value[at]);
        size_t more = is_reported ? 1 : sizeof replacement;

        if (used + more > DET_LABEL_MAX)
            break;
        memcpy(target + used, is_reported ? value + at : replacement, more);
        used += more;
        if (at == valid)
            valid = at + 1 + det_utf8_check(value + at + 1, size - at - 1);
    }
    /* Truncation may have split a character. */
    used = det_utf8_check(target, used);
    det_assert(used <= DET_LABEL_MAX);
    target[used] = DET_LABEL_END;
    return target + used + 1;
}

static void write_key(
    const struct det_metric_info *info, const char *const *values, char target[KEY_SIZE])
{
    const char *start = target;

    for (size_t i = 0; info->labels[i]; i++)
        target = append_value(target, values ? values[i] : "other");
    det_assert((size_t)(target - start) < KEY_SIZE);
    *target = '\0';
}

static size_t series_size(const struct det_metric_info *info)
{
    return sizeof(struct det_series) + info->bucket_count * sizeof(_Atomic uint64_t);
}

static void series_close(const struct det_metrics *metrics, struct det_series *series)
{
    if (series) {
        det_free_string(metrics->allocator, series->key);
        det_free(metrics->allocator, series, series_size(series->info));
    }
}

static struct det_series *series_open(
    const struct det_metrics *metrics, const struct det_metric_info *info, const char *key)
{
    struct det_series *series = det_alloc_zero(metrics->allocator, series_size(info));

    if (!series)
        return NULL;
    series->info = info;
    series->key = det_string_copy(metrics->allocator, key);
    if (series->key)
        return series;
    series_close(metrics, series);
    return NULL;
}

/* The list and the map have the same series, the first of which is `other`. */
static void assert_family(const struct det_metrics *metrics, const struct det_family *family)
{
    det_assert(!*family->last && family->first);
    det_assert(!family->other || family->other == family->first);
    det_assert(family->map.count <= (size_t)metrics->series_max + 1);
}

/* Creates a series and adds it to its family; NULL if out of memory. With the lock, or before other
 * threads use the metrics. */
static struct det_series *family_add(
    const struct det_metrics *metrics, struct det_family *family, const char *key)
{
    struct det_series *series = series_open(metrics, family->info, key);

    if (series && det_map_put(&family->map, series) < 0) {
        series_close(metrics, series);
        return NULL;
    }
    if (series) {
        *family->last = series;
        family->last = &series->next;
        assert_family(metrics, family);
    }
    return series;
}

static void assert_info(const struct det_metric_info *info)
{
    bool is_histogram = info->kind == DET_METRIC_HISTOGRAM;

    det_assert(is_histogram ? info->bucket_count > 1 : info->bucket_count == 0);
    det_assert(info->bucket_count <= DET_BUCKETS_MAX + 1);
    for (size_t i = 2; i < info->bucket_count; i++)
        det_assert(info->bounds[i - 2] < info->bounds[i - 1]);
    det_assert(!info->labels[DET_LABELS_MAX]);
}

static int family_init(
    struct det_metrics *metrics, struct det_family *family, const struct det_metric_info *info)
{
    char key[KEY_SIZE];

    assert_info(info);
    family->info = info;
    family->last = &family->first;
    det_map_init(
        &family->map, metrics->allocator, det_world_random_u64(metrics->world),
        offsetof(struct det_series, key));
    write_key(info, NULL, key);
    family->other = family_add(metrics, family, key);
    if (!family->other)
        return DET_ERR_NO_MEMORY;
    /* A metric without labels is shown from the start, so that its rate is known from the first
     * scrape. */
    atomic_store(&family->other->is_shown, !info->labels[0]);
    return 0;
}

int det_metrics_open(const struct det_metrics_options *options, struct det_metrics **ret)
{
    struct det_metrics *metrics = DET_NEW(options->allocator, struct det_metrics);
    int r;

    if (!metrics)
        return DET_ERR_NO_MEMORY;
    metrics->world = det_world_or_real(options->world);
    metrics->allocator = options->allocator;
    metrics->series_max = options->series_max ? options->series_max : SERIES_MAX;
    r = det_mutex_open(metrics->world, &metrics->mutex);
    if (r == 0)
        r = det_mutex_open(metrics->world, &metrics->scrape);
    for (size_t i = 0; r == 0 && i < DET_METRIC_COUNT; i++)
        r = family_init(metrics, &metrics->families[i], &infos[i]);
    if (r < 0) {
        det_metrics_close(metrics);
        return r;
    }
    *ret = metrics;
    return 0;
}

static void family_deinit(struct det_metrics *metrics, struct det_family *family)
{
    struct det_series *next;

    for (struct det_series *series = family->first; series; series = next) {
        next = series->next;
        series_close(metrics, series);
    }
    if (family->info)
        det_map_deinit(&family->map);
}

void det_metrics_close(struct det_metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < DET_METRIC_COUNT; i++)
        family_deinit(metrics, &metrics->families[i]);
    det_mutex_close(metrics->world, metrics->scrape);
    det_mutex_close(metrics->world, metrics->mutex);
    DET_DELETE(metrics->allocator, metrics);
}

/* With the lock. The series "other" does not count. */
static struct det_series *family_get(
    struct det_metrics *metrics, struct det_family *family, const char *key)
{
    struct det_series *series = det_map_get(&family->map, key);

    if (!series && family->map.count <= metrics->series_max)
        series = family_add(metrics, family, key);
    if (!series)
        return NULL;
    /* A gauge is shown when it has a value. */
    if (family->info->kind != DET_METRIC_GAUGE)
        atomic_store(&series->is_shown, true);
    return series;
}

static void count_refused(struct det_metrics *metrics, struct det_family *family)
{
    struct det_family *refused = &metrics->families[DET_METRIC_SERIES_REFUSED];
    char key[KEY_SIZE];
    struct det_series *series;

    write_key(refused->info, &family->info->name, key);
    series = family_get(metrics, refused, key);
    if (!series)
        series = refused->other;
    det_series_count(series, 1);
    atomic_store(&series->is_shown, true);
    if (family->info->kind != DET_METRIC_GAUGE)
        atomic_store(&family->other->is_shown, true);
}

struct det_series *det_metrics_series(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values)
{
    struct det_family *family = &metrics->families[metric];
    struct det_series *series;
    char key[KEY_SIZE];

    det_assert(metric < DET_METRIC_COUNT && family->info->labels[0]);
    write_key(family->info, values, key);
    det_mutex_lock(metrics->world, metrics->mutex);
    series = family_get(metrics, family, key);
    if (!series) {
        count_refused(metrics, family);
        series = family->other;
    }
    det_mutex_unlock(metrics->world, metrics->mutex);
    return series;
}

struct det_series *det_metrics_only(struct det_metrics *metrics, enum det_metric metric)
{
    det_assert(metric < DET_METRIC_COUNT && !infos[metric].labels[0]);
    return metrics->families[metric].other;
}

static void series_take_back(struct det_series *series)
{
    atomic_store_explicit(&series->is_shown, false, memory_order_relaxed);
    atomic_store_explicit(&series->value, 0, memory_order_relaxed);
}

void det_metrics_reset(struct det_metrics *metrics, enum det_metric metric)
{
    struct det_family *family = &metrics->families[metric];

    det_assert(metric < DET_METRIC_COUNT && family->info->kind == DET_METRIC_GAUGE);
    det_mutex_lock(metrics->world, metrics->mutex);
    for (struct det_series *series = family->first; series; series = series->next)
        series_take_back(series);
    det_mutex_unlock(metrics->world, metrics->mutex);
}

void det_metrics_forget(
    struct det_metrics *metrics, enum det_metric metric, const char *const *values)
{
    struct det_family *family = &metrics->families[metric];
    struct det_series *series;
    char key[KEY_SIZE];

    det_assert(metric < DET_METRIC_COUNT && family->info->kind != DET_METRIC_HISTOGRAM);
    write_key(family->info, values, key);
    det_mutex_lock(metrics->world, metrics->mutex);
    series = det_map_get(&family->map, key);
    if (series && series != family->other)
        series_take_back(series);
    det_mutex_unlock(metrics->world, metrics->mutex);
}

void det_metrics_change(struct det_metrics *metrics, det_change_fn *change, void *user)
{
    det_mutex_lock(metrics->world, metrics->scrape);
    change(user, metrics);
    det_mutex_unlock(metrics->world, metrics->scrape);
}
