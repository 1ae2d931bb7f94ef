/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* calendar.c - days and dates; see calendar.h for how they are counted. */
#include "base/calendar.h"

#define DAYS_PER_400     146097
#define DAYS_BEFORE_1970 719468

bool det_is_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int det_days_in_month(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return days[month - 1] + (month == 2 && det_is_leap_year(year) ? 1 : 0);
}

int64_t det_days_from_date(struct det_date date)
{
    /* 400 years more keep January and February of the year 0 above zero. */
    int64_t year = date.year + 400 - (date.month <= 2 ? 1 : 0);
    int64_t month = (date.month + 9) % 12;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;

    return year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_PER_400 -
           DAYS_BEFORE_1970;
}

struct det_date det_date_from_days(int64_t days)
{
    int64_t count = days + DAYS_BEFORE_1970;
    int64_t cycle = count / DAYS_PER_400;
    int64_t day = count % DAYS_PER_400;
    /* Without the leap days of the cycle every year has 365 days: one in 4 years (1461 days), none
     * in 100 (36525 - 1), and the last day of the cycle is one. */
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    int64_t day_of_year = day - (year * 365 + year / 4 - year / 100);
    int64_t month = (5 * day_of_year + 2) / 153;

    return (struct det_date){
        .year = (int)(cycle * 400 + year + (month >= 10 ? 1 : 0)),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

int det_weekday_of(int64_t days)
{
    /* The first day of the count was a Wednesday. */
    return (int)((days + DAYS_BEFORE_1970 + 3) % 7);
}
