/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* define.h - template: checks the machine in FSM_SPEC and makes its tables. Include it in one .c
 * file, after the machine's declare.h:
 *
 *     #include "order.h"
 *     #define FSM_SPEC "order.fsm"
 *     #include <detent/fsm/define.h>
 *     static int charge_card(...) { ... }       the functions that the spec names
 *
 * Two properties of C carry all checks; both put the reason into an identifier that the compiler
 * prints:
 *   - an enumerator may be declared once      -> a duplicate is an error;
 *   - a typedef may be repeated (C11)         -> a missing one is an error where it is used.
 *
 * The passes over the spec:
 *   1 functions   prototypes for the user's functions, untyped thunks for the tables
 *   2 pairs       each (state, event) once; overrides and alternatives in their place; names known
 *   3 answers     timeouts are answered where they fire; one timeout, one hook of a kind a state
 *   4 forgotten   every state entered, every event accepted, every internal event produced, one
 *   initial 5 tables      functions, effects, timers, states, events, groups, transitions, the
 *   machine */
#include <detent/rec/language.h>
#if REC__IS_C11

#include <detent/fsm/pre.h>

#include <detent/fsm/checks.h>
#include <detent/fsm/component_checks.h>
#include <detent/fsm/tables.h>

_Static_assert(
    FSM__OWN(_state_count) > 0 && FSM__OWN(_event_count) > 0,
    "a machine must have at least one state and one event");
_Static_assert(
    FSM__OWN(_state_count) <= DET_STATES_MAX && FSM__OWN(_event_count) <= DET_EVENTS_MAX,
    "a machine must have at most DET_STATES_MAX states and DET_EVENTS_MAX events");
_Static_assert(
    FSM__OWN(_state_count) * FSM__OWN(_event_count) <= DET_CELLS_MAX,
    "states times events must be at most DET_CELLS_MAX: use fewer, or several machines");

/* Pass 1: functions. */
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

/* Dense ids of the names that rows refer to. */
#include <detent/fsm/rows_off.h>
#undef EFFECT
#define EFFECT(...)            FSM__EFFECT_ID(__VA_ARGS__, ~)
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

/* Pass 2: pairs. */
#include <detent/fsm/rows_off.h>
#undef ON
#undef ON_EACH
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#undef ELSE
#undef ELSE_STAY
#undef ELSE_STOP
#define ON(S, E, ...)       FSM__P_GOES(FSM__P_PAIR_, S, E, __VA_ARGS__)
#define OVERRIDE(S, E, ...) FSM__P_GOES(FSM__P_AGAIN_, S, E, __VA_ARGS__)
#define ELSE(S, E, ...)     FSM__P_GOES(FSM__P_ELSE_, S, E, __VA_ARGS__)
#define FSM__P_GOES(what, S, E, ...)                                  \
    FSM__PAIRS(FSM__CAT(what, FSM__IF_3(S, E, __VA_ARGS__)), ~, S, E) \
    FSM__P_ON(__VA_ARGS__, ~)
#define FSM__P_ON(t, ...) FSM__P_ENTERS(t)
#define ON_EACH(e, t, ...) \
    FSM__EACH_ROW(FSM__PAIR_OF_STATE, (FSM__P_PAIR_NO_IF, ~, e), __VA_ARGS__) FSM__P_ENTERS(t)
#define STAY(...)          FSM__P_HOLD(FSM__P_PAIR_, __VA_ARGS__)
#define STOP(...)          FSM__P_HOLD(FSM__P_PAIR_, __VA_ARGS__)
#define OVERRIDE_STAY(...) FSM__P_HOLD(FSM__P_AGAIN_, __VA_ARGS__)
#define OVERRIDE_STOP(...) FSM__P_HOLD(FSM__P_AGAIN_, __VA_ARGS__)
#define ELSE_STAY(...)     FSM__P_HOLD(FSM__P_ELSE_, __VA_ARGS__)
#define ELSE_STOP(...)     FSM__P_HOLD(FSM__P_ELSE_, __VA_ARGS__)
/* The pair is followed by extras or nothing. */
#define FSM__P_HOLD(what, ...) FSM__P_HOLDS(FSM__CAT(what, FSM__IF_2(__VA_ARGS__)), __VA_ARGS__, ~)
/* Drops the extras; they were only searched for a guard. */
#define FSM__P_HOLDS(F, S, E, ...) FSM__PAIRS(F, ~, S, E)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include FSM_SPEC
#pragma GCC diagnostic pop
#undef FSM__P_GOES
#undef FSM__P_ON
#undef FSM__P_HOLD
#undef FSM__P_HOLDS

/* Pass 3: answers. */
#include <detent/fsm/rows_off.h>
#undef ON
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#undef ELSE
#undef ELSE_STAY
#undef ELSE_STOP
#undef AFTER
#undef TIMER
#undef ENTRY
#undef EXIT
#undef UNHANDLED
#define UNHANDLED(e, policy)                     \
    enum { FSM__ONE_POLICY(e) = FSM__EVENT(e) }; \
    FSM__A_POLICY(policy)
#define ON(...)            FSM__A_ON(__VA_ARGS__)
#define OVERRIDE(...)      FSM__A_ON(__VA_ARGS__)
#define STAY(...)          FSM__A_STAY(__VA_ARGS__)
#define STOP(...)          FSM__A_STOP(__VA_ARGS__)
#define OVERRIDE_STAY(...) FSM__A_STAY(__VA_ARGS__)
#define OVERRIDE_STOP(...) FSM__A_STOP(__VA_ARGS__)
#define ELSE(...)          FSM__A_ON(__VA_ARGS__)
#define ELSE_STAY(...)     FSM__A_STAY(__VA_ARGS__)
#define ELSE_STOP(...)     FSM__A_STOP(__VA_ARGS__)
#define AFTER(...)         FSM__A_AFTER(__VA_ARGS__)
#define TIMER(...)         FSM__A_TIMER(__VA_ARGS__)
#define ENTRY(S, hook)     FSM__STATES(FSM__A_ENTRY, ~, S)
#define EXIT(S, hook)      FSM__STATES(FSM__A_EXIT, ~, S)
#include FSM_SPEC

