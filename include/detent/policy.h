/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy.h - when a task runs again: restart, backoff, jitter, intensity. Pure functions; time and
 * chance come in as numbers.
 *
 * A zero field of a policy inherits: a task's from the defaults of its supervisor, those from the
 * defaults written here. What must be able to say "none" has a value for it. */
#ifndef DETENT_POLICY_H
#define DETENT_POLICY_H

#include <detent/base.h>

DET_BEGIN

/* After an attempt that succeeded or failed. Fatal and cancelled attempts never run again. */
enum det_restart {
    DET_RESTART_INHERIT,    /* at the end of inheriting: ON_FAILURE; of a task that has a schedule:
                               NEVER, that is until its next time */
    DET_RESTART_NEVER,      /* one attempt */
    DET_RESTART_ON_FAILURE, /* until it succeeds */
    DET_RESTART_ALWAYS,     /* also after success, `interval` after its end */
};

/* How a delay is spread; b is first * factor^failures, at most max. */
enum det_jitter {
    DET_JITTER_INHERIT,      /* at the end of inheriting: EQUAL */
    DET_JITTER_NONE,         /* b */
    DET_JITTER_FULL,         /* anywhere in 0..b */
    DET_JITTER_EQUAL,        /* anywhere in b/2..b */
    DET_JITTER_BAND,         /* anywhere in first..3b, at most max */
    DET_JITTER_DECORRELATED, /* anywhere in first..3 times the delay before, at most max */
};

#define DET_RETRIES_UNLIMITED UINT32_MAX
/* Of `first`: no delay, and no floor under it. Of `interval`: none, whatever the defaults say. */
#define DET_NO_DELAY   ((det_time)-1)
#define DET_NO_TIMEOUT DET_NEVER
/* A task that always fails or always succeeds at once runs at most once in this time. */
#define DET_DELAY_FLOOR DET_MILLISECOND

struct det_backoff {
    det_time first; /* 0: 200 ms */
    det_time max;   /* 0: 30 s */
    double factor;  /* 0: 2.0; at least 1 */
    enum det_jitter jitter;
    det_time stable_after; /* an attempt that ran this long ends the streak of failures even if it
                              fails; 0: 60 s; DET_NEVER: only success does */
};

struct det_policy {
    enum det_restart restart;
    uint32_t retries_max; /* failures in a row that are tried again: N are N + 1 attempts; 0:
                             unlimited */
    det_time interval;    /* of ALWAYS, from the end of one to the start of the next; 0: none, but
                             for the floor */
    det_time timeout;     /* of one attempt; 0: none */
    det_time grace;       /* from a cancel to force; 0: 10 s; DET_NEVER: no force */
    struct det_backoff backoff;
};

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

/* Restart intensity: at most `count` in `window`. A restart counts from its time on until `window`
 * has passed. Noting one takes the same few nanoseconds however many there were: the times of the
 * last `count` stand in a ring. How many count is found by halving. */
#define DET_INTENSITY_MAX 1000000
struct det_intensity {
    uint32_t count;  /* 0: 5 */
    det_time window; /* 0: 10 s */
};
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
