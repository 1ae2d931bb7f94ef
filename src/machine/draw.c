/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw.c - checks the input of a drawing, analyses machine and trace once, and draws. */
#include "machine/draw.h"
#include "base/assert.h"
#include "base/text.h"

static bool needs_trace(enum det_drawing drawing)
{
    return drawing == DET_DRAW_MERMAID_SEQUENCE || drawing == DET_DRAW_DOT_TIMELINE;
}

static int check_step(
    const struct det_machine *machine, const struct det_draw_trace *trace, size_t index,
    struct det_error *reterr)
{
    const struct det_draw_step *step = &trace->steps[index];

    if (step->from >= machine->state_count || step->to >= machine->state_count)
        return det_error_set(
            reterr, DET_ERR_INVALID, "step %zu of the trace names a state that %s does not have",
            index + 1, machine->name);
    if (step->event >= machine->event_count)
        return det_error_set(
            reterr, DET_ERR_INVALID, "step %zu of the trace names an event that %s does not have",
            index + 1, machine->name);
    if (step->outcome != DET_OUTCOME_GOTO && step->outcome != DET_OUTCOME_STAY &&
        step->outcome != DET_OUTCOME_STOP)
        return det_error_set(
            reterr, DET_ERR_INVALID, "step %zu of the trace is not a goto, stay or stop",
            index + 1);
    return 0;
}

static int check_trace(
    const struct det_machine *machine, const struct det_draw_trace *trace, struct det_error *reterr)
{
    int r;

    if (trace->initial >= machine->state_count || trace->current >= machine->state_count)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the trace starts or ends in a state that %s does not have",
            machine->name);
    if (trace->step_count > 0 && !trace->steps)
        return det_error_set(
            reterr, DET_ERR_INVALID, "the trace has step_count %zu, but steps is NULL",
            trace->step_count);
    for (size_t i = 0; i < trace->step_count; i++) {
        r = check_step(machine, trace, i, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int check_options(
    const struct det_machine *machine, const struct det_draw_options *options,
    struct det_error *reterr)
{
    if ((unsigned)options->drawing > DET_DRAW_DOT_TIMELINE)
        return det_error_set(
            reterr, DET_ERR_INVALID, "unknown drawing number %u", (unsigned)options->drawing);
    if (needs_trace(options->drawing) && !options->trace)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a sequence or a timeline of %s needs a trace", machine->name);
    return options->trace ? check_trace(machine, options->trace, reterr) : 0;
}

static void note_visits(struct det_picture *picture)
{
    const struct det_draw_trace *trace = picture->trace;

    if (!trace)
        return;
    det_bit_set(picture->visited, trace->initial);
    for (size_t i = 0; i < trace->step_count; i++) {
        det_bit_set(picture->visited, trace->steps[i].from);
        det_bit_set(picture->visited, trace->steps[i].to);
    }
}

static void note_edges(struct det_picture *picture)
{
    struct det_draw_edge edge;
    struct det_draw_cursor cursor = { 0 };

    det_bit_set(picture->has_edge, picture->machine->initial);
    while (det_draw_next_edge(picture, &cursor, &edge)) {
        det_bit_set(picture->has_edge, edge.from);
        det_bit_set(picture->has_edge, edge.transition->to);
        picture->has_stop = picture->has_stop || edge.transition->outcome == DET_OUTCOME_STOP;
    }
}

static enum det_pen_dialect dialect_of(enum det_drawing drawing)
{
    bool is_dot = drawing == DET_DRAW_DOT || drawing == DET_DRAW_DOT_TIMELINE;

    return is_dot ? DET_PEN_DOT : DET_PEN_MERMAID;
}

static void draw_picture(struct det_picture *picture)
{
    switch (picture->options->drawing) {
    case DET_DRAW_MERMAID_STATE:
        det_draw_mermaid_state(picture);
        break;
    case DET_DRAW_MERMAID_FLOWCHART:
        det_draw_mermaid_flowchart(picture);
        break;
    case DET_DRAW_MERMAID_SEQUENCE:
        det_draw_mermaid_sequence(picture);
        break;
    case DET_DRAW_DOT:
        det_draw_dot(picture);
        break;
    case DET_DRAW_DOT_TIMELINE:
        det_draw_dot_timeline(picture);
        break;
    }
}

int64_t det_draw(
    const struct det_machine *machine, const struct det_draw_options *options, char *target,
    size_t capacity, struct det_error *reterr)
{
    struct det_picture picture = { .machine = machine, .options = options };
    struct det_pen pen = { .capacity = capacity };
    int r;

    det_assert(machine && options);
    det_assert(target || capacity == 0);
    det_assert(machine->state_count <= DET_STATES_MAX && machine->initial < machine->state_count);
    r = check_options(machine, options, reterr);
    if (r < 0)
        return r;
    pen.target = target;
    pen.dialect = dialect_of(options->drawing);
    picture.pen = &pen;
    picture.trace = options->trace;
    note_visits(&picture);
    note_edges(&picture);
    det_draw_groups_init(&picture.groups, machine);
    draw_picture(&picture);
    return det_pen_finish(&pen);
}
