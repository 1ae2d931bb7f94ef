/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.h - a worker and its parts: the requests for children, its runs, its incarnation, its
 * history. */
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

/* A request for a worker. */
enum det_child_request_origin {
    DET_REQUEST_KIND,   /* children() of its parent */
    DET_REQUEST_YAML,   /* det_workers_apply() */
    DET_REQUEST_MANUAL, /* det_workers_upsert() */
};
struct det_child_request {
    struct det_list node;           /* in `requests` of the parent */
    const char *key;                /* key in the index of the parent: the name */
    struct det_child_request *same; /* in the index: of the same name and another origin */
    enum det_child_request_origin origin;
    char name[DET_WORKER_NAME_MAX + 1], kind[DET_WORKER_NAME_MAX + 1];
    uint64_t run_in; /* states of the parent; 0: all */
    char *states;    /* MANUAL: the names of those states, a newline after each; NULL: all */
    bool is_disabled;
    bool is_stateless;         /* its parent has none of the states that it runs in */
    bool is_changed;           /* the worker must take `spec` */
    bool is_refused;           /* its problem was reported */
    uint64_t round;            /* round of the parent in which it was last fulfilled */
    uint64_t hash;             /* covers its contents */
    struct det_user_spec spec; /* until the worker has taken it */
    struct det_list children;  /* YAML: requests for the worker to take */
};

/* A function that runs on a thread pool. */
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
    struct det_worker_context context; /* the argument of the user's function */
    struct det_workers *workers;
    struct det_worker *worker; /* NULL: abandoned */
    struct det_incarnation *incarnation;
    enum det_run_kind kind;
    uint16_t action;
    uint8_t lateness;  /* 1: cancelled, 2: stuck */
    uint64_t sequence; /* COLLECT: number of the observation */
    det_time timeout;
    det_time submitted_at, ended_at; /* monotonic */
    int code;
    bool has_panicked;
    bool has_lock; /* it holds det_worker_lock() */
    char text[DET_WORKER_REASON_MAX + 1];
    jmp_buf panic;
    struct det_run_metric *metrics; /* NULL: none yet */
    uint32_t metric_count;
    size_t size; /* size of the whole block */
    void *desired, *observed;
};

/* Limit of abandoned calls of a function in one life: then none is started until one returns. One
 * hanging worker costs a few threads, not all of them. */
#define DET_LOST_MAX 2

/* One life of a worker: the resources of its functions. */
struct det_incarnation {
    struct det_workers *workers;
    struct det_incarnation *parent; /* held; NULL: the root */
    const struct det_worker_kind *kind;
    struct det_worker_identity identity; /* copies */
    struct det_mutex *mutex;             /* det_worker_lock() */
    struct det_list provided;            /* struct det_offer */
    uint32_t holders;                    /* the worker, its runs, the incarnations below */
    bool is_open;                        /* close() is due */
    uint8_t lost_collects;               /* abandoned and not returned */
    uint8_t lost_actions[DET_WORKER_ACTIONS_MAX];
    struct det_worker *closing; /* is notified when it is closed; NULL: none */
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
    det_time again_at;   /* not before this time */
    det_time delay;      /* the last one */
    uint32_t failures;   /* consecutive */
};

/* Counts of a state of a worker. */
struct det_state_count {
    uint64_t entered;
    det_time total; /* without the current visit */
};

struct det_metric {
    struct det_metric *next;
    char name[DET_WORKER_NAME_MAX + 1];
    bool is_gauge;
    uint64_t count;
    double value;
};

/* A row of det_workers_history(). */
#define DET_HISTORY_FIRST 16
#define DET_HISTORY_KEPT  256
struct det_history_row {
    det_time wall;
    det_time took;
    const char *from, *to; /* states */
    const char *action;    /* NULL: a change of state */
    int code;
    char reason[]; /* may be "" */
};
struct det_history {
    uint64_t count;                /* total; also the number of the newest row, as the first is 1 */
    uint32_t room;                 /* grows to DET_HISTORY_KEPT */
    struct det_history_row **rows; /* a ring; each row has its own memory */
};

