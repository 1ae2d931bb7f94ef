/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_rows.h - the rows of a definition as a builder stores them until build.
 *
 *      builder -> row 1 -> row 2 -> ... -> row n      in the order of the calls
 *                  |        |               |
 *                  kind     names           extras    all of it in the builder's arena
 *
 * Invariants:
 *   1. every text is our own copy; `given` is the caller's pointer, which is never dereferenced;
 *   2. rows with a kind below DET_BUILD_THINGS declare something and have a name;
 *   3. ids are -1 until build resolves them. */
#ifndef DET_MACHINE_BUILDER_ROWS_H
#define DET_MACHINE_BUILDER_ROWS_H

#include <detent/tool/builder.h>

#include "base/arena.h"

/* A name in a row. */
struct det_build_name {
    const char *text;  /* NULL: not given */
    const char *given; /* identifies its place for the front end */
    int32_t id;        /* id of the thing; -1: none */
    bool is_guess;     /* the name is unknown, and the id is the nearest match */
};

struct det_build_names {
    struct det_build_name *items;
    uint32_t count;
    bool is_too_long; /* more than DET_LIST_MAX */
};

struct det_build_timeout {
    det_time after;
    struct det_build_name event, fill;
};

enum det_build_kind {
    DET_BUILD_STATE,
    DET_BUILD_EVENT,
    DET_BUILD_EFFECT,
    DET_BUILD_GUARD,
    DET_BUILD_HOOK,
    DET_BUILD_UPDATE,
    DET_BUILD_FILL,
    DET_BUILD_TIMER,
    DET_BUILD_GROUP,
    DET_BUILD_EVENT_GROUP,
    DET_BUILD_ON,
    DET_BUILD_AFTER,
    DET_BUILD_ENTRY,
    DET_BUILD_EXIT,
    DET_BUILD_POLICY,
    DET_BUILD_DISPATCH,
    DET_BUILD_FAILURE,
    DET_BUILD_CLOSED,
    DET_BUILD_COMPLETION,
    DET_BUILD_INVARIANT,
    DET_BUILD_FINDING,
};

/* Number of kinds that declare something. */
#define DET_BUILD_THINGS ((size_t)DET_BUILD_ON)

/* A user function of any type; cast back to its own before use. */
typedef void det_build_fn(void);

struct det_build_state {
    unsigned flags;
    /* Its rows of these kinds; NULL: none. */
    const struct det_build_row *after, *entry, *exit, *dispatch, *closed;
};

struct det_build_event {
    const struct det_record *payload;
    enum det_unhandled unhandled;
    const struct det_build_row *policy; /* its row of this kind; NULL: none */
    bool is_internal;
    bool is_produced;
};

struct det_build_function {
    det_build_fn *run;
    struct det_build_names produces; /* of an effect */
};

struct det_build_on {
    struct det_build_names from, events;
    enum det_outcome outcome;
    bool is_override;
    bool is_else;
    bool is_guess; /* a state or an event in it, or its guard, is a guess */
    struct det_build_name to, guard, hook, update;
    struct det_build_names keeps, effects, arms, disarms;
    struct det_build_timeout within;
    const char *reason;
    uint64_t arm_mask, disarm_mask; /* the same timers as bits */
};

/* AFTER, ENTRY and EXIT: about states, a timeout or a hook. */
struct det_build_about {
    struct det_build_names states;
    struct det_build_timeout timeout;
    struct det_build_name hook;
};

/* DISPATCH, FAILURE, CLOSED, COMPLETION, INVARIANT: unused members are empty. */
struct det_build_component {
    struct det_build_names states;
    struct det_build_name event, function;
    enum det_dispatch_mode mode;
};

struct det_build_complaint {
    enum det_rule rule;
    struct det_place place;
    const char *text;
};

struct det_build_row {
    struct det_build_row *next;
    enum det_build_kind kind;
    uint32_t number; /* as builder.h counts; of a finding: of the row before it */
    uint32_t id;     /* dense among the things of its kind */
    bool is_used;    /* a state is entered, an event accepted, a timer armed, a function named */
    struct det_build_name name, wire;
    union {
        struct det_build_state state;
        struct det_build_event event;
        struct det_build_function function; /* EFFECT, GUARD, HOOK, UPDATE, FILL */
        struct det_build_timeout timer;
        struct det_build_names members; /* GROUP, EVENT_GROUP */
        struct det_build_on on;
        struct det_build_about about; /* AFTER, ENTRY, EXIT */
        struct det_build_component component;
        enum det_unhandled policy; /* of the event `name` */
        struct det_build_complaint complaint;
    };
};

/* A name in the definition of a list that rows use. */
struct det_build_origin {
    const char *given; /* as `given` of a name */
    uint32_t reported; /* a bit per kind already reported as undeclared */
};

/* Returns the origin of a name, by `given`; NULL if the name was written in place. */
typedef struct det_build_origin *det_build_origin_fn(const char *given);

struct det_machine_builder {
    const struct det_allocator *allocator;
    struct det_arena arena;
    struct det_build_name name;
    uint32_t version;
    const struct det_record *data;
    enum det_unhandled unhandled;
    struct det_build_name context; /* of a component; empty: none */
    det_locate_fn *locate;
    void *locate_context;
    det_build_origin_fn *origin; /* NULL: no name has one */
    bool is_unhandled_wanted;    /* report unhandled pairs */
    bool is_built;
    int status; /* 0 or the error; sticky */
    uint32_t row_count;
    struct det_build_row *rows;
    struct det_build_row **rows_end; /* where the next one is linked */
};

#endif
