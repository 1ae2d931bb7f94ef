/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/control.h - flow control: strategies decide about a control signal, their decisions are
 * composed by precedence, and one pure function turns the result into an action. No I/O, no clock.
 *
 *     signal -> every strategy: FORWARD | SKIP | RETRY | DELAY(d) -> the strictest of them
 *            -> not FORWARD: the resolution is that decision; the cycle guard notes nothing
 *            -> FORWARD: rules of the cycle guard and of the stage -> struct det_resolution
 *
 * DELAY beats RETRY beats SKIP beats FORWARD; of two delays the longer one counts. Every strategy
 * is called for every signal.
 *
 * A kept signal (DELAY, RETRY) is decided again when its time has come: the strategies are called
 * again, with what they remember of the earlier calls. The signal counts as seen when the
 * strategies forward it. */
#ifndef DETENT_DRIVER_CONTROL_H
#define DETENT_DRIVER_CONTROL_H

#include <detent/base.h>

DET_BEGIN

/* A control signal that can arrive at a stage. Strategies decide about the first four. */
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
    DET_CONTROL_RETRY,   /* keep it and decide again */
    DET_CONTROL_DELAY,   /* keep it, wait, then decide again */
};

struct det_control_decision {
    enum det_control_action action;
    det_time delay; /* DELAY: the delay, not negative; ignored otherwise */
};

/* What a strategy remembers about one stage for the life of the stage; zero at first.
 * det_control_decide() counts by kind of signal; counters stop at their maximum. */
struct det_control_memory {
    uint32_t asked[DET_SIGNAL_KINDS];   /* number of calls, including this one */
    uint32_t delayed[DET_SIGNAL_KINDS]; /* number of DELAY answers before this call */
    uint64_t user[2];                   /* for the strategy's own use */
};

struct det_signal_info {
    enum det_signal signal;
    uint32_t upstream; /* the input that the signal came from */
    det_time now;      /* monotonic */
};

/* A strategy. `memory` belongs to the strategy and the stage. The strategy decides from its
 * arguments and its config, quickly and without blocking. */
struct det_control_strategy {
    const char *name;
    struct det_control_decision (*decide)(
        const void *config, const struct det_signal_info *info, struct det_control_memory *memory);
    const void *config; /* borrowed */
};

/* The stricter of two decisions. Associative and commutative; FORWARD is the neutral element. The
 * delay of the result is 0 unless it is a DELAY. */
DET_API struct det_control_decision det_control_stricter(
    struct det_control_decision a, struct det_control_decision b);
/* Calls all strategies in order and returns the strictest decision; FORWARD without strategies.
 * `memories` has one element per strategy. DET_SIGNAL_OTHER is forwarded without calling them. */
DET_API struct det_control_decision det_control_decide(
    const struct det_control_strategy *strategies, size_t count, const struct det_signal_info *info,
    struct det_control_memory *memories);

/* What to do with a signal. */
enum det_resolution {
    DET_RESOLVE_FORWARD,           /* write it downstream and continue */
    DET_RESOLVE_FORWARD_AND_DRAIN, /* write it downstream and start draining */
    DET_RESOLVE_SUPPRESS,          /* drop it: the cycle has seen it */
    DET_RESOLVE_BUFFER,            /* keep it at the cycle's entry point until the cycle is empty */
    DET_RESOLVE_DELAY,             /* wait, receive control signals meanwhile, then resolve again */
    DET_RESOLVE_RETRY,             /* keep the signal and resolve it again next time */
    DET_RESOLVE_SKIP,              /* drop it: a strategy decided SKIP */
};

/* Position of the stage in a cycle. */
enum det_cycle_role {
    DET_CYCLE_NONE,   /* not in a cycle */
    DET_CYCLE_MEMBER, /* in a cycle, but not its entry point */
    DET_CYCLE_ENTRY,  /* entry point of a cycle */
};

