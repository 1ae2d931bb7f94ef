/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/store.h - operations of a store, for authors of a driver; others include store.h.
 * docs/formats/sql_schema.md describes the tables of the SQL stores.
 *
 * A store keeps, per instance: a head (state, sequence, visit, ...), the data, the start, the
 * events, the event ids with their first answers, armed timers, effects that have not ended, dead
 * effects, deferred events, a snapshot, and a lock with the number of its last grant, the fence.
 * Apart from instances it keeps leases by name.
 *
 *     commit: { fence? expected sequence? } -> events, head, data, timers, effects, deferred,
 *               event id, snapshot: all of it, or nothing; durable when it returns 0
 *
 * Rules
 *   1. One commit holds everything that one send implies. Inside the commit the driver checks the
 *      expected sequence, the event id, and that each timer or effect to take is still there.
 *   2. The runtime has at most one operation on an instance under way, except for `lock`, which may
 *      be called at any time: a lock is renewed while its holder sends. Operations on different
 *      instances, and `list`, may be called on any thread at any time.
 *   3. Values are structs of the machine's records, borrowed for the call. A driver that writes
 *      bytes encodes them with det_record_encode(), and writes names and versions, never ids. On
 *      reading, it passes values of older record versions to `upcast`.
 *   4. Times are by the store's clock, `now`, and are data: a driver returns what it was given. The
 *      clock of a shared store is that of its server, which decides whether a lock or lease has
 *      lapsed and whether a timer is due.
 *   5. The commits of one call are independent: each has its own result. They are passed together
 *      so that a driver can make them durable together. A driver that waits for a disk also
 *      combines the calls of several threads (src/store/group_commit.h).
 *   6. A shared store has other writers: everything that was read may have changed since. Timers
 *      and effects that a commit sets belong to this node, which is the opened store. `due` lists
 *      what belongs to this node, and a commit can take only that. `load` returns the rows of all
 *      nodes and marks those of others; any node may clear or replace them.
 *   7. Once a driver does not know whether a write reached the disk, it never acknowledges a commit
 *      again: every further commit of this opening fails with DET_ERR_IO.
 *   8. A store opened for reading answers every change with DET_ERR_READ_ONLY. */
#ifndef DETENT_DRIVER_STORE_H
#define DETENT_DRIVER_STORE_H

#include <detent/driver/documents.h>
#include <detent/driver/jobs.h>
#include <detent/machine.h>
#include <detent/store.h>
#include <detent/tool/store.h>

DET_BEGIN

/* The driver's handle of an instance; may point to anything or be NULL. */
struct det_store_instance;

/* Private to the driver: a place in the queue of an instance. */
struct det_store_place;

/* The fields of an instance that change with nearly every event. */
struct det_store_head {
    uint64_t sequence; /* of the last event; 0: no event yet */
    uint64_t visit;
    uint64_t transition_count;
    det_time started_at, last_transition_at;
    uint16_t state;
    bool is_stopped;
};

/* A recorded event. */
struct det_store_event {
    uint64_t sequence, visit;          /* visit: after the event */
    uint16_t from, to, event, outcome; /* event UINT16_MAX: a cancel */
    uint16_t choice; /* number of the chosen alternative; 0: the first, or there is no choice */
    bool is_timeout;
    det_time at;
    const char *event_id; /* NULL: none */
    const char *cause;    /* key of the effect that produced the event; NULL: none */
    const void *value;    /* the event struct; NULL for a cancel */
    /* Trace context of the sender; NULL: none. No hash covers it, and the memory store does not
     * keep it. */
    const struct det_trace_context *trace;
};

/* The first answer to an event id, returned for as long as the store remembers the id. */
struct det_store_answer {
    uint16_t outcome, state;
    uint64_t sequence, visit;
    uint64_t request; /* hash of the event with this id and its payload; 0: unknown, as is
                       * `event` */
    uint16_t event;   /* UINT16_MAX: none, or the name is no longer in the definition */
};

/* An armed timer. Two timers have no number in the definition. DET_STATE_TIMER is the unnamed
 * timer of the state. DET_DEFERRED_TIMER is armed while a deferred event waits although the
 * state accepts it; its `visit` is the sequence at which that event was deferred, and stores
 * call it by its name. */
