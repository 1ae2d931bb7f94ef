/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* define.h - template: checks the machine in FSM_SPEC and lays down its tables. In one .c file, after
 * the machine's declare.h:
 *
 *     #include "order.h"
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/define.h>
 *     static int charge_card(...) { ... }       the functions that the spec names
 *
 * Two tricks carry all the checks, and both put the reason into an identifier that the compiler
 * prints:
 *   - an enumerator may be declared once  -> "said twice" is an error;
 *   - a typedef may be repeated (C11)     -> "never said" is an error where it is used.
 *
 * The passes over the spec:
 *   1 functions   prototypes for the user's functions, untyped thunks for the tables
 *   2 pairs       each (state, event) once; overrides after what they override; names known
 *   3 answers     timeouts are answered where they fire; one timeout and one hook of a kind per state
 *   4 forgotten   no state unentered, no event untaken, no internal event unproduced, one initial
 *   5 tables      functions, effects, timers, states, events, groups, transitions, the machine */
#include <detent/fsm/pre.h>

#ifndef DETENT_FSM_DEFINE_H
#define DETENT_FSM_DEFINE_H

enum { FSM_STATE_IS_NORMAL, FSM_STATE_IS_INITIAL, FSM_STATE_IS_FINAL };

#define FSM__EVENT_POINTER const struct FSM__OWN(_event) *

