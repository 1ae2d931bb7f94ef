/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_dot.c - draws a machine as a GraphViz digraph.
 *
 *   digraph "order" {
 *       subgraph "cluster_0" {                groups
 *           label="billing";
 *           "charging" [label="charging"];
 *       }
 *       "pending" [label="pending\ntimeout: 30m -> expired", fillcolor="#FFB6C1"];
 *       "[start]" -> "pending";
 *       "pending" -> "charging" [label="pay / charge_card"];
 *   }
 *
 * Ids are always quoted, so that `node` or `graph` may be states. Our own two ids have brackets,
 * which names on disk cannot have. */
#include "machine/draw.h"

#define START "\"[start]\""
#define END   "\"[end]\""

static void write_quoted(struct det_pen *pen, const char *text)
{
    det_pen_raw(pen, "\"");
    det_pen_text(pen, text);
    det_pen_raw(pen, "\"");
}

static void write_state(struct det_picture *picture, unsigned state)
{
    write_quoted(picture->pen, picture->machine->states[state].name);
}

static void open_group(struct det_picture *picture, unsigned group, size_t depth)
{
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, depth);
    det_pen_format(pen, "subgraph \"cluster_%u\" {\n", group);
    det_pen_indent(pen, depth + 1);
    det_pen_raw(pen, "label=");
    write_quoted(pen, picture->machine->groups[group].name);
    det_pen_raw(pen, ";\n");
}

static void close_group(struct det_picture *picture, size_t depth)
{
    det_pen_indent(picture->pen, depth);
    det_pen_raw(picture->pen, "}\n");
}

/* Returns NULL for the default, white. */
static const char *colour_of(const struct det_picture *picture, unsigned state)
{
    if (picture->trace && picture->trace->current == state)
        return DET_COLOUR_CURRENT;
    if (det_bit_get(picture->visited, state))
        return DET_COLOUR_VISITED;
    return det_draw_shows_timeout(picture, state) ? DET_COLOUR_TIMEOUT : NULL;
}

static void write_node(struct det_picture *picture, unsigned state, size_t depth)
{
    const char *colour = colour_of(picture, state);
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, depth);
    write_state(picture, state);
    det_pen_raw(pen, " [label=\"");
    det_pen_text(pen, picture->machine->states[state].name);
    if (det_draw_shows_timeout(picture, state)) {
        det_pen_raw(pen, "\\n");
        det_draw_timeout(picture, state);
    }
    if (det_draw_shows_hooks(picture, state)) {
        det_pen_raw(pen, "\\n");
        det_draw_hooks(picture, state);
    }
    det_pen_raw(pen, "\"");
    if (colour)
        det_pen_format(pen, ", fillcolor=\"%s\"", colour);
    if (picture->machine->states[state].flags & DET_STATE_FINAL)
        det_pen_raw(pen, ", peripheries=2");
    det_pen_raw(pen, "];\n");
}

static void write_edge(struct det_picture *picture, const struct det_draw_edge *edge)
{
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, 1);
    write_state(picture, edge->from);
    det_pen_raw(pen, " -> ");
    if (edge->transition->outcome == DET_OUTCOME_STOP)
        det_pen_raw(pen, END);
    else
        write_state(picture, edge->transition->to);
    det_pen_raw(pen, " [label=\"");
    det_draw_edge_label(picture, edge);
    det_pen_raw(pen, "\"");
    if (det_draw_edge_is_timeout(picture, edge) && !picture->options->hide_timeouts)
        det_pen_raw(pen, ", style=dashed");
    if (det_draw_edge_taken(picture, edge))
        det_pen_raw(pen, ", penwidth=2, color=blue");
    det_pen_raw(pen, "];\n");
}

static void write_start(struct det_picture *picture)
{
    struct det_pen *pen = picture->pen;

    det_pen_raw(pen, "    " START " [shape=point, width=0.15, fillcolor=black];\n");
    det_pen_raw(pen, "    " START " -> ");
    write_state(picture, picture->trace ? picture->trace->initial : picture->machine->initial);
    det_pen_raw(pen, ";\n");
    if (picture->has_stop)
        det_pen_raw(
            pen, "    " END " [shape=doublecircle, width=0.2, fillcolor=black, "
                 "label=\"\"];\n");
}

void det_draw_dot(struct det_picture *picture)
{
    static const struct det_draw_walk walk = { open_group, write_node, close_group };
    struct det_pen *pen = picture->pen;
    struct det_draw_edge edge;
    struct det_draw_cursor cursor = { 0 };

    det_pen_raw(pen, "digraph ");
    write_quoted(pen, picture->machine->name);
    det_pen_raw(pen, " {\n    rankdir=");
    det_pen_raw(pen, picture->options->top_down ? "TB;\n" : "LR;\n");
    det_pen_raw(pen, DET_DOT_STYLE "\n");
    det_draw_groups_note(picture, "//");
    write_start(picture);
    det_draw_groups_walk(picture, &walk);
    det_pen_raw(pen, "\n");
    while (det_draw_next_edge(picture, &cursor, &edge))
        write_edge(picture, &edge);
    det_pen_raw(pen, "}\n");
}