#define DET_STATE_TIMER         UINT16_MAX
#define DET_DEFERRED_TIMER      (UINT16_MAX - 1)
#define DET_DEFERRED_TIMER_NAME "@deferred"
struct det_store_timer {
    uint16_t timer, event;
    uint64_t visit; /* the visit in which it was armed */
    det_time due;
    const void *value; /* the event struct; NULL: its payload is all zero */
    bool is_foreign;   /* set by load: the timer belongs to another node */
    bool is_dead;      /* a dead letter: never due */
    uint32_t attempts; /* number of failed attempts */
    int last_error;
    const char *reason; /* reason of the last failure, as in det_store_effect; NULL: none */
    det_time next;      /* when it fires; SET: 0 means `due` */
};

/* An effect that has not ended; (sequence, index) identifies it within the instance. */
#define DET_ORIGIN_SIZE 17
struct det_store_effect {
    uint64_t sequence;
    uint16_t index, effect;
    uint16_t from, to;
    uint64_t visit; /* the visit that the transition left or stayed in */
    uint64_t asked; /* the visit after the transition that requested the effect */
    det_time at;    /* time of that commit */
    uint32_t attempts;
    int last_error;
    const char
        *reason;   /* why the last attempt failed, for people: UTF-8, at most DET_REASON_MAX bytes;
                    * a driver without memory omits it; NULL: none */
    det_time next; /* time of the next attempt */
    bool is_dead;
    const void *data, *event;              /* at the time of the commit */
    const struct det_trace_context *trace; /* trace context of the event that requested the effect;
                                            * NULL: none */
    bool is_foreign;                       /* set by load: the effect belongs to another node */
    /* Identity of the store in the effect's key, 16 hexadecimal digits, if the effect was imported;
     * "": this store. */
    char origin[DET_ORIGIN_SIZE];
};

struct det_store_deferred {
    uint64_t sequence; /* sequence at which the event was deferred */
    const void *event;
};

enum det_store_change_kind {
    DET_STORE_SET,    /* store the row as given (an effect may be dead), owned by this node,
                       * replacing a row with the same name, whatever its owner, dead or alive */
    DET_STORE_CLEAR,  /* delete the row; a missing row is no error */
    DET_STORE_TAKE,   /* delete the row, which must exist as given (timer: same due and visit) and
                       * belong to this node. Else the commit fails with DET_ERR_NOT_FOUND: another
                       * node has done or now owns it. DET_ERR_EARLY: the `next` of a timer has not
                       * come by the store's clock. A dead timer counts as missing */
    DET_STORE_UPDATE, /* effects and timers: store attempts, last_error, reason, next and is_dead as
                       * given. The row must exist (timer: same due and visit), dead or alive, and
                       * belong to this node if alive. This can revive a dead row, which then
                       * belongs to this node */
};

struct det_store_timer_change {
    enum det_store_change_kind kind; /* SET, CLEAR, TAKE, UPDATE */
    struct det_store_timer timer;    /* CLEAR: only `timer` is used; SET: `event` and `value`,
                                      * too */
};
struct det_store_effect_change {
    enum det_store_change_kind kind; /* SET, TAKE, UPDATE */
    struct det_store_effect effect;  /* data and event are used by SET only */
};
struct det_store_deferred_change {
    enum det_store_change_kind kind; /* SET, TAKE */
    struct det_store_deferred deferred;
};

