/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* runtime.h - runs instances of machines: send, timers, effects.
 *
 * A runtime serves any number of machines and instances on one store, from any number of threads.
 * One instance has one writer at a time; different instances do not wait for each other. What one
 * send does, in order:
 *
 *     id known? running? -> look up -> guard -> hooks: exit(old), transition, entry(new)
 *              -> one commit {event, state, data, sequence, visit, timers, effects, event id}
 *              -> publish -> answer
 *
 * Anything before the commit may refuse, and then nothing at all has happened: not in the store,
 * not in memory, no timer touched. After the commit nothing can undo it. Hooks therefore may run
 * more than once for one event (when the commit fails, or the process dies before it): they check
 * and prepare. What must happen to the outside world is an effect: it runs after the commit, at
 * least once, always with the same key. Transitions happen exactly once; effects at least once.
 *
 *                 start                     stop, or a STOP transition
 *     (nothing) ---------> running in state ---------------------------> stopped(reason)
 *                            |  ^
 *                            +--+ goto, stay
 *
 * User code (guards, hooks, updates) runs on the sender's thread with no lock held; effects run on
 * a pool; timers and the effects' products are sent by the runtime's loop. User code must not send
 * to the instance it runs for (DET_ERR_BUSY); effects may. */
#ifndef DETENT_RUNTIME_H
#define DETENT_RUNTIME_H

#include <detent/loop.h>
#include <detent/machine.h>
#include <detent/store.h>

DET_BEGIN

struct det_runtime;
struct det_lock_options;

/* How often and how long an effect is tried. Zero values are the defaults. */
struct det_effect_policy {
    uint32_t attempts_max;   /* 0: 8; then it is a dead letter */
    det_time backoff_first;  /* 0: 100 ms; doubles with each attempt */
    det_time backoff_max;    /* 0: 30 s */
    uint32_t jitter_percent; /* added at random on top of the backoff; 0: 20; UINT32_MAX: none */
    det_time deadline;       /* from the commit; 0: none. Past it there is no further attempt */
    bool same_visit_only;    /* a product counts only while the visit that asked for it lasts */
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
    uint16_t choice;          /* which alternative was taken; 0: the first, or there is no choice */
    det_time at;              /* wall */
    det_time since;           /* wall: when `from` was entered; 0: it is a start, or not known */
    det_time commit_took;     /* how long the store took, where there is a meter; else 0 */
    const void *event_value;  /* the event struct; NULL for a start or a cancel */
    const void *data;         /* the data after the commit, also when that has several events */
    const struct det_trace_context *trace; /* trace context of the sender; NULL: none */
    /* Of the event of a timer that is sent in a trace which is kept: the trace of the event that
     * brought the instance into the visit in which the timer was armed. NULL: none, or the store
     * does not know. */
    const struct det_trace_context *armed_by;
};

/* Failures in the background, reported so that nothing is dropped silently. What an instance does
 * not take because a guard refuses it, or the definition names a function that is not bound, is a
 * dead letter: an effect or a timer that is kept, and that det_runtime_retry() tries again. When
 * the state has no use for it, the effect is a dead letter, and the timer is gone. When a hook
 * failed, a limit was reached, or the store failed, it is tried again like an effect, and each
 * failure is reported; a hook or a limit at the last attempt makes it a dead letter too. The
 * attempts of a timer are in the store, and go on after a restart; so are those of a deferred event
 * that the state takes now, which waits as the timer "@deferred" and keeps those deferred after it
 * waiting. A deferred event that is refused, or whose last attempt failed, is recorded with the
 * outcome DET_OUTCOME_DEAD_LETTER.
 *
 * Where the store could not say whether a commit happened, the instance is loaded again, and what
 * had happened is counted and reported. Deferred events that became dead letters by it are not
 * reported; and while loading fails too, a timer or an effect that had ended is not counted. */
