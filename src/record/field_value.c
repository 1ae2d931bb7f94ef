/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* field_value.c - the value of one field in memory. */
#include "record/field_value.h"

#include <string.h>

#include "base/assert.h"

struct det_view det_value_view(const struct det_field *field, const void *value)
{
    uint32_t size;

    if (field->kind == DET_KIND_TEXT)
        return det_view_of(value, strnlen(value, field->capacity));
    memcpy(&size, value, sizeof size);
    return det_view_of(
        (const char *)value + sizeof size, size < field->capacity ? size : field->capacity);
}

const char *det_value_enum_name(const struct det_field *field, const void *value)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);
    int number;

    det_assert(enumeration != NULL);
    memcpy(&number, value, sizeof number);
    /* Most enums count from 0. */
    if (number >= 0 && (size_t)number < enumeration->value_count &&
        enumeration->values[number].value == number)
        return enumeration->values[number].name;
    for (size_t i = 0; i < enumeration->value_count; i++)
        if (enumeration->values[i].value == number)
            return enumeration->values[i].name;
    return NULL;
}

/* Like det_view_is(), optimised for short names that almost always differ. */
static bool name_is(const char *name, struct det_view view)
{
    size_t i = 0;

    while (i < view.size && name[i] && name[i] == view.data[i])
        i++;
    return i == view.size && !name[i];
}

bool det_value_set_enum(const struct det_field *field, void *value, struct det_view name)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);

    det_assert(enumeration != NULL);
    for (size_t i = 0; i < enumeration->value_count; i++) {
        if (name_is(enumeration->values[i].name, name)) {
            memcpy(value, &enumeration->values[i].value, sizeof(int));
            return true;
        }
    }
    return false;
}

static int fail_with(int code, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return code;
}

static int check_text(const struct det_field *field, const char *text, const char **ret_reason)
{
    size_t length = strnlen(text, field->size);

    if (length == field->size)
        return fail_with(DET_ERR_RANGE, "the text has no final NUL", ret_reason);
    if (det_utf8_check(text, length) != length)
        return fail_with(DET_ERR_MALFORMED, "the text is not UTF-8", ret_reason);
    return 0;
}

int det_value_check(const struct det_field *field, const void *value, const char **ret_reason)
{
    uint32_t size;

    switch (field->kind) {
    case DET_KIND_BOOL:
        if (*(const uint8_t *)value > 1)
            return fail_with(DET_ERR_RANGE, "the bool is neither 0 nor 1", ret_reason);
        break;
    case DET_KIND_TEXT:
        return check_text(field, value, ret_reason);
    case DET_KIND_BYTES:
        memcpy(&size, value, sizeof size);
        if (size > field->capacity)
            return fail_with(DET_ERR_RANGE, "the size exceeds the capacity", ret_reason);
        break;
    case DET_KIND_ENUM:
        if (!det_value_enum_name(field, value))
            return fail_with(DET_ERR_RANGE, "the enum has no such value", ret_reason);
        break;
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
    case DET_KIND_FLOAT:
    case DET_KIND_TIME:
    case DET_KIND_RECORD:
        break;
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
