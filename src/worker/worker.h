/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.h - a worker from inside, with what belongs to it: the requests for children, what runs of
 * it, one life of it, its history. */
#ifndef DET_WORKER_WORKER_H
#define DET_WORKER_WORKER_H

#include <setjmp.h>

#include <detent/workers.h>

#include "base/list.h"
#include "base/map.h"
#include "os/os.h"
#include "worker/derive.h"
#include "worker/spec.h"
#include "worker/worker_threads.h"

struct det_worker;
struct det_incarnation;

/* Somebody wants a worker to be. */
enum det_child_request_origin {
    DET_REQUEST_KIND,   /* children() of its parent */
    DET_REQUEST_YAML,   /* det_workers_apply() */
    DET_REQUEST_MANUAL, /* det_workers_upsert() */
};
struct det_child_request {
    struct det_list node;           /* in `requests` of the parent */
    const char *key;                /* of the index of the parent: the name */
    struct det_child_request *same; /* in the index: of the same name and another origin */
    enum det_child_request_origin origin;
    char name[DET_WORKER_NAME_MAX + 1], kind[DET_WORKER_NAME_MAX + 1];
    uint64_t run_in; /* states of the parent; 0: all */
    char *states;    /* MANUAL: the names of those states, a newline behind each; NULL: all */
    bool is_disabled;
    bool is_stateless;         /* it has states to run in, and its parent has none of them */
    bool is_changed;           /* `spec` is for the worker to take */
    bool is_refused;           /* was told that it is wrong */
    uint64_t round;            /* of the parent, in which it was last fulfilled */
    uint64_t hash;             /* of all that was said */
    struct det_user_spec spec; /* until the worker has taken it */
    struct det_list children;  /* YAML: requests for the worker to take */
};

/* What runs on a thread pool. */
enum det_run_kind {
    DET_RUN_OPEN,
    DET_RUN_COLLECT,
    DET_RUN_ACTION,
    DET_RUN_CLOSE,
};
#define DET_RUN_METRICS_MAX 64
struct det_run_metric {
    char name[DET_WORKER_NAME_MAX + 1];
    bool is_gauge;
    uint64_t count;
    double value;
};
struct det_run {
    struct det_worker_threads_job job;
    struct det_worker_context context; /* of the user's function */
    struct det_workers *workers;
    struct det_worker *worker; /* NULL: it was given up */
    struct det_incarnation *incarnation;
    enum det_run_kind kind;
    uint16_t action;
    uint8_t told;      /* how late it is: 1 cancelled, 2 stuck */
    uint64_t sequence; /* COLLECT: which observation it is */
    det_time timeout;
    det_time submitted_at, ended_at; /* monotonic */
    int code;
    bool has_panicked;
    bool has_lock; /* det_worker_lock() */
    char text[DET_WORKER_REASON_MAX + 1];
    jmp_buf panic;
    struct det_run_metric *metrics; /* NULL: none yet */
    uint32_t metric_count;
    size_t size; /* of all of it */
    void *desired, *observed;
};

/* So many calls of a function may be lost in one life: then none is begun until one is back. One
 * worker that hangs costs a few threads, not all of them. */
#define DET_LOST_MAX 2

/* One life of a worker: what its functions work with. */
struct det_incarnation {
    struct det_workers *workers;
    struct det_incarnation *parent; /* held; NULL: the root */
    const struct det_worker_kind *kind;
    struct det_worker_identity identity; /* copies */
    struct det_mutex *mutex;             /* det_worker_lock() */
    struct det_list provided;            /* struct det_offer */
    uint32_t holders;                    /* the worker, its runs, the incarnations below */
    bool is_open;                        /* close() is due */
    uint8_t lost_collects;               /* that were given up and are not back */
    uint8_t lost_actions[DET_WORKER_ACTIONS_MAX];
    struct det_worker *closing; /* is told when it is closed; NULL: nobody waits */
    size_t size;
    void *deps;
};
struct det_offer {
    struct det_list node;
    char name[DET_WORKER_NAME_MAX + 1];
    void *thing;
};

/* An action of a worker. */
struct det_action {
    struct det_run *run; /* NULL: it does not run */
    det_time again_at;   /* not before */
    det_time delay;      /* the last one */
    uint32_t failures;   /* in a row */
};

/* What is counted about a state of a worker. */
struct det_state_count {
    uint64_t entered;
    det_time total; /* without the visit that goes on */
};

