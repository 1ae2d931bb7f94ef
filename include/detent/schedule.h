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

#include <detent/base.h>

DET_BEGIN

/* What to do about times that passed while the task still ran, or the machine slept, or nobody was
 * there. */
enum det_missed {
    DET_MISSED_SKIP, /* wait for the next time; the default */
    DET_MISSED_ONCE, /* run once, at once, however many were missed */
    DET_MISSED_ALL,  /* run once for each, one after the other, at most DET_MISSED_MAX */
};
#define DET_MISSED_MAX 1000

/* A parsed expression; by value, owns nothing. */
struct det_cron {
    uint64_t seconds, minutes; /* a bit for each that matches */
    uint32_t hours, days, months;
    uint16_t weekdays;
    bool is_any_day, is_any_weekday;
};

/* DET_ERR_MALFORMED; the offset of the mistake is in reterr->offset. */
DET_API int det_cron_parse(const char *text, struct det_cron *ret, struct det_error *reterr)
    DET_MUST_CHECK;
/* The first time strictly after `after` that matches; DET_NEVER when there is none in 100 years. */
DET_API det_time det_cron_next(const struct det_cron *cron, det_time after);

/* Either `every` or `cron`; all zero: no schedule. */
struct det_schedule {
    det_time every;   /* fixed rate, from `from` on; at least DET_DELAY_FLOOR */
    det_time from;    /* wall; 0: the first run is one `every` after the task was added */
    const char *cron; /* borrowed; an expression */
    enum det_missed missed;
    det_time spread; /* each run is late by a random time up to this, the same for all of them */
};

/* A schedule while it is in use; by value. */
struct det_timetable {
    det_time every, from, spread;
    struct det_cron cron;
    enum det_missed missed;
    bool is_cron, is_on; /* not on: there is no schedule */
    uint32_t owed;       /* runs of DET_MISSED_ALL that are still to come */
};

/* `added` is the wall time of adding, `chance` any random bits, for the spread. */
DET_API int det_timetable_init(
    struct det_timetable *table, const struct det_schedule *schedule, det_time added,
    uint64_t chance, struct det_error *reterr) DET_MUST_CHECK;
/* When the next run is due, given that the last one was due at `last` (0: there was none yet) and
 * that it is `now`: in the past or now means at once. `ret_missed` (may be NULL) is how many times
 * have passed and will not be run. */
DET_API det_time
det_timetable_next(struct det_timetable *table, det_time last, det_time now, uint32_t *ret_missed);

DET_END
#endif
