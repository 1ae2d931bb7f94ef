/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number.c - formats and parses doubles. */
#include "record/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Doubles have every whole number up to this, and every power of ten up to 10^22: the quotient or
 * product of two of these is rounded once, so it is the nearest double. */
#define EXACT_MAX    ((uint64_t)1 << 53)
#define EXACT_POWERS 23

/* Returns true for a character of a formatted double that is not part of its decimal point. */
static bool is_neutral(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e';
}

void det_number_from_locale(const char *text, char target[DET_DOUBLE_TEXT])
{
    size_t used = 0;
    bool in_point = false;

    for (; *text; text++) {
        if (is_neutral(*text))
            target[used++] = *text;
        else if (!in_point)
            target[used++] = '.';
        in_point = !is_neutral(*text);
        det_assert(used < DET_DOUBLE_TEXT);
    }
    target[used] = 0;
}

bool det_number_to_locale(
    struct det_view text, struct det_view point, char *target, size_t capacity)
{
    const char *dot = memchr(text.data, '.', text.size);
    size_t before = dot ? (size_t)(dot - text.data) : text.size;
    size_t after = dot ? text.size - before - 1 : 0;
    size_t middle = dot ? point.size : 0;

    if (before + middle + after >= capacity)
        return false;
    memcpy(target, text.data, before);
    if (dot) {
        memcpy(target + before, point.data, middle);
        memcpy(target + before + middle, dot + 1, after);
    }
    target[before + middle + after] = 0;
    return true;
}

struct decimal {
    uint64_t digits; /* without the point */
    int exponent;
    bool is_negative;
    bool is_exact; /* `digits` has all of them */
};

/* Reads digits from `at` on and returns their end. */
static size_t scan_digits(struct det_view text, size_t at, bool is_fraction, struct decimal *ret)
{
    for (; at < text.size; at++) {
        unsigned digit = (unsigned)(unsigned char)text.data[at] - '0';

        if (digit > 9)
            break;
        ret->is_exact = ret->is_exact && ret->digits < EXACT_MAX / 16;
        if (!ret->is_exact)
            continue;
        ret->digits = 10 * ret->digits + digit;
        ret->exponent -= is_fraction;
    }
    return at;
}

/* Reads "e-9" at the end; returns false if there is something else. */
static bool scan_exponent(struct det_view text, size_t at, struct decimal *ret)
{
    bool is_negative = false;
    int exponent = 0;

    if (at == text.size)
        return true;
    if ((text.data[at] | 0x20) != 'e')
        return false;
    at++;
    if (at < text.size && (text.data[at] == '-' || text.data[at] == '+'))
        is_negative = text.data[at++] == '-';
    if (at == text.size || text.size - at > 4)
        return false;
    for (; at < text.size; at++) {
        if (text.data[at] < '0' || text.data[at] > '9')
            return false;
        exponent = 10 * exponent + (text.data[at] - '0');
    }
    ret->exponent += is_negative ? -exponent : exponent;
    return true;
}

int det_scan_double(struct det_view text, double *ret)
{
    static const double powers[EXACT_POWERS] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    struct decimal decimal = { .is_exact = true };
    size_t at = 0, digits;
    double number;

    if (text.size && (*text.data == '-' || *text.data == '+'))
        decimal.is_negative = text.data[at++] == '-';
    digits = at;
    at = scan_digits(text, at, false, &decimal);
    digits = at - digits;
    if (at < text.size && text.data[at] == '.') {
        size_t fraction = at + 1;

        at = scan_digits(text, fraction, true, &decimal);
        digits += at - fraction;
    }
    if (digits == 0 || !scan_exponent(text, at, &decimal))
        return DET_ERR_MALFORMED;
    if (!decimal.is_exact || decimal.exponent >= EXACT_POWERS || decimal.exponent <= -EXACT_POWERS)
        return 0;
    number = (double)decimal.digits;
    number = decimal.exponent < 0 ? number / powers[-decimal.exponent]
                                  : number * powers[decimal.exponent];
    *ret = decimal.is_negative ? -number : number;
    return 1;
}

int det_parse_double(struct det_view text, double *ret)
{
    char half[16], copy[DET_NUMBER_TEXT_MAX];
    int length;
    double number;

    if (text.size < sizeof copy - 1 && det_scan_double(text, ret) == 1)
        return 0;
    length = snprintf(half, sizeof half, "%.1f", 0.5);
    det_assert(length >= 3 && (size_t)length < sizeof half);
    if (!det_number_to_locale(text, det_view_of(half + 1, (size_t)length - 2), copy, sizeof copy))
        return DET_ERR_LIMIT;
    number = strtod(copy, NULL);
    if (!isfinite(number))
        return DET_ERR_RANGE;
    *ret = number;
    return 0;
}

char *det_format_double(double number, char target[DET_DOUBLE_TEXT])
{
    char text[DET_DOUBLE_TEXT];
    double again = 0;

    if (!isfinite(number)) {
        det_text_copy(target, DET_DOUBLE_TEXT, isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        return target;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        det_number_from_locale(text, target);
        if (det_parse_double(det_view_text(target), &again) == 0 && again == number)
            break;
    }
    return target;
}
