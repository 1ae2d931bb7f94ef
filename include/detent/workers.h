/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers.h - runs a tree of workers (worker.h): one thread decides for all of them, a few threads
 * observe and act.
 *
 *     tick, for each worker, parents before children, siblings in the order of their specs:
 *
 *       derive      its config, variables and location changed? a new desired state, recorded
 *                   before it counts; one that is refused leaves the last good one, and a reason
 *       fresh?      an observation older than 10 s pauses it, one older than 20 s restarts its
 *                   collector, at most 3 times; then it is shut down
 *       gate        after an action: until an observation that began after the action's end
 *       next        decides: the state, the action, the reason
 *       children    created, changed, removed
 *
 * A worker that is asked to stop goes through its own states to STOPPED. A wrong config, old
 * observations, the gate or an open circuit do not hinder it. One that does not arrive in time is
 * taken down: children before parents, siblings at the same time, and each level has the time of
 * the levels below it on top of its own.
 *
 * What goes wrong stays where it went wrong:
 *   - an action that fails is tried again after a growing, jittered delay, if next() still wants
 *     it; until then next() goes on being asked;
 *   - an action or a collect that does not return is reported at twice its timeout and abandoned at
 *     three times: its thread is replaced, and a late result is ignored;
 *   - a worker that asks for a restart gets it after a growing delay; too often, and its parent's
 *     circuit takes note;
 *   - children that fail too often in a window open the circuit of their parent: that subtree is
 *     paused, and tried again after a growing delay; others do not notice.
 *
 * Where there is a store, identities, desired and observed states are documents in it
 * (driver/documents.h), with every change as a delta.
 *
 * The loop owns everything. Calls from other threads are queued to it and wait for the answer. */
#ifndef DETENT_WORKERS_H
#define DETENT_WORKERS_H

#include <detent/loop.h>
#include <detent/policy.h>
#include <detent/store.h>
#include <detent/worker.h>

DET_BEGIN

struct det_workers;

/* How patient the supervisor is. 0 is the default in each; det_workers_open() refuses what makes no
 * sense together, with the reason: observe_every < stale_after < collector_timeout,
 * tick <= observe_every, observe_timeout < stale_after. */
struct det_worker_limits {
    det_time tick;            /* 100 ms */
    det_time observe_every;   /* 1 s; with up to a tenth of chance, so that not all come at once */
    det_time observe_timeout; /* 2.2 s */
    det_time stale_after;     /* 10 s */
    det_time collector_timeout;         /* 20 s */
    uint32_t collector_restarts_max;    /* 3 */
    det_time stop_grace;                /* 5 s for each level of the tree */
    det_time restart_grace;             /* 30 s to walk to STOPPED, then it is taken down */
    det_time action_timeout;            /* 30 s, from the start of its run */
    struct det_backoff action_backoff;  /* 1 s doubling to 60 s, jittered */
    struct det_backoff restart_backoff; /* 1 s doubling to 60 s */
    struct det_intensity restarts;      /* of one worker: 5 in 5 minutes, then it stays down */
    struct det_intensity circuit;       /* failures of children: 5 in 5 minutes */
    struct det_backoff circuit_backoff; /* 1 s doubling to 60 s */
    struct det_intensity panics;        /* 3 in 5 minutes, then it is paused till they are old */
    uint32_t action_threads;            /* 10; each starts when it is needed */
    uint32_t action_queue;              /* waiting for a thread: 1024; more is tried again later */
    uint32_t collector_threads;         /* 16; each starts when it is needed */
    uint32_t hung_max;         /* of each of the two: threads that are given up: 128; more wait */
    uint32_t workers_max;      /* 1,000,000 */
    uint64_t heartbeat;        /* ticks between two DET_WORKER_EVENT_HEARTBEAT: 100 */
    uint64_t deltas_max;       /* kept in the store: 100,000 */
    uint64_t deltas_bytes_max; /* of them: 64 MiB */
    det_time deltas_age_max;   /* 7 days */
    det_time compact_every;    /* 1 minute; DET_NEVER: another program does */
};

/* What happened, for logs and metrics: the list is worker_events.def. On the loop; texts are
 * borrowed for the call. */
