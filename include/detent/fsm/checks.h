/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* checks.h - the meaning of rows in the checking passes 1 to 4 of define.h. */
#ifndef DETENT_FSM_CHECKS_H
#define DETENT_FSM_CHECKS_H

enum {
    FSM_STATE_IS_NORMAL = 0,
    FSM_STATE_IS_INITIAL = DET_STATE_INITIAL,
    FSM_STATE_IS_FINAL = DET_STATE_FINAL,
    FSM_STATE_IS_GOOD = DET_STATE_GOOD,
    FSM_STATE_IS_WARNING = DET_STATE_WARNING,
    FSM_STATE_IS_BAD = DET_STATE_BAD,
    FSM_STATE_IS_NEUTRAL = DET_STATE_NEUTRAL,
    FSM_STATE_HEALTH_IS_NORMAL = 0,
    FSM_STATE_HEALTH_IS_GOOD = DET_STATE_GOOD,
    FSM_STATE_HEALTH_IS_WARNING = DET_STATE_WARNING,
    FSM_STATE_HEALTH_IS_BAD = DET_STATE_BAD,
    FSM_STATE_HEALTH_IS_NEUTRAL = DET_STATE_NEUTRAL,
};

/* Rows that a component cannot have, and rows that only a component has. */
#define FSM__ONLY_INSTANCE(what) FSM__CAT(FSM__ONLY_INSTANCE_, FSM__MODE)(what)
#define FSM__ONLY_INSTANCE_INSTANCE(what)
#define FSM__ONLY_INSTANCE_COMPONENT(what) \
    _Static_assert(                        \
        0, what " is not permitted in a component (FSM_CONTEXT): use an action and the context");
#define FSM__ONLY_COMPONENT(what) FSM__CAT(FSM__ONLY_COMPONENT_, FSM__MODE)(what)
#define FSM__ONLY_COMPONENT_COMPONENT(what)
#define FSM__ONLY_COMPONENT_INSTANCE(what) \
    _Static_assert(                        \
        0, what " is permitted only in a component: add #define FSM_CONTEXT with its struct");

#define FSM__EVENT_POINTER const struct FSM__OWN(_event) *

/* Pass 1: a thunk has the untyped signature of machine.h and calls the user's typed function. Its
 * parameters begin with fsm__, which is reserved for the templates. component_checks.h has the
 * thunks of components. */
