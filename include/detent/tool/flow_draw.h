/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/flow_draw.h - draws a flow as Mermaid or GraphViz text.
 *
 * Stages are nodes in the order of their rows, with a shape for each kind and the name of their
 * connector. Edges have the name of their record; those of references and back edges are dashed.
 * `dot` and mermaid's own parser accept the output; mermaid itself limits a flowchart to 500 edges
 * and 50,000 characters unless its page configures more. */
#ifndef DETENT_TOOL_FLOW_DRAW_H
#define DETENT_TOOL_FLOW_DRAW_H

#include <detent/flow.h>
#include <detent/tool/draw.h>

DET_BEGIN

/* Like det_draw(): writes at most `capacity` bytes with a final 0; returns the full length; a
 * capacity of 0 measures. Allocates nothing. Of the options, `drawing` and `top_down` are used.
 * DET_ERR_INVALID: `drawing` is not DET_DRAW_MERMAID_FLOWCHART or DET_DRAW_DOT. */
DET_API int64_t det_flow_draw(
    const struct det_flow *flow, const struct det_draw_options *options, char *target,
    size_t capacity, struct det_error *reterr) DET_MUST_CHECK;

DET_END
#endif
