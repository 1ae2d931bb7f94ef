/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_metrics.h - metrics of a worker supervisor.
 *
 * Labels are names of kinds, states and actions, whose number the kinds limit; for values that
 * workers define also worker ids and value names: those beyond the limit are "other". */
#ifndef DET_OBSERVE_WORKER_METRICS_H
#define DET_OBSERVE_WORKER_METRICS_H

#include <detent/workers.h>

#include "observe/metrics.h"

/* For on_event of det_workers_options. */
void det_monitor_worker(struct det_metrics *metrics, const struct det_worker_event *event);
/* Sets the gauges of all workers. Call this regularly on their loop. */
void det_monitor_workers(struct det_metrics *metrics, struct det_workers *workers);

#endif
