/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime.h - runs instances of machines: send, timers, effects.
 *
 * A runtime serves any number of machines and instances on one store, from any number of threads.
 * One instance has one writer at a time; different instances do not wait for each other. The steps
 * of one send, in order:
 *
 *     id known? running? -> look up -> guard -> hooks: exit(old), transition, entry(new)
 *              -> one commit {event, state, data, sequence, visit, timers, effects, event id}
 *              -> publish -> answer
 *
 * Every step before the commit may refuse; store, memory and timers are then unchanged. A commit
 * cannot be undone. Hooks may thus run more than once for one event (if the commit fails, or the
 * process dies before it): they check and prepare. An action on the outside world is an effect: it
 * runs after the commit, at least once, always with the same key. Transitions happen exactly once;
 * effects at least once.
 *
 *                 start                     stop, or a STOP transition
 *     (nothing) ---------> running in state ---------------------------> stopped(reason)
 *                            |  ^
 *                            +--+ goto, stay
 *
 * User code (guards, hooks, updates) runs on the sender's thread without a lock; effects run on a
 * pool; the runtime's loop sends timers and the products of effects. User code must not send to the
 * instance it runs for (DET_ERR_BUSY); effects may. */
#ifndef DETENT_RUNTIME_H
#define DETENT_RUNTIME_H

#include <detent/loop.h>
#include <detent/machine.h>
#include <detent/store.h>

DET_BEGIN

struct det_runtime;
struct det_lock_options;

/* Number and timing of an effect's attempts. Zero values are the defaults. */
struct det_effect_policy {
    uint32_t attempts_max;   /* 0: 8; then it is a dead letter */
    det_time backoff_first;  /* 0: 100 ms; doubles with each attempt */
    det_time backoff_max;    /* 0: 30 s */
    uint32_t jitter_percent; /* random addition to the backoff; 0: 20; UINT32_MAX: none */
    det_time deadline;       /* time from the commit after which no further attempt is made; 0:
                              * none */
    bool same_visit_only;    /* a product is rejected once the visit that requested the effect has
                              * ended */
};

/* A committed step, reported to the observer. Borrowed for the call. */
struct det_note {
    const struct det_machine *machine;
    const char *instance;
    uint64_t sequence, visit;
    uint16_t from, to, event; /* event: UINT16_MAX for a start or a cancel */
    uint16_t outcome;         /* GOTO, STAY, STOP, DEFERRED, DEAD_LETTER; GOTO for a start */
    bool is_timeout;          /* sent by a timer */
    const char *cause;        /* key of the effect that produced the event; NULL: none */
    uint16_t choice;          /* number of the chosen alternative; 0: the first, or there is no
                               * choice */
    det_time at;              /* wall */
    det_time since;           /* wall time at which `from` was entered; 0: a start, or unknown */
    det_time commit_took;     /* duration of the store call, if there is a meter; else 0 */
    const void *event_value;  /* the event struct; NULL for a start or a cancel */
    const void *data;         /* the data after the commit, which may hold several events */
    const struct det_trace_context *trace; /* trace context of the sender; NULL: none */
    /* For a timer's event that is sent in a recorded trace: trace context of the event that started
     * the visit in which the timer was armed. NULL: none, or unknown to the store. */
    const struct det_trace_context *armed_by;
};

/* Failures in the background; each is reported. If a guard refuses an event of an effect or timer,
 * or the definition names a function that is not bound, the effect or timer becomes a dead letter,
 * which is kept until det_runtime_retry(). If the state does not accept the event, the effect
 * becomes a dead letter and the timer is removed. If a hook fails, a limit is reached, or the store
 * fails, the event is retried like an effect, and each failure is reported; a hook or a limit that
 * fails the last attempt makes it a dead letter. The attempts of a timer are stored and continue
 * after a restart. So are those of a deferred event that the state now accepts: it waits as the
 * timer "@deferred", and later deferred events wait for it. A deferred event that is refused, or
 * whose last attempt failed, is recorded with the outcome DET_OUTCOME_DEAD_LETTER.
 *
 * If the store could not say whether a commit happened, the instance is loaded again, and a commit
 * that did happen is counted and reported. Deferred events that it made dead letters are not
 * reported. While loading fails too, timers and effects that have ended are not counted. */