/* Rare data of a worker; created on demand. */
struct det_worker_faults {
    struct det_intensity_window *restarts, *panics, *failures;
    det_time panic_until; /* paused because of panics */
    uint8_t circuit;      /* enum circuit_state */
    uint32_t circuit_attempts;
    det_time circuit_at, circuit_delay; /* when it opened or probes; duration of that */
    det_time circuit_since;
    uint32_t open_failures; /* consecutive */
    uint32_t store_failures;
    det_time delay;                               /* the last delay, of restarts and openings */
    char rest_reason[DET_WORKER_REASON_MAX + 1];  /* why it rests */
    char panic_reason[DET_WORKER_REASON_MAX + 1]; /* reason of the last one */
};

/* Reasons to visit a worker beyond its tick. */
enum det_attention {
    DET_CHECK_DERIVE = 1,   /* its spec, or the scope above, may have changed */
    DET_CHECK_CHILDREN = 2, /* call children() */
    DET_CHECK_REQUESTS = 4, /* requests changed: reconcile */
    DET_CHECK_OBSERVED = 8, /* write the observed document */
    DET_CHECK_DESIRED = 16, /* write the desired document */
    DET_CHECK_VIEW = 32,    /* a child has changed: update the counts of the view of children */
    DET_CHECK_MORE = 64,    /* reconciling is under way: the next portion */
};

/* Conditions that make a subtree unhealthy: each worker counts its descendants with them. */
enum det_worker_condition {
    DET_CONDITION_DOWN,    /* seen.is_down */
    DET_CONDITION_STALE,   /* is_stale */
    DET_CONDITION_CIRCUIT, /* seen.is_circuit_open */
    DET_CONDITION_COUNT
};

/* Reasons for a worker to rest. */
struct det_worker_rest {
    bool is_disabled;    /* by its spec */
    bool is_ordered_off; /* by an order */
    bool is_off;         /* by either, or an ancestor is */
    bool is_paused;      /* a circuit above it, or its own, is open */
};

/* The children of a worker. */
struct det_worker_children {
    struct det_worker *first, *last;
    uint32_t count;
    uint32_t active; /* neither waiting, nor down, nor gone */
    struct det_children_view view;
    const struct det_child_view **views; /* `count` elements, room for `view_room` */
    uint32_t view_room;
    bool has_unclaimed; /* the store has children of an earlier run that may be unrequested */
};

/* Conditions that make the subtree of a worker unhealthy. */
struct det_worker_health {
    uint32_t below[DET_CONDITION_COUNT]; /* number of descendants with the condition */
    uint8_t conditions;                  /* its own, a bit for each */
};

/* The names of a worker, its place in the tree, and its creation time. */
struct det_worker_place {
    const char *key; /* key of the map: the id */
    char *id_text, *path_text, *name_text;
    uint16_t depth, height;
    enum det_child_request_origin origin;
    det_time made_at; /* wall */
};

/* The actions after the stop of a worker, and the deadlines. */
struct det_worker_leaving {
    struct det_incarnation *closing; /* its close() runs; NULL: none */
    bool is_restart_wanted;          /* restart after closing */
    bool is_unwanted;                /* remove after closing */
    bool is_forgotten;               /* not requested: drop its documents, too */
    bool is_deleted;                 /* the worker, or an ancestor, was deleted manually */
    bool has_to_rest;                /* stay down after closing */
    bool was_forced;
    det_time open_at;
    det_time stop_at;  /* by the clock of stops: when it is taken down; DET_NEVER */
    det_time leave_at; /* the same clock; LEAVING: when running code is abandoned */
};

/* The desired state of a worker: derived, recorded, then used. */
struct det_worker_desire {
    void *value;               /* as seen by next() */
    uint64_t scope_generation; /* of the scope of its children */
    uint64_t scope_seen;       /* of its parent's scope */
    bool is_there;
    bool is_derived;  /* `hash` is valid, whatever the result of the derivation */
    bool is_pending;  /* its document is on its way to the store */
    bool is_new;      /* `next` replaces the current one when it is recorded */
    bool is_degraded; /* see `degraded_by` */
    uint64_t hash;
    void *next;
    det_time derive_at;            /* not before this time, after a failure of the store */
    struct det_scope_values scope; /* scope of its children, unless the spec is plain */
    char degraded_by[DET_WORKER_REASON_MAX + 1];
};

