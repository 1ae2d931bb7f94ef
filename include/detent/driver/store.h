/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/store.h - what a store must be able to do. For those who write another one; everybody
 * else includes store.h. docs/formats/sql_schema.md says what the SQL stores keep.
 *
 * A store keeps, per instance: a head (state, sequence, visit, ...), the data, what it began with,
 * the events, the event ids with their first answers, armed timers, effects that have not ended,
 * dead ones, deferred events, a snapshot, and a lock with the number of its last grant, the fence.
 * And apart from instances: leases by name.
 *
 *     commit: { fence? expected sequence? } -> events, head, data, timers, effects, deferred,
 *               event id, snapshot: all of it, or nothing; durable when it returns 0
 *
 * Rules
 *   1. One commit is everything that one send implies. The driver checks the expected sequence, the
 *      event id, and that what is fired or ended is still there, inside it.
 *   2. The runtime never has two operations on one instance under way at once, but for `lock`,
 *      which comes at any time: a lock is renewed while its holder sends. Operations on
 *      different instances, and `list`, come from any thread at any time.
 *   3. Values are structs of the machine's records, borrowed for the call. A driver that writes
 *      bytes encodes them with det_record_encode(), and writes names and versions, never ids.
 *      What is older than the definition's record it gives to `upcast` when it reads it.
 *   4. Times are of the store's clock, `now`, and are data: a driver gives back what it was given.
 *      Where the store is shared, that clock is the server's, and whether a lock or a lease has
 *      lapsed, or a timer is due, is decided there.
 *   5. Several commits in one call are independent of each other: each has its own result. They are
 *      given together so that a driver can make them durable together; and a driver that has to
 *      wait for a disk also puts together the calls of several threads (src/store/group.h).
 *   6. A shared store has other writers: everything that is read may have moved since. Timers and
 *      effects that a commit sets belong to this node, which is the opened store; `due` lists what
 *      belongs to it, and a commit can only take what belongs to it. `load` gives the rows of all
 *      nodes, and says which are another one's; to clear or replace those is anybody's right.
 *   7. Once it is not known whether something reached the disk, a driver never says again that
 *      something did: every further commit of this opening fails with DET_ERR_IO.
 *   8. A store opened for reading answers every change with DET_ERR_READ_ONLY. */
#ifndef DETENT_DRIVER_STORE_H
#define DETENT_DRIVER_STORE_H

#include <detent/driver/documents.h>
#include <detent/driver/jobs.h>
#include <detent/machine.h>
#include <detent/store.h>
#include <detent/tool/store.h>

DET_BEGIN

/* The driver's own handle of an instance; may point to anything or be NULL. */
struct det_store_instance;

/* The driver's own: a place in the queue of an instance. */
struct det_store_place;

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
    uint16_t from, to, event, outcome; /* event UINT16_MAX: a cancel */
    uint16_t choice; /* which alternative was taken; 0: the first, or there is no choice */
    bool is_timeout;
    det_time at;
    const char *event_id; /* NULL: none */
    const char *cause;    /* the key of the effect that produced it; NULL: none */
    const void *value;    /* the event struct; NULL for a cancel */
    /* That its sender was in; NULL: none. No hash covers it, and a store in memory does not keep
     * it. */
    const struct det_trace_context *trace;
};

/* The first answer to an event id, which is the answer as long as the store remembers it. */
struct det_store_answer {
    uint16_t outcome, state;
    uint64_t sequence, visit;
    uint64_t request; /* a hash of the event that had the id and its payload; 0: not known, and then
                         neither is `event` */
    uint16_t event;   /* UINT16_MAX: none, or its name is not known any more */
};

/* An armed timer. Two have no number in the definition: DET_STATE_TIMER is the unnamed one of the
 * state; DET_DEFERRED_TIMER is armed while a deferred event waits although the state takes it, its
 * `visit` is the sequence at which that event was deferred, and stores call it by its name. */
#define DET_STATE_TIMER         UINT16_MAX
#define DET_DEFERRED_TIMER      (UINT16_MAX - 1)
#define DET_DEFERRED_TIMER_NAME "@deferred"
struct det_store_timer {
    uint16_t timer, event;
    uint64_t visit; /* in which it was armed */
    det_time due;
    const void *value; /* the event struct; NULL: its payload is all zero */
    bool is_foreign;   /* written by load: it is another node's, which fires it */
    bool is_dead;      /* a dead letter: never due */
    uint32_t attempts; /* that failed */
    int last_error;
    const char *reason; /* what the last attempt said, as in det_store_effect; NULL: nothing */
    det_time next;      /* when it is fired; SET: 0 is `due` */
};

