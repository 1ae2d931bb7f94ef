/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* define.h - template: checks the flow in FLOW_SPEC and makes its tables. Include it in one .c
 * file, after the flow's declare.h:
 *
 *     #define FLOW_SPEC "payments.flow"
 *     #include <detent/flow/declare.h>
 *     #define FLOW_SPEC "payments.flow"
 *     #include <detent/flow/define.h>
 *
 *     static int read(struct det_stage_call *call) { ... }                          SOURCE
 *     static int read(call, struct place *cursor)                                   ... CURSOR
 *     static int check(call, const struct order *in)                                TRANSFORM
 *     static int count(call, struct counter *state, const struct order *in)         STATEFUL
 *     static int count_result(call, struct counter *state)                          STATEFUL
 *     static int price(call, const struct tariff *reference, const struct order *)  JOIN
 *     static int store(call, const struct bill *in)                                 SINK
 *     static int store(call, struct place *cursor, const struct bill *in)           ... CURSOR
 *     static int store_flush(call), or (call, struct place *cursor)                 BUFFERED
 *     static int store_begin(call, struct place *cursor)                            BEGINS
 *     static int check_open(call), static void check_close(call)                    OPENS
 *     static int check_drain(call)                                                  DRAINS
 *     static void read_acknowledged(call, uint64_t sequence)                        ACKNOWLEDGES
 *
 * Stages with USE have no functions. It also defines check_emit(call, (struct valid){ ... }) and
 * check_emit_at(call, value, event time) for each stage that makes records.
 *
 * Two properties of C carry the checks, as in fsm/define.h: an enumerator may be declared once, so
 * a duplicate is an error; a typedef may be repeated, so a missing one is an error where it is
 * used. */
#include <detent/rec/language.h>
#if REC__IS_C11

#include <detent/flow.h>

#include <detent/flow/options.h>
#include <detent/flow/pre.h>
#include <detent/flow/stages.h>

/* Pass 1: numbers and kinds of stages; each option where it belongs, once. */
#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)          FLOW__NUMBER(__VA_ARGS__, ~)
#define TRANSFORM(...)       FLOW__NUMBER(__VA_ARGS__, ~)
#define STATEFUL(...)        FLOW__NUMBER(__VA_ARGS__, ~)
#define JOIN(...)            FLOW__NUMBER(__VA_ARGS__, ~)
#define SINK(...)            FLOW__NUMBER(__VA_ARGS__, ~)
#define FLOW__NUMBER(s, ...) FLOW__STAGE(s),
enum {
#include FLOW_SPEC
    FLOW__OWN(__stage_count)
};
#include <detent/flow/rows_off.h>
#undef SOURCE
#define SOURCE(...) +1
enum {
    FLOW__OWN(__source_count) = 0
#include FLOW_SPEC
};
#include <detent/flow/rows_off.h>
#undef SINK
#define SINK(...) +1
enum {
    FLOW__OWN(__sink_count) = 0
#include FLOW_SPEC
};
_Static_assert(FLOW__OWN(__source_count) > 0, "a flow must have at least one SOURCE");
_Static_assert(FLOW__OWN(__sink_count) > 0, "a flow must have at least one SINK");
_Static_assert(
    (int)FLOW__OWN(__stage_count) <= DET_FLOW_STAGES_MAX,
    "a flow must have at most DET_FLOW_STAGES_MAX stages");

#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)    FLOW__CHECK_1(SOURCE, __VA_ARGS__, a_record_of_the_stage_is_missing)
#define TRANSFORM(...) FLOW__CHECK_2(TRANSFORM, __VA_ARGS__, a_record_of_the_stage_is_missing)
#define STATEFUL(...)  FLOW__CHECK_2(STATEFUL, __VA_ARGS__, a_record_of_the_stage_is_missing)
#define JOIN(...)      FLOW__CHECK_3(JOIN, __VA_ARGS__, a_record_of_the_stage_is_missing)
#define SINK(...)      FLOW__CHECK_1(SINK, __VA_ARGS__, a_record_of_the_stage_is_missing)
#include FLOW_SPEC

/* Pass 2: records, functions. */
#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)    FLOW__F_SOURCE(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define TRANSFORM(...) FLOW__F_TRANSFORM(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define STATEFUL(...)  FLOW__F_STATEFUL(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define JOIN(...)      FLOW__F_JOIN(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define SINK(...)      FLOW__F_SINK(__VA_ARGS__, a_record_of_the_stage_is_missing)
#include FLOW_SPEC

