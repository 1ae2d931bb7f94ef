/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw.c - draws a flow as a Mermaid flowchart or as a GraphViz digraph.
 *
 *   flowchart LR                             digraph "readings" {
 *       measure(["measure"])                     "measure" [label="measure", shape=ellipse];
 *       warm["warm"]                             "warm" [label="warm"];
 *
 *       measure -->|"reading"| warm              "measure" -> "warm" [label="reading"];
 *       rooms -.->|"room"| locate                "rooms" -> "locate" [label="room",
 *                                                                     style=dashed]; */
#include <detent/tool/flow_draw.h>
#include <string.h>

#include "base/assert.h"
#include "machine/draw.h"

/* Our own ids in Mermaid. */
#define MADE_UP "stage_"

/* How a kind of stage is drawn. */
struct shape {
    const char *open, *close; /* Mermaid */
    const char *attributes;   /* DOT */
};

static const struct shape shapes[DET_STAGE_KINDS] = {
    [DET_STAGE_SOURCE] = { "([", "])", ", shape=ellipse, style=filled" },
    [DET_STAGE_TRANSFORM] = { "[", "]", "" },
    [DET_STAGE_STATEFUL] = { "[(", ")]", ", shape=cylinder, style=filled" },
    [DET_STAGE_JOIN] = { "{{", "}}", ", shape=hexagon, style=filled" },
    [DET_STAGE_SINK] = { "[[", "]]", ", peripheries=2" },
};

static const char *record_name(const struct det_stage *stage)
{
    const struct det_record *record = det_record_of(stage->out);

    return record != NULL ? record->name : "?";
}

static void write_id(struct det_pen *pen, const struct det_flow *flow, unsigned stage)
{
    const char *name = flow->stages[stage].name;

    if (pen->dialect == DET_PEN_DOT) {
        det_pen_raw(pen, "\"");
        det_pen_text(pen, name);
        det_pen_raw(pen, "\"");
    } else if (det_draw_is_plain(name) && strncmp(name, MADE_UP, strlen(MADE_UP)) != 0) {
        det_pen_raw(pen, name);
    } else {
        det_pen_format(pen, MADE_UP "%u", stage);
    }
}

static void write_label(struct det_pen *pen, const struct det_stage *stage)
{
    det_pen_text(pen, stage->name);
    if (stage->use == NULL)
        return;
    det_pen_raw(pen, pen->dialect == DET_PEN_DOT ? "\\n" : "<br/>");
    det_pen_text(pen, stage->use);
}

static void write_stage(struct det_pen *pen, const struct det_flow *flow, unsigned index)
{
    const struct det_stage *stage = &flow->stages[index];
    const struct shape *shape = &shapes[stage->kind];
    bool is_dot = pen->dialect == DET_PEN_DOT;

    det_pen_indent(pen, 1);
    write_id(pen, flow, index);
    det_pen_raw(pen, is_dot ? " [label=" : shape->open);
    det_pen_raw(pen, "\"");
    write_label(pen, stage);
    det_pen_raw(pen, "\"");
    det_pen_raw(pen, is_dot ? shape->attributes : shape->close);
    det_pen_raw(pen, is_dot ? "];\n" : "\n");
}

static void write_edge(struct det_pen *pen, const struct det_flow *flow, unsigned index)
{
    const struct det_edge *edge = &flow->edges[index];
    const char *record = record_name(&flow->stages[edge->from]);
    bool is_dot = pen->dialect == DET_PEN_DOT;

    det_pen_indent(pen, 1);
    write_id(pen, flow, edge->from);
    if (is_dot) {
        det_pen_raw(pen, " -> ");
        write_id(pen, flow, edge->to);
        det_pen_raw(pen, " [label=\"");
        det_pen_text(pen, record);
        det_pen_raw(pen, edge->flags ? "\", style=dashed];\n" : "\"];\n");
        return;
    }
    det_pen_raw(pen, edge->flags ? " -.->|\"" : " -->|\"");
    det_pen_text(pen, record);
    det_pen_raw(pen, "\"| ");
    write_id(pen, flow, edge->to);
    det_pen_raw(pen, "\n");
}

static void write_head(struct det_pen *pen, const struct det_flow *flow, bool is_top_down)
{
    if (pen->dialect != DET_PEN_DOT) {
        det_pen_raw(pen, is_top_down ? "flowchart TD\n" : "flowchart LR\n");
        return;
    }
    det_pen_raw(pen, "digraph \"");
    det_pen_text(pen, flow->name);
    det_pen_raw(pen, is_top_down ? "\" {\n    rankdir=TB;\n" : "\" {\n    rankdir=LR;\n");
    det_pen_raw(pen, DET_DOT_STYLE "\n");
}

int64_t det_flow_draw(
    const struct det_flow *flow, const struct det_draw_options *options, char *target,
    size_t capacity, struct det_error *reterr)
{
    struct det_pen pen = { .target = target, .capacity = capacity };

    det_assert(flow && options);
    det_assert(target || capacity == 0);
    if (options->drawing != DET_DRAW_DOT && options->drawing != DET_DRAW_MERMAID_FLOWCHART)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a flow is drawn as a flowchart or as dot, not as drawing %u",
            (unsigned)options->drawing);
    pen.dialect = options->drawing == DET_DRAW_DOT ? DET_PEN_DOT : DET_PEN_MERMAID;
    write_head(&pen, flow, options->top_down);
    for (unsigned i = 0; i < flow->stage_count; i++)
        write_stage(&pen, flow, i);
    det_pen_raw(&pen, "\n");
    for (unsigned i = 0; i < flow->edge_count; i++)
        write_edge(&pen, flow, i);
    if (pen.dialect == DET_PEN_DOT)
        det_pen_raw(&pen, "}\n");
    return det_pen_finish(&pen);
}
