/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* meter.h - how long things took, told to whoever measures. Without a meter each of these is a test
 * and nothing else; what the store is asked for is asked all the same. */
#ifndef DET_RUNTIME_METER_H
#define DET_RUNTIME_METER_H

#include "runtime/turn.h"

/* Commits. `ret_took` is set where there is a meter. */
DET_MUST_CHECK int det_meter_commit(
    struct det_runtime *runtime, struct det_store_commit *const *commits, size_t count,
    det_time *ret_took);
/* When something begins whose end will be told; 0: nobody measures. */
det_time det_meter_begin(const struct det_runtime *runtime);
/* On the pool: an attempt has ended that began then. */
void det_meter_attempt(
    const struct det_runtime *runtime, const struct det_effect_run *effect_run, det_time began);
/* The turn is that of a timer: gives it a trace, where somebody wants one. */
void det_meter_fire(struct det_turn *turn);
/* The turn, which has ended, was that of a timer. */
void det_meter_timeout(const struct det_turn *turn);
void det_meter_unhandled(const struct det_turn *turn, unsigned event);

#endif
