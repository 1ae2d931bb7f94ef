/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_gauges.h - what a store holds, as gauges: instances by state, armed timers, effects that
 * wait, dead letters, bytes. */
#ifndef DET_OBSERVE_STORE_GAUGES_H
#define DET_OBSERVE_STORE_GAUGES_H

#include <detent/store.h>

#include "observe/metrics.h"

/* Counts, and sets the gauges when all is counted: a scrape sees the figures of before or those of
 * now. It takes as long as det_store_count() does, so not on a loop. After an error the gauges are
 * as they were. Any thread that may use the store; one at a time. */
DET_MUST_CHECK int det_stock_take(
    struct det_metrics *metrics, struct det_store *store, const struct det_allocator *allocator);

#endif
