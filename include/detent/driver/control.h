/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/control.h - what a stage does about a control signal: strategies decide, composed by
 * precedence, and one pure function turns the decision into what to do. No I/O, no clock.
 *
 *     signal -> every strategy: FORWARD | SKIP | RETRY | DELAY(d) -> the strictest of them
 *            -> not FORWARD: as it is; nothing else is looked at, nothing is noted
 *            -> FORWARD: the cycle guard's and the stage's rules -> struct det_resolution
 *
 * DELAY beats RETRY beats SKIP beats FORWARD; of two delays the longer counts. All strategies are
 * always asked, so that each sees every signal.
 *
 * A signal that is kept (DELAY, RETRY) is decided anew when its time has come: the strategies are
 * asked again, and remember that they were. Only when they let it pass does it count as seen. */
#ifndef DETENT_DRIVER_CONTROL_H
#define DETENT_DRIVER_CONTROL_H

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
#define DET_SIGNAL_KINDS 5

enum det_control_action {
    DET_CONTROL_FORWARD, /* accept it; the default */
    DET_CONTROL_SKIP,    /* drop it */
    DET_CONTROL_RETRY,   /* keep it and ask again */
    DET_CONTROL_DELAY,   /* keep it, wait, then ask again */
};

struct det_control_decision {
    enum det_control_action action;
    det_time delay; /* of DELAY, not negative; else it is not looked at */
};

/* What a strategy remembers of one stage, from call to call and for as long as the stage lives;
 * zero at first. det_control_decide() counts, by kind of signal; the counts stop at their largest
 * value. */
struct det_control_memory {
    uint32_t asked[DET_SIGNAL_KINDS];   /* how often, this time included */
    uint32_t delayed[DET_SIGNAL_KINDS]; /* how often the answer was DELAY, until this time */
    uint64_t user[2];                   /* the strategy's own */
};

struct det_signal_info {
    enum det_signal signal;
    uint32_t upstream; /* which input it came from */
    det_time now;      /* monotonic */
};

/* A strategy; `memory` is its own and belongs to the stage. It decides by what it is given and by
 * what its owner shows it, quickly and without blocking. */
struct det_control_strategy {
    const char *name;
    struct det_control_decision (*decide)(
        const void *config, const struct det_signal_info *info, struct det_control_memory *memory);
    const void *config; /* borrowed */
};

/* The stricter of two. Associative and commutative; FORWARD is its neutral element. The delay of
 * the answer is 0 unless it is a DELAY. */
DET_API struct det_control_decision det_control_stricter(
    struct det_control_decision a, struct det_control_decision b);
/* Asks all of them, in order, and keeps the strictest answer; none: FORWARD. `memories` has one for
 * each strategy. Nobody is asked about DET_SIGNAL_OTHER. */
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
    DET_ORIGIN_FORWARDED, /* written by another stage than the one we read from, which has not
                             ended by it */
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
    bool note_in_guard; /* the caller shall note in the cycle guard that this upstream has ended */
};

/* The rules, in order:
 *   - DET_SIGNAL_OTHER: forward.
 *   - The strategies decided otherwise than FORWARD: as they say, and nothing is noted.
 *   - EOF: an entry point buffers what comes from outside and suppresses what comes from inside or
 *     was forwarded; elsewhere, when all upstreams have ended or this EOF is final, forward and
 *     drain; else forward. A member of a cycle that is not its entry point notes it, unless it was
 *     forwarded.
 *   - DRAIN: an entry point buffers; elsewhere forward, and drain where that is terminal.
 *   - The rest: forward. */
DET_API struct det_resolved det_control_resolve(const struct det_resolve_input *input);

/* Strategies that come with the library; their configs are borrowed. They hold up EOF and DRAIN and
 * forward all else. */

/* What a circuit breaker shows of itself. */
enum det_breaker_state {
    DET_BREAKER_CLOSED, /* calls pass */
    DET_BREAKER_OPEN,
    DET_BREAKER_HALF_OPEN, /* probes */
};

/* While the breaker probes, a signal waits for `half_open_delay`, and while it is open for the
 * cooldown, of which at most DET_BREAKER_WAIT_MAX: each kind of signal once, so that a breaker that
 * does not close holds nobody for ever. A number that is no state counts as closed. */
#define DET_BREAKER_WAIT_MAX (5 * DET_SECOND)
struct det_breaker_strategy {
    const uint8_t *state;     /* enum det_breaker_state; read atomically, at each decision */
    det_time cooldown;        /* 0: 60 s, the breaker's own default */
    det_time half_open_delay; /* 0: 2 s */
};
/* A signal waits until the window that is open has its length. */
struct det_window_strategy {
    const det_time *began; /* monotonic; 0: no window is open; read atomically */
    det_time length;
};
/* A signal is kept `attempts_max` times, counted by its kind, and then forwarded: by RETRY, or with
 * `first` by DELAY of first * factor^n, at most `max`. */
struct det_retry_strategy {
    uint32_t attempts_max;
    det_time first;  /* 0: no delay but RETRY */
    det_time max;    /* 0: no limit */
    double factor;   /* 0: 1, which is always the same delay; at least 1 */
    bool has_jitter; /* the delay is spread by a tenth of it to both sides */
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
/* With a breaker in front (NULL: without one): POISON while it is open, else EOF. For a source that
 * has no more, and for one that is asked to drain. */
DET_API enum det_source_end det_control_source_end(const struct det_breaker_strategy *config);

DET_END
#endif
