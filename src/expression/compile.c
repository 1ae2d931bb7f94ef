/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile.c - steps, lists of jumps, and operands of the compiler. */
#include "expression/compile.h"

#include <string.h>

#include "base/assert.h"

struct expression_step *det_compile_emit(
    struct compiler *compiler, enum expression_operation operation, unsigned target, unsigned a,
    unsigned b)
{
    size_t index = compiler->step_count;

    det_assert(target < EXPRESSION_SLOTS && a < EXPRESSION_SLOTS && b < EXPRESSION_SLOTS);
    det_assert(index < compiler->step_max);
    compiler->steps[index] = (struct expression_step){ .operation = (uint16_t)operation,
                                                       .target = (uint8_t)target,
                                                       .a = (uint8_t)a,
                                                       .b = (uint8_t)b };
    compiler->columns[index] = (uint16_t)compiler->column;
    compiler->links[index] = NO_STEP;
    compiler->step_count++;
    return &compiler->steps[index];
}

void det_compile_list(struct compiler *compiler, uint16_t *list)
{
    uint16_t last = (uint16_t)(compile_next(compiler) - 1);

    compiler->links[last] = *list;
    *list = last;
}

void det_compile_join(struct compiler *compiler, uint16_t *list, uint16_t other)
{
    uint16_t last = other;

    if (other == NO_STEP)
        return;
    while (compiler->links[last] != NO_STEP)
        last = compiler->links[last];
    compiler->links[last] = *list;
    *list = other;
}

void det_compile_land(struct compiler *compiler, uint16_t *list)
{
    if (*list == NO_STEP)
        return;
    for (uint16_t step = *list; step != NO_STEP; step = compiler->links[step])
        compiler->steps[step].jump = compile_next(compiler);
    compiler->label = compile_next(compiler);
    *list = NO_STEP;
}

/* The jumps that lead to the end of the last operand lead to the next step. */
static void land_last(struct compiler *compiler)
{
    if (compiler->depth == 0)
        return;
    det_compile_land(compiler, &compile_top(compiler)->false_jumps);
    det_compile_land(compiler, &compile_top(compiler)->true_jumps);
}

int det_compile_push(struct compiler *compiler, uint32_t start, uint32_t end, struct operand **ret)
{
    struct operand *operand;

    if (compiler->depth == DET_EXPRESSION_DEPTH_MAX)
        return COMPILE_FAIL(
            compiler, DET_ERR_LIMIT, start,
            "more than %d values wait for their operators; split the expression",
            DET_EXPRESSION_DEPTH_MAX);
    /* What jumps to the end of the operand before must not jump over this one. */
    land_last(compiler);
    operand = &compiler->operands[compiler->depth++];
    *operand = (struct operand){ .form = OPERAND_SLOT,
                                 .start = start,
                                 .end = end,
                                 .misses = NO_STEP,
                                 .false_jumps = NO_STEP,
                                 .true_jumps = NO_STEP,
                                 .literals = NO_STEP };
    *ret = operand;
    return 0;
}

void det_compile_int_range(struct operand *operand, det_i128 low, det_i128 high)
{
    operand->low = low < EXPRESSION_INT_MIN ? EXPRESSION_INT_MIN : low;
    operand->high = high > EXPRESSION_INT_MAX ? EXPRESSION_INT_MAX : high;
}

bool det_compile_is_short(const struct operand *operand)
{
    return operand->low >= INT64_MIN && operand->high <= INT64_MAX;
}

static bool is_whole(enum det_expression_type type)
{
    return type == DET_EXPRESSION_INT || type == DET_EXPRESSION_TIME ||
           type == DET_EXPRESSION_DURATION || type == DET_EXPRESSION_ENUM;
}

