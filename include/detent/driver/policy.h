/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/policy.h - resolves policies, computes delays, counts restarts: for those who write a
 * supervisor. Pure functions; time and chance come in as numbers. */
#ifndef DETENT_DRIVER_POLICY_H
#define DETENT_DRIVER_POLICY_H

#include <detent/policy.h>

DET_BEGIN

/* `policy` where it says something, else `defaults` (may be NULL), else what is written above:
 * after it no field is 0, but an `interval` of none is; no limit to retries is
 * DET_RETRIES_UNLIMITED, no timeout DET_NO_TIMEOUT. Where `policy` sets only one of `first` and
 * `max`, the inherited one is moved to it if they would contradict each other. Only the result is
 * checked: DET_ERR_INVALID when a factor is not finite or below 1, `first` is over `max`, a time is
 * negative, or a restart or a jitter is none of the above. `ret` may be `policy` or `defaults`. */
DET_API int det_policy_resolve(
    const struct det_policy *policy, const struct det_policy *defaults, struct det_policy *ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* The delay before jitter after the failure number `failures` (from 0) of a streak; never over
 * `max`, whatever the exponent. The backoff is resolved, here and below. */
DET_API det_time det_backoff_base(const struct det_backoff *backoff, uint32_t failures);
/* The delay itself. `before` is the delay before this one in the streak (0: there was none), which
 * only DECORRELATED asks for; `chance` is any 64 random bits. At least DET_DELAY_FLOOR or `max`,
 * whichever is less, unless first is DET_NO_DELAY. */
DET_API det_time det_backoff_delay(
    const struct det_backoff *backoff, uint32_t failures, det_time before, uint64_t chance);

/* A window of restarts. Noting one takes the same few nanoseconds however many there were: the
 * times of the last `count` stand in a ring. How many count is found by halving. */
struct det_intensity_window;
/* DET_ERR_INVALID when the count is over DET_INTENSITY_MAX or the window is negative;
 * DET_ERR_NO_MEMORY. */
DET_API int det_intensity_open(
    const struct det_intensity *intensity, const struct det_allocator *allocator,
    struct det_intensity_window **ret, struct det_error *reterr) DET_MUST_CHECK;
DET_API void det_intensity_close(struct det_intensity_window *window);
/* Notes a restart at monotonic time `now`; false when it is one too many, though it counts then as
 * well. Times do not go back, here and below. */
DET_API bool det_intensity_note(struct det_intensity_window *window, det_time now);
/* How many count at `now`, at most `count`. */
DET_API uint32_t det_intensity_count(const struct det_intensity_window *window, det_time now);
/* Forgets all of them: for a group that failed and is started again. */
DET_API void det_intensity_clear(struct det_intensity_window *window);

DET_END
#endif
