/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_metrics.h - metrics of a worker supervisor.
 *
 * Labels are names of kinds, states and actions, which are as many as the kinds say; of what
 * workers count by themselves also their ids and names of their own: what does not fit is "other".
 */
#ifndef DET_OBSERVE_WORKER_METRICS_H
#define DET_OBSERVE_WORKER_METRICS_H

#include <detent/workers.h>

#include "observe/metrics.h"

/* For on_event of det_workers_options. */
void det_monitor_worker(struct det_metrics *metrics, const struct det_worker_event *event);
/* How all of them are by now. On their loop, now and then. */
void det_monitor_workers(struct det_metrics *metrics, struct det_workers *workers);

#endif
