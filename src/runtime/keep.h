/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep.h - snapshots by policy, called by the turn that commits. */
#ifndef DET_RUNTIME_KEEP_H
#define DET_RUNTIME_KEEP_H

#include "runtime/turn.h"

/* A commit that changes only the named parts: the turn has a claim and no draft, and the head is
 * unchanged. */
DET_MUST_CHECK int det_keep_commit(struct det_turn *turn, struct det_store_commit *commit);
/* True if the state after the draft becomes the snapshot. */
bool det_keep_wants_snapshot(const struct det_turn *turn);
/* Writes the history after the draft, if the machine has one; returns its length. */
size_t det_keep_history(const struct det_turn *turn, uint16_t target[DET_HISTORY_MAX]);
/* After a committed and published snapshot, with the claim and without the lock: deletes events
 * that the policy does not keep. */
void det_keep_prune(struct det_turn *turn);

#endif