enum det_incident_kind {
    DET_INCIDENT_EFFECT_FAILED,    /* an attempt failed; it will be tried again */
    DET_INCIDENT_EFFECT_DEAD,      /* given up: a dead letter */
    DET_INCIDENT_PRODUCT_REJECTED, /* the instance did not take what an effect produced; CONFLICT:
                                     the visit that asked is over (same_visit_only) */
    DET_INCIDENT_TIMEOUT_REJECTED, /* the instance did not take a timer's event */
    DET_INCIDENT_EVENT_DEAD,     /* an event became a dead letter: unhandled; or deferred, and then
                                     not taken, or the instance stopped (code says which) */
    DET_INCIDENT_EVENT_FAILED,   /* a deferred event was not taken: a hook failed, a limit was
                                     reached, or the store failed; it stays deferred and is tried
                                     again */
    DET_INCIDENT_NOT_LOADED,     /* an instance that has something due is damaged, or does not fit
                                     the definition: nothing of it is done */
    DET_INCIDENT_EFFECTS_QUEUED, /* effects have been waiting for a thread for a second: all
                                     pool_threads are in use. Reported once, until none waits.
                                     `machine` and `name` are of the effect that has most of the
                                     threads, `instance` is "". `code`: DET_ERR_LIMIT; or
                                     DET_ERR_NO_MEMORY, the system provides fewer threads */
};

/* Borrowed for the call. */
struct det_incident {
    enum det_incident_kind kind;
    const struct det_machine *machine;
    const char *instance;
    const char *name; /* of the effect, timer ("" for a state's own) or event */
    const char *key;  /* of the effect; NULL otherwise */
    uint32_t attempt; /* of the effect: the one that failed or produced; of a timer or a deferred
                         event: how often it has been tried; 0 for any other event */
    int code;         /* the error */
    bool is_dead;     /* of a timer: it is a dead letter from now on, and not tried again */
    const char *text; /* all of it as a sentence for people; never NULL */
};

/* A call of the store that commits. */
struct det_commit_figures {
    size_t commits; /* of as many instances */
    size_t events;  /* with starts */
    det_time took;  /* by the monotonic clock */
    int result;     /* 0, or the first error of any of them */
};

/* An attempt of an effect that has ended. Borrowed for the call. */
struct det_attempt_figures {
    const struct det_machine *machine;
    const char *instance;
    unsigned effect;  /* of the machine's */
    const char *name; /* of the effect */
    const char *key;
    uint32_t attempt; /* from 1 */
    int result;       /* what the effect answered, or why it was not even asked */
    det_time began;   /* wall */
    det_time took;    /* by the monotonic clock */
    /* Trace context of the event that requested this effect; NULL: none. */
    const struct det_trace_context *trace;
};

/* Callbacks that measure; each may be NULL. They are called often, from any thread, and perhaps
 * with locks held: a callback counts, and calls nothing of the runtime. */
struct det_meter {
    void (*commit)(void *observer, const struct det_commit_figures *figures);
    void (*attempt)(void *observer, const struct det_attempt_figures *figures);
    /* The event of a timer was sent, so long after it was due. */
    void (*timeout)(void *observer, const struct det_machine *machine, det_time late);
    /* The state does not take the event. An event that is decided a second time, because another
     * process was first, may be reported again. */
    void (*unhandled)(
        void *observer, const struct det_machine *machine, unsigned state, unsigned event);
    /* A timer fires: whether its event is sent in a trace, and in which. Of one that is kept
     * (DET_TRACE_SAMPLED) the note says what armed it, which is read from the store. */
    bool (*fire)(void *observer, struct det_trace_context *ret);
};

/* When the head of an instance becomes its snapshot, in the commit of the event. Events before a
 * snapshot can be deleted, and det_runtime_repair() begins with it. Zero values: only
 * det_runtime_snapshot() makes one. When the last one was made does not matter: the sequence and
 * the time of an event say whether it makes one. */
struct det_snapshot_policy {
    uint32_t every; /* each time the sequence reaches or passes a multiple of it; 0: not by count */
    det_time span;  /* when an event is in another span of this length, counted from 1970 on, than
                       what was before it; after a load possibly once more; 0: not by time */
    bool on_final;  /* when a final state is entered, or it stops */
    /* With each snapshot the events before it are deleted, but for this many; 0: all are kept. */
    uint32_t events_kept;
};

