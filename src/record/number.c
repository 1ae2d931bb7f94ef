/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number.c - formats and parses doubles. */
#include "record/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

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

int det_parse_double(struct det_view text, double *ret)
{
    char half[16], copy[DET_NUMBER_TEXT_MAX];
    int length = snprintf(half, sizeof half, "%.1f", 0.5);
    double number;

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