/* Everything that one send implies. Changes are applied in the given order. */
struct det_store_commit {
    const struct det_machine *machine;
    const char *id;
    struct det_store_instance *instance; /* written if the instance is new */
    uint64_t expected; /* the required sequence, if there are events or a snapshot */
    const struct det_store_head *head; /* after the commit */
    const char *reason;                /* reason of a stop; NULL: none, or unchanged */
    const void *data;                  /* after the commit; NULL: unchanged; never NULL if the
                                        * instance is new */
    const struct det_store_event *events;
    size_t event_count; /* 0: the sequence does not change, and is checked for a snapshot only */
    const struct det_store_timer_change *timers;
    size_t timer_count;
    const struct det_store_effect_change *effects;
    size_t effect_count;
    const struct det_store_deferred_change *deferred;
    size_t deferred_count;
    const char *event_id; /* stored with `answer`; NULL: none */
    struct det_store_answer answer;
    uint64_t fence;          /* fence of the lock held by the sender; 0: none */
    const uint16_t *history; /* previous states, most recent first */
    size_t history_count;
    bool is_new;           /* DET_ERR_EXISTS if the instance exists */
    bool is_start_unknown; /* The instance is new, but head and data are not its start. If false and
                            * the sequence is 0, they are kept as its start as long as its first
                            * event is. */
    bool is_snapshot;      /* the head after the commit becomes the snapshot; `history` is its
                            * history */
    /* Set by the driver. What the result says about the instance:
     *   0                     the commit is durable
     *   DET_ERR_CONFLICT      the sequence was `actual`; nothing was changed
     *   DET_ERR_LOCKED        another holder has the lock, and `fence` is 0; nothing was changed
     *   DET_ERR_LOCK_LOST     `fence` is not the last grant, or that grant was released or
     *                         has lapsed, so others may have written since; nothing was changed
     *   DET_ERR_EARLY         a timer to take is not due; nothing was changed
     *   DET_ERR_EXISTS        the instance or the event id exists; nothing was changed
     *   DET_ERR_NOT_FOUND     a row to take or update does not exist; nothing was changed
     *   DET_ERR_NO_MEMORY, DET_ERR_LIMIT, DET_ERR_NO_SPACE, DET_ERR_READ_ONLY, DET_ERR_INVALID,
     *   DET_ERR_CLOSED (`cancel`)
     *                         nothing was changed
     *   any other             unknown: the commit may have happened. The runtime loads the
     *                         instance again */
    int result;
    uint64_t actual;
    const void *next; /* memory that the next commit on the instance will write, for the runtime to
                       * prefetch; NULL: unknown */
};

/* An instance as loaded. */
struct det_store_loaded {
    struct det_store_instance *instance;
    struct det_store_head head;
    uint16_t history[DET_HISTORY_MAX]; /* previous states, most recent first */
    size_t history_count;
    char reason[DET_REASON_MAX + 1];
    void *data; /* owned by the caller, of the size of the machine's data record */
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
    const char *after; /* only ids after this one; NULL: from the first */
    size_t limit;      /* 0: all */
    bool has_state;    /* only those in `state` */
    uint16_t state;
    det_time moved_before; /* only instances without a commit since; 0: any */
    enum det_store_stopped { DET_STORE_ANY, DET_STORE_RUNNING, DET_STORE_STOPPED } stopped;
    bool has_dead;  /* only instances with dead effects or timers; a driver that cannot select by
                    * this lists others too */
    bool is_locked; /* only instances whose lock is held; a driver may list others too */
    bool ids_only;  /* omit the state, so that a state without a definition does not end the list */
};

/* An instance with due work: a timer, or the next attempt of an effect. One instance may be listed
 * several times. */
struct det_store_due {
    const char *id;
    det_time due;
    bool is_timer;
};

/* Selects due work. Zero values of the last two: from the first, of either kind. */
struct det_store_due_query {
    det_time before; /* only work that is due at this time or earlier */
    size_t limit;    /* at most this many */
    det_time from;   /* only work that is due at this time or later; 0: any */
    enum det_store_due_kind { DET_DUE_ANY, DET_DUE_TIMERS, DET_DUE_EFFECTS } kind;
};

/* The start of an instance: its first state and data. */
struct det_store_start {
    det_time at;
    uint32_t version; /* version of the definition at the start */
    uint16_t state;
    void *data; /* owned by the caller, of the size of the machine's data record */
};

/* A snapshot. `loaded` holds the fields shared with a load; its handle is not set. */
struct det_store_snapshot {
    struct det_store_loaded loaded;
    det_time taken_at;
};

/* Operations on a lease or on the lock of an instance. */
enum det_store_lease_verb {
    DET_LEASE_ACQUIRE, /* grants a lease that is free or has lapsed: the fence is one above the last
                        * one */
    DET_LEASE_RENEW,   /* requires the last fence and a lease that has not lapsed: sets a new end */
    DET_LEASE_RELEASE, /* requires the last fence, not released before, lapsed or not: frees the
                        * lease */
    DET_LEASE_READ,    /* changes nothing */
};
struct det_store_lease {
    uint64_t token;                /* the fence: number of the last grant; 0: never granted */
    char owner[DET_OWNER_MAX + 1]; /* "" if the lease is free or has lapsed */
    det_time expires_at;           /* by the store's clock */
    uint64_t sequence;             /* sequence of the instance, for its lock */
};
struct det_store_lease_change {
    enum det_store_lease_verb verb;
    const char *name; /* name of the lease, or id of the instance; leases: 1 to DET_ID_MAX bytes */
    const char *owner;
    uint64_t token; /* RENEW, RELEASE */
    det_time span;  /* ACQUIRE, RENEW: from now by the store's clock */
};

