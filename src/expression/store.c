/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.c - stores results that need more than their low bytes copied. */
#include <string.h>

#include "base/assert.h"
#include "expression/program.h"
#include "record/field_value.h"

static int fail_fit(const struct det_field *field, struct expression_frame *frame)
{
    bool is_natural = field->kind == DET_KIND_UNSIGNED;

    if (field->kind == DET_KIND_TEXT || field->kind == DET_KIND_BYTES)
        frame->reason = "the result is longer than its field";
    else if (field->kind == DET_KIND_ENUM)
        frame->reason = "the result is not a value of the enum of its field";
    else if (field->size == 1)
        frame->reason = is_natural ? "the result does not fit its field, which is u8"
                                   : "the result does not fit its field, which is i8";
    else if (field->size == 2)
        frame->reason = is_natural ? "the result does not fit its field, which is u16"
                                   : "the result does not fit its field, which is i16";
    else
        frame->reason = is_natural ? "the result does not fit its field, which is u32"
                                   : "the result does not fit its field, which is i32";
    return DET_ERR_RANGE;
}

/* Of less than 64 bits. */
static int store_integer(
    const struct det_field *field, uint8_t *place, const union expression_slot *slot,
    struct expression_frame *frame)
{
    bool fits;

    if (field->kind == DET_KIND_UNSIGNED)
        fits = slot->w.high == 0 && det_value_set_unsigned(field, place, slot->w.low);
    else
        fits = slot->w.high == slot->i >> 63 && det_value_set_signed(field, place, slot->i);
    return fits ? 0 : fail_fit(field, frame);
}

/* The text may be the one that is in the field. */
static int store_text(
    const struct det_field *field, uint8_t *place, struct det_view text,
    struct expression_frame *frame)
{
    uint32_t size = (uint32_t)text.size;

    if (text.size > field->capacity)
        return fail_fit(field, frame);
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
    const struct expression_target *target, uint8_t *place, const union expression_slot *slot,
    struct expression_frame *frame)
{
    const struct det_field *field = target->field;
    int number = (int)slot->i;

    if (target->type == DET_EXPRESSION_TEXT)
        return det_value_set_enum(field, place, slot->text) ? 0 : fail_fit(field, frame);
    if (!det_value_enum_name(field, &number))
        return fail_fit(field, frame);
    memcpy(place, &number, sizeof number);
    return 0;
}

static int store_array(
    const struct det_field *field, uint8_t *base, struct expression_elements elements,
    struct expression_frame *frame)
{
    uint32_t count = (uint32_t)elements.count;

    if (count > field->count_max) {
        frame->reason = "the array is longer than its field";
        return DET_ERR_RANGE;
    }
    memmove(base + field->offset, elements.data, (size_t)count * field->size);
    det_field_set_count(field, base, count);
    return 0;
}

int det_expression_store_value(
    const struct expression_target *target, struct expression_frame *frame,
    const union expression_slot *slot)
{
    const struct det_field *field = target->field;
    uint8_t *base = frame->target + target->base, *place = base + field->offset;

    if (field->flags & DET_FIELD_ARRAY)
        return store_array(field, base, slot->elements, frame);
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return store_integer(field, place, slot, frame);
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return store_text(field, place, slot->text, frame);
    case DET_KIND_ENUM:
        return store_enum(target, place, slot, frame);
    case DET_KIND_RECORD:
        memmove(place, slot->place, field->size);
        return 0;
    case DET_KIND_FLOAT:
    case DET_KIND_BOOL:
    case DET_KIND_TIME:
        break;
    }
    det_assert(false);
    return DET_ERR_INVALID;
}
