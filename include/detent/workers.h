/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.h - runs a tree of workers (worker.h): one thread decides for all of them, a few threads
 * observe and act.
 *
 *     tick, for each worker, parents before children, siblings in the order of their specs:
 *
 *       derive      if config, variables or location changed: a new desired state, recorded before
 *                   it is used; a refused one keeps the last good one, and a reason
 *       fresh?      an observation older than 10 s pauses the worker, one older than 20 s restarts
 *                   its collector, at most 3 times; then the worker is shut down
 *       gate        after an action: wait for an observation that began after the action's end
 *       next        decides: the state, the action, the reason
 *       children    created, changed, removed
 *
 * A stopping worker passes through its own states to STOPPED. An invalid config, stale
 * observations, the gate or an open circuit do not prevent this. A worker that does not reach
 * STOPPED in time is taken down: children before parents, siblings at the same time; each level of
 * the tree adds its own time to that of the levels below.
 *
 * Failures are contained:
 *   - a failed action is repeated after a growing, jittered delay, if next() still requests it;
 *     meanwhile next() is still called;
 *   - an action or a collect that does not return is reported at twice its timeout and abandoned at
 *     three times: its thread is replaced, and a late result is ignored;
 *   - a worker that requests a restart gets it after a growing delay; too many restarts are
 *     reported to its parent's circuit;
 *   - children that fail too often in a window open the circuit of their parent: that subtree is
 *     paused, and tried again after a growing delay; other subtrees are not affected.
 *
 * With a store, identities, desired and observed states are documents in it (driver/documents.h),
 * with every change as a delta.
 *
 * The loop owns everything. Calls from other threads are queued to the loop and wait for the
 * answer. */
#ifndef DETENT_WORKERS_H
#define DETENT_WORKERS_H

#include <detent/loop.h>
#include <detent/policy.h>
#include <detent/store.h>
#include <detent/worker.h>

DET_BEGIN

struct det_workers;

/* Time limits of the supervisor. 0 is the default in each; det_workers_open() refuses contradictory
 * values, with the reason: observe_every < stale_after < collector_timeout, tick <= observe_every,
 * observe_timeout < stale_after. */
struct det_worker_limits {
    det_time tick;              /* 100 ms */
    det_time observe_every;     /* 1 s; varied by up to a tenth, so that observations are spread */
    det_time observe_timeout;   /* 2.2 s */
    det_time stale_after;       /* 10 s */
    det_time collector_timeout; /* 20 s */
    uint32_t collector_restarts_max;    /* 3 */
    det_time stop_grace;                /* 5 s per level of the tree */
    det_time restart_grace;             /* 30 s to reach STOPPED, then the worker is taken down */
    det_time action_timeout;            /* 30 s, from the start of the action */
    struct det_backoff action_backoff;  /* 1 s doubling to 60 s, jittered */
    struct det_backoff restart_backoff; /* 1 s doubling to 60 s */
    struct det_intensity restarts;      /* of one worker: 5 in 5 minutes, then it stays down */
    struct det_intensity circuit;       /* failures of children: 5 in 5 minutes */
    struct det_backoff circuit_backoff; /* 1 s doubling to 60 s */
    struct det_intensity panics;        /* 3 in 5 minutes, then the worker is paused until they are
                                         * older */
    uint32_t action_threads;            /* 10; started on demand */
    uint32_t action_queue;              /* actions that wait for a thread: 1024; more are retried
                                         * later */
    uint32_t collector_threads;         /* 16; started on demand */
    uint32_t hung_max;         /* abandoned threads of either kind: 128; further calls wait */
    uint32_t workers_max;      /* 1,000,000 */
    uint64_t heartbeat;        /* ticks between two DET_WORKER_EVENT_HEARTBEAT: 100 */
    uint64_t deltas_max;       /* deltas kept in the store: 100,000 */
    uint64_t deltas_bytes_max; /* bytes of deltas kept: 64 MiB */
    det_time deltas_age_max;   /* 7 days */
    det_time compact_every;    /* 1 minute; DET_NEVER: another program compacts */
};

