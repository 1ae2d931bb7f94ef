/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile.h - makes the steps of a program while the parser reads the expression.
 *
 * The parser pushes operands and applies operators to the last ones. Operand n is computed in slot
 * n. Constants and fields are only loaded when an operator needs them in their slot: until then an
 * operator may use them as they are.
 *
 * Jumps whose end is not known yet are in lists, which link their steps; det_compile_land() makes
 * all steps of a list lead to the next step. An operand has three of them:
 *
 *   misses        lead away because the value is absent
 *   false_jumps   lead away because the condition is known to be false; the slot says so
 *   true_jumps    the same for true
 *
 * Invariants:
 *   1. operands[n] is in slot n; an operand in the form SLOT has been computed there, on the way
 *      that falls through and on those of false_jumps and true_jumps;
 *   2. the range of an int, low to high, has every value that it can have;
 *   3. `label` is the last step to which a jump leads: the steps before it must not be changed. */
#ifndef DET_EXPRESSION_COMPILE_H
#define DET_EXPRESSION_COMPILE_H

#include "expression/lex.h"
#include "expression/program.h"

#define NO_STEP UINT16_MAX

enum operand_form {
    OPERAND_CONSTANT,
    OPERAND_PLACE, /* a field that is not loaded yet */
    OPERAND_SLOT,
};

/* A path that is known to be present: bytes of the expression. */
struct fact {
    uint32_t start, end;
    const struct fact *next;
};

struct operand {
    enum operand_form form;
    enum det_expression_type type; /* ANY: `none` */
    det_i128 low, high;            /* INT */
    const struct det_enum *enumeration;
    union expression_slot value; /* CONSTANT */
    uint32_t start, end;         /* bytes of the expression */

    /* PLACE: from an input, or from the address in the slot of this operand. ARRAY keeps the
     * field when it is loaded. */
    const struct det_record *record;
    const struct det_field *field;
    const struct expression_array *array;
    const char *path; /* NULL: not a path */
    enum det_kind kind;
    uint32_t size, capacity, offset;
    uint8_t input;
    bool is_at; /* from an address */

    bool is_untested; /* an optional field without or_else */
    bool is_asked;    /* has() has asked for it */
    uint16_t misses;
    uint16_t false_jumps, true_jumps;
    uint16_t literals; /* the steps of its values, if all of them are constant texts */
    const struct fact *facts_true, *facts_false;
};

struct compiler {
    const struct det_expression_options *options;
    struct det_expression *program;
    struct det_arena work; /* freed when the expression is compiled */
    struct det_view text;
    struct det_error *reterr;
    struct expression_step *steps;
    uint16_t *columns; /* for each step: the byte of the expression */
    uint16_t *links;   /* for each step: the next one of its list */
    size_t step_count, step_max;
    struct det_expression_read *reads; /* as many as there are tokens, at most */
    size_t read_count;
    struct operand *operands;
    unsigned depth;
    uint16_t label;
    uint32_t column; /* of the operator that is applied */
    const struct fact *known;
    bool has_no_memory; /* found in a step; the parser notices it */
    struct det_expression_scratch *scratch;
};

/* Fails at a byte of the expression; returns the code. */
#define COMPILE_FAIL(compiler, code, offset, ...) \
    det_expression_fail((compiler)->reterr, (code), (offset), __VA_ARGS__)

/* Steps. */
static inline uint16_t compile_next(const struct compiler *compiler)
{
    return (uint16_t)compiler->step_count;
}
/* Appends a step. There is room: a token makes at most STEPS_PER_TOKEN. */
#define STEPS_PER_TOKEN 8
struct expression_step *det_compile_emit(
    struct compiler *compiler, enum expression_operation operation, unsigned target, unsigned a,
    unsigned b);
/* Adds the last step to a list of jumps. */
void det_compile_list(struct compiler *compiler, uint16_t *list);
void det_compile_join(struct compiler *compiler, uint16_t *list, uint16_t other);
void det_compile_land(struct compiler *compiler, uint16_t *list);

/* Operands. */
static inline struct operand *compile_top(struct compiler *compiler)
{
    return &compiler->operands[compiler->depth - 1];
}
DET_MUST_CHECK int det_compile_push(
    struct compiler *compiler, uint32_t start, uint32_t end, struct operand **ret);