static void load_constant(struct compiler *compiler, unsigned depth)
{
    struct operand *operand = &compiler->operands[depth];
    uint32_t column = compiler->column;
    struct expression_step *step;
    struct det_view *text;

    compiler->column = operand->start;
    step = det_compile_emit(compiler, EXPRESSION_INT, depth, 0, 0);
    compiler->column = column;
    if (operand->type == DET_EXPRESSION_FLOAT) {
        step->operation = EXPRESSION_FLOAT;
        step->k.f = operand->value.f;
    } else if (operand->type == DET_EXPRESSION_BOOL) {
        step->operation = EXPRESSION_BOOL;
        step->k.i = operand->value.b;
    } else if (operand->type == DET_EXPRESSION_TEXT) {
        step->operation = EXPRESSION_TEXT;
        text = det_arena_alloc(&compiler->program->arena, sizeof *text);
        if (text)
            *text = operand->value.text;
        compiler->has_no_memory |= !text;
        step->k.text = text;
        det_compile_list(compiler, &operand->literals);
    } else {
        det_assert(is_whole(operand->type));
        if (operand->value.w.high != operand->value.i >> 63)
            step->operation = EXPRESSION_UNSIGNED;
        step->k.i = operand->value.i;
    }
}

void det_compile_load(struct compiler *compiler, unsigned depth)
{
    struct operand *operand = &compiler->operands[depth];

    land_last(compiler);
    if (operand->form == OPERAND_CONSTANT)
        load_constant(compiler, depth);
    if (operand->form == OPERAND_PLACE)
        det_compile_load_place(compiler, depth);
    operand->form = OPERAND_SLOT;
}

/* What may stand in for an absent value. */
static const char *example_of(enum det_expression_type type)
{
    switch (type) {
    case DET_EXPRESSION_INT:
        return "0";
    case DET_EXPRESSION_FLOAT:
        return "0.0";
    case DET_EXPRESSION_BOOL:
        return "false";
    case DET_EXPRESSION_TEXT:
    case DET_EXPRESSION_ENUM:
        return "'...'";
    case DET_EXPRESSION_DURATION:
        return "0s";
    case DET_EXPRESSION_ANY:
    case DET_EXPRESSION_BYTES:
    case DET_EXPRESSION_TIME:
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        break;
    }
    return "...";
}

int det_compile_require(struct compiler *compiler, unsigned depth)
{
    const struct operand *operand = &compiler->operands[depth];
    int size = (int)(operand->end - operand->start);

    if (operand->type == DET_EXPRESSION_ANY)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, operand->start,
            "`none` is only a result that is stored in an optional field");
    if (!operand->is_untested)
        return 0;
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, operand->start,
        "'%.*s' may be absent; write `%.*s or_else %s` or test it: `has(%.*s) and ...`",
        size < 40 ? size : 40, compiler->text.data + operand->start, size < 40 ? size : 40,
        compiler->text.data + operand->start, example_of(operand->type), size < 40 ? size : 40,
        compiler->text.data + operand->start);
}

/* The operand is a value in its slot, of this type; nothing else is known of it. */
void det_compile_result(struct compiler *compiler, unsigned depth, enum det_expression_type type)
{
    struct operand *operand = &compiler->operands[depth];

    *operand = (struct operand){ .form = OPERAND_SLOT,
                                 .type = type,
                                 .start = operand->start,
                                 .end = operand->end,
                                 .misses = NO_STEP,
                                 .false_jumps = NO_STEP,
                                 .true_jumps = NO_STEP,
                                 .literals = NO_STEP };
    if (type == DET_EXPRESSION_INT)
        det_compile_int_range(operand, EXPRESSION_INT_MIN, EXPRESSION_INT_MAX);
}

int det_compile_fold(struct compiler *compiler, uint16_t mark, unsigned depth)
{
    struct operand *operand = &compiler->operands[depth];
    struct expression_frame frame = { .scratch = compiler->scratch };
    const struct expression_step *failed;
    char *text;
    int r;

    if (compiler->has_no_memory)
        return DET_ERR_NO_MEMORY;
    compiler->scratch->used = 0;
    (void)det_compile_emit(compiler, EXPRESSION_RETURN, 0, 0, 0);
    r = det_expression_run(compiler->steps + mark, NULL, &frame, &failed);
    if (r < 0)
        return COMPILE_FAIL(
            compiler, r, compiler->columns[failed - compiler->steps], "%s", frame.reason);
    memcpy(&operand->value, &compiler->scratch->slots[(size_t)2 * depth], sizeof operand->value);
    compiler->step_count = mark;
    operand->form = OPERAND_CONSTANT;
    operand->misses = NO_STEP;
    if (operand->type == DET_EXPRESSION_INT)
        operand->low = operand->high = expression_wide(&operand->value);
    if (operand->type != DET_EXPRESSION_TEXT)
        return 0;
    text = det_arena_copy_n(
        &compiler->program->arena, operand->value.text.data, operand->value.text.size);
    operand->value.text.data = text;
    return text ? 0 : DET_ERR_NO_MEMORY;
}

