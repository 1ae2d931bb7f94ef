/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schedule.h - when a task runs by the clock: at a fixed rate, or by a cron expression. Pure; times
 * are wall times in UTC.
 *
 * A cron expression has five fields, minute hour day-of-month month day-of-week, or six with
 * seconds in front. Each field is a `*`, a number, a range a-b, a list a,b, or a step (star)/n or
 * a-b/n; months and days may be their first three letters, Sunday is 0 and 7. If both day fields
 * are restricted, either matches, as in cron; a field with a star, also with a step, is not
 * restricted: then both must match. Also: @yearly @monthly @weekly @daily @hourly. An expression
 * that never matches (30 February) is refused. */
#ifndef DETENT_SCHEDULE_H
#define DETENT_SCHEDULE_H

#include <detent/policy.h>

DET_BEGIN

/* The handling of times that passed while the task still ran, the machine slept, or no process
 * ran. */
enum det_missed {
    DET_MISSED_SKIP, /* wait for the next time; the default */
    DET_MISSED_ONCE, /* run once at once, however many times were missed */
    DET_MISSED_ALL,  /* run once for each missed time, one after the other, at most
                      * DET_MISSED_MAX */
};
#define DET_MISSED_MAX 1000

/* The offsets of a time zone, for cron expressions in local time. A value. */
#define DET_ZONE_CHANGES 256
struct det_zone_change {
    int64_t at;     /* second since 1970, UTC */
    int32_t offset; /* seconds that local time is ahead of UTC from then on */
};
struct det_zone_day {
    enum { DET_ZONE_DAY, DET_ZONE_JULIAN, DET_ZONE_WEEKDAY } kind;
    int month, week, day;
    int32_t second; /* second of the local day; negative or past 24 h: another day */
};
struct det_zone {
    struct det_zone_change changes[DET_ZONE_CHANGES]; /* in their order */
    size_t count;
    int32_t first; /* the offset before the first change */
    bool has_rule; /* the fields below apply after the last change */
    int32_t standard, daylight;
    struct det_zone_day begin, end; /* of daylight saving time */
};
/* Reads a TZif file of version 2 or later, such as /usr/share/zoneinfo/Europe/Berlin; changes
 * before `from` (wall time) are omitted. DET_ERR_MALFORMED. */
DET_API int det_zone_parse(const void *data, size_t size, det_time from, struct det_zone *ret)
    DET_MUST_CHECK;

/* Either `every` or `cron`; all zero: no schedule. */
struct det_schedule {
    det_time every;   /* fixed rate; at least DET_DELAY_FLOOR */
    det_time from;    /* wall time at which `every` starts; 0: one `every` after the task was added;
                       * in the past: the times continue from it, and times before adding do not
                       * count as missed */
    const char *cron; /* a cron expression; borrowed */
    /* Zone of `cron`; NULL: UTC. A task copies it; a timetable and a durable schedule borrow it. An
     * expression that matches every hour follows real time. With any other, times in an hour that
     * the clock skips run once, at the jump; times in a repeated hour run in the first one. */
    const struct det_zone *zone;
    enum det_missed missed;
    det_time spread; /* upper limit of a random delay, which is the same for all runs */
};

DET_END
#endif
