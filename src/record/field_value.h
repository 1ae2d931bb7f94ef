/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* field_value.h - the value of one field in memory: load, store, check, compare.
 *
 * Memory is only accessed through memcpy(), so a definition made at run time may put a field at any
 * offset, and a bool that is neither 0 nor 1 is detected. The functions that read are safe on any
 * bytes: a text without its final NUL ends at its capacity. */
#ifndef DET_RECORD_FIELD_VALUE_H
#define DET_RECORD_FIELD_VALUE_H

#include <detent/record.h>

#include <string.h>

#include "base/text.h"

/* det_error_set() with the offset; evaluates to the code. */
#define DET_FAIL_AT(error, code, where, ...) \
    det_error_at((error), (where), det_error_set((error), (code), __VA_ARGS__))

/* Replaces the value of a sensitive field in texts. */
#define DET_RECORD_REDACTED "{redacted}"

static inline int det_error_at(struct det_error *error, size_t offset, int code)
{
    if (error)
        error->offset = offset;
    return code;
}

static inline uint32_t det_record_version(const struct det_record *record)
{
    return record->version ? record->version : 1;
}

static inline uint32_t det_field_since(const struct det_field *field)
{
    return field->since ? field->since : 1;
}

/* Returns the value in memory: the count of an array, the presence byte of an optional field, else
 * 1. `base` is the record. */
static inline uint32_t det_field_count(const struct det_field *field, const void *base)
{
    const uint8_t *place = (const uint8_t *)base + field->presence;
    uint32_t count;

    if (field->flags & DET_FIELD_ARRAY) {
        memcpy(&count, place, sizeof count);
        return count;
    }
    return field->flags & DET_FIELD_OPTIONAL ? *place : 1;
}

/* Returns true if a valid value can have this count or presence. */
static inline bool det_field_count_is_valid(const struct det_field *field, uint32_t count)
{
    return count <= (field->flags & DET_FIELD_ARRAY ? field->count_max : 1);
}

static inline void det_field_set_count(const struct det_field *field, void *base, uint32_t count)
{
    uint8_t *place = (uint8_t *)base + field->presence;

    if (field->flags & DET_FIELD_ARRAY)
        memcpy(place, &count, sizeof count);
    else if (field->flags & DET_FIELD_OPTIONAL)
        *place = count != 0;
}

static inline uint64_t det_value_unsigned(const struct det_field *field, const void *value)
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

static inline int64_t det_value_signed(const struct det_field *field, const void *value)
{
    uint64_t number = det_value_unsigned(field, value);

    switch (field->size) {
    case 1:
        return (int8_t)number;
    case 2:
        return (int16_t)number;
    case 4:
        return (int32_t)number;
    default:
        return (int64_t)number;
    }
}

/* Stores the low bytes of `number`; the caller has checked that the others are insignificant. */
static inline void det_value_store(const struct det_field *field, void *value, uint64_t number)
{
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;

    switch (field->size) {
    case 1:
        *(uint8_t *)value = (uint8_t)number;
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

/* Returns false, and stores nothing, if the number does not fit the field. */
static inline bool det_value_set_unsigned(
    const struct det_field *field, void *value, uint64_t number)
{
    if (field->size < 8 && number >> (field->size * 8))
        return false;
    det_value_store(field, value, number);
    return true;
}

static inline bool det_value_set_signed(const struct det_field *field, void *value, int64_t number)
{
    int64_t limit;

    if (field->size < 8) {
        limit = (int64_t)1 << (field->size * 8 - 1);
        if (number >= limit || number < -limit)
            return false;
    }
    det_value_store(field, value, (uint64_t)number);
    return true;
}

/* The bits of a double, one pattern for all NaNs. */
#define DET_FLOAT_NAN 0x7ff8000000000000u
static inline uint64_t det_value_float_bits(const void *value)
{
    uint64_t bits;

    memcpy(&bits, value, sizeof bits);
    return (bits & INT64_MAX) > 0x7ff0000000000000u ? DET_FLOAT_NAN : bits;
}

/* TEXT and BYTES. */
struct det_view det_value_view(const struct det_field *field, const void *value);
/* Returns NULL if the enum has no such value. */
const char *det_value_enum_name(const struct det_field *field, const void *value);
/* Returns false if the enum has no such name. */
bool det_value_set_enum(const struct det_field *field, void *value, struct det_view name);

/* Returns 0, or DET_ERR_RANGE or DET_ERR_MALFORMED with the problem in `ret_reason`. */
int det_value_check(const struct det_field *field, const void *value, const char **ret_reason);
bool det_value_equal(const struct det_field *field, const void *a, const void *b);

/* Shorter structs and texts are copied whole. */
#define DET_RECORD_LONG 1024

/* Copies the used part of a struct: of a long text only the part before its end. The remaining
 * bytes stay unchanged. */
void det_record_copy(const struct det_record *record, void *target, const void *source);

#endif