/* The requests for children of a worker, and the round that fulfils them. */
struct det_child_requests {
    struct det_list all;
    uint32_t count;
    struct det_map *index;         /* by name; NULL: few requests */
    uint64_t round;                /* of reconciling */
    struct det_list *round_at;     /* the next request of the round; NULL: no round */
    struct det_worker *round_last; /* the last child of the round; NULL: none yet */
    bool is_round_sorted;          /* the children so far are in the order of the requests */
    struct det_list maker;         /* in `makers`, while requests of a round are left */
    struct det_worker *first_new;  /* the first unvisited child; NULL: none */
    uint64_t hash;                 /* of those of its kind; 0: children() was not called yet */
    uint64_t refused_hash;         /* hash of the reported problems; 0: none */
};

/* Observations of a worker. */
struct det_observing {
    void *value;          /* as seen by next() */
    det_time observed_at; /* monotonic, the begin of the observation; 0: never */
    uint64_t sequence;
    uint64_t gate;                           /* the first observation that opens it */
    det_time stale_after, collector_timeout; /* the limits, or multiples of its interval */
    bool is_stale;
    bool has_error;          /* see `error`; read in each tick */
    struct det_run *collect; /* or the run of open(); NULL: none */
    struct det_run *spare;   /* to be reused */
    uint64_t collect_sequence;
    uint64_t eager_sequence; /* the first one that knows the new desired state; 0: done */
    bool is_collector_new;   /* it was restarted: abandoned runs do not prevent its first run */
    det_time collect_at;     /* time of the next one */
    det_time collector_restarted_at;
    det_time live_since;
    uint32_t failures; /* consecutive */
    bool is_short;     /* the last collect lacked descriptors or memory */
    char error[DET_WORKER_REASON_MAX + 1];
};

/* Documents of a worker other than the desired one, on their way to the store. */
struct det_worker_documents {
    bool is_observed_pending;
    bool is_identity_pending;
    det_time record_at; /* not before this time, after a failure of the store */
};

/* Actions of a worker, and their counts. */
struct det_acting {
    uint32_t running; /* running actions */
    struct det_action *actions;
    struct det_state_count *state_counts;
    struct det_action_end last;
    struct det_history *history;
    struct det_metric *metrics;
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of their use */
struct det_worker {
    /* Fields that each tick reads come first. */
    const struct det_worker_kind *kind;
    struct det_worker *parent, *next, *previous;
    struct det_workers *workers;
    det_time due;       /* earliest time that it waits for */
    det_time since;     /* monotonic */
    uint32_t attention; /* enum det_attention */
    uint16_t state;
    uint8_t life; /* enum life_state */
    bool shutdown_wanted;
    bool is_settling; /* it stops, and a cancelled action may not be over */
    uint8_t haste;    /* number of states that may follow without a tick */
    struct det_worker_rest rest;
    uint64_t run_in;
    struct det_worker_faults *faults;
    struct det_worker_children children;
    struct det_worker_health health;
    struct det_observing observing;
    struct det_worker_desire desire;
    struct det_acting acting;
    char reason[DET_WORKER_REASON_MAX + 1];

    struct det_worker_identity identity;
    struct det_worker_place place;
    struct det_child_view seen; /* as seen by its parent */
    det_time since_wall;        /* `since`, by the wall clock of that moment */
    struct det_incarnation *incarnation;
    struct det_worker_leaving leaving;
    struct det_worker_counts counts;
    struct det_user_spec spec;
    struct det_child_requests requests;
    struct det_worker_documents documents;
    struct det_worker *after; /* while the children of its parent are sorted */
    uint64_t mark;            /* the round of its parent that has seen it */
    size_t size;              /* size of the block */
};

#endif
