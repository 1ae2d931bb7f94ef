/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* pre.h - the common part of both flow templates: names, and the sentences that become identifiers.
 * Expects FLOW_SPEC. */
#ifndef FLOW_SPEC
#error "write #define FLOW_SPEC \"payments.flow\" (a file on the include path) before this template"
#endif

#include <detent/flow/rows_off.h>
#include FLOW_SPEC

#ifndef FLOW_NAME
#error "the spec has no #define FLOW_NAME"
#endif

#include <detent/rec/duration.h>

/* Linkage of the flow: external, or with FLOW_LOCAL internal to the .c file with both templates. */
#undef FLOW__DECLARED
#undef FLOW__DEFINED
#ifdef FLOW_LOCAL
#define FLOW__DECLARED static
#define FLOW__DEFINED  static
#else
#define FLOW__DECLARED extern
#define FLOW__DEFINED
#endif

#ifndef DETENT_FLOW_PRE_H
#define DETENT_FLOW_PRE_H

#include <detent/rec/names.h>

/* payments_<x>. */
#define FLOW__OWN(x) REC__CAT(FLOW_NAME, x)

/* Sentences about the flow. The compiler prints a false one. */
#define FLOW__STAGE(s)     REC__CAT(s##_is_a_stage_of_, FLOW_NAME)
#define FLOW__KIND(s)      REC__CAT(s##_is_a_stage_with_a_kind_of_, FLOW_NAME)
#define FLOW__IN(s)        REC__CAT(s##_takes_this_record_in_, FLOW_NAME)
#define FLOW__OUT(s)       REC__CAT(s##_makes_this_record_in_, FLOW_NAME)
#define FLOW__BESIDE(s)    REC__CAT(s##_has_this_reference_in_, FLOW_NAME)
#define FLOW__FED(s)       REC__CAT(s##_is_fed_by_an_edge_of_, FLOW_NAME)
#define FLOW__READ(s)      REC__CAT(s##_is_read_by_an_edge_of_, FLOW_NAME)
#define FLOW__JOINED(s)    REC__CAT(s##_has_one_REFERENCE_in_, FLOW_NAME)
#define FLOW__PAIR(a, b)   REC__CAT(a##_to_##b##_is_one_edge_of_, FLOW_NAME)
#define FLOW__EDGE(a, b)   REC__CAT(number_of_##a##_to_##b##_in_, FLOW_NAME)
#define FLOW__CALL(s, f)   REC__CAT(s##_##f##_of_, FLOW_NAME)
#define FLOW__ONE(s, what) s##_has_##what

#endif
