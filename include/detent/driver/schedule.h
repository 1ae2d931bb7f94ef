/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/schedule.h - cron expressions and timetables, for authors of a supervisor. Pure functions;
 * times are wall times in UTC. */
#ifndef DETENT_DRIVER_SCHEDULE_H
#define DETENT_DRIVER_SCHEDULE_H

#include <detent/schedule.h>

DET_BEGIN

/* A parsed expression; a value that owns nothing. */
struct det_cron {
    uint64_t seconds, minutes; /* one bit per value that matches */
    uint32_t hours, days, months;
    uint16_t weekdays;
    bool is_any_day, is_any_weekday;
};

/* DET_ERR_MALFORMED: reterr->offset is the offset of the mistake. */
DET_API int det_cron_parse(const char *text, struct det_cron *ret, struct det_error *reterr)
    DET_MUST_CHECK;
/* The first matching time strictly after `after`; DET_NEVER if there is none within 100 years. */
DET_API det_time det_cron_next(const struct det_cron *cron, det_time after);

/* A schedule in use; a value. */
struct det_timetable {
    det_time every, origin; /* the times are origin + n * every, n of any sign */
    det_time from;          /* no run before this */
    det_time since;         /* used as the time of the last run until there is one */
    det_time spread;        /* every run is delayed by this */
    struct det_cron cron;
    const struct det_zone *zone; /* NULL: UTC */
    enum det_missed missed;
    bool is_cron, is_on; /* is_on false: there is no schedule */
    uint32_t owed;       /* DET_MISSED_ALL: missed runs that are still to be made */
};

/* `added` is the wall time of adding the task; `chance` is any random bits, for the spread.
 * DET_ERR_INVALID: `every` and `cron` together, a time that is negative or too short, or a field
 * that needs another one; DET_ERR_MALFORMED: the expression. */
DET_API int det_timetable_init(
    struct det_timetable *table, const struct det_schedule *schedule, det_time added,
    uint64_t chance, struct det_error *reterr) DET_MUST_CHECK;
/* The due time of the next run, given the due time of the last one (`last`; 0: none yet) and the
 * current time. A time in the past or `now` means at once. `ret_missed` (may be NULL) is the number
 * of times that have passed and will not be run. DET_NEVER: no next run.
 *
 * Call this when a task is added, after each run, and when the clock was set; it has no side
 * effects. If the clock was set back by less than one interval, no time is repeated. If it was set
 * back by more, the schedule continues from the new time of the clock, so that it does not
 * stall. */
DET_API det_time
det_timetable_next(struct det_timetable *table, det_time last, det_time now, uint32_t *ret_missed);
/* True if a run that was due at `due` and has waited until `now`, because of machine sleep or other
 * delays, is to be skipped: the schedule says DET_MISSED_SKIP, and the run is late by more than
 * DET_LATE_MAX or the next time has come. The run then counts as missed; call det_timetable_next()
 * with `due` as the last run. */
#define DET_LATE_MAX DET_MINUTE
DET_API bool det_timetable_is_over(const struct det_timetable *table, det_time due, det_time now);

DET_END
#endif
