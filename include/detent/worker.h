/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.h - what a user writes to keep a part of the world as its config wants it: a kind of
 * worker. workers.h runs them.
 *
 *     config --derive--> desired --+
 *                                  +--> next(view) --> goto a state | do an action | hold
 *     world --collect--> observed -+                                        |
 *       ^-------------------------------------------------------------------+
 *
 * A kind is a file of rows, link.worker, and a few functions; the template worker/define.h makes C
 * of the rows. What each function may do follows from what it is given:
 *
 *     next      sees a const view and nothing else: it decides, the same for the same view
 *     collect   looks at the world, on a thread, again and again; changes nothing in it
 *     actions   change the world, on a thread; do nothing when it is as wanted already; look at
 *               det_worker_is_cancelled(), and never try again by themselves
 *     derive    pure: from the config of the user to the desired state
 *     children  pure: from a view to the workers below this one
 *
 * A state changes because of what was observed, never because an action ended: actions can fail,
 * and can be wrong about themselves.
 *
 * A stop cannot be forgotten: each state says in its row where it goes when it is to stop, and
 * next() of a state that runs is not asked then. In a state of the phase STOPPED the worker is
 * removed, when it is to go, or rests; only those of the phase STOPPING are asked, and they lead
 * to STOPPED.
 *
 * Nothing here needs the library to be linked: a module (module.h) reaches it through what its
 * functions are given. */
#ifndef DETENT_WORKER_H
#define DETENT_WORKER_H

#include <detent/record.h>

DET_BEGIN

struct det_allocator;
struct det_worker_kind;

/* What a state means to observers. Healthy is RUNNING alone, operational are RUNNING and DEGRADED;
 * STOPPED is neither well nor ill. Each with its name. */
#define DET_PHASES(X)       \
    X(STOPPED, "stopped")   \
    X(STARTING, "starting") \
    X(RUNNING, "running")   \
    X(DEGRADED, "degraded") \
    X(STOPPING, "stopping")
enum det_phase {
#define DET_PHASE(name, text) DET_PHASE_##name,
    DET_PHASES(DET_PHASE)
#undef DET_PHASE
};

#define DET_WORKER_NAME_MAX    64  /* bytes of a name: [A-Za-z0-9._-] */
#define DET_WORKER_PATH_MAX    512 /* bytes of an id or a path */
#define DET_WORKER_REASON_MAX  160 /* bytes; what is longer is cut at a character */
#define DET_WORKER_STATES_MAX  64
#define DET_WORKER_ACTIONS_MAX 64
#define DET_WORKER_DEPTH_MAX   16 /* workers below workers */

/* Who a worker is. The id is the names from the root to it, "plant/press/valve", and so unique; the
 * path has the kinds as well, "plant(application)/press(machine)/valve(valve)". */
struct det_worker_identity {
    const char *id, *name, *kind, *path;
};

/* The last end of an action. */
struct det_action_end {
    const char *action; /* NULL: none has ended yet */
    det_time at;        /* monotonic */
    det_time took;
    int code; /* 0: succeeded; DET_ERR_TIMEOUT, DET_ERR_CANCELLED, its own error */
    char text[DET_WORKER_REASON_MAX + 1]; /* why it failed; else "" */
};

/* A worker as its parent sees it, as of now. */
struct det_child_view {
    const char *name, *kind, *state, *reason, *path;
    const char *action_error;  /* why its last action failed; "": it did not */
    const char *observe_error; /* the same of its last observation */
    enum det_phase phase;
    bool is_stale;        /* its observation is older than it may be */
    bool is_circuit_open; /* its subtree is paused, see workers.h */
    bool is_disabled;
    bool is_down; /* it was given up, or could not be begun: ill, though its phase is STOPPED */
};
struct det_children_view {
    const struct det_child_view *const *list; /* in the order of their specs */
    uint32_t count;
    /* How many of them. A child is healthy when its phase is RUNNING, its config is valid, and no
     * worker of its subtree is down. */
    uint32_t healthy, operational, stopped;
    uint32_t unhealthy; /* those that are neither healthy nor stopped: what is to worry about */
    uint32_t stale, circuits_open, down; /* of all descendants, at whatever depth */
};
/* True when there are no children. */
static inline bool det_children_all_healthy(const struct det_children_view *children)
{
    return children->healthy == children->count;
}
static inline bool det_children_all_operational(const struct det_children_view *children)
{
    return children->operational == children->count;
}
static inline bool det_children_all_stopped(const struct det_children_view *children)
{
    return children->stopped == children->count;
}

