/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker.h - kinds of workers. A worker keeps a part of the world in the state that its config
 * describes; a kind is its code. workers.h runs them.
 *
 *     config --derive--> desired --+
 *                                  +--> next(view) --> goto a state | do an action | hold
 *     world --collect--> observed -+                                        |
 *       ^-------------------------------------------------------------------+
 *
 * A kind is a file of rows, link.worker, and a few functions; the template worker/define.h turns
 * the rows into C. The functions and their rights:
 *
 *     next      reads a const view and nothing else: the same view gives the same decision
 *     collect   observes the world, on a thread, repeatedly; changes nothing in it
 *     actions   change the world, on a thread; do nothing if it is already as desired; check
 *               det_worker_is_cancelled(), and never retry by themselves
 *     derive    pure: from the user's config to the desired state
 *     children  pure: from a view to the child workers
 *
 * Observations change the state of a worker; the end of an action never does: actions can fail, and
 * can be wrong about their result.
 *
 * A stop cannot be forgotten: the row of each state names its stop state, and during a stop next()
 * of a running state is not called. In a state of the phase STOPPED the worker is removed or rests;
 * only next() of STOPPING states is called, and they lead to STOPPED.
 *
 * This header needs no library: a module (module.h) reaches the library through the arguments of
 * its functions. */
#ifndef DETENT_WORKER_H
#define DETENT_WORKER_H

#include <detent/record.h>

DET_BEGIN

struct det_allocator;
struct det_worker_kind;

/* The meaning of a state for observers. RUNNING is healthy, RUNNING and DEGRADED are operational;
 * STOPPED is neither healthy nor unhealthy. Each has a name. */
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

#define DET_WORKER_NAME_MAX    64  /* bytes in a name: [A-Za-z0-9._-] */
#define DET_WORKER_PATH_MAX    512 /* bytes in an id or a path */
#define DET_WORKER_REASON_MAX  160 /* bytes in a reason; longer ones are cut between characters */
#define DET_WORKER_STATES_MAX  64
#define DET_WORKER_ACTIONS_MAX 64
#define DET_WORKER_DEPTH_MAX   16 /* levels of workers */

/* The identity of a worker. The id is the list of names from the root, "plant/press/valve", and
 * thus unique; the path also has the kinds, "plant(application)/press(machine)/valve(valve)". */
struct det_worker_identity {
    const char *id, *name, *kind, *path;
};

/* The last end of an action. */
struct det_action_end {
    const char *action; /* NULL: no action has ended yet */
    det_time at;        /* monotonic */
    det_time took;
    int code; /* 0: succeeded; DET_ERR_TIMEOUT, DET_ERR_CANCELLED, its own error */
    char text[DET_WORKER_REASON_MAX + 1]; /* why the action failed; else "" */
};

