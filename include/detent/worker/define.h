/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* define.h - template: checks the worker in WORKER_SPEC and makes its tables. Include it in one .c
 * file, after the worker's declare.h:
 *
 *     #define WORKER_SPEC "link.worker"
 *     #include <detent/worker/declare.h>
 *     struct link_deps { ... };                          if the spec has #define WORKER_DEPS
 *     #define WORKER_SPEC "link.worker"
 *     #include <detent/worker/define.h>
 *
 *     static struct link_next link_in_up(const struct link_view *view) { ... }    one per state
 *     static int link_do_connect(context, deps, desired) { ... }                  one per action
 *     static int link_collect(context, deps, desired, observed) { ... }           not WORKER_BLIND
 *     static int link_open(context, deps), static void link_close(deps)           WORKER_DEPS
 *     static int link_derive(derive, config, desired)      WORKER_CONFIG or WORKER_DERIVE
 *     static int link_children(view, children)             WORKER_CHILDREN
 *
 * It also defines the constructors for the return values of next(): link_goto(LINK_UP, "why"),
 * link_do(LINK_CONNECT, "why"), link_hold("why"), link_restart("why"). */
#include <detent/rec/language.h>
#if REC__IS_C11

#include <detent/worker.h>

#include <detent/worker/pre.h>

_Static_assert(W__OWN(_state_count) > 0, "a worker must have at least one state");
_Static_assert(
    W__OWN(_state_count) <= DET_WORKER_STATES_MAX, "a worker must have at most 64 states");
_Static_assert(
    (int)W__OWN(_action_count) <= DET_WORKER_ACTIONS_MAX, "a worker must have at most 64 actions");

/* Each name once; each STOP where it belongs. */
#ifndef DETENT_WORKER_DEFINE_H
#define DETENT_WORKER_DEFINE_H
#define W__TIMEOUT_OF(...) W__CAT(W__TIMEOUT_OF_, W__ACTION_FORM(__VA_ARGS__))(__VA_ARGS__)
#define W__STOP_OF(...)    W__CAT(W__STOP_OF_, W__STATE_FORM(__VA_ARGS__))(__VA_ARGS__)
#define W__STOP_OF_RESTS(s, wire, phase) \
    a_state_that_is_STARTING_RUNNING_or_DEGRADED_has_a_STOP_but_not_##phase
