/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* schedule.h - when a task runs by the clock: every so often, or by a cron expression. Pure; times
 * are wall times in UTC.
 *
 * A cron expression has five fields, minute hour day-of-month month day-of-week, or six with
 * seconds in front, each a `*`, a number, a range a-b, a list a,b, a step (star)/n or a-b/n; months
 * and days also by their first three letters, Sunday is 0 and 7. When both day fields are
 * restricted, either matches, as in cron; a field with a star in it, also with a step, is not
 * restricted: then both must match. Also: @yearly @monthly @weekly @daily @hourly. An expression
 * that never matches (30 February) is refused. */
#ifndef DETENT_SCHEDULE_H
#define DETENT_SCHEDULE_H

#include <detent/policy.h>

DET_BEGIN

/* What to do about times that passed while the task still ran, the machine slept, or no process
 * ran. */
enum det_missed {
    DET_MISSED_SKIP, /* wait for the next time; the default */
    DET_MISSED_ONCE, /* run once, at once, however many were missed */
    DET_MISSED_ALL,  /* run once for each, one after the other, at most DET_MISSED_MAX */
};
#define DET_MISSED_MAX 1000

/* The offsets of a time zone, for cron expressions that mean local time. By value. */
#define DET_ZONE_CHANGES 256
struct det_zone_change {
    int64_t at;     /* second since 1970, UTC */
    int32_t offset; /* seconds that local time is ahead of UTC from then on */
};
struct det_zone_day {
    enum { DET_ZONE_DAY, DET_ZONE_JULIAN, DET_ZONE_WEEKDAY } kind;
    int month, week, day;
    int32_t second; /* of the local day; negative or past 24 h: another day */
};
struct det_zone {
    struct det_zone_change changes[DET_ZONE_CHANGES]; /* in their order */
    size_t count;
    int32_t first; /* the offset before the first change */
    bool has_rule; /* after the last change: */
    int32_t standard, daylight;
    struct det_zone_day begin, end; /* of daylight saving time */
};
/* Reads a TZif file, such as /usr/share/zoneinfo/Europe/Berlin, of version 2 or later; what was
 * before `from` (wall) is left out. DET_ERR_MALFORMED. */
DET_API int det_zone_parse(const void *data, size_t size, det_time from, struct det_zone *ret)
    DET_MUST_CHECK;

/* Either `every` or `cron`; all zero: no schedule. */
struct det_schedule {
    det_time every;   /* fixed rate, from `from` on; at least DET_DELAY_FLOOR */
    det_time from;    /* wall, of `every`; 0: the first run is one `every` after the task was added;
                         in the past: its times go on, those before adding were not missed */
    const char *cron; /* borrowed; an expression */
    /* Of `cron`: by the clock of this zone; NULL: UTC. A task copies it; a timetable and a durable
     * schedule borrow it. An expression that matches every hour follows real time. Of any other,
     * times in an hour that the clock skips run once, at the jump; times in an hour that is
     * repeated run in the first of the two. */
    const struct det_zone *zone;
    enum det_missed missed;
    det_time spread; /* each run is late by a random time up to this, the same for all of them */
};

DET_END
#endif
