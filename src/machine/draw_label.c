/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_label.c - the edges of a machine, and the words on edges, states and steps.
 *
 *   edge    event [guard] [stop: reason] / effect, arm timer (10m -> event), within 5m -> event
 *   state   timeout: 30m -> event            entry: hook, exit: hook
 *   step    event(detail) (stay) */
#include "base/assert.h"
#include "machine/draw.h"

#define ELLIPSIS "..."
#define TIMEOUT  "Timeout: "

static bool is_guarded(const struct det_transition *transition)
{
    return transition->more && transition->more->guard;
}

static struct det_draw_edge edge_of(const struct det_choice *choice)
{
    return (struct det_draw_edge){
        .from = choice->state,
        .event = choice->event,
        .is_else = !is_guarded(&choice->transition),
        .transition = &choice->transition,
    };
}

static const struct det_choice *find_choice(
    const struct det_machine *machine, uint32_t cell, size_t at, bool has_guard)
{
    for (; at < machine->choice_count; at++) {
        const struct det_choice *choice = &machine->choices[at];

        if ((uint32_t)choice->state * machine->event_count + choice->event == cell &&
            is_guarded(&choice->transition) == has_guard)
            return choice;
    }
    return NULL;
}

/* Alternatives with a guard come first. Those that are never tried are drawn too. */
static const struct det_choice *next_choice(
    const struct det_machine *machine, uint32_t cell, const struct det_choice *after)
{
    bool has_guard = !after || is_guarded(&after->transition);
    size_t at = after ? (size_t)(after - machine->choices) + 1 : 0;
    const struct det_choice *choice = find_choice(machine, cell, at, has_guard);

    return choice || !has_guard ? choice : find_choice(machine, cell, 0, false);
}

/* Returns the next edge of the cell; false at the end. */
static bool next_of_cell(
    const struct det_machine *machine, struct det_draw_cursor *cursor, struct det_draw_edge *ret)
{
    const struct det_transition *transition = &machine->table[cursor->at];

    if (!cursor->is_begun && transition->outcome != DET_OUTCOME_UNHANDLED) {
        *ret = (struct det_draw_edge){
            .from = (uint16_t)(cursor->at / machine->event_count),
            .event = (uint16_t)(cursor->at % machine->event_count),
            .transition = transition,
        };
        cursor->is_begun = true;
        return true;
    }
    cursor->is_begun = true;
    if (machine->choice_count <= DET_DRAW_CHOICES_MAX)
        cursor->choice = next_choice(machine, cursor->at, cursor->choice);
    if (!cursor->choice)
        return false;
    *ret = edge_of(cursor->choice);
    return true;
}

bool det_draw_next_edge(
    const struct det_picture *picture, struct det_draw_cursor *cursor, struct det_draw_edge *ret)
{
    const struct det_machine *machine = picture->machine;
    uint32_t cells = (uint32_t)machine->state_count * machine->event_count;

    det_assert(cursor->at <= cells + machine->choice_count);
    for (; cursor->at < cells; *cursor = (struct det_draw_cursor){ .at = cursor->at + 1 }) {
        if (next_of_cell(machine, cursor, ret))
            return true;
    }
    if (machine->choice_count <= DET_DRAW_CHOICES_MAX ||
        cursor->at - cells == machine->choice_count)
        return false;
    *ret = edge_of(&machine->choices[cursor->at++ - cells]);
    return true;
}

bool det_draw_edge_taken(const struct det_picture *picture, const struct det_draw_edge *edge)
{
    const struct det_draw_trace *trace = picture->trace;

    for (size_t i = 0; trace && i < trace->step_count; i++) {
        const struct det_draw_step *step = &trace->steps[i];

        if (step->from == edge->from && step->event == edge->event &&
            step->to == edge->transition->to && step->outcome == edge->transition->outcome)
            return true;
    }
    return false;
}

bool det_draw_edge_is_timeout(const struct det_picture *picture, const struct det_draw_edge *edge)
{
    const struct det_timeout *timeout = &picture->machine->states[edge->from].timeout;

    return timeout->after > 0 && timeout->event == edge->event;
}

/* Writes "30m -> expired". */
static void write_timeout(struct det_picture *picture, const struct det_timeout *timeout)
{
    det_pen_duration(picture->pen, timeout->after);
    det_pen_raw(picture->pen, " -> ");
    det_pen_text(picture->pen, picture->machine->events[timeout->event].name);
}

/* Separates an action from the one before it. GraphViz makes room for labels only by moving nodes
 * apart, so its labels grow downwards. */
static void write_separator(struct det_pen *pen, size_t *count)
{
    bool is_first = (*count)++ == 0;

    switch (pen->dialect) {
    case DET_PEN_MERMAID:
        det_pen_raw(pen, is_first ? " / " : ", ");
        break;
    case DET_PEN_DOT:
        det_pen_raw(pen, is_first ? "\\n/ " : ",\\n");
        break;
    }
}

static void write_timers(
    struct det_picture *picture, const struct det_transition_more *more, size_t *count)
{
    const struct det_timer_def *timers = picture->machine->timers;