/* A finding of a check of the whole store. */
struct det_store_finding {
    const char *machine, *id; /* NULL: not about one instance */
    uint64_t sequence;        /* 0: not about one event */
    const char *text;         /* one sentence */
};

/* Receives the rows of a load; NULL: rows are only checked. A non-zero return value ends the load
 * and is returned. The callbacks must not call the store. */
struct det_store_rows {
    void *context;
    int (*timer)(void *context, const struct det_store_timer *row);
    int (*effect)(void *context, const struct det_store_effect *row);     /* oldest first */
    int (*deferred)(void *context, const struct det_store_deferred *row); /* oldest first */
};

struct det_store;

struct det_store_ops {
    /* True if a commit and an answer take at most a microsecond and never block, so that they may
     * be made under a lock. */
    bool is_quick;
    /* Other processes may write to the store. */
    bool is_shared;
    /* `events` may run while others write to the instance, through its own handle from `load`:
     * reading a long history blocks no writer. */
    bool has_free_events;
    void (*close)(struct det_store *store);
    /* The clock of the store. */
    det_time (*now)(struct det_store *store);
    /* Called before the first operation on a machine: creates its tables, stores its definition,
     * and checks that the stored instances fit it (DET_ERR_VERSION): every state of an instance,
     * every event of a timer and every effect that has not ended must be in the definition. The
     * machine stays until the store's runtime is closed. Repeating the call with the same machine
     * has no effect. */
    int (*serve)(
        struct det_store *store, const struct det_machine *machine, struct det_error *reterr);
    /* The only way to write instances. Returns 0 (see each result), or an error that is the result
     * of every commit. */
    int (*commit)(struct det_store *store, struct det_store_commit *const *commits, size_t count);
    /* DET_ERR_NOT_FOUND: no such instance. After an error no handle is held. DET_ERR_CORRUPT: a
     * checksum is wrong; DET_ERR_VERSION: a definition with other names wrote the instance. Other
     * instances are not affected. A dead timer or effect with a name that is not in the definition,
     * which `serve` does not check, stays in the store and is not passed on. */
    int (*load)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        const struct det_store_rows *rows, struct det_store_loaded *ret);
    /* Releases a handle. A second load of an instance may return the same handle; otherwise the
     * runtime releases the older one. */
    void (*release)(struct det_store *store, struct det_store_instance *instance);
    /* Reads the first answer to an event id; DET_ERR_NOT_FOUND; DET_ERR_VERSION: the answer names
     * an unknown state or outcome. */
    int (*answer)(
        struct det_store *store, struct det_store_instance *instance, const char *event_id,
        struct det_store_answer *ret);
    /* Visits the kept events after `after`, oldest first; a non-zero return value of `visit` ends
     * the walk and is returned. Neither this nor `list` is a snapshot: events committed or deleted
     * during the walk may be missing; all others are visited once. `visit` may call the store about
     * other instances: no lock is held while it runs. DET_ERR_VERSION: an event names an unknown
     * state, event or outcome. */
    int (*events)(
        struct det_store *store, struct det_store_instance *instance, uint64_t after,
        int (*visit)(void *context, const struct det_store_event *row), void *context);
    /* Lists instances of a machine by id. `visit` may call the store. */
    int (*list)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_query *query,
        int (*visit)(void *context, const struct det_store_listed *row), void *context);
    /* Lists due work of this node (of all nodes if the store was opened for reading): timers and
     * effects that are not dead, by their time. `ret_next` is the time of the first selected row
     * that was not listed, due or not; DET_NEVER: none. Rows of a commit under way may be missing.
     * `visit` may call the store: the list is held in memory. */
    int (*due)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_due_query *query,
        int (*visit)(void *context, const struct det_store_due *row), void *context,
        det_time *ret_next);
    /* Shared stores: makes this node the owner of at most `limit` timers and effects of one
     * machine, earliest first, whose owners' leases have lapsed or are gone; `ret` is their number.
     * NULL if the store is not shared. */
    int (*adopt)(
        struct det_store *store, const struct det_machine *machine, size_t limit, size_t *ret);
    /* Shared stores: the number of other nodes whose leases have not lapsed. NULL if the store is
     * not shared. */
    int (*nodes)(struct det_store *store, uint64_t *ret);
    /* Operates on a lease by name. DET_ERR_LOCKED with the holder; DET_ERR_LOCK_LOST: the fence is
     * not the last one, the lease to renew has lapsed, or the lease to release was released. `ret`
     * is the lease afterwards, even with these errors. A shared store may forget the lease "node/"
     * and `owner` of a dead node with its fence; other stores free these leases when they are
     * opened. */
    int (*lease)(
        struct det_store *store, const struct det_store_lease_change *change,
        struct det_store_lease *ret);
    /* Like `lease`, for the lock of an instance; DET_ERR_NOT_FOUND: no such instance. */
    int (*lock)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_store_lease_change *change, struct det_store_lease *ret);
    /* Reads the snapshot of an instance; DET_ERR_NOT_FOUND or DET_ERR_CORRUPT. */
    int (*snapshot)(
        struct det_store *store, struct det_store_instance *instance,
        struct det_store_snapshot *ret);
    /* Reads the start of an instance. DET_ERR_NOT_FOUND: unknown, or its first event is no longer
     * kept; DET_ERR_CORRUPT, DET_ERR_VERSION. */
    int (*start)(
        struct det_store *store, struct det_store_instance *instance, struct det_store_start *ret);
    /* Deletes the events up to `sequence`, but none after the snapshot, and never the head; with
     * the first event also the start; and answers older than `answers_before`. `ret` is the number
     * of deleted events. */
    int (*prune)(
        struct det_store *store, struct det_store_instance *instance, uint64_t sequence,
        det_time answers_before, uint64_t *ret);
    /* Shared stores: waits for the turn of this node in the queue of an instance. Senders of all
     * processes enter the queue after a conflict; it does not block commits. After an error the
     * node has no place. NULL: the store has no queues. */
    int (*queue)(
        struct det_store *store, struct det_store_instance *instance, struct det_store_place **ret);
    void (*leave_queue)(struct det_store *store, struct det_store_place *place);
    /* Sets a callback for changes by other processes: work of this node is due earlier than
     * expected, or a lock or lease was released. Any thread may call `wake`. `wake` NULL: removes
     * it; no call is under way when this returns. NULL if the store is not shared. */
    void (*listen)(struct det_store *store, void (*wake)(void *context), void *context);
    /* True if the store has failed permanently and must be opened again. Any thread. NULL: never
     * happens. */
    bool (*is_lost)(struct det_store *store);
    /* True if the last call could not reach the store, with the reason in the text; the store keeps
     * trying. The text is written only if this returns true. Any thread. NULL: never happens. */
    bool (*is_unreachable)(struct det_store *store, char *ret_text, size_t size);
    /* Implements det_store_cancel(); `at` is monotonic. NULL: no call of this store waits for a
     * server. */
    void (*cancel)(struct det_store *store, det_time at);
    /* Maintenance operations. NULL: DET_ERR_UNSUPPORTED. */
    /* Checks the file or database, the chain of every instance, every checksum, and the references
     * between rows. Reports each finding; `progress` (may be NULL) receives the number of checked
     * instances and of all instances. Neither callback may call the store. */
    int (*check)(
        struct det_store *store, int (*visit)(void *context, const struct det_store_finding *row),
        void (*progress)(void *context, uint64_t done, uint64_t total), void *context);
    /* Lists the machines with instances or a definition in the store, each with its newest spec.
     * `visit` may call the store. */
    int (*machines)(
        struct det_store *store,
        int (*visit)(void *context, const char *name, uint32_t version, const char *spec),
        void *context);
    /* Implements det_store_log(). The query is never NULL. */
    int (*log)(
        struct det_store *store, const struct det_store_log_query *query,
        int (*visit)(void *context, const struct det_store_logged *row), void *context,
        uint64_t *ret_next);
    /* Implements det_store_count(). */
    int (*count)(
        struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
        void *context, uint64_t *ret_bytes);
    /* Makes `machine` the definition of everything stored under its name, which no process serves,
     * in one transaction. Old names become new ones, all at once, so names may be exchanged: states
     * of instances, snapshots and answers; timers; effects that have not ended, and dead ones;
     * deferred events. Then everything must fit, as in `serve`, or nothing is changed
     * (DET_ERR_VERSION). Recorded events stay as they are; the store remembers the renames and
     * returns these events under the new names. `ret` is the number of changed rows. */
    int (*migrate)(
        struct det_store *store, const struct det_machine *machine,
        const struct det_rename *renames, size_t count, uint64_t *ret, struct det_error *reterr);
    /* Writes the head of an instance whose checksum is wrong (`load` returns DET_ERR_CORRUPT).
     * `derive` computes the head: it gets a handle for `snapshot` and `events`, and fills `loaded`,
     * whose data it owns and whose reason is that of the row. The head is written only if it is
     * proven to be the original: the checksum of the row matches it, or it equals the row except
     * for the checksum. Otherwise DET_ERR_CORRUPT, and nothing is changed. DET_ERR_EXISTS: the
     * checksum is right; DET_ERR_READ_ONLY: the head could be written, but the store is open for
     * reading only. */
    int (*repair)(
        struct det_store *store, const struct det_machine *machine, const char *id,
        int (*derive)(
            void *context, struct det_store_instance *instance, struct det_store_loaded *loaded),
        void *context);
    /* Checks a store that is open for reading for lost acknowledged commits: 0, or DET_ERR_CORRUPT
     * with the error that opening it for writing returns. The result is known since opening. NULL:
     * not supported. */
    int (*check_loss)(struct det_store *store, struct det_error *reterr);
    /* Makes a consistent copy in a new file. A store that has lost commits is not copied
     * (DET_ERR_CORRUPT), unless it was opened with `accepts_loss`. */
    int (*backup)(struct det_store *store, const char *path, struct det_error *reterr);
    /* Returns unused space to the file system. */
    int (*compact)(struct det_store *store, struct det_error *reterr);
    /* Submissions that outlive the process, see driver/jobs.h; NULL: not supported. */
    const struct det_job_ops *jobs;
    /* Documents of workers, see driver/documents.h; NULL: not supported. */
    const struct det_document_ops *documents;
};

