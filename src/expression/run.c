/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* run.c - runs the steps of a program. */
#include "expression/program.h"

#include <string.h>

#include "base/assert.h"
#include "record/field_value.h"

/* The text of a field bytes(n). */
static struct det_view load_bytes(const uint8_t *from, uint32_t capacity)
{
    uint32_t size;

    memcpy(&size, from, sizeof size);
    return det_view_of((const char *)from + sizeof size, size < capacity ? size : capacity);
}

static struct det_view load_view(const uint8_t *from)
{
    struct det_expression_text text;

    memcpy(&text, from, sizeof text);
    return det_view_of(text.size > 0 ? text.data : "", text.size);
}

static struct expression_elements elements_of(
    const uint8_t *base, const struct expression_array *array)
{
    uint32_t count;

    memcpy(&count, base + array->presence, sizeof count);
    return (struct expression_elements){ base + array->offset,
                                         count < array->count_max ? count : array->count_max };
}

static bool element_at(
    union expression_slot *result, const union expression_slot *from,
    const union expression_slot *index, const struct expression_array *array)
{
    if (index->w.high != 0 || index->w.low >= from->elements.count)
        return false;
    result->place = from->elements.data + index->w.low * array->size;
    return true;
}

static bool is_int(det_i128 value)
{
    return value >= EXPRESSION_INT_MIN && value <= EXPRESSION_INT_MAX;
}

/* Integers and what is between them fit 64 bits without the sign. */
static uint64_t magnitude(det_i128 value)
{
    return (uint64_t)(det_u128)(value < 0 ? -value : value);
}

static bool multiply(union expression_slot *result, det_i128 a, det_i128 b)
{
    det_u128 product = (det_u128)magnitude(a) * magnitude(b);
    bool is_negative = (a < 0) != (b < 0);

    if (product > (is_negative ? (det_u128)1 << 63 : (det_u128)UINT64_MAX))
        return false;
    expression_set_wide(result, is_negative ? -(det_i128)product : (det_i128)product);
    return true;
}

static bool divide(union expression_slot *result, det_i128 a, det_i128 b)
{
    det_i128 quotient;

    if (b == 0)
        return false;
    quotient = magnitude(a) / magnitude(b);
    expression_set_wide(result, (a < 0) != (b < 0) ? -quotient : quotient);
    return true;
}

static bool remainder_of(union expression_slot *result, det_i128 a, det_i128 b)
{
    det_i128 rest;

    if (b == 0)
        return false;
    rest = magnitude(a) % magnitude(b);
    expression_set_wide(result, a < 0 ? -rest : rest);
    return true;
}

/* Compares exactly: a float beyond the integers is larger or smaller than all of them, and the
 * whole part of any other is an integer. */
