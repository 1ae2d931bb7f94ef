/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* model.h - a store that is as simple as can be: an image per instance, changed by commits. What a
 * driver answers must be what the model allows, and what it shows must be what the model has. */
#ifndef DET_CONFORM_MODEL_H
#define DET_CONFORM_MODEL_H

#include "conform/conform.h"

#define MODEL_IDS 12 /* event ids that are used: "e0" and so on */

struct model {
    struct image image; /* its pointers are its own */
    bool knows[MODEL_IDS];
    struct det_store_answer answers[MODEL_IDS];
};

void model_init(struct model *model);
/* Every refusal that a commit deserves, as bits; 0: it must succeed. A driver may answer any one of
 * them. */
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
/* The bit of a result. */
unsigned model_refusal_of(int result);
/* What a commit that succeeded has done. */
void model_apply(struct model *model, const struct det_store_commit *commit);
/* What pruning up to a sequence has done; how many events are gone. */
uint64_t model_prune(struct model *model, uint64_t sequence);

#endif
