/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron_time.c - the times of an expression.
 *
 * A day matches or not; every matching day has the same times, as many as hours * minutes *
 * seconds. So times are counted and found by iterating over days, and within a day by number:
 *
 *     number  0 1 2 ... S-1 | S ...        of the day
 *     second  the bits of `seconds`, repeated; minutes and hours advance before them */
#include <detent/driver/schedule.h>

#include "base/calendar.h"
#include "base/checked.h"
#include "task/cron.h"

#define SEARCH_DAYS 36525 /* 100 years */

static uint64_t bit_count(uint64_t bits)
{
    return (uint64_t)__builtin_popcountll(bits);
}

/* Bits below `end`, which is less than 64. */
static uint64_t bits_below(uint64_t bits, int64_t end)
{
    return bit_count(bits & ((UINT64_C(1) << end) - 1));
}

static bool has_bit(uint64_t bits, int64_t bit)
{
    return bits >> bit & 1;
}

/* The bit with this index, from 0; it must exist. */
static int64_t bit_at(uint64_t bits, uint64_t index)
{
    for (; index; index--)
        bits &= bits - 1;
    return __builtin_ctzll(bits);
}

static uint64_t times_per_day(const struct det_cron *cron)
{
    return bit_count(cron->hours) * bit_count(cron->minutes) * bit_count(cron->seconds);
}

/* Number of times of a day before its second `second`, from 0 to DET_DAY_SECONDS. */
static uint64_t times_before(const struct det_cron *cron, int64_t second)
{
    int64_t hour = second / 3600, minute = second / 60 % 60;
    uint64_t per_minute = bit_count(cron->seconds);
    uint64_t per_hour = bit_count(cron->minutes) * per_minute;
    uint64_t count = bits_below(cron->hours, hour) * per_hour;

    if (!has_bit(cron->hours, hour))
        return count;
    count += bits_below(cron->minutes, minute) * per_minute;
    if (!has_bit(cron->minutes, minute))
        return count;
    return count + bits_below(cron->seconds, second % 60);
}

/* The inverse: the second of the day of its time number `index`, from 0. */
static int64_t second_at(const struct det_cron *cron, uint64_t index)
{
    uint64_t per_minute = bit_count(cron->seconds);
    uint64_t minutes = bit_count(cron->minutes);
    uint64_t minute = index / per_minute;

    return bit_at(cron->hours, minute / minutes) * 3600 +
           bit_at(cron->minutes, minute % minutes) * 60 + bit_at(cron->seconds, index % per_minute);
}

static bool is_day(const struct det_cron *cron, struct det_date date, int64_t days)
{
    bool by_day = has_bit(cron->days, date.day);
    bool by_weekday = has_bit(cron->weekdays, det_weekday_of(days));

    return cron->is_any_day || cron->is_any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* The first matching day from `days` to `last`; a later day if there is none. */
static int64_t find_day(const struct det_cron *cron, int64_t days, int64_t last)
{
    while (days <= last) {
        struct det_date date = det_date_from_days(days);

        if (!has_bit(cron->months, date.month))
            days += det_days_in_month(date.year, date.month) - date.day + 1;
        else if (!is_day(cron, date, days))
            days++;
        else
            return days;
    }
    return last + 1;
}

/* Splits a wall time into a day and its second; fractions are dropped. */
static void split(det_time wall, int64_t *ret_days, int64_t *ret_second)
{
    int64_t seconds = wall / DET_SECOND - (wall % DET_SECOND < 0 ? 1 : 0);

    *ret_days = seconds / DET_DAY_SECONDS - (seconds % DET_DAY_SECONDS < 0 ? 1 : 0);
    *ret_second = seconds - *ret_days * DET_DAY_SECONDS;
}

static det_time join(int64_t days, int64_t second)
{
    det_i128 wall = ((det_i128)days * DET_DAY_SECONDS + second) * DET_SECOND;

    return wall < DET_NEVER ? (det_time)wall : DET_NEVER;
}

uint64_t det_cron_count(const struct det_cron *cron, det_time after, det_time until)
{
    uint64_t per_day = times_per_day(cron), count = 0;
    int64_t first, first_second, last, last_second;

    if (until <= after)
        return 0;
    split(after, &first, &first_second);
    split(until, &last, &last_second);
    for (int64_t day = find_day(cron, first, last); day <= last;
         day = find_day(cron, day + 1, last))
        count += per_day;
    if (find_day(cron, first, first) == first)
        count -= times_before(cron, first_second + 1);
    if (find_day(cron, last, last) == last)
        count -= per_day - times_before(cron, last_second + 1);
    return count;
}

det_time det_cron_nth(const struct det_cron *cron, det_time after, uint64_t number)
{
    uint64_t per_day = times_per_day(cron);
    int64_t first, second, day, last;

    if (after == DET_NEVER || per_day == 0)
        return DET_NEVER;
    split(after, &first, &second);
    /* From here on numbers count from the beginning of the first day. */
    if (find_day(cron, first, first) == first)
        number += times_before(cron, second + 1);
    for (day = first;; day++) {
        last = day + SEARCH_DAYS;
        day = find_day(cron, day, last);
        if (day > last)
            return DET_NEVER;
        if (number <= per_day)
            return join(day, second_at(cron, number - 1));
        number -= per_day;
    }
}

det_time det_cron_next(const struct det_cron *cron, det_time after)
{
    return det_cron_nth(cron, after, 1);
}