/* How writers of one instance keep out of each other's way. */
enum det_locking {
    DET_LOCKING_OPTIMISTIC, /* a commit fails when somebody else was first, and is decided again,
                               from
                            the second time on in the order of asking */
    DET_LOCKING_LEASE,      /* each send takes the instance's lock first, see lock.h */
};

/* Shared stores only. Zero values are the defaults. */
struct det_node_options {
    det_time lease;                /* how long others wait before they take over; 0: 10 s */
    det_time renewal;              /* 0: a third of the lease */
    det_time sweep_interval;       /* between looks for orphaned work of others; 0: 5 s */
    uint32_t sweep_jitter_percent; /* of the interval, added at random; 0: 20; UINT32_MAX: none */
    uint32_t sweep_batch;          /* timers and effects taken over at a time; 0: 256 */
    det_time sweep_backoff;        /* added while nothing is found; 0: none */
};

#define DET_EFFECT_THREADS     16
#define DET_EFFECT_THREADS_MAX 1024
struct det_runtime_options {
    struct det_world *world; /* must be the store's; NULL: the real one */
    const struct det_allocator *allocator;
    struct det_loop *loop; /* timers and products are sent from this loop, which you turn; open,
                               settle and close are then for its owner. NULL: a thread of the
                               runtime's own. In a simulated world both work. */
    /* Effects that run at the same time, each on a thread; 0: DET_EFFECT_THREADS; at most
     * DET_EFFECT_THREADS_MAX. Threads are started as they are needed, and stay. One more effect
     * waits for a thread, and says so: DET_INCIDENT_EFFECTS_QUEUED, DET_EFFECT_STATE_QUEUED. */
    uint32_t pool_threads;
    uint32_t shards;        /* parts that do not wait for each other; 0: 64; a power of two */
    uint32_t history_kept;  /* states in an instance's history; 0: 16; at most DET_HISTORY_MAX */
    det_time hook_deadline; /* all guards and hooks of one send together, by the monotonic clock,
                               looked at when each has run: past it no further one runs; 0: 5 s;
                               DET_NEVER: none */
    det_time send_deadline; /* waiting for the instance's writer; 0: 10 s */
    /* Instances in memory, about: those that were not used for long go when others come. Each shard
     * has its part, one at least. Those in a memory: store are there all the same, and none of them
     * goes. 0: 100,000 */
    uint32_t instances_max;
    /* Threads that carry out what is submitted, each with the commits of its own. 0: 2 where the
     * store can have several commits on their way (PostgreSQL), so that while one is on its way to
     * the disk the next is made; else 1. */
    uint32_t writers;
    /* Nothing happens by itself, and so no effect needs to be bound: they and the timers are for a
     * runtime that acts, but for timers that are due when something is sent to their instance: they
     * go first, and are over when they are not taken; but one that asks for a function that nobody
     * bound here is left. No thread, no `loop`; settling is immediate. For tools that send a single
     * event. */
    bool is_passive;
    struct det_effect_policy effects;
    /* The policy of one effect, an index of the machine's; what is zero in it is taken from
     * `effects` above, and so is all of it where the answer is NULL. From any thread, often, with
     * locks held: it only looks up. NULL: all effects have the one above. */
    const struct det_effect_policy *(*effect_policy)(
        void *user, const struct det_machine *machine, unsigned effect);
    struct det_snapshot_policy snapshots;
    /* Called, with `user`, whenever a stored payload or data is of an older version of its record;
     * see docs/evolution.md. What was recorded stays as it is; data are of the new version from the
     * next commit on that changes them. NULL: new fields are zero. */
    det_upcast_fn *upcast;
    enum det_locking locking;
    const struct det_lock_options *lock; /* for DET_LOCKING_LEASE; NULL: the defaults */
    struct det_node_options node;
    void *user; /* given to user code */
    /* Called after each commit, on the thread that made it, in order per instance, before the
     * sender has its answer; for one of unknown outcome on the thread that found it in the store,
     * as far as that keeps events, and on a shared store with what other nodes have committed there
     * since, which cannot be told apart. Must not send. */
    void (*observe)(void *user, const struct det_note *note);
    /* Called for each failure in the background, on the thread that detected it. Must not send to
     * the same instance. */
    void (*incident)(void *user, const struct det_incident *incident);
    /* Must stay until the runtime is closed. NULL: nothing is measured, and it costs nothing. */
    const struct det_meter *meter;
    void *observer;                          /* `user` of the three above */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Opens a runtime on a store, which must outlive it and has one runtime at a time (DET_ERR_BUSY).
 * NULL options are all zero. DET_ERR_INVALID: an option, with the reason. */
DET_API int det_runtime_open(
    struct det_store *store, const struct det_runtime_options *options, struct det_runtime **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Sends that wait for an instance end with DET_ERR_CLOSED, those in user code with their answer; a
 * call that begins only now must be kept away by you. Running effects are waited for; instances,
 * timers and effects that have not ended stay in the store for the next runtime. A loop of yours is
 * turned until the last message to it has come through, so not from its callbacks. */
DET_API void det_runtime_close(struct det_runtime *runtime);
/* The same with a deadline for the store: det_store_cancel() with `span`, then close. A send that
 * waits for a store that is away ends at the deadline with DET_ERR_CANCELLED or DET_ERR_CLOSED. To
 * hurry it, call det_store_cancel() with 0 from another thread. Attempts of effects that end after
 * the deadline are not recorded: the next runtime runs them again. The limit stays with the store
 * until det_store_cancel() with DET_NEVER. User code that runs is waited for, without a limit. */
DET_API void det_runtime_close_within(struct det_runtime *runtime, det_time span);
DET_SCOPED_CLOSE(runtime)

/* Registers a machine, which must stay until the runtime is closed: pending timers and effects of
 * its instances continue from now on. Every other call that names a machine does this too, so it is
 * needed only if no such call may come for a while. DET_ERR_INVALID when another definition of the
 * same name is served, DET_ERR_VERSION when what is stored does not fit the definition. */
DET_API int det_runtime_serve(
    struct det_runtime *runtime, const struct det_machine *machine,
    struct det_error *reterr) DET_MUST_CHECK;

/* What became of a send. */
struct det_sent {
    enum det_outcome outcome;
    unsigned state;    /* afterwards; an id of the machine (enum order_state) */
    uint64_t sequence; /* of the committed event; the unchanged one if nothing was committed */
    uint64_t visit;    /* afterwards */
    bool is_duplicate; /* the event id was known: this is the first answer again */
};

/* `expected` of an instance that stands at the sequence 0: it was started, and that is all. */
#define DET_EXPECT_NO_EVENT UINT64_MAX

struct det_send_options {
    const char *event_id;    /* NULL: none. Sending an id again gives the first answer; with another
                                event or payload DET_ERR_CONFLICT */
    uint64_t expected;       /* commit only if the instance stands at this sequence; 0: any;
                                DET_EXPECT_NO_EVENT: if it has had no event yet. Else
                                DET_ERR_CONFLICT with expected and actual */
    uint64_t visit;          /* commit only in this visit; 0: any. Else DET_ERR_CONFLICT */
    struct det_error *error; /* details of a failure; NULL: not wanted */
    /* Trace context of the sender; NULL: none. It is recorded with the event and passed on to its
     * effects and to the events that those produce. A start is reported with it, but not
     * recorded. */
    const struct det_trace_context *trace;
};

/* Creates an instance in the initial state (its entry hook runs, its timeout is armed). `data` is
 * the machine's data struct; NULL: all zero. DET_ERR_EXISTS when there is one. `options` and `ret`
 * may be NULL. A given event id makes it idempotent. */
DET_API int det_runtime_start(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *data, const struct det_send_options *options, struct det_sent *ret) DET_MUST_CHECK;
/* Sends an event and waits for the commit. `options` and `ret` may be NULL. An event that is
 * deferred is recorded as such, and tried again after each change of state, oldest first, in a
 * commit of its own and before the sender who changed the state has its answer.
 *   DET_ERR_NOT_FOUND      there is no such instance: start it first
 *   DET_ERR_STOPPED        it has stopped; nothing was committed
 *   DET_ERR_UNHANDLED      the state does not take the event (error.state, error.event)
 *   DET_ERR_REFUSED        the guard said no (error.action), and no alternative fits
 *   DET_ERR_ACTION_FAILED  a hook failed (error.action, error.cause)
 *   DET_ERR_TIMEOUT        guards and hooks took too long (error.action is the last one), or the
 *                          instance was busy too long (error.waited)
 *   DET_ERR_CONFLICT       `expected` or `visit` did not match (error.expected, error.actual), or
 *                          the event id was used for another request (error.is_id_used)
 *   DET_ERR_CONTENTION     other processes changed it during each attempt, for as long as a send
 *                          may wait (send_deadline)
 *   DET_ERR_INVALID        not an event of this machine, an internal event, an invalid payload or
 *                          id, or data that the update made invalid
 *   DET_ERR_LIMIT          too many deferred events or pending effects
 *   DET_ERR_UNBOUND        the definition names a function that nobody bound
 *   DET_ERR_BUSY           called from the instance's own guard, hook or observer. Otherwise it is
 *                          the store, as below
 *   DET_ERR_LOCKED         somebody has locked it, and did not give it up in time (error.holder,
 *                          error.until; see lock.h)
 *   DET_ERR_LOCK_LOST      under DET_LOCKING_LEASE: guards and hooks took longer than the lock that
 *                          was taken for them, and so they did when it was tried again
 *   DET_ERR_NO_SPACE, DET_ERR_READ_ONLY
 *                          the store cannot write
 *   DET_ERR_VERSION        what is stored does not fit the definition
 *   DET_ERR_CLOSED, DET_ERR_NO_MEMORY
 * After any of these nothing has happened. After any other, which is the store's, above all
 * DET_ERR_IO, and DET_ERR_CANCELLED after det_store_cancel(), it is not known whether it did. Sent
 * again with the same event id it happens once, whatever became of the first. */
DET_API int det_runtime_send(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *event, const struct det_send_options *options, struct det_sent *ret) DET_MUST_CHECK;
/* All events in one commit, or none of them; the answer is that of the last. Hooks run for each. 1
 * to DET_BATCH_MAX events. */
DET_API int det_runtime_send_all(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const void *const *events, size_t count, const struct det_send_options *options,
    struct det_sent *ret) DET_MUST_CHECK;
/* An asynchronous send. It is the caller's memory, with what it points to, until `done` is called:
 * exactly once, on a thread of the runtime that must not be kept waiting there; it may submit, and
 * may use or free the struct again. Where there are several writers (two on PostgreSQL, if nothing
 * else is said), `done` may run on several threads at once, for different sends: what they share
 * needs a lock. What is submitted to one instance is carried out in that order, and many instances
 * share a commit, though not in a passive runtime, nor where each send takes a lock. Use this for
 * high throughput. */
struct det_send {
    const struct det_machine *machine;
    const char *instance;
    const void *event;
    struct det_send_options options; /* `error` as well is written before `done` */
    void (*done)(struct det_send *send);
    void *user;
    /* Written before `done`. */
    int result; /* what det_runtime_send() would have returned; but where the lock of the instance
                   is somebody else's, DET_ERR_LOCKED at once, without waiting */
    struct det_sent sent;
    /* The runtime's: do not use. */
    struct {
        struct det_send *next;
        det_time deadline; /* somebody else has the instance, and is waited for until then; 0: no */
    } internal;
};
/* DET_ERR_CLOSED, or, of the first one, why no thread could be started: then `done` is not called;
 * otherwise it is, whatever happens. Closing the runtime carries out what was submitted. */
DET_API int det_runtime_submit(struct det_runtime *runtime, struct det_send *send) DET_MUST_CHECK;
/* Cancels an instance: it has stopped, durably, when this returns 0. No hook is asked, its timers
 * are gone, and effects that run are not waited for. A second cancel succeeds and keeps the first
 * reason. */
DET_API int det_runtime_cancel(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *reason, const struct det_send_options *options,
    struct det_sent *ret) DET_MUST_CHECK;

/* An instance at one moment. */
struct det_instance {
    unsigned state;
    unsigned previous; /* the state before; UINT_MAX: none */
    uint64_t sequence;
    uint64_t visit;            /* the sequence at which this visit of the state began, plus 1 */
    uint64_t transition_count; /* gotos, counted since the start, also those not in the history */
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
    struct det_instance *ret, void *ret_data) DET_MUST_CHECK;

/* Non-blocking variant for event-loop threads: the instance as it is in memory, with its timers.
 * DET_ERR_BUSY when it is not in memory, is being loaded, or must be loaded because others write to
 * the store too: then call det_runtime_get() on a thread that may wait. */
#define DET_GLANCE_TIMERS 8
struct det_glance {
    struct det_instance instance;
    struct det_glance_timer {
        const char *name; /* as in det_timer_record */
        uint16_t event;
        uint64_t visit;
        det_time due; /* wall */
        bool is_dead; /* a dead letter: it does not fire until it is retried */
    } timers[DET_GLANCE_TIMERS];
    size_t timer_count; /* all that are armed; those beyond DET_GLANCE_TIMERS are not shown */
    size_t effects_dead;
};
DET_API int det_runtime_glance(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_glance *ret, void *ret_data) DET_MUST_CHECK;

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
/* Calls `visit` for each event after `after`; a non-zero answer ends the walk and is returned.
 * In a store on a disk or a server nobody waits for it: what is sent meanwhile may be in the walk
 * or not. In memory the visitor is the instance's writer while it walks: others wait, and it must
 * not send to it itself (DET_ERR_BUSY). The latter goes for timers and effects in every store. */
DET_API int det_runtime_events(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t after, int (*visit)(void *context, const struct det_event_record *row),
    void *context) DET_MUST_CHECK;

struct det_timer_record {
    const char *name; /* "" for the state's own; "@deferred" while a deferred event waits although
                         the state takes it */
    uint16_t event;
    uint64_t visit;    /* in which it was armed; of "@deferred" the sequence of the event */
    det_time due;      /* wall */
    det_time next;     /* wall: when it fires; `due`, or later after an attempt that failed */
    uint32_t attempts; /* that failed */
    int last_error;
    const char *reason; /* what the last attempt said of that; NULL: nothing */
    bool is_dead;       /* given up: a dead letter, which det_runtime_retry() arms again */
};
/* Visits the armed timers of an instance. A non-zero answer of `visit` ends the walk and is
 * returned. The visitor is the instance's writer, as in det_runtime_events() of a store in memory.
 */
DET_API int det_runtime_timers(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_timer_record *row), void *context) DET_MUST_CHECK;

enum det_effect_state {
    DET_EFFECT_STATE_WAITING, /* for its first or next attempt */
    DET_EFFECT_STATE_RUNNING,
    DET_EFFECT_STATE_DEAD,   /* given up */
    DET_EFFECT_STATE_QUEUED, /* due, and waits for a thread: all pool_threads are in use */
};
struct det_pending_effect {
    const char *name;
    const char *key;
    enum det_effect_state state;
    uint32_t attempts;
    det_time next; /* wall; of the next attempt */
    int last_error;
    const char *reason; /* what the last attempt said of that; NULL: nothing */
    det_time began;     /* wall; of the attempt that is RUNNING; else 0 */
};
/* Visits the effects of an instance that have not ended, and its dead letters. Rules as for
 * det_runtime_timers(). */
DET_API int det_runtime_effects(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_pending_effect *row),
    void *context) DET_MUST_CHECK;

