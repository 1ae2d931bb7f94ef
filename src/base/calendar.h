/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* calendar.h - converts dates of the proleptic Gregorian calendar to days since 1970-01-01, and
 * back.
 *
 * Years are counted from March, so that the leap day is the last of its year and the months before
 * it have a fixed pattern: five months are 153 days. 400 such years are 146097 days. Day 0 of the
 * count from March of the year 0 is 719468 days before 1970-01-01. */
#ifndef DET_BASE_CALENDAR_H
#define DET_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#define DET_DAY_SECONDS 86400

struct det_date {
    int year;
    int month; /* 1..12 */
    int day;   /* 1..31 */
};

bool det_is_leap_year(int year);
int det_days_in_month(int year, int month);
/* Days since 1970-01-01; the year is 0 or later. */
int64_t det_days_from_date(struct det_date date);
/* The inverse; the day is in March of the year 0 or later, here and below. */
struct det_date det_date_from_days(int64_t days);
/* 0 is Sunday. */
int det_weekday_of(int64_t days);

#endif
