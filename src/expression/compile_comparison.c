/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_comparison.c - comparisons: the step for the types of both sides. */
#include "base/assert.h"
#include "expression/compile.h"

struct comparison {
    enum expression_token_kind sign;
    enum expression_token_kind swapped; /* with its sides exchanged */
    enum expression_token_kind opposite;
    enum expression_operation integer, wide, floating, text;
};

static const struct comparison comparisons[] = {
    { DET_MARK_EQ, DET_MARK_EQ, DET_MARK_NE, EXPRESSION_EQ_I, EXPRESSION_EQ_W, EXPRESSION_EQ_F,
      EXPRESSION_EQ_TEXT },
    { DET_MARK_NE, DET_MARK_NE, DET_MARK_EQ, EXPRESSION_NE_I, EXPRESSION_NE_W, EXPRESSION_NE_F,
      EXPRESSION_NE_TEXT },
    { DET_MARK_LT, DET_MARK_GT, DET_MARK_GE, EXPRESSION_LT_I, EXPRESSION_LT_W, EXPRESSION_LT_F,
      EXPRESSION_LT_TEXT },
    { DET_MARK_GE, DET_MARK_LE, DET_MARK_LT, EXPRESSION_GE_I, EXPRESSION_GE_W, EXPRESSION_GE_F,
      EXPRESSION_GE_TEXT },
    { DET_MARK_GT, DET_MARK_LT, DET_MARK_LE, EXPRESSION_GT_I, EXPRESSION_GT_W, EXPRESSION_GT_F,
      EXPRESSION_GT_TEXT },
    { DET_MARK_LE, DET_MARK_GE, DET_MARK_GT, EXPRESSION_LE_I, EXPRESSION_LE_W, EXPRESSION_LE_F,
      EXPRESSION_LE_TEXT },
};
#define COMPARISON_COUNT (sizeof comparisons / sizeof comparisons[0])

static const struct comparison *find_comparison(enum expression_token_kind sign)
{
    size_t i = 0;

    while (comparisons[i].sign != sign) {
        i++;
        det_assert(i < COMPARISON_COUNT);
    }
    return &comparisons[i];
}

/* A field of an input and a constant of 32 bits are one step. */
static bool emit_field_comparison(struct compiler *compiler, enum expression_token_kind sign)
{
    unsigned depth = compiler->depth - 2, variants = EXPRESSION_FIELD_VARIANTS;
    struct operand *a = &compiler->operands[depth], *b = a + 1;
    int type = det_compile_field_type(a);
    struct expression_step *step;

    if (type < 0 || b->form != OPERAND_CONSTANT || b->value.w.high != b->value.i >> 63 ||
        b->value.i > INT32_MAX || b->value.i < (type == FIELD_U64 ? 0 : INT32_MIN))
        return false;
    if (det_compile_read(compiler, a) < 0)
        compiler->has_no_memory = true;
    step = det_compile_emit(
        compiler,
        (enum expression_operation)(
            EXPRESSION_EQ_U8 +
            ((unsigned)type * COMPARISON_COUNT + (unsigned)(find_comparison(sign) - comparisons)) *
                variants),
        depth, depth, 0);
    step->input = a->input;
    step->k.place.offset = a->offset;
    step->k.place.capacity = (uint32_t)(int32_t)b->value.i;
    return true;
}

/* Emits the step on the last two operands, with a constant if the right one is. */
static void emit_comparison(struct compiler *compiler, enum expression_operation operation)
{
    unsigned depth = compiler->depth - 2;
    struct operand *b = compile_top(compiler);
    struct expression_step *step;
    struct det_view *text;

    det_compile_load(compiler, depth);
    if (b->form != OPERAND_CONSTANT ||
        (b->type == DET_EXPRESSION_INT && !det_compile_is_short(b))) {
        det_compile_load(compiler, depth + 1);
        (void)det_compile_emit(compiler, operation, depth, depth, depth + 1);
        return;
    }
    step = det_compile_emit(
        compiler, (enum expression_operation)(operation + EXPRESSION_K), depth, depth, 0);
    if (b->type == DET_EXPRESSION_FLOAT) {
        step->k.f = b->value.f;
    } else if (b->type == DET_EXPRESSION_BOOL) {
        step->k.i = b->value.b;
    } else if (b->type == DET_EXPRESSION_TEXT) {
        text = det_arena_alloc(&compiler->program->arena, sizeof *text);
        if (text)
            *text = b->value.text;
        compiler->has_no_memory |= !text;
        step->k.text = text;
    } else {
        step->k.i = b->value.i;
    }
}

/* A constant goes to the right side, where steps have it. */
static void exchange_sides(struct compiler *compiler, enum expression_token_kind *sign)
{
    struct operand *a = &compiler->operands[compiler->depth - 2], kept = *a;

    if (a[0].form != OPERAND_CONSTANT || a[1].form != OPERAND_PLACE || a[1].is_at)
        return;
    a[0] = a[1];
    a[1] = kept;
    *sign = find_comparison(*sign)->swapped;
}

