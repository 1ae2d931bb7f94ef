/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* metrics_internal.h - shared by the files of metrics. */
#ifndef DET_OBSERVE_METRICS_INTERNAL_H
#define DET_OBSERVE_METRICS_INTERNAL_H

#include "base/map.h"
#include "observe/metrics.h"
#include "os/os.h"

/* A metric and all of its series. */
struct det_family {
    const struct det_metric_info *info;
    struct det_map map;
    struct det_series *first, **last; /* in order of creation; `other` is the first */
    struct det_series *other;         /* the only one of a metric without labels */
};

struct det_metrics {
    struct det_world *world;
    const struct det_allocator *allocator;
    uint32_t series_max;
    struct det_mutex *mutex;  /* protects the families */
    struct det_mutex *scrape; /* held during a scrape; locked before `mutex` */
    struct det_family families[DET_METRIC_COUNT];
};

#endif