/* An effect that has not ended; (sequence, index) names it within the instance. */
#define DET_ORIGIN_SIZE 17
struct det_store_effect {
    uint64_t sequence;
    uint16_t index, effect;
    uint16_t from, to;
    uint64_t visit; /* that was left, or stayed in */
    uint64_t asked; /* the visit afterwards: the one that asked for it */
    det_time at;    /* of the commit that asked for it */
    uint32_t attempts;
    int last_error;
    const char
        *reason;   /* what the last attempt said of that, UTF-8 of at most DET_REASON_MAX bytes,
                           for people: without memory for it a driver leaves it out; NULL:
                           nothing */
    det_time next; /* of the next attempt */
    bool is_dead;
    const void *data, *event;              /* as of its commit */
    const struct det_trace_context *trace; /* of the event that asked for it; NULL: none */
    bool is_foreign; /* written by load: it is another node's, which runs it */
    /* The store that its key names, 16 hexadecimal digits, if it was imported from another one; "":
     * this store. */
    char origin[DET_ORIGIN_SIZE];
};

struct det_store_deferred {
    uint64_t sequence; /* at which it was deferred */
    const void *event;
};

enum det_store_change_kind {
    DET_STORE_SET,    /* there from now on, just so (an effect also dead), and ours, in place of the
                         one with the same name, whoever's that was, dead or alive */
    DET_STORE_CLEAR,  /* gone; harmless when it is not there */
    DET_STORE_TAKE,   /* gone; but it must be there, just so (timer: same due and visit), and ours,
                         else the commit fails with DET_ERR_NOT_FOUND: somebody else has done it, or
                         has it now. A timer whose `next` has not come by the store's clock:
                         DET_ERR_EARLY; a dead one is not there */
    DET_STORE_UPDATE, /* effects and timers: attempts, last_error, reason, next, is_dead as given;
                         must be there (timer: same due and visit), dead or alive, and ours if
                         alive. So one that is dead can be made alive again, and ours */
};

