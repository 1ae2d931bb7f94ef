/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_test.h - property tests for a kind of worker: calls its pure functions with many random
 * views and checks what a supervisor relies on.
 *
 *     struct det_worker_proof proof;
 *     assert_int_equal(det_worker_prove(&link_kind, NULL, &proof, &error), 0);
 *
 * Configs, observations, times, counts, children and ends of actions are random values that are
 * valid for their records; derive() computes the desired state from the config. For each state:
 *
 *     the same view gives the same decision, and next() does not change the view
 *     the decision has a reason, which is not empty
 *     a goto leads to another, existing state; an action exists
 *     during a stop STOPPED is reached in a limited number of steps, if the observations follow
 *
 * For derive() and children(): the same input gives the same result. */
#ifndef DETENT_WORKER_TEST_H
#define DETENT_WORKER_TEST_H

#include <detent/worker.h>

DET_BEGIN

struct det_worker_prove_options {
    uint64_t seed;
    uint32_t views;     /* views per state; 0: 200 */
    uint32_t steps_max; /* limit of steps from a state to STOPPED; 0: 64 */
    /* Simulates a successful action: changes the observation accordingly. NULL: each observation on
     * the way to STOPPED is random, and a worker that does not reach STOPPED is counted in
     * `unstopped` instead of failing the test. */
    void (*follow)(void *context, uint16_t action, const void *desired, void *observed);
    void *context;
    /* Adjusts random records, for example to a port that is not 0. NULL: no adjustment. */
    void (*adjust_config)(void *context, void *config);
    void (*adjust_observed)(void *context, void *observed);
    const struct det_allocator *allocator;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

struct det_worker_proof {
    uint64_t views;                         /* decided views */
    uint64_t answers[DET_NEXT_RESTART + 1]; /* decisions by enum det_next_kind */
    uint64_t refused;                       /* configs that derive() refused */
    uint64_t stops, unstopped;              /* tested stops; those that did not reach STOPPED */
    uint64_t entered;                       /* bit mask of states that a goto led to */
    uint64_t done;                          /* bit mask of actions that were requested */
};

/* Tests a kind. DET_ERR_INVALID: a property does not hold; `reterr` has the state, the property and
 * the seed. Otherwise the errors of det_worker_kind_check(), or DET_ERR_NO_MEMORY. `options` may be
 * NULL. */
DET_API int det_worker_prove(
    const struct det_worker_kind *kind, const struct det_worker_prove_options *options,
    struct det_worker_proof *ret, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
