/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_operator.c - arithmetic, with the range of its result; signs, and lists. */
#include "expression/compile.h"
#include "expression/functions.h"

static bool is_number(const struct operand *operand)
{
    return operand->type == DET_EXPRESSION_INT || operand->type == DET_EXPRESSION_FLOAT;
}

static det_i128 larger(det_i128 a, det_i128 b)
{
    return a > b ? a : b;
}

static det_i128 smaller(det_i128 a, det_i128 b)
{
    return a < b ? a : b;
}

static det_i128 magnitude_of(const struct operand *operand)
{
    return larger(
        operand->low < 0 ? -operand->low : operand->low,
        operand->high < 0 ? -operand->high : operand->high);
}

/* A range that need not be one of integers: what an exact result can be. */
struct range {
    det_i128 low, high;
};

/* A product of two integers does not always fit 128 bits: beyond 2^64 it is a little more. */
static det_i128 product(det_i128 a, det_i128 b)
{
    det_i128 result;

    if (__builtin_mul_overflow(a, b, &result))
        return (a < 0) != (b < 0) ? -((det_i128)1 << 66) : (det_i128)1 << 66;
    return result;
}

static struct range product_range(const struct operand *a, const struct operand *b)
{
    det_i128 corners[] = { product(a->low, b->low), product(a->low, b->high),
                           product(a->high, b->low), product(a->high, b->high) };
    struct range range = { corners[0], corners[0] };

    for (unsigned i = 1; i < 4; i++) {
        range.low = smaller(range.low, corners[i]);
        range.high = larger(range.high, corners[i]);
    }
    return range;
}

/* A quotient is not larger than the dividend, and smaller by the smallest divisor. */
static struct range quotient_range(const struct operand *a, const struct operand *b)
{
    det_i128 divisor = b->low > 0 ? b->low : b->high < 0 ? -b->high : 1;
    det_i128 most = magnitude_of(a) / divisor;
    bool may_be_negative = (a->low < 0 && b->high > 0) || (a->high > 0 && b->low < 0);
    bool may_be_positive = (a->high > 0 && b->high > 0) || (a->low < 0 && b->low < 0);

    return (struct range){ may_be_negative ? -most : 0, may_be_positive ? most : 0 };
}

static struct range remainder_range(const struct operand *a, const struct operand *b)
{
    det_i128 most = larger(magnitude_of(b) - 1, 0);

    return (struct range){ a->low < 0 ? -smaller(most, -a->low) : 0,
                           a->high > 0 ? smaller(most, a->high) : 0 };
}

static struct range result_range(
    enum expression_token_kind sign, const struct operand *a, const struct operand *b)
{
    switch ((int)sign) {
    case DET_MARK_ADD:
        return (struct range){ a->low + b->low, a->high + b->high };
    case DET_MARK_SUBTRACT:
        return (struct range){ a->low - b->high, a->high - b->low };
    case DET_MARK_MULTIPLY:
        return product_range(a, b);
    case DET_MARK_DIVIDE:
        return quotient_range(a, b);
    default:
        return remainder_range(a, b);
    }
}

/* The steps of an operator: in 64 bits, and with a test of the result. */
struct arithmetic {
    enum expression_operation short_one, wide, floating;
};

static struct arithmetic arithmetic_of(enum expression_token_kind sign)
{
    switch ((int)sign) {
    case DET_MARK_ADD:
        return (struct arithmetic){ EXPRESSION_ADD_I, EXPRESSION_ADD_W, EXPRESSION_ADD_F };
    case DET_MARK_SUBTRACT:
        return (struct arithmetic){ EXPRESSION_SUBTRACT_I, EXPRESSION_SUBTRACT_W,
                                    EXPRESSION_SUBTRACT_F };
    case DET_MARK_MULTIPLY:
        return (struct arithmetic){ EXPRESSION_MULTIPLY_I, EXPRESSION_MULTIPLY_W,
                                    EXPRESSION_MULTIPLY_F };
    case DET_MARK_DIVIDE:
        return (struct arithmetic){ EXPRESSION_DIVIDE_I, EXPRESSION_DIVIDE_W, EXPRESSION_DIVIDE_F };
    default:
        return (struct arithmetic){ EXPRESSION_REMAINDER_I, EXPRESSION_REMAINDER_W,
                                    EXPRESSION_NOTHING };
    }
}

/* The step of a sum, a difference or a product whose right side is a field; NOTHING: there is
 * none. */