/* A dead letter is tried again from the first attempt. `key` is that of the effect, or its last
 * parts, "1/0"; or "timer/" and the name of a timer, "timer/" alone for the state's own: it fires
 * now. DET_ERR_NOT_FOUND when the instance has no such dead letter; DET_ERR_INVALID, with the keys,
 * when the last parts fit more than one. */
DET_API int det_runtime_retry(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    const char *key, struct det_error *reterr) DET_MUST_CHECK;

/* Instances of a machine, also those that have stopped, in the order of their ids. */
struct det_listed_instance {
    const char *instance;
    unsigned state;
    bool is_stopped;
    uint64_t sequence;
    det_time started_at, last_transition_at;
};
/* Which ones. Zero values: all of them. The next page begins after the last id of this one. */
struct det_instance_query {
    const char *after;
    size_t limit;
    bool has_state;
    unsigned state;
    det_time moved_before; /* have not moved since */
    bool only_running, only_stopped;
};
/* `query` may be NULL. The visitor may call the runtime. It is not one moment that is shown: each
 * instance is as it stood when its page was read, and one that starts meanwhile is in it or not. */
DET_API int det_runtime_query(
    struct det_runtime *runtime, const struct det_machine *machine,
    const struct det_instance_query *query,
    int (*visit)(void *context, const struct det_listed_instance *row),
    void *context) DET_MUST_CHECK;
