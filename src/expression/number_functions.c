/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number_functions.c - functions of numbers and times. */
#include <math.h>

#include "base/calendar.h"
#include "expression/functions.h"

/* A float without a fraction as an int. */
static int put_whole(struct expression_frame *frame, union expression_slot *slot, double whole)
{
    if (whole < -0x1p63 || whole >= 0x1p64) {
        frame->reason = "the result is not between -2^63 and 2^64-1";
        return DET_ERR_OVERFLOW;
    }
    if (whole < 0)
        expression_set_int(slot, (int64_t)whole);
    else
        expression_set_wide(slot, (uint64_t)whole);
    return 0;
}

int det_expression_floor(struct expression_frame *frame, union expression_slot *slots)
{
    return put_whole(frame, &slots[0], floor(slots[0].f));
}

int det_expression_ceil(struct expression_frame *frame, union expression_slot *slots)
{
    return put_whole(frame, &slots[0], ceil(slots[0].f));
}

int det_expression_round(struct expression_frame *frame, union expression_slot *slots)
{
    return put_whole(frame, &slots[0], round(slots[0].f));
}

int det_expression_truncate(struct expression_frame *frame, union expression_slot *slots)
{
    return put_whole(frame, &slots[0], trunc(slots[0].f));
}

int det_expression_abs_int(struct expression_frame *frame, union expression_slot *slots)
{
    det_i128 value = expression_wide(&slots[0]);

    (void)frame;
    expression_set_wide(&slots[0], value < 0 ? -value : value);
    return 0;
}

int det_expression_abs_span(struct expression_frame *frame, union expression_slot *slots)
{
    if (slots[0].i == INT64_MIN) {
        frame->reason = "the result is longer than 292 years";
        return DET_ERR_OVERFLOW;
    }
    return det_expression_abs_int(frame, slots);
}

int det_expression_abs_float(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    slots[0].f = fabs(slots[0].f);
    return 0;
}

/* The quotient that is rounded down; the divisor is positive. */
static int64_t divide_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

int det_expression_call_start_of(struct expression_frame *frame, union expression_slot *slots)
{
    int64_t time = slots[0].i, span = slots[1].i, start;

    if (span <= 0) {
        frame->reason = "start_of needs a duration of more than 0";
        return DET_ERR_RANGE;
    }
    if (__builtin_mul_overflow(divide_down(time, span), span, &start)) {
        frame->reason = "the result is beyond the years 1677 to 2262";
        return DET_ERR_OVERFLOW;
    }
    expression_set_int(&slots[0], start);
    return 0;
}

int det_expression_call_time(struct expression_frame *frame, union expression_slot *slots)
{
    det_time time;

    frame->reason = "the text is not a time such as 2026-01-31T10:00:00Z";
    if (det_parse_time(slots[0].text, &time) < 0)
        return 1;
    expression_set_int(&slots[0], time);
    return 0;
}

static struct det_date date_of(const union expression_slot *slot)
{
    return det_date_from_days(divide_down(slot->i, DET_DAY));
}

int det_expression_call_year(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    expression_set_int(&slots[0], date_of(&slots[0]).year);
    return 0;
}

int det_expression_call_month(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    expression_set_int(&slots[0], date_of(&slots[0]).month);
    return 0;
}

int det_expression_call_day(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    expression_set_int(&slots[0], date_of(&slots[0]).day);
    return 0;
}

int det_expression_call_weekday(struct expression_frame *frame, union expression_slot *slots)
{
    int weekday = det_weekday_of(divide_down(slots[0].i, DET_DAY));

    (void)frame;
    expression_set_int(&slots[0], weekday == 0 ? 7 : weekday);
    return 0;
}

/* What is left of a time after whole units, in smaller units. */
static int put_part(union expression_slot *slot, det_time unit, det_time smaller)
{
    int64_t rest = slot->i % unit;

    expression_set_int(slot, (rest < 0 ? rest + unit : rest) / smaller);
    return 0;
}

int det_expression_call_hour(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    return put_part(&slots[0], DET_DAY, DET_HOUR);
}

int det_expression_call_minute(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    return put_part(&slots[0], DET_HOUR, DET_MINUTE);
}

int det_expression_call_second(struct expression_frame *frame, union expression_slot *slots)
{
    (void)frame;
    return put_part(&slots[0], DET_MINUTE, DET_SECOND);
}
