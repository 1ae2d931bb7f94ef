/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter.h - measures durations and reports them to the meter. Without a meter each function is only
 * a test; the calls of the store are made in any case. */
#ifndef DET_RUNTIME_METER_H
#define DET_RUNTIME_METER_H

#include "runtime/turn.h"

/* Commits. `ret_took` is set if the runtime has a meter. */
DET_MUST_CHECK int det_meter_commit(
    struct det_runtime *runtime, struct det_store_commit *const *commits, size_t count,
    det_time *ret_took);
/* The begin of a measured operation; 0: no meter. */
det_time det_meter_begin(const struct det_runtime *runtime);
/* On the pool: reports a finished attempt and its begin. */
void det_meter_attempt(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run, det_time began);
/* For the turn of a timer: gets a trace from the meter. */
void det_meter_fire(struct det_turn *turn);
/* Reports a finished turn of a timer. */
void det_meter_timeout(const struct det_turn *turn);
void det_meter_unhandled(const struct det_turn *turn, unsigned event);

#endif