struct det_store_timer_change {
    enum det_store_change_kind kind; /* SET, CLEAR, TAKE, UPDATE */
    struct det_store_timer timer;    /* CLEAR: only `timer` counts; `event` and `value` for SET */
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
    uint64_t expected; /* the sequence it must stand at, when there are events or a snapshot is
                          taken */
    const struct det_store_head *head; /* afterwards */
    const char *reason;                /* of a stop; NULL: none, or unchanged */
    const void *data;                  /* afterwards; NULL: unchanged; never when it is new */
    const struct det_store_event *events;
    size_t event_count; /* 0: the sequence is not moved, and checked for a snapshot only */
    const struct det_store_timer_change *timers;
    size_t timer_count;
    const struct det_store_effect_change *effects;
    size_t effect_count;
    const struct det_store_deferred_change *deferred;
    size_t deferred_count;
    const char *event_id; /* to be remembered with `answer`; NULL: none */
    struct det_store_answer answer;
    uint64_t fence;          /* of the lock this is written under; 0: none */
    const uint16_t *history; /* previous states, most recent first */
    size_t history_count;
    bool is_new;           /* DET_ERR_EXISTS when there is one */
    bool is_start_unknown; /* a new one, but head and data are not what it began with. Else, when
                              its sequence is 0, they are kept as that as long as its first event
                              is */
    bool is_snapshot;      /* the head afterwards becomes the snapshot; `history` is its history */
    /* The driver's. What the result says about the instance:
     *   0                     it is durable
     *   DET_ERR_CONFLICT      it stood at `actual`; nothing happened
     *   DET_ERR_LOCKED        somebody else holds its lock, and `fence` is 0; nothing happened
     *   DET_ERR_LOCK_LOST     `fence` is not the last grant, or that was released or has lapsed, so
     *                         that others may have written meanwhile; nothing happened
     *   DET_ERR_EARLY         a timer to be taken is not due; nothing happened
     *   DET_ERR_EXISTS        it is not new, or the event id is known; nothing happened
     *   DET_ERR_NOT_FOUND     something to take or update was not there; nothing happened
     *   DET_ERR_NO_MEMORY, DET_ERR_LIMIT, DET_ERR_NO_SPACE, DET_ERR_READ_ONLY, DET_ERR_INVALID,
     *   DET_ERR_CLOSED (`cancel`)
     *                         nothing happened
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
    uint64_t sequence;
    det_time started_at, moved_at;
};

/* Which instances to list, in the order of their ids. Zero values: all. */
struct det_store_query {
    const char *after; /* only ids behind this one; NULL: from the first */
    size_t limit;      /* 0: all */
    bool has_state;    /* only those in `state` */
    uint16_t state;
    det_time moved_before; /* only those that have not moved since; 0: any */
    enum det_store_stopped { DET_STORE_ANY, DET_STORE_RUNNING, DET_STORE_STOPPED } stopped;
    bool has_dead; /* only those with dead effects or timers; a driver that cannot tell lists others
                       too */
    bool is_locked; /* only those whose lock somebody holds; the same */
    bool ids_only;  /* the state is not told, and so one that no definition knows ends no list */
};

/* An instance that has something to be done: a timer that is due, or an effect whose next attempt
 * is. One instance may be listed several times. */
struct det_store_due {
    const char *id;
    det_time due;
    bool is_timer;
};

/* What of that to list. Zero values of the last two: from the first, of either kind. */
struct det_store_due_query {
    det_time before; /* only what is due then or earlier */
    size_t limit;    /* at most so many */
    det_time from;   /* only what is due then or later; 0: any */
    enum det_store_due_kind { DET_DUE_ANY, DET_DUE_TIMERS, DET_DUE_EFFECTS } kind;
};

/* What an instance began with. */
struct det_store_start {
    det_time at;
    uint32_t version; /* of the definition that began it */
    uint16_t state;
    void *data; /* the caller's, of the size of the machine's data record */
};

/* A snapshot. What it has in common with a load is in `loaded`, whose handle is not set. */
struct det_store_snapshot {
    struct det_store_loaded loaded;
    det_time taken_at;
};

/* A lease, or the lock of an instance. */
enum det_store_lease_verb {
    DET_LEASE_ACQUIRE, /* when it is free or has lapsed: a new token, one above the last one */
    DET_LEASE_RENEW,   /* when `token` is the last one and it has not lapsed: a new end */
    DET_LEASE_RELEASE, /* when `token` is the last one and it was not released before, lapsed or
                          not: free */
    DET_LEASE_LOOK,    /* changes nothing */
};
struct det_store_lease {
    uint64_t token;                /* of the last grant; 0: never granted */
    char owner[DET_OWNER_MAX + 1]; /* "" when it is free or has lapsed */
    det_time expires_at;           /* by the store's clock */
    uint64_t sequence;             /* of the instance, for its lock */
};
struct det_store_lease_change {
    enum det_store_lease_verb verb;
    const char *name; /* of the lease, or the id of the instance; leases: 1 to DET_ID_MAX bytes */
    const char *owner;
    uint64_t token; /* RENEW, RELEASE */
    det_time span;  /* ACQUIRE, RENEW: from now by the store's clock */
};

/* What a check of the whole store found. */
struct det_store_finding {
    const char *machine, *id; /* NULL: not about one instance */
    uint64_t sequence;        /* 0: not about one event */
    const char *text;         /* a sentence */
};

/* Where load puts the rows; NULL: nobody wants them, and they are only checked. A non-zero answer
 * ends the load and is returned. None of these may call the store. */
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
    /* Other processes may write to it too. */
    bool is_shared;
    /* `events` may be asked while others write to the instance, through a handle of its own from
     * `load`: who reads a long history keeps nobody waiting. */
    bool has_free_events;
    void (*close)(struct det_store *store);
    /* The store's clock. */
    det_time (*now)(struct det_store *store);
    /* Before the first operation on a machine: makes room for it, keeps its definition, and answers
     * whether what is stored fits this one (DET_ERR_VERSION): every state that an instance is in,
     * every event of a timer and every effect that has not ended must be in it. The machine stays
     * until the store's runtime is closed. Again with the same machine is fine. */
    int (*serve)(
        struct det_store *store, const struct det_machine *machine, struct det_error *reterr);
    /* The one way in. Returns 0 (look at each result), or an error that is every one's result. */
    int (*commit)(struct det_store *store, struct det_store_commit *const *commits, size_t count);
    /* DET_ERR_NOT_FOUND when there is none. After an error nothing is held. DET_ERR_CORRUPT when a
     * checksum is wrong; DET_ERR_VERSION when it was written by a definition with names that this
     * one does not have. Others are not affected. */
    int (*load)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        const struct det_store_rows *rows, struct det_store_loaded *ret);
    /* The handle is no longer used. An instance that is loaded again may have the same handle;
     * otherwise the older one is released. */
    void (*release)(struct det_store *store, struct det_store_instance *instance);
    /* The first answer to an event id; DET_ERR_NOT_FOUND; DET_ERR_VERSION when it has a name of a
     * state or an outcome that is not known. */
    int (*answer)(
        struct det_store *store, struct det_store_instance *instance, const char *event_id,
        struct det_store_answer *ret);
    /* The events after `after` that are still kept, oldest first; a non-zero answer of `visit` ends
     * the walk and is returned. It is not one moment that is shown, here and in `list`: what is
     * committed or deleted during the walk may be in it or not, all else is, once. `visit` may call
     * the store, about other instances: nothing is held while it runs. */
    int (*events)(
        struct det_store *store, struct det_store_instance *instance, uint64_t after,
        int (*visit)(void *context, const struct det_store_event *row), void *context);
    /* Instances of a machine, in the order of their ids. `visit` may call the store. */
    int (*list)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_query *query,
        int (*visit)(void *context, const struct det_store_listed *row), void *context);
    /* What is due, of this node (of all nodes, where the store was opened for reading): timers and
     * effects that are not dead, by their time.
     * `ret_next` is the time of the first one wanted that was not listed, whether due or not;
     * DET_NEVER: there is none. Rows that a commit under way is about to change may or may not be
     * listed. `visit` may call the store: what is listed is held in memory. */
    int (*due)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_due_query *query,
        int (*visit)(void *context, const struct det_store_due *row), void *context,
        det_time *ret_next);
    /* Shared stores: makes this node the owner of at most `limit` timers and effects, the first due
     * first, whose owners' leases have lapsed or are gone; `ret` is how many. Of one machine. NULL
     * where the store is not shared. */
    int (*adopt)(
        struct det_store *store, const struct det_machine *machine, size_t limit, size_t *ret);
    /* Shared stores: how many nodes there are besides this one whose leases have not lapsed. NULL
     * where the store is not shared. */
    int (*nodes)(struct det_store *store, uint64_t *ret);
    /* Leases by name. DET_ERR_LOCKED and who has it; DET_ERR_LOCK_LOST when the token is an older
     * one, when what is to be renewed has lapsed, or what is to be released was. `ret` is as it
     * stands afterwards, also with these errors. Where the store is shared, the lease "node/" and
     * `owner` of a node that is gone may be forgotten, with its token; else opening frees them. */
    int (*lease)(
        struct det_store *store, const struct det_store_lease_change *change,
        struct det_store_lease *ret);
    /* The same for the lock of an instance; DET_ERR_NOT_FOUND when there is no such instance. */
    int (*lock)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_lease_change *change, struct det_store_lease *ret);
    /* The snapshot of an instance; DET_ERR_NOT_FOUND, or DET_ERR_CORRUPT. */
    int (*snapshot)(
        struct det_store *store, struct det_store_instance *instance,
        struct det_store_snapshot *ret);
    /* What it began with. DET_ERR_NOT_FOUND where that is not known, or its first event is not kept
     * any more; DET_ERR_CORRUPT, DET_ERR_VERSION. */
    int (*start)(
        struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret);
    /* Deletes the events up to `sequence`, but none behind the snapshot, and never the head; with
     * the first one what the instance began with; and answers older than `answers_before`. `ret` is
     * how many events. */
    int (*prune)(
        struct det_store *store, struct det_store_instance *instance, uint64_t sequence,
        det_time answers_before, uint64_t *ret);
    /* Shared stores: waits for a place in the queue of this instance, which those of all processes
     * enter whose commits met others, and returns when it is in front of it. It keeps nobody from
     * committing. An error: there is none. NULL: the store has no queues. */
    int (*queue)(
        struct det_store *store, struct det_store_instance *instance, struct det_store_place **ret);
    void (*leave_queue)(struct det_store *store, struct det_store_place *place);
    /* Called, on any thread, when somebody else has changed something that may be due for this
     * node sooner than it thinks, or has given up a lock or a lease. `wake` NULL: not any more, and
     * none is under way when this returns. NULL where the store is not shared. */
    void (*listen)(struct det_store *store, void (*wake)(void *context), void *context);
    /* Whether the store has failed permanently and must be opened again. From any thread. NULL:
     * that does not happen. */
    bool (*is_lost)(struct det_store *store);
    /* Whether it could not be reached the last time, and why; it is tried again all the while. The
     * text is written only then. From any thread. NULL: that does not happen. */
    bool (*is_away)(struct det_store *store, char *ret_text, size_t size);
    /* det_store_cancel(); `at` is monotonic. NULL: no call waits for anything outside. */
    void (*cancel)(struct det_store *store, det_time at);
    /* The rest is for keeping a store. NULL: DET_ERR_UNSUPPORTED. */
    /* The file or database itself, the chain of every instance, every checksum, and that what
     * belongs together is there. Each finding is reported; `progress` (NULL: not wanted) is called
     * with how many of how many instances have been looked at. Neither may call the store. */
    int (*check)(
        struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
        void (*progress)(void *context, uint64_t done, uint64_t total), void *context);
    /* Every machine that has instances or a definition in it, with its newest spec. `visit` may
     * call the store. */
    int (*machines)(
        struct det_store *store,
        int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
        void *context);
    /* det_store_log(). The query is never NULL. */
    int (*log)(
        struct det_store *store, const struct det_store_log_query *query,
        int (*visit)(void *context, const struct det_store_logged *row), void *context,
        uint64_t *ret_next);
    /* det_store_count(). */
    int (*count)(
        struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
        void *context, uint64_t *ret_bytes);
    /* Makes `machine` the definition of what is stored under its name, which nobody serves, in one
     * transaction: what has an old name gets the new one (states of instances, snapshots and
     * answers; timers; effects that have not ended, and dead ones; deferred events), all at once,
     * so names may be exchanged; then everything must fit, as in `serve`, or nothing happened
     * (DET_ERR_VERSION). Recorded events are what was, and stay; but the store remembers the
     * renames, and gives out under the new names what it finds under the old ones. `ret` is how
     * many rows changed. */
    int (*migrate)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_rename *renames, size_t count, uint64_t *ret, struct det_error *reterr);
    /* Writes the head of an instance anew, whose checksum is wrong, so that `load` answers
     * DET_ERR_CORRUPT. `derive` says what it should be: it has a handle for `snapshot` and
     * `events`, and fills `loaded`, whose data are its own memory and whose reason is that of the
     * row. It is written only if it is what the head was: what the checksum of the row is of, or
     * what the row has but for its checksum. Otherwise DET_ERR_CORRUPT, and nothing is changed;
     * DET_ERR_EXISTS when the checksum is right; DET_ERR_READ_ONLY when it would be written, and
     * the store is open for reading only. */
    int (*repair)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        int (*derive)(
            void *context, struct det_store_instance *instance, struct det_store_loaded *loaded),
        void *context);
    /* Whether the store, open for reading, has less than it had acknowledged: 0, or DET_ERR_CORRUPT
     * with the sentence that opening it for writing is refused with. It is known since it was
     * opened. NULL: not supported. */
    int (*check_loss)(struct det_store *store, struct det_error *reterr);
    /* A consistent copy into a file that does not exist yet. A store that has lost something is not
     * copied (DET_ERR_CORRUPT), unless it was opened with `accepts_loss`. */
    int (*backup)(struct det_store *store, const char *path, struct det_error *reterr);
    /* Gives back what is not used to the file system. */
    int (*compact)(struct det_store *store, struct det_error *reterr);
    /* Submissions that outlive the process, driver/jobs.h; NULL: not supported. */
    const struct det_job_ops *jobs;
    /* What workers are and were, driver/documents.h; NULL: not supported. */
    const struct det_document_ops *documents;
};

