/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* declare.h - template: the C interface of a flow. One flow per include, any number.
 *
 *     #define FLOW_SPEC "payments.flow"     on the include path; names FLOW_NAME
 *     #include <detent/flow/declare.h>
 *
 * For a flow named payments this declares the structs of the records in the spec, and
 *     extern const struct det_flow payments_flow;     made by define.h in one .c file
 * #define FLOW_LOCAL before each of the two templates keeps the flow inside one .c file. */
#include <detent/rec/language.h>
#if REC__IS_C11

#include <detent/flow.h>

#include <detent/flow/pre.h>

/* Checks that names have no other meaning in C. This comes first, since such a name breaks later
 * passes. */
#define FLOW__N(names, pasted, expanded) REC__CHECK_FIRST_FUNCTION(names, pasted, expanded)
#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)    FLOW__N(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define TRANSFORM(...) FLOW__N(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define STATEFUL(...)  FLOW__N(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define JOIN(...)      FLOW__N(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#define SINK(...)      FLOW__N(#__VA_ARGS__, (REC__NAME_##__VA_ARGS__), (__VA_ARGS__))
#include FLOW_SPEC
#include <detent/flow/rows_off.h>
#undef FLOW__N
REC__CHECK_VALUE(REC__STRING(FLOW_NAME), REC__CAT(REC__NAME_, FLOW_NAME), FLOW_NAME)

#define REC_SPEC FLOW_SPEC
#include <detent/rec/passes.h>
#undef REC_SPEC

FLOW__DECLARED const struct det_flow FLOW__OWN(_flow);

#include <detent/flow/rows_end.h>

#endif
