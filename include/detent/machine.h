/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine.h - a machine as data, and the pure step over it.
 *
 * A machine is written as rows in a spec file (order.fsm; docs/machines.md has the row list) and
 * becomes C through two templates:
 *
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/declare.h>     in order.h: enums, events, constructors, order_send()
 *     #include <detent/fsm/define.h>      in order.c: the checks and the table, order_machine
 *
 * or is built with tool/builder.h at run time, or read from the file with tool/spec.h. All three
 * make the same struct det_machine: immutable, shared by any number of threads, with dense ids in
 * memory and names for everything on disk. */
#ifndef DETENT_MACHINE_H
#define DETENT_MACHINE_H

#include <detent/record.h>
#include <detent/trace.h>

DET_BEGIN

/* Limits of one definition. A list in a row has at most DET_LIST_MAX members. */
#define DET_STATES_MAX  4096
#define DET_EVENTS_MAX  4096
#define DET_CELLS_MAX   262144 /* states times events */
#define DET_EFFECTS_MAX 256    /* named effects of a machine; DET_EXTRAS_MAX per transition */
#define DET_TIMERS_MAX  64
#define DET_GROUPS_MAX  4096 /* groups of states; the same limit for groups of events */
#define DET_EXTRAS_MAX  8
#define DET_LIST_MAX    64
#define DET_REASON_MAX  255 /* bytes in the reason of a stop or a failure */
/* The largest event struct of a component (supervise.h), in bytes. */
#define DET_COMPONENT_EVENT_MAX 512

/* The result of an event. A definition can contain the first four. */
enum det_outcome {
    DET_OUTCOME_UNHANDLED,   /* the state does not accept the event */
    DET_OUTCOME_GOTO,        /* a transition, perhaps to the same state: exit, entry, a new visit */
    DET_OUTCOME_STAY,        /* recorded and executed; same visit, state timer unchanged */
    DET_OUTCOME_STOP,        /* the instance has ended, with a reason */
    DET_OUTCOME_IGNORED,     /* unhandled, and ignored by policy: not recorded */
    DET_OUTCOME_DEFERRED,    /* unhandled, and kept until the state changes */
    DET_OUTCOME_DEAD_LETTER, /* unhandled, and kept as a dead letter for manual treatment */
};

/* Policy for an event that the state does not accept. */
enum det_unhandled {
    DET_UNHANDLED_ERROR, /* the sender gets DET_ERR_UNHANDLED; the default */
    DET_UNHANDLED_IGNORE,
    DET_UNHANDLED_DEFER,
    DET_UNHANDLED_DEAD_LETTER,
};

/* How a state of a component (supervise.h) treats events from outside. */
enum det_dispatch_mode {
    DET_DISPATCH_BLOCK,  /* waits for an event; the state has no own work */
    DET_DISPATCH_POLL,   /* accepts a waiting event before calling the dispatch function */
    DET_DISPATCH_IGNORE, /* leaves events for the next state that accepts them */
};

/* One step while it is decided or executed, as seen by user code. Borrowed for the call. */
struct det_move {
    const char *machine;
    const char *instance;
    uint64_t sequence; /* the number of this event when it is committed, from 1; 0 at the start */
    uint64_t visit;    /* the visit that the step leaves or stays in */
    uint16_t from, to; /* equal for stay and stop, and at the start */
    det_time now;      /* wall time of the decision */
    void *user;        /* det_runtime_options.user */
};

/* A call of an effect: after the commit, on a pool thread, at least once. */
struct det_effect_call {
    struct det_move move; /* the transition that requested the effect */
    const char *effect;
    const char *key;  /* idempotency key, the same on every attempt: "order/order-42/3/0" */
    uint32_t attempt; /* from 1 */
    det_time now;     /* wall time of this attempt */
    /* A failed attempt may set this: minimum delay before the next attempt. A longer backoff wins;
     * jitter is added to either. */
    det_time retry_after;
    /* A buffer of DET_REASON_MAX + 1 bytes, or NULL: a failed attempt may write its reason, for
     * people. It is stored with the effect and its dead letter and displayed: write no secrets.
     * Invalid UTF-8 and control characters are replaced. */
    char *reason;
    /* Trace context of the event that requested this effect, to be passed on; NULL: none. */
    const struct det_trace_context *trace;
};

/* Return values of an effect; a negative error is a failed attempt and is retried. */
enum det_effect_result {
    DET_EFFECT_DONE = 0, /* no event to send */
    DET_EFFECT_PRODUCED =
        1, /* send the event, which the effect has written to `ret`, to the instance */
    /* The effect did not begin, because this process lacks descriptors, processes or memory, or it
     * was cancelled because this process stops. The attempt is not counted, also after a restart;
     * the next one has the same key and comes after a second, or after a longer `retry_after`.
     * `reason` names the missing resource. */
    DET_EFFECT_POSTPONED = 2,
};

/* User code. `event` is the machine's event struct, whose first member is its kind; it is NULL for
 * the entry hook of the initial state at the start. `data` is the machine's data struct. */
