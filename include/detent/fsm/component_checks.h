/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* component_checks.h - meaning of rows in the checking passes of define.h for a spec with an
 * FSM_CONTEXT: functions get the context, and component rows are permitted. */
#ifndef DETENT_FSM_COMPONENT_CHECKS_H
#define DETENT_FSM_COMPONENT_CHECKS_H

#define FSM__CONTEXT_POINTER struct FSM_CONTEXT *
/* The tables pass the context as const data; the actions own it, so the cast is safe. */
#define FSM__CONTEXT_OF(data) ((FSM__CONTEXT_POINTER)(uintptr_t)(data))

/* Pass 1. */
#define FSM__F_GUARD_COMPONENT(f)                                                                  \
    static bool f(const struct FSM_CONTEXT *, FSM__EVENT_POINTER);                                 \
    static bool FSM__RUN(f)(const struct det_move *fsm__1, const void *fsm__2, const void *fsm__3) \
    {                                                                                              \
        (void)fsm__1;                                                                              \
        return f(fsm__2, fsm__3);                                                                  \
    }                                                                                              \
    static const struct det_guard_def FSM__GUARD(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_HOOK_COMPONENT(f)                                                                  \
    static int f(FSM__CONTEXT_POINTER, FSM__EVENT_POINTER);                                       \
    static int FSM__RUN(f)(const struct det_move *fsm__1, const void *fsm__2, const void *fsm__3) \
    {                                                                                             \
        (void)fsm__1;                                                                             \
        return f(FSM__CONTEXT_OF(fsm__2), fsm__3);                                                \
    }                                                                                             \
    static const struct det_hook_def FSM__HOOK(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_EFFECT_COMPONENT(f)                                                             \
    static int f(FSM__CONTEXT_POINTER, FSM__EVENT_POINTER, struct FSM__OWN(_event) *);         \
    static int FSM__RUN(f)(                                                                    \
        struct det_effect_call * fsm__1, const void *fsm__2, const void *fsm__3, void *fsm__4) \
    {                                                                                          \
        (void)fsm__1;                                                                          \
        return f(FSM__CONTEXT_OF(fsm__2), fsm__3, fsm__4);                                     \
    }
#define FSM__F_UPDATE_COMPONENT(f) FSM__ONLY_INSTANCE("UPDATE")
#define FSM__F_FILL_COMPONENT(f)   FSM__ONLY_INSTANCE("FILL")

/* DISPATCH(S, mode) and DISPATCH(S, mode, f). One thunk per state, since a function may serve
 * several. */
#define FSM__C_DISPATCH(...) \
    FSM__CAT(FSM__C_DISPATCH_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__C_DISPATCH_2(S, mode)                           \
    FSM__STATES(FSM__C_DISPATCH_ONE, DET_DISPATCH_##mode, S) \
    _Static_assert(                                          \
        (int)DET_DISPATCH_##mode == (int)DET_DISPATCH_BLOCK, \
        "DISPATCH with POLL or IGNORE needs a function");
#define FSM__C_DISPATCH_3(S, mode, f)                              \
    FSM__STATES(FSM__C_DISPATCH_ONE, DET_DISPATCH_##mode, S)       \
    _Static_assert(                                                \
        (int)DET_DISPATCH_##mode != (int)DET_DISPATCH_BLOCK,       \
        "DISPATCH with BLOCK takes no function");                  \
    static int f(FSM__CONTEXT_POINTER, struct FSM__OWN(_event) *); \
    FSM__STATES(FSM__C_DISPATCH_RUN, f, S)
#define FSM__C_DISPATCH_ONE(mode, s)                               \
    enum { FSM__ONE_DISPATCH(s) = mode + 0 * (int)FSM__STATE(s) }; \
    typedef char FSM__NO_DISPATCH(s)[1];
#define FSM__C_DISPATCH_RUN(f, s)                                 \
    static int FSM__RUN(s##_dispatch)(void *fsm__1, void *fsm__2) \
    {                                                             \
        return f(fsm__1, fsm__2);                                 \
    }

#define FSM__C_CLOSED(e, s)                                    \
    enum { FSM__ONE_CLOSED(s) = FSM__TRANSITION(s, e) };       \
    _Static_assert(                                            \
        (int)FSM__ONE_DISPATCH(s) != (int)DET_DISPATCH_IGNORE, \
        "CLOSED needs a state with DISPATCH BLOCK or POLL");
#define FSM__C_FAILURE(e) enum { FSM__ONE_FAILURE = (int)FSM__EVENT(e) };
#define FSM__C_COMPLETION(f)                                                             \
    static int f(FSM__CONTEXT_POINTER, const struct det_component_end *);                \
    static int FSM__ONE_COMPLETION(void *fsm__1, const struct det_component_end *fsm__2) \
    {                                                                                    \
        return f(fsm__1, fsm__2);                                                        \
    }
#define FSM__C_INVARIANT(f)                            \
    static bool f(const struct FSM_CONTEXT *);         \
    static bool FSM__ONE_INVARIANT(const void *fsm__1) \
    {                                                  \
        return f(fsm__1);                              \
    }

/* Pass 4: every state except a FINAL one has its DISPATCH and accepts the failure event. The latter
 * is counted, since no pass sees a state and the failure event in one row. */
#define FSM__C_STATE_INSTANCE(s, flag)
#define FSM__C_STATE_COMPONENT(s, flag) FSM__C_STATE_##flag(s)
#define FSM__C_STATE_NORMAL(s)                \
    enum { FSM__MUST_ACCEPT_FAILURE(s) = 1 }; \
    _Static_assert(                           \
        (int)FSM__ONE_DISPATCH(s) >= 0, "every state that is not FINAL must have a DISPATCH");
#define FSM__C_STATE_INITIAL(s) FSM__C_STATE_NORMAL(s)
#define FSM__C_STATE_GOOD(s)    FSM__C_STATE_NORMAL(s)
#define FSM__C_STATE_WARNING(s) FSM__C_STATE_NORMAL(s)
#define FSM__C_STATE_BAD(s)     FSM__C_STATE_NORMAL(s)
#define FSM__C_STATE_NEUTRAL(s) FSM__C_STATE_NORMAL(s)
#define FSM__C_STATE_FINAL(s)                 \
    enum { FSM__MUST_ACCEPT_FAILURE(s) = 0 }; \
    enum { FSM__NO_DISPATCH(s) };
#define FSM__C_MUST_ACCEPT_FAILURE(s, ...) +(int)FSM__MUST_ACCEPT_FAILURE(s)
#define FSM__C_FAILS(x, s, e) \
    +((int)FSM__EVENT(e) == (int)FSM__ONE_FAILURE ? (int)FSM__MUST_ACCEPT_FAILURE(s) : 0)

/* Pass 5. */
#define FSM__C_TABLE(...) \
    FSM__CAT(FSM__C_TABLE_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__C_TABLE_2(S, mode_)      FSM__STATES(FSM__C_TABLE_MODE, DET_DISPATCH_##mode_, S)
#define FSM__C_TABLE_3(S, mode_, f)   FSM__C_TABLE_2(S, mode_) FSM__STATES(FSM__C_TABLE_RUN, ~, S)
#define FSM__C_TABLE_MODE(control, s) [FSM__STATE(s)].mode = control,
#define FSM__C_TABLE_RUN(x, s)        [FSM__STATE(s)].run = FSM__RUN(s##_dispatch),
#define FSM__C_TABLE_CLOSED(e, s)     [FSM__STATE(s)].closed = FSM__EVENT(e),

#endif
