/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* zone.c - reads a time zone from a TZif file (RFC 9636): its changes of offset, and the POSIX rule
 * after the last of them. Pure: bytes in, numbers out. */
#include "task/zone.h"

#include <string.h>

#include "base/calendar.h"

#define HEADER_SIZE 44
#define HOUR        3600

/* Reads bytes; the bounds were checked before. */

static int64_t read_number(const uint8_t *at, int size)
{
    uint64_t value = at[0] & 0x80 ? ~UINT64_C(0) : 0;

    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

struct counts {
    size_t is_utc, is_standard, leaps, times, types, letters;
};

static bool read_header(const uint8_t *data, size_t size, struct counts *ret)
{
    size_t *const fields[] = { &ret->is_utc, &ret->is_standard, &ret->leaps,
                               &ret->times,  &ret->types,       &ret->letters };

    if (size < HEADER_SIZE || memcmp(data, "TZif", 4) != 0 || data[4] < '2')
        return false;
    for (size_t i = 0; i < 6; i++) {
        int64_t value = read_number(data + 20 + 4 * i, 4);

        if (value < 0 || value > 100000)
            return false;
        *fields[i] = (size_t)value;
    }
    return true;
}

static size_t block_size(const struct counts *counts, size_t width)
{
    return counts->times * (width + 1) + counts->types * 6 + counts->letters +
           counts->leaps * (width + 4) + counts->is_standard + counts->is_utc;
}

/* The rule: "CET-1CEST,M3.5.0,M10.5.0/3". */

struct text {
    const char *at, *end;
    bool is_bad;
};

static bool take_char(struct text *text, char wanted)
{
    if (text->at == text->end || *text->at != wanted)
        return false;
    text->at++;
    return true;
}

static int take_number(struct text *text, int most)
{
    int value = 0, digits = 0;

    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9' && digits < 4; digits++)
        value = value * 10 + (*text->at++ - '0');
    text->is_bad = text->is_bad || !digits || value > most;
    return value;
}

static void skip_name(struct text *text)
{
    const char *from = text->at;

    if (take_char(text, '<')) {
        while (text->at < text->end && *text->at != '>')
            text->at++;
        text->is_bad = text->is_bad || !take_char(text, '>');
        return;
    }
    while (text->at < text->end && ((*text->at | 32) >= 'a' && (*text->at | 32) <= 'z'))
        text->at++;
    text->is_bad = text->is_bad || text->at == from;
}

/* "[+-]hh[:mm[:ss]]" in seconds. */
static int32_t take_span(struct text *text)
{
    bool is_negative = take_char(text, '-');
    int32_t span;

    if (!is_negative)
        (void)take_char(text, '+');
    span = take_number(text, 167) * HOUR;
    if (take_char(text, ':'))
        span += take_number(text, 59) * 60;
    if (take_char(text, ':'))
        span += take_number(text, 59);
    return is_negative ? -span : span;
}

static struct det_zone_day take_day(struct text *text)
{
    struct det_zone_day day = { .kind = DET_ZONE_DAY, .second = 2 * HOUR };

    if (take_char(text, 'M')) {
        day.kind = DET_ZONE_WEEKDAY;
        day.month = take_number(text, 12);
        text->is_bad = text->is_bad || !take_char(text, '.');
        day.week = take_number(text, 5);
        text->is_bad = text->is_bad || !take_char(text, '.') || !day.month || !day.week;
        day.day = take_number(text, 6);
    } else {
        day.kind = take_char(text, 'J') ? DET_ZONE_JULIAN : DET_ZONE_DAY;
        day.day = take_number(text, 365);
    }
    if (take_char(text, '/'))
        day.second = take_span(text);
    return day;
}

static bool parse_rule(const char *data, size_t size, struct det_zone *zone)
{
    struct text text = { data, data + size, false };

    if (size == 0)
        return true;
    skip_name(&text);
    zone->standard = zone->daylight = -take_span(&text);
    if (text.at == text.end)
        return !text.is_bad;
    skip_name(&text);
    zone->daylight = zone->standard + HOUR;
    if (text.at < text.end && *text.at != ',')
        zone->daylight = -take_span(&text);
    text.is_bad = text.is_bad || !take_char(&text, ',');
    zone->begin = take_day(&text);
    text.is_bad = text.is_bad || !take_char(&text, ',');
    zone->end = take_day(&text);
    zone->has_rule = true;
    return !text.is_bad && text.at == text.end;
}

/* The local second of the year in which the day starts, since 1970. */
static int64_t second_of(const struct det_zone_day *day, int year)
{
    int64_t days;

    if (day->kind == DET_ZONE_WEEKDAY) {
        int first;

        days = det_days_from_date((struct det_date){ year, day->month, 1 });
        first = (day->day - det_weekday_of(days) + 7) % 7 + 7 * (day->week - 1);
        if (first >= det_days_in_month(year, day->month))
            first -= 7;
        days += first;
    } else {
        days = det_days_from_date((struct det_date){ year, 1, 1 }) + day->day;
        /* Without the leap day, from 1. */
        if (day->kind == DET_ZONE_JULIAN)
            days += (det_is_leap_year(year) && day->day >= 60) - 1;
    }
    return days * DET_DAY_SECONDS + day->second;
}

/* The first change by the rule after `second`. */
static struct det_zone_change change_by_rule(const struct det_zone *zone, int64_t second)
{
    int year = det_date_from_days(second / DET_DAY_SECONDS).year - 1;
    struct det_zone_change found = { .at = INT64_MAX };

    for (int last = year + 3; year <= last; year++) {
        const struct det_zone_change changes[] = {
            { second_of(&zone->begin, year) - zone->standard, zone->daylight },
            { second_of(&zone->end, year) - zone->daylight, zone->standard },
        };

        for (size_t i = 0; i < 2; i++)
            if (changes[i].at > second && changes[i].at < found.at)
                found = changes[i];
    }
    return found;
}

bool det_zone_next(const struct det_zone *zone, int64_t second, struct det_zone_change *ret)
{
    for (size_t i = 0; i < zone->count; i++) {
        if (zone->changes[i].at > second) {
            *ret = zone->changes[i];
            return true;
        }
    }
    if (!zone->has_rule)
        return false;
    *ret = change_by_rule(zone, second);
    return ret->at != INT64_MAX;
}

/* By the rule: the offset after the last change before it. */
static int32_t offset_by_rule(const struct det_zone *zone, int64_t second)
{
    struct det_zone_change change = change_by_rule(zone, second - 400 * (int64_t)DET_DAY_SECONDS);
    int32_t offset = zone->standard;

    while (change.at <= second) {
        offset = change.offset;
        change = change_by_rule(zone, change.at);
    }
    return offset;
}

int32_t det_zone_offset(const struct det_zone *zone, int64_t second)
{
    int32_t offset = zone->first;

    if (zone->has_rule && (zone->count == 0 || second >= zone->changes[zone->count - 1].at))
        return offset_by_rule(zone, second);
    for (size_t i = 0; i < zone->count && zone->changes[i].at <= second; i++)
        offset = zone->changes[i].offset;
    return offset;
}

/* Takes the changes after `from`; earlier ones become the first offset. */
static bool take_changes(
    const uint8_t *block, const struct counts *counts, int64_t from, struct det_zone *zone)
{
    const uint8_t *indexes = block + counts->times * 8, *types = indexes + counts->times;

    if (!counts->types)
        return false;
    zone->first = (int32_t)read_number(types, 4);
    for (size_t i = 0; i < counts->times; i++) {
        struct det_zone_change change = { .at = read_number(block + i * 8, 8) };

        if (indexes[i] >= counts->types)
            return false;
        change.offset = (int32_t)read_number(types + indexes[i] * 6, 4);
        if (change.at <= from)
            zone->first = change.offset;
        else if (zone->count == DET_ZONE_CHANGES)
            break;
        else
            zone->changes[zone->count++] = change;
    }
    return true;
}

int det_zone_parse(const void *data, size_t size, det_time from, struct det_zone *ret)
{
    const uint8_t *at = data;
    const char *footer, *end;
    struct counts counts;
    size_t block;

    *ret = (struct det_zone){ .count = 0 };
    if (!read_header(at, size, &counts))
        return DET_ERR_MALFORMED;
    block = HEADER_SIZE + block_size(&counts, 4);
    if (size < block || !read_header(at + block, size - block, &counts))
        return DET_ERR_MALFORMED;
    at += block + HEADER_SIZE;
    size -= block + HEADER_SIZE;
    block = block_size(&counts, 8);
    if (size < block + 2 || at[block] != '\n' || !take_changes(at, &counts, from / DET_SECOND, ret))
        return DET_ERR_MALFORMED;
    footer = (const char *)at + block + 1;
    end = memchr(footer, '\n', size - block - 1);
    if (!end || !parse_rule(footer, (size_t)(end - footer), ret))
        return DET_ERR_MALFORMED;
    if (end > footer && !ret->has_rule && ret->count == 0)
        ret->first = ret->standard;
    return 0;
}
