/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pre.h - the common part of both worker templates: names, the sentences that become identifiers,
 * and the words of the language. Expects WORKER_SPEC. */
#ifndef WORKER_SPEC
#error "write #define WORKER_SPEC \"link.worker\" (a file on the include path) before this template"
#endif

#include <detent/worker/rows_off.h>
#include WORKER_SPEC

#ifndef WORKER_NAME
#error "the spec has no #define WORKER_NAME"
#endif
#ifndef WORKER_PREFIX
#error "the spec has no #define WORKER_PREFIX"
#endif

#include <detent/rec/duration.h>
/* After the phase of a state, and after the name of an action. */
#define STOP(s)    W__STATE(s)
#define TIMEOUT(t) (t)

#undef W__DESIRED
#undef W__OBSERVED
#undef W__CONFIG
#undef W__DEPS
#ifdef WORKER_DESIRED
#define W__DESIRED WORKER_DESIRED
#else
#define W__DESIRED det_empty
#endif
#ifdef WORKER_OBSERVED
#define W__OBSERVED WORKER_OBSERVED
#else
#define W__OBSERVED det_empty
#endif
#ifdef WORKER_CONFIG
#define W__CONFIG WORKER_CONFIG
#else
#define W__CONFIG W__DESIRED
#endif
#ifdef WORKER_DEPS
#define W__DEPS WORKER_DEPS
#else
#define W__DEPS det_empty
#endif

/* Linkage of the kind: external, or with WORKER_LOCAL internal to the .c file with both
 * templates. */
#undef W__DECLARED
#undef W__DEFINED
#ifdef WORKER_LOCAL
#define W__DECLARED static
#define W__DEFINED  static
#else
#define W__DECLARED extern
#define W__DEFINED
#endif

#ifndef DETENT_WORKER_PRE_H
#define DETENT_WORKER_PRE_H

#define W__CAT_(a, b)     a##b
#define W__CAT(a, b)      W__CAT_(a, b)
#define W__CAT3_(a, b, c) a##b##c
#define W__CAT3(a, b, c)  W__CAT3_(a, b, c)
#define W__STRING_(a)     #a
#define W__STRING(a)      W__STRING_(a)

/* link_<x> and LINK_<x>. */
#define W__OWN(x)    W__CAT(WORKER_NAME, x)
#define W__PUBLIC(x) W__CAT3(WORKER_PREFIX, _, x)

/* Sentences about the worker. The compiler prints a false one. */
#define W__STATE(s)                       W__CAT(s##_is_a_state_of_, WORKER_NAME)
#define W__STATE_PHASE(s)                 W__CAT(s##_is_a_state_with_a_phase_of_, WORKER_NAME)
#define W__STATE_WIRE(w)                  W__CAT(w##_is_the_name_of_one_state_of_, WORKER_NAME)
#define W__ACTION(a)                      W__CAT(a##_is_an_action_of_, WORKER_NAME)
#define W__ACTION_WIRE(w)                 W__CAT(w##_is_the_name_of_one_action_of_, WORKER_NAME)

#define there_is_no_phase_called_STOPPED  DET_PHASE_STOPPED
#define there_is_no_phase_called_STARTING DET_PHASE_STARTING
#define there_is_no_phase_called_RUNNING  DET_PHASE_RUNNING
#define there_is_no_phase_called_DEGRADED DET_PHASE_DEGRADED
#define there_is_no_phase_called_STOPPING DET_PHASE_STOPPING

/* Result of a state of a phase without, and with, a STOP(...). */
#define a_state_that_is_STARTING_RUNNING_or_DEGRADED_has_a_STOP_but_not_STOPPED  0
#define a_state_that_is_STARTING_RUNNING_or_DEGRADED_has_a_STOP_but_not_STOPPING 0
#define a_STOP_is_for_STARTING_RUNNING_and_DEGRADED_but_not_STARTING             0
#define a_STOP_is_for_STARTING_RUNNING_and_DEGRADED_but_not_RUNNING              0
#define a_STOP_is_for_STARTING_RUNNING_and_DEGRADED_but_not_DEGRADED             0

/* STATE(s, wire, phase) and STATE(s, wire, phase, STOP(t)); ACTION(a, wire) and ACTION(a, wire,
 * TIMEOUT(t)). */
#define W__PICK5(_1, _2, _3, _4, n, ...) n
#define W__STATE_FORM(...)               W__PICK5(__VA_ARGS__, STOPS, RESTS, RESTS, RESTS, ~)
#define W__ACTION_FORM(...)              W__PICK5(__VA_ARGS__, TIMED, TIMED, PLAIN, PLAIN, ~)

#endif