static int compare_mixed(det_i128 integer, double number)
{
    det_i128 whole;
    double rest;

    if (number >= 0x1p64)
        return -1;
    if (number < -0x1p63)
        return 1;
    whole = number < 0 ? (det_i128)(int64_t)number : (det_i128)(uint64_t)number;
    if (integer != whole)
        return integer < whole ? -1 : 1;
    rest = number < 0 ? number - (double)(int64_t)number : number - (double)(uint64_t)number;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static bool enum_name(union expression_slot *slot, const struct det_enum *enumeration)
{
    for (size_t i = 0; i < enumeration->value_count; i++) {
        if (enumeration->values[i].value == slot->i) {
            slot->text = det_view_text(enumeration->values[i].name);
            return true;
        }
    }
    return false;
}

/* The value of a field, as the type that arithmetic with it needs. */
#define FIELD_VALUE(name, type, result)                    \
    static inline result field_##name(const uint8_t *from) \
    {                                                      \
        type value;                                        \
                                                           \
        memcpy(&value, from, sizeof value);                \
        return value;                                      \
    }
FIELD_VALUE(U8, uint8_t, int64_t)
FIELD_VALUE(U16, uint16_t, int64_t)
FIELD_VALUE(U32, uint32_t, int64_t)
FIELD_VALUE(U64, uint64_t, uint64_t)
FIELD_VALUE(I8, int8_t, int64_t)
FIELD_VALUE(I16, int16_t, int64_t)
FIELD_VALUE(I32, int32_t, int64_t)
FIELD_VALUE(I64, int64_t, int64_t)

/* What a field is compared with. */
#define CONSTANT         ((int64_t)(int32_t)at->k.place.capacity)
#define CONSTANT_U8      CONSTANT
#define CONSTANT_U16     CONSTANT
#define CONSTANT_U32     CONSTANT
#define CONSTANT_U64     ((uint64_t)at->k.place.capacity)
#define CONSTANT_I8      CONSTANT
#define CONSTANT_I16     CONSTANT
#define CONSTANT_I32     CONSTANT
#define CONSTANT_I64     CONSTANT

#define INPUT            ((const uint8_t *)inputs[at->input])
#define FROM_INPUT       (INPUT + at->k.place.offset)
#define FROM_SLOT        (slots[at->a].place + at->k.place.offset)
#define TARGET           (frame->target + at->k.place.offset)
#define R                slots[at->target]
#define A                slots[at->a]
#define B                slots[at->b]
#define K                at->k

#define SET(slot, value) expression_set_int(&(slot), (value))
#define WIDE(slot)       expression_wide(&(slot))
#define IS_INT           is_int
#define FINITE(number)   __builtin_isfinite(number)

/* Goes to the next step, or elsewhere. */
#define NEXT()      \
    {               \
        at++;       \
        DISPATCH(); \
    }
#define AGAIN()     \
    {               \
        at = steps; \
        DISPATCH(); \
    }
#define GO()                   \
    {                          \
        at = steps + at->jump; \
        DISPATCH();            \
    }
#define FAIL(number, text)      \
    {                           \
        code = (number);        \
        frame->reason = (text); \
        goto failed;            \
    }
#define MISS_OR_FAIL(number, text) \
    {                              \
        if (at->jump != 0)         \
            GO();                  \
        FAIL(number, text);        \
    }
#define OVERFLOWS()   FAIL(DET_ERR_OVERFLOW, "the result is not between -2^63 and 2^64-1")
#define LEAVES_TIME() FAIL(DET_ERR_OVERFLOW, "the result is beyond the years 1677 to 2262")
#define BY_ZERO()     FAIL(DET_ERR_RANGE, "division by zero")
#define KEEP(value)                     \
    {                                   \
        if (!is_int(value))             \
            OVERFLOWS();                \
        expression_set_wide(&R, value); \
    }
#define KEEP_TIME(value)                            \
    {                                               \
        if (value < INT64_MIN || value > INT64_MAX) \
            LEAVES_TIME();                          \
        SET(R, (int64_t)value);                     \
    }
#define KEEP_FLOAT(value)                                                   \
    {                                                                       \
        R.f = (value);                                                      \
        if (!FINITE(R.f))                                                   \
            FAIL(DET_ERR_OVERFLOW, "the result exceeds the largest float"); \
    }

/* Compilers copy the one jump to the end of each step, where processors predict it better. If it
 * were there in the text, one of them would take minutes for all pairs of steps. */
#define DISPATCH() goto next_step
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* addresses of labels are not in ISO C */

/* NOLINTBEGIN(readability-function-size): its text is short, its size is that of the list of steps.
 *
 * Without these checks clang instruments so large a function in seconds rather than in minutes.
 * Fields are copied by memcpy(), and the address sanitizer looks at all that is read. */
__attribute__((no_sanitize("alignment", "null", "pointer-overflow", "object-size"))) int
det_expression_run(
    const struct expression_step *steps, const void *const *inputs, struct expression_frame *frame,
    const struct expression_step **ret_step)
{
    static const void *const labels[] = {
#define OPERATION(name, ...) &&step_##name,
#include "expression/operations.def"
#undef OPERATION
    };
    union expression_slot *slots = (union expression_slot *)(void *)frame->scratch->slots;
    const struct expression_step *at = steps;
    int code;

next_step:
    goto *labels[at->operation];
#define OPERATION(name, ...) \
    step_##name:             \
    {                        \
        __VA_ARGS__;         \
        NEXT();              \
    }
#include "expression/operations.def"
#undef OPERATION
failed:
    *ret_step = at;
    return code;
}
#pragma GCC diagnostic pop
/* NOLINTEND(readability-function-size) */
