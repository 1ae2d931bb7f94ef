/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prove.h - declarations shared by the parts of det_worker_prove(): random views. */
#ifndef DET_WORKER_PROVE_H
#define DET_WORKER_PROVE_H

#include <detent/worker_test.h>

#include "os/sim/random.h"

#define DET_PROVE_CHILDREN 4

/* A view with all the objects it points to. */
struct det_prove_view {
    struct det_worker_view view;
    struct det_worker_identity identity;
    struct det_worker_counts counts;
    struct det_action_end last_action;
    struct det_child_view child[DET_PROVE_CHILDREN];
    const struct det_child_view *list[DET_PROVE_CHILDREN];
    struct det_children_view children;
    struct det_reason scratch;
};

struct det_prove {
    const struct det_worker_kind *kind;
    const struct det_worker_prove_options *options;
    struct det_chance chance;
    struct det_prove_view view;
    const struct det_record *config_record, *desired_record, *observed_record;
    void *config, *desired, *observed;  /* at least a byte each */
    void *config_again, *desired_again; /* copies for comparison */
    size_t config_size, desired_size, observed_size;
    struct det_worker_proof proof;
    struct det_error *reterr;
};

/* A random valid value of the record; small numbers and short texts are frequent. */
void det_prove_record(struct det_chance *chance, const struct det_record *record, void *target);
/* The whole view except the desired state: an observation, times, counts, children. */
void det_prove_fill_view(struct det_prove *prove, uint16_t state, bool stop_wanted);
/* Stops all children of the view. */
void det_prove_stop_children(struct det_prove *prove);
/* A hash of everything that a function must not change. */
uint64_t det_prove_hash(const struct det_prove *prove);

#endif
