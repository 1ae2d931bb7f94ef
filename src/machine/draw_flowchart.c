/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_flowchart.c - draws a machine as a Mermaid flowchart.
 *
 *   flowchart LR
 *       START((" "))
 *       pending((pending))                    final states have a double line
 *       END([End])                            only when some event stops the instance
 *
 *       START --> pending                     link 0; the others count from 1
 *       pending -->|pay| charging
 *
 *       style pending fill:#ADD8E6,color:#000
 *       linkStyle 1 stroke:blue,stroke-width:2px */
#include <string.h>

#include "machine/draw.h"

#define PLAIN_LABEL "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static void open_group(struct det_picture *picture, unsigned group, size_t depth)
{
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, depth);
    det_pen_raw(pen, "subgraph ");
    det_draw_group_id(picture, group);
    if (!det_draw_group_is_plain(picture, group)) {
        det_pen_raw(pen, "[\"");
        det_pen_text(pen, picture->machine->groups[group].name);
        det_pen_raw(pen, "\"]");
    }
    det_pen_raw(pen, "\n");
}

static void close_group(struct det_picture *picture, size_t depth)
{
    det_pen_indent(picture->pen, depth);
    det_pen_raw(picture->pen, "end\n");
}

static void write_node(struct det_picture *picture, unsigned state, size_t depth)
{
    const struct det_state_def *definition = &picture->machine->states[state];
    bool is_final = (definition->flags & DET_STATE_FINAL) != 0;
    const char *quote = det_draw_state_is_plain(picture, state) ? "" : "\"";
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, depth);
    det_draw_state_id(picture, state);
    det_pen_raw(pen, is_final ? "(((" : "((");
    det_pen_raw(pen, quote);
    det_pen_text(pen, definition->name);
    det_pen_raw(pen, quote);
    det_pen_raw(pen, is_final ? ")))\n" : "))\n");
}

/* The flowchart has no notes, so an edge shows the timeout. */
static bool shows_timeout(const struct det_picture *picture, const struct det_draw_edge *edge)
{
    return !picture->options->hide_timeouts && det_draw_edge_is_timeout(picture, edge);
}

/* One word of letters needs no quotes. */
static bool is_bare(const struct det_picture *picture, const struct det_draw_edge *edge)
{
    const char *name = picture->machine->events[edge->event].name;

    return !edge->transition->more && !edge->is_else &&
           edge->transition->outcome != DET_OUTCOME_STAY && !shows_timeout(picture, edge) &&
           name[strspn(name, PLAIN_LABEL)] == '\0';
}

static void write_label(struct det_picture *picture, const struct det_draw_edge *edge)
{
    const char *quote = is_bare(picture, edge) ? "" : "\"";
    struct det_pen *pen = picture->pen;

    det_pen_raw(pen, quote);
    det_draw_edge_label(picture, edge);
    if (shows_timeout(picture, edge)) {
        det_pen_raw(pen, " (after ");
        det_pen_duration(pen, picture->machine->states[edge->from].timeout.after);
        det_pen_raw(pen, ")");
    }
    det_pen_raw(pen, quote);
}

static void write_edges(struct det_picture *picture)
{
    struct det_pen *pen = picture->pen;
    struct det_draw_edge edge;
    struct det_draw_cursor cursor = { 0 };

    det_pen_raw(pen, "\n    START --> ");
    det_draw_state_id(
        picture, picture->trace ? picture->trace->initial : picture->machine->initial);
    det_pen_raw(pen, "\n");
    while (det_draw_next_edge(picture, &cursor, &edge)) {
        det_pen_indent(pen, 1);
        det_draw_state_id(picture, edge.from);
        det_pen_raw(pen, " -->|");
        write_label(picture, &edge);
        det_pen_raw(pen, "| ");
        if (edge.transition->outcome == DET_OUTCOME_STOP)
            det_pen_raw(pen, "END");
        else
            det_draw_state_id(picture, edge.transition->to);
        det_pen_raw(pen, "\n");
    }
}

static void write_style(struct det_picture *picture, unsigned state, const char *colour)
{
    det_pen_raw(picture->pen, "    style ");
    det_draw_state_id(picture, state);
    det_pen_format(picture->pen, " fill:%s,color:#000\n", colour);
}

/* Links have no names, only their place in the list of all. */
static void write_taken(struct det_picture *picture)
{
    struct det_draw_edge edge;
    bool is_open = false;
    struct det_draw_cursor cursor = { 0 };

    for (unsigned link = 1; det_draw_next_edge(picture, &cursor, &edge); link++) {
        if (!det_draw_edge_taken(picture, &edge))
            continue;
        det_pen_raw(picture->pen, is_open ? "," : "    linkStyle ");
        det_pen_format(picture->pen, "%u", link);
        is_open = true;
    }
    if (is_open)
        det_pen_raw(picture->pen, " stroke:blue,stroke-width:2px\n");
}

/* The current state is styled twice: the last one wins. */
static void write_trace(struct det_picture *picture)
{
    for (unsigned state = 0; state < picture->machine->state_count; state++) {
        if (det_bit_get(picture->visited, state))
            write_style(picture, state, DET_COLOUR_VISITED);
    }
    write_style(picture, picture->trace->current, DET_COLOUR_CURRENT);
    write_taken(picture);
}

void det_draw_mermaid_flowchart(struct det_picture *picture)
{
    static const struct det_draw_walk walk = { open_group, write_node, close_group };
    struct det_pen *pen = picture->pen;

    det_pen_raw(pen, picture->options->top_down ? "flowchart TD\n" : "flowchart LR\n");
    det_draw_groups_note(picture, "%%");
    det_pen_raw(pen, "    START((\" \"))\n");
    det_draw_groups_walk(picture, &walk);
    if (picture->has_stop)
        det_pen_raw(pen, "    END([End])\n");
    write_edges(picture);
    det_pen_raw(pen, "\n    style START fill:#333,stroke:#333\n");
    if (picture->trace)
        write_trace(picture);
}