/* The first member of every driver's store. */
struct det_store {
    const struct det_store_ops *ops;
    struct det_world *world;               /* never NULL */
    const struct det_allocator *allocator; /* NULL: the default one */
    bool is_used;                          /* the runtime's: one at a time */
    /* The runtime's, while it uses the store; NULL: none. */
    det_upcast_fn *upcast;
    void *upcast_user;
    det_time event_ids_span; /* answers that are older may be forgotten; 0: none by their age */
    char identity
        [33]; /* 32 hexadecimal digits: which store this is; of one in memory, new each time */
    char owner[33];   /* which node this opening is, new each time; "" where it is not shared */
    unsigned schema;  /* of its tables; 0: it has none */
    unsigned writers; /* so many commits can be on their way at once; 0: one */
    /* What to change outside the store so that all damage is found: a sentence with the remedy, set
     * while it is opened; NULL: nothing. */
    const char *advice;
};

/* Changes when a table of functions of this header, driver/jobs.h or driver/documents.h does. */
#define DET_STORE_DRIVER_VERSION 1

/* A line in src/store/drivers.def names one of these. Opening a store whose driver was built for
 * another version is refused: DET_ERR_VERSION. */
struct det_store_driver {
    unsigned version;    /* DET_STORE_DRIVER_VERSION */
    const char *scheme;  /* "memory" of "memory:" */
    const char *summary; /* for help */
    /* `rest` is the URL behind the colon; the options have their world set. */
    int (*open)(
        const char *rest, const struct det_store_options *options, struct det_store **ret,
        struct det_error *reterr);
    /* What can be told of `rest` without opening anything: 0 or DET_ERR_INVALID. May be NULL. */
    int (*check)(const char *rest, struct det_error *reterr);
};

DET_END
#endif