/* det_runtime_query() by state alone; -1: in any. */
DET_API int det_runtime_instances(
    struct det_runtime *runtime, const struct det_machine *machine, int state,
    int (*visit)(void *context, const struct det_listed_instance *row),
    void *context) DET_MUST_CHECK;

/* Makes a snapshot of the instance as it is now. */
DET_API int det_runtime_snapshot(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr) DET_MUST_CHECK;
/* Deletes the events up to `sequence` that a snapshot covers; the sequence goes on from where it
 * is. `ret` (may be NULL) is how many. Event ids that are older than the store is to remember them
 * (det_store_options.event_ids_span) are forgotten. */
DET_API int det_runtime_prune(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    uint64_t sequence, uint64_t *ret, struct det_error *reterr) DET_MUST_CHECK;

/* Derives an instance again from what it began with, or from its snapshot where the first events
 * are not kept, by this definition, and compares each step with what was recorded. Guards are not
 * asked, because they may see more than the record: of several alternatives the recorded one
 * counts. Nothing is changed. */
struct det_drift {
    uint64_t sequence;
    const char *event;              /* NULL: a cancel */
    const char *from;               /* recorded */
    const char *recorded, *derived; /* states; `derived` NULL: the definition does not take it */
    const char *text;               /* as a sentence */
};
/* Returns 0 also when there is drift; `ret_steps` (may be NULL) is how many events were derived. */
DET_API int det_runtime_verify(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    int (*visit)(void *context, const struct det_drift *drift), void *context,
    uint64_t *ret_steps) DET_MUST_CHECK;

