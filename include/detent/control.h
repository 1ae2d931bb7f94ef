/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* control.h - what a stage does about a control signal: strategies decide, composed by precedence,
 * and one pure function turns the decision into what to do. No I/O, no clock.
 *
 *     signal -> every strategy: FORWARD | SKIP | RETRY | DELAY(d) -> the strictest of them
 *            -> not FORWARD: as it is; nothing else is looked at, nothing is noted
 *            -> FORWARD: the cycle guard's and the stage's rules -> struct det_resolution
 *
 * DELAY beats RETRY beats SKIP beats FORWARD; of two delays the longer counts. All strategies are
 * always asked, so that each sees every signal. */
#ifndef DETENT_CONTROL_H
#define DETENT_CONTROL_H

#include <detent/base.h>

DET_BEGIN

/* What can arrive at a stage beside data. Strategies are asked about the first four. */
enum det_signal {
    DET_SIGNAL_EOF,
    DET_SIGNAL_DRAIN,
    DET_SIGNAL_WATERMARK,
    DET_SIGNAL_CHECKPOINT,
    DET_SIGNAL_OTHER, /* always forwarded */
};

enum det_control_action {
    DET_CONTROL_FORWARD, /* accept it; the default */
    DET_CONTROL_SKIP,    /* drop it */
    DET_CONTROL_RETRY,   /* keep it and ask again */
    DET_CONTROL_DELAY,   /* keep it, wait, then ask again */
};

struct det_control_decision {
    enum det_control_action action;
    det_time delay; /* of DELAY, else 0 */
};

/* What a strategy remembers of one stage, from call to call and for as long as the stage lives. */
struct det_control_memory {
    uint32_t eof_attempts;   /* EOF signals that this strategy was asked about */
    uint32_t drain_attempts; /* the same for DRAIN */
    bool has_delayed;        /* it has asked for a delay before */
    uint64_t user[2];        /* the strategy's own */
};

struct det_signal_info {
    enum det_signal signal;
    uint32_t upstream; /* which input it came from */
    det_time now;      /* monotonic */
};

/* A strategy; `memory` is its own and belongs to the stage. */
struct det_control_strategy {
    const char *name;
    struct det_control_decision (*decide)(
        const void *config, const struct det_signal_info *info, struct det_control_memory *memory);
    const void *config; /* borrowed */
};

/* The stricter of two. Associative and commutative; FORWARD is its neutral element. */
DET_API struct det_control_decision det_control_stricter(
    struct det_control_decision a, struct det_control_decision b);
/* Asks all of them; none: FORWARD. `memories` has one for each strategy. */
DET_API struct det_control_decision det_control_decide(
    const struct det_control_strategy *strategies, size_t count, const struct det_signal_info *info,
    struct det_control_memory *memories);

/* What to do about a signal. */
enum det_resolution {
    DET_RESOLVE_FORWARD,           /* write it downstream, go on */
    DET_RESOLVE_FORWARD_AND_DRAIN, /* write it downstream, begin to drain */
    DET_RESOLVE_SUPPRESS,          /* drop it: the cycle has seen it */
    DET_RESOLVE_BUFFER,            /* keep it at the cycle's entry point until the cycle is empty */
    DET_RESOLVE_DELAY,             /* wait, hearing control meanwhile, then resolve again */
    DET_RESOLVE_RETRY,             /* keep the signal and resolve again next time */
    DET_RESOLVE_SKIP,              /* drop it: a strategy said so */
};

/* Where the stage stands in a cycle. */
enum det_cycle_role {
    DET_CYCLE_NONE,   /* in none */
    DET_CYCLE_MEMBER, /* in one, not where it is entered */
    DET_CYCLE_ENTRY,  /* where it is entered */
};

/* Where the signal came from, seen from an entry point. */
enum det_signal_origin {
    DET_ORIGIN_EXTERNAL,  /* an upstream outside of the cycle */
    DET_ORIGIN_INTERNAL,  /* an upstream inside of it */
    DET_ORIGIN_FORWARDED, /* written by another stage than the one we read from */
};

struct det_resolve_input {
    struct det_signal_info info;
    struct det_control_decision decision; /* of the strategies */
    enum det_cycle_role role;
    enum det_signal_origin origin;
    bool all_upstreams_ended; /* counting this one, if it is an EOF: every input had its own */
    bool is_final_eof;        /* this EOF ends the stage's input */
    bool drain_is_terminal;   /* of the stage: transforms and stateful ones yes, joins, sinks no */
};

struct det_resolved {
    enum det_resolution resolution;
    det_time delay;     /* of DELAY */
    bool note_in_guard; /* the caller shall note this EOF in the cycle guard; only ever on FORWARD
                           decisions */
};

/* The rules, in order. EOF: an entry point buffers what comes from outside and suppresses what
 * comes from inside or was forwarded; else, when all upstreams have ended or this EOF is final:
 * forward and drain; else forward. DRAIN: an entry point buffers; else forward, and drain where
 * that is terminal. Other signals: forward. */
DET_API struct det_resolved det_control_resolve(const struct det_resolve_input *input);

/* Strategies that come with the library. */

/* While the breaker probes or is open, EOF and DRAIN wait: HALF_OPEN for `half_open_delay` (0: 2 s),
 * OPEN for the cooldown, at most 5 s; once per signal kind. `state` is read at each decision. */
struct det_breaker_strategy {
    const uint8_t *state; /* 0 closed, 1 open, 2 half open; atomic */
    det_time cooldown, half_open_delay;
};
/* EOF and DRAIN wait until the window that is open has its length. */
struct det_window_strategy {
    const det_time *began; /* monotonic; 0: no window is open; atomic */
    det_time length;
};
/* RETRY up to `attempts_max` times, then FORWARD. */
struct det_retry_strategy {
    uint32_t attempts_max;
};
DET_API struct det_control_strategy det_control_breaker(const struct det_breaker_strategy *config);
DET_API struct det_control_strategy det_control_window(const struct det_window_strategy *config);
DET_API struct det_control_strategy det_control_retry(const struct det_retry_strategy *config);

/* How a source ends. */
enum det_source_end {
    DET_SOURCE_EOF,    /* natural: the default */
    DET_SOURCE_POISON, /* the data before it is not to be trusted as complete */
    DET_SOURCE_DRAIN_ONLY,
    DET_SOURCE_NOTHING,
};
/* With a breaker in front: POISON while it is open, else EOF. */
DET_API enum det_source_end det_control_source_end(const struct det_breaker_strategy *config);

DET_END
#endif
