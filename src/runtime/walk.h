/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk.h - claims an instance for a caller that sends nothing: to read or maintain it. */
#ifndef DET_RUNTIME_WALK_H
#define DET_RUNTIME_WALK_H

#include "runtime/turn.h"

/* Loads the resident if necessary, and claims it; no lock is held afterwards. */
DET_MUST_CHECK int det_walk_begin(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance, struct det_error *reterr);
/* For a thread of the pool: works also while the runtime closes, which waits for it. */
DET_MUST_CHECK int det_walk_begin_last(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance);
void det_walk_end(struct det_turn *turn);

#endif
