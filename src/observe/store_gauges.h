/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_gauges.h - the content of a store as gauges: instances by state, armed timers, pending
 * effects, dead letters, bytes. */
#ifndef DET_OBSERVE_STORE_GAUGES_H
#define DET_OBSERVE_STORE_GAUGES_H

#include <detent/store.h>

#include "observe/metrics.h"

/* Counts the store, then sets all gauges at once: a scrape sees either the old or the new values.
 * Takes as long as det_store_count(), so not on a loop. After an error the gauges are unchanged.
 * Any thread that may use the store; one at a time. */
DET_MUST_CHECK int det_store_gauges_update(
    struct det_metrics *metrics, struct det_store *store, const struct det_allocator *allocator);

#endif