struct det_metric {
    struct det_metric *next;
    char name[DET_WORKER_NAME_MAX + 1];
    bool is_gauge;
    uint64_t count;
    double value;
};

/* What happened to a worker, for det_workers_history(). */
#define DET_HISTORY_FIRST 16
#define DET_HISTORY_KEPT  256
struct det_happened {
    det_time wall;
    det_time took;
    const char *from, *to; /* states */
    const char *action;    /* NULL: a change of state */
    int code;
    char reason[]; /* may be "" */
};
struct det_history {
    uint64_t count;             /* ever; the number of the newest, as the first is 1 */
    uint32_t room;              /* grows to DET_HISTORY_KEPT */
    struct det_happened **rows; /* a ring; each in memory of its own size */
};

/* What rarely happens to a worker; made when it does. */
struct det_worker_faults {
    struct det_intensity_window *restarts, *panics, *failures;
    det_time panic_until; /* paused by panics */
    uint8_t circuit;      /* enum circuit_state */
    uint32_t circuit_attempts;
    det_time circuit_at, circuit_delay; /* when it opened or probes; how long it does */
    det_time circuit_since;
    uint32_t open_failures; /* in a row */
    uint32_t store_failures;
    det_time delay;                               /* the last one, of restarts and openings */
    char rest_reason[DET_WORKER_REASON_MAX + 1];  /* why it has to rest */
    char panic_reason[DET_WORKER_REASON_MAX + 1]; /* the last one */
};

/* Reasons to look at a worker beyond asking it. */
enum det_attention {
    DET_LOOK_DERIVE = 1,   /* its spec, or the scope above, may have changed */
    DET_LOOK_CHILDREN = 2, /* children() is to be asked */
    DET_LOOK_REQUESTS = 4, /* requests changed: reconcile */
    DET_LOOK_OBSERVED = 8, /* the observed document is to be written */
    DET_LOOK_DESIRED = 16, /* the desired document is to be written */
    DET_LOOK_VIEW = 32,    /* a child has changed: counts of the view of children */
    DET_LOOK_MORE = 64,    /* reconciling is under way: the next portion */
};

/* What makes a subtree unhealthy: each worker counts those below it that have it. */
enum det_ailment {
    DET_AILMENT_DOWN,    /* seen.is_down */
    DET_AILMENT_STALE,   /* is_stale */
    DET_AILMENT_CIRCUIT, /* seen.is_circuit_open */
    DET_AILMENT_COUNT
};

/* Whether a worker is to rest. */
struct det_worker_rest {
    bool is_disabled;    /* by its spec */
    bool is_ordered_off; /* by an order */
    bool is_off;         /* by either, or one above it is */
    bool is_paused;      /* a circuit above it, or its own, is open */
};

/* The children of a worker. */
struct det_worker_children {
    struct det_worker *first, *last;
    uint32_t count;
    uint32_t active; /* that are neither gone nor at rest */
    struct det_children_view view;
    const struct det_child_view **views; /* `count` of them, room for `view_room` */
    uint32_t view_room;
    bool has_unclaimed; /* the store has some of an earlier run that it may not want */
};

/* What makes the subtree of a worker unhealthy. */
struct det_worker_health {
    uint32_t below[DET_AILMENT_COUNT]; /* descendants that have it */
    uint8_t ailments;                  /* its own, a bit for each */
};

/* The names of a worker, where it stands in the tree, and when it came there. */
struct det_worker_place {
    const char *key; /* of the map: the id */
    char *id_text, *path_text, *name_text;
    uint16_t depth, height;
    enum det_child_request_origin origin;
    det_time made_at; /* wall */
};

/* What is to become of a worker when it has stopped, and how long that may take. */
struct det_worker_leaving {
    struct det_incarnation *closing; /* whose close() runs; NULL: none does */
    bool is_restart_wanted;          /* closed, it begins anew */
    bool is_unwanted;                /* closed, it goes */
    bool is_forgotten;               /* nobody requests it: its documents go, too */
    bool is_deleted;                 /* it, or one above it, by hand */
    bool has_to_rest;                /* closed, it stays down */
    bool was_forced;
    det_time open_at;
    det_time stop_at;  /* of the clock of stops: then it is taken down; DET_NEVER */
    det_time leave_at; /* of the same; LEAVING: then what runs is given up */
};

