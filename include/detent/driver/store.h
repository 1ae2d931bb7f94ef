/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/store.h - what a store must be able to do. For those who write another one; everybody
 * else includes store.h.
 *
 * A store keeps, per instance: a head (state, sequence, visit, ...), the data, the last events, the
 * event ids with their first answers, armed timers, effects that have not ended, deferred events.
 *
 *     commit: { expected sequence? } -> events, head, data, timers, effects, deferred, event id
 *               all of it, or nothing; durable when it returns 0
 *
 * Rules
 *   1. One commit is everything that one send implies. The driver checks the expected sequence, the
 *      event id, and that what is fired or ended is still there, inside it.
 *   2. The runtime never has two operations on one instance under way at once. Operations on
 *      different instances, and `list`, come from any thread at any time.
 *   3. Values are structs of the machine's records, borrowed for the call. A driver that writes
 *      bytes encodes them with det_record_encode(), and writes names and versions, never ids.
 *   4. Times are wall time and are data: a driver gives back what it was given.
 *   5. Several commits in one call are independent of each other: each has its own result. They are
 *      given together so that a driver can make them durable together. */
#ifndef DETENT_DRIVER_STORE_H
#define DETENT_DRIVER_STORE_H

#include <detent/machine.h>
#include <detent/store.h>

DET_BEGIN

/* The driver's own handle of an instance; may point to anything or be NULL. */
struct det_store_instance;

/* What changes with nearly every event. */
struct det_store_head {
    uint64_t sequence; /* of the last event; 0: none yet */
    uint64_t visit;
    uint64_t transition_count;
    det_time started_at, last_transition_at;
    uint16_t state;
    bool is_stopped;
};

/* A recorded event. */
struct det_store_event {
    uint64_t sequence, visit;          /* the visit afterwards */
    uint16_t from, to, event, outcome; /* event UINT16_MAX: a stop by hand */
    bool is_timeout;
    det_time at;
    const char *event_id; /* NULL: none */
    const char *cause;    /* the key of the effect that produced it; NULL: none */
    const void *value;    /* the event struct; NULL for a stop by hand */
};

/* The first answer to an event id, which is the answer as long as the store remembers it. */
struct det_store_answer {
    uint16_t outcome, state;
    uint64_t sequence, visit;
};

/* An armed timer; the unnamed one of the state has the index DET_STATE_TIMER. */
#define DET_STATE_TIMER UINT16_MAX
struct det_store_timer {
    uint16_t timer, event;
    uint64_t visit; /* in which it was armed */
    det_time due;
    const void *value; /* the event struct; NULL: its payload is all zero */
};

/* An effect that has not ended; (sequence, index) names it within the instance. */
struct det_store_effect {
    uint64_t sequence;
    uint16_t index, effect;
    uint16_t from, to;
    uint64_t visit; /* that was left, or stayed in */
    uint64_t asked; /* the visit afterwards: the one that asked for it */
    det_time at;    /* of the commit that asked for it */
    uint32_t attempts;
    int last_error;
    det_time next; /* of the next attempt */
    bool is_dead;
    const void *data, *event; /* as of its commit */
};

struct det_store_deferred {
    uint64_t sequence; /* at which it was deferred */
    const void *event;
};

enum det_store_change_kind {
    DET_STORE_SET,    /* there from now on, in place of the one with the same name */
    DET_STORE_CLEAR,  /* gone; harmless when it is not there */
    DET_STORE_TAKE,   /* gone; but it must be there, just so (timer: same due and visit), else the
                         commit fails with DET_ERR_NOT_FOUND: somebody else has done it */
    DET_STORE_UPDATE, /* effects: attempts, last_error, next, is_dead as given; must be there */
};

struct det_store_timer_change {
    enum det_store_change_kind kind; /* SET, CLEAR, TAKE */
    struct det_store_timer timer;    /* CLEAR: only `timer` counts */
};
struct det_store_effect_change {
    enum det_store_change_kind kind; /* SET, TAKE, UPDATE */
    struct det_store_effect effect;  /* data and event count for SET only */
};
struct det_store_deferred_change {
    enum det_store_change_kind kind; /* SET, TAKE */
    struct det_store_deferred deferred;
};

