/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* duration.c - spans of time as people write them: exact, in whole nanoseconds.
 *
 *   duration = [ "-" ] part { part }           units strictly from large to small
 *   part     = digits [ "." digits ] unit      a fraction only in the last part
 *   unit     = "d" | "h" | "m" | "s" | "ms" | "us" | "ns"
 *
 * A fraction that is not a whole number of nanoseconds is malformed: nothing is rounded. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

struct unit {
    const char *name;
    uint64_t nanoseconds;
};

/* From large to small: the order a duration is written in. */
static const struct unit units[] = {
    { "d", (uint64_t)DET_DAY },
    { "h", (uint64_t)DET_HOUR },
    { "m", (uint64_t)DET_MINUTE },
    { "s", (uint64_t)DET_SECOND },
    { "ms", (uint64_t)DET_MILLISECOND },
    { "us", (uint64_t)DET_MICROSECOND },
    { "ns", 1 },
};

#define UNIT_COUNT  (sizeof units / sizeof units[0])
#define UNIT_SECOND 3

/* A day is 2^16 * 3^3 * 5^11 ns: with more digits than this no fraction of it is whole. */
#define FRACTION_DIGITS_MAX 16

/* One part of a duration, split. */
struct part {
    struct det_view whole;
    struct det_view fraction; /* without trailing zeroes */
    bool has_fraction;
    size_t unit;
};

static struct det_view take_bytes(struct det_view *text, size_t size)
{
    struct det_view taken = det_view_of(text->data, size);

    *text = det_view_of(text->data + size, text->size - size);
    return taken;
}

static struct det_view take_digits(struct det_view *text)
{
    size_t size = 0;

    while (size < text->size && text->data[size] >= '0' && text->data[size] <= '9')
        size++;
    return take_bytes(text, size);
}

static bool take_char(struct det_view *text, char c)
{
    if (text->size == 0 || text->data[0] != c)
        return false;
    (void)take_bytes(text, 1);
    return true;
}

/* The unit is the longest run of letters, so that "ms" is not read as "m". */
static bool take_unit(struct det_view *text, size_t *ret)
{
    struct det_view name;
    size_t size = 0;

    while (size < text->size && text->data[size] >= 'a' && text->data[size] <= 'z')
        size++;
    name = take_bytes(text, size);
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (det_view_is(name, units[i].name)) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool take_part(struct det_view *text, struct part *ret)
{
    ret->whole = take_digits(text);
    ret->has_fraction = take_char(text, '.');
    ret->fraction = ret->has_fraction ? take_digits(text) : det_view_of(text->data, 0);
    if (ret->whole.size == 0 || (ret->has_fraction && ret->fraction.size == 0))
        return false;
    while (ret->fraction.size > 0 && ret->fraction.data[ret->fraction.size - 1] == '0')
        ret->fraction.size--;
    return take_unit(text, &ret->unit);
}

/* Returns false if it is not a whole number of nanoseconds. */
static bool fraction_value(const struct part *part, uint64_t *ret)
{
    det_u128 numerator = 0, denominator = 1;

    if (part->fraction.size > FRACTION_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < part->fraction.size; i++) {
        numerator = numerator * 10 + (unsigned int)(part->fraction.data[i] - '0');
        denominator *= 10;
    }
    numerator *= units[part->unit].nanoseconds;
    *ret = (uint64_t)(numerator / denominator);
    return numerator % denominator == 0;
}

/* Cannot overflow: a part is less than 2^64 * 2^47 ns, and a duration has at most seven parts. */
static bool part_value(const struct part *part, det_u128 *ret)
{
    uint64_t whole, fraction;

    /* A number that does not fit 64 bits is out of range in every unit. */
    if (det_parse_u64(part->whole, &whole) < 0)
        whole = UINT64_MAX;
    if (!fraction_value(part, &fraction))
        return false;
    *ret = (det_u128)whole * units[part->unit].nanoseconds + fraction;
    return true;
}

int det_parse_duration(struct det_view text, det_time *ret)
{
    bool is_negative = take_char(&text, '-');
    uint64_t most = (uint64_t)INT64_MAX + (is_negative ? 1 : 0);
    det_u128 magnitude = 0, value;
    struct part part = { .has_fraction = false };
    size_t next_unit = 0;

    do {
        if (part.has_fraction || !take_part(&text, &part) || part.unit < next_unit)
            return DET_ERR_MALFORMED;
        if (!part_value(&part, &value))
            return DET_ERR_MALFORMED;
        magnitude += value;
        next_unit = part.unit + 1;
    } while (text.size > 0);
    if (magnitude > most)
        return DET_ERR_OVERFLOW;
    *ret = (det_time)(is_negative ? 0 - (uint64_t)magnitude : (uint64_t)magnitude);
    return 0;
}

static size_t append_number(char *target, size_t at, uint64_t value)
{
    int length = snprintf(target + at, DET_DURATION_TEXT - at, "%llu", (unsigned long long)value);

    return at + (size_t)length;
}

static size_t append_unit(char *target, size_t at, size_t unit)
{
    size_t length = strlen(units[unit].name);

    memcpy(target + at, units[unit].name, length + 1);
    return at + length;
}

/* Writes ".5" for half a unit and nothing for zero; the unit is a power of ten nanoseconds. */
static size_t append_fraction(char *target, size_t at, uint64_t rest, uint64_t unit)
{
    if (rest > 0)
        target[at++] = '.';
    while (rest > 0) {
        unit /= 10;
        target[at++] = (char)('0' + rest / unit);
        rest %= unit;
    }
    return at;
}

/* Writes days, hours and minutes as whole numbers; the rest in the largest unit it reaches. */
static void format_magnitude(uint64_t span, char *target, size_t at)
{
    size_t unit = 0;

    for (; unit < UNIT_SECOND; unit++) {
        if (span < units[unit].nanoseconds)
            continue;
        at = append_number(target, at, span / units[unit].nanoseconds);
        at = append_unit(target, at, unit);
        span %= units[unit].nanoseconds;
    }
    if (span == 0)
        return;
    while (span < units[unit].nanoseconds)
        unit++;
    at = append_number(target, at, span / units[unit].nanoseconds);
    at = append_fraction(target, at, span % units[unit].nanoseconds, units[unit].nanoseconds);
    (void)append_unit(target, at, unit);
}

char *det_format_duration(det_time span, char *target, size_t capacity)
{
    char text[DET_DURATION_TEXT] = "0s";

    if (span < 0) {
        text[0] = '-';
        format_magnitude(0 - (uint64_t)span, text, 1);
    } else if (span > 0) {
        format_magnitude((uint64_t)span, text, 0);
    }
    (void)det_text_copy(target, capacity, text);
    return target;
}
