/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* draw.h - shared by the drawings: a pen that escapes, the tree of groups, edges, labels.
 *
 * Nothing here allocates: the pen writes into the caller's memory and counts what did not fit, and
 * per state the stack holds one bit or one id. */
#ifndef DET_MACHINE_DRAW_H
#define DET_MACHINE_DRAW_H

#include <detent/tool/draw.h>

/* The escapes of det_pen_text() for names, reasons and details. */
enum det_pen_dialect {
    DET_PEN_MERMAID, /* `#59;` for characters that one of Mermaid's parsers interprets */
    DET_PEN_DOT,     /* between double quotes */
};

struct det_pen {
    enum det_pen_dialect dialect;
    char *target;
    size_t capacity;
    uint64_t length; /* length of the whole text, also if truncated */
};

/* Terminates the text with a NUL and returns the length of the whole text. */
int64_t det_pen_finish(struct det_pen *pen);
/* Writes our own words and marks without escapes. */
void det_pen_raw(struct det_pen *pen, const char *text);
void det_pen_format(struct det_pen *pen, const char *format, ...) DET_PRINTF(2, 3);
/* Escapes the text. Keeps newlines; other control characters become visible symbols, and bytes that
 * are not UTF-8 become U+FFFD, because SVG can contain neither. */
void det_pen_text(struct det_pen *pen, const char *text);
/* Escapes the first `count` characters; returns how many of `count` are left. */
size_t det_pen_text_cut(struct det_pen *pen, const char *text, size_t count);
void det_pen_indent(struct det_pen *pen, size_t depth);
/* Writes "1h30m", exact. */
void det_pen_duration(struct det_pen *pen, det_time span);
/* Returns the length in characters. */
size_t det_text_length(const char *text);

/* More groups than this are not drawn; such machines are unreadable anyway. */
#define DET_DRAW_GROUPS_MAX 256
#define DET_DRAW_NO_GROUP   UINT16_MAX

/* The tree of groups.
 *
 * 1. A drawn group's members are all members of its parent.
 * 2. `inner[state]` is the innermost drawn group of the state.
 * 3. Two drawn groups are either nested or have no state in common. */
struct det_draw_groups {
    uint16_t count;                       /* of the machine, or 0 when there are too many */
    uint16_t parent[DET_DRAW_GROUPS_MAX]; /* DET_DRAW_NO_GROUP: none */
    bool is_drawn[DET_DRAW_GROUPS_MAX];
    uint16_t inner[DET_STATES_MAX];
};

void det_draw_groups_init(struct det_draw_groups *groups, const struct det_machine *machine);

/* One drawing in progress. */
struct det_picture {
    const struct det_machine *machine;
    const struct det_draw_options *options;
    const struct det_draw_trace *trace; /* NULL: none */
    struct det_pen *pen;
    bool has_stop;                          /* some event stops an instance */
    uint64_t visited[DET_STATES_MAX / 64];  /* by the trace */
    uint64_t has_edge[DET_STATES_MAX / 64]; /* states that an edge names, or the start */
    struct det_draw_groups groups;
};

static inline bool det_bit_get(const uint64_t *bits, unsigned index)
{
    return bits[index / 64] >> (index % 64) & 1;
}

static inline void det_bit_set(uint64_t *bits, unsigned index)
{
    bits[index / 64] |= UINT64_C(1) << (index % 64);
}

/* Walks the tree in declaration order: a group's own states come before the groups inside it, and
 * the states without a group come last. `depth` counts from 1. */
struct det_draw_walk {
    void (*open)(struct det_picture *picture, unsigned group, size_t depth);
    void (*state)(struct det_picture *picture, unsigned state, size_t depth);
    void (*close)(struct det_picture *picture, size_t depth);
};
void det_draw_groups_walk(struct det_picture *picture, const struct det_draw_walk *walk);
/* Writes a comment for each group that overlaps another one, so that its absence is noticed. */
void det_draw_groups_note(struct det_picture *picture, const char *comment_mark);