#ifdef FSM_UNHANDLED
FSM__A_POLICY(FSM_UNHANDLED)
#endif

/* The dispatch function of each state of a component. */
#include <detent/fsm/rows_off.h>
#undef DISPATCH
#undef CLOSED
#undef FAILURE
#undef COMPLETION
#undef INVARIANT
#ifdef FSM_CONTEXT
#define DISPATCH(...) FSM__C_DISPATCH(__VA_ARGS__)
#define CLOSED(S, e)  FSM__STATES(FSM__C_CLOSED, e, S)
#define FAILURE(e)    FSM__C_FAILURE(e)
#define COMPLETION(f) FSM__C_COMPLETION(f)
#define INVARIANT(f)  FSM__C_INVARIANT(f)
#else
#define DISPATCH(...) FSM__ONLY_COMPONENT("DISPATCH")
#define CLOSED(S, e)  FSM__ONLY_COMPONENT("CLOSED")
#define FAILURE(e)    FSM__ONLY_COMPONENT("FAILURE")
#define COMPLETION(f) FSM__ONLY_COMPONENT("COMPLETION")
#define INVARIANT(f)  FSM__ONLY_COMPONENT("INVARIANT")
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include FSM_SPEC
#pragma GCC diagnostic pop

/* Pass 4: forgotten rows. */
#include <detent/fsm/rows_off.h>
#undef STATE
#undef EVENT
#undef INTERNAL
#define STATE(...)    FSM__G_STATE(__VA_ARGS__)
#define EVENT(...)    FSM__G_EVENT(__VA_ARGS__, ~)
#define INTERNAL(...) FSM__G_INTERNAL(__VA_ARGS__)
#include FSM_SPEC
_Static_assert((int)FSM__ONE_INITIAL >= 0, "exactly one state must be INITIAL");

/* Pass 5: tables. Each has one extra row, so that none is empty. */
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

/* Later rows win: an UNHANDLED over the default of its event, an OVERRIDE over a transition. The
 * passes above have excluded accidental duplicates. */
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
FSM__LAYOUT
{
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

/* The table is made in two passes: first every cell leads to its own state, unhandled, so that a
 * step needs no test; then the rows are set. The ranges are an extension of gcc and clang. */
#pragma GCC diagnostic ignored "-Wpedantic"
static const struct det_transition FSM__OWN(
    __table)[(size_t)FSM__OWN(_state_count) * (size_t)FSM__OWN(_event_count)] = {
#include <detent/fsm/rows_off.h>
#undef STATE
#define STATE(s, ...) FSM__T_UNHANDLED(s)
#include FSM_SPEC
#include <detent/fsm/rows_off.h>
#undef ON
#undef ON_EACH
#undef STAY
#undef STOP
#undef OVERRIDE
#undef OVERRIDE_STAY
#undef OVERRIDE_STOP
#define ON(S, E, ...)       FSM__PAIRS(FSM__T_CELL, (DET_OUTCOME_GOTO, __VA_ARGS__), S, E)
#define OVERRIDE(S, E, ...) FSM__PAIRS(FSM__T_CELL, (DET_OUTCOME_GOTO, __VA_ARGS__), S, E)
#define ON_EACH(e, t, ...) \
    FSM__EACH_ROW(FSM__PAIR_OF_STATE, (FSM__T_CELL, (DET_OUTCOME_GOTO, t), e), __VA_ARGS__)
#define STAY(...)          FSM__T_HOLD(FSM__T_CELL, DET_OUTCOME_STAY, __VA_ARGS__)
#define STOP(...)          FSM__T_HOLD(FSM__T_CELL, DET_OUTCOME_STOP, __VA_ARGS__)
#define OVERRIDE_STAY(...) FSM__T_HOLD(FSM__T_CELL, DET_OUTCOME_STAY, __VA_ARGS__)
#define OVERRIDE_STOP(...) FSM__T_HOLD(FSM__T_CELL, DET_OUTCOME_STOP, __VA_ARGS__)
#include FSM_SPEC
};

/* The alternatives of a cell whose guard refuses, in the order of the rows. */
#include <detent/fsm/rows_off.h>
#undef ELSE
#undef ELSE_STAY
#undef ELSE_STOP
#define ELSE(S, E, ...) FSM__PAIRS(FSM__T_CHOICE, (DET_OUTCOME_GOTO, __VA_ARGS__), S, E)
#define ELSE_STAY(...)  FSM__T_HOLD(FSM__T_CHOICE, DET_OUTCOME_STAY, __VA_ARGS__)
#define ELSE_STOP(...)  FSM__T_HOLD(FSM__T_CHOICE, DET_OUTCOME_STOP, __VA_ARGS__)
static const struct det_choice FSM__OWN(__choices)[] = {
#include FSM_SPEC
    { .state = 0 },
};
#pragma GCC diagnostic pop

FSM__DEFINED const struct det_machine FSM__OWN(_machine) = {
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
    .choices = FSM__OWN(__choices),
    .choice_count = sizeof FSM__OWN(__choices) / sizeof FSM__OWN(__choices)[0] - 1,
};

#ifdef FSM_CONTEXT
#include <detent/fsm/component_define.h>
#endif

#include <detent/fsm/rows_end.h>

#endif