typedef bool det_guard_fn(const struct det_move *move, const void *data, const void *event);
typedef int det_hook_fn(const struct det_move *move, const void *data, const void *event);
typedef void det_update_fn(void *data, const void *event);
typedef int det_effect_fn(
    struct det_effect_call *call, const void *data, const void *event, void *ret);
/* Fills the payload of a timeout's event when it is armed; the kind of `event` is set. */
typedef void det_fill_fn(const struct det_move *move, const void *data, void *event);

/* A named function of a definition. A definition read from a file has names only;
 * det_machine_bind() in tool/builder.h binds them, or the program resolves the names itself. */
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
    const uint16_t *produces; /* events that the effect may produce */
    uint16_t produces_count;
};

/* An event sent by a timer. `after` 0: none. */
struct det_timeout {
    det_time after;
    uint16_t event;
    const struct det_fill_def *fill; /* NULL: the payload is zero */
};

struct det_timer_def {
    const char *name; /* on disk */
    struct det_timeout timeout;
};

/* Copies a field of the payload into the field of the data with the same name and type. A presence
 * or count is part of the same range if it is adjacent, else a second range with the same name.
 * `is_bare`: a template cannot know this, so the presence is looked up in the records. */
struct det_keep {
    const char *name;
    uint32_t event_offset; /* in the event struct */
    uint32_t data_offset;
    uint32_t size;
    bool is_bare;
};

/* Actions of a transition beyond moving. Indices are into the machine's lists. */
struct det_transition_more {
    const struct det_guard_def *guard;
    const struct det_hook_def *hook;     /* runs before the commit, may refuse */
    const struct det_update_def *update; /* computes the new data, after the keeps */
    const struct det_keep *keeps;
    const uint16_t *effects;
    const uint16_t *arms;             /* timers */
    const uint16_t *disarms;          /* timers */
    const struct det_timeout *within; /* timeout that replaces that of the target state */
    const char *reason;               /* reason of a stop; NULL: none */
    uint8_t keep_count, effect_count, arm_count, disarm_count;
};

struct det_transition {
    uint16_t outcome; /* UNHANDLED, GOTO, STAY or STOP */
    uint16_t to;      /* the next state; the same one unless the outcome is GOTO */
    uint32_t row;     /* number of the row in the definition, from 1; 0 from a template */
    const struct det_transition_more *more; /* NULL: no actions */
};

/* An alternative of a pair, from an ELSE row. The first alternative is the pair's cell in the
 * table, which then has a guard; if that guard refuses, these are tried in order. */
struct det_choice {
    uint16_t state, event;
    struct det_transition transition;
};

enum det_state_flags {
    DET_STATE_INITIAL = 1,
    DET_STATE_FINAL = 2,
    /* Health of a state, for people: at most one. */
    DET_STATE_GOOD = 4,
    DET_STATE_WARNING = 8,
    DET_STATE_BAD = 16,
    DET_STATE_NEUTRAL = 32,
    DET_STATE_HEALTH = 60, /* mask of the four flags above */
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
    bool is_internal;        /* only effects and timers send it */
    uint8_t unhandled;       /* enum det_unhandled */
    uint32_t payload_offset; /* in the event struct */
    struct det_record_ref payload;
};

/* A named group of states or events. */
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
    const struct det_transition *table; /* table[state * event_count + event] */
    const struct det_state_def *states;
    const struct det_event_def *events;
    const struct det_effect_def *effects;
    const struct det_timer_def *timers;
    const struct det_group_def *groups;
    const struct det_group_def *event_groups;
    const struct det_choice *choices; /* the alternatives of all pairs, in the order of the rows */
    uint32_t choice_count;
};

/* A renamed name on disk: rows with the old name get the new one. */
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

/* A payload or data written with an older version of its record. */
struct det_upcast {
    const struct det_machine *machine;
    const char *event; /* event of the payload; NULL: the value is data */
    uint32_t version;  /* version of the record that wrote it; lower than the current one */
    const void *bytes; /* readable by det_record_decode() with the record of that version */
    size_t size;
};
/* Converts an old value. `ret` is the zeroed struct of the current record. Returns 1: converted; 0:
 * decode as usual, with zero in new fields; an error: the value cannot be read. DET_ERR_NO_MEMORY
 * is reported as such, any other error and an invalid result as DET_ERR_VERSION. Any thread; pure:
 * the same bytes give the same value. */
typedef int det_upcast_fn(void *user, const struct det_upcast *old, void *ret);

/* The kind of any machine's event struct: its first member. */
static inline unsigned det_event_kind(const void *event)
{
    return *(const unsigned *)event;
}

/* The pure step: the transition that `event` causes in `state`; of several alternatives the first.
 * No allocation, no I/O, no failure. Both must be ids of this machine. */
static inline const struct det_transition *det_machine_step(
    const struct det_machine *machine, unsigned state, unsigned event)
{
    return &machine->table[(size_t)state * machine->event_count + event];
}

DET_END
#endif
