/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* telemetry.h - what `detent up` tells about itself: metrics, and spans for a receiver of traces.
 *
 *     runtime, bus of tasks, API --> monitor --> metrics --> /metrics
 *     API, runtime, effects -------> tracer --> otlp ------> the receiver, where there is one */
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
    struct det_tracer *tracer; /* NULL: nobody gets spans */
    struct otlp *otlp;
};

/* Before the machines. Close it in either case. */
DET_MUST_CHECK int up_observe_open(struct up *up, struct det_error *reterr);
/* After them. */
void up_observe_close(struct up *up);

/* What the runtime tells; the observer is the struct up_machines. */
extern const struct det_meter up_meter;
void up_observe_note(struct up_observe *observe, const struct det_note *note);
void up_observe_trouble(struct up_observe *observe, const struct det_incident *trouble);

#endif