/* The first member of every driver's store. */
struct det_store {
    const struct det_store_ops *ops;
    struct det_world *world;               /* never NULL */
    const struct det_allocator *allocator; /* NULL: the default one */
    bool is_used;                          /* set while a runtime uses the store: one at a time */
    /* Set by the runtime while it uses the store; NULL: none. */
    det_upcast_fn *upcast;
    void *upcast_user;
    det_time event_ids_span; /* answers older than this may be forgotten; 0: age does not count */
    char identity
        [33]; /* identity of the store, 32 hexadecimal digits; a memory store has a new one each
               * time */
    char owner[33];   /* identity of the node, new for each opening; "" if the store is not
                       * shared */
    unsigned schema;  /* version of its tables; 0: no tables */
    unsigned writers; /* number of commits that may be under way at once; 0: one */
    /* Set while opening: a sentence on a setting outside of the store that is needed to detect all
     * damage; NULL: none. */
    const char *advice;
};

/* Changes with the operation tables of this header, driver/jobs.h and driver/documents.h. */
#define DET_STORE_DRIVER_VERSION 1

/* A driver; each is named by a line in src/store/drivers.def. A store whose driver was built for
 * another version cannot be opened: DET_ERR_VERSION. */
struct det_store_driver {
    unsigned version;    /* DET_STORE_DRIVER_VERSION */
    const char *scheme;  /* "memory" of "memory:" */
    const char *summary; /* summary for help texts */
    /* `rest` is the URL after the colon; `options` have their world set. */
    int (*open)(
        const char *rest, const struct det_store_options *options, struct det_store **ret,
        struct det_error *reterr);
    /* Checks `rest` without opening the store: 0 or DET_ERR_INVALID. May be NULL. */
    int (*check)(const char *rest, struct det_error *reterr);
};

DET_END
#endif
