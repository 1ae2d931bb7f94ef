/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model.h - the simplest store: one image per instance, changed by commits. A driver must return a
 * result that the model permits, and the content of the model. */
#ifndef DET_CONFORM_MODEL_H
#define DET_CONFORM_MODEL_H

#include "conform/conform.h"

#define MODEL_IDS 12 /* event ids that are used: "e0" and so on */

struct model {
    struct image image; /* owns what it points to */
    bool knows[MODEL_IDS];
    struct det_store_answer answers[MODEL_IDS];
};

void model_init(struct model *model);
/* All reasons to refuse a commit, as bits; 0: it must succeed. A driver may return any of them. */
enum model_refusal {
    MODEL_CONFLICT = 1,
    MODEL_LOCKED = 2,
    MODEL_LOCK_LOST = 4,
    MODEL_EARLY = 8,
    MODEL_EXISTS = 16,
    MODEL_NOT_FOUND = 32,
};
unsigned model_refusals(
    const struct model *model, const struct det_store_commit *commit, det_time now);
/* Returns the bit of a result. */
unsigned model_refusal_of(int result);
/* Applies a commit that succeeded. */
void model_apply(struct model *model, const struct det_store_commit *commit);
/* Applies pruning up to a sequence; returns the number of deleted events. */
uint64_t model_prune(struct model *model, uint64_t sequence);

#endif