#define W__STOP_OF_STOPS(s, wire, phase, stop) \
    (a_STOP_is_for_STARTING_RUNNING_and_DEGRADED_but_not_##phase) + (int)(stop)
#define W__TIMEOUT_OF_PLAIN(a, wire)        0
#define W__TIMEOUT_OF_TIMED(a, wire, after) REC__NANOSECONDS(W__UNWRAP after)
/* Checks as sentences. */
#define W__CHECK_TIMEOUT(...) W__CAT(W__CHECK_TIMEOUT_, W__ACTION_FORM(__VA_ARGS__))(__VA_ARGS__)
#define W__CHECK_TIMEOUT_PLAIN(a, wire)
#define W__CHECK_TIMEOUT_TIMED(a, wire, after) REC__CHECK_DURATION(W__UNWRAP after)
#define W__UNWRAP(...)                         __VA_ARGS__
#endif

#include <detent/worker/rows_off.h>
#undef STATE
#define STATE(...)                     W__WIRE_OF_STATE(__VA_ARGS__, ~)
#define W__WIRE_OF_STATE(s, wire, ...) W__STATE_WIRE(wire),
enum W__OWN(__state_wire) {
#include WORKER_SPEC
    W__OWN(__state_wire_count)
};
#undef W__WIRE_OF_STATE
#include <detent/worker/rows_off.h>
#undef ACTION
#define ACTION(...)                     W__WIRE_OF_ACTION(__VA_ARGS__, ~)
#define W__WIRE_OF_ACTION(a, wire, ...) W__ACTION_WIRE(wire),
enum W__OWN(__action_wire) {
#include WORKER_SPEC
    W__OWN(__action_wire_count)
};
#undef W__WIRE_OF_ACTION

#include <detent/worker/rows_off.h>
#undef STATE
#define STATE(...) W__FIRST(__VA_ARGS__, ~)
#define W__FIRST(s, wire, phase, ...) \
    &&((int)W__STATE(s) != 0 || there_is_no_phase_called_##phase == DET_PHASE_STOPPED)
_Static_assert(
    true
#include WORKER_SPEC
    ,
    "the first state is the initial one and must be of the phase STOPPED");
#undef W__FIRST

/* A STOP leads to a STOPPING or STOPPED state. */
#include <detent/worker/rows_off.h>
#undef STATE
#define STATE(...)                       W__PHASE_OF(__VA_ARGS__, ~)
#define W__PHASE_OF(s, wire, phase, ...) W__STATE_PHASE(s) = there_is_no_phase_called_##phase,
enum W__OWN(__phase) {
#include WORKER_SPEC
};
#undef W__PHASE_OF
#include <detent/worker/rows_off.h>
#undef STATE
#undef STOP
#define STATE(...) W__CAT(W__LEADS_, W__STATE_FORM(__VA_ARGS__))(__VA_ARGS__)
#define STOP(s)    W__STATE_PHASE(s)
#define W__LEADS_RESTS(...)
#define W__LEADS_STOPS(s, wire, phase, stop)                                             \
    _Static_assert(                                                                      \
        (int)(stop) == (int)DET_PHASE_STOPPED || (int)(stop) == (int)DET_PHASE_STOPPING, \
        #s ": its STOP must lead to a state of the phase STOPPED or STOPPING");
#include WORKER_SPEC
#undef W__LEADS_RESTS
#undef W__LEADS_STOPS
#undef STOP
#define STOP(s) W__STATE(s)

/* The view and the return values of next(). */
struct W__OWN(_view) {
    const struct W__DESIRED *desired;
    const struct W__OBSERVED *observed;
    bool stop_wanted;
    const struct det_worker_view *all;
};
struct W__OWN(_next) {
    struct det_next is;
};
DET_MUST_CHECK static inline struct W__OWN(_next)
    W__OWN(_goto)(enum W__OWN(_state) to, const char *reason)
{
    return (struct W__OWN(_next)){ { DET_NEXT_GOTO, (uint16_t)to, reason } };
}
DET_MUST_CHECK static inline struct W__OWN(_next)
    W__OWN(_do)(enum W__OWN(_action) what, const char *reason)
{
    return (struct W__OWN(_next)){ { DET_NEXT_DO, (uint16_t)what, reason } };
}
DET_MUST_CHECK static inline struct W__OWN(_next) W__OWN(_hold)(const char *reason)
{
    return (struct W__OWN(_next)){ { DET_NEXT_HOLD, 0, reason } };
}
DET_MUST_CHECK static inline struct W__OWN(_next) W__OWN(_restart)(const char *reason)
{
    return (struct W__OWN(_next)){ { DET_NEXT_RESTART, 0, reason } };
}
static inline struct W__OWN(_view) W__OWN(__view)(const struct det_worker_view *all)
{
    return (struct W__OWN(_view)){ (const struct W__DESIRED *)all->desired,
                                   (const struct W__OBSERVED *)all->observed, all->stop_wanted,
                                   all };
}

/* Functions: prototypes for the user's, and wrappers for the tables. */
#include <detent/worker/rows_off.h>
#undef STATE
#undef ACTION
#define STATE(...) W__F_STATE(__VA_ARGS__, ~)
#define W__F_STATE(s, wire, ...)                                                          \
    static struct W__OWN(_next) W__OWN(_in_##wire)(const struct W__OWN(_view) * view);    \
    static struct det_next W__CAT(W__OWN(__in_), wire)(const struct det_worker_view *all) \
    {                                                                                     \
        struct W__OWN(_view) view = W__OWN(__view)(all);                                  \
                                                                                          \
        return W__OWN(_in_##wire)(&view).is;                                              \
    }
#define ACTION(...) W__F_ACTION(__VA_ARGS__, ~)
#define W__F_ACTION(a, wire, ...)                                                 \
    static int W__OWN(_do_##wire)(                                                \
        struct det_worker_context * context, struct W__DEPS * deps,               \
        const struct W__DESIRED *desired);                                        \
    static int W__CAT(W__OWN(__do_), wire)(                                       \
        struct det_worker_context * context, void *deps, const void *desired)     \
    {                                                                             \
        return W__OWN(_do_##wire)(                                                \
            context, (struct W__DEPS *)deps, (const struct W__DESIRED *)desired); \
    }
#include WORKER_SPEC
#undef W__F_STATE
#undef W__F_ACTION

#ifndef WORKER_BLIND
static int W__OWN(_collect)(
    struct det_worker_context *context, struct W__DEPS *deps, const struct W__DESIRED *desired,
    struct W__OBSERVED *observed);
static int W__OWN(__collect)(
    struct det_worker_context *context, void *deps, const void *desired, void *observed)
{
    return W__OWN(_collect)(
        context, (struct W__DEPS *)deps, (const struct W__DESIRED *)desired,
        (struct W__OBSERVED *)observed);
}
#endif

#ifdef WORKER_DEPS
static int W__OWN(_open)(struct det_worker_context *context, struct W__DEPS *deps);
static void W__OWN(_close)(struct W__DEPS *deps);
static int W__OWN(__open)(struct det_worker_context *context, void *deps)
{
    return W__OWN(_open)(context, (struct W__DEPS *)deps);
}
static void W__OWN(__close)(void *deps)
{
    W__OWN(_close)((struct W__DEPS *)deps);
}
#endif

#if defined(WORKER_CONFIG) || defined(WORKER_DERIVE)
static int W__OWN(_derive)(
    struct det_derive *derive, const struct W__CONFIG *config, struct W__DESIRED *desired);
static int W__OWN(__derive)(struct det_derive *derive, const void *config, void *desired)
{
    return W__OWN(_derive)(derive, (const struct W__CONFIG *)config, (struct W__DESIRED *)desired);
}
#endif

#ifdef WORKER_CHILDREN
static int W__OWN(_children)(const struct W__OWN(_view) * view, struct det_children *children);
static int W__OWN(__children)(const struct det_worker_view *all, struct det_children *children)
{
    struct W__OWN(_view) view = W__OWN(__view)(all);

    return W__OWN(_children)(&view, children);
}
#endif

/* Durations. */
#include <detent/worker/rows_off.h>
#undef ACTION
#define ACTION(...) W__CHECK_TIMEOUT(__VA_ARGS__)
#include WORKER_SPEC
#ifdef WORKER_EVERY
REC__CHECK_DURATION(WORKER_EVERY)
#endif
#ifdef WORKER_TIMEOUT
REC__CHECK_DURATION(WORKER_TIMEOUT)
#endif

/* The tables. */
#include <detent/worker/rows_off.h>
#undef STATE
#define STATE(...) W__T_STATE(W__STOP_OF(__VA_ARGS__), __VA_ARGS__, ~)
#define W__T_STATE(stop, s, wire, phase_, ...) \
    [W__STATE(s)] = { #wire, there_is_no_phase_called_##phase_, stop, W__CAT(W__OWN(__in_), wire) },
static const struct det_worker_state W__OWN(__states)[] = {
#include WORKER_SPEC
};
#undef W__T_STATE

#include <detent/worker/rows_off.h>
#undef ACTION
#define ACTION(...) W__T_ACTION(W__TIMEOUT_OF(__VA_ARGS__), __VA_ARGS__, ~)
#define W__T_ACTION(after, a, wire, ...) \
    [W__ACTION(a)] = { #wire, after, W__CAT(W__OWN(__do_), wire) },
/* One element more, so that a worker without actions has a table, too. */
static const struct det_worker_action W__OWN(__actions)[W__OWN(_action_count) + 1] = {
    [W__OWN(_action_count)] = { .name = 0 },
#include WORKER_SPEC
};
#undef W__T_ACTION

W__DEFINED const struct det_worker_kind W__OWN(_kind) = {
    .name = W__STRING(WORKER_NAME),
#ifdef WORKER_CONFIG
    .config = { .get = W__CAT(W__CONFIG, _record) },
#endif
#ifdef WORKER_DESIRED
    .desired = { .get = W__CAT(W__DESIRED, _record) },
#endif
#ifdef WORKER_OBSERVED
    .observed = { .get = W__CAT(W__OBSERVED, _record) },
#endif
#ifdef WORKER_DEPS
    .deps_size = sizeof(struct W__DEPS),
    .open = W__OWN(__open),
    .close = W__OWN(__close),
#endif
#ifdef WORKER_EVERY
    .observe_every = REC__NANOSECONDS(WORKER_EVERY),
#endif
#ifdef WORKER_TIMEOUT
    .observe_timeout = REC__NANOSECONDS(WORKER_TIMEOUT),
#endif
#ifdef WORKER_ERRORS
    .errors_are_observed = true,
#endif
#if defined(WORKER_CONFIG) || defined(WORKER_DERIVE)
    .derive = W__OWN(__derive),
#endif
#ifdef WORKER_CHILDREN
    .children = W__OWN(__children),
#endif
#ifndef WORKER_BLIND
    .collect = W__OWN(__collect),
#endif
    .states = W__OWN(__states),
    .state_count = W__OWN(_state_count),
    .actions = W__OWN(__actions),
    .action_count = W__OWN(_action_count),
};

#include <detent/worker/rows_end.h>

#endif