enum det_worker_event_kind {
#define DET_WORKER_EVENT(name, wire, level, text) DET_WORKER_EVENT_##name,
#include <detent/worker_events.def>
#undef DET_WORKER_EVENT
};
struct det_worker_event {
    enum det_worker_event_kind kind;
    det_time at;   /* monotonic */
    det_time wall; /* of the same moment */
    const struct det_worker_identity *identity;
    const char *from, *to; /* states */
    const char *action;
    const char *reason;
    int code;
    uint64_t number; /* what it counts: attempts, ticks, milliseconds; see the list */
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
    struct det_loop *loop;   /* yours; NULL: a thread of its own */
    struct det_store *store; /* yours; NULL: nothing is recorded, but det_workers_dump() still is
                                there, from a store in memory */
    const char *name;        /* of the root; NULL: "root" */
    const struct det_worker_kind *const *kinds; /* NULL at the end; checked */
    const struct det_provided *provided;        /* `name` NULL at the end; NULL: none */
    const char *globals;                        /* YAML, a map: {{ .global.x }}; NULL: none */
    struct det_worker_limits limits;
    bool is_paused; /* does not tick by itself: det_workers_tick() does */
    /* On the loop. It must not use the workers. */
    void (*on_event)(void *user, const struct det_worker_event *event);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Opens a supervisor with its root, a worker of the built-in kind "application". With a store, the
 * workers that det_workers_upsert() created are there again. */
DET_API int det_workers_open(
    const struct det_workers_options *options, struct det_workers **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Stops if that was not done, and waits; also for threads that were given up. Not from a callback;
 * with a loop of yours, on the thread that turns it. */
DET_API void det_workers_close(struct det_workers *workers);
DET_SCOPED_CLOSE(workers)

/* Sets the desired tree as YAML (docs/formats/workers.md): `children`, `variables`, `location`.
 * Replaces the previous one; children are identified by name. DET_ERR_MALFORMED, DET_ERR_INVALID
 * with place, reason and remedy: then nothing has changed. A child whose kind or config is wrong is
 * not such an error: it is made, if it can be, and says so. */
DET_API int det_workers_apply(
    struct det_workers *workers, const char *yaml, struct det_error *reterr) DET_MUST_CHECK;
/* {{ .global.x }} of all of them, YAML, a map. */
DET_API int det_workers_set_globals(
    struct det_workers *workers, const char *yaml, struct det_error *reterr) DET_MUST_CHECK;

/* Creates or changes a child manually, beside those of the parent's spec. It is removed and created
 * again with its parent. `parent` is an id; NULL: the root. Recorded when this returns 0.
 * DET_ERR_NOT_FOUND: the parent, the kind; DET_ERR_EXISTS: the parent's own spec has one of this
 * name; DET_ERR_INVALID: the spec, derive; DET_ERR_LIMIT: too deep, too many, or its path is too
 * long. */
DET_API int det_workers_upsert(
    struct det_workers *workers, const char *parent, const struct det_child_spec *spec,
    struct det_error *reterr) DET_MUST_CHECK;
/* Asks a manually created worker to stop and removes it, with those below it; returns before they
 * have stopped. One that its parent's spec wants too stays. DET_ERR_NOT_FOUND: no such worker;
 * DET_ERR_INVALID: it was not created manually, but is in the spec of its parent. */
DET_API int det_workers_delete(
    struct det_workers *workers, const char *id, struct det_error *reterr) DET_MUST_CHECK;

enum det_freshness {
    DET_FRESHNESS_UNKNOWN, /* there is no worker of this id */
    DET_FRESHNESS_NEVER,   /* nothing was observed yet */
    DET_FRESHNESS_STALE,
    DET_FRESHNESS_FRESH,
};
/* One worker, copied. */
struct det_worker_status {
    char id[DET_WORKER_PATH_MAX + 1], path[DET_WORKER_PATH_MAX + 1];
    char name[DET_WORKER_NAME_MAX + 1], kind[DET_WORKER_NAME_MAX + 1];
    char state[DET_WORKER_NAME_MAX + 1];
    char reason[DET_WORKER_REASON_MAX + 1];
    char degraded_by[DET_WORKER_REASON_MAX + 1]; /* "": nothing */
    char life[DET_WORKER_NAME_MAX + 1]; /* "live", or what keeps it from being ticked: "waiting",
                                           "opening", "leaving", "closing", "down" */
    enum det_phase phase;
    enum det_freshness freshness;
    det_time since;    /* wall: when it entered its state */
    det_time observed; /* wall: when the observation began; 0: never */
    uint32_t depth, child_count;
    bool stop_wanted, shutdown_wanted, is_disabled, is_circuit_open, is_action_pending, is_dynamic;
    struct det_worker_counts counts;
};
/* DET_ERR_NOT_FOUND. `ret_observed` of the kind's record may be NULL. */
DET_API int det_workers_get(
    struct det_workers *workers, const char *id, struct det_worker_status *ret,
    const struct det_record *record, void *ret_observed) DET_MUST_CHECK;
/* Visits all, parents before children; on the loop. `visit` must not use the workers; its non-zero
 * answer ends it and is returned. */
DET_API int det_workers_each(
    struct det_workers *workers, int (*visit)(void *user, const struct det_worker_status *status),
    void *user) DET_MUST_CHECK;
/* Restarts, disables or enables a worker. That it is disabled is recorded when this returns 0, and
 * holds in the next run of the program too, until it is enabled or removed. The workers below a
 * disabled one are disabled too. DET_ERR_NOT_FOUND; DET_ERR_REFUSED: its own spec disables it; or
 * what the store says: then nothing has changed. */
enum det_worker_order {
    DET_WORKER_ORDER_RESTART,
    DET_WORKER_ORDER_DISABLE,
    DET_WORKER_ORDER_ENABLE,
};
DET_API int det_workers_order(
    struct det_workers *workers, const char *id, enum det_worker_order order) DET_MUST_CHECK;

/* Runs one tick now: for tests, and with options.is_paused. On the loop. */
DET_API void det_workers_tick(struct det_workers *workers);
/* Totals as of the last complete tick. `tick_took` is the time of that tick on the loop, in all of
 * its slices. */
struct det_workers_summary {
    uint64_t ticks;
    uint32_t workers, by_phase[5], stale, degraded, circuits_open, down;
    uint32_t actions_running, actions_queued, hung;
    det_time tick_took, tick_took_max;
    uint32_t threads; /* of observing and acting, those that were given up included */
    uint64_t observations, observations_failed;
};
DET_API void det_workers_summary(struct det_workers *workers, struct det_workers_summary *ret);

/* Stops all workers and waits. 0: all of them reached STOPPED in time; DET_ERR_TIMEOUT: some were
 * taken down, and `reterr` names the first. From any thread; on the thread of your loop it turns
 * that loop. */
DET_API int det_workers_stop(struct det_workers *workers, struct det_error *reterr) DET_MUST_CHECK;
/* Non-blocking det_workers_stop(). A second call takes down at once what is left. */
DET_API void det_workers_cancel(struct det_workers *workers);

DET_END
#endif
