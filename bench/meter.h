/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter.h - workers to measure: a meter sets a level to the desired one, a farm has many meters. */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <stdatomic.h>

#define WORKER_SPEC "meter.worker"
#include <detent/worker/declare.h>
#define WORKER_SPEC "farm.worker"
#include <detent/worker/declare.h>

/* Begin of the last action of a meter (monotonic), and its level. */
extern _Atomic(det_time) meter_set_at;
extern _Atomic(uint64_t) meter_set_level;
/* Both kinds, NULL at the end. */
extern const struct det_worker_kind *const meter_kinds[];

#endif
