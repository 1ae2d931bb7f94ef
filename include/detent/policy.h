/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy.h - when a task runs again: restart, backoff, jitter, intensity. driver/policy.h computes
 * with them.
 *
 * A zero field of a policy is inherited: a task inherits from the defaults of its supervisor, and
 * these from the defaults below. Fields that can be "none" have a value for it. */
#ifndef DETENT_POLICY_H
#define DETENT_POLICY_H

#include <detent/base.h>

DET_BEGIN

/* Applies after a successful or failed attempt. Fatal and cancelled attempts are never repeated. */
enum det_restart {
    DET_RESTART_INHERIT,    /* default if nothing is inherited: ON_FAILURE; with a schedule: NEVER,
                             * that is, until its next time */
    DET_RESTART_NEVER,      /* one attempt */
    DET_RESTART_ON_FAILURE, /* until it succeeds */
    DET_RESTART_ALWAYS,     /* also after success, `interval` after its end */
};

/* How a delay varies; b is first * factor^failures, at most max. */
enum det_jitter {
    DET_JITTER_INHERIT,      /* default if nothing is inherited: EQUAL */
    DET_JITTER_NONE,         /* b */
    DET_JITTER_FULL,         /* anywhere in 0..b */
    DET_JITTER_EQUAL,        /* anywhere in b/2..b */
    DET_JITTER_BAND,         /* anywhere in first..3b, at most max */
    DET_JITTER_DECORRELATED, /* anywhere in first..3 times the delay before, at most max */
};

#define DET_RETRIES_UNLIMITED UINT32_MAX
/* For `first`: no delay and no minimum. For `interval`: none, regardless of the defaults. */
#define DET_NO_DELAY   ((det_time)-1)
#define DET_NO_TIMEOUT DET_NEVER
/* Minimum time between two runs of a task that always fails or succeeds at once. */
#define DET_DELAY_FLOOR DET_MILLISECOND

struct det_backoff {
    det_time first; /* 0: 200 ms */
    det_time max;   /* 0: 30 s */
    double factor;  /* 0: 2.0; at least 1 */
    enum det_jitter jitter;
    det_time stable_after; /* an attempt of this duration ends the streak of failures even if it
                            * fails; 0: 60 s; DET_NEVER: only success does */
};

struct det_policy {
    enum det_restart restart;
    uint32_t retries_max; /* retries after consecutive failures: N are N + 1 attempts; 0:
                           * unlimited */
    det_time interval;    /* ALWAYS: time from the end of one attempt to the start of the next; 0:
                           * only the minimum */
    det_time timeout;     /* limit of one attempt; 0: none */
    det_time grace;       /* time from a cancel to the kill; 0: 10 s; DET_NEVER: no kill */
    struct det_backoff backoff;
};

/* Restart intensity: at most `count` restarts in `window`. A restart counts until `window` has
 * passed. */
#define DET_INTENSITY_MAX 1000000
struct det_intensity {
    uint32_t count;  /* 0: 5 */
    det_time window; /* 0: 10 s */
};

DET_END
#endif
