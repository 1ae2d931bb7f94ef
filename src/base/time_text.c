/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* time_text.c - wall times as RFC 3339 text, in the proleptic Gregorian calendar.
 *
 *   time   = YYYY "-" MM "-" DD "T" hh ":" mm ":" ss [ "." digits ] zone
 *   zone   = "Z" | ( "+" | "-" ) hh ":" mm
 *
 * Years are counted from March, so that the leap day is the last of its year and the months before
 * it have a fixed pattern: five months are 153 days. 400 such years are 146097 days. Day 0 of the
 * count from March of the year 0 is 719468 days before 1970-01-01. */
#include <stdio.h>

#include "base/checked.h"
#include "base/text.h"

#define DAY_SECONDS      86400
#define DAYS_PER_400     146097
#define DAYS_BEFORE_1970 719468
#define FRACTION_DIGITS  9
#define LEAP_SECOND      60

struct date {
    int year;
    int month; /* 1..12 */
    int day;   /* 1..31 */
};

/* What the text says, before it is known to be possible. */
struct reading {
    struct date date;
    int hour, minute, second;
    int64_t nanoseconds;
    bool is_too_fine; /* there is more than nanoseconds can say */
    int offset_sign, offset_hour, offset_minute;
};

static bool is_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && is_leap_year(year) ? 1 : 0);
}

/* Days since 1970-01-01; the year is 0 or later. */
static int64_t days_from_date(struct date date)
{
    /* 400 years more keep January and February of the year 0 above zero. */
    int64_t year = date.year + 400 - (date.month <= 2 ? 1 : 0);
    int64_t month = (date.month + 9) % 12;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;

    return year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_PER_400 -
           DAYS_BEFORE_1970;
}

/* The inverse; the day is in the year 0 or later. */
static struct date date_from_days(int64_t days)
{
    int64_t count = days + DAYS_BEFORE_1970;
    int64_t cycle = count / DAYS_PER_400;
    int64_t day = count % DAYS_PER_400;
    /* Without the leap days of the cycle every year has 365 days: one in 4 years (1461 days), none
     * in 100 (36525 - 1), and the last day of the cycle is one. */
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t day_of_year = day - (year * 365 + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    return (struct date){
        .year = (int)(cycle * 400 + year + (month >= 10 ? 1 : 0)),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

/* ".25" for a quarter of a second, "" for none. */
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
    struct date date;

    if (nanoseconds < 0) {
        nanoseconds += DET_SECOND;
        seconds--;
    }
    days = seconds / DAY_SECONDS - (seconds % DAY_SECONDS < 0 ? 1 : 0);
    second = seconds - days * DAY_SECONDS;
    date = date_from_days(days);
    format_fraction(nanoseconds, fraction);
    (void)snprintf(
        text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", date.year, date.month, date.day,
        (int)(second / 3600), (int)(second / 60 % 60), (int)(second % 60), fraction);
    (void)det_text_copy(target, capacity, text);
    return target;
}

/* Exactly `count` digits. */
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

/* One of the two characters; `second` may be the same as `first`. */
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
    struct date *date = &reading->date;

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
    const struct date *date = &reading->date;

    if (date->month < 1 || date->month > 12)
        return false;
    if (date->day < 1 || date->day > days_in_month(date->year, date->month))
        return false;
    return reading->hour <= 23 && reading->minute <= 59 && reading->second <= LEAP_SECOND &&
           reading->offset_hour <= 23 && reading->offset_minute <= 59 && !reading->is_too_fine;
}

/* Seconds since 1970; a leap second is the second after it, as in every count that has none. */
static int64_t seconds_of(const struct reading *reading)
{
    int clock = reading->hour * 3600 + reading->minute * 60 + reading->second;
    int offset = reading->offset_sign * (reading->offset_hour * 3600 + reading->offset_minute * 60);

    return days_from_date(reading->date) * DAY_SECONDS + clock - offset;
}

/* Leap seconds are only at the end of a month in UTC. */
static bool follows_month(int64_t seconds)
{
    return seconds % DAY_SECONDS == 0 && date_from_days(seconds / DAY_SECONDS).day == 1;
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
