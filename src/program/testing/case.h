/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case.h - a test file (docs/formats/test.md) as data: names resolved against its machine, payloads
 * and answers made, so that a case that runs can fail only by its expectations.
 *
 * Everything lives in the arena of the file. A part knows the node it was read from, for its place.
 */
#ifndef DET_TESTING_CASE_H
#define DET_TESTING_CASE_H

#include <detent/tool/builder.h>

#include "base/arena.h"
#include "config/file_reader.h"

#define CASE_LIST_MAX 64

/* Fields with values for them. */
struct case_fields {
    const struct det_record *record;
    void *value; /* a whole record; what was not given is zero */
    const struct det_field **given;
    const struct det_datum **nodes;
    size_t count;
};

/* Kind of the answer of an effect to one call. */
enum case_reply {
    CASE_WAIT,
    CASE_DONE,
    CASE_FAIL,
    CASE_PRODUCE,
};

struct case_answer {
    enum case_reply reply;
    det_time after;
    int error;                      /* FAIL */
    const void *event;              /* PRODUCE */
    const struct case_answer *next; /* for the next call; NULL: this one again */
};

enum case_function {
    CASE_GUARD,
    CASE_HOOK,
    CASE_UPDATE,
    CASE_FILL,
    CASE_EFFECT,
    CASE_FUNCTION_COUNT
};

/* Answers of a function from some moment on. */
struct case_setting {
    const struct case_setting *next;
    enum case_function function;
    unsigned index;
    bool is_yes;                       /* GUARD */
    int result;                        /* HOOK */
    const struct case_fields *fields;  /* UPDATE, FILL */
    const struct case_answer *answers; /* EFFECT */
};

/* The keys of an expectation. */
#define CASE_EXPECTATIONS(X) \
    X(ERROR, error)          \
    X(ACTION, action)        \
    X(OUTCOME, outcome)      \
    X(DUPLICATE, duplicate)  \
    X(STATE, state)          \
    X(STOPPED, stopped)      \
    X(REASON, reason)        \
    X(SEQUENCE, sequence)    \
    X(HISTORY, history)      \
    X(DATA, data)            \
    X(TIMEOUT, timeout)      \
    X(TIMERS, timers)        \
    X(EFFECTS, effects)      \
    X(DEAD, dead)            \
    X(DEFERRED, deferred)

enum case_expectation {
#define X(name, key) CASE_EXPECT_##name,
    CASE_EXPECTATIONS(X)
#undef X
        CASE_EXPECT_COUNT
};

struct case_ids {
    uint16_t items[CASE_LIST_MAX];
    det_time spans[CASE_LIST_MAX]; /* of timers; -1: not said */
    size_t count;
};

struct case_expect {
    const struct det_datum *node;
    const struct det_datum *nodes[CASE_EXPECT_COUNT]; /* NULL: not said */
    unsigned state;
    int outcome, error;
    const char *action, *reason;
    bool is_duplicate, is_stopped;
    uint64_t sequence, deferred;
    det_time timeout; /* -1: none */
    struct case_ids history, timers, effects, dead;
    const struct case_fields *data;
};

enum case_action {
    CASE_NOTHING,
    CASE_SEND,
    CASE_SEND_ALL,
    CASE_ADVANCE,
    CASE_ANSWER,
    CASE_LET,
    CASE_STOP,
};

struct case_step {
    struct case_step *next;
    const struct det_datum *node; /* the action, or the step if it has none */
    enum case_action action;
    const void *events[CASE_LIST_MAX]; /* SEND, SEND_ALL */
    size_t event_count;
    const char *id;
    det_time span;
    unsigned effect;
    struct case_answer answer;
    const struct case_setting *settings;
    const char *reason;
    const struct case_expect *expect; /* NULL: none */
};

struct case_case {
    struct case_case *next;
    const struct det_datum *node;
    const char *name;
    const void *data; /* at the start; NULL: zero */
    int start_error;  /* 0: it starts */
    const struct det_datum *start_node;
    const struct case_setting *settings;
    struct case_step *steps;
    size_t step_count;
};

struct case_file {
    const struct case_setting *settings;
    struct case_case *cases;
    size_t case_count;
};

/* Returns the path in `machine:` of a test file as written. 0 or DET_ERR_MALFORMED. */
DET_MUST_CHECK int case_machine_path(
    const struct det_datum *root, const char **ret, struct cli_problems *reterr);
/* Reads the file for this machine, whose functions need not be bound. 0, DET_ERR_MALFORMED with all
 * problems that do not follow from others, or DET_ERR_NO_MEMORY with that as the last one. */
DET_MUST_CHECK int case_file_read(
    struct det_arena *arena, const struct det_datum *root, const struct det_machine *machine,
    struct case_file *ret, struct cli_problems *reterr);

/* The number of a function of this kind by name, or -1; and its name. */
int case_function_find(
    const struct det_machine *machine, enum case_function function, const char *name);
const char *case_function_name(
    const struct det_machine *machine, enum case_function function, size_t index);
/* "unhandled" and so on: the name of an error in small letters. `target` has DET_NAME_MAX bytes. */
const char *case_error_name(int code, char *target);
const char *case_expectation_key(enum case_expectation expectation);

/* Copies the given fields into a record of the same kind. */
void case_fields_apply(const struct case_fields *fields, void *value);

#endif
