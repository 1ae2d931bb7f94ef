/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy.h - when a task runs again: restart, backoff, jitter, intensity. driver/policy.h computes
 * with them.
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

/* Restart intensity: at most `count` in `window`. A restart counts from its time on until `window`
 * has passed. */
#define DET_INTENSITY_MAX 1000000
struct det_intensity {
    uint32_t count;  /* 0: 5 */
    det_time window; /* 0: 10 s */
};

DET_END
#endif
