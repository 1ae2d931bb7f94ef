/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_choice.c - `not`, `and`, `or`, `if` and `or_else`: conditions, and what evaluates only a
 * part of what it is made of. */
#include "base/assert.h"
#include "expression/compile.h"

/* If the last step is a comparison into this slot that may still become one that jumps: what its
 * operation grows by; else 0. */
static unsigned jumping_variant(const struct compiler *compiler, unsigned depth, bool sense)
{
    const struct expression_step *last = &compiler->steps[compiler->step_count - 1];
    unsigned operation = last->operation;

    if (compiler->label == compile_next(compiler) || last->target != depth)
        return 0;
    if (operation >= EXPRESSION_EQ_I && operation < EXPRESSION_EQ_U8)
        return (operation - EXPRESSION_EQ_I) % EXPRESSION_VARIANTS >= EXPRESSION_JUMP_IF_FALSE ? 0
               : sense ? EXPRESSION_JUMP_IF_TRUE
                       : EXPRESSION_JUMP_IF_FALSE;
    if (operation >= EXPRESSION_EQ_U8 && operation < EXPRESSION_ADD_I_U8)
        return (operation - EXPRESSION_EQ_U8) % EXPRESSION_FIELD_VARIANTS != 0 ? 0 : sense ? 2 : 1;
    return 0;
}

/* A jump if the condition is this; its step joins the list. */
static void jump_if(struct compiler *compiler, bool sense, uint16_t *list)
{
    unsigned depth = compiler->depth - 1;
    unsigned variant;
    const struct operand *operand = compile_top(compiler);
    struct expression_step *last;

    if (operand->form != OPERAND_SLOT)
        det_compile_load(compiler, depth);
    last = &compiler->steps[compiler->step_count - 1];
    variant = jumping_variant(compiler, depth, sense);
    if (variant > 0) {
        last->operation = (uint16_t)(last->operation + variant);
        det_compile_list(compiler, list);
        return;
    }
    /* After has() only the way on which it is true is left. */
    if (!sense && last->operation == EXPRESSION_SET_TRUE && last->target == depth &&
        compiler->label != compile_next(compiler))
        return;
    (void)det_compile_emit(
        compiler, sense ? EXPRESSION_JUMP_TRUE : EXPRESSION_JUMP_FALSE, depth, depth, 0);
    det_compile_list(compiler, list);
}

static int require_bool(struct compiler *compiler, const char *what)
{
    const struct operand *operand = compile_top(compiler);
    int r = det_compile_require(compiler, compiler->depth - 1);

    if (r < 0)
        return r;
    if (operand->type != DET_EXPRESSION_BOOL)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start, "%s needs a bool, this is %s", what,
            det_compile_type(compiler, operand));
    return 0;
}

/* Both lists, in a list of their own. */
static const struct fact *join_facts(
    struct compiler *compiler, const struct fact *a, const struct fact *b)
{
    for (; b; b = b->next) {
        struct fact *fact = det_arena_alloc(&compiler->work, sizeof *fact);

        if (!fact) {
            compiler->has_no_memory = true;
            break;
        }
        *fact = (struct fact){ b->start, b->end, a };
        a = fact;
    }
    return a;
}

int det_compile_not(struct compiler *compiler)
{
    unsigned depth = compiler->depth - 1;
    struct operand *operand = compile_top(compiler);
    const struct fact *facts;
    int r = require_bool(compiler, "not");

    if (r < 0)
        return r;
    operand->start = compiler->column;
    if (operand->form == OPERAND_CONSTANT) {
        operand->value.b = !operand->value.b;
        return 0;
    }
    det_compile_load(compiler, depth);
    (void)det_compile_emit(compiler, EXPRESSION_NOT, depth, depth, 0);
    facts = operand->facts_true;
    operand->facts_true = operand->facts_false;
    operand->facts_false = facts;
    operand->literals = NO_STEP;
    return 0;
}