/* Where the head of an instance is damaged, so that loading it is DET_ERR_CORRUPT, derives it again
 * from its snapshot, or from what it began with if that is kept, and the events behind that:
 * recorded outcomes count, data are what the definition makes of them. It is written only if it is,
 * to the last bit, what the head was, which its checksum proves. Otherwise DET_ERR_CORRUPT with the
 * reason, and nothing is changed. DET_ERR_REPLAY: a recorded event has no such transition in the
 * definition (error.state, error.event, error.expected: its sequence); only deriving can find that
 * out, so loading never says it. DET_ERR_EXISTS: it is not damaged. DET_ERR_READ_ONLY: it can be
 * repaired, but the store is open for reading only, which is how to look first.
 * DET_ERR_UNSUPPORTED: the store cannot do it (memory, postgres). Nothing is ever repaired by
 * itself. */
DET_API int det_runtime_repair(
    struct det_runtime *runtime, const struct det_machine *machine, const char *instance,
    struct det_error *reterr) DET_MUST_CHECK;

/* Since the runtime was opened; but `instances` are those in memory, `effects_running` those that
 * have a thread and `effects_queued` those that wait for one, now. */
struct det_runtime_counts {
    uint64_t instances, transitions, unhandled, refused, timeouts_fired, timeouts_rejected,
        effects_done, effects_failed, effects_dead, products_rejected, duplicates, conflicts, loads,
        evictions, sweeps, adopted, effects_running, effects_queued;
};
DET_API void det_runtime_counts(struct det_runtime *runtime, struct det_runtime_counts *ret);

/* Waits until no effect is running or waiting and no due timer is unfired, or the deadline (span
 * from now). An effect that waits for its next attempt counts while its instance is in memory. 0 or
 * DET_ERR_TIMEOUT. For tests and for draining. */
DET_API int det_runtime_settle(struct det_runtime *runtime, det_time span) DET_MUST_CHECK;

DET_END
#endif
