/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/policy.h - resolves policies, computes delays and counts restarts, for authors of a
 * supervisor. Pure functions; time and random bits are arguments. */
#ifndef DETENT_DRIVER_POLICY_H
#define DETENT_DRIVER_POLICY_H

#include <detent/policy.h>

DET_BEGIN

/* Fills the unset fields of `policy` from `defaults` (may be NULL), and then from the defaults
 * above. In the result only an `interval` of none is 0; unlimited retries are
 * DET_RETRIES_UNLIMITED, no timeout is DET_NO_TIMEOUT. If `policy` sets only one of `first` and
 * `max`, the inherited one is adjusted so that they do not contradict each other. Only the result
 * is checked: DET_ERR_INVALID if a factor is not finite or below 1, `first` exceeds `max`, a time
 * is negative, or a restart or jitter is unknown. `ret` may be `policy` or `defaults`. */
DET_API int det_policy_resolve(
    const struct det_policy *policy, const struct det_policy *defaults, struct det_policy *ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* The delay without jitter after failure number `failures` (from 0) of a streak; never over `max`,
 * whatever the exponent. The backoff must be resolved, also in the functions below. */
DET_API det_time det_backoff_base(const struct det_backoff *backoff, uint32_t failures);
/* The delay with jitter. `before` is the previous delay of the streak (0: none), used by
 * DECORRELATED alone; `chance` is any 64 random bits. At least DET_DELAY_FLOOR or `max`, whichever
 * is less, unless first is DET_NO_DELAY. */
DET_API det_time det_backoff_delay(
    const struct det_backoff *backoff, uint32_t failures, det_time before, uint64_t chance);

/* A window of restarts. A ring keeps the times of the last `count` restarts, so noting a restart
 * takes constant time; a binary search counts them. */
struct det_intensity_window;
/* DET_ERR_INVALID: the count is over DET_INTENSITY_MAX or the window is negative;
 * DET_ERR_NO_MEMORY. */
DET_API int det_intensity_open(
    const struct det_intensity *intensity, const struct det_allocator *allocator,
    struct det_intensity_window **ret, struct det_error *reterr) DET_MUST_CHECK;
DET_API void det_intensity_close(struct det_intensity_window *window);
/* Notes a restart at monotonic time `now`. Returns false if it exceeds the limit; it is counted in
 * any case. Times must not go back, also in the function below. */
DET_API bool det_intensity_note(struct det_intensity_window *window, det_time now);
/* Number of restarts within the window at `now`, at most `count`. */
DET_API uint32_t det_intensity_count(const struct det_intensity_window *window, det_time now);
/* Forgets all restarts: for a failed group that is started again. */
DET_API void det_intensity_clear(struct det_intensity_window *window);

DET_END
#endif
