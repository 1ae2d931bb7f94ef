/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pre.h - the common part of both templates: loops, sentences that become identifiers, and the
 * words of the language. Expects FSM_SPEC. */
#ifndef FSM_SPEC
#error "write #define FSM_SPEC \"order.fsm\" (a file on the include path) before this template"
#endif

#include <detent/fsm/each.h>
#include <detent/fsm/rows_off.h>
#include FSM_SPEC

#ifndef FSM_NAME
#error "the spec has no #define FSM_NAME: it is a fragment, and a fragment cannot run"
#endif
#ifndef FSM_PREFIX
#error "the spec has no #define FSM_PREFIX"
#endif
#if defined(FSM_CONTEXT) && defined(FSM_DATA)
#error "FSM_DATA is not permitted in a component: it keeps what it needs in its context"
#endif
#if defined(FSM_HANDLER) && !defined(FSM_CONTEXT)
#error "FSM_HANDLER is permitted only in a component: add #define FSM_CONTEXT"
#endif

/* Linkage of the machine: external, or with FSM_LOCAL internal to the .c file with both
 * templates. */
#undef FSM__DECLARED
#undef FSM__DEFINED
#ifdef FSM_LOCAL
#define FSM__DECLARED static
#define FSM__DEFINED  static
#else
#define FSM__DECLARED extern
#define FSM__DEFINED
#endif

#define ANY(...) (__VA_ARGS__)
#include <detent/rec/duration.h>

#ifndef DETENT_FSM_PRE_H
#define DETENT_FSM_PRE_H

/* order_<x> and ORDER_<x>. */
#define FSM__OWN(x)    FSM__CAT(FSM_NAME, x)
#define FSM__PUBLIC(x) FSM__CAT3(FSM_PREFIX, _, x)

/* Sentences about the machine. The compiler prints a false one. */
#define FSM__STATE(s)           FSM__CAT(s##_is_a_state_of_, FSM_NAME)
#define FSM__EVENT(e)           FSM__CAT(e##_is_an_event_of_, FSM_NAME)
#define FSM__STATE_WIRE(w)      FSM__CAT(w##_is_the_name_of_one_state_of_, FSM_NAME)
#define FSM__EVENT_WIRE(w)      FSM__CAT(w##_is_the_name_of_one_event_of_, FSM_NAME)
#define FSM__TRANSITION(s, e)   FSM__CAT(s##_on_##e##_is_a_transition_of_, FSM_NAME)
#define FSM__GUARDED(s, e)      FSM__CAT(s##_on_##e##_has_an_IF_in_, FSM_NAME)
#define FSM__GUARDED_EVER(s, e) FSM__CAT(every_OVERRIDE_of_##s##_on_##e##_has_an_IF_in_, FSM_NAME)
#define FSM__ONE_ELSE(s, e)     FSM__CAT(s##_on_##e##_has_one_ELSE_without_IF_in_, FSM_NAME)
#define FSM__ELSE_LAST(s, e)    FSM__CAT(ELSE_comes_after_OVERRIDE_of_##s##_on_##e##_in_, FSM_NAME)
#define FSM__ENTERED(s)         FSM__CAT(s##_is_entered_by_a_transition_of_, FSM_NAME)
#define FSM__ACCEPTED(e)        FSM__CAT(e##_is_accepted_by_a_transition_of_, FSM_NAME)
#define FSM__PRODUCED(e)        FSM__CAT(e##_is_produced_by_an_effect_or_timeout_of_, FSM_NAME)
#define FSM__ONE_INITIAL        FSM__CAT(FSM_NAME, _has_one_initial_state)
#define FSM__ONE_TIMEOUT(s)     FSM__CAT(s##_has_one_timeout_in_, FSM_NAME)
#define FSM__ONE_ENTRY(s)       FSM__CAT(s##_has_one_entry_hook_in_, FSM_NAME)
#define FSM__ONE_EXIT(s)        FSM__CAT(s##_has_one_exit_hook_in_, FSM_NAME)
#define FSM__ONE_POLICY(e)      FSM__CAT(e##_has_one_policy_in_, FSM_NAME)
#define FSM__EFFECT(f)          FSM__CAT(f##_is_an_effect_of_, FSM_NAME)
#define FSM__GUARD(f)           FSM__CAT(f##_is_a_guard_of_, FSM_NAME)
#define FSM__HOOK(f)            FSM__CAT(f##_is_a_hook_of_, FSM_NAME)
#define FSM__UPDATE(f)          FSM__CAT(f##_is_an_update_of_, FSM_NAME)
#define FSM__FILL(f)            FSM__CAT(f##_is_a_fill_of_, FSM_NAME)
#define FSM__TIMER(t)           FSM__CAT(t##_is_a_timer_of_, FSM_NAME)
#define FSM__GROUP(g)           FSM__CAT(g##_is_a_group_of_, FSM_NAME)
#define FSM__EVENT_GROUP(g)     FSM__CAT(g##_is_an_event_group_of_, FSM_NAME)
#define FSM__RUN(f)             FSM__CAT(call_##f##_of_, FSM_NAME)
/* Sentences about a component. */
#define FSM__ONE_DISPATCH(s)        FSM__CAT(s##_has_one_DISPATCH_in_, FSM_NAME)
#define FSM__NO_DISPATCH(s)         FSM__CAT(s##_is_FINAL_and_has_no_DISPATCH_in_, FSM_NAME)
#define FSM__MUST_ACCEPT_FAILURE(s) FSM__CAT(s##_must_accept_FAILURE_in_, FSM_NAME)
#define FSM__ONE_CLOSED(s)          FSM__CAT(s##_has_one_CLOSED_in_, FSM_NAME)
#define FSM__ONE_FAILURE            FSM__CAT(FSM_NAME, _has_one_FAILURE)
#define FSM__ONE_COMPLETION         FSM__CAT(FSM_NAME, _has_one_COMPLETION)
#define FSM__ONE_INVARIANT          FSM__CAT(FSM_NAME, _has_one_INVARIANT)

#endif

/* The struct of the instance data. */
#undef FSM__DATA
#undef FSM__HAS_DATA
#ifdef FSM_DATA
#define FSM__DATA     FSM_DATA
#define FSM__HAS_DATA 1
#else
#define FSM__DATA     det_empty
#define FSM__HAS_DATA 0
#endif

/* The mode: COMPONENT, whose functions get its context, or INSTANCE. */
#undef FSM__MODE
#ifdef FSM_CONTEXT
#define FSM__MODE COMPONENT
#else
#define FSM__MODE INSTANCE
#endif