/* What the supervisor counts about a worker. All but `startups` are of this run of the program. */
struct det_worker_counts {
    uint64_t transitions;
    uint64_t observations;
    uint64_t startups;           /* how often it was begun, over all runs, this time included */
    uint32_t collector_restarts; /* since the last good observation */
    uint32_t restarts;
    uint64_t actions_done, actions_failed;
    uint32_t failures; /* actions that failed in a row, of whatever name */
};

/* What next() sees: frozen while it looks. The typed view of a kind points here as `all`. */
struct det_worker_view {
    const struct det_worker_kind *kind;
    const void *desired, *observed;
    bool stop_wanted;     /* it shuts down, is disabled, or its parent's state does not want it */
    bool shutdown_wanted; /* it is to go for good, or to begin anew */
    uint16_t state;
    det_time now;              /* monotonic */
    det_time wall;             /* of the same moment */
    det_time observed_at;      /* monotonic: when the observation began */
    det_time since;            /* monotonic: when it entered the state */
    const char *collect_error; /* why the last observation failed; NULL: it did not */
    const char *degraded_by;   /* a config that could not be derived, say; NULL: nothing */
    const struct det_worker_identity *identity;
    const struct det_worker_counts *counts;
    const struct det_action_end *last_action;
    const struct det_children_view *children;
    struct det_reason *scratch; /* for det_reason() */
};

/* A reason with values in it: `return link_hold(det_reason(view->all, "%u of %u", a, b))`. Lives
 * until next() returns. */
struct det_reason {
    const char *(*format)(struct det_reason *reason, const char *format, ...)DET_PRINTF(2, 3);
    char text[DET_WORKER_REASON_MAX + 1];
};
#define det_reason(view, ...) ((view)->scratch->format((view)->scratch, __VA_ARGS__))

/* What next() decided. Made by the constructors of the template only, so that a change of state and
 * an action never come together, and nothing comes without a reason. The reason is for people, as
 * of now; it is kept as a copy. */
enum det_next_kind {
    DET_NEXT_HOLD,
    DET_NEXT_GOTO,    /* `what` is a state, another one */
    DET_NEXT_DO,      /* `what` is an action */
    DET_NEXT_RESTART, /* all is lost: make it anew, dependencies too */
};
struct det_next {
    enum det_next_kind kind;
    uint16_t what;
    const char *reason;
};

struct det_worker_state {
    const char *name; /* on disk; lower_snake */
    enum det_phase phase;
    uint16_t on_stop; /* STARTING, RUNNING, DEGRADED: the state it goes to; else not looked at */
    struct det_next (*next)(const struct det_worker_view *view);
};

/* What functions that do I/O are given beside their own things: who they work for, whether to go
 * on, what to tell. Only for the call, and only on its thread. */
struct det_worker_context {
    const struct det_worker_calls *calls;
    const struct det_worker_identity *identity;
    struct det_world *world;
    const struct det_allocator *allocator;
    void *user;        /* of the options of the supervisor */
    det_time deadline; /* monotonic: when the call counts as hung; DET_NEVER: in open() */
};
struct det_worker_calls {
    bool (*is_cancelled)(struct det_worker_context *context);
    int (*wait)(struct det_worker_context *context, det_time deadline);
    void (*explain)(struct det_worker_context *context, const char *format, ...) DET_PRINTF(2, 3);
    void (*panic)(struct det_worker_context *context, const char *format, ...) DET_PRINTF(2, 3);
    void (*count)(struct det_worker_context *context, const char *name, uint64_t more);
    void (*gauge)(struct det_worker_context *context, const char *name, double value);
    void (*lock)(struct det_worker_context *context);
    void (*unlock)(struct det_worker_context *context);
    void (*provide)(struct det_worker_context *context, const char *name, void *thing);
    void *(*inherited)(struct det_worker_context *context, const char *name);
    int (*read)(
        struct det_worker_context *context, const char *id, const struct det_record *record,
        void *ret);
};

/* Asked to end: it takes too long, or the worker stops. */
static inline bool det_worker_is_cancelled(struct det_worker_context *context)
{
    return context->calls->is_cancelled(context);
}
/* Blocks until the monotonic deadline (0), or until it is cancelled (DET_ERR_CANCELLED). */
DET_MUST_CHECK static inline int det_worker_wait(
    struct det_worker_context *context, det_time deadline)
{
    return context->calls->wait(context, deadline);
}
/* Says why, and is `code`, negative: `return det_worker_fail(context, DET_ERR_IO, ...)`. */
#define det_worker_fail(context, code, ...) \
    ((context)->calls->explain(context, __VA_ARGS__), (code))
/* Leaves the function at once, from however deep: nothing in it is cleaned up. For what cannot be,
 * and must not take the program with it. Three in five minutes pause the worker. */
