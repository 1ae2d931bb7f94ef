/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_test.h - for the tests of a kind of worker: drives its pure functions over many views that
 * chance makes of a seed, and holds them to what a supervisor relies on.
 *
 *     struct det_worker_proof proof;
 *     assert_int_equal(det_worker_prove(&link_kind, NULL, &proof, &error), 0);
 *
 * Configs, observations, times, counts, children and ends of actions are random, and valid as their
 * records say; a desired state is what derive() makes of a config. Of each state it is proven that
 *
 *     the same view has the same answer, and nothing of the view is changed
 *     a reason is there and is not empty
 *     a goto leads to another state that there is, and an action is one that there is
 *     when it is to stop, STOPPED is reached within some steps, if the observations follow
 *
 * and of derive() and children() that the same input has the same result. */
#ifndef DETENT_WORKER_TEST_H
#define DETENT_WORKER_TEST_H

#include <detent/worker.h>

DET_BEGIN

struct det_worker_prove_options {
    uint64_t seed;
    uint32_t views;     /* of each state; 0: 200 */
    uint32_t steps_max; /* from a state to STOPPED; 0: 64 */
    /* What the world is like when the action has succeeded: changes the observation. NULL: each
     * observation on the way is a new one of chance, and a worker that does not come to STOPPED by
     * them is counted and is no failure. */
    void (*follow)(void *context, uint16_t action, const void *desired, void *observed);
    void *context;
    /* Makes a record that is valid also likely, a port that is not 0, say. NULL: as it is. */
    void (*adjust_config)(void *context, void *config);
    void (*adjust_observed)(void *context, void *observed);
    const struct det_allocator *allocator;
};

struct det_worker_proof {
    uint64_t views;                         /* that were answered */
    uint64_t answers[DET_NEXT_RESTART + 1]; /* by enum det_next_kind */
    uint64_t refused;                       /* configs that derive() did not take */
    uint64_t stops, unstopped;              /* walks to STOPPED; those that did not arrive */
    uint64_t entered;                       /* a bit for each state that a goto leads to */
    uint64_t done;                          /* a bit for each action that was done */
};

/* DET_ERR_INVALID, and in `reterr` which state, what of it, and the seed: not proven. What
 * det_worker_kind_check() refuses is refused. `options` may be NULL. DET_ERR_NO_MEMORY. */
DET_API int det_worker_prove(
    const struct det_worker_kind *kind, const struct det_worker_prove_options *options,
    struct det_worker_proof *ret, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