/* Brings an operand into its slot. */
void det_compile_load(struct compiler *compiler, unsigned depth);
/* Fails if the operand may be absent and nobody asked. */
DET_MUST_CHECK int det_compile_require(struct compiler *compiler, unsigned depth);
/* Makes a constant of the operand whose steps begin at `mark`: runs them. */
DET_MUST_CHECK int det_compile_fold(struct compiler *compiler, uint16_t mark, unsigned depth);
/* The operand becomes a value of this type in its slot. */
void det_compile_result(struct compiler *compiler, unsigned depth, enum det_expression_type type);
void det_compile_int_range(struct operand *operand, det_i128 low, det_i128 high);
bool det_compile_is_short(const struct operand *operand); /* fits 64 bits with a sign */
/* A text that is one of a few constants: it may become a value of an enum. */
static inline bool compile_is_literal(const struct operand *operand)
{
    return operand->type == DET_EXPRESSION_TEXT &&
           (operand->form == OPERAND_CONSTANT || operand->literals != NO_STEP);
}
/* Conversions of an operand. */
void det_compile_to_float(struct compiler *compiler, unsigned depth);
DET_MUST_CHECK int det_compile_to_enum(
    struct compiler *compiler, unsigned depth, const struct det_enum *enumeration);
bool det_compile_same_enum(const struct det_enum *a, const struct det_enum *b);
/* "int", "text", "enum color": for messages. */
const char *det_compile_type(struct compiler *compiler, const struct operand *operand);

/* Literals and paths. */
DET_MUST_CHECK int det_compile_literal(
    struct compiler *compiler, const struct expression_token *token);
DET_MUST_CHECK int det_compile_name(
    struct compiler *compiler, const struct expression_token *token);
DET_MUST_CHECK int det_compile_field(
    struct compiler *compiler, const struct expression_token *token);
DET_MUST_CHECK int det_compile_index(struct compiler *compiler, uint32_t end);
DET_MUST_CHECK int det_compile_read(struct compiler *compiler, const struct operand *operand);
/* The integer fields, in the order of the operations that have them. */
enum field_type {
    FIELD_U8,
    FIELD_U16,
    FIELD_U32,
    FIELD_U64,
    FIELD_I8,
    FIELD_I16,
    FIELD_I32,
    FIELD_I64,
};
/* The type of an integer, time or enum that is a field of an input and not loaded; else -1. */
int det_compile_field_type(const struct operand *operand);
/* A step that has such a field: its result is in the slot of the operand. */
void det_compile_load_field(
    struct compiler *compiler, unsigned depth, enum expression_operation operation);
void det_compile_load_place(struct compiler *compiler, unsigned depth);

/* Operators on the last operands. `column` of the compiler is that of the operator. */
DET_MUST_CHECK int det_compile_binary(struct compiler *compiler, enum expression_token_kind sign);
DET_MUST_CHECK int det_compile_comparison(
    struct compiler *compiler, enum expression_token_kind sign);
DET_MUST_CHECK int det_compile_negate(struct compiler *compiler);
DET_MUST_CHECK int det_compile_not(struct compiler *compiler);
DET_MUST_CHECK int det_compile_in(
    struct compiler *compiler, const struct operand *elements, size_t count, bool is_negated);
DET_MUST_CHECK int det_compile_in_array(struct compiler *compiler, bool is_negated);

/* What is computed on one of two ways: the state between the parts. */
struct compile_choice {
    struct operand left;  /* the value of the first way */
    uint16_t placeholder; /* a step at its end that may become a conversion */
    uint16_t ends;        /* jumps from its end */
    uint16_t false_jumps, true_jumps;
    const struct fact *known; /* before the choice */
    const struct fact *facts_true, *facts_false;
};
DET_MUST_CHECK int det_compile_and_left(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_and(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_or_left(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_or(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_if(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_then(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_else(struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_or_else_left(
    struct compiler *compiler, struct compile_choice *choice);
DET_MUST_CHECK int det_compile_or_else(struct compiler *compiler, struct compile_choice *choice);

/* Functions. */
struct function;
const struct function *det_compile_find_function(struct det_view name);
/* "; did you mean x?" with the nearest function, or an empty text. */
const char *det_compile_nearest_function(struct compiler *compiler, struct det_view name);
const char *det_compile_function_name(const struct function *function);
bool det_compile_is_coalesce(const struct function *function);
DET_MUST_CHECK int det_compile_begin_call(
    struct compiler *compiler, const struct function *function);
DET_MUST_CHECK int det_compile_call(
    struct compiler *compiler, const struct function *function, unsigned count, uint32_t start,
    uint32_t end);

/* Reads the whole expression; one operand is left. */
DET_MUST_CHECK int det_compile_parse(struct compiler *compiler);
/* Fits the operand to the wanted type or the target, and completes the program. */
DET_MUST_CHECK int det_compile_finish(struct compiler *compiler);
DET_MUST_CHECK int det_compile_target(struct compiler *compiler);

#endif
