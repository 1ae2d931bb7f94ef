/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine.h - a machine as data, and the pure step over it.
 *
 * A machine is written as rows in a spec file (order.fsm; docs/machines.md has the row list) and
 * comes to C through two templates:
 *
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/declare.h>     in order.h: enums, events, constructors, order_send()
 *     #include <detent/fsm/define.h>      in order.c: the checks and the table, order_machine
 *
 * or from tool/builder.h at run time, or from tool/spec.h, which reads the file. All three give the
 * same struct det_machine: immutable, shared by any number of threads, with dense ids in memory and
 * names for everything that reaches a disk. */
#ifndef DETENT_MACHINE_H
#define DETENT_MACHINE_H

#include <detent/record.h>
#include <detent/trace.h>

DET_BEGIN

/* Limits of one definition. A list in a row has at most DET_LIST_MAX members. */
#define DET_STATES_MAX  4096
#define DET_EVENTS_MAX  4096
#define DET_CELLS_MAX   262144 /* states times events */
#define DET_EFFECTS_MAX 256    /* named ones; and DET_EXTRAS_MAX on one transition */
#define DET_TIMERS_MAX  64
#define DET_GROUPS_MAX  4096 /* of states; and as many of events */
#define DET_EXTRAS_MAX  8
#define DET_LIST_MAX    64
#define DET_REASON_MAX  255 /* bytes of a reason to stop, or to fail */
/* The largest event struct of a component (supervise.h), in bytes. */
#define DET_COMPONENT_EVENT_MAX 512

/* What became of an event. The first four are what a definition can say. */
enum det_outcome {
    DET_OUTCOME_UNHANDLED,   /* the state does not take the event */
    DET_OUTCOME_GOTO,        /* a transition, perhaps to the same state: exit, entry, a new visit */
    DET_OUTCOME_STAY,        /* recorded and acted on; same visit, state timer untouched */
    DET_OUTCOME_STOP,        /* the instance has ended, with a reason */
    DET_OUTCOME_IGNORED,     /* unhandled, and declared to be ignored: nothing was recorded */
    DET_OUTCOME_DEFERRED,    /* unhandled, and kept until the state changes */
    DET_OUTCOME_DEAD_LETTER, /* unhandled, and put aside for a person */
};

/* What to do with an event that the state does not take. */
enum det_unhandled {
    DET_UNHANDLED_ERROR, /* DET_ERR_UNHANDLED to the sender; the default */
    DET_UNHANDLED_IGNORE,
    DET_UNHANDLED_DEFER,
    DET_UNHANDLED_DEAD_LETTER,
};

/* What a state of a component (supervise.h) does about events from outside. */
enum det_dispatch_mode {
    DET_DISPATCH_BLOCK,  /* waits for one; the state has nothing to do by itself */
    DET_DISPATCH_POLL,   /* takes one if it is there, before the dispatch function */
    DET_DISPATCH_IGNORE, /* does not touch them; they are seen by the next state that does */
};

/* One step as user code sees it while it is decided or carried out. Borrowed for the call. */
struct det_move {
    const char *machine;
    const char *instance;
    uint64_t sequence; /* the number this event gets when it is committed, from 1; 0 at the start */
    uint64_t visit;    /* the visit that is left, or stayed in */
    uint16_t from, to; /* equal for stay and stop, and at the start */
    det_time now;      /* wall time of the decision */
    void *user;        /* det_runtime_options.user */
};

/* An effect as it runs: after the commit, on a pool, at least once. */
struct det_effect_call {
    struct det_move move; /* of the transition that asked for it */
    const char *effect;
    const char *key;  /* the same on every attempt, for ever: "order/order-42/3/0" */
    uint32_t attempt; /* from 1 */
    det_time now;     /* wall time of this attempt */
    /* An attempt that fails may set it: so long at least until the next one. Where the backoff is
     * longer that counts; the jitter comes on top of either. */
    det_time retry_after;
    /* Room for DET_REASON_MAX bytes and a zero byte, or NULL: an attempt that fails may write there
     * what went wrong, for people. It is kept with the effect, and with a dead letter, and shown:
     * nothing secret. What is not UTF-8, and control characters, are replaced. */
    char *reason;
    /* Trace context of the event that requested this effect, to be passed on; NULL: none. */
    const struct det_trace_context *trace;
};

/* What an effect answers; a negative error is a failed attempt and will be tried again. */
enum det_effect_result {
    DET_EFFECT_DONE = 0, /* nothing to send */
    DET_EFFECT_PRODUCED =
        1, /* the event, which must have been written to `ret`, is to be sent to the
                         instance */
    /* It did not begin, because this process has no descriptor, process or memory for it; or it
     * was cancelled, because this process stops. The attempt does not count, also not for the next
     * process; the next one has the same key and comes after a second, or `retry_after` if that is
     * longer. `reason` says what is short. */
    DET_EFFECT_POSTPONED = 2,
};

/* User code. `event` is the machine's own event struct, whose first member is its kind, and NULL
 * for the entry hook of the initial state at the start; `data` is the machine's data struct. */
typedef bool det_guard_fn(const struct det_move *move, const void *data, const void *event);
typedef int det_hook_fn(const struct det_move *move, const void *data, const void *event);
typedef void det_update_fn(void *data, const void *event);
typedef int det_effect_fn(
    struct det_effect_call *call, const void *data, const void *event, void *ret);
/* Completes the payload of a timeout's event when it is armed; `event` has its kind set. */
typedef void det_fill_fn(const struct det_move *move, const void *data, void *event);

/* A named function of a definition. A definition read from a file has names only; they are bound
 * by det_machine_bind() in builder.h or answered by the program. */
