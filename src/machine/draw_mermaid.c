/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw_mermaid.c - the ids of Mermaid, and its state diagram.
 *
 *   stateDiagram-v2
 *       direction LR
 *       state billing {
 *           ...                              groups; only states that need their own line
 *       }
 *
 *       [*] --> pending
 *       pending --> charging: pay / charge_card
 *       paid --> [*]
 *
 *       note right of pending
 *           timeout: 30m -> expired          blocks, because notes in one line end at a colon
 *       end note
 *
 *       class pending visited
 *
 * An id is the name itself if it is a plain word that no parser of Mermaid reserves. Otherwise it
 * is generated from the number of the state, and the name becomes a label. Generated ids cannot
 * collide with names, because a name that looks like one is not plain. */
#include <string.h>
#include <strings.h>

#include "machine/draw.h"

/* Words that a parser of Mermaid reads as something else in one of the diagrams, in any case of
 * letters; START and END are our own ids; the last five are members of every JavaScript object. */
static const char *const reserved[] = {
    "accDescr",  "accTitle",    "as",           "call",      "class",       "classDef",
    "click",     "default",     "end",          "flow",      "graph",       "hide",
    "href",      "interpolate", "flowchart",    "linkStyle", "note",        "root",
    "root_end",  "root_start",  "scale",        "start",     "state",       "style",
    "subgraph",  "title",       "stateDiagram", "v",         "constructor", "hasOwnProperty",
    "prototype", "toString",    "valueOf",
};

static bool is_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strcasecmp(name, reserved[i]) == 0)
            return true;
    }
    return false;
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

    return strspn(name, letters) > 0 && name[strspn(name, more)] == '\0';
}

/* Returns true for a name like a generated id: state_3, group_0. */
static bool is_made_up(const char *name)
{
    const char *number;

    if (strncmp(name, "state_", 6) != 0 && strncmp(name, "group_", 6) != 0)
        return false;
    number = name + 6;
    return number[strspn(number, "0123456789")] == '\0';
}

/* Returns true for a name that, at the end of a line before LR, would turn the diagram. */
static bool ends_in_direction(const char *name)
{
    static const char direction[] = "direction";
    size_t length = strlen(name), tail = sizeof direction - 1;

    return length >= tail && strcasecmp(name + length - tail, direction) == 0;
}

bool det_draw_is_plain(const char *name)
{
    return is_identifier(name) && !is_reserved(name) && !is_made_up(name) &&
           !ends_in_direction(name);
}

bool det_draw_state_is_plain(const struct det_picture *picture, unsigned state)
{
    return det_draw_is_plain(picture->machine->states[state].name);
}

/* Groups and states share the ids. */
bool det_draw_group_is_plain(const struct det_picture *picture, unsigned group)
{
    const struct det_machine *machine = picture->machine;
    const char *name = machine->groups[group].name;

    for (unsigned state = 0; state < machine->state_count; state++) {
        if (strcmp(machine->states[state].name, name) == 0)
            return false;
    }
    return det_draw_is_plain(name);
}

void det_draw_state_id(struct det_picture *picture, unsigned state)
{
    if (det_draw_state_is_plain(picture, state))
        det_pen_raw(picture->pen, picture->machine->states[state].name);
    else
        det_pen_format(picture->pen, "state_%u", state);
}

void det_draw_group_id(struct det_picture *picture, unsigned group)
{
    if (det_draw_group_is_plain(picture, group))
        det_pen_raw(picture->pen, picture->machine->groups[group].name);
    else
        det_pen_format(picture->pen, "group_%u", group);
}

/* Writes: "name" as */
static void write_alias(struct det_pen *pen, const char *name)
{
    det_pen_raw(pen, "\"");
    det_pen_text(pen, name);
    det_pen_raw(pen, "\" as ");
}

static void write_direction(struct det_picture *picture, size_t depth)
{
    det_pen_indent(picture->pen, depth);
    det_pen_raw(picture->pen, picture->options->top_down ? "direction TB\n" : "direction LR\n");
}

static void open_group(struct det_picture *picture, unsigned group, size_t depth)
{
    struct det_pen *pen = picture->pen;

    det_pen_indent(pen, depth);
    det_pen_raw(pen, "state ");
    if (!det_draw_group_is_plain(picture, group))
        write_alias(pen, picture->machine->groups[group].name);
    det_draw_group_id(picture, group);
    det_pen_raw(pen, " {\n");
    write_direction(picture, depth + 1);
}