enum det_incident_kind {
    DET_INCIDENT_EFFECT_FAILED,    /* an attempt failed and will be repeated */
    DET_INCIDENT_EFFECT_DEAD,      /* the effect became a dead letter */
    DET_INCIDENT_PRODUCT_REJECTED, /* the instance rejected the product of an effect; CONFLICT: the
                                    * requesting visit has ended (same_visit_only) */
    DET_INCIDENT_TIMEOUT_REJECTED, /* the instance rejected the event of a timer */
    DET_INCIDENT_EVENT_DEAD,       /* an event became a dead letter: unhandled; or deferred and then
                                  * rejected, or the instance stopped (see the code) */
    DET_INCIDENT_EVENT_FAILED,     /* a deferred event failed by a hook, a limit or the store; it
                                  * stays deferred and is retried */
    DET_INCIDENT_NOT_LOADED,       /* an instance with due work is damaged, or does not fit the
                                  * definition: its work is not done */
    DET_INCIDENT_EFFECTS_QUEUED, /* effects have waited for a thread for a second: all pool_threads
                                  * are in use. Reported once; again only after no effect has
                                  * waited. `machine` and `name` are those of the effect with most
                                  * threads, `instance` is "". `code`: DET_ERR_LIMIT, or
                                  * DET_ERR_NO_MEMORY if the system provides fewer threads */
};

/* Borrowed for the call. */
struct det_incident {
    enum det_incident_kind kind;
    const struct det_machine *machine;
    const char *instance;
    const char *name; /* of the effect, timer ("" for a state's own) or event */
    const char *key;  /* of the effect; NULL otherwise */
    uint32_t attempt; /* number of the effect's attempt that failed or produced; of a timer or
                       * deferred event: number of attempts so far; 0 for any other event */
    int code;         /* the error */
    bool is_dead;     /* of a timer: it is now a dead letter and is not retried */
    const char *text; /* a complete sentence for people; never NULL */
};

/* Figures of one commit call of the store. */
struct det_commit_figures {
    size_t commits; /* number of instances */
    size_t events;  /* number of events, including starts */
    det_time took;  /* by the monotonic clock */
    int result;     /* 0, or the first error of these commits */
};

/* A finished attempt of an effect. Borrowed for the call. */
struct det_attempt_figures {
    const struct det_machine *machine;
    const char *instance;
    unsigned effect;  /* index of the effect in the machine */
    const char *name; /* of the effect */
    const char *key;
    uint32_t attempt; /* from 1 */
    int result;       /* return value of the effect, or why it was not called */
    det_time began;   /* wall */
    det_time took;    /* by the monotonic clock */
    /* Trace context of the event that requested this effect; NULL: none. */
    const struct det_trace_context *trace;
};

/* Callbacks for measurements; each may be NULL. They are called often, from any thread, perhaps
 * with locks held: a callback must be quick and must not call the runtime. */
struct det_meter {
    void (*commit)(void *observer, const struct det_commit_figures *figures);
    void (*attempt)(void *observer, const struct det_attempt_figures *figures);
    /* A timer's event was sent this long after it was due. */
    void (*timeout)(void *observer, const struct det_machine *machine, det_time late);
    /* The state does not accept the event. A decision that is repeated after a conflict may report
     * the event again. */
    void (*unhandled)(
        void *observer, const struct det_machine *machine, unsigned state, unsigned event);
    /* A timer fires: returns whether its event is sent in a trace, and which. If that trace is
     * recorded (DET_TRACE_SAMPLED), the note says what armed the timer, which is read from the
     * store. */
    bool (*fire)(void *observer, struct det_trace_context *ret);
};

/* When the head of an instance becomes its snapshot, in the commit of the event. Events before a
 * snapshot can be deleted, and det_runtime_repair() starts from it. All zero: only
 * det_runtime_snapshot() makes snapshots. The sequence and the time of an event decide; the age of
 * the last snapshot does not matter. */
struct det_snapshot_policy {
    uint32_t every; /* each time the sequence reaches or passes a multiple of this; 0: not by
                     * count */
    det_time span;  /* each time an event falls into another span of this length, counted from 1970,
                     * than its predecessor; after a load possibly once more; 0: not by time */
    bool on_final;  /* on entering a final state and on a stop */
    /* With each snapshot, events before it are deleted except for this many; 0: all are kept. */
    uint32_t events_kept;
};