#define det_worker_panic(context, ...) ((context)->calls->panic(context, __VA_ARGS__))
/* Metrics of the worker; names are [a-z0-9_]. Counters grow over restarts of the worker. */
static inline void det_worker_count(
    struct det_worker_context *context, const char *name, uint64_t more)
{
    context->calls->count(context, name, more);
}
static inline void det_worker_gauge(
    struct det_worker_context *context, const char *name, double value)
{
    context->calls->gauge(context, name, value);
}
/* Actions and collect of one worker run at the same time: what they share in their dependencies is
 * touched between these two. One lock per worker; not for long. */
static inline void det_worker_lock(struct det_worker_context *context)
{
    context->calls->lock(context);
}
static inline void det_worker_unlock(struct det_worker_context *context)
{
    context->calls->unlock(context);
}
/* In open(): `thing` is there for all workers below, until close(); their own comes first. */
static inline void det_worker_provide(
    struct det_worker_context *context, const char *name, void *thing)
{
    context->calls->provide(context, name, thing);
}
/* What a worker above provides, or the options of the supervisor; NULL: none does. */
static inline void *det_worker_inherited(struct det_worker_context *context, const char *name)
{
    return context->calls->inherited(context, name);
}
/* The last observation of a worker, a copy. DET_ERR_NOT_FOUND: no such worker, or nothing was
 * observed yet; DET_ERR_INVALID: its observed record is another one. */
DET_MUST_CHECK static inline int det_worker_read(
    struct det_worker_context *context, const char *id, const struct det_record *record, void *ret)
{
    return context->calls->read(context, id, record, ret);
}

struct det_worker_action {
    const char *name;
    det_time timeout; /* 0: that of the supervisor, 30 s */
    int (*run)(struct det_worker_context *context, void *deps, const void *desired);
};

/* Why a config cannot be derived: `return derive->refuse(derive, "port %u is taken", ...)`. */
struct det_derive {
    const struct det_worker_identity *identity;
    const char *config; /* as rendered: YAML, or "" */
    int (*refuse)(struct det_derive *derive, const char *format, ...) DET_PRINTF(2, 3);
};

/* A worker that another one wants below itself. Borrowed for the call. */
struct det_child_spec {
    const char *name;      /* unique among its siblings */
    const char *kind;      /* another kind under the same name is another worker: it is made anew */
    const char *config;    /* YAML with {{ .VARIABLES }}; NULL: none */
    const char *variables; /* YAML, a map, over those of the parent; NULL: none */
    const char *location;  /* YAML, {site: x, line: y}, over that of the parent; NULL: none */
    uint64_t run_in;       /* states of the parent, DET_IN(LINK_UP) | ...; 0: in all of them */
    bool is_disabled;      /* made, but rests in STOPPED */
};
#define DET_IN(state) ((uint64_t)1 << (state))

struct det_children {
    /* 0, or DET_ERR_NO_MEMORY. A spec that is wrong spoils itself only. */
    int (*add)(struct det_children *children, const struct det_child_spec *spec);
};

/* A kind of worker. The template makes it; its first state is the initial one, and of the phase
 * STOPPED. Documents of a worker have its fields beside what is said of it, so an observed record
 * has no field state, phase, reason, since or degraded_by, and a desired one no shutdown_requested
 * or disabled. */
struct det_worker_kind {
    const char *name;
    struct det_record_ref config;   /* what YAML is read into; none: the desired record itself */
    struct det_record_ref desired;  /* none: det_empty */
    struct det_record_ref observed; /* none: det_empty */
    size_t deps_size;
    const struct det_worker_state *states;
    const struct det_worker_action *actions;
    uint16_t state_count, action_count;
    bool errors_are_observed; /* a collect that fails is an observation too, see collect_error */
    det_time observe_every; /* 0: that of the supervisor, 1 s; its observations are old after three
                                 intervals, if that is longer than the limit */
    det_time observe_timeout; /* 0: that of the supervisor, 2.2 s */
    /* `deps` is zero. Once per life of the worker, on a thread. NULL: nothing to do. */
    int (*open)(struct det_worker_context *context, void *deps);
    /* Once, when nothing of the worker runs any more. */
    void (*close)(void *deps);
    /* NULL: there is nothing to observe, and what it decides by is never old. */
    int (*collect)(
        struct det_worker_context *context, void *deps, const void *desired, void *observed);
    /* NULL: the config is the desired state. `config` is all zero when there is none. */
    int (*derive)(struct det_derive *derive, const void *config, void *desired);
    /* NULL: no children. Called when desired state, observation or state have changed. */
    int (*children)(const struct det_worker_view *view, struct det_children *children);
    const void *user;
};

/* Whether a kind is one: its names, its phases, the way from every state to STOPPED. */
DET_API int det_worker_kind_check(const struct det_worker_kind *kind, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API const char *det_phase_name(enum det_phase phase);

DET_END
#endif