/* The left side of `and` (or of `or`) is done: the right side is evaluated in the same slot. */
static int begin_right(struct compiler *compiler, struct compile_choice *choice, bool is_or)
{
    struct operand *operand = compile_top(compiler);
    int r = require_bool(compiler, is_or ? "or" : "and");

    if (r < 0)
        return r;
    jump_if(compiler, is_or, is_or ? &operand->true_jumps : &operand->false_jumps);
    *choice = (struct compile_choice){ .left = *operand,
                                       .false_jumps = NO_STEP,
                                       .true_jumps = NO_STEP,
                                       .ends = NO_STEP,
                                       .known = compiler->known };
    compiler->known =
        join_facts(compiler, compiler->known, is_or ? operand->facts_false : operand->facts_true);
    choice->true_jumps = is_or ? operand->true_jumps : NO_STEP;
    choice->false_jumps = is_or ? NO_STEP : operand->false_jumps;
    det_compile_land(compiler, is_or ? &operand->false_jumps : &operand->true_jumps);
    compiler->depth--;
    return 0;
}

static int end_right(struct compiler *compiler, struct compile_choice *choice, bool is_or)
{
    unsigned depth = compiler->depth - 1;
    struct operand *operand = compile_top(compiler), right;
    int r = require_bool(compiler, is_or ? "or" : "and");

    if (r < 0)
        return r;
    if (operand->form != OPERAND_SLOT)
        det_compile_load(compiler, depth);
    right = *operand;
    det_compile_result(compiler, depth, DET_EXPRESSION_BOOL);
    operand->start = choice->left.start;
    operand->false_jumps = right.false_jumps;
    operand->true_jumps = right.true_jumps;
    det_compile_join(compiler, &operand->false_jumps, choice->false_jumps);
    det_compile_join(compiler, &operand->true_jumps, choice->true_jumps);
    if (is_or)
        operand->facts_false = join_facts(compiler, choice->left.facts_false, right.facts_false);
    else
        operand->facts_true = join_facts(compiler, choice->left.facts_true, right.facts_true);
    compiler->known = choice->known;
    return 0;
}

int det_compile_and_left(struct compiler *compiler, struct compile_choice *choice)
{
    return begin_right(compiler, choice, false);
}

int det_compile_and(struct compiler *compiler, struct compile_choice *choice)
{
    return end_right(compiler, choice, false);
}

int det_compile_or_left(struct compiler *compiler, struct compile_choice *choice)
{
    return begin_right(compiler, choice, true);
}

int det_compile_or(struct compiler *compiler, struct compile_choice *choice)
{
    return end_right(compiler, choice, true);
}

int det_compile_if(struct compiler *compiler, struct compile_choice *choice)
{
    struct operand *operand = compile_top(compiler);
    int r = require_bool(compiler, "if");

    if (r < 0)
        return r;
    jump_if(compiler, false, &operand->false_jumps);
    *choice = (struct compile_choice){ .false_jumps = operand->false_jumps,
                                       .true_jumps = NO_STEP,
                                       .ends = NO_STEP,
                                       .known = compiler->known,
                                       .facts_false = operand->facts_false };
    compiler->known = join_facts(compiler, compiler->known, operand->facts_true);
    det_compile_land(compiler, &operand->true_jumps);
    compiler->depth--;
    return 0;
}

/* The value of the first way is in its slot; the steps of the second way follow. */
static void end_first_way(struct compiler *compiler, struct compile_choice *choice)
{
    unsigned depth = compiler->depth - 1;
    struct operand *operand = compile_top(compiler);

    if (operand->type != DET_EXPRESSION_ANY)
        det_compile_load(compiler, depth);
    choice->placeholder = compile_next(compiler);
    (void)det_compile_emit(compiler, EXPRESSION_NOTHING, depth, depth, 0);
    (void)det_compile_emit(compiler, EXPRESSION_JUMP, 0, 0, 0);
    det_compile_list(compiler, &choice->ends);
    choice->left = *operand;
    compiler->depth--;
}

int det_compile_then(struct compiler *compiler, struct compile_choice *choice)
{
    end_first_way(compiler, choice);
    det_compile_land(compiler, &choice->false_jumps);
    compiler->known = join_facts(compiler, choice->known, choice->facts_false);
    return 0;
}

static int fail_ways(
    struct compiler *compiler, const struct operand *left, const struct operand *right)
{
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, right->start,
        "this is %s, the value before it is %s; both must be "
        "of one type",
        det_compile_type(compiler, right), det_compile_type(compiler, left));
}