static enum expression_operation field_step(enum expression_operation operation, int type)
{
    static const enum expression_operation steps[] = {
        EXPRESSION_ADD_I,      EXPRESSION_ADD_W,      EXPRESSION_SUBTRACT_I,
        EXPRESSION_SUBTRACT_W, EXPRESSION_MULTIPLY_I, EXPRESSION_MULTIPLY_W
    };
    unsigned count = sizeof steps / sizeof steps[0];

    if (operation == EXPRESSION_ADD_T && type == FIELD_I64)
        return EXPRESSION_ADD_T_FIELD;
    if (operation == EXPRESSION_SUBTRACT_T && type == FIELD_I64)
        return EXPRESSION_SUBTRACT_T_FIELD;
    if (type < 0 || type == FIELD_U64)
        return EXPRESSION_NOTHING;
    for (unsigned i = 0; i < count; i++)
        if (operation == steps[i])
            return (enum expression_operation)(
                EXPRESSION_ADD_I_U8 + (unsigned)(type - (type > FIELD_U64)) * count + i);
    return EXPRESSION_NOTHING;
}

static void emit_with_field(struct compiler *compiler, enum expression_operation operation)
{
    unsigned depth = compiler->depth - 2;
    const struct operand *b = compile_top(compiler);
    struct expression_step *step = det_compile_emit(compiler, operation, depth, depth, 0);

    step->input = b->input;
    step->k.place.offset = b->offset;
    if (det_compile_read(compiler, b) < 0)
        compiler->has_no_memory = true;
}

/* A step on the last two operands, which replaces them. `has_k`: with a constant it is the next
 * operation. */
static void emit_on_both(struct compiler *compiler, enum expression_operation operation, bool has_k)
{
    unsigned depth = compiler->depth - 2;
    struct operand *b = compile_top(compiler);
    enum expression_operation with_field = field_step(operation, det_compile_field_type(b));
    struct expression_step *step;

    det_compile_load(compiler, depth);
    if (with_field != EXPRESSION_NOTHING) {
        emit_with_field(compiler, with_field);
    } else if (has_k && b->form == OPERAND_CONSTANT && b->type != DET_EXPRESSION_FLOAT) {
        step =
            det_compile_emit(compiler, (enum expression_operation)(operation + 1), depth, depth, 0);
        step->k.i = b->value.i;
    } else if (has_k && b->form == OPERAND_CONSTANT) {
        step =
            det_compile_emit(compiler, (enum expression_operation)(operation + 1), depth, depth, 0);
        step->k.f = b->value.f;
    } else {
        det_compile_load(compiler, depth + 1);
        (void)det_compile_emit(compiler, operation, depth, depth, depth + 1);
    }
}

/* Replaces the last two operands by a result of this type, which is constant if they were. */
static int finish_binary(
    struct compiler *compiler, uint16_t mark, enum det_expression_type type, struct range range)
{
    unsigned depth = compiler->depth - 2;
    const struct operand *b = compile_top(compiler);
    uint32_t end = b->end;
    bool is_constant = mark != NO_STEP;

    det_compile_result(compiler, depth, type);
    compiler->operands[depth].end = end;
    if (type == DET_EXPRESSION_INT)
        det_compile_int_range(&compiler->operands[depth], range.low, range.high);
    compiler->depth--;
    return is_constant ? det_compile_fold(compiler, mark, depth) : 0;
}

/* Where the steps of two constants begin; NO_STEP: one of them is not constant. */
static uint16_t constants_mark(const struct compiler *compiler)
{
    const struct operand *a = &compiler->operands[compiler->depth - 2];

    return a[0].form == OPERAND_CONSTANT && a[1].form == OPERAND_CONSTANT ? compile_next(compiler)
                                                                          : NO_STEP;
}

static int fail_zero(struct compiler *compiler)
{
    return COMPILE_FAIL(compiler, DET_ERR_RANGE, compiler->column, "division by zero");
}

/* Exchanges a constant on the left with what is on the right, before either is loaded. */
static void move_constant_right(struct compiler *compiler, enum expression_token_kind sign)
{
    struct operand *a = &compiler->operands[compiler->depth - 2], kept = *a;

    if (sign != DET_MARK_ADD && sign != DET_MARK_MULTIPLY)
        return;
    if (a[0].form != OPERAND_CONSTANT || a[1].form != OPERAND_PLACE || a[1].is_at)
        return;
    a[0] = a[1];
    a[1] = kept;
}

