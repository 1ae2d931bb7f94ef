/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* walk.h - an instance, claimed by a caller that sends nothing: to look at it, or to keep it. */
#ifndef DET_RUNTIME_WALK_H
#define DET_RUNTIME_WALK_H

#include "runtime/turn.h"

/* The resident is loaded if need be, and claimed; no lock is held afterwards. */
DET_MUST_CHECK int det_walk_begin(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance);
/* The same for a thread of the pool: also while the runtime closes, which waits for it. */
DET_MUST_CHECK int det_walk_begin_last(
    struct det_turn *turn, struct det_runtime *runtime, const struct det_machine *machine,
    const char *instance);
void det_walk_end(struct det_turn *turn);

#endif