/* Gives both values one type; the left one is changed in its last step. */
static int unite_types(struct compiler *compiler, struct compile_choice *choice)
{
    unsigned depth = compiler->depth - 1;
    struct operand *left = &choice->left, *right = compile_top(compiler);

    if (left->type == DET_EXPRESSION_ANY || right->type == DET_EXPRESSION_ANY)
        return 0;
    if (left->type == DET_EXPRESSION_INT && right->type == DET_EXPRESSION_FLOAT) {
        compiler->steps[choice->placeholder].operation = EXPRESSION_FLOAT_OF_W;
        left->type = DET_EXPRESSION_FLOAT;
    } else if (left->type == DET_EXPRESSION_FLOAT && right->type == DET_EXPRESSION_INT) {
        det_compile_to_float(compiler, depth);
    } else if (left->type == DET_EXPRESSION_ENUM && compile_is_literal(right)) {
        return det_compile_to_enum(compiler, depth, left->enumeration);
    } else if (right->type == DET_EXPRESSION_ENUM && left->literals != NO_STEP) {
        struct operand kept = *right;
        int r;

        *right = *left;
        r = det_compile_to_enum(compiler, depth, kept.enumeration);
        *left = *right;
        *right = kept;
        return r;
    }
    if (left->type != right->type ||
        (left->type == DET_EXPRESSION_ENUM &&
         !det_compile_same_enum(left->enumeration, right->enumeration)) ||
        (left->type == DET_EXPRESSION_RECORD && left->record != right->record) ||
        left->type == DET_EXPRESSION_ARRAY)
        return fail_ways(compiler, left, right);
    return 0;
}

/* The value of the second way is the last operand: both become one. */
static int unite(struct compiler *compiler, struct compile_choice *choice)
{
    unsigned depth = compiler->depth - 1;
    struct operand *operand = compile_top(compiler), right;
    struct operand *left = &choice->left;
    const struct operand *typed;
    int r = unite_types(compiler, choice);

    if (r < 0)
        return r;
    if (operand->type != DET_EXPRESSION_ANY)
        det_compile_load(compiler, depth);
    det_compile_land(compiler, &choice->ends);
    right = *operand;
    typed = right.type == DET_EXPRESSION_ANY ? left : &right;
    det_compile_result(compiler, depth, typed->type);
    operand->start = left->start;
    operand->enumeration = typed->enumeration;
    operand->record = typed->record;
    operand->field = typed->type == DET_EXPRESSION_ARRAY ? typed->field : NULL;
    operand->array = typed->array;
    det_compile_int_range(operand, typed->low, typed->high);
    if (left->type == right.type) {
        operand->low = left->low < right.low ? left->low : right.low;
        operand->high = left->high > right.high ? left->high : right.high;
    }
    if (left->literals != NO_STEP && right.literals != NO_STEP) {
        operand->literals = right.literals;
        det_compile_join(compiler, &operand->literals, left->literals);
    }
    operand->misses = right.misses;
    det_compile_join(compiler, &operand->misses, left->misses);
    operand->is_untested = left->is_untested || right.is_untested ||
                           left->type == DET_EXPRESSION_ANY || right.type == DET_EXPRESSION_ANY;
    compiler->known = choice->known;
    return 0;
}

int det_compile_else(struct compiler *compiler, struct compile_choice *choice)
{
    return unite(compiler, choice);
}

int det_compile_or_else_left(struct compiler *compiler, struct compile_choice *choice)
{
    struct operand *operand = compile_top(compiler);
    uint16_t misses = operand->misses;
    int size = (int)(operand->end - operand->start);

    if (misses == NO_STEP && !operand->is_asked)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start,
            "'%.*s' is always present; remove what replaces it", size < 40 ? size : 40,
            compiler->text.data + operand->start);
    *choice = (struct compile_choice){ .ends = NO_STEP, .known = compiler->known };
    operand->misses = NO_STEP;
    operand->is_untested = false;
    end_first_way(compiler, choice);
    det_compile_land(compiler, &misses);
    return 0;
}

int det_compile_or_else(struct compiler *compiler, struct compile_choice *choice)
{
    return unite(compiler, choice);
}
