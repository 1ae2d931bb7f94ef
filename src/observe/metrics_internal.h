/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_internal.h - what the files of metrics share. */
#ifndef DET_OBSERVE_METRICS_INTERNAL_H
#define DET_OBSERVE_METRICS_INTERNAL_H

#include "base/map.h"
#include "observe/metrics.h"
#include "os/os.h"

struct det_collector {
    det_collect_fn *collect;
    void *user;
};

/* A metric and all of its series. */
struct det_family {
    const struct det_metric_info *info;
    struct det_map map;
    struct det_series *first, **last; /* in the order in which they came; `other` is the first */
    struct det_series *other;         /* the only one, where there are no labels */
};

struct det_metrics {
    struct det_world *world;
    const struct det_allocator *allocator;
    uint32_t series_max;
    struct det_mutex *mutex;  /* of the families */
    struct det_mutex *scrape; /* one at a time; locked before the other one */
    struct det_collector collectors[DET_COLLECTORS_MAX];
    size_t collector_count;
    struct det_family families[DET_METRIC_COUNT];
};

#endif
