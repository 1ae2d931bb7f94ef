/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.c - stores the result of an evaluation in a field; and rows: many evaluations. */
#include <string.h>

#include "base/assert.h"
#include "expression/program.h"
#include "record/field_value.h"

static int fail_fit(const struct det_field *field, struct det_error *reterr)
{
    unsigned bits = 8 * field->size;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        return det_error_set(
            reterr, DET_ERR_RANGE, "the result does not fit the field '%s', which is u%u",
            field->name, bits);
    case DET_KIND_SIGNED:
        return det_error_set(
            reterr, DET_ERR_RANGE, "the result does not fit the field '%s', which is i%u",
            field->name, bits);
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return det_error_set(
            reterr, DET_ERR_RANGE, "the result is too large for the field '%s', which is %s(%u)",
            field->name, field->kind == DET_KIND_TEXT ? "str" : "bytes", field->capacity);
    case DET_KIND_FLOAT:
    case DET_KIND_BOOL:
    case DET_KIND_TIME:
    case DET_KIND_ENUM:
    case DET_KIND_RECORD:
        break;
    }
    return det_error_set(
        reterr, DET_ERR_RANGE, "the result is not a value of the enum of the field '%s'",
        field->name);
}

static int store_integer(
    const struct expression_target *target, uint8_t *place, const union expression_slot *slot,
    struct det_error *reterr)
{
    const struct det_field *field = target->field;
    det_i128 value = expression_wide(slot);
    bool fits = true;

    if (!target->is_checked)
        det_value_store(field, place, slot->w.low);
    else if (field->kind == DET_KIND_UNSIGNED)
        fits = value >= 0 && det_value_set_unsigned(field, place, slot->w.low);
    else
        fits =
            value >= INT64_MIN && value <= INT64_MAX && det_value_set_signed(field, place, slot->i);
    return fits ? 0 : fail_fit(field, reterr);
}

/* The text may be the one that is in the field. */
static int store_text(
    const struct det_field *field, uint8_t *place, struct det_view text, struct det_error *reterr)
{
    uint32_t size = (uint32_t)text.size;

    if (text.size > field->capacity)
        return fail_fit(field, reterr);
    if (field->kind == DET_KIND_BYTES) {
        memmove(place + sizeof size, text.data, text.size);
        memcpy(place, &size, sizeof size);
        return 0;
    }
    if (text.size > 0)
        memmove(place, text.data, text.size);
    place[text.size] = 0;
    return 0;
}

static int store_enum(
    enum det_expression_type type, const struct det_field *field, uint8_t *place,
    const union expression_slot *slot, struct det_error *reterr)
{
    int number = (int)slot->i;

    if (type == DET_EXPRESSION_TEXT)
        return det_value_set_enum(field, place, slot->text) ? 0 : fail_fit(field, reterr);
    if (!det_value_enum_name(field, &number))
        return fail_fit(field, reterr);
    memcpy(place, &number, sizeof number);
    return 0;
}

static int store_array(
    const struct expression_target *target, uint8_t *base, const union expression_slot *slot,
    struct det_error *reterr)
{
    const struct det_field *field = target->field;
    uint32_t count = (uint32_t)slot->elements.count;

    if (count > field->count_max)
        return det_error_set(
            reterr, DET_ERR_RANGE, "the array is longer than the field '%s', which holds %u",
            field->name, field->count_max);
    memmove(base + field->offset, slot->elements.data, (size_t)count * field->size);
    det_field_set_count(field, base, count);
    return 0;
}

/* `base` is the record of the field. */
static int store_value(
    const struct det_expression *expression, uint8_t *base, const union expression_slot *slot,
    struct det_error *reterr)
{
    const struct det_field *field = expression->target.field;
    uint8_t *place = base + field->offset;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return store_integer(&expression->target, place, slot, reterr);
    case DET_KIND_FLOAT:
        memcpy(place, &slot->f, sizeof slot->f);
        return 0;
    case DET_KIND_BOOL:
        *place = slot->b;
        return 0;
    case DET_KIND_TIME:
        memcpy(place, &slot->i, sizeof slot->i);
        return 0;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return store_text(field, place, slot->text, reterr);
    case DET_KIND_ENUM:
        return store_enum(expression->type, field, place, slot, reterr);
    case DET_KIND_RECORD:
        memmove(place, slot->place, field->size);
        return 0;
    }
    return 0;
}

int det_expression_store(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, void *target, struct det_error *reterr)
{
    const struct det_field *field = expression->target.field;
    const union expression_slot *slot = expression_result(scratch);
    uint8_t *base;
    int r;

    det_assert(field != NULL);
    base = (uint8_t *)target + expression->target.base;
    r = det_expression_evaluate(expression, inputs, scratch, reterr);
    if (r < 0)
        return r;
    if (r > 0) {
        det_field_set_count(field, base, 0);
        return 0;
    }
    if (field->flags & DET_FIELD_ARRAY)
        return store_array(&expression->target, base, slot, reterr);
    r = store_value(expression, base, slot, reterr);
    if (r == 0 && (field->flags & DET_FIELD_OPTIONAL))
        det_field_set_count(field, base, 1);
    return r;
}

/* The inputs of the row that is evaluated. */
struct cursor {
    const void *inputs[DET_EXPRESSION_INPUT_MAX];
    size_t count;
};

static void first_row(
    struct cursor *cursor, const struct det_expression *expression,
    const struct det_expression_rows *rows)
{
    cursor->count = expression->input_count;
    for (size_t i = 0; i < cursor->count; i++)
        cursor->inputs[i] = rows->inputs[i];
}

static inline void next_row(struct cursor *cursor, const struct det_expression_rows *rows)
{
    for (size_t i = 0; i < cursor->count; i++)
        if (rows->strides[i] > 0)
            cursor->inputs[i] = (const uint8_t *)cursor->inputs[i] + rows->strides[i];
}

size_t det_expression_test_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, int8_t *results)
{
    struct cursor cursor;
    size_t errors = 0;

    det_assert(expression->type == DET_EXPRESSION_BOOL);
    first_row(&cursor, expression, rows);
    for (size_t i = 0; i < rows->count; i++) {
        int r = det_expression_evaluate(expression, cursor.inputs, scratch, NULL);

        results[i] = (int8_t)(r == 0 ? expression_result(scratch)->b : r < 0 ? r : 0);
        errors += r < 0;
        next_row(&cursor, rows);
    }
    return errors;
}

size_t det_expression_store_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, void *targets, size_t stride, int8_t *results)
{
    struct cursor cursor;
    uint8_t *target = targets;
    size_t errors = 0;

    first_row(&cursor, expression, rows);
    for (size_t i = 0; i < rows->count; i++) {
        results[i] = (int8_t)det_expression_store(expression, cursor.inputs, scratch, target, NULL);
        errors += results[i] < 0;
        next_row(&cursor, rows);
        target += stride;
    }
    return errors;
}