/* 1: a thunk has the untyped signature of machine.h and calls the user's typed function. */
#define FSM__F_GUARD(f)                                                                            \
    static bool f(const struct det_move *move, const struct FSM__DATA *data,                       \
        FSM__EVENT_POINTER event);                                                                 \
    static bool FSM__RUN(f)(const struct det_move *move, const void *data, const void *event)      \
    {                                                                                              \
        return f(move, data, event);                                                               \
    }                                                                                              \
    static const struct det_guard_def FSM__GUARD(f)                                                \
        __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_HOOK(f)                                                                             \
    static int f(const struct det_move *move, const struct FSM__DATA *data,                        \
        FSM__EVENT_POINTER event);                                                                 \
    static int FSM__RUN(f)(const struct det_move *move, const void *data, const void *event)       \
    {                                                                                              \
        return f(move, data, event);                                                               \
    }                                                                                              \
    static const struct det_hook_def FSM__HOOK(f) __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_UPDATE(f)                                                                           \
    static void f(struct FSM__DATA *data, FSM__EVENT_POINTER event);                               \
    static void FSM__RUN(f)(void *data, const void *event)                                         \
    {                                                                                              \
        f(data, event);                                                                            \
    }                                                                                              \
    static const struct det_update_def FSM__UPDATE(f)                                              \
        __attribute__((unused)) = { #f, FSM__RUN(f) };
#define FSM__F_FILL(f)                                                                             \
    static void f(const struct det_move *move, const struct FSM__DATA *data,                       \
        struct FSM__OWN(_event) *event);                                                           \
    static void FSM__RUN(f)(const struct det_move *move, const void *data, void *event)            \
    {                                                                                              \
        f(move, data, event);                                                                      \
    }                                                                                              \
    static const struct det_fill_def FSM__FILL(f) __attribute__((unused)) = { #f, FSM__RUN(f) };

#define FSM__F_EFFECT(...)                                                                         \
    FSM__CAT(FSM__F_EFFECT_, FSM__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define FSM__F_EFFECT_MANY(f, ...)                                                                 \
    FSM__F_EFFECT_ONE(f) FSM__EACH_MEMBER(FSM__F_PRODUCES, ~, __VA_ARGS__)
#define FSM__F_EFFECT_ONE(f)                                                                       \
    static int f(struct det_effect_call *call, const struct FSM__DATA *data,                       \
        FSM__EVENT_POINTER event, struct FSM__OWN(_event) *ret);                                   \
    static int FSM__RUN(f)(struct det_effect_call *call, const void *data, const void *event,      \
        void *ret)                                                                                 \
    {                                                                                              \
        return f(call, data, event, ret);                                                          \
    }
#define FSM__F_PRODUCES(x, e)                                                                      \
    typedef char FSM__PRODUCED(e)[1];                                                              \
    _Static_assert((int)FSM__EVENT(e) >= 0, "an effect produces events of its own machine");

/* 2 */
#define FSM__P_PAIR(x, s, e)                                                                       \
    enum {                                                                                         \
        FSM__TRANSITION(s, e) = (int)FSM__STATE(s) * (int)FSM__OWN(_event_count) +                 \
            (int)FSM__EVENT(e)                                                                     \
    };                                                                                             \
    typedef char FSM__TAKEN(e)[1];
#define FSM__P_AGAIN(x, s, e)                                                                      \
    _Static_assert(FSM__TRANSITION(s, e) >= 0, "an override comes after what it overrides");
#define FSM__P_ENTERS(t) typedef char FSM__ENTERED(t)[1 + 0 * (int)FSM__STATE(t)];

/* 3 */
#define FSM__PICK4(_1, _2, _3, _4, n, ...) n
#define FSM__PICK12(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, n, ...) n
/* Whether extras stand behind three, and behind two, arguments. */
#define FSM__BEHIND_3(...)                                                                         \
    FSM__PICK12(__VA_ARGS__, too_many_extras, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE,      \
        BARE, BARE, BARE, ~)
#define FSM__BEHIND_2(...)                                                                         \
    FSM__PICK12(__VA_ARGS__, too_many_extras, too_many_extras, MORE, MORE, MORE, MORE, MORE, MORE, \
        MORE, MORE, BARE, BARE, ~)

#define FSM__A_AFTER(...) FSM__CAT(FSM__A_AFTER_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__A_AFTER_3(S, duration, e)                                                             \
    FSM__STATES(FSM__A_ONE, e, S)                                                                  \
    FSM__A_DURATION(duration)                                                                      \
    typedef char FSM__PRODUCED(e)[1];
#define FSM__A_AFTER_4(S, duration, e, fill) FSM__A_AFTER_3(S, duration, e)
#define FSM__A_ONE(e, s)                                                                           \
    enum { FSM__ONE_TIMEOUT(s) = FSM__TRANSITION(s, e) + 0 * (int)FSM__STATE(s) };
#define FSM__A_DURATION(duration)                                                                  \
    _Static_assert((duration) > 0 && (duration) <= DET_DELAY_MAX,                                  \
        "a duration is more than 0 and at most ten years");
#define FSM__A_TIMER(...) FSM__CAT(FSM__A_TIMER_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__A_TIMER_3(t, duration, e)                                                             \
    FSM__A_DURATION(duration)                                                                      \
    typedef char FSM__PRODUCED(e)[1];
#define FSM__A_TIMER_4(t, duration, e, fill) FSM__A_TIMER_3(t, duration, e)
#define FSM__A_ENTRY(x, s) enum { FSM__ONE_ENTRY(s) = FSM__STATE(s) };
#define FSM__A_EXIT(x, s)  enum { FSM__ONE_EXIT(s) = FSM__STATE(s) };

/* Each kind of extra as a member of a struct, so that a second one is an error. The member stands
 * between two assertions, the first of which an unknown extra does not survive. */
#define FSM__A_ONCE(x, extra)              _Static_assert(no_extra_is_called_##extra, "");
#define FSM__A_IS(member)                  1, ""); char member; _Static_assert(1
#define no_extra_is_called_IF(f) FSM__A_IS(IF_stands_once_in_a_row)
#define no_extra_is_called_CALL(f) FSM__A_IS(CALL_stands_once_in_a_row)
#define no_extra_is_called_SET(f) FSM__A_IS(SET_stands_once_in_a_row)
#define no_extra_is_called_KEEP(...) FSM__A_IS(KEEP_stands_once_in_a_row)
#define no_extra_is_called_DO(...) FSM__A_IS(DO_stands_once_in_a_row)
#define no_extra_is_called_ARM(...) FSM__A_IS(ARM_stands_once_in_a_row)
#define no_extra_is_called_DISARM(...) FSM__A_IS(DISARM_stands_once_in_a_row)
#define no_extra_is_called_WITHIN(...) FSM__A_IS(WITHIN_stands_once_in_a_row)
#define no_extra_is_called_REASON(text) FSM__A_IS(REASON_stands_once_in_a_row)

/* Answers: each kind of extra once in a row, REASON only where there is a stop, WITHIN only where a
 * state is entered. FSM__A_<extra> gives what is to be asked about it, with the kind of row and the
 * target: mostly nothing. */
#define FSM__A_EXTRAS(row, t, ...)                                                                 \
    _Static_assert(sizeof(struct {                                                                 \
        FSM__EACH_EXTRA(FSM__A_ONCE, ~, __VA_ARGS__)                                               \
    }) > 0, "");                                                                                   \
    FSM__EACH_EXTRA(FSM__A_##row, t, __VA_ARGS__)
#define FSM__A_GOTO(t, extra)              FSM__A_ASK(GOTO, t, FSM__A_##extra)
#define FSM__A_HOLD(t, extra)              FSM__A_ASK(HOLD, t, FSM__A_##extra)
#define FSM__A_HALT(t, extra)              FSM__A_ASK(HALT, t, FSM__A_##extra)
#define FSM__A_ASK(...)                    FSM__A_ASK_(__VA_ARGS__)
#define FSM__A_ASK_(row, t, what, ...)     FSM__A_ASK_##what(row, t, __VA_ARGS__)
#define FSM__A_IF(f)                       NOTHING, ~
#define FSM__A_CALL(f)                     NOTHING, ~
#define FSM__A_SET(f)                      NOTHING, ~
#define FSM__A_KEEP(...)                   NOTHING, ~
#define FSM__A_ARM(...)                    NOTHING, ~
#define FSM__A_DISARM(...)                 NOTHING, ~
#define FSM__A_DO(...)                     NOTHING, ~
#define FSM__A_REASON(text)                REASON, ~
#define FSM__A_WITHIN(...)                 WITHIN, __VA_ARGS__, ~
#define FSM__A_ASK_NOTHING(row, t, ...)
#define FSM__A_ASK_REASON(row, t, ...)     FSM__A_REASON_##row
#define FSM__A_REASON_HALT
#define FSM__A_REASON_HOLD                 _Static_assert(0, "REASON belongs to STOP");
#define FSM__A_REASON_GOTO                 _Static_assert(0, "REASON belongs to STOP");
#define FSM__A_ASK_WITHIN(row, t, ...)     FSM__A_WITHIN_##row(t, __VA_ARGS__)
#define FSM__A_WITHIN_HOLD(...)            _Static_assert(0, "WITHIN belongs to ON and OVERRIDE");
#define FSM__A_WITHIN_HALT(...)            _Static_assert(0, "WITHIN belongs to ON and OVERRIDE");
#define FSM__A_WITHIN_GOTO(t, duration, timeout_event, ...)                                        \
    FSM__A_DURATION(duration)                                                                      \
    typedef char FSM__PRODUCED(timeout_event)[1];                                                  \
    _Static_assert(FSM__TRANSITION(t, timeout_event) >= 0,                                         \
        "a timeout is answered in the state where it fires");
#define FSM__A_ON(...)                     FSM__CAT(FSM__A_ON_, FSM__BEHIND_3(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_ON_BARE(...)
#define FSM__A_ON_MORE(S, E, t, ...)       FSM__A_EXTRAS(GOTO, t, __VA_ARGS__)
#define FSM__A_STAY(...)                   FSM__CAT(FSM__A_STAY_, FSM__BEHIND_2(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_STAY_BARE(...)
#define FSM__A_STAY_MORE(S, E, ...)        FSM__A_EXTRAS(HOLD, ~, __VA_ARGS__)
#define FSM__A_STOP(...)                   FSM__CAT(FSM__A_STOP_, FSM__BEHIND_2(__VA_ARGS__))(__VA_ARGS__)
#define FSM__A_STOP_BARE(...)
#define FSM__A_STOP_MORE(S, E, ...)        FSM__A_EXTRAS(HALT, ~, __VA_ARGS__)

/* 4 */
#define FSM__G_STATE(...)                    FSM__G_STATE_(__VA_ARGS__, NORMAL, ~)
#define FSM__G_STATE_(s, wire, flag, ...)                                                          \
    _Static_assert(FSM_STATE_IS_##flag >= 0, "");                                                  \
    FSM__G_WIRE(FSM__STATE_WIRE, wire)                                                             \
    FSM__G_STATE_##flag(s)
/* Once, and not a keyword of C. */
#define FSM__G_WIRE(sentence, wire)                                                                \
    enum { sentence(wire) };                                                                       \
    _Static_assert(sizeof(struct { char wire; }) == 1, "");
#define FSM__G_STATE_INITIAL(s) enum { FSM__ONE_INITIAL = FSM__STATE(s) };
#define FSM__G_STATE_NORMAL(s)                                                                     \
    _Static_assert(sizeof(FSM__ENTERED(s)) == 1, "no transition enters this state");
#define FSM__G_STATE_FINAL(s)    FSM__G_STATE_NORMAL(s)
#define FSM__G_EVENT(e, wire, ...)                                                                 \
    FSM__G_WIRE(FSM__EVENT_WIRE, wire)                                                             \
    _Static_assert(sizeof(FSM__TAKEN(e)) == 1, "no transition takes this event");
#define FSM__G_INTERNAL(e, ...)                                                                    \
    FSM__G_EVENT(e, __VA_ARGS__, ~)                                                                \
    _Static_assert(sizeof(FSM__PRODUCED(e)) == 1, "nothing produces this internal event");

/* 5 */
#define FSM__T_EFFECT(...)                                                                         \
    FSM__CAT(FSM__T_EFFECT_, FSM__ONE_OR_MANY(__VA_ARGS__))(__VA_ARGS__)
#define FSM__T_EFFECT_ONE(f) [FSM__EFFECT(f)] = { .name = #f, .run = FSM__RUN(f) },
#define FSM__T_EFFECT_MANY(f, ...)                                                                 \
    [FSM__EFFECT(f)] = { .name = #f,                                                               \
        .run = FSM__RUN(f),                                                                        \
        .produces = FSM__T_IDS(FSM__T_EVENT_ID, __VA_ARGS__),                                      \
        .produces_count = FSM__COUNT(__VA_ARGS__) },
#define FSM__T_IDS(F, ...)      (const uint16_t[]) { FSM__EACH_MEMBER(F, ~, __VA_ARGS__) }
#define FSM__T_STATE_ID(x, s)   FSM__STATE(s),
#define FSM__T_EVENT_ID(x, e)   FSM__EVENT(e),
#define FSM__T_EFFECT_ID(x, f)  FSM__EFFECT(f),
#define FSM__T_TIMER_ID(x, t)   FSM__TIMER(t),

/* (duration, event) or (duration, event, fill) as a struct det_timeout. */
#define FSM__T_TIMEOUT(...)                                                                        \
    FSM__CAT(FSM__T_TIMEOUT_, FSM__PICK4(__VA_ARGS__, 4, 3, 2, 1, ~))(__VA_ARGS__)
#define FSM__T_TIMEOUT_2(duration, e)       { .after = (duration), .event = FSM__EVENT(e) }
#define FSM__T_TIMEOUT_3(duration, e, f)                                                           \
    { .after = (duration), .event = FSM__EVENT(e), .fill = &FSM__FILL(f) }

#define FSM__T_STATE(...)                 FSM__T_STATE_(__VA_ARGS__, NORMAL, ~)
#define FSM__T_STATE_(s, wire, flag, ...)                                                          \
    [FSM__STATE(s)].name = #wire, [FSM__STATE(s)].flags = FSM__T_FLAG_##flag,
#define FSM__T_FLAG_INITIAL DET_STATE_INITIAL
#define FSM__T_FLAG_FINAL   DET_STATE_FINAL
#define FSM__T_FLAG_NORMAL  0
#define FSM__T_ENTRY(hook, s)       [FSM__STATE(s)].entry = &FSM__HOOK(hook),
#define FSM__T_EXIT(hook, s)        [FSM__STATE(s)].exit = &FSM__HOOK(hook),
#define FSM__T_AFTER(x, s)          [FSM__STATE(s)].timeout = FSM__T_TIMEOUT x,

#define FSM__T_EVENT(internal, ...)                                                                \
    FSM__CAT(FSM__T_EVENT_, FSM__EVENT_FORM(__VA_ARGS__))(internal, __VA_ARGS__)
#define FSM__T_EVENT_PLAIN(internal, e, wire)                                                      \
    [FSM__EVENT(e)] = { .name = #wire, .is_internal = internal, .unhandled = FSM__T_POLICY },
#define FSM__T_EVENT_PAYLOAD(internal, e, wire, type)                                              \
    [FSM__EVENT(e)] = { .name = #wire,                                                             \
        .is_internal = internal,                                                                   \
        .unhandled = FSM__T_POLICY,                                                                \
        .payload_offset = offsetof(struct FSM__OWN(_event), wire),                                 \
        .payload = { .get = type##_record } },

/* The same layout as the event struct, with the C names of the events as members: for KEEP. */
#define FSM__T_LAYOUT(...) FSM__CAT(FSM__T_LAYOUT_, FSM__EVENT_FORM(__VA_ARGS__))(__VA_ARGS__)
#define FSM__T_LAYOUT_PLAIN(e, wire)            struct det_empty e;
#define FSM__T_LAYOUT_PAYLOAD(e, wire, payload) struct payload e;
#define FSM__LAYOUT struct FSM__OWN(__event_layout)

#define FSM__T_GROUP(F, name, ...)                                                                 \
    { #name, FSM__T_IDS(F, __VA_ARGS__), FSM__COUNT(__VA_ARGS__) },

/* One cell; x is (outcome, target) or (outcome, target, extras...). */
#define FSM__T_CELL(x, s, e)         FSM__T_CELL_(s, e, FSM__UNLIST x)
#define FSM__T_CELL_(...)            FSM__T_CELL__(__VA_ARGS__)
#define FSM__T_CELL__(s, e, ...)     FSM__CAT(FSM__T_CELL_, FSM__BEHIND_2(__VA_ARGS__))(s, e, __VA_ARGS__)
#define FSM__T_CELL_BARE(s, e, what, t)                                                            \
    [FSM__T_AT(s, e)] = { .outcome = what, .to = FSM__T_TO_##what(s, t) },
#define FSM__T_CELL_MORE(s, e, what, t, ...)                                                       \
    [FSM__T_AT(s, e)] = { .outcome = what,                                                         \
        .to = FSM__T_TO_##what(s, t),                                                              \
        .more = &(const struct det_transition_more){                                               \
            FSM__EACH_EXTRA(FSM__T_EXTRA, e, __VA_ARGS__) } },
#define FSM__T_AT(s, e)                                                                            \
    (size_t)FSM__STATE(s) * (size_t)FSM__OWN(_event_count) + (size_t)FSM__EVENT(e)
#define FSM__T_TO_DET_GOTO(s, t) FSM__STATE(t)
#define FSM__T_TO_DET_STAY(s, t) FSM__STATE(s)
#define FSM__T_TO_DET_STOP(s, t) FSM__STATE(s)

/* FSM__T_<extra> gives initializers, but for KEEP, which needs to know the event. */
#define FSM__T_EXTRA(e, extra)       FSM__T_TAKE(e, FSM__T_##extra)
#define FSM__T_TAKE(...)             FSM__T_TAKE_(__VA_ARGS__)
#define FSM__T_TAKE_(e, what, ...)   FSM__T_TAKE_##what(e, __VA_ARGS__)
#define FSM__T_TAKE_INIT(e, ...)     __VA_ARGS__,
#define FSM__T_TAKE_KEEP(e, ...)                                                                   \
    .keeps = (const struct det_keep[]){ FSM__EACH_MEMBER(FSM__T_KEEP_ONE, e, __VA_ARGS__) },       \
    .keep_count = FSM__COUNT(__VA_ARGS__),
#define FSM__T_IF(f)                 INIT, .guard = &FSM__GUARD(f)
#define FSM__T_CALL(f)               INIT, .hook = &FSM__HOOK(f)
#define FSM__T_SET(f)                INIT, .update = &FSM__UPDATE(f)
#define FSM__T_REASON(text)          INIT, .reason = text
#define FSM__T_KEEP(...)             KEEP, __VA_ARGS__
#define FSM__T_DO(...)                                                                             \
    INIT, .effects = FSM__T_FEW(FSM__T_EFFECT_ID, __VA_ARGS__),                                    \
    .effect_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_ARM(...)                                                                            \
    INIT, .arms = FSM__T_FEW(FSM__T_TIMER_ID, __VA_ARGS__), .arm_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_DISARM(...)                                                                         \
    INIT, .disarms = FSM__T_FEW(FSM__T_TIMER_ID, __VA_ARGS__),                                     \
    .disarm_count = FSM__COUNT_8(__VA_ARGS__)
#define FSM__T_WITHIN(...)                                                                         \
    INIT, .within = &(const struct det_timeout)FSM__T_TIMEOUT(__VA_ARGS__)
#define FSM__T_FEW(F, ...)           (const uint16_t[]) { FSM__EACH_FEW(F, ~, __VA_ARGS__) }
#define FSM__T_KEEP_ONE(e, field)                                                                  \
    { #field, offsetof(FSM__LAYOUT, e.field), offsetof(struct FSM__DATA, field),                   \
        sizeof(((FSM__LAYOUT *)0)->e.field) +                                                      \
            0 * sizeof(struct {                                                                    \
                char unused;                                                                       \
                _Static_assert(                                                                    \
                    FSM__T_SAME(((FSM__LAYOUT *)0)->e.field, ((struct FSM__DATA *)0)->field),      \
                    "KEEP takes a field that the payload and the data have with the same type");   \
            }),                                                                                    \
        true },
/* bytes(n) is a struct without a name, so that two of them are compatible only in size. */
#define FSM__T_SAME(a, b)                                                                          \
    (__builtin_types_compatible_p(__typeof__(a), __typeof__(b)) ||                                 \
        (__builtin_classify_type(a) == 12 && __builtin_classify_type(b) == 12 &&                   \
            sizeof(a) == sizeof(b)))

#endif

_Static_assert(FSM__OWN(_state_count) > 0 && FSM__OWN(_event_count) > 0,
    "a machine has at least one state and one event");

/* 1 functions */
#include <detent/fsm/rows_off.h>
#undef GUARD
#undef HOOK
#undef UPDATE
#undef FILL
#undef EFFECT
#define GUARD(f)    FSM__F_GUARD(f)
#define HOOK(f)     FSM__F_HOOK(f)
#define UPDATE(f)   FSM__F_UPDATE(f)
#define FILL(f)     FSM__F_FILL(f)
#define EFFECT(...) FSM__F_EFFECT(__VA_ARGS__)
#include FSM_SPEC

/* Dense ids of what rows refer to by number. */
#include <detent/fsm/rows_off.h>
#undef EFFECT
#define EFFECT(...)           FSM__EFFECT_ID(__VA_ARGS__, ~)
#define FSM__EFFECT_ID(f, ...) FSM__EFFECT(f),
enum FSM__OWN(__effect) {
#include FSM_SPEC
    FSM__OWN(__effect_count),
};
#undef FSM__EFFECT_ID
#include <detent/fsm/rows_off.h>
#undef TIMER
#define TIMER(t, ...) FSM__TIMER(t),
enum FSM__OWN(__timer) {
#include FSM_SPEC
    FSM__OWN(__timer_count),
};
#include <detent/fsm/rows_off.h>
#undef GROUP
#define GROUP(name, ...) FSM__GROUP(name),
enum FSM__OWN(__group) {
#include FSM_SPEC
    FSM__OWN(__group_count),
};
#include <detent/fsm/rows_off.h>
#undef EVENT_GROUP
#define EVENT_GROUP(name, ...) FSM__EVENT_GROUP(name),
enum FSM__OWN(__event_group) {
#include FSM_SPEC
    FSM__OWN(__event_group_count),
};

/* 2 pairs */
#include <detent/fsm/rows_off.h>
#undef ON
#undef ON_EACH
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#define ON(S, E, ...)      FSM__PAIRS(FSM__P_PAIR, ~, S, E) FSM__P_ON(__VA_ARGS__, ~)
#define FSM__P_ON(t, ...)  FSM__P_ENTERS(t)
#define ON_EACH(e, t, ...) FSM__EACH_ROW(FSM__PAIR_OF_STATE, (FSM__P_PAIR, ~, e), __VA_ARGS__) FSM__P_ENTERS(t)
#define STAY(...)          FSM__P_HOLD(__VA_ARGS__, ~)
#define STOP(...)          FSM__P_HOLD(__VA_ARGS__, ~)
#define FSM__P_HOLD(S, E, ...)       FSM__PAIRS(FSM__P_PAIR, ~, S, E)
#define OVERRIDE(S, E, ...)          FSM__PAIRS(FSM__P_AGAIN, ~, S, E) FSM__P_ON(__VA_ARGS__, ~)
#define OVERRIDE_STAY(...)           FSM__P_HOLD_AGAIN(__VA_ARGS__, ~)
#define OVERRIDE_STOP(...)           FSM__P_HOLD_AGAIN(__VA_ARGS__, ~)
#define FSM__P_HOLD_AGAIN(S, E, ...) FSM__PAIRS(FSM__P_AGAIN, ~, S, E)
#include FSM_SPEC
#undef FSM__P_ON
#undef FSM__P_HOLD
#undef FSM__P_HOLD_AGAIN

/* 3 answers */
#include <detent/fsm/rows_off.h>
#undef ON
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#undef AFTER
#undef TIMER
#undef ENTRY
#undef EXIT
#undef UNHANDLED
#define UNHANDLED(e, policy) enum { FSM__ONE_POLICY(e) = FSM__EVENT(e) };
#define ON(...)            FSM__A_ON(__VA_ARGS__)
#define OVERRIDE(...)      FSM__A_ON(__VA_ARGS__)
#define STAY(...)          FSM__A_STAY(__VA_ARGS__)
#define STOP(...)          FSM__A_STOP(__VA_ARGS__)
#define OVERRIDE_STAY(...) FSM__A_STAY(__VA_ARGS__)
#define OVERRIDE_STOP(...) FSM__A_STOP(__VA_ARGS__)
#define AFTER(...)         FSM__A_AFTER(__VA_ARGS__)
#define TIMER(...)         FSM__A_TIMER(__VA_ARGS__)
#define ENTRY(S, hook)     FSM__STATES(FSM__A_ENTRY, ~, S)
#define EXIT(S, hook)      FSM__STATES(FSM__A_EXIT, ~, S)
#include FSM_SPEC

/* 4 forgotten */
#include <detent/fsm/rows_off.h>
#undef STATE
#undef EVENT
#undef INTERNAL
#define STATE(...)    FSM__G_STATE(__VA_ARGS__)
#define EVENT(...)    FSM__G_EVENT(__VA_ARGS__, ~)
#define INTERNAL(...) FSM__G_INTERNAL(__VA_ARGS__)
#include FSM_SPEC
_Static_assert((int)FSM__ONE_INITIAL >= 0, "exactly one state is INITIAL");

/* 5 tables. Each has one row more than it needs, so that none is ever empty. */
#include <detent/fsm/rows_off.h>
#undef EFFECT
#define EFFECT(...) FSM__T_EFFECT(__VA_ARGS__)
static const struct det_effect_def FSM__OWN(__effects)[] = {
#include FSM_SPEC
    [FSM__OWN(__effect_count)] = { .name = NULL },
};

#include <detent/fsm/rows_off.h>
#undef TIMER
#define TIMER(t, ...) [FSM__TIMER(t)] = { #t, FSM__T_TIMEOUT(__VA_ARGS__) },
static const struct det_timer_def FSM__OWN(__timers)[] = {
#include FSM_SPEC
    [FSM__OWN(__timer_count)] = { .name = NULL },
};

#include <detent/fsm/rows_off.h>
#undef STATE
#undef ENTRY
#undef EXIT
#undef AFTER
#define STATE(...)     FSM__T_STATE(__VA_ARGS__)
#define ENTRY(S, hook) FSM__STATES(FSM__T_ENTRY, hook, S)
#define EXIT(S, hook)  FSM__STATES(FSM__T_EXIT, hook, S)
#define AFTER(S, ...)  FSM__STATES(FSM__T_AFTER, (__VA_ARGS__), S)
static const struct det_state_def FSM__OWN(__states)[] = {
#include FSM_SPEC
    [FSM__OWN(_state_count)].name = NULL,
};

/* Rows that come later win: an UNHANDLED over its event's default, an OVERRIDE over a transition. The
 * passes above have ruled out accidents. */
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#else
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#undef FSM__T_POLICY
#ifdef FSM_UNHANDLED
#define FSM__T_POLICY FSM__CAT(DET_UNHANDLED_, FSM_UNHANDLED)
#else
#define FSM__T_POLICY DET_UNHANDLED_ERROR
#endif
#include <detent/fsm/rows_off.h>
#undef EVENT
#undef INTERNAL
#undef UNHANDLED
#define EVENT(...)           FSM__T_EVENT(false, __VA_ARGS__)
#define INTERNAL(...)        FSM__T_EVENT(true, __VA_ARGS__)
#define UNHANDLED(e, policy) [FSM__EVENT(e)].unhandled = DET_UNHANDLED_##policy,
static const struct det_event_def FSM__OWN(__events)[] = {
#include FSM_SPEC
    [FSM__OWN(_event_count)] = { .name = NULL },
};

#include <detent/fsm/rows_off.h>
#undef EVENT
#undef INTERNAL
#define EVENT(...)    FSM__T_LAYOUT(__VA_ARGS__)
#define INTERNAL(...) FSM__T_LAYOUT(__VA_ARGS__)
FSM__LAYOUT {
    enum FSM__OWN(_event_kind) kind;
    union {
        struct det_empty det__none;
#include FSM_SPEC
    };
};
_Static_assert(sizeof(FSM__LAYOUT) == sizeof(struct FSM__OWN(_event)), "");

#include <detent/fsm/rows_off.h>
#undef GROUP
#define GROUP(...) FSM__T_GROUP(FSM__T_STATE_ID, __VA_ARGS__)
static const struct det_group_def FSM__OWN(__groups)[] = {
#include FSM_SPEC
    { .name = NULL },
};
#include <detent/fsm/rows_off.h>
#undef EVENT_GROUP
#define EVENT_GROUP(...) FSM__T_GROUP(FSM__T_EVENT_ID, __VA_ARGS__)
static const struct det_group_def FSM__OWN(__event_groups)[] = {
#include FSM_SPEC
    { .name = NULL },
};

#include <detent/fsm/rows_off.h>
#undef ON
#undef ON_EACH
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#define ON(S, E, ...)            FSM__PAIRS(FSM__T_CELL, (DET_GOTO, __VA_ARGS__), S, E)
#define OVERRIDE(S, E, ...)      FSM__PAIRS(FSM__T_CELL, (DET_GOTO, __VA_ARGS__), S, E)
#define ON_EACH(e, t, ...)                                                                         \
    FSM__EACH_ROW(FSM__PAIR_OF_STATE, (FSM__T_CELL, (DET_GOTO, t), e), __VA_ARGS__)
#define STAY(...)                FSM__T_HOLD(DET_STAY, __VA_ARGS__)
#define STOP(...)                FSM__T_HOLD(DET_STOP, __VA_ARGS__)
#define OVERRIDE_STAY(...)       FSM__T_HOLD(DET_STAY, __VA_ARGS__)
#define OVERRIDE_STOP(...)       FSM__T_HOLD(DET_STOP, __VA_ARGS__)
#define FSM__T_HOLD(what, ...)                                                                     \
    FSM__CAT(FSM__T_HOLD_, FSM__BEHIND_2(__VA_ARGS__))(what, __VA_ARGS__)
#define FSM__T_HOLD_BARE(what, S, E)      FSM__PAIRS(FSM__T_CELL, (what, ~), S, E)
#define FSM__T_HOLD_MORE(what, S, E, ...) FSM__PAIRS(FSM__T_CELL, (what, ~, __VA_ARGS__), S, E)
static const struct det_transition
    FSM__OWN(__table)[(size_t)FSM__OWN(_state_count) * (size_t)FSM__OWN(_event_count)] = {
#include FSM_SPEC
    };
#undef FSM__T_HOLD
#undef FSM__T_HOLD_BARE
#undef FSM__T_HOLD_MORE
#pragma GCC diagnostic pop

_Static_assert(FSM__OWN(_state_count) <= DET_STATES_MAX && FSM__OWN(_event_count) <= DET_EVENTS_MAX,
    "too many states or events");

const struct det_machine FSM__OWN(_machine) = {
    .name = FSM__STRING(FSM_NAME),
#ifdef FSM_VERSION
    .version = FSM_VERSION,
#else
    .version = 1,
#endif
    .state_count = FSM__OWN(_state_count),
    .event_count = FSM__OWN(_event_count),
    .effect_count = FSM__OWN(__effect_count),
    .timer_count = FSM__OWN(__timer_count),
    .group_count = FSM__OWN(__group_count),
    .event_group_count = FSM__OWN(__event_group_count),
    .initial = FSM__ONE_INITIAL,
    .event_size = sizeof(struct FSM__OWN(_event)),
#ifdef FSM_DATA
    .data = { .get = FSM__CAT(FSM_DATA, _record) },
#endif
    .table = FSM__OWN(__table),
    .states = FSM__OWN(__states),
    .events = FSM__OWN(__events),
    .effects = FSM__OWN(__effects),
    .timers = FSM__OWN(__timers),
    .groups = FSM__OWN(__groups),
    .event_groups = FSM__OWN(__event_groups),
};

#include <detent/fsm/rows_end.h>