static void close_group(struct det_picture *picture, size_t depth)
{
    det_pen_indent(picture->pen, depth);
    det_pen_raw(picture->pen, "}\n");
}

static bool is_final(const struct det_picture *picture, unsigned state)
{
    return (picture->machine->states[state].flags & DET_STATE_FINAL) != 0;
}

/* A plain state outside of groups is declared by its edges. */
static void declare_state(struct det_picture *picture, unsigned state, size_t depth)
{
    bool is_plain_id = det_draw_state_is_plain(picture, state);
    bool has_line = det_bit_get(picture->has_edge, state) || is_final(picture, state);
    struct det_pen *pen = picture->pen;

    if (is_plain_id && has_line && depth == 1)
        return;
    det_pen_indent(pen, depth);
    if (!is_plain_id) {
        det_pen_raw(pen, "state ");
        write_alias(pen, picture->machine->states[state].name);
    }
    det_draw_state_id(picture, state);
    det_pen_raw(pen, "\n");
}

static void write_edge(struct det_picture *picture, const struct det_draw_edge *edge)
{
    det_pen_indent(picture->pen, 1);
    det_draw_state_id(picture, edge->from);
    det_pen_raw(picture->pen, " --> ");
    if (edge->transition->outcome == DET_OUTCOME_STOP)
        det_pen_raw(picture->pen, "[*]");
    else
        det_draw_state_id(picture, edge->transition->to);
    det_pen_raw(picture->pen, ": ");
    det_draw_edge_label(picture, edge);
    det_pen_raw(picture->pen, "\n");
}

static void write_edges(struct det_picture *picture)
{
    struct det_draw_edge edge;
    struct det_draw_cursor cursor = { 0 };

    det_pen_raw(picture->pen, "    [*] --> ");
    det_draw_state_id(
        picture, picture->trace ? picture->trace->initial : picture->machine->initial);
    det_pen_raw(picture->pen, "\n");
    while (det_draw_next_edge(picture, &cursor, &edge))
        write_edge(picture, &edge);
    for (unsigned state = 0; state < picture->machine->state_count; state++) {
        if (!is_final(picture, state))
            continue;
        det_pen_indent(picture->pen, 1);
        det_draw_state_id(picture, state);
        det_pen_raw(picture->pen, " --> [*]\n");
    }
}

static void write_note(
    struct det_picture *picture, unsigned state, const char *side,
    void (*write)(struct det_picture *picture, unsigned state))
{
    det_pen_format(picture->pen, "    note %s of ", side);
    det_draw_state_id(picture, state);
    det_pen_raw(picture->pen, "\n        ");
    write(picture, state);
    det_pen_raw(picture->pen, "\n    end note\n");
}

static void write_notes(struct det_picture *picture)
{
    for (unsigned state = 0; state < picture->machine->state_count; state++) {
        if (det_draw_shows_timeout(picture, state))
            write_note(picture, state, "right", det_draw_timeout);
        if (det_draw_shows_hooks(picture, state))
            write_note(picture, state, "left", det_draw_hooks);
    }
}

/* A class line without states would be an error, so the first one found opens it. */
static void write_visited(struct det_picture *picture)
{
    bool is_open = false;

    for (unsigned state = 0; state < picture->machine->state_count; state++) {
        if (!det_bit_get(picture->visited, state) || state == picture->trace->current)
            continue;
        det_pen_raw(picture->pen, is_open ? "," : "    class ");
        det_draw_state_id(picture, state);
        is_open = true;
    }
    if (is_open)
        det_pen_raw(picture->pen, " visited\n");
}

static void write_trace(struct det_picture *picture)
{
    det_pen_raw(picture->pen, "\n    classDef visited fill:" DET_COLOUR_VISITED ",color:#000\n");
    det_pen_raw(picture->pen, "    classDef current fill:" DET_COLOUR_CURRENT ",color:#000\n");
    write_visited(picture);
    det_pen_raw(picture->pen, "    class ");
    det_draw_state_id(picture, picture->trace->current);
    det_pen_raw(picture->pen, " current\n");
}

void det_draw_mermaid_state(struct det_picture *picture)
{
    static const struct det_draw_walk walk = { open_group, declare_state, close_group };

    det_pen_raw(picture->pen, "stateDiagram-v2\n");
    write_direction(picture, 1);
    det_draw_groups_note(picture, "%%");
    det_draw_groups_walk(picture, &walk);
    write_edges(picture);
    write_notes(picture);
    if (picture->trace)
        write_trace(picture);
}