#define FSM__F_GUARD(f)  FSM__CAT(FSM__F_GUARD_, FSM__MODE)(f)
#define FSM__F_HOOK(f)   FSM__CAT(FSM__F_HOOK_, FSM__MODE)(f)
#define FSM__F_UPDATE(f) FSM__CAT(FSM__F_UPDATE_, FSM__MODE)(f)
#define FSM__F_FILL(f)   FSM__CAT(FSM__F_FILL_, FSM__MODE)(f)
#define FSM__F_GUARD_INSTANCE(f)                                                                   \
    static bool f(const struct det_move *, const struct FSM__DATA *, FSM__EVENT_POINTER);          \
    static bool FSM__RUN(f)(const struct det_move *fsm__1, const void *fsm__2, const void *fsm__3) \
    {                                                                                              \
        return f(fsm__1, fsm__2, fsm__3);                                                          \
    }                                                                                              \
    static const struct det_guard_def FSM__GUARD(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_HOOK_INSTANCE(f)                                                                   \
    static int f(const struct det_move *, const struct FSM__DATA *, FSM__EVENT_POINTER);          \
    static int FSM__RUN(f)(const struct det_move *fsm__1, const void *fsm__2, const void *fsm__3) \
    {                                                                                             \
        return f(fsm__1, fsm__2, fsm__3);                                                         \
    }                                                                                             \
    static const struct det_hook_def FSM__HOOK(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_UPDATE_INSTANCE(f)                                                            \
    _Static_assert(                                                                          \
        FSM__HAS_DATA, "UPDATE(" #f ") needs #define FSM_DATA, the record of the instance"); \
    static void f(struct FSM__DATA *, FSM__EVENT_POINTER);                                   \
    static void FSM__RUN(f)(void *fsm__1, const void *fsm__2)                                \
    {                                                                                        \
        f(fsm__1, fsm__2);                                                                   \
    }                                                                                        \
    static const struct det_update_def FSM__UPDATE(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_FILL_INSTANCE(f)                                                                  \
    static void f(const struct det_move *, const struct FSM__DATA *, struct FSM__OWN(_event) *); \
    static void FSM__RUN(f)(const struct det_move *fsm__1, const void *fsm__2, void *fsm__3)     \
    {                                                                                            \
        f(fsm__1, fsm__2, fsm__3);                                                               \
    }                                                                                            \
    static const struct det_fill_def FSM__FILL(f) __attribute__((unused)) = { #f, FSM__RUN(f) };

#define FSM__F_EFFECT(...) FSM__CAT(FSM__F_EFFECT_, FSM__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define FSM__F_EFFECT_MANY(f, ...) \
    FSM__F_EFFECT_ONE(f) FSM__EACH_MEMBER(FSM__F_PRODUCES, ~, __VA_ARGS__)
#define FSM__F_EFFECT_ONE(f) FSM__CAT(FSM__F_EFFECT_, FSM__MODE)(f)
#define FSM__F_EFFECT_INSTANCE(f)                                                              \
    static int f(                                                                              \
        struct det_effect_call *, const struct FSM__DATA *, FSM__EVENT_POINTER,                \
        struct FSM__OWN(_event) *);                                                            \
    static int FSM__RUN(f)(                                                                    \
        struct det_effect_call * fsm__1, const void *fsm__2, const void *fsm__3, void *fsm__4) \
    {                                                                                          \
        return f(fsm__1, fsm__2, fsm__3, fsm__4);                                              \
    }
#define FSM__F_PRODUCES(x, e)         \
    typedef char FSM__PRODUCED(e)[1]; \
    _Static_assert((int)FSM__EVENT(e) >= 0, "an effect must produce events of its own machine");

#define FSM__PICK4(_1, _2, _3, _4, n, ...)                                     n
#define FSM__PICK12(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, n, ...) n
/* For a list of at most 12 arguments: MORE if 1 to 8 extras follow its first 3 (or 2), BARE if none
 * do, too_many_extras if more do. */
#define FSM__EXTRAS_3(...)                                                                        \
    FSM__PICK12(                                                                                  \
        __VA_ARGS__, too_many_extras, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, BARE, BARE, \
        BARE, ~)
#define FSM__EXTRAS_2(...)                                                                       \
    FSM__PICK12(                                                                                 \
        __VA_ARGS__, too_many_extras, too_many_extras, MORE, MORE, MORE, MORE, MORE, MORE, MORE, \
        MORE, BARE, BARE, ~)
/* WITH_IF or NO_IF: whether the extras after three, or two, arguments contain a guard. */
#define FSM__IF_3(...)                 FSM__CAT(FSM__IF_3_, FSM__EXTRAS_3(__VA_ARGS__))(__VA_ARGS__)
#define FSM__IF_3_BARE(...)            NO_IF
#define FSM__IF_3_too_many_extras(...) NO_IF
#define FSM__IF_3_MORE(S, E, t, ...)   FSM__IF_AMONG(__VA_ARGS__)
#define FSM__IF_2(...)                 FSM__CAT(FSM__IF_2_, FSM__EXTRAS_2(__VA_ARGS__))(__VA_ARGS__)
#define FSM__IF_2_BARE(...)            NO_IF
#define FSM__IF_2_too_many_extras(...) NO_IF
#define FSM__IF_2_MORE(S, E, ...)      FSM__IF_AMONG(__VA_ARGS__)
/* IF expands to a comma and WITH_IF, which FSM__SECOND selects; other extras to nothing. */
#define FSM__IF_AMONG(...)    FSM__SECOND(~FSM__EACH_EXTRA(FSM__IF_ONE, ~, __VA_ARGS__), NO_IF)
#define FSM__IF_ONE(x, extra) FSM__IF_IS_##extra
#define FSM__IF_IS_IF(f)      , WITH_IF
#define FSM__IF_IS_CALL(f)
#define FSM__IF_IS_SET(f)
#define FSM__IF_IS_KEEP(...)
#define FSM__IF_IS_DO(...)
#define FSM__IF_IS_ARM(...)
#define FSM__IF_IS_DISARM(...)
#define FSM__IF_IS_WITHIN(...)
#define FSM__IF_IS_REASON(text)

/* Pass 2: a plain row, with or without a guard. */
#define FSM__P_PAIR_NO_IF(x, s, e)                                                \
    enum {                                                                        \
        FSM__TRANSITION(s, e) =                                                   \
            (int)FSM__STATE(s) * (int)FSM__OWN(_event_count) + (int)FSM__EVENT(e) \
    };                                                                            \
    typedef char FSM__ACCEPTED(e)[1];
#define FSM__P_PAIR_WITH_IF(x, s, e) \
    FSM__P_PAIR_NO_IF(x, s, e)       \
    typedef char FSM__GUARDED(s, e)[1];
/* An override. A static declaration after an external one, that of an ELSE, is an error; the
 * reverse order is not. This checks the order. */
#define FSM__P_AGAIN(s, e)                                                                    \
    _Static_assert(                                                                           \
        FSM__TRANSITION(s, e) >= 0, "an OVERRIDE must come after the row that it overrides"); \
    static int FSM__ELSE_LAST(s, e) __attribute__((unused));
#define FSM__P_AGAIN_WITH_IF(x, s, e) \
    FSM__P_AGAIN(s, e)                \
    typedef char FSM__GUARDED(s, e)[1];
#define FSM__P_AGAIN_NO_IF(x, s, e) \
    FSM__P_AGAIN(s, e)              \
    extern char FSM__GUARDED_EVER(s, e)[2];
/* An alternative. An override without a guard declares FSM__GUARDED_EVER differently. */
#define FSM__P_ELSE_WITH_IF(x, s, e)                                    \
    _Static_assert(                                                     \
        FSM__TRANSITION(s, e) >= 0,                                     \
        "an ELSE must come after the row of the same state and event"); \
    _Static_assert(                                                     \
        sizeof(FSM__GUARDED(s, e)) == 1,                                \
        "an ELSE needs an IF on the row of the same state and event");  \
    extern char FSM__GUARDED_EVER(s, e)[1];                             \
    extern int FSM__ELSE_LAST(s, e);
#define FSM__P_ELSE_NO_IF(x, s, e) \
    FSM__P_ELSE_WITH_IF(x, s, e)   \
    enum { FSM__ONE_ELSE(s, e) };
#define FSM__P_ENTERS(t) typedef char FSM__ENTERED(t)[1 + 0 * (int)FSM__STATE(t)];

/* Pass 3. */
#define FSM__A_AFTER(...) \
    FSM__CAT(FSM__A_AFTER_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__A_AFTER_3(S, duration, e) \
    FSM__STATES(FSM__A_ONE, e, S)      \
    REC__CHECK_DURATION(duration)      \
    typedef char FSM__PRODUCED(e)[1];
#define FSM__A_AFTER_4(S, duration, e, fill) FSM__A_AFTER_3(S, duration, e)
#define FSM__A_ONE(e, s) \
    enum { FSM__ONE_TIMEOUT(s) = FSM__TRANSITION(s, e) + 0 * (int)FSM__STATE(s) };
#define FSM__A_TIMER(...) \
    FSM__CAT(FSM__A_TIMER_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__A_TIMER_3(t, duration, e) \
    FSM__ONLY_INSTANCE("TIMER")        \
    REC__CHECK_DURATION(duration)      \
    typedef char FSM__PRODUCED(e)[1];
#define FSM__A_TIMER_4(t, duration, e, fill) FSM__A_TIMER_3(t, duration, e)
#define FSM__A_ENTRY(x, s)                   enum { FSM__ONE_ENTRY(s) = FSM__STATE(s) };
#define FSM__A_EXIT(x, s)                    enum { FSM__ONE_EXIT(s) = FSM__STATE(s) };

/* Makes each kind of extra a member of a struct, so that a duplicate is an error. The member stands
 * between two assertions; the first one fails for an unknown extra. */
#define FSM__A_ONCE(x, extra) _Static_assert(no_extra_is_called_##extra, "");
#define FSM__A_IS(member)                  1, ""); \
    char member; _Static_assert(1
#define no_extra_is_called_IF(f)        FSM__A_IS(row_has_at_most_one_IF)
#define no_extra_is_called_CALL(f)      FSM__A_IS(row_has_at_most_one_CALL)
#define no_extra_is_called_SET(f)       FSM__A_IS(row_has_at_most_one_SET)
#define no_extra_is_called_KEEP(...)    FSM__A_IS(row_has_at_most_one_KEEP)
#define no_extra_is_called_DO(...)      FSM__A_IS(row_has_at_most_one_DO)
#define no_extra_is_called_ARM(...)     FSM__A_IS(row_has_at_most_one_ARM)
#define no_extra_is_called_DISARM(...)  FSM__A_IS(row_has_at_most_one_DISARM)
#define no_extra_is_called_WITHIN(...)  FSM__A_IS(row_has_at_most_one_WITHIN)
#define no_extra_is_called_REASON(text) FSM__A_IS(row_has_at_most_one_REASON)

/* Checks the extras of a row: each kind once, REASON only with a stop, WITHIN only where a state is
 * entered. FSM__A_<extra> expands to the check of an extra, with the kind of row and the target;
 * most expand to nothing. */
#define FSM__A_EXTRAS(row, t, ...)                                                           \
    _Static_assert(sizeof(struct { FSM__EACH_EXTRA(FSM__A_ONCE, ~, __VA_ARGS__) }) > 0, ""); \
    FSM__EACH_EXTRA(FSM__A_##row, t, __VA_ARGS__)
#define FSM__A_GOTO(t, extra)            FSM__A_CHECK(GOTO, t, FSM__A_##extra)
#define FSM__A_HOLD(t, extra)            FSM__A_CHECK(HOLD, t, FSM__A_##extra)
#define FSM__A_HALT(t, extra)            FSM__A_CHECK(HALT, t, FSM__A_##extra)
#define FSM__A_CHECK(...)                FSM__A_CHECK_(__VA_ARGS__)
#define FSM__A_CHECK_(row, t, what, ...) FSM__A_CHECK_##what(row, t, __VA_ARGS__)
#define FSM__A_IF(f)                     NOTHING, ~
#define FSM__A_CALL(f)                   NOTHING, ~
#define FSM__A_SET(f)                    INSTANCE, "SET"
#define FSM__A_KEEP(...)                 INSTANCE, "KEEP"
#define FSM__A_ARM(...)                  INSTANCE, "ARM"
#define FSM__A_DISARM(...)               INSTANCE, "DISARM"
#define FSM__A_DO(...)                   NOTHING, ~
#define FSM__A_REASON(text)              REASON, text
#define FSM__A_WITHIN(...)               WITHIN, __VA_ARGS__, ~
#define FSM__A_CHECK_NOTHING(row, t, ...)
#define FSM__A_CHECK_INSTANCE(row, t, extra) FSM__ONLY_INSTANCE(extra)
#define FSM__A_CHECK_REASON(row, t, text)    FSM__A_REASON_##row(text)
#define FSM__A_REASON_HALT(text) \
    _Static_assert(sizeof(text) <= DET_REASON_MAX + 1, "a reason must have at most 255 bytes");
#define FSM__A_REASON_HOLD(text) FSM__A_REASON_GOTO(text)
#define FSM__A_REASON_GOTO(text) \
    _Static_assert(0, "REASON is permitted only on STOP, OVERRIDE_STOP and ELSE_STOP");
#define FSM__A_CHECK_WITHIN(row, t, ...) FSM__A_WITHIN_##row(t, __VA_ARGS__)
#define FSM__A_WITHIN_HOLD(...)          FSM__A_WITHIN_HALT(__VA_ARGS__)
#define FSM__A_WITHIN_HALT(...) \
    _Static_assert(0, "WITHIN is permitted only on ON, OVERRIDE and ELSE");
#define FSM__A_WITHIN_GOTO(t, duration, timeout_event, ...) \
    REC__CHECK_DURATION(duration)                           \
    typedef char FSM__PRODUCED(timeout_event)[1];           \
    _Static_assert(                                         \
        FSM__TRANSITION(t, timeout_event) >= 0,             \
        "the target state must accept the timeout event of WITHIN");
#define FSM__A_ON(...) FSM__CAT(FSM__A_ON_, FSM__EXTRAS_3(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_ON_BARE(...)
#define FSM__A_ON_MORE(S, E, t, ...) FSM__A_EXTRAS(GOTO, t, __VA_ARGS__)
#define FSM__A_STAY(...)             FSM__CAT(FSM__A_STAY_, FSM__EXTRAS_2(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_STAY_BARE(...)
#define FSM__A_STAY_MORE(S, E, ...) FSM__A_EXTRAS(HOLD, ~, __VA_ARGS__)
#define FSM__A_STOP(...)            FSM__CAT(FSM__A_STOP_, FSM__EXTRAS_2(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_STOP_BARE(...)
#define FSM__A_STOP_MORE(S, E, ...) FSM__A_EXTRAS(HALT, ~, __VA_ARGS__)

/* Policies: a component cannot store deferred events. */
#define FSM__A_POLICY(policy) FSM__CAT(FSM__A_POLICY_, FSM__MODE)(policy)
#define FSM__A_POLICY_INSTANCE(policy)
#define FSM__A_POLICY_COMPONENT(policy)                           \
    _Static_assert(                                               \
        FSM__CAT(DET_UNHANDLED_, policy) <= DET_UNHANDLED_IGNORE, \
        "a component must use the policy ERROR or IGNORE: it cannot store deferred events");

/* Pass 4. */
#define FSM__G_STATE(...) FSM__G_STATE_(__VA_ARGS__, NORMAL, NORMAL, ~)
#define FSM__G_STATE_(s, wire, flag, health, ...)                                             \
    _Static_assert(                                                                           \
        (int)FSM_STATE_IS_##flag < (int)DET_STATE_GOOD || !(int)FSM_STATE_HEALTH_IS_##health, \
        "INITIAL or FINAL must precede the health of a state");                               \
    FSM__G_WIRE(FSM__STATE_WIRE, wire)                                                        \
    FSM__G_STATE_##flag(s) FSM__CAT(FSM__C_STATE_, FSM__MODE)(s, flag)
/* A name on disk must be unique and not a C keyword. */
#define FSM__G_WIRE(sentence, wire) \
    enum { sentence(wire) };        \
    _Static_assert(sizeof(struct { char wire; }) == 1, "");
#define FSM__G_STATE_INITIAL(s) enum { FSM__ONE_INITIAL = FSM__STATE(s) };
#define FSM__G_STATE_NORMAL(s) \
    _Static_assert(sizeof(FSM__ENTERED(s)) == 1, "a transition must enter this state");
#define FSM__G_STATE_FINAL(s)   FSM__G_STATE_NORMAL(s)
#define FSM__G_STATE_GOOD(s)    FSM__G_STATE_NORMAL(s)
#define FSM__G_STATE_WARNING(s) FSM__G_STATE_NORMAL(s)
#define FSM__G_STATE_BAD(s)     FSM__G_STATE_NORMAL(s)
#define FSM__G_STATE_NEUTRAL(s) FSM__G_STATE_NORMAL(s)
#define FSM__G_EVENT(e, wire, ...)     \
    FSM__G_WIRE(FSM__EVENT_WIRE, wire) \
    _Static_assert(sizeof(FSM__ACCEPTED(e)) == 1, "a transition must accept this event");
#define FSM__G_INTERNAL(e, ...)     \
    FSM__G_EVENT(e, __VA_ARGS__, ~) \
    FSM__CAT(FSM__G_INTERNAL_, FSM__MODE)(e)
#define FSM__G_INTERNAL_INSTANCE(e) \
    _Static_assert(                 \
        sizeof(FSM__PRODUCED(e)) == 1, "an effect or timeout must produce this internal event");
/* A dispatch function may produce any event. */
#define FSM__G_INTERNAL_COMPONENT(e)

#endif
