/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* contract.c - assertions on commits.
 *
 * Invariants of a commit
 *   1. The machine has the state of the head.
 *   2. Its events have consecutive sequences.
 *   3. Effects are never cleared; deferred events are set or taken.
 *   4. A new instance has data. An event id has an answer in a state that the machine has. */
#include "store/contract.h"

#include "base/assert.h"

static void check_changes(const struct det_store_commit *commit)
{
    for (size_t i = 0; i < commit->effect_count; i++)
        det_assert(commit->effects[i].kind != DET_STORE_CLEAR);
    for (size_t i = 0; i < commit->deferred_count; i++)
        det_assert(
            commit->deferred[i].kind == DET_STORE_SET ||
            commit->deferred[i].kind == DET_STORE_TAKE);
}

void det_contract_commits(struct det_store_commit *const *commits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct det_store_commit *commit = commits[i];

        det_assert(commit->head->state < commit->machine->state_count);
        det_assert(!commit->is_new || commit->data);
        det_assert(!commit->event_id || commit->answer.state < commit->machine->state_count);
        det_assert(
            !commit->event_count ||
            commit->events[commit->event_count - 1].sequence - commit->events[0].sequence ==
                commit->event_count - 1);
        check_changes(commit);
    }
}