/* Pass 3: edges: both ends known, of the right kind and of one record, once. */
#include <detent/flow/rows_off.h>
#undef EDGE
#undef REFERENCE
#undef BACK_EDGE
#define EDGE(a, b)      FLOW__E_EDGE("EDGE", a, b)
#define BACK_EDGE(a, b) FLOW__E_EDGE("BACK_EDGE", a, b)
#define REFERENCE(a, b) FLOW__E_REFERENCE(a, b)
#include FLOW_SPEC

#include <detent/flow/rows_off.h>
#undef EDGE
#undef REFERENCE
#undef BACK_EDGE
#define EDGE(a, b)      FLOW__EDGE(a, b),
#define BACK_EDGE(a, b) FLOW__EDGE(a, b),
#define REFERENCE(a, b) FLOW__EDGE(a, b),
enum {
#include FLOW_SPEC
    FLOW__OWN(__edge_count)
};
_Static_assert(
    (int)FLOW__OWN(__edge_count) <= DET_FLOW_EDGES_MAX,
    "a flow must have at most DET_FLOW_EDGES_MAX edges");

/* Pass 4: no stage is left hanging. */
#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)    FLOW__H_OUT(__VA_ARGS__, ~)
#define TRANSFORM(...) FLOW__H_IN(__VA_ARGS__, ~) FLOW__H_OUT(__VA_ARGS__, ~)
#define STATEFUL(...)  FLOW__H_IN(__VA_ARGS__, ~) FLOW__H_OUT(__VA_ARGS__, ~)
#define JOIN(...) \
    FLOW__H_IN(__VA_ARGS__, ~) FLOW__H_OUT(__VA_ARGS__, ~) FLOW__H_JOIN(__VA_ARGS__, ~)
#define SINK(...)            FLOW__H_IN(__VA_ARGS__, ~)
#define FLOW__H_OUT(s, ...)  _Static_assert(sizeof(FLOW__READ(s)) == 1, "");
#define FLOW__H_IN(s, ...)   _Static_assert(sizeof(FLOW__FED(s)) == 1, "");
#define FLOW__H_JOIN(s, ...) _Static_assert(FLOW__JOINED(s) == 0, "");
#include FLOW_SPEC
#undef FLOW__H_OUT
#undef FLOW__H_IN
#undef FLOW__H_JOIN
#undef FLOW__NUMBER

/* Pass 5: the tables. */
#include <detent/flow/rows_off.h>
#undef SOURCE
#undef TRANSFORM
#undef STATEFUL
#undef JOIN
#undef SINK
#define SOURCE(...)    FLOW__T_SOURCE(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define TRANSFORM(...) FLOW__T_TRANSFORM(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define STATEFUL(...)  FLOW__T_STATEFUL(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define JOIN(...)      FLOW__T_JOIN(__VA_ARGS__, a_record_of_the_stage_is_missing)
#define SINK(...)      FLOW__T_SINK(__VA_ARGS__, a_record_of_the_stage_is_missing)
/* One element more, so that a flow without stages has only its own error. */
static const struct det_stage FLOW__OWN(__stages)[FLOW__OWN(__stage_count) + 1] = {
    [FLOW__OWN(__stage_count)] = { .name = 0 },
#include FLOW_SPEC
};

#include <detent/flow/rows_off.h>
#undef EDGE
#undef REFERENCE
#undef BACK_EDGE
#define EDGE(a, b)      { FLOW__STAGE(a), FLOW__STAGE(b), 0 },
#define BACK_EDGE(a, b) { FLOW__STAGE(a), FLOW__STAGE(b), DET_EDGE_BACK },
#define REFERENCE(a, b) { FLOW__STAGE(a), FLOW__STAGE(b), DET_EDGE_REFERENCE },
static const struct det_edge FLOW__OWN(__edges)[FLOW__OWN(__edge_count) + 1] = {
#include FLOW_SPEC
    { 0, 0, 0 },
};

FLOW__DEFINED const struct det_flow FLOW__OWN(_flow) = {
    .name = REC__STRING(FLOW_NAME),
    .stages = FLOW__OWN(__stages),
    .edges = FLOW__OWN(__edges),
    .stage_count = FLOW__OWN(__stage_count),
    .edge_count = FLOW__OWN(__edge_count),
};

#include <detent/flow/rows_end.h>

#endif