static int integers(struct compiler *compiler, enum expression_token_kind sign)
{
    struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;
    bool divides = sign == DET_MARK_DIVIDE || sign == DET_MARK_REMAINDER;
    struct arithmetic steps = arithmetic_of(sign);
    struct range range = result_range(sign, a, b);
    uint16_t mark = constants_mark(compiler);
    bool has_k = b->form == OPERAND_CONSTANT && det_compile_is_short(b);
    bool is_short = det_compile_is_short(a) && det_compile_is_short(b) && range.low >= INT64_MIN &&
                    range.high <= INT64_MAX;

    if (divides && b->form == OPERAND_CONSTANT && b->low == 0)
        return fail_zero(compiler);
    /* The remainder of the least number by -1 is 0, but processors fail. */
    if (sign == DET_MARK_REMAINDER && a->low == INT64_MIN && b->low <= -1)
        is_short = false;
    if (sign == DET_MARK_DIVIDE &&
        (range.low < EXPRESSION_INT_MIN || range.high > EXPRESSION_INT_MAX))
        has_k = false;
    if (range.low > EXPRESSION_INT_MAX || range.high < EXPRESSION_INT_MIN)
        return COMPILE_FAIL(
            compiler, DET_ERR_OVERFLOW, compiler->column,
            "the result is never between -2^63 and 2^64-1");
    emit_on_both(compiler, is_short ? steps.short_one : steps.wide, has_k);
    return finish_binary(compiler, mark, DET_EXPRESSION_INT, range);
}

static int floats(struct compiler *compiler, enum expression_token_kind sign)
{
    unsigned depth = compiler->depth - 2;
    const struct operand *b = compile_top(compiler);
    uint16_t mark = constants_mark(compiler);

    if (sign == DET_MARK_REMAINDER)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, compiler->column,
            "%% is for integers and durations; convert with int(x)");
    det_compile_to_float(compiler, depth);
    det_compile_to_float(compiler, depth + 1);
    if (sign == DET_MARK_DIVIDE && b->form == OPERAND_CONSTANT && b->value.f == 0)
        return fail_zero(compiler);
    emit_on_both(compiler, arithmetic_of(sign).floating, true);
    return finish_binary(compiler, mark, DET_EXPRESSION_FLOAT, (struct range){ 0, 0 });
}

static int texts(struct compiler *compiler)
{
    uint16_t mark = constants_mark(compiler);
    unsigned depth = compiler->depth - 2;

    det_compile_load(compiler, depth);
    det_compile_load(compiler, depth + 1);
    det_compile_emit(compiler, EXPRESSION_CALL, depth, 0, 0)->k.call = det_expression_concatenate;
    return finish_binary(compiler, mark, DET_EXPRESSION_TEXT, (struct range){ 0, 0 });
}

/* Times and durations: what the operands must be, the result and its step. */
struct span_rule {
    enum expression_token_kind sign;
    enum det_expression_type a, b, result;
    enum expression_operation step;
    bool has_k;
    bool is_swapped;
};

#define INT      DET_EXPRESSION_INT
#define TIME     DET_EXPRESSION_TIME
#define DURATION DET_EXPRESSION_DURATION
static const struct span_rule span_rules[] = {
    { DET_MARK_ADD, TIME, DURATION, TIME, EXPRESSION_ADD_T, true, false },
    { DET_MARK_ADD, DURATION, TIME, TIME, EXPRESSION_ADD_T, true, false },
    { DET_MARK_ADD, DURATION, DURATION, DURATION, EXPRESSION_ADD_T, true, false },
    { DET_MARK_SUBTRACT, TIME, DURATION, TIME, EXPRESSION_SUBTRACT_T, true, false },
    { DET_MARK_SUBTRACT, TIME, TIME, DURATION, EXPRESSION_SUBTRACT_T, true, false },
    { DET_MARK_SUBTRACT, DURATION, DURATION, DURATION, EXPRESSION_SUBTRACT_T, true, false },
    { DET_MARK_MULTIPLY, DURATION, INT, DURATION, EXPRESSION_MULTIPLY_T, false, false },
    { DET_MARK_MULTIPLY, INT, DURATION, DURATION, EXPRESSION_MULTIPLY_T, false, true },
    { DET_MARK_DIVIDE, DURATION, INT, DURATION, EXPRESSION_DIVIDE_T, false, false },
    { DET_MARK_DIVIDE, DURATION, DURATION, INT, EXPRESSION_RATIO_T, false, false },
    { DET_MARK_REMAINDER, DURATION, DURATION, DURATION, EXPRESSION_REMAINDER_T, false, false },
};
#undef INT
#undef TIME
#undef DURATION