/* Events for logs and metrics; worker_events.def has the list. On the loop; texts are borrowed for
 * the call. */
enum det_worker_event_kind {
#define DET_WORKER_EVENT(name, wire, level, text) DET_WORKER_EVENT_##name,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
};
struct det_worker_event {
    enum det_worker_event_kind kind;
    det_time at;   /* monotonic */
    det_time wall; /* wall time, taken with `at` */
    const struct det_worker_identity *identity;
    const char *from, *to; /* states */
    const char *action;
    const char *reason;
    int code;
    uint64_t number; /* attempts, ticks or milliseconds; see the list */
    det_time took;
};
/* "state_transition", ... */
DET_API const char *det_worker_event_name(enum det_worker_event_kind kind);

/* A value that all workers inherit by name: det_worker_inherited(). */
struct det_provided {
    const char *name;
    void *thing;
};

struct det_workers_options {
    struct det_world *world; /* NULL: the real one, or that of `loop` */
    const struct det_allocator *allocator;
    struct det_loop *loop;   /* your own loop; NULL: the supervisor starts a thread */
    struct det_store *store; /* borrowed; NULL: a memory store, lost by
                              * det_workers_close() */
    const char *name;        /* name of the root; NULL: "root" */
    const struct det_worker_kind *const *kinds; /* NULL at the end; checked */
    const struct det_provided *provided;        /* `name` NULL at the end; NULL: none */
    const char *globals;                        /* YAML, a map: {{ .global.x }}; NULL: none */
    struct det_worker_limits limits;
    bool is_paused; /* no automatic ticks: call det_workers_tick() */
    /* Called on the loop. Must not use the workers. */
    void (*on_event)(void *user, const struct det_worker_event *event);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a supervisor with its root, a worker of the built-in kind "application". With a store,
 * workers that det_workers_upsert() created earlier are restored. */
DET_API int det_workers_open(
    const struct det_workers_options *options, struct det_workers **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Stops if necessary, and waits, including for abandoned threads. Not from a callback; with your
 * own loop, on the thread that turns it. */
DET_API void det_workers_close(struct det_workers *workers);
DET_SCOPED_CLOSE(workers)

/* Sets the desired tree as YAML (docs/formats/workers.md): `children`, `variables`, `location`.
 * Replaces the previous one; children are identified by name. DET_ERR_MALFORMED, DET_ERR_INVALID
 * with place, reason and remedy: nothing has changed. A child with an invalid kind or config is not
 * such an error: it is created if possible, and reports the problem. */
DET_API int det_workers_apply(
    struct det_workers *workers, const char *yaml, struct det_error *reterr) DET_MUST_CHECK;
/* Sets {{ .global.x }} of all workers: YAML, a map. */
DET_API int det_workers_set_globals(
    struct det_workers *workers, const char *yaml, struct det_error *reterr) DET_MUST_CHECK;

/* Creates or changes a child manually, beside those of the parent's spec. It is removed and created
 * again with its parent. `parent` is an id; NULL: the root. Recorded when this returns 0.
 * DET_ERR_NOT_FOUND: the parent, the kind; DET_ERR_EXISTS: the parent's own spec has a child of
 * this name; DET_ERR_INVALID: the spec, derive; DET_ERR_LIMIT: too deep, too many, or its path is
 * too long. */
DET_API int det_workers_upsert(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    struct det_error *reterr) DET_MUST_CHECK;
/* Stops a manually created worker and removes it with its subtree; does not wait. A worker that its
 * parent's spec also requests stays. DET_ERR_NOT_FOUND: no such worker; DET_ERR_INVALID: it was not
 * created manually, but is in the spec of its parent. */
DET_API int det_workers_delete(
    struct det_workers *workers, const char *id, struct det_error *reterr) DET_MUST_CHECK;

enum det_freshness {
    DET_FRESHNESS_UNKNOWN, /* no worker with this id */
    DET_FRESHNESS_NEVER,   /* no observation yet */
    DET_FRESHNESS_STALE,
    DET_FRESHNESS_FRESH,
};
/* A copy of a worker's status. */
struct det_worker_status {
    char id[DET_WORKER_PATH_MAX + 1], path[DET_WORKER_PATH_MAX + 1];
    char name[DET_WORKER_NAME_MAX + 1], kind[DET_WORKER_NAME_MAX + 1];
    char state[DET_WORKER_NAME_MAX + 1];
    char reason[DET_WORKER_REASON_MAX + 1];
    char degraded_by[DET_WORKER_REASON_MAX + 1]; /* "": nothing */
    char life[DET_WORKER_NAME_MAX + 1]; /* "live", or the reason for not ticking it: "waiting",
                                         * "opening", "leaving", "closing", "down" */
    enum det_phase phase;
    enum det_freshness freshness;
    det_time since;    /* wall time at which it entered its state */
    det_time observed; /* wall time at which the observation began; 0: never */
    uint32_t depth, child_count;
    bool stop_wanted, shutdown_wanted, is_disabled, is_circuit_open, is_action_pending, is_dynamic;
    struct det_worker_counts counts;
};
/* Copies the status of a worker. `ret_observed`, which may be NULL, receives the observed state, of
 * the type `record`. DET_ERR_NOT_FOUND; DET_ERR_INVALID: the kind has another observed record. */
DET_API int det_workers_get(
    struct det_workers *workers, const char *id, const struct det_record *record,
    struct det_worker_status *ret, void *ret_observed, struct det_error *reterr) DET_MUST_CHECK;
/* Visits all workers, parents before children; on the loop. `visit` must not use the workers; a
 * non-zero return value ends the walk and is returned. */
DET_API int det_workers_each(
    struct det_workers *workers, int (*visit)(void *user, const struct det_worker_status *status),
    void *user) DET_MUST_CHECK;
/* Restarts, disables or enables a worker. Disabling is recorded when this returns 0, and persists
 * across restarts of the program, until the worker is enabled or removed. It also disables the
 * subtree. DET_ERR_NOT_FOUND; DET_ERR_REFUSED: its own spec disables it; or an error of the store:
 * nothing has changed. */
enum det_worker_order {
    DET_WORKER_ORDER_RESTART,
    DET_WORKER_ORDER_DISABLE,
    DET_WORKER_ORDER_ENABLE,
};
DET_API int det_workers_order(
    struct det_workers *workers, const char *id, enum det_worker_order order,
    struct det_error *reterr) DET_MUST_CHECK;

/* Runs one tick now: for tests, with options.is_paused. On the loop. */
DET_API void det_workers_tick(struct det_workers *workers);
/* Totals as of the last complete tick. `tick_took` is the time of that tick on the loop, over all
 * of its slices. */
struct det_workers_summary {
    uint64_t ticks;
    uint32_t workers, by_phase[5], stale, degraded, circuits_open, down;
    uint32_t actions_running, actions_queued, hung;
    det_time tick_took, tick_took_max;
    uint32_t threads; /* threads for observations and actions, including abandoned ones */
    uint64_t observations, observations_failed;
};
DET_API void det_workers_summary(struct det_workers *workers, struct det_workers_summary *ret);

/* Stops all workers and waits. 0: all reached STOPPED in time; DET_ERR_TIMEOUT: some were taken
 * down, and `reterr` names the first. Any thread; on the thread of your own loop this turns that
 * loop. */
DET_API int det_workers_stop(struct det_workers *workers, struct det_error *reterr) DET_MUST_CHECK;
/* Non-blocking variant of det_workers_stop(). A second call takes the remaining workers down at
 * once. */
DET_API void det_workers_cancel(struct det_workers *workers);

DET_END
#endif