/* A child as its parent sees it now. */
struct det_child_view {
    const char *name, *kind, *state, *reason, *path;
    const char *action_error;  /* why its last action failed; "": it succeeded */
    const char *observe_error; /* why its last observation failed; "": it succeeded */
    enum det_phase phase;
    bool is_stale;        /* its observation is too old */
    bool is_circuit_open; /* its subtree is paused, see workers.h */
    bool is_disabled;
    bool is_down; /* the child has failed permanently or could not be started: unhealthy, though its
                   * phase is STOPPED */
};
struct det_children_view {
    const struct det_child_view *const *list; /* in the order of their specs */
    uint32_t count;
    /* Number of children by condition. A child is healthy when its phase is RUNNING, its config is
     * valid, and no worker of its subtree is down. */
    uint32_t healthy, operational, stopped;
    uint32_t unhealthy;                  /* neither healthy nor stopped */
    uint32_t stale, circuits_open, down; /* of all descendants, at any depth */
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

/* Counters of the supervisor about a worker. All but `startups` are of this run of the program. */
struct det_worker_counts {
    uint64_t transitions;
    uint64_t observations;
    uint64_t startups;           /* number of starts over all runs, including this one */
    uint32_t collector_restarts; /* since the last good observation */
    uint32_t restarts;
    uint64_t actions_done, actions_failed;
    uint32_t failures; /* consecutive failed actions, of any name */
};

/* The argument of next(), which does not change during the call. The typed view of a kind points to
 * it as `all`. */
struct det_worker_view {
    const struct det_worker_kind *kind;
    const void *desired, *observed;
    bool stop_wanted;     /* the worker shuts down, is disabled, or is not desired in its parent's
                           * state */
    bool shutdown_wanted; /* the worker must stop, for its removal or a restart */
    uint16_t state;
    det_time now;              /* monotonic */
    det_time wall;             /* wall time, taken with `now` */
    det_time observed_at;      /* monotonic time at which the observation began */
    det_time since;            /* monotonic time at which the state was entered */
    const char *collect_error; /* why the last observation failed; NULL: it succeeded */
    const char *degraded_by;   /* for example a config that could not be derived; NULL: nothing */
    const struct det_worker_identity *identity;
    const struct det_worker_counts *counts;
    const struct det_action_end *last_action;
    const struct det_children_view *children;
    struct det_reason *scratch; /* for det_reason() */
};

/* A formatted reason: `return link_hold(det_reason(view->all, "%u of %u", a, b))`. Lives until
 * next() returns. */
struct det_reason {
    const char *(*format)(struct det_reason *reason, const char *format, ...)DET_PRINTF(2, 3);
    char text[DET_WORKER_REASON_MAX + 1];
};
#define det_reason(view, ...) ((view)->scratch->format((view)->scratch, __VA_ARGS__))

/* A decision of next(). Only the constructors of the template make one, so a change of state and an
 * action never come together, and each decision has a reason. The reason is for people; it is
 * copied. */
enum det_next_kind {
    DET_NEXT_HOLD,
    DET_NEXT_GOTO,    /* `what` is another state */
    DET_NEXT_DO,      /* `what` is an action */
    DET_NEXT_RESTART, /* recreate the worker, including its dependencies */
};
struct det_next {
    enum det_next_kind kind;
    uint16_t what;
    const char *reason;
};

struct det_worker_state {
    const char *name; /* on disk; lower_snake */
    enum det_phase phase;
    uint16_t on_stop; /* STARTING, RUNNING, DEGRADED: the stop state; ignored in other phases */
    struct det_next (*next)(const struct det_worker_view *view);
};

/* Passed to functions that do I/O: identity, cancellation, reporting. Only for the call, and only
 * on its thread. */
struct det_worker_context {
    const struct det_worker_calls *calls;
    const struct det_worker_identity *identity;
    struct det_world *world;
    const struct det_allocator *allocator;
    void *user;        /* from the options of the supervisor */
    det_time deadline; /* monotonic time at which the call counts as hung; DET_NEVER: in open() */
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

/* True if the function must return: its time is up, or the worker stops. */
static inline bool det_worker_is_cancelled(struct det_worker_context *context)
{
    return context->calls->is_cancelled(context);
}
/* Blocks until the monotonic deadline (0), or until the call is cancelled (DET_ERR_CANCELLED). */
DET_MUST_CHECK static inline int det_worker_wait(
    struct det_worker_context *context, det_time deadline)
{
    return context->calls->wait(context, deadline);
}
/* Sets the reason of a failure and evaluates to `code`, which is negative: `return
 * det_worker_fail(context, DET_ERR_IO, ...)`. */
#define det_worker_fail(context, code, ...) \
    ((context)->calls->explain(context, __VA_ARGS__), (code))
/* Leaves the function at once, from any depth, without cleanup. For impossible conditions that must
 * not end the program. Three in five minutes pause the worker. */
#define det_worker_panic(context, ...) ((context)->calls->panic(context, __VA_ARGS__))
/* Metrics of the worker; names are [a-z0-9_]. Counters continue over restarts of the worker. */
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
/* Actions and collect of one worker run at the same time: access shared dependencies between these
 * two calls. One lock per worker; hold it briefly. */
static inline void det_worker_lock(struct det_worker_context *context)
{
    context->calls->lock(context);
}
static inline void det_worker_unlock(struct det_worker_context *context)
{
    context->calls->unlock(context);
}
/* In open(): provides `thing` to all workers of the subtree until close(); a nearer one wins. */
static inline void det_worker_provide(
    struct det_worker_context *context, const char *name, void *thing)
{
    context->calls->provide(context, name, thing);
}
/* A thing provided by an ancestor or by the options of the supervisor; NULL: none. */
static inline void *det_worker_inherited(struct det_worker_context *context, const char *name)
{
    return context->calls->inherited(context, name);
}
/* Copies the last observation of another worker. DET_ERR_NOT_FOUND: no such worker, or no
 * observation yet; DET_ERR_INVALID: its observed record is another one. */
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

/* Reports why a config cannot be derived: `return derive->refuse(derive, "port %u is taken",
 * ...)`. */
struct det_derive {
    const struct det_worker_identity *identity;
    const char *config; /* as rendered: YAML, or "" */
    int (*refuse)(struct det_derive *derive, const char *format, ...) DET_PRINTF(2, 3);
};

/* The spec of a child that children() requests. Borrowed for the call. */
struct det_child_spec {
    const char *name;      /* unique among its siblings */
    const char *kind;      /* a child whose kind changes is recreated */
    const char *config;    /* YAML with {{ .VARIABLES }}; NULL: none */
    const char *variables; /* YAML, a map, merged over those of the parent; NULL: none */
    const char *location; /* YAML, {site: x, line: y}, merged over that of the parent; NULL: none */
    uint64_t run_in;      /* states of the parent, DET_IN(LINK_UP) | ...; 0: all */
    bool is_disabled;     /* the child exists, but stays in STOPPED */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};
#define DET_IN(state) ((uint64_t)1 << (state))

struct det_children {
    /* 0, or DET_ERR_NO_MEMORY. An invalid spec affects its own child only. */
    int (*add)(struct det_children *children, const struct det_child_spec *spec);
};

/* A kind of worker. The template makes it; its first state is the initial one, and of the phase
 * STOPPED. Documents of a worker combine its fields with those of the supervisor, so an observed
 * record has no field state, phase, reason, since or degraded_by, and a desired one no
 * shutdown_requested or disabled. */
struct det_worker_kind {
    const char *name;
    struct det_record_ref config;   /* the record of the YAML config; none: the desired record
                                     * itself */
    struct det_record_ref desired;  /* none: det_empty */
    struct det_record_ref observed; /* none: det_empty */
    size_t deps_size;
    const struct det_worker_state *states;
    const struct det_worker_action *actions;
    uint16_t state_count, action_count;
    bool errors_are_observed; /* a failed collect counts as an observation, see collect_error */
    det_time observe_every;   /* 0: that of the supervisor, 1 s; an observation is stale after three
                             * intervals, or after the supervisor's limit if that is longer */
    det_time observe_timeout; /* 0: that of the supervisor, 2.2 s */
    /* Called once per life of the worker, on a thread. `deps` is zero. NULL: nothing to do. */
    int (*open)(struct det_worker_context *context, void *deps);
    /* Called once, when no function of the worker runs and no call will follow. */
    void (*close)(void *deps);
    /* NULL: the kind has no observations, and its decisions never wait for a fresh one. */
    int (*collect)(
        struct det_worker_context *context, void *deps, const void *desired, void *observed);
    /* NULL: the config is the desired state. `config` is all zero if there is none. */
    int (*derive)(struct det_derive *derive, const void *config, void *desired);
    /* NULL: no children. Called after changes of desired state, observation or state. */
    int (*children)(const struct det_worker_view *view, struct det_children *children);
    const void *user;
};

/* Checks a kind: its names, its phases, the path from every state to STOPPED. */
DET_API int det_worker_kind_check(const struct det_worker_kind *kind, struct det_error *reterr)
    DET_MUST_CHECK;
DET_API const char *det_phase_name(enum det_phase phase);

DET_END
#endif
