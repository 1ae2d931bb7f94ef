/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron.c - reads a cron expression.
 *
 *   expression = field{5} | field{6} | "@yearly" | "@monthly" | "@weekly" | "@daily" | "@hourly"
 *   field      = item { "," item }                      fields are separated by blanks
 *   item       = "*" [ "/" step ] | value | value "-" value [ "/" step ]
 *   value      = number | the first three letters of a month or a day, in any case
 *
 * A range does not wrap around, but `fri-sun` is 5-7. */
#include <detent/driver/schedule.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "task/cron.h"

#define FIELDS     6
#define NUMBER_MAX 10000 /* more than any field permits; larger numbers are read as this one */
#define SUNDAY     7

struct field {
    const char *name;
    int least, most;
    const char *words; /* names of three letters, the first for `least` */
};

static const struct field fields[FIELDS] = {
    { "second", 0, 59, "" },
    { "minute", 0, 59, "" },
    { "hour", 0, 23, "" },
    { "day of the month", 1, 31, "" },
    { "month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec" },
    { "day of the week", 0, 7, "sun mon tue wed thu fri sat" },
};

enum { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY };

static const struct {
    const char *name, *expression;
} shorthands[] = {
    { "@yearly", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" }, { "@weekly", "0 0 * * 0" },
    { "@daily", "0 0 * * *" },  { "@hourly", "0 * * * *" },
};

/* The state of the parser. */
struct reader {
    const char *text;
    const char *at;
    const struct field *field;
    bool has_star; /* in the current field */
    struct det_error *error;
};

static int fail(const struct reader *reader, const char *at, const char *format, ...)
    DET_PRINTF(3, 4);

static int fail(const struct reader *reader, const char *at, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX];
    size_t offset = (size_t)(at - reader->text);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)det_error_set(
        reader->error, DET_ERR_MALFORMED, "cron expression, byte %zu: %s", offset, text);
    if (reader->error)
        reader->error->offset = offset;
    return DET_ERR_MALFORMED;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

/* The value of the three-letter name at `word`; -1: unknown. */
static int find_word(const struct field *field, const char *word)
{
    const char *name = field->words;

    for (int value = field->least; *name; value++) {
        /* The names are lower case, and this bit makes a letter lower case. */
        if (name[0] == (word[0] | 0x20) && name[1] == (word[1] | 0x20) &&
            name[2] == (word[2] | 0x20))
            return value;
        name += name[3] ? 4 : 3;
    }
    return -1;
}

static int read_word(struct reader *reader, int *ret)
{
    const struct field *field = reader->field;
    const char *word = reader->at;
    int length = 0, value;

    while (is_letter(word[length]))
        length++;
    if (!*field->words)
        return fail(
            reader, word, "the %s is a number from %d to %d, not a word", field->name, field->least,
            field->most);
    value = length >= 3 ? find_word(field, word) : -1;
    if (value < 0)
        return fail(
            reader, word, "'%.*s' is not a %s; use %s", length < 20 ? length : 20, word,
            field->name, field->words);
    if (length > 3)
        return fail(reader, word, "write '%.3s', the first three letters", word);
    reader->at = word + length;
    *ret = value;
    return 0;
}

static int read_number(struct reader *reader, const char *what, int least, int most, int *ret)
{
    const char *start = reader->at;
    int value = 0;

    for (; is_digit(*reader->at); reader->at++) {
        if (value < NUMBER_MAX)
            value = value * 10 + (*reader->at - '0');
    }
    if (reader->at == start)
        return fail(
            reader, start, "the number of a %s is expected here: %d to %d", what, least, most);
    if (value < least || value > most)
        return fail(
            reader, start, "the %s is a number from %d to %d, not %.*s", what, least, most,
            (int)(reader->at - start < 20 ? reader->at - start : 20), start);
    *ret = value;
    return 0;
}

static int read_value(struct reader *reader, int *ret)
{
    const struct field *field = reader->field;

    if (is_letter(*reader->at))
        return read_word(reader, ret);
    return read_number(reader, field->name, field->least, field->most, ret);
}

/* a-b, or a single a. */
static int read_range(struct reader *reader, int *ret_low, int *ret_high, bool *ret_is_range)
{
    const struct field *field = reader->field;
    const char *start = reader->at, *end;
    int r = read_value(reader, ret_low);

    *ret_high = *ret_low;
    *ret_is_range = r == 0 && *reader->at == '-';
    if (!*ret_is_range)
        return r;
    end = ++reader->at;
    r = read_value(reader, ret_high);
    if (r < 0)
        return r;
    if (field == &fields[WEEKDAY] && is_letter(*end) && *ret_high == 0 && *ret_low > 0)
        *ret_high = SUNDAY;
    if (*ret_high >= *ret_low)
        return 0;
    return fail(
        reader, start, "the range goes backwards; write %d-%d,%d-%d", *ret_low, field->most,
        field->least, *ret_high);
}

