/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep.h - snapshots by policy, for the turn that commits. */
#ifndef DET_RUNTIME_KEEP_H
#define DET_RUNTIME_KEEP_H

#include "runtime/turn.h"

/* One commit that moves nothing but what it names: the turn has a claim and no draft, and the head
 * stays as it is. */
DET_MUST_CHECK int det_keep_commit(struct det_turn *turn, struct det_store_commit *commit);
/* Whether what the draft says also becomes the snapshot. */
bool det_keep_wants_snapshot(const struct det_turn *turn);
/* The history as it will be with the draft, if there is one; returns how many. */
size_t det_keep_history(const struct det_turn *turn, uint16_t target[DET_HISTORY_MAX]);
/* After a snapshot was committed and published, with the claim and without the lock: events that
 * the policy does not keep go. */
void det_keep_prune(struct det_turn *turn);

#endif
