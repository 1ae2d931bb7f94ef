/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_build.h - one build: from rows to a machine, in steps that each use the results of the
 * previous ones.
 *
 *      findings   the files in order, the findings of the front end
 *      declare    every declaration gets its dense id    DUPLICATE_NAME, BAD_NAME, TOO_LARGE
 *      resolve    every name in a row gets an id         UNKNOWN_*, DUPLICATE_TIMEOUT, ...
 *      cells      every pair gets its rows               DUPLICATE_TRANSITION, ELSE_...
 *      rules      missing rows                           NOT_ENTERED, NO_INITIAL, ...
 *      flow       unreachable states, dead ends; only without errors so far
 *      lay        the det_machine; only without errors
 *
 * Invariants:
 *   1. only the ids and marks of a row change, and only until `cells`;
 *   2. a misspelt name gets the id of the nearest one, marked as a guess: the guess prevents
 *      findings that only follow from the mistake, and no finding is based on a guess. */
#ifndef DET_MACHINE_BUILDER_BUILD_H
#define DET_MACHINE_BUILDER_BUILD_H

#include "base/assert.h"
#include "machine/builder_findings.h"

/* Things of one kind, by id. */
struct det_build_list {
    struct det_build_row **items;
    size_t count;
    const char **words; /* their names, once a nearest one was requested */
    size_t letters;     /* in all of them */
};

/* An alternative of a pair. `next` and `bare` are numbers of alternatives, from 1; 0: none. */
struct det_build_else {
    const struct det_build_row *row;
    uint32_t cell; /* of the pair */
    uint32_t next; /* of the same pair; until all are known, the previous one */
    uint32_t bare; /* the last one without IF, up to this one */
};

/* Iterates over the rows that may decide a pair. Zero-initialized. */
struct det_build_row_cursor {
    bool is_begun;
    uint32_t next_else;
};

/* Name spaces: in C, states and events share the prefix of their enumerators, and all functions are
 * functions. */
enum det_build_space {
    DET_BUILD_SPACE_ENUMERATORS,
    DET_BUILD_SPACE_FUNCTIONS,
    DET_BUILD_SPACE_TIMERS,
    DET_BUILD_SPACE_GROUPS,
    DET_BUILD_SPACE_EVENT_GROUPS,
    DET_BUILD_SPACES,
};

struct det_build {
    struct det_machine_builder *builder;
    const char *name; /* of the machine, for sentences */
    struct det_arena scratch;
    struct det_build_findings findings;
    struct det_map names[DET_BUILD_SPACES]; /* of rows, by name */
    struct det_map wires[2];                /* of STATE rows and EVENT rows, by wire name */
    struct det_build_list things[DET_BUILD_THINGS];
    struct det_build_list ons;
    uint32_t *cells;      /* [state * events + event], as builder_cells.c reads them; 0: no row */
    uint32_t *first_else; /* the same: the number in `elses` of the first one, as `next` */
    struct det_build_else *elses;
    uint32_t else_count;
    const struct det_build_row *orphan, *never; /* the last ELSE rows that were reported */
    /* The first rows of a component of these kinds; NULL: none. */
    const struct det_build_row *failure, *completion, *invariant;
    size_t nearest_budget; /* letters that may still be compared */
    int32_t initial;       /* the initial state; -1: none */
    bool is_too_large;     /* a limit is exceeded: stop */
    bool is_row_missing;   /* a row could not be read: it may contain the missing declaration */
    bool is_component_reported; /* already reported: a component row, but no FSM_CONTEXT */
};

void det_build_init(struct det_build *build, struct det_machine_builder *builder);
void det_build_deinit(struct det_build *build);

static inline bool det_build_has_failed(const struct det_build *build)
{
    return build->findings.status < 0;
}

static inline void *det_build_scratch(struct det_build *build, size_t count, size_t size)
{
    void *block = det_arena_array(&build->scratch, count, size);

    if (block == NULL)
        build->findings.status = DET_ERR_NO_MEMORY;
    return block;
}

static inline size_t det_build_count(const struct det_build *build, enum det_build_kind kind)
{
    return build->things[kind].count;
}

/* Returns the thing with this id. */
static inline struct det_build_row *det_build_thing(
    const struct det_build *build, enum det_build_kind kind, size_t id)
{
    det_check(id < build->things[kind].count);
    return build->things[kind].items[id];
}

/* Returns the thing of this name; NULL if there is none. */
static inline struct det_build_row *det_build_named(
    const struct det_build *build, enum det_build_kind kind, const struct det_build_name *name)
{
    return name->id >= 0 ? det_build_thing(build, kind, (size_t)name->id) : NULL;
}

/* builder_cells.c */
/* Returns the row that decides the pair, or its first alternative; NULL: none. */
const struct det_build_row *det_build_cell(
    const struct det_build *build, size_t state, size_t event);
/* Returns the next row that may decide it: the cell, then the ELSE rows in order; NULL: none. */
const struct det_build_row *det_build_next_row(
    const struct det_build *build, size_t state, size_t event, struct det_build_row_cursor *cursor);

/* Returns the policy for the event in states that do not accept it. */
enum det_unhandled det_build_policy(
    const struct det_build *build, const struct det_build_row *event);

/* "a state", "an event", ...; without its article from the second on. */
const char *det_build_kind_text(enum det_build_kind kind);
const char *det_build_kind_noun(enum det_build_kind kind);

/* builder_names.c */
void det_build_declare(struct det_build *build);
/* Resolves a name to its id, or reports that it is unknown. Ignores an absent name. */
void det_build_resolve_name(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind expected,
    struct det_build_name *name);
/* Returns the kind of the thing with this name; DET_BUILD_THINGS if there is none. */
size_t det_build_kind_named(const struct det_build *build, const char *text);

/* builder_resolve.c: resolves a list that must not be empty. */
void det_build_resolve_some(
    struct det_build *build, const struct det_build_row *row, enum det_build_kind kind,
    struct det_build_names *names);

/* check_component.c */
static inline bool det_build_is_component(const struct det_build *build)
{
    return build->builder->context.text != NULL;
}
/* Resolves a row that only components have. */
void det_build_resolve_component(struct det_build *build, struct det_build_row *row);
/* Reports missing rows of a component, and rows that it must not have. */
void det_check_component(struct det_build *build);
/* Reports states of a component where a second stop would make it fail. */
void det_check_stops(struct det_build *build);

/* The other steps, each in the file of its name. */
void det_build_resolve(struct det_build *build);
void det_build_cells(struct det_build *build);
void det_check_records(struct det_build *build);
void det_check_rules(struct det_build *build);
void det_check_flow(struct det_build *build);
void det_check_timers(struct det_build *build);
int det_build_lay(struct det_build *build, struct det_machine **ret);

#endif
