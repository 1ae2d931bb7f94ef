/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* compile_list.c - `in`: a list of constants, sorted, or an array. */
#include <stdlib.h>

#include "base/assert.h"
#include "expression/compile.h"

static int compare_integers(const void *a, const void *b)
{
    const det_i128 *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int compare_views(const void *a, const void *b)
{
    const struct det_view *x = a, *y = b;

    return det_expression_compare_texts(*x, *y);
}

/* An element as a value of the type of the left side. */
static int add_element(
    struct compiler *compiler, struct expression_list *list, const struct operand *left,
    const struct operand *element)
{
    bool is_name = left->type == DET_EXPRESSION_ENUM && element->type == DET_EXPRESSION_TEXT;
    bool is_whole = left->type == DET_EXPRESSION_FLOAT && element->type == DET_EXPRESSION_INT;
    struct operand *pushed;
    int r;

    if (!is_name && !is_whole && element->type != left->type)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, element->start, "the left side is %s, this element is %s",
            det_compile_type(compiler, left), det_compile_type(compiler, element));
    r = det_compile_push(compiler, element->start, element->end, &pushed);
    if (r < 0)
        return r;
    *pushed = *element;
    if (is_name)
        r = det_compile_to_enum(compiler, compiler->depth - 1, left->enumeration);
    if (is_whole)
        det_compile_to_float(compiler, compiler->depth - 1);
    compiler->depth--;
    if (r < 0)
        return r;
    if (left->type == DET_EXPRESSION_TEXT)
        list->texts[list->count++] = pushed->value.text;
    else if (left->type == DET_EXPRESSION_FLOAT)
        list->floats[list->count++] = pushed->value.f;
    else
        list->integers[list->count++] = expression_wide(&pushed->value);
    return 0;
}

static int make_list(
    struct compiler *compiler, const struct operand *left, const struct operand *elements,
    size_t count, struct expression_list **ret)
{
    struct det_arena *arena = &compiler->program->arena;
    struct expression_list *list = det_arena_alloc(arena, sizeof *list);
    void *values = det_arena_array(arena, count + 1, sizeof *list->integers);
    int r = 0;

    if (!list || !values)
        return DET_ERR_NO_MEMORY;
    list->integers = values;
    list->floats = values;
    list->texts = values;
    for (size_t i = 0; i < count && r == 0; i++)
        r = add_element(compiler, list, left, &elements[i]);
    if (r < 0)
        return r;
    if (left->type == DET_EXPRESSION_TEXT)
        qsort(values, count, sizeof *list->texts, compare_views);
    else if (left->type != DET_EXPRESSION_FLOAT)
        qsort(values, count, sizeof *list->integers, compare_integers);
    *ret = list;
    return 0;
}

static int finish_in(struct compiler *compiler, uint32_t end, bool is_negated)
{
    unsigned depth = compiler->depth - 1;

    det_compile_result(compiler, depth, DET_EXPRESSION_BOOL);
    compile_top(compiler)->end = end;
    if (is_negated)
        (void)det_compile_emit(compiler, EXPRESSION_NOT, depth, depth, 0);
    return 0;
}

int det_compile_in(
    struct compiler *compiler, const struct operand *elements, size_t count, bool is_negated)
{
    unsigned depth = compiler->depth - 1;
    struct operand *left = compile_top(compiler);
    enum expression_operation operation = EXPRESSION_IN_INT;
    uint16_t mark = left->form == OPERAND_CONSTANT ? compile_next(compiler) : NO_STEP;
    struct expression_list *list = NULL;
    int r;

    r = det_compile_require(compiler, depth);
    if (r < 0)
        return r;
    if (left->type == DET_EXPRESSION_BOOL || left->type >= DET_EXPRESSION_RECORD ||
        left->type == DET_EXPRESSION_BYTES)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, left->start, "%s cannot be in a list",
            det_compile_type(compiler, left));
    r = make_list(compiler, left, elements, count, &list);
    if (r < 0)
        return r;
    if (left->type == DET_EXPRESSION_TEXT)
        operation = EXPRESSION_IN_TEXT;
    if (left->type == DET_EXPRESSION_FLOAT)
        operation = EXPRESSION_IN_FLOAT;
    det_compile_load(compiler, depth);
    det_compile_emit(compiler, operation, depth, depth, 0)->k.list = list;
    r = finish_in(compiler, count > 0 ? elements[count - 1].end + 1 : left->end, is_negated);
    return r == 0 && mark != NO_STEP ? det_compile_fold(compiler, mark, depth) : r;
}

/* The type of the elements of an array, as that of a value. */
static bool is_element(const struct operand *value, const struct det_field *field)
{
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return value->type == DET_EXPRESSION_INT;
    case DET_KIND_FLOAT:
        return value->type == DET_EXPRESSION_FLOAT;
    case DET_KIND_BOOL:
        return value->type == DET_EXPRESSION_BOOL;
    case DET_KIND_TIME:
        return value->type == DET_EXPRESSION_TIME;
    case DET_KIND_TEXT:
        return value->type == DET_EXPRESSION_TEXT;
    case DET_KIND_BYTES:
        return value->type == DET_EXPRESSION_BYTES;
    case DET_KIND_ENUM:
        return value->type == DET_EXPRESSION_ENUM &&
               det_compile_same_enum(value->enumeration, det_enum_of(field->enumeration));
    case DET_KIND_RECORD:
        break;
    }
    return false;
}

int det_compile_in_array(struct compiler *compiler, bool is_negated)
{
    unsigned depth = compiler->depth - 2;
    struct operand *value = &compiler->operands[depth], *array = value + 1;
    const struct expression_array *elements = array->array;
    const struct det_field *field = array->field;
    uint32_t end = array->end;
    int r;

    if (array->form != OPERAND_PLACE || array->type != DET_EXPRESSION_ARRAY)
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, array->start,
            "the right side of `in` is a list or an array, "
            "this is %s",
            det_compile_type(compiler, array));
    r = det_compile_require(compiler, depth);
    if (r == 0)
        r = det_compile_require(compiler, depth + 1);
    if (r == 0 && field->kind == DET_KIND_ENUM && compile_is_literal(value))
        r = det_compile_to_enum(compiler, depth, det_enum_of(field->enumeration));
    if (r < 0)
        return r;
    if (field->kind == DET_KIND_FLOAT)
        det_compile_to_float(compiler, depth);
    if (!is_element(value, field))
        return COMPILE_FAIL(
            compiler, DET_ERR_TYPE, value->start, "%s is not an element of this array",
            det_compile_type(compiler, value));
    det_compile_load(compiler, depth);
    det_compile_load(compiler, depth + 1);
    det_compile_emit(compiler, EXPRESSION_HAS_ELEMENT, depth, depth, depth + 1)->k.array = elements;
    compiler->depth--;
    return finish_in(compiler, end, is_negated);
}
