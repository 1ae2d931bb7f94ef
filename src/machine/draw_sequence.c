/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_sequence.c - one run of a machine: mermaid's sequence diagram and the timeline in DOT.
 *
 *   sequenceDiagram                           digraph "order-42" {
 *       participant FSM as order-42               s0 [label="pending", ...];
 *       Note over FSM: pending                    s1 [label="charging\n2026-01-31T10:00:00Z", ...];
 *       FSM->>FSM: pay(payment{cents=1999})       s0 -> s1 [label="pay(payment{cents=1999})"];
 *       Note over FSM: charging               }
 *       Note over FSM: Current: charging
 *
 * An event that stays is marked (stay) and has no note after it: the visit is the same. */
#include "base/text.h"
#include "machine/draw.h"

#define SEQUENCE_LABEL_MAX 60
#define TIMELINE_LABEL_MAX 50

static const char *run_name(const struct det_picture *picture)
{
    return picture->trace->instance ? picture->trace->instance : picture->machine->name;
}

static void write_state(struct det_picture *picture, unsigned state)
{
    det_pen_text(picture->pen, picture->machine->states[state].name);
}

static void write_note(struct det_picture *picture, const char *before, unsigned state)
{
    det_pen_format(picture->pen, "    Note over FSM: %s", before);
    write_state(picture, state);
}

void det_draw_mermaid_sequence(struct det_picture *picture)
{
    const struct det_draw_trace *trace = picture->trace;
    struct det_pen *pen = picture->pen;

    det_pen_raw(pen, "sequenceDiagram\n    participant FSM as ");
    det_pen_text(pen, run_name(picture));
    det_pen_raw(pen, "\n");
    write_note(picture, "", trace->initial);
    det_pen_raw(pen, "\n");
    for (size_t i = 0; i < trace->step_count; i++) {
        det_pen_raw(pen, "    FSM->>FSM: ");
        det_draw_step_label(picture, &trace->steps[i], SEQUENCE_LABEL_MAX);
        det_pen_raw(pen, "\n");
        if (trace->steps[i].outcome != DET_OUTCOME_GOTO)
            continue;
        write_note(picture, "", trace->steps[i].to);
        det_pen_raw(pen, "\n");
    }
    write_note(picture, "Current: ", trace->current);
    det_pen_raw(pen, det_draw_is_stopped(picture) ? " (stopped)\n" : "\n");
}

/* The start is grey, the end green, everything between blue. */
static const char *colour_of(const struct det_draw_trace *trace, size_t node)
{
    if (node == trace->step_count)
        return DET_COLOUR_CURRENT;
    return node == 0 ? DET_COLOUR_START : DET_COLOUR_VISITED;
}

/* Node n is the state after step n; node 0 is the initial one, which has no time. */
static void write_node(struct det_picture *picture, size_t node)
{
    const struct det_draw_trace *trace = picture->trace;
    struct det_pen *pen = picture->pen;
    char time[DET_TIME_TEXT];

    det_pen_format(pen, "    s%zu [label=\"", node);
    write_state(picture, node == 0 ? trace->initial : trace->steps[node - 1].to);
    if (node > 0 && trace->steps[node - 1].at != 0) {
        det_pen_raw(pen, "\\n");
        det_pen_raw(pen, det_format_time(trace->steps[node - 1].at, time, sizeof time));
    }
    det_pen_format(pen, "\", fillcolor=\"%s\"", colour_of(trace, node));
    if (node > 0 && trace->steps[node - 1].outcome == DET_OUTCOME_STOP)
        det_pen_raw(pen, ", peripheries=2");
    det_pen_raw(pen, "];\n");
}

void det_draw_dot_timeline(struct det_picture *picture)
{
    const struct det_draw_trace *trace = picture->trace;
    struct det_pen *pen = picture->pen;

    det_pen_raw(pen, "digraph \"");
    det_pen_text(pen, run_name(picture));
    det_pen_raw(pen, "\" {\n    rankdir=");
    det_pen_raw(pen, picture->options->top_down ? "TB;\n" : "LR;\n");
    det_pen_raw(pen, DET_DOT_STYLE "\n");
    for (size_t node = 0; node <= trace->step_count; node++)
        write_node(picture, node);
    det_pen_raw(pen, "\n");
    for (size_t i = 0; i < trace->step_count; i++) {
        det_pen_format(pen, "    s%zu -> s%zu [label=\"", i, i + 1);
        det_draw_step_label(picture, &trace->steps[i], TIMELINE_LABEL_MAX);
        det_pen_raw(pen, trace->steps[i].is_timeout ? "\", style=dashed];\n" : "\"];\n");
    }
    det_pen_raw(pen, "}\n");
}