/* Source of the signal, seen from an entry point. */
enum det_signal_origin {
    DET_ORIGIN_EXTERNAL,  /* an upstream outside of the cycle */
    DET_ORIGIN_INTERNAL,  /* an upstream inside of the cycle */
    DET_ORIGIN_FORWARDED, /* written by a stage other than the upstream; the upstream has not
                           * ended */
};

struct det_resolve_input {
    struct det_signal_info info;
    struct det_control_decision decision; /* the decision of the strategies */
    enum det_cycle_role role;
    enum det_signal_origin origin;
    bool all_upstreams_ended; /* true if every input has ended, including by this EOF */
    bool is_final_eof;        /* this EOF ends the stage's input */
    bool drain_is_terminal;   /* true for transforms and stateful stages, false for joins and
                               * sinks */
};

struct det_resolved {
    enum det_resolution resolution;
    det_time delay;     /* DELAY: the delay */
    bool note_in_guard; /* the caller must note in the cycle guard that this upstream has ended */
};

/* The rules, in order:
 *   - DET_SIGNAL_OTHER: forward.
 *   - The strategies decided something other than FORWARD: use that decision; note nothing.
 *   - EOF: an entry point buffers a signal from outside, and suppresses one from inside or a
 *     forwarded one. Elsewhere, if all upstreams have ended or this EOF is final: forward and
 *     drain; otherwise forward. A member of a cycle that is not its entry point notes the EOF,
 *     unless the EOF was forwarded.
 *   - DRAIN: an entry point buffers it; elsewhere forward, and drain if drain is terminal.
 *   - Others: forward. */
DET_API struct det_resolved det_control_resolve(const struct det_resolve_input *input);

/* Strategies of the library; their configs are borrowed. They delay EOF and DRAIN and forward the
 * rest. */

/* State of a circuit breaker. */
enum det_breaker_state {
    DET_BREAKER_CLOSED, /* calls pass */
    DET_BREAKER_OPEN,
    DET_BREAKER_HALF_OPEN, /* probes */
};

/* A signal waits for `half_open_delay` while the breaker probes, and for the cooldown while it is
 * open, at most DET_BREAKER_WAIT_MAX. Each kind of signal waits once, so a breaker that never
 * closes does not block forever. A value that is not a state counts as closed. */
#define DET_BREAKER_WAIT_MAX (5 * DET_SECOND)
struct det_breaker_strategy {
    const uint8_t *state;     /* enum det_breaker_state; read atomically for each decision */
    det_time cooldown;        /* 0: 60 s, the default of the breaker */
    det_time half_open_delay; /* 0: 2 s */
};
/* A signal waits until the open window has reached its length. */
struct det_window_strategy {
    const det_time *began; /* monotonic; 0: no open window; read atomically */
    det_time length;
};
/* A signal is kept `attempts_max` times, counted by kind, and then forwarded. It is kept by RETRY,
 * or, if `first` is set, by DELAY of first * factor^n, at most `max`. */
struct det_retry_strategy {
    uint32_t attempts_max;
    det_time first;  /* 0: RETRY without a delay */
    det_time max;    /* 0: no limit */
    double factor;   /* at least 1; 0: 1, a constant delay */
    bool has_jitter; /* varies the delay by up to a tenth in both directions */
};
DET_API struct det_control_strategy det_control_breaker(const struct det_breaker_strategy *config);
DET_API struct det_control_strategy det_control_window(const struct det_window_strategy *config);
DET_API struct det_control_strategy det_control_retry(const struct det_retry_strategy *config);

/* How a source ends. */
enum det_source_end {
    DET_SOURCE_EOF,    /* regular end; the default */
    DET_SOURCE_POISON, /* the preceding data may be incomplete */
    DET_SOURCE_DRAIN_ONLY,
    DET_SOURCE_NOTHING,
};
/* How a source ends when it has no more data or must drain: POISON while the breaker is open, else
 * EOF. NULL: no breaker. */
DET_API enum det_source_end det_control_source_end(const struct det_breaker_strategy *config);

DET_END
#endif