struct det_guard_def {
    const char *name;
    det_guard_fn *run;
};
struct det_hook_def {
    const char *name;
    det_hook_fn *run;
};
struct det_update_def {
    const char *name;
    det_update_fn *run;
};
struct det_fill_def {
    const char *name;
    det_fill_fn *run;
};
struct det_effect_def {
    const char *name; /* on disk */
    det_effect_fn *run;
    const uint16_t *produces; /* the events it may produce */
    uint16_t produces_count;
};

/* An event that comes by itself. `after` 0: none. */
struct det_timeout {
    det_time after;
    uint16_t event;
    const struct det_fill_def *fill; /* NULL: the payload is zero */
};

struct det_timer_def {
    const char *name; /* on disk */
    struct det_timeout timeout;
};

/* Copies a field of the payload into the field of the data with the same name and type. A field
 * with a presence or count is one range with it where they touch, or two of the same name. A
 * template cannot tell whether it has one: then `is_bare`, and the presence is looked up in the
 * records. */
struct det_keep {
    const char *name;
    uint32_t event_offset; /* in the event struct */
    uint32_t data_offset;
    uint32_t size;
    bool is_bare;
};

/* What a transition does beyond moving. Indices are into the machine's lists. */
struct det_transition_more {
    const struct det_guard_def *guard;
    const struct det_hook_def *hook;     /* runs before the commit, may refuse */
    const struct det_update_def *update; /* computes the new data, after the keeps */
    const struct det_keep *keeps;
    const uint16_t *effects;
    const uint16_t *arms;             /* timers */
    const uint16_t *disarms;          /* timers */
    const struct det_timeout *within; /* instead of the target state's own timeout */
    const char *reason;               /* of a stop; NULL: none given */
    uint8_t keep_count, effect_count, arm_count, disarm_count;
};

struct det_transition {
    uint16_t outcome; /* UNHANDLED, GOTO, STAY or STOP */
    uint16_t to;      /* the state afterwards: the same one unless it is a GOTO */
    uint32_t row;     /* which row of the definition said it, from 1; 0 from a template */
    const struct det_transition_more *more; /* NULL: nothing */
};

/* An alternative of a pair, from an ELSE row. The first one is the pair's cell in the table, which
 * then has a guard; these are tried, in order, when that says no. */
struct det_choice {
    uint16_t state, event;
    struct det_transition transition;
};

enum det_state_flags {
    DET_STATE_INITIAL = 1,
    DET_STATE_FINAL = 2,
    /* What it means to be there, for people: at most one. */
    DET_STATE_GOOD = 4,
    DET_STATE_WARNING = 8,
    DET_STATE_BAD = 16,
    DET_STATE_NEUTRAL = 32,
    DET_STATE_HEALTH = 60, /* all of these */
};

struct det_state_def {
    const char *name; /* on disk; never change it */
    unsigned flags;   /* enum det_state_flags */
    const struct det_hook_def *entry;
    const struct det_hook_def *exit;
    struct det_timeout timeout;
};

struct det_event_def {
    const char *name;        /* on disk; never change it */
    bool is_internal;        /* only effects and timeouts send it */
    uint8_t unhandled;       /* enum det_unhandled */
    uint32_t payload_offset; /* in the event struct */
    struct det_record_ref payload;
};

/* States or events with a name of their own. */
struct det_group_def {
    const char *name;
    const uint16_t *members; /* leaves, in the order written */
    uint16_t member_count;
};

struct det_machine {
    const char *name;
    uint32_t version;
    uint16_t state_count, event_count;
    uint16_t effect_count, timer_count, group_count, event_group_count;
    uint16_t initial;
    uint32_t event_size; /* of the event struct */
    struct det_record_ref data;
    const struct det_transition *table; /* [state * event_count + event] */
    const struct det_state_def *states;
    const struct det_event_def *events;
    const struct det_effect_def *effects;
    const struct det_timer_def *timers;
    const struct det_group_def *groups;
    const struct det_group_def *event_groups;
    const struct det_choice *choices; /* of all pairs, in the order of the rows */
    uint32_t choice_count;
};

/* A name on disk that changed: what was stored under the old one is that which has the new one. */
enum det_name_kind {
    DET_NAME_STATE,
    DET_NAME_EVENT,
    DET_NAME_EFFECT,
    DET_NAME_TIMER,
};
struct det_rename {
    enum det_name_kind kind;
    const char *from, *to;
};

/* A payload or data as an older version of its record wrote it. */
struct det_upcast {
    const struct det_machine *machine;
    const char *event; /* whose payload it is; NULL: it is data */
    uint32_t version;  /* of the record that wrote it; lower than that of the definition's record */
    const void *bytes; /* det_record_decode() with the record of that version reads them */
    size_t size;
};
/* Converts it: `ret` is the struct of the definition's record, all zero. Returns 1 when it is
 * written; 0: it is read as usual, and fields that are new are zero; or an error: what it belongs
 * to cannot be read, which is DET_ERR_NO_MEMORY if it was that and DET_ERR_VERSION otherwise, as it
 * is when what was written is not valid. Any thread; pure: the same bytes, the same value. */
typedef int det_upcast_fn(void *user, const struct det_upcast *old, void *ret);

/* The kind of an event struct of any machine: its first member. */
static inline unsigned det_event_kind(const void *event)
{
    return *(const unsigned *)event;
}

/* The pure step: which transition `event` causes in `state`; where there is a choice, the first
 * alternative. No allocation, no I/O, no failure. Both must be ids of this machine. */
static inline const struct det_transition *det_machine_step(
    const struct det_machine *machine, unsigned state, unsigned event)
{
    return &machine->table[(size_t)state * machine->event_count + event];
}

DET_END
#endif