/* A transition: a used cell of the table, or an alternative. */
struct det_draw_edge {
    uint16_t from, event;
    bool is_else; /* an alternative without a guard */
    const struct det_transition *transition;
};

/* With more alternatives than this they are not looked up for each cell, but written at the end. */
#define DET_DRAW_CHOICES_MAX 1024

/* Iterates over all edges. Zero-initialized. */
struct det_draw_cursor {
    uint32_t at;                     /* a cell, or an alternative after the last cell */
    bool is_begun;                   /* the cell itself was returned or skipped */
    const struct det_choice *choice; /* the last one of the pair; NULL: none */
};

/* Returns the next edge: cells in the order of states, then events; after each cell its
 * alternatives in the order in which they are tried. */
bool det_draw_next_edge(
    const struct det_picture *picture, struct det_draw_cursor *cursor, struct det_draw_edge *ret);
/* Returns true if the trace has a step with these states, event and outcome. Alternatives that
 * agree in them cannot be told apart. */
bool det_draw_edge_taken(const struct det_picture *picture, const struct det_draw_edge *edge);
/* Returns true if the timeout of its state sends the event of the edge. */
bool det_draw_edge_is_timeout(const struct det_picture *picture, const struct det_draw_edge *edge);

/* Writes "pay [is_open] / charge_card, arm reminder (10m -> remind)"; [else] for an alternative
 * without a guard. */
void det_draw_edge_label(struct det_picture *picture, const struct det_draw_edge *edge);
/* Writes "timeout: 30m -> expired". */
void det_draw_timeout(struct det_picture *picture, unsigned state);
/* Writes "entry: audit, exit: seal". */
void det_draw_hooks(struct det_picture *picture, unsigned state);
/* Writes pay(payment{cents=1999}), at most `count` characters of it, and the outcome of the
 * event. */
void det_draw_step_label(
    struct det_picture *picture, const struct det_draw_step *step, size_t count);
bool det_draw_shows_timeout(const struct det_picture *picture, unsigned state);
bool det_draw_shows_hooks(const struct det_picture *picture, unsigned state);
/* Returns true if the last step of the trace stopped the instance. */
bool det_draw_is_stopped(const struct det_picture *picture);

#define DET_COLOUR_VISITED "#ADD8E6"
#define DET_COLOUR_CURRENT "#90EE90"
#define DET_COLOUR_TIMEOUT "#FFB6C1"
#define DET_COLOUR_START   "#E0E0E0"

/* The start of every digraph. */
#define DET_DOT_STYLE                                                                          \
    "    graph [newrank=true, labeljust=l, style=rounded, color=\"#999999\", "                 \
    "fontname=\"Helvetica\", fontsize=11];\n"                                                  \
    "    node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"Helvetica\", " \
    "fontsize=12];\n"                                                                          \
    "    edge [fontname=\"Helvetica\", fontsize=10, arrowsize=0.7];\n"

/* One function for each drawing. */
void det_draw_mermaid_state(struct det_picture *picture);
void det_draw_mermaid_flowchart(struct det_picture *picture);
void det_draw_mermaid_sequence(struct det_picture *picture);
void det_draw_dot(struct det_picture *picture);
void det_draw_dot_timeline(struct det_picture *picture);

/* Writes the id of a state or group in Mermaid: its name if that is safe, else a generated one. */
void det_draw_state_id(struct det_picture *picture, unsigned state);
void det_draw_group_id(struct det_picture *picture, unsigned group);
/* True for a name that no parser of Mermaid mistakes for something else, nor for a generated id. */
bool det_draw_is_plain(const char *name);
bool det_draw_state_is_plain(const struct det_picture *picture, unsigned state);
bool det_draw_group_is_plain(const struct det_picture *picture, unsigned group);

#endif
