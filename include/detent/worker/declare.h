/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* declare.h - template: the C interface of a kind of worker. One kind per include, any number.
 *
 *     #define WORKER_SPEC "link.worker"     on the include path; names WORKER_NAME, WORKER_PREFIX
 *     #include <detent/worker/declare.h>
 *
 * For a worker named link with prefix LINK this declares:
 *     enum link_state { LINK_STOPPED, ... }; enum link_action { LINK_CONNECT, ... };
 *     the structs of the records in the spec
 *     link_get(workers, id, &status, &observed)       the observation, typed
 *     extern const struct det_worker_kind link_kind;  made by define.h in one .c file
 * #define WORKER_LOCAL before each of the two templates keeps the kind inside one .c file. */
#include <detent/rec/language.h>
#if REC__IS_C11

#include <detent/workers.h>

#include <detent/worker/pre.h>

/* Checks that names have no other meaning in C. This comes first, since such a name breaks later
 * passes. */
#include <detent/worker/rows_off.h>
#undef STATE
#undef ACTION
#define STATE(s, ...)                     \
    REC__CHECK_NAME(#s, REC__NAME_##s, s) \
    REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define ACTION(a, ...)                    \
    REC__CHECK_NAME(#a, REC__NAME_##a, a) \
    REC__CHECK_FIRST(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#include WORKER_SPEC
#include <detent/worker/rows_off.h>
REC__CHECK_VALUE(W__STRING(WORKER_NAME), W__CAT(REC__NAME_, WORKER_NAME), WORKER_NAME)
REC__CHECK_VALUE("WORKER_PREFIX", W__CAT(REC__NAME_, WORKER_PREFIX), WORKER_PREFIX)

#define REC_SPEC WORKER_SPEC
#include <detent/rec/passes.h>
#undef REC_SPEC

/* States: LINK_UP for users, UP_is_a_state_of_link for the rows. */
#include <detent/worker/rows_off.h>
#undef STATE
#define STATE(s, ...) W__PUBLIC(s), W__STATE(s) = W__PUBLIC(s),
enum W__OWN(_state) {
#include WORKER_SPEC
    W__OWN(_state_count),
};

#include <detent/worker/rows_off.h>
#undef ACTION
#define ACTION(a, ...) W__PUBLIC(a), W__ACTION(a) = W__PUBLIC(a),
enum W__OWN(_action) {
#include WORKER_SPEC
    W__OWN(_action_count),
};

W__DECLARED const struct det_worker_kind W__OWN(_kind);

/* The status and the last observation of a worker of this kind. DET_ERR_NOT_FOUND: no such worker;
 * DET_ERR_INVALID: it is of another kind. `observed` is zero before the first observation. */
#ifdef WORKER_OBSERVED
DET_MUST_CHECK static inline int W__OWN(_get)(
    struct det_workers *workers, const char *id, struct det_worker_status *ret,
    struct W__OBSERVED *ret_observed)
{
    return det_workers_get(workers, id, W__CAT(W__OBSERVED, _record)(), ret, ret_observed, NULL);
}
#endif

#include <detent/worker/rows_end.h>

#endif
