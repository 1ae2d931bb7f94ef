/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_scalar.c - the value of a plain scalar in the core schema of YAML 1.2. */
#include "yaml/datum_scalar.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "record/number.h"

#define DIGITS     "0123456789"
#define HEX_DIGITS "0123456789abcdefABCDEF"

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_all(const char *text, const char *characters)
{
    return *text && text[strspn(text, characters)] == '\0';
}

static int digit_of(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Reads digits that are valid in the base. False: the number is beyond 64 bits. */
static bool read_digits(const char *digits, unsigned base, uint64_t *ret)
{
    uint64_t number = 0;

    for (; *digits; digits++) {
        if (__builtin_mul_overflow(number, (uint64_t)base, &number) ||
            __builtin_add_overflow(number, (uint64_t)digit_of(*digits), &number))
            return false;
    }
    *ret = number;
    return true;
}

static int set_complete(
    struct det_datum *datum, bool is_negative, const char *digits, unsigned base)
{
    uint64_t number;

    if (!read_digits(digits, base, &number))
        return DET_ERR_RANGE;
    if (is_negative && number > (uint64_t)INT64_MAX + 1)
        return DET_ERR_RANGE;
    if (!is_negative && number > INT64_MAX) {
        datum->kind = DET_DATUM_UNSIGNED;
        datum->as.large = number;
        return 0;
    }
    datum->kind = DET_DATUM_SIGNED;
    datum->as.number = (int64_t)(is_negative ? 0 - number : number);
    return 0;
}

/* Returns true for [digits] [. digits] [e sign digits] with a digit before the e. */
static bool is_decimal(const char *text)
{
    size_t whole = strspn(text, DIGITS), part = 0;

    text += whole;
    if (*text == '.') {
        part = strspn(text + 1, DIGITS);
        text += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*text != 'e' && *text != 'E')
        return *text == '\0';
    text++;
    text += *text == '+' || *text == '-';
    return is_all(text, DIGITS);
}

/* Converts to the form of JSON for the number reader: no leading zeros, digits on both sides of the
 * point. */
static int set_decimal(struct det_datum *datum, bool is_negative, const char *text)
{
    char json[DET_NUMBER_TEXT_MAX];
    size_t used = 0;
    double real;
    int r;

    while (text[0] == '0' && text[1] >= '0' && text[1] <= '9')
        text++;
    if (strlen(text) + 4 > sizeof json)
        return DET_ERR_RANGE;
    if (*text == '.')
        json[used++] = '0';
    for (; *text; text++) {
        json[used++] = *text;
        if (*text == '.' && (text[1] < '0' || text[1] > '9'))
            json[used++] = '0';
    }
    r = det_parse_double(det_view_of(json, used), &real);
    if (r < 0)
        return DET_ERR_RANGE;
    datum->kind = DET_DATUM_FLOAT;
    datum->as.real = is_negative ? -real : real;
    return 0;
}

static int set_number(struct det_datum *datum, const char *text)
{
    static const char *const infinite[] = { ".inf", ".Inf", ".INF", NULL };
    bool is_signed = *text == '-' || *text == '+', is_negative = *text == '-';

    if (!is_signed && strncmp(text, "0x", 2) == 0 && is_all(text + 2, HEX_DIGITS))
        return set_complete(datum, false, text + 2, 16);
    if (!is_signed && strncmp(text, "0o", 2) == 0 && is_all(text + 2, "01234567"))
        return set_complete(datum, false, text + 2, 8);
    text += is_signed;
    if (is_all(text, DIGITS))
        return set_complete(datum, is_negative, text, 10);
    if (is_decimal(text))
        return set_decimal(datum, is_negative, text);
    if (!is_one_of(text, infinite))
        return DET_ERR_TYPE;
    datum->kind = DET_DATUM_FLOAT;
    datum->as.real = is_negative ? -INFINITY : INFINITY;
    return 0;
}

int det_datum_set_plain(struct det_datum *datum, const char *text)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
    static const char *const trues[] = { "true", "True", "TRUE", NULL };
    static const char *const falses[] = { "false", "False", "FALSE", NULL };
    static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };

    if (is_one_of(text, nulls)) {
        datum->kind = DET_DATUM_NULL;
    } else if (is_one_of(text, trues) || is_one_of(text, falses)) {
        datum->kind = DET_DATUM_BOOL;
        datum->as.truth = (text[0] | 0x20) == 't';
    } else if (is_one_of(text, nans)) {
        datum->kind = DET_DATUM_FLOAT;
        datum->as.real = NAN;
    } else {
        return set_number(datum, text);
    }
    return 0;
}
