/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/draw.h - draws a machine, or one run of it, as Mermaid or GraphViz text.
 *
 * Everything is in declaration order and escaped, names are those on disk, and payloads appear only
 * as in the caller's trace (print them redacted). Every alternative of a choice is an edge with its
 * guard, or [else]; a trace highlights all that fit its step. `dot` and mermaid's own parser accept
 * the output; mermaid itself limits a flowchart to 500 edges and any diagram to 50,000 characters
 * unless its page configures more. */
#ifndef DETENT_TOOL_DRAW_H
#define DETENT_TOOL_DRAW_H

#include <detent/machine.h>

DET_BEGIN

enum det_drawing {
    DET_DRAW_MERMAID_STATE,     /* stateDiagram-v2; groups as composite states */
    DET_DRAW_MERMAID_FLOWCHART, /* flowchart LR */
    DET_DRAW_MERMAID_SEQUENCE,  /* sequenceDiagram of a trace */
    DET_DRAW_DOT,               /* digraph */
    DET_DRAW_DOT_TIMELINE,      /* digraph of a trace */
};

/* One event of a run. */
struct det_draw_step {
    uint64_t sequence;
    uint16_t from, to, event;
    uint16_t outcome; /* GOTO, STAY or STOP */
    bool is_timeout;
    det_time at;        /* wall */
    const char *detail; /* the payload to show; NULL: none */
};

/* A run. It visits `initial` and the states of its steps; an empty trace visits `initial`. */
struct det_draw_trace {
    const char *instance;
    uint16_t initial, current;
    const struct det_draw_step *steps;
    size_t step_count;
};

struct det_draw_options {
    enum det_drawing drawing;
    const struct det_draw_trace *trace; /* highlighted; required by SEQUENCE and TIMELINE */
    bool hide_timeouts;                 /* omit notes on timeouts and hooks */
    bool top_down;                      /* instead of left to right */
};

/* Like snprintf(): writes at most `capacity` bytes with a final 0 and returns the full length; a
 * capacity of 0 measures. Allocates nothing. DET_ERR_INVALID, with `target` unchanged: a required
 * trace is missing or contains ids that the machine does not have. */
DET_API int64_t det_draw(
    const struct det_machine *machine, const struct det_draw_options *options, char *target,
    size_t capacity, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