/* The desired state of a worker: derived, recorded, then used. */
struct det_worker_desire {
    void *value; /* as next() sees it */
    bool is_there;
    struct det_scope_values scope; /* of its children, unless the spec is plain */
    uint64_t scope_generation;     /* of what its children see */
    uint64_t scope_seen;           /* of its parent's */
    uint64_t hash;
    bool is_derived; /* `hash` counts, whether it went well or not */
    void *next;
    bool is_pending;    /* its document is on its way to the store */
    bool is_new;        /* and when it is there, `next` counts */
    det_time derive_at; /* not before, as the store did not take it */
    bool is_degraded;   /* `degraded_by` says why */
    char degraded_by[DET_WORKER_REASON_MAX + 1];
};

/* The requests for children of a worker, and the round that fulfils them. */
struct det_child_requests {
    struct det_list all;
    uint32_t count;
    struct det_map *index;         /* by name; NULL: they are few */
    uint64_t round;                /* of reconciling */
    struct det_list *round_at;     /* the next request of it; NULL: none is under way */
    struct det_worker *round_last; /* the last child of it; NULL: none yet */
    bool is_round_sorted;          /* so far its children stand in the order of the requests */
    struct det_list maker;         /* in `makers`, while requests of a round are left */
    struct det_worker *first_new;  /* the first child that nobody has visited; NULL: none */
    uint64_t hash;                 /* of those of its kind; 0: it was not asked yet */
    uint64_t refused_hash;         /* of what was wrong with them; 0: nothing */
};

/* Observations of a worker. */
struct det_observing {
    void *value;          /* as next() sees it */
    det_time observed_at; /* monotonic, the begin of the observation; 0: never */
    uint64_t sequence;
    uint64_t gate; /* the first observation that opens it */
    bool is_stale;
    struct det_run *collect; /* or the run of open(); NULL: none runs */
    struct det_run *spare;   /* to be used again */
    uint64_t collect_sequence;
    uint64_t eager_sequence; /* the first one that knows the new desired state; 0: it was there */
    bool is_collector_new;   /* it was restarted: what is lost does not count for its first run */
    det_time collect_at;     /* the next one is due */
    det_time collector_restarted_at;
    det_time live_since;
    det_time stale_after, collector_timeout; /* those of the limits, or what its interval needs */
    uint32_t failures;                       /* in a row */
    bool is_short; /* the last collect had no descriptor or memory: its collector is not to blame */
    char error[DET_WORKER_REASON_MAX + 1];
};

/* Documents of a worker other than the desired one, on their way to the store. */
struct det_worker_documents {
    bool is_observed_pending;
    bool is_identity_pending;
    det_time record_at; /* not before, as the store did not take it */
};

/* Actions of a worker, and what is counted about it. */
struct det_acting {
    uint32_t running; /* actions that run */
    struct det_action *actions;
    struct det_state_count *state_counts;
    struct det_action_end last;
    struct det_history *history;
    struct det_metric *metrics;
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of their use */
struct det_worker {
    /* What each tick looks at comes first. */
    const struct det_worker_kind *kind;
    struct det_worker *parent, *next, *previous;
    struct det_workers *workers;
    det_time due;       /* when something of it is due by time */
    det_time since;     /* monotonic */
    uint32_t attention; /* enum det_attention */
    uint16_t state;
    uint8_t life; /* enum life_state */
    bool shutdown_wanted;
    bool is_settling; /* it stops, and an action that was told to end may not be over */
    uint8_t haste;    /* so many states may follow each other without a tick */
    struct det_worker_rest rest;
    uint64_t run_in;
    struct det_worker_faults *faults;
    struct det_worker_children children;
    struct det_worker_health health;
    struct det_acting acting;
    struct det_observing observing;
    struct det_worker_desire desire;
    char reason[DET_WORKER_REASON_MAX + 1];

    struct det_worker_identity identity;
    struct det_worker_place place;
    struct det_child_view seen; /* by its parent */
    det_time since_wall;        /* `since`, by the wall clock of that moment */
    struct det_incarnation *incarnation;
    struct det_worker_leaving leaving;
    struct det_worker_counts counts;
    struct det_user_spec spec;
    struct det_child_requests requests;
    struct det_worker_documents documents;
    struct det_worker *after; /* while the children of its parent are sorted */
    uint64_t mark;            /* of the round of its parent that has seen it */
    size_t size;              /* of the block */
};

#endif
