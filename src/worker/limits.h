/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* limits.h - the limits of a supervisor of workers, resolved and checked. */
#ifndef DET_WORKER_LIMITS_H
#define DET_WORKER_LIMITS_H

#include <detent/workers.h>

/* Replaces zeros by the defaults; DET_ERR_INVALID with the broken rule. */
DET_MUST_CHECK int det_worker_limits_resolve(
    const struct det_worker_limits *limits, struct det_worker_limits *ret,
    struct det_error *reterr);
/* The age from which an observation of this kind is stale, and that from which its collector is
 * restarted: the limits, or multiples of its own interval. */
void det_worker_limits_of_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind, det_time *ret_stale,
    det_time *ret_timeout);
/* Checks a kind's own times against the limits. */
DET_MUST_CHECK int det_worker_limits_check_kind(
    const struct det_worker_limits *limits, const struct det_worker_kind *kind,
    struct det_error *reterr);

#endif
