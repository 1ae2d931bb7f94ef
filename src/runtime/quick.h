/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick.h - the fast path for the most frequent sends: one event, no effects, at most the state's
 * own timer, no observers, a store that does not block. It does the work of a turn with less
 * overhead:
 *
 *     plain     lock [ decide, commit, publish ] unlock
 *     code      lock [ claim ] unlock, run user code, lock [ commit, publish, release ] unlock */
#ifndef DET_RUNTIME_QUICK_H
#define DET_RUNTIME_QUICK_H

#include "runtime/runtime.h"

/* The path of a transition from `state`. */
enum det_send_path det_quick_path(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition);
/* The shard's lock is held before and after; without user code also meanwhile. 1: done, `ret` is
 * written. 0: not possible, nothing happened, use a turn; `*slot` is NULL if it may have moved.
 * Negative: an error. */
DET_MUST_CHECK int det_quick_send(
    struct det_runtime *runtime, struct det_shard *shard, struct det_index_slot **slot,
    const void *event, struct det_error *reterr, struct det_sent *ret);

#endif