static const struct span_rule *find_span_rule(
    const struct compiler *compiler, enum expression_token_kind sign)
{
    const struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;

    for (size_t i = 0; i < sizeof span_rules / sizeof span_rules[0]; i++)
        if (span_rules[i].sign == sign && span_rules[i].a == a->type && span_rules[i].b == b->type)
            return &span_rules[i];
    return NULL;
}

static int spans(struct compiler *compiler, const struct span_rule *rule)
{
    static const struct range whole = { INT64_MIN, (det_i128)INT64_MAX + 1 };
    uint16_t mark = constants_mark(compiler);
    unsigned depth = compiler->depth - 2;

    if (rule->is_swapped) {
        det_compile_load(compiler, depth);
        det_compile_load(compiler, depth + 1);
        (void)det_compile_emit(compiler, rule->step, depth, depth + 1, depth);
    } else {
        emit_on_both(compiler, rule->step, rule->has_k);
    }
    return finish_binary(compiler, mark, rule->result, whole);
}

static int fail_types(struct compiler *compiler, enum expression_token_kind sign)
{
    const struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;
    bool is_text = sign == DET_MARK_ADD &&
                   (a->type == DET_EXPRESSION_TEXT) != (b->type == DET_EXPRESSION_TEXT);
    bool is_time = (a->type == DET_EXPRESSION_TIME || a->type == DET_EXPRESSION_DURATION) !=
                   (b->type == DET_EXPRESSION_TIME || b->type == DET_EXPRESSION_DURATION);
    const char *remedy = is_text   ? "; convert the other side: text(x)"
                         : is_time ? "; make a duration of a number: x * 1s"
                                   : "";

    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, compiler->column, "%s is not possible with %s and %s%s",
        det_expression_mark(sign), det_compile_type(compiler, a), det_compile_type(compiler, b),
        remedy);
}

int det_compile_binary(struct compiler *compiler, enum expression_token_kind sign)
{
    struct operand *a = &compiler->operands[compiler->depth - 2], *b = a + 1;
    const struct span_rule *rule;
    int r;

    r = det_compile_require(compiler, compiler->depth - 2);
    if (r == 0)
        r = det_compile_require(compiler, compiler->depth - 1);
    if (r < 0)
        return r;
    rule = find_span_rule(compiler, sign);
    if (rule)
        return spans(compiler, rule);
    if (a->type == DET_EXPRESSION_TEXT && b->type == DET_EXPRESSION_TEXT && sign == DET_MARK_ADD)
        return texts(compiler);
    if (!is_number(a) || !is_number(b))
        return fail_types(compiler, sign);
    move_constant_right(compiler, sign);
    if (a->type == DET_EXPRESSION_INT && b->type == DET_EXPRESSION_INT)
        return integers(compiler, sign);
    return floats(compiler, sign);
}

int det_compile_negate(struct compiler *compiler)
{
    unsigned depth = compiler->depth - 1;
    struct operand *operand = compile_top(compiler);
    enum expression_operation step = EXPRESSION_NEGATE_F;
    uint16_t mark = operand->form == OPERAND_CONSTANT ? compile_next(compiler) : NO_STEP;
    det_i128 low = -operand->high, high = -operand->low;
    enum det_expression_type type = operand->type;
    uint32_t start = compiler->column;
    int r;

    r = det_compile_require(compiler, depth);
    if (r < 0)
        return r;
    if (type == DET_EXPRESSION_INT)
        step = det_compile_is_short(operand) && high <= INT64_MAX ? EXPRESSION_NEGATE_I
                                                                  : EXPRESSION_NEGATE_W;
    else if (type == DET_EXPRESSION_DURATION)
        step = EXPRESSION_NEGATE_T;
    else if (type != DET_EXPRESSION_FLOAT)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, compiler->column, "- is for numbers and durations, this is %s",
            det_compile_type(compiler, operand));
    det_compile_load(compiler, depth);
    (void)det_compile_emit(compiler, step, depth, depth, 0);
    det_compile_result(compiler, depth, type);
    det_compile_int_range(operand, low, high);
    operand->start = start;
    return mark != NO_STEP ? det_compile_fold(compiler, mark, depth) : 0;
}
