/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_text.c - converts texts into values of fields. */
#include "connectors/row_text.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "record/field_value.h"
#include "record/number.h"
#include "record/text_sink.h"

bool row_takes_text(const struct det_field *field)
{
    return !(field->flags & DET_FIELD_ARRAY) && field->kind != DET_KIND_RECORD;
}

static const char *set_unsigned(const struct det_field *field, void *value, struct det_view text)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 20)
        return text.size ? "is not a whole number" : "is empty; make the field OPTIONAL";
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';

        if (digit > 9)
            return text.data[0] == '-' ? "is negative" : "is not a whole number";
        if (number > (UINT64_MAX - digit) / 10)
            return "does not fit";
        number = 10 * number + digit;
    }
    return det_value_set_unsigned(field, value, number) ? NULL : "does not fit";
}

static const char *set_signed(const struct det_field *field, void *value, struct det_view text)
{
    int64_t number = 0;

    if (text.size == 0)
        return "is empty; make the field OPTIONAL";
    switch (det_parse_i64(text, &number)) {
    case 0:
        return det_value_set_signed(field, value, number) ? NULL : "does not fit";
    case DET_ERR_OVERFLOW:
        return "does not fit";
    default:
        return "is not a whole number";
    }
}

/* The rare number that needs more than one exact operation: as JSON, by the C library. */
static bool parse_slowly(struct det_view text, double *ret)
{
    char copy[DET_NUMBER_TEXT_MAX];
    size_t size = 0;

    if (text.size >= sizeof copy - 2)
        return false;
    if (*text.data == '+' || *text.data == '-') {
        if (*text.data == '-')
            copy[size++] = '-';
        text = det_view_of(text.data + 1, text.size - 1);
    }
    if (*text.data == '.')
        copy[size++] = '0';
    memcpy(copy + size, text.data, text.size);
    return det_parse_double(det_view_of(copy, size + text.size), ret) == 0;
}

bool row_number(struct det_view text, double *ret)
{
    int r = det_scan_double(text, ret);

    return r == 1 || (r == 0 && parse_slowly(text, ret));
}

static const char *set_float(void *value, struct det_view text)
{
    double number = 0;

    if (text.size == 0)
        return "is empty; make the field OPTIONAL";
    if (!row_number(text, &number))
        return "is not a number";
    memcpy(value, &number, sizeof number);
    return NULL;
}

static const char *set_bool(void *value, struct det_view text)
{
    bool is_true = det_view_is(text, "true") || det_view_is(text, "1");

    if (!is_true && !det_view_is(text, "false") && !det_view_is(text, "0"))
        return "is neither true nor false";
    *(uint8_t *)value = is_true;
    return NULL;
}

static const char *set_time(void *value, struct det_view text)
{
    det_time wall = 0;

    if (det_parse_time(text, &wall) < 0)
        return "is not a time such as 2026-01-31T10:00:00Z";
    memcpy(value, &wall, sizeof wall);
    return NULL;
}

static const char *set_string(const struct det_field *field, void *value, struct det_view text)
{
    if (text.size > field->capacity)
        return "is too long";
    if (det_utf8_check(text.data, text.size) != text.size)
        return "is not UTF-8";
    if (text.size && memchr(text.data, 0, text.size))
        return "has a NUL";
    if (text.size)
        memcpy(value, text.data, text.size);
    ((char *)value)[text.size] = 0;
    return NULL;
}

static const char *set_bytes(const struct det_field *field, uint8_t *value, struct det_view text)
{
    uint32_t short_size;
    size_t size = 0;

    switch (det_base64_decode(text, value + sizeof short_size, field->capacity, &size)) {
    case 0:
        short_size = (uint32_t)size;
        memcpy(value, &short_size, sizeof short_size);
        return NULL;
    case DET_ERR_RANGE:
        return "is too long";
    default:
        return "is not base64";
    }
}

const char *row_set_text(const struct det_field *field, void *row, struct det_view text)
{
    uint8_t *value = (uint8_t *)row + field->offset;

    det_assert(row_takes_text(field));
    if (field->flags & DET_FIELD_OPTIONAL) {
        det_field_set_count(field, row, text.size != 0);
        if (text.size == 0)
            return NULL;
    }
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        return set_unsigned(field, value, text);
    case DET_KIND_SIGNED:
        return set_signed(field, value, text);
    case DET_KIND_FLOAT:
        return set_float(value, text);
    case DET_KIND_BOOL:
        return set_bool(value, text);
    case DET_KIND_TIME:
        return set_time(value, text);
    case DET_KIND_TEXT:
        return set_string(field, value, text);
    case DET_KIND_BYTES:
        return set_bytes(field, value, text);
    case DET_KIND_ENUM:
        return det_value_set_enum(field, value, text) ? NULL : "is not a value of the enum";
    case DET_KIND_RECORD:
        break;
    }
    return "cannot be a text";
}
