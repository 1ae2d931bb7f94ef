/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* time_text.c - wall times as RFC 3339 text, in the proleptic Gregorian calendar.
 *
 *   time   = YYYY "-" MM "-" DD "T" hh ":" mm ":" ss [ "." digits ] zone
 *   zone   = "Z" | ( "+" | "-" ) hh ":" mm */
#include <stdio.h>

#include "base/calendar.h"
#include "base/checked.h"
#include "base/text.h"

#define FRACTION_DIGITS 9
#define LEAP_SECOND     60

/* Fields of the text, before their ranges are checked. */
struct reading {
    struct det_date date;
    int hour, minute, second;
    int64_t nanoseconds;
    bool is_too_fine; /* more digits than nanoseconds */
    int offset_sign, offset_hour, offset_minute;
};

/* Writes ".25" for a quarter of a second, "" for none. */
static void format_fraction(int64_t nanoseconds, char target[FRACTION_DIGITS + 2])
{
    int64_t unit = DET_SECOND;
    size_t at = 0;

    if (nanoseconds > 0)
        target[at++] = '.';
    while (nanoseconds > 0) {
        unit /= 10;
        target[at++] = (char)('0' + nanoseconds / unit);
        nanoseconds %= unit;
    }
    target[at] = '\0';
}

char *det_format_time(det_time wall, char *target, size_t capacity)
{
    char text[2 * DET_TIME_TEXT];
    char fraction[FRACTION_DIGITS + 2];
    int64_t nanoseconds = wall % DET_SECOND;
    int64_t seconds = wall / DET_SECOND;
    int64_t days, second;
    struct det_date date;

    if (nanoseconds < 0) {
        nanoseconds += DET_SECOND;
        seconds--;
    }
    days = seconds / DET_DAY_SECONDS - (seconds % DET_DAY_SECONDS < 0 ? 1 : 0);
    second = seconds - days * DET_DAY_SECONDS;
    date = det_date_from_days(days);
    format_fraction(nanoseconds, fraction);
    (void)snprintf(
        text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", date.year, date.month, date.day,
        (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60), fraction);
    (void)det_text_copy(target, capacity, text);
    return target;
}

char *det_format_time_basic(det_time wall, char *target, size_t capacity)
{
    char text[DET_TIME_TEXT];
    size_t size = 0;

    (void)det_format_time(wall, text, sizeof text);
    for (const char *from = text; *from; from++)
        if (*from != '-' && *from != ':')
            text[size++] = *from;
    text[size] = '\0';
    (void)det_text_copy(target, capacity, text);
    return target;
}

/* Reads exactly `count` digits. */
static bool take_number(struct det_view *text, size_t count, int *ret)
{
    int value = 0;

    if (text->size < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        char c = text->data[i];

        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *text = det_view_of(text->data + count, text->size - count);
    *ret = value;
    return true;
}

/* Reads one of the two characters; `second` may equal `first`. */
static bool take_either(struct det_view *text, char first, char second)
{
    if (text->size == 0 || (text->data[0] != first && text->data[0] != second))
        return false;
    *text = det_view_of(text->data + 1, text->size - 1);
    return true;
}

static bool take_char(struct det_view *text, char c)
{
    return take_either(text, c, c);
}

static bool take_fraction(struct det_view *text, struct reading *reading)
{
    int64_t unit = DET_SECOND;
    size_t count = 0;
    int digit;

    reading->nanoseconds = 0;
    if (!take_char(text, '.'))
        return true;
    while (take_number(text, 1, &digit)) {
        unit /= 10;
        reading->nanoseconds += digit * unit;
        reading->is_too_fine = reading->is_too_fine || (unit == 0 && digit != 0);
        count++;
    }
    return count > 0;
}

static bool take_zone(struct det_view *text, struct reading *reading)
{
    if (take_either(text, 'Z', 'z'))
        return true;
    reading->offset_sign = take_char(text, '+') ? 1 : take_char(text, '-') ? -1 : 0;
    return reading->offset_sign != 0 && take_number(text, 2, &reading->offset_hour) &&
           take_char(text, ':') && take_number(text, 2, &reading->offset_minute);
}

static bool take_time(struct det_view text, struct reading *reading)
{
    struct det_date *date = &reading->date;

    *reading = (struct reading){ 0 };
    return take_number(&text, 4, &date->year) && take_char(&text, '-') &&
           take_number(&text, 2, &date->month) && take_char(&text, '-') &&
           take_number(&text, 2, &date->day) && take_either(&text, 'T', 't') &&
           take_number(&text, 2, &reading->hour) && take_char(&text, ':') &&
           take_number(&text, 2, &reading->minute) && take_char(&text, ':') &&
           take_number(&text, 2, &reading->second) && take_fraction(&text, reading) &&
           take_zone(&text, reading) && text.size == 0;
}

static bool is_possible(const struct reading *reading)
{
    const struct det_date *date = &reading->date;

    if (date->month < 1 || date->month > 12)
        return false;
    if (date->day < 1 || date->day > det_days_in_month(date->year, date->month))
        return false;
    return reading->hour <= 23 && reading->minute <= 59 && reading->second <= LEAP_SECOND &&
           reading->offset_hour <= 23 && reading->offset_minute <= 59 && !reading->is_too_fine;
}

/* Seconds since 1970. A leap second counts as the following second. */
static int64_t seconds_of(const struct reading *reading)
{
    int clock = reading->hour * 3600 + reading->minute * 60 + reading->second;
    int offset = reading->offset_sign * (reading->offset_hour * 3600 + reading->offset_minute * 60);

    return det_days_from_date(reading->date) * DET_DAY_SECONDS + clock - offset;
}

/* Leap seconds occur only at the end of a month in UTC. */
static bool follows_month(int64_t seconds)
{
    return seconds % DET_DAY_SECONDS == 0 && det_date_from_days(seconds / DET_DAY_SECONDS).day == 1;
}

int det_parse_time(struct det_view text, det_time *ret)
{
    struct reading reading;
    int64_t seconds;
    det_i128 wall;

    if (!take_time(text, &reading))
        return DET_ERR_MALFORMED;
    if (!is_possible(&reading))
        return DET_ERR_RANGE;
    seconds = seconds_of(&reading);
    wall = (det_i128)seconds * DET_SECOND + reading.nanoseconds;
    if (wall < INT64_MIN || wall > INT64_MAX)
        return DET_ERR_RANGE;
    if (reading.second == LEAP_SECOND && !follows_month(seconds))
        return DET_ERR_RANGE;
    *ret = (det_time)wall;
    return 0;
}
