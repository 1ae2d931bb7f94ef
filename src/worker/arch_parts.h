/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch_parts.h - declarations shared by the parts of the architecture test: tokens, functions,
 * findings.
 *
 *     text -> arch_tokens.c -> tokens -> arch_code.c -> functions and their calls
 *          -> arch_pure.c, arch_state.c, arch_action.c, arch_record.c -> findings
 *          -> arch_allow.c: without the permitted ones
 *
 * Everything lives in one arena; the first failure to allocate sticks in `error`. */
#ifndef DET_WORKER_ARCH_PARTS_H
#define DET_WORKER_ARCH_PARTS_H

#include "base/arena.h"
#include "worker/arch.h"

enum det_code_kind {
    DET_CODE_NAME,
    DET_CODE_NUMBER,
    DET_CODE_STRING,    /* with its quotes; also a character */
    DET_CODE_MARK,      /* a C operator or bracket */
    DET_CODE_COMMENT,   /* not among the tokens of a source */
    DET_CODE_DIRECTIVE, /* the same: a line with #, including continuation lines */
    DET_CODE_END,
};

struct det_code_token {
    enum det_code_kind kind;
    const char *text;
    uint32_t length;
    uint32_t line, column, end_line; /* from 1 */
    uint32_t match;                  /* ( [ {: the closing token, or itself */
    bool starts_line;
};

/* An exception in the source. */
struct det_arch_allow {
    struct det_arch_allow *next;
    enum det_arch_rule rule; /* DET_ARCH_RULE_COUNT: malformed */
    struct det_code_token comment;
    const char *problem; /* why it is malformed */
    uint32_t from, to;   /* lines */
    bool is_used;
};

struct det_arch_source {
    const struct det_arch_text *text;
    struct det_code_token *tokens; /* without comments and directives; END at the end */
    uint32_t count;
    struct det_arch_allow *allows;
};

enum det_arch_role {
    DET_ARCH_HELPER,
    DET_ARCH_STATE,
    DET_ARCH_ACTION,
    DET_ARCH_COLLECT,
    DET_ARCH_DERIVE,
    DET_ARCH_CHILDREN,
    DET_ARCH_OPEN,
    DET_ARCH_CLOSE,
};

/* The role of a function, by itself or through its callers. */
enum det_arch_side {
    DET_ARCH_PURE,     /* states, derive, children */
    DET_ARCH_ACTS,     /* actions */
    DET_ARCH_OBSERVES, /* collect */
    DET_ARCH_SIDE_COUNT
};

struct det_arch_function {
    const struct det_arch_source *source;
    uint32_t name, parameters, body; /* tokens: the name, ( and { */
    enum det_arch_role role;
    uint16_t index; /* index of the state or action */
    bool is_on[DET_ARCH_SIDE_COUNT];
    const struct det_arch_function *root[DET_ARCH_SIDE_COUNT]; /* the function of this role that
                                                                * leads to it */
    uint32_t mark;                                             /* of the last walk */
    bool is_called_locked; /* a helper that is only called under the lock */
};

struct det_arch {
    const struct det_allocator *allocator;
    struct det_arena arena;
    int error;
    const struct det_worker_spec *spec;
    const struct det_worker_spec_summary *facts;
    struct det_arch_source *sources; /* the last one is the spec itself */
    size_t source_count;             /* number of C sources */
    struct det_arch_function *functions;
    size_t function_count;
    uint32_t walks;
    struct det_arch_finding *findings;
    size_t finding_count, finding_capacity;
    struct det_worker_transition *transitions;
    size_t transition_count, transition_capacity;
    struct det_arch_report report;
};

/* arch_tokens.c */

void det_arch_read_source(
    struct det_arch *arch, struct det_arch_source *source, const struct det_arch_text *text);
bool det_code_is(const struct det_code_token *token, const char *text);
static inline const struct det_code_token *det_code_at(
    const struct det_arch_source *source, uint32_t index)
{
    return &source->tokens[index < source->count ? index : source->count];
}

/* arch_code.c */

void det_arch_find_functions(struct det_arch *arch);
/* The function of this name, or NULL. */
struct det_arch_function *det_arch_function_named(
    const struct det_arch *arch, const struct det_code_token *name);
/* A call of a plain name: not of a member, not a C keyword. */
bool det_code_is_call(const struct det_arch_source *source, uint32_t index);
/* Visits `function` and all functions of the same sources that it calls, each once. */
typedef void det_arch_visit(
    struct det_arch *arch, const struct det_arch_function *function, void *context);
void det_arch_walk(
    struct det_arch *arch, struct det_arch_function *function, det_arch_visit *visit,
    void *context);
/* True if the token is `prefix` followed by `rest`. */
bool det_code_is_prefix_and_rest(
    const struct det_code_token *token, const char *prefix, const char *rest);
/* Argument `number`, from 0, of the call whose ( is at `open`: its first token, and in `ret_end`
 * the token after its last; equal if there is none. */
uint32_t det_code_argument(
    const struct det_arch_source *source, uint32_t open, unsigned number, uint32_t *ret_end);
/* The token after the last one of a function. */
static inline uint32_t det_arch_body_end(const struct det_arch_function *function)
{
    return function->source->tokens[function->body].match;
}

/* arch.c */

void *det_arch_alloc(struct det_arch *arch, size_t size);
void det_arch_report_at(
    struct det_arch *arch, enum det_arch_rule rule, const struct det_arch_source *source,
    const struct det_code_token *token, const char *format, ...) DET_PRINTF(5, 6);
void det_arch_report_place(
    struct det_arch *arch, enum det_arch_rule rule, const struct det_place *place,
    const char *format, ...) DET_PRINTF(4, 5);

/* The rules. */
void det_arch_check_pure(struct det_arch *arch);
void det_arch_check_variables(struct det_arch *arch);
void det_arch_find_transitions(struct det_arch *arch);
void det_arch_check_states(struct det_arch *arch);
void det_arch_check_reasons(struct det_arch *arch);
void det_arch_check_actions(struct det_arch *arch);
void det_arch_check_shared(struct det_arch *arch);
void det_arch_check_records(struct det_arch *arch);
/* arch_allow.c: reads the exceptions of a source; removes permitted findings, and checks the
 * exceptions themselves. */
void det_arch_read_allow(
    struct det_arch *arch, struct det_arch_source *source, const struct det_code_token *comment);
void det_arch_settle(struct det_arch *arch);

#endif
