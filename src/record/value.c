/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* value.c - one value of a field in memory. */
#include "record/value.h"

#include <string.h>

#include "base/assert.h"

void det_field_set_count(const struct det_field *field, void *base, uint32_t count)
{
    uint8_t *place = (uint8_t *)base + field->presence;

    if (field->flags & DET_FIELD_ARRAY)
        memcpy(place, &count, sizeof count);
    else if (field->flags & DET_FIELD_OPTIONAL)
        *place = count != 0;
}

bool det_field_count_is_valid(const struct det_field *field, uint32_t count)
{
    return count <= (field->flags & DET_FIELD_ARRAY ? field->count_max : 1);
}

uint64_t det_value_unsigned(const struct det_field *field, const void *value)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (field->size) {
    case 1:
        return *(const uint8_t *)value;
    case 2:
        memcpy(&two, value, sizeof two);
        return two;
    case 4:
        memcpy(&four, value, sizeof four);
        return four;
    default:
        memcpy(&eight, value, sizeof eight);
        return eight;
    }
}

int64_t det_value_signed(const struct det_field *field, const void *value)
{
    switch (field->size) {
    case 1:
        return (int8_t)det_value_unsigned(field, value);
    case 2:
        return (int16_t)det_value_unsigned(field, value);
    case 4:
        return (int32_t)det_value_unsigned(field, value);
    default:
        return (int64_t)det_value_unsigned(field, value);
    }
}

/* Stores the low bytes of `number`; the caller knows that the others say nothing. */
static void store(const struct det_field *field, void *value, uint64_t number)
{
    uint8_t one = (uint8_t)number;
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;

    switch (field->size) {
    case 1:
        memcpy(value, &one, sizeof one);
        break;
    case 2:
        memcpy(value, &two, sizeof two);
        break;
    case 4:
        memcpy(value, &four, sizeof four);
        break;
    default:
        memcpy(value, &number, sizeof number);
        break;
    }
}

bool det_value_set_unsigned(const struct det_field *field, void *value, uint64_t number)
{
    if (field->size < 8 && number >> (field->size * 8))
        return false;
    store(field, value, number);
    return true;
}

bool det_value_set_signed(const struct det_field *field, void *value, int64_t number)
{
    int64_t limit;

    if (field->size < 8) {
        limit = (int64_t)1 << (field->size * 8 - 1);
        if (number >= limit || number < -limit)
            return false;
    }
    store(field, value, (uint64_t)number);
    return true;
}

uint64_t det_value_float_bits(const void *value)
{
    uint64_t bits;

    memcpy(&bits, value, sizeof bits);
    return (bits & INT64_MAX) > 0x7ff0000000000000u ? DET_FLOAT_NAN : bits;
}

struct det_view det_value_view(const struct det_field *field, const void *value)
{
    uint32_t size;

    if (field->kind == DET_KIND_TEXT)
        return det_view_of(value, strnlen(value, field->capacity));
    memcpy(&size, value, sizeof size);
    return det_view_of(
        (const char *)value + sizeof size, size < field->capacity ? size : field->capacity);
}

void det_value_set_view(const struct det_field *field, void *value, struct det_view view)
{
    uint32_t size = (uint32_t)view.size;
    char *target = value;

    det_assert(view.size <= field->capacity);
    if (field->kind == DET_KIND_BYTES) {
        memcpy(target, &size, sizeof size);
        target += sizeof size;
    }
    if (view.size)
        memcpy(target, view.data, view.size);
    if (field->kind == DET_KIND_TEXT)
        target[view.size] = 0;
}

const char *det_value_enum_name(const struct det_field *field, const void *value)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);
    int number;

    det_assert(enumeration != NULL);
    memcpy(&number, value, sizeof number);
    for (size_t i = 0; i < enumeration->value_count; i++)
        if (enumeration->values[i].value == number)
            return enumeration->values[i].name;
    return NULL;
}

bool det_value_set_enum(const struct det_field *field, void *value, struct det_view name)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);

    det_assert(enumeration != NULL);
    for (size_t i = 0; i < enumeration->value_count; i++) {
        if (det_view_is(name, enumeration->values[i].name)) {
            memcpy(value, &enumeration->values[i].value, sizeof(int));
            return true;
        }
    }
    return false;
}

static int fail(int code, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return code;
}

static int check_text(const struct det_field *field, const char *text, const char **ret_reason)
{
    size_t length = strnlen(text, field->size);

    if (length == field->size)
        return fail(DET_ERR_RANGE, "the text has no end", ret_reason);
    if (det_utf8_check(text, length) != length)
        return fail(DET_ERR_MALFORMED, "the text is not UTF-8", ret_reason);
    return 0;
}

int det_value_check(const struct det_field *field, const void *value, const char **ret_reason)
{
    uint32_t size;

    switch (field->kind) {
    case DET_KIND_BOOL:
        if (*(const uint8_t *)value > 1)
            return fail(DET_ERR_RANGE, "the bool is neither 0 nor 1", ret_reason);
        return 0;
    case DET_KIND_TEXT:
        return check_text(field, value, ret_reason);
    case DET_KIND_BYTES:
        memcpy(&size, value, sizeof size);
        if (size > field->capacity)
            return fail(DET_ERR_RANGE, "the size is beyond the capacity", ret_reason);
        return 0;
    case DET_KIND_ENUM:
        if (!det_value_enum_name(field, value))
            return fail(DET_ERR_RANGE, "the enum has no such value", ret_reason);
        return 0;
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
    case DET_KIND_FLOAT:
    case DET_KIND_TIME:
    case DET_KIND_RECORD:
        return 0;
    }
    return 0;
}

bool det_value_equal(const struct det_field *field, const void *a, const void *b)
{
    switch (field->kind) {
    case DET_KIND_FLOAT:
        return det_value_float_bits(a) == det_value_float_bits(b);
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return det_view_equal(det_value_view(field, a), det_value_view(field, b));
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
    case DET_KIND_BOOL:
    case DET_KIND_TIME:
    case DET_KIND_ENUM:
    case DET_KIND_RECORD:
        break;
    }
    return memcmp(a, b, field->size) == 0;
}