/* An int and a float. A whole constant that a float holds exactly is compared as one. */
static void emit_mixed(struct compiler *compiler, const struct comparison *comparison)
{
    unsigned depth = compiler->depth - 2;
    struct operand *a = &compiler->operands[depth], *b = a + 1;
    struct operand *whole = a->type == DET_EXPRESSION_INT ? a : b;
    det_i128 limit = (det_i128)1 << 53;
    struct expression_step *step;

    if (whole->low >= -limit && whole->high <= limit) {
        det_compile_to_float(compiler, depth);
        det_compile_to_float(compiler, depth + 1);
        emit_comparison(compiler, comparison->floating);
        return;
    }
    det_compile_load(compiler, depth);
    det_compile_load(compiler, depth + 1);
    (void)det_compile_emit(
        compiler, whole == a ? EXPRESSION_COMPARE_IF : EXPRESSION_COMPARE_FI, depth, depth,
        depth + 1);
    step = det_compile_emit(
        compiler, (enum expression_operation)(comparison->integer + EXPRESSION_K), depth, depth, 0);
    step->k.i = 0;
}

static int fail_comparison(struct compiler *compiler, enum expression_token_kind sign)
{
    const struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;
    bool is_enum = a->type == DET_EXPRESSION_ENUM || b->type == DET_EXPRESSION_ENUM;
    bool is_text = a->type == DET_EXPRESSION_TEXT || b->type == DET_EXPRESSION_TEXT;
    const char *remedy = is_enum && is_text   ? "; convert the enum: text(x)"
                         : a->type == b->type ? "; only == and != are"
                         : is_text            ? "; convert the other side: text(x)"
                                              : "";

    if (a->type == b->type && a->type >= DET_EXPRESSION_RECORD)
        remedy = "; compare their fields";
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, compiler->column, "%s is not possible with %s and %s%s",
        det_expression_mark(sign), det_compile_type(compiler, a), det_compile_type(compiler, b),
        remedy);
}

/* The step of a comparison of two of the same type; NOTHING: there is none. */
static enum expression_operation same_type_step(
    const struct compiler *compiler, const struct comparison *comparison)
{
    const struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;
    bool is_equality = comparison->sign == DET_MARK_EQ || comparison->sign == DET_MARK_NE;
    bool is_short = det_compile_is_short(a) && det_compile_is_short(b);

    switch (a->type) {
    case DET_EXPRESSION_INT:
        return is_short ? comparison->integer : comparison->wide;
    case DET_EXPRESSION_FLOAT:
        return comparison->floating;
    case DET_EXPRESSION_TEXT:
        return comparison->text;
    case DET_EXPRESSION_TIME:
    case DET_EXPRESSION_DURATION:
        return comparison->integer;
    case DET_EXPRESSION_BOOL:
        return comparison->sign == DET_MARK_EQ   ? EXPRESSION_EQ_BOOL
               : comparison->sign == DET_MARK_NE ? EXPRESSION_NE_BOOL
                                                 : EXPRESSION_NOTHING;
    case DET_EXPRESSION_BYTES:
        return is_equality ? comparison->text : EXPRESSION_NOTHING;
    case DET_EXPRESSION_ENUM:
        return is_equality && det_compile_same_enum(a->enumeration, b->enumeration)
                   ? comparison->integer
                   : EXPRESSION_NOTHING;
    case DET_EXPRESSION_ANY:
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        break;
    }
    return EXPRESSION_NOTHING;
}

/* A constant text beside an enum becomes a value of it. */
static int name_enumerator(struct compiler *compiler)
{
    struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;

    if (a->type == DET_EXPRESSION_ENUM && compile_is_literal(b))
        return det_compile_to_enum(compiler, compiler->depth - 1, a->enumeration);
    if (b->type == DET_EXPRESSION_ENUM && compile_is_literal(a))
        return det_compile_to_enum(compiler, compiler->depth - 2, b->enumeration);
    return 0;
}

int det_compile_comparison(struct compiler *compiler, enum expression_token_kind sign)
{
    unsigned depth = compiler->depth - 2;
    struct operand *a = &compiler->operands[depth], *b = a + 1;
    bool is_constant = a->form == OPERAND_CONSTANT && b->form == OPERAND_CONSTANT;
    uint16_t mark = compile_next(compiler);
    const struct comparison *comparison;
    enum expression_operation step;
    uint32_t end = b->end;
    int r;

    r = det_compile_require(compiler, depth);
    if (r == 0)
        r = det_compile_require(compiler, depth + 1);
    if (r == 0)
        r = name_enumerator(compiler);
    if (r < 0)
        return r;
    exchange_sides(compiler, &sign);
    comparison = find_comparison(sign);
    step = a->type == b->type ? same_type_step(compiler, comparison) : EXPRESSION_NOTHING;
    if (step != EXPRESSION_NOTHING) {
        if (!emit_field_comparison(compiler, sign))
            emit_comparison(compiler, step);
    } else if (
        (a->type == DET_EXPRESSION_INT && b->type == DET_EXPRESSION_FLOAT) ||
        (a->type == DET_EXPRESSION_FLOAT && b->type == DET_EXPRESSION_INT))
        emit_mixed(compiler, comparison);
    else
        return fail_comparison(compiler, sign);
    det_compile_result(compiler, depth, DET_EXPRESSION_BOOL);
    a->end = end;
    compiler->depth--;
    return is_constant ? det_compile_fold(compiler, mark, depth) : 0;
}