void det_compile_to_float(struct compiler *compiler, unsigned depth)
{
    struct operand *operand = &compiler->operands[depth];
    bool is_short = det_compile_is_short(operand);
    det_i128 whole = expression_wide(&operand->value);
    int type;

    if (operand->type != DET_EXPRESSION_INT)
        return;
    operand->type = DET_EXPRESSION_FLOAT;
    if (operand->form == OPERAND_CONSTANT) {
        operand->value.f = whole < 0 ? (double)(int64_t)whole : (double)(uint64_t)whole;
        return;
    }
    type = det_compile_field_type(operand);
    if (type >= 0) {
        det_compile_load_field(
            compiler, depth, (enum expression_operation)(EXPRESSION_FLOAT_OF_U8 + type));
        return;
    }
    det_compile_load(compiler, depth);
    (void)det_compile_emit(
        compiler, is_short ? EXPRESSION_FLOAT_OF_I : EXPRESSION_FLOAT_OF_W, depth, depth, 0);
}

bool det_compile_same_enum(const struct det_enum *a, const struct det_enum *b)
{
    if (a == b)
        return true;
    if (!a || !b || strcmp(a->name, b->name) != 0 || a->value_count != b->value_count)
        return false;
    for (size_t i = 0; i < a->value_count; i++)
        if (strcmp(a->values[i].name, b->values[i].name) != 0 ||
            a->values[i].value != b->values[i].value)
            return false;
    return true;
}

/* Finds the number of a name. */
static int find_enumerator(
    struct compiler *compiler, uint32_t offset, const struct det_enum *enumeration,
    struct det_view name, int64_t *ret)
{
    const char *names[DET_ENUM_VALUE_MAX];
    char word[DET_NAME_MAX + 1];
    int nearest;

    for (size_t i = 0; i < enumeration->value_count; i++) {
        names[i] = enumeration->values[i].name;
        if (det_view_is(name, names[i])) {
            *ret = enumeration->values[i].value;
            return 0;
        }
    }
    if (name.size >= sizeof word)
        name.size = sizeof word - 1;
    memcpy(word, name.data, name.size);
    word[name.size] = '\0';
    nearest = det_text_nearest(word, names, enumeration->value_count);
    return COMPILE_FAIL(
        compiler, DET_ERR_TYPE, offset, "'%s' is not a value of %s%s%s%s", word, enumeration->name,
        nearest < 0 ? "" : "; did you mean '", nearest < 0 ? "" : names[nearest],
        nearest < 0 ? "" : "'?");
}

int det_compile_to_enum(
    struct compiler *compiler, unsigned depth, const struct det_enum *enumeration)
{
    struct operand *operand = &compiler->operands[depth];
    struct expression_step *step;
    int64_t number = 0;
    int r;

    if (operand->form == OPERAND_CONSTANT) {
        r = find_enumerator(compiler, operand->start, enumeration, operand->value.text, &number);
        if (r < 0)
            return r;
        expression_set_int(&operand->value, number);
    }
    for (uint16_t i = operand->literals; i != NO_STEP; i = compiler->links[i]) {
        step = &compiler->steps[i];
        r = find_enumerator(compiler, compiler->columns[i], enumeration, *step->k.text, &number);
        if (r < 0)
            return r;
        step->operation = EXPRESSION_INT;
        step->k.i = number;
    }
    operand->literals = NO_STEP;
    operand->type = DET_EXPRESSION_ENUM;
    operand->enumeration = enumeration;
    return 0;
}

const char *det_compile_type(struct compiler *compiler, const struct operand *operand)
{
    const char *name = det_expression_type_name(operand->type), *text = NULL;

    if (operand->type == DET_EXPRESSION_ANY)
        return "none";
    if (operand->type == DET_EXPRESSION_ENUM && operand->enumeration)
        text = det_arena_format(&compiler->work, "enum %s", operand->enumeration->name);
    if (operand->type == DET_EXPRESSION_RECORD && operand->record)
        text = det_arena_format(&compiler->work, "record %s", operand->record->name);
    return text ? text : name;
}
