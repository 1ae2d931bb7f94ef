/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick.h - the send that most sends are: one event, no user code, nobody listens, a store that
 * does not block. It does what a turn does, in one lock section and without a draft. */
#ifndef DET_RUNTIME_QUICK_H
#define DET_RUNTIME_QUICK_H

#include "runtime/runtime.h"

/* With the shard's lock held. 1: done, `ret` is written. 0: not for this way, nothing happened,
 * take a turn. Negative: it failed. */
DET_MUST_CHECK int det_quick_send(
    struct det_runtime *runtime, struct det_shard *shard, struct det_index_slot *slot,
    const void *event, struct det_sent *ret);

#endif
