/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* telemetry.h - metrics of `detent up`, and spans for a receiver of traces.
 *
 *     runtime, bus of tasks, API --> monitor --> metrics --> /metrics
 *     API, runtime, effects -------> tracer --> otlp ------> the receiver, if configured */
#ifndef DET_DAEMON_TELEMETRY_H
#define DET_DAEMON_TELEMETRY_H

#include "daemon/daemon.h"
#include "daemon/otlp_export.h"
#include "observe/event_spans.h"
#include "observe/runtime_metrics.h"

struct up_observe {
    struct up *up;
    struct det_metrics *metrics;
    struct det_monitor *monitor;
    struct det_tracer *tracer; /* NULL: no receiver */
    struct otlp *otlp;
};

/* Call before opening machines. Call up_observe_close() even after an error. */
DET_MUST_CHECK int up_observe_open(struct up *up, struct det_error *reterr);
/* Call after closing machines. */
void up_observe_close(struct up *up);

/* Reports of the runtime; `observer` is the struct up_machines. */
extern const struct det_meter up_meter;
void up_observe_note(struct up_observe *observe, const struct det_note *note);
void up_observe_incident(struct up_observe *observe, const struct det_incident *incident);

#endif
