/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* limits.h - the limits of a supervisor of workers, resolved and judged. */
#ifndef DET_WORKER_LIMITS_H
#define DET_WORKER_LIMITS_H

#include <detent/workers.h>

/* Zeros become the defaults; DET_ERR_INVALID with the rule that is broken. */
DET_MUST_CHECK int det_worker_limits_resolve(
    const struct det_worker_limits *limits, struct det_worker_limits *ret,
    struct det_error *reterr);
/* How old an observation of this kind may be, and from which age on its collector is restarted:
 * the limits, or what its own interval needs. */
void det_worker_limits_of_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind, det_time *ret_stale,
    det_time *ret_timeout);
/* Whether a kind's own times fit them. */
DET_MUST_CHECK int det_worker_limits_check_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind,
    struct det_error *reterr);

#endif