static int read_step(struct reader *reader, bool is_range, int low, int *ret)
{
    const struct field *field = reader->field;

    if (!is_range)
        return fail(
            reader, reader->at, "a step needs a range before it; write %d-%d/n or */n", low,
            field->most);
    reader->at++;
    return read_number(reader, "step", 1, field->most, ret);
}

static int read_item(struct reader *reader, uint64_t *bits)
{
    int low = reader->field->least, high = reader->field->most, step = 1, r = 0;
    bool is_range = true;

    if (*reader->at == '*') {
        reader->at++;
        reader->has_star = true;
    } else {
        r = read_range(reader, &low, &high, &is_range);
    }
    if (r == 0 && *reader->at == '/')
        r = read_step(reader, is_range, low, &step);
    if (r < 0)
        return r;
    for (int value = low; value <= high; value += step)
        *bits |= UINT64_C(1) << value;
    return 0;
}

/* The field that begins at `start`, up to the next blank. */
static int read_field(
    struct reader *reader, const struct field *field, const char *start, uint64_t *ret)
{
    int r;

    reader->field = field;
    reader->at = start;
    reader->has_star = false;
    *ret = 0;
    for (;;) {
        r = read_item(reader, ret);
        if (r < 0 || *reader->at != ',')
            break;
        reader->at++;
    }
    if (r == 0 && *reader->at && !is_blank(*reader->at))
        return fail(reader, reader->at, "expected a list of *, a, a-b, */n or a-b/n");
    return r;
}

/* True if one of the months has one of the days. February has 29 days here, since leap years
 * occur. */
static bool has_date(uint64_t months, uint64_t days)
{
    static const int lengths[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    for (int month = 1; month <= 12; month++) {
        if (months >> month & 1 && days & ((UINT64_C(2) << lengths[month]) - 1))
            return true;
    }
    return false;
}

/* Finds the starts of the fields; returns their number, at most one too many. */
static size_t find_fields(const char *text, const char *starts[FIELDS + 1])
{
    size_t count = 0;

    for (const char *at = skip_blanks(text); *at && count <= FIELDS; at = skip_blanks(at)) {
        starts[count++] = at;
        at += strcspn(at, " \t");
    }
    return count;
}

static int read_fields(struct reader *reader, struct det_cron *ret)
{
    const char *starts[FIELDS + 1];
    size_t count = find_fields(reader->text, starts), missing = FIELDS - count;
    uint64_t bits[FIELDS] = { [SECOND] = 1 };
    struct det_cron cron = { 0 };

    if (count < FIELDS - 1 || count > FIELDS)
        return fail(
            reader, count > FIELDS ? starts[FIELDS] : reader->text + strlen(reader->text),
            "an expression has five fields: minute, hour, day of the month, month, day of the "
            "week; or six with the second in front; this one has %s%zu",
            count > FIELDS ? "at least " : "", count);
    for (size_t i = missing; i < FIELDS; i++) {
        int r = read_field(reader, &fields[i], starts[i - missing], &bits[i]);

        if (r < 0)
            return r;
        cron.is_any_day = cron.is_any_day || (i == DAY && reader->has_star);
        cron.is_any_weekday = cron.is_any_weekday || (i == WEEKDAY && reader->has_star);
    }
    if ((cron.is_any_day || cron.is_any_weekday) && !has_date(bits[MONTH], bits[DAY]))
        return fail(
            reader, starts[DAY - missing],
            "none of these months has such a day, so the expression never matches");
    cron.seconds = bits[SECOND];
    cron.minutes = bits[MINUTE];
    cron.hours = (uint32_t)bits[HOUR];
    cron.days = (uint32_t)bits[DAY];
    cron.months = (uint32_t)bits[MONTH];
    /* Sunday is the first and the last day of the week. */
    cron.weekdays = (uint16_t)((bits[WEEKDAY] | bits[WEEKDAY] >> SUNDAY) & 0x7F);
    *ret = cron;
    return 0;
}

static int read_shorthand(struct reader *reader, struct det_cron *ret)
{
    const char *start = reader->text + strspn(reader->text, " \t");
    struct det_view word = det_view_of(start, strcspn(start, " \t"));
    const char *behind = skip_blanks(start + word.size);

    for (size_t i = 0; i < sizeof shorthands / sizeof shorthands[0]; i++) {
        if (!det_view_is(word, shorthands[i].name))
            continue;
        if (*behind)
            return fail(reader, behind, "remove the text after %s", shorthands[i].name);
        reader->text = shorthands[i].expression;
        return read_fields(reader, ret);
    }
    return fail(reader, start, "use @yearly @monthly @weekly @daily @hourly");
}

int det_cron_parse(const char *text, struct det_cron *ret, struct det_error *reterr)
{
    struct reader reader = { .text = text, .error = reterr };

    if (*skip_blanks(text) == '@')
        return read_shorthand(&reader, ret);
    return read_fields(&reader, ret);
}