/* Everything that one send implies. Changes are applied in their order. */
struct det_store_commit {
    const struct det_machine *machine;
    const char *id;
    struct det_store_instance *instance; /* written when it is a new one */
    bool is_new;                         /* DET_ERR_EXISTS when there is one */
    uint64_t expected;                   /* the sequence it must stand at, when there are events */
    const struct det_store_head *head;   /* afterwards */
    const char *reason;                  /* of a stop; NULL: none, or unchanged */
    const void *data;                    /* afterwards; NULL: unchanged; never when it is new */
    const struct det_store_event *events;
    size_t event_count; /* 0: the sequence is not moved and not checked */
    const struct det_store_timer_change *timers;
    size_t timer_count;
    const struct det_store_effect_change *effects;
    size_t effect_count;
    const struct det_store_deferred_change *deferred;
    size_t deferred_count;
    const char *event_id; /* to be remembered with `answer`; NULL: none */
    struct det_store_answer answer;
    /* The driver's. What the result says about the instance:
     *   0                     it is durable
     *   DET_ERR_CONFLICT      it stood at `actual`; nothing happened
     *   DET_ERR_EXISTS        it is not new, or the event id is known; nothing happened
     *   DET_ERR_NOT_FOUND     something to take or update was not there; nothing happened
     *   DET_ERR_NO_MEMORY, DET_ERR_LIMIT, DET_ERR_NO_SPACE   nothing happened
     *   any other             unknown: it may have happened. The runtime loads it again */
    int result;
    uint64_t actual;
    const void *next; /* memory that the next commit on it will write to, if the driver knows; the
                         runtime never looks at it, but asks the processor for it ahead of time */
};

/* An instance as it was found. */
struct det_store_loaded {
    struct det_store_instance *instance;
    struct det_store_head head;
    uint16_t history[DET_HISTORY_MAX]; /* previous states, most recent first */
    size_t history_count;
    char reason[DET_REASON_MAX + 1];
    void *data; /* the caller's, of the size of the machine's data record */
};

/* An instance in a list. */
struct det_store_listed {
    const char *id;
    unsigned state;
    bool is_stopped;
};

/* Where load puts the rows. A non-zero answer ends the load and is returned. */
struct det_store_rows {
    void *context;
    int (*timer)(void *context, const struct det_store_timer *row);
    int (*effect)(void *context, const struct det_store_effect *row);     /* oldest first */
    int (*deferred)(void *context, const struct det_store_deferred *row); /* oldest first */
};

struct det_store;

struct det_store_ops {
    /* True when a commit and an answer take no more than a microsecond and never block, so that
     * they may be done under a lock. */
    bool is_quick;
    void (*close)(struct det_store *store);
    /* Before the first operation on a machine: makes room for it, and answers whether what is
     * stored fits this definition (DET_ERR_VERSION). The machine stays until the store's runtime
     * is closed. Again with the same machine is fine. */
    int (*serve)(
        struct det_store *store, const struct det_machine *machine, struct det_error *reterr);
    /* The one way in. Returns 0 (look at each result), or an error that is every one's result. */
    int (*commit)(struct det_store *store, struct det_store_commit *const *commits, size_t count);
    /* DET_ERR_NOT_FOUND when there is none. After an error nothing is held. */
    int (*load)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        const struct det_store_rows *rows, struct det_store_loaded *ret);
    /* The handle is not used any more. */
    void (*release)(struct det_store *store, struct det_store_instance *instance);
    /* The first answer to an event id; DET_ERR_NOT_FOUND. */
    int (*answer)(
        struct det_store *store, struct det_store_instance *instance, const char *event_id,
        struct det_store_answer *ret);
    /* The events after `after` that are still kept, oldest first; a non-zero answer of `visit` ends
     * the walk and is returned. */
    int (*events)(
        struct det_store *store, struct det_store_instance *instance, uint64_t after,
        int (*visit)(void *context, const struct det_store_event *row), void *context);
    /* Every instance of a machine. `visit` must not call the store. */
    int (*list)(
        struct det_store *store, const struct det_machine *machine,
        int (*visit)(void *context, const struct det_store_listed *row), void *context);
    /* Every instance that has a timer due before `before`, or an effect that is not dead. Only
     * while none of the machine's instances is being committed. `visit` must not call the store. */
    int (*pending)(
        struct det_store *store, const struct det_machine *machine, det_time before,
        int (*visit)(void *context, const char *id), void *context);
};

/* The first member of every driver's store. */
struct det_store {
    const struct det_store_ops *ops;
    struct det_world *world;               /* never NULL */
    const struct det_allocator *allocator; /* NULL: the default one */
    bool is_used;                          /* the runtime's: one at a time */
};

/* A line in src/store/drivers.def names one of these. */
struct det_store_driver {
    const char *scheme;  /* "memory" of "memory:" */
    const char *summary; /* for help */
    /* `rest` is the URL behind the colon; the options have their world set. */
    int (*open)(
        const char *rest, const struct det_store_options *options, struct det_store **ret,
        struct det_error *reterr);
};

DET_END
#endif
