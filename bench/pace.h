/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pace.h - an HTTP client that sends requests at fixed times, without waiting for answers. */
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include "bench.h"

#define PACE_CONNECTIONS 64

struct pace {
    const char *url;           /* http://127.0.0.1:PORT */
    const char *const *wanted; /* complete requests, sent in turn */
    size_t wanted_count;
    double per_second;
    uint64_t count; /* of requests */
};

/* Latency of one request, from its due time to the last byte of its answer. */
struct pace_latency {
    double p50_ns;
    double p99_ns;
    double max_ns;
};

/* All answers must be 2xx, with a Content-Length; else `lap` has a note. */
DET_MUST_CHECK int pace_run(
    struct bench_lap *lap, const struct pace *pace, struct pace_latency *ret);

#endif