    for (unsigned i = 0; i < more->arm_count; i++) {
        write_separator(picture->pen, count);
        det_pen_raw(picture->pen, "arm ");
        det_pen_text(picture->pen, timers[more->arms[i]].name);
        det_pen_raw(picture->pen, " (");
        write_timeout(picture, &timers[more->arms[i]].timeout);
        det_pen_raw(picture->pen, ")");
    }
    for (unsigned i = 0; i < more->disarm_count; i++) {
        write_separator(picture->pen, count);
        det_pen_raw(picture->pen, "disarm ");
        det_pen_text(picture->pen, timers[more->disarms[i]].name);
    }
    if (more->within) {
        write_separator(picture->pen, count);
        det_pen_raw(picture->pen, "within ");
        write_timeout(picture, more->within);
    }
}

static void write_actions(struct det_picture *picture, const struct det_transition_more *more)
{
    size_t count = 0;

    for (unsigned i = 0; i < more->effect_count; i++) {
        write_separator(picture->pen, &count);
        det_pen_text(picture->pen, picture->machine->effects[more->effects[i]].name);
    }
    if (!picture->options->hide_timeouts)
        write_timers(picture, more, &count);
}

/* A diagram with an end node shows a stop by that node. A colon inside a label is written as its
 * number in Mermaid: versions up to at least 11.12 do not accept it. */
static void write_stop(struct det_picture *picture, const struct det_transition_more *more)
{
    struct det_pen *pen = picture->pen;
    bool has_reason = more && more->reason;

    if (!has_reason && picture->options->drawing != DET_DRAW_MERMAID_STATE)
        return;
    det_pen_raw(pen, " [stop");
    if (has_reason) {
        det_pen_text(pen, ":");
        det_pen_raw(pen, " ");
        det_pen_text(pen, more->reason);
    }
    det_pen_raw(pen, "]");
}

void det_draw_edge_label(struct det_picture *picture, const struct det_draw_edge *edge)
{
    const struct det_transition_more *more = edge->transition->more;
    struct det_pen *pen = picture->pen;

    det_pen_text(pen, picture->machine->events[edge->event].name);
    if (is_guarded(edge->transition)) {
        det_pen_raw(pen, " [");
        det_pen_text(pen, more->guard->name);
        det_pen_raw(pen, "]");
    }
    if (edge->is_else)
        det_pen_raw(pen, " [else]");
    if (edge->transition->outcome == DET_OUTCOME_STOP)
        write_stop(picture, more);
    if (edge->transition->outcome == DET_OUTCOME_STAY)
        det_pen_raw(pen, " (stay)");
    if (more)
        write_actions(picture, more);
}

bool det_draw_shows_timeout(const struct det_picture *picture, unsigned state)
{
    return !picture->options->hide_timeouts && picture->machine->states[state].timeout.after > 0;
}

bool det_draw_shows_hooks(const struct det_picture *picture, unsigned state)
{
    const struct det_state_def *definition = &picture->machine->states[state];

    return !picture->options->hide_timeouts && (definition->entry || definition->exit);
}

void det_draw_timeout(struct det_picture *picture, unsigned state)
{
    det_pen_raw(picture->pen, "timeout: ");
    write_timeout(picture, &picture->machine->states[state].timeout);
}

void det_draw_hooks(struct det_picture *picture, unsigned state)
{
    const struct det_state_def *definition = &picture->machine->states[state];

    if (definition->entry) {
        det_pen_raw(picture->pen, "entry: ");
        det_pen_text(picture->pen, definition->entry->name);
    }
    if (definition->entry && definition->exit)
        det_pen_raw(picture->pen, ", ");
    if (definition->exit) {
        det_pen_raw(picture->pen, "exit: ");
        det_pen_text(picture->pen, definition->exit->name);
    }
}

/* Writes the name and the detail in parentheses, cut as one text. */
static void write_cut(struct det_pen *pen, const char *name, const char *detail, size_t count)
{
    const char *parts[] = { name, "(", detail, ")" };
    size_t part_count = detail[0] ? 4 : 1;
    size_t length = det_text_length(name) + (detail[0] ? det_text_length(detail) + 2 : 0);
    size_t left = length > count ? count - (sizeof ELLIPSIS - 1) : length;

    for (size_t i = 0; i < part_count; i++)
        left = det_pen_text_cut(pen, parts[i], left);
    if (length > count)
        det_pen_raw(pen, ELLIPSIS);
}

void det_draw_step_label(
    struct det_picture *picture, const struct det_draw_step *step, size_t count)
{
    struct det_pen *pen = picture->pen;

    if (step->is_timeout) {
        det_pen_raw(pen, TIMEOUT);
        count -= sizeof TIMEOUT - 1;
    }
    write_cut(
        pen, picture->machine->events[step->event].name, step->detail ? step->detail : "", count);
    if (step->outcome == DET_OUTCOME_STAY)
        det_pen_raw(pen, " (stay)");
    if (step->outcome == DET_OUTCOME_STOP)
        det_pen_raw(pen, " (stop)");
}

bool det_draw_is_stopped(const struct det_picture *picture)
{
    const struct det_draw_trace *trace = picture->trace;

    return trace && trace->step_count > 0 &&
           trace->steps[trace->step_count - 1].outcome == DET_OUTCOME_STOP;
}
