/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* quick.h - the send that most sends are: one event, no effects, the state's own timer at most,
 * nobody listens, a store that does not block. It does what a turn does, with less:
 *
 *     plain     lock [ decide, commit, publish ] unlock
 *     code      lock [ claim ] unlock, guard, hooks, data, lock [ commit, publish, release ] unlock
 */
#ifndef DET_RUNTIME_QUICK_H
#define DET_RUNTIME_QUICK_H

#include "runtime/runtime.h"

/* Which way a transition from `state` takes. */
enum det_way det_quick_way(
    const struct det_machine *machine, unsigned state, const struct det_transition *transition);
/* With the shard's lock held, before and after, but meanwhile only where there is no user code. 1:
 * done, `ret` is written. 0: not for this way, nothing happened, take a turn; `*slot` is NULL when
 * it may have moved. Negative: it failed. */
DET_MUST_CHECK int det_quick_send(
    struct det_runtime *runtime, struct det_shard *shard, struct det_index_slot **slot,
    const void *event, struct det_error *reterr, struct det_sent *ret);

#endif