/* How concurrent writers of one instance are ordered. */
enum det_locking {
    DET_LOCKING_OPTIMISTIC, /* a commit fails if another writer was first, and is decided again;
                             * from the second conflict on, in the order of a queue */
    DET_LOCKING_LEASE,      /* each send acquires the instance's lock first, see lock.h */
};

/* Shared stores only. Zero values are the defaults. */
struct det_node_options {
    det_time lease;                /* how long others wait before they take over the work of this
                                    * node; 0: 10 s */
    det_time renewal;              /* 0: a third of the lease */
    det_time sweep_interval;       /* interval of searches for orphaned work of other nodes; 0: 5
                                    * s */
    uint32_t sweep_jitter_percent; /* random addition to the interval; 0: 20; UINT32_MAX: none */
    uint32_t sweep_batch;          /* timers and effects taken over per search; 0: 256 */
    det_time sweep_backoff;        /* addition to the interval while nothing is found; 0: none */
};

#define DET_EFFECT_THREADS     16
#define DET_EFFECT_THREADS_MAX 1024
struct det_runtime_options {
    struct det_world *world; /* must be that of the store; NULL: the real one */
    const struct det_allocator *allocator;
    struct det_loop *loop; /* your own loop, which sends timers and products; only its owner may
                            * then open, settle and close. NULL: the runtime starts a thread. Both
                            * work in a simulated world. */
    /* Number of effects that run at once, each on a thread; 0: DET_EFFECT_THREADS; at most
     * DET_EFFECT_THREADS_MAX. Threads are started on demand and stay. Further effects wait for a
     * thread, which is reported: DET_INCIDENT_EFFECTS_QUEUED, DET_EFFECT_STATE_QUEUED. */
    uint32_t pool_threads;
    uint32_t shards;        /* independent partitions of the instances in memory; 0: 64; a power of
                             * two */
    uint32_t history_kept;  /* states in an instance's history; 0: 16; at most DET_HISTORY_MAX */
    det_time hook_deadline; /* limit for all guards and hooks of one send together, by the monotonic
                             * clock, checked after each: once it has passed, no further one runs;
                             * 0: 5 s; DET_NEVER: none */
    det_time send_deadline; /* limit for waiting for the writer of the instance; 0: 10 s */
    /* Approximate number of instances in memory. The least recently used ones are dropped; each
     * shard has its part, at least one. Instances of a memory: store stay in the store and are
     * never dropped. 0: 100,000 */
    uint32_t instances_max;
    /* Threads that execute submitted sends, each with its own commits. 0: 2 if the store permits
     * several commits at once (PostgreSQL), so that the next one is prepared while one is written;
     * else 1. */
    uint32_t writers;
    /* No background work: no thread, no `loop`, no effects, so none needs to be bound; settling is
     * immediate. Timers of an instance that are due when an event is sent to it are sent first, and
     * are removed if the instance rejects them; a timer that needs an unbound function is left for
     * a runtime that is not passive. For tools that send a single event. */
    bool is_passive;
    struct det_effect_policy effects;
    /* Returns the policy of one effect, given its index in the machine. Zero fields are taken from
     * `effects` above; NULL: all of them. Called often, from any thread, with locks held: it must
     * only look up. NULL: all effects have the policy above. */
    const struct det_effect_policy *(*effect_policy)(
        void *user, const struct det_machine *machine, unsigned effect);
    struct det_snapshot_policy snapshots;
    /* Called, with `user`, for each stored payload or data of an older version of its record; see
     * docs/evolution.md. Recorded events stay as they are; data are written in the new version by
     * the next commit that changes them. NULL: new fields are zero. */
    det_upcast_fn *upcast;
    enum det_locking locking;
    const struct det_lock_options *lock; /* for DET_LOCKING_LEASE; NULL: the defaults */
    struct det_node_options node;
    void *user; /* passed to user code */
    /* Called after each commit, on the thread that made it, in order per instance, before the
     * sender gets its answer. A commit of unknown outcome is reported on the thread that found it
     * in the store, as far as the store keeps events; in a shared store with the later commits of
     * other nodes, which cannot be distinguished. Must not send. */
    void (*observe)(void *user, const struct det_note *note);
    /* Called for each failure in the background, on the thread that detected it. Must not send to
     * the same instance. */
    void (*incident)(void *user, const struct det_incident *incident);
    /* Must stay until the runtime is closed. NULL: no measurement. */
    const struct det_meter *meter;
    void *observer;                          /* `user` of the three callbacks above */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a runtime on a store, which must outlive it and has one runtime at a time (DET_ERR_BUSY).
 * `options` NULL: all zero. DET_ERR_INVALID: an option, with the reason. */
DET_API int det_runtime_open(
    struct det_store *store, const struct det_runtime_options *options, struct det_runtime **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Closes the runtime. Sends that wait for an instance end with DET_ERR_CLOSED, sends in user code
 * with their answer; the caller must prevent new calls. Waits for running effects; instances,
 * timers and pending effects stay in the store for the next runtime. Turns your own loop until its
 * last message has run, so do not call this from its callbacks. */
DET_API void det_runtime_close(struct det_runtime *runtime);
/* Like det_runtime_close(), with a deadline for the store: det_store_cancel() with `span`, then
 * close. A send that waits for an unreachable store ends at the deadline with DET_ERR_CANCELLED or
 * DET_ERR_CLOSED. To end the wait earlier, call det_store_cancel() with 0 from another thread.
 * Attempts of effects that end after the deadline are not recorded: the next runtime repeats them.
 * The limit stays with the store until det_store_cancel() with DET_NEVER. Running user code is
 * waited for without a limit. */
DET_API void det_runtime_close_within(struct det_runtime *runtime, det_time span);
DET_SCOPED_CLOSE(runtime)

/* Registers a machine, which must stay until the runtime is closed: pending timers and effects of
 * its instances continue. Every other call with a machine registers it too; this call is needed
 * only if no such call follows soon. DET_ERR_INVALID: another definition with this name is served;
 * DET_ERR_VERSION: the stored instances do not fit the definition. */
DET_API int det_runtime_serve(
    struct det_runtime *runtime, const struct det_machine *machine,
    struct det_error *reterr) DET_MUST_CHECK;

/* The result of a send. */
struct det_sent {
    enum det_outcome outcome;
    unsigned state;    /* after the event; an id of the machine (enum order_state) */
    uint64_t sequence; /* of the committed event; unchanged if nothing was committed */
    uint64_t visit;    /* after the event */
    bool is_duplicate; /* the event id was known: this is the first answer */
};

/* `expected` of an instance at sequence 0: it was started and has had no event. */
#define DET_EXPECT_NO_EVENT UINT64_MAX

struct det_send_options {
    const char *event_id; /* NULL: none. A known id returns the first answer; with another event or
                           * payload DET_ERR_CONFLICT */
    uint64_t expected;    /* commit only if the instance is at this sequence; 0: any;
                           * DET_EXPECT_NO_EVENT: it has had no event. Else DET_ERR_CONFLICT with
                           * expected and actual */
    uint64_t visit;       /* commit only in this visit; 0: any. Else DET_ERR_CONFLICT */
    /* Trace context of the sender; NULL: none. It is recorded with the event and passed to its
     * effects and to their events. A start is reported with it, but does not record it. */
    const struct det_trace_context *trace;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Creates an instance in the initial state (runs its entry hook, arms its timeout). `data` is the
 * machine's data struct; NULL: all zero. DET_ERR_EXISTS: the instance exists. `options` and `ret`
 * may be NULL. An event id makes the call idempotent. */
DET_API int det_runtime_start(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *data, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Sends an event and waits for the commit. `options` and `ret` may be NULL. A deferred event is
 * recorded as deferred and retried after each change of state, oldest first, in its own commit,
 * before the sender that changed the state gets its answer.
 *   DET_ERR_NOT_FOUND      no such instance: start it first
 *   DET_ERR_STOPPED        the instance has stopped; nothing was committed
 *   DET_ERR_UNHANDLED      the state does not accept the event (error.state, error.event)
 *   DET_ERR_REFUSED        the guard refused (error.action), and no alternative fits
 *   DET_ERR_ACTION_FAILED  a hook failed (error.action, error.cause)
 *   DET_ERR_TIMEOUT        guards and hooks took too long (error.action is the last one), or the
 *                          instance was busy too long (error.waited)
 *   DET_ERR_CONFLICT       `expected` or `visit` did not match (error.expected, error.actual), or
 *                          the event id belongs to another request (error.is_id_used)
 *   DET_ERR_CONTENTION     other processes changed the instance during each attempt, for as long as
 *                          a send may wait (send_deadline)
 *   DET_ERR_INVALID        not an event of this machine, an internal event, an invalid payload or
 *                          id, or data that the update made invalid
 *   DET_ERR_LIMIT          too many deferred events or pending effects
 *   DET_ERR_UNBOUND        the definition names a function that is not bound
 *   DET_ERR_BUSY           called from the instance's own guard, hook or observer; otherwise an
 *                          error of the store, see below
 *   DET_ERR_LOCKED         another holder did not release the lock in time (error.holder,
 *                          error.until; see lock.h)
 *   DET_ERR_LOCK_LOST      under DET_LOCKING_LEASE: guards and hooks took longer than their lock,
 *                          also in a second attempt
 *   DET_ERR_NO_SPACE, DET_ERR_READ_ONLY
 *                          the store cannot write
 *   DET_ERR_VERSION        the stored instance does not fit the definition
 *   DET_ERR_CLOSED, DET_ERR_NO_MEMORY
 * After any of these nothing has happened. Other errors come from the store, mainly DET_ERR_IO, and
 * DET_ERR_CANCELLED after det_store_cancel(): the event may have been committed. Send it again with
 * the same event id; it then happens once in either case. */
DET_API int det_runtime_send(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *event, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Sends 1 to DET_BATCH_MAX events in one commit: all or none. `ret` is the answer to the last.
 * Hooks run for each event. */
DET_API int det_runtime_send_all(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *const *events, size_t count, const struct det_send_options *options,
    struct det_sent *ret, struct det_error *reterr) DET_MUST_CHECK;
/* An asynchronous send. The caller keeps the struct and everything it points to until `done` is
 * called, exactly once, on a thread of the runtime that must not be blocked. `done` may submit, and
 * may reuse or free the struct. With several writers (the default on PostgreSQL is two) `done` may
 * run on several threads at once for different sends: shared data need a lock. Submissions to one
 * instance are executed in order. Many instances share a commit, except in a passive runtime and
 * with DET_LOCKING_LEASE. Use this for high throughput. */
struct det_send {
    const struct det_machine *machine;
    const char *instance;
    const void *event;
    struct det_send_options options;
    struct det_error *error; /* details of a failure, written before `done`; may be NULL */
    void (*done)(struct det_send *send);
    void *user;
    /* Written before `done`. */
    int result; /* the return value of det_runtime_send(), except that a lock of another holder is
                 * DET_ERR_LOCKED at once, without waiting */
    struct det_sent sent;
    /* Private to the runtime. */
    struct {
        struct det_send *next;
        det_time deadline; /* limit of the wait for another sender that holds the instance; 0: no
                            * wait */
    } internal;
};
/* Submits a send. DET_ERR_CLOSED, or, for the first one, an error of starting a thread: `done` is
 * not called. After 0, `done` is called in any case. Closing the runtime executes all submitted
 * sends. */
DET_API int det_runtime_submit(struct det_runtime *runtime, struct det_send *send) DET_MUST_CHECK;
/* Cancels an instance: it is durably stopped when this returns 0. No hook is called, its timers are
 * removed, and running effects are not waited for. A second cancel succeeds and keeps the first
 * reason. */
DET_API int det_runtime_cancel(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *reason, const struct det_send_options *options, struct det_sent *ret,
    struct det_error *reterr) DET_MUST_CHECK;

/* A consistent copy of an instance. */
struct det_instance {
    unsigned state;
    unsigned previous; /* the state before; UINT_MAX: none */
    uint64_t sequence;
    uint64_t visit;            /* the sequence at which this visit of the state began, plus 1 */
    uint64_t transition_count; /* number of gotos since the start, including those not in the
                                * history */
    det_time started_at, last_transition_at; /* wall */
    bool is_stopped;
    char reason[DET_REASON_MAX + 1];
    unsigned history[DET_HISTORY_MAX]; /* previous states, most recent first */
    size_t history_count;
    size_t deferred_count, effects_pending;
};

/* A copy of the instance; `ret_data`, if not NULL, receives its data struct. */
DET_API int det_runtime_get(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_instance *ret, void *ret_data, struct det_error *reterr) DET_MUST_CHECK;

/* Non-blocking variant for event-loop threads: the instance in memory, with its timers.
 * DET_ERR_BUSY if it is not in memory, is being loaded, or must be loaded because the store has
 * other writers: then call det_runtime_get() on a thread that may wait. */
#define DET_GLANCE_TIMERS 8
struct det_glance {
    struct det_instance instance;
    struct det_glance_timer {
        const char *name; /* as in det_timer_record */
        uint16_t event;
        uint64_t visit;
        det_time due;  /* wall */
        det_time next; /* when it fires; later than `due` after a failed attempt */
        bool is_dead;  /* a dead letter: does not fire until it is retried */
    } timers[DET_GLANCE_TIMERS];
    size_t timer_count; /* number of armed timers; those beyond DET_GLANCE_TIMERS are not in the
                         * array */
    size_t effects_dead;
};
DET_API int det_runtime_glance(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_glance *ret, void *ret_data, struct det_error *reterr) DET_MUST_CHECK;

/* A recorded event, oldest first. Borrowed for the call. */
struct det_event_record {
    uint64_t sequence, visit;
    uint16_t from, to, event, outcome; /* event UINT16_MAX: a cancel */
    bool is_timeout;
    uint16_t choice;
    const char *event_id; /* NULL: none */
    const char *cause;    /* NULL: none */
    det_time at;
    const void *event_value;               /* NULL for a cancel */
    const struct det_trace_context *trace; /* NULL: none */
};
/* Calls `visit` for each event after `after`; a non-zero return value ends the walk and is
 * returned. In a store on disk or on a server the walk blocks no sender; events sent meanwhile may
 * be missing. In a memory store the visitor is the instance's writer during the walk: others wait,
 * and sending to the instance is DET_ERR_BUSY. The latter also holds for timers and effects in
 * every store. */
DET_API int det_runtime_events(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t after, int (*visit)(void *context, const struct det_event_record *row), void *context,
    struct det_error *reterr) DET_MUST_CHECK;

struct det_timer_record {
    const char *name; /* "" for the state's own timer; "@deferred" while a deferred event waits
                       * although the state accepts it */
    uint16_t event;
    uint64_t visit;    /* visit in which it was armed; for "@deferred" the sequence of the event */
    det_time due;      /* wall */
    det_time next;     /* wall time at which it fires; `due`, or later after a failed attempt */
    uint32_t attempts; /* number of failed attempts */
    int last_error;
    const char *reason; /* reason of the last failure; NULL: none */
    bool is_dead;       /* a dead letter, which det_runtime_retry() arms again */
};
/* Visits the armed timers of an instance. A non-zero return value of `visit` ends the walk and is
 * returned. The visitor is the instance's writer, as in det_runtime_events() of a memory store. */
DET_API int det_runtime_timers(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_timer_record *row), void *context,
    struct det_error *reterr) DET_MUST_CHECK;

enum det_effect_state {
    DET_EFFECT_STATE_WAITING, /* waits for its first or next attempt */
    DET_EFFECT_STATE_RUNNING,
    DET_EFFECT_STATE_DEAD,   /* a dead letter */
    DET_EFFECT_STATE_QUEUED, /* due, and waits for a thread: all pool_threads are in use */
};
struct det_pending_effect {
    const char *name;
    const char *key;
    enum det_effect_state state;
    uint32_t attempts;
    det_time next; /* wall time of the next attempt */
    int last_error;
    const char *reason; /* reason of the last failure; NULL: none */
    det_time began;     /* wall time at which the RUNNING attempt began; else 0 */
};
/* Visits the pending effects of an instance, and its dead letters. Rules as for
 * det_runtime_timers(). */
DET_API int det_runtime_effects(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_pending_effect *row), void *context,
    struct det_error *reterr) DET_MUST_CHECK;

/* Retries a dead letter from the first attempt. `key` is the key of the effect or its last parts,
 * such as "1/0"; or "timer/" and the name of a timer, which fires now ("timer/" alone: the state's
 * own timer). DET_ERR_NOT_FOUND: the instance has no such dead letter; DET_ERR_INVALID: the last
 * parts match several keys, which the error lists. */
DET_API int det_runtime_retry(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *key, struct det_error *reterr) DET_MUST_CHECK;

/* An instance of a machine in a list by id; stopped instances are included. */
struct det_listed_instance {
    const char *instance;
    unsigned state;
    bool is_stopped;
    uint64_t sequence;
    det_time started_at, last_transition_at;
};
/* Selects instances. Zero values: all. The next page begins after the last id of this one. */
struct det_instance_query {
    const char *after;
    size_t limit;
    bool has_state;
    unsigned state;
    det_time moved_before; /* only instances without a commit since */
    bool only_running, only_stopped;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};
/* `query` may be NULL. The visitor may call the runtime. The list is not a snapshot: each instance
 * is as of the reading of its page, and an instance started meanwhile may be missing. */
DET_API int det_runtime_query(
    struct det_runtime *runtime, const struct det_machine *machine,
    const struct det_instance_query *query,
    int (*visit)(void *context, const struct det_listed_instance *row), void *context,
    struct det_error *reterr) DET_MUST_CHECK;
/* det_runtime_query() by state alone; -1: any state. */
DET_API int det_runtime_instances(
    struct det_runtime *runtime, const struct det_machine *machine, int state,
    int (*visit)(void *context, const struct det_listed_instance *row), void *context,
    struct det_error *reterr) DET_MUST_CHECK;

/* Makes a snapshot of the current state of the instance. */
DET_API int det_runtime_snapshot(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr) DET_MUST_CHECK;
/* Deletes the events up to `sequence` that a snapshot covers; the sequence continues. `ret` (may be
 * NULL) is the number of deleted events. Event ids older than det_store_options.event_ids_span are
 * forgotten. */
DET_API int det_runtime_prune(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t sequence, uint64_t *ret, struct det_error *reterr) DET_MUST_CHECK;

/* Replays an instance from its start, or from its snapshot if the first events are not kept, with
 * the current definition, and compares each step with the recorded one. Guards are not called,
 * because they may depend on more than the record: of several alternatives the recorded one is
 * taken. Nothing is changed. */
struct det_drift {
    uint64_t sequence;
    const char *event;              /* NULL: a cancel */
    const char *from;               /* the recorded state */
    const char *recorded, *derived; /* states; `derived` NULL: the definition does not accept the
                                     * event */
    const char *text;               /* as a sentence */
};
/* Returns 0 also if there is drift; `ret_steps` (may be NULL) is the number of replayed events. */
DET_API int det_runtime_verify(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_drift *drift), void *context, uint64_t *ret_steps,
    struct det_error *reterr) DET_MUST_CHECK;

/* Repairs a damaged head (loading the instance is DET_ERR_CORRUPT) by replay from its snapshot, or
 * from its start if that is kept. Recorded outcomes are used; the definition computes the data. The
 * head is written only if it equals the original bit by bit, which the checksum proves. Otherwise
 * DET_ERR_CORRUPT with the reason, and nothing is changed. DET_ERR_REPLAY: the definition has no
 * transition for a recorded event (error.state, error.event, error.expected: its sequence); only a
 * replay can detect this. DET_ERR_EXISTS: the head is not damaged. DET_ERR_READ_ONLY: the head can
 * be repaired, but the store is open for reading only: use this to test. DET_ERR_UNSUPPORTED:
 * memory and postgres stores. Nothing is ever repaired automatically. */
DET_API int det_runtime_repair(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr) DET_MUST_CHECK;

/* Counts since the runtime was opened, except for current values: `instances` are in memory,
 * `effects_running` have a thread, `effects_queued` wait for one. */
struct det_runtime_counts {
    uint64_t instances, transitions, unhandled, refused, timeouts_fired, timeouts_rejected,
        effects_done, effects_failed, effects_dead, products_rejected, duplicates, conflicts, loads,
        evictions, sweeps, adopted, effects_running, effects_queued;
};
DET_API void det_runtime_counts(struct det_runtime *runtime, struct det_runtime_counts *ret);

/* Waits until no effect is running or waiting and every due timer has fired, or for `span`. An
 * effect that waits for its next attempt counts while its instance is in memory. 0 or
 * DET_ERR_TIMEOUT. For tests and for draining. */
DET_API int det_runtime_settle(struct det_runtime *runtime, det_time span) DET_MUST_CHECK;

DET_END
#endif
