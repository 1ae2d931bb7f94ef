/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/schedule.h - cron expressions and timetables: for those who write a supervisor. Pure;
 * times are wall times in UTC. */
#ifndef DETENT_DRIVER_SCHEDULE_H
#define DETENT_DRIVER_SCHEDULE_H

#include <detent/schedule.h>

DET_BEGIN

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

/* A schedule while it is in use; by value. */
struct det_timetable {
    det_time every, origin; /* the times are origin + n * every, n of any sign */
    det_time from;          /* none comes before this */
    det_time since;         /* stands for the last run until there is one */
    det_time spread;        /* by this much each is late */
    struct det_cron cron;
    const struct det_zone *zone; /* NULL: UTC */
    enum det_missed missed;
    bool is_cron, is_on; /* not on: there is no schedule */
    uint32_t owed;       /* runs of DET_MISSED_ALL that have passed and come after the next */
};

/* `added` is the wall time of adding, `chance` any random bits, for the spread. DET_ERR_INVALID:
 * `every` and `cron` together, a time that is negative or too short, or a field that has no
 * meaning without the others; DET_ERR_MALFORMED: the expression. */
DET_API int det_timetable_init(
    struct det_timetable *table, const struct det_schedule *schedule, det_time added,
    uint64_t chance, struct det_error *reterr) DET_MUST_CHECK;
/* When the next run is due, given that the last one was due at `last` (0: there was none yet) and
 * that it is `now`: in the past or now means at once. `ret_missed` (may be NULL) is how many times
 * have passed and will not be run. DET_NEVER: there is none.
 *
 * To be asked when a task is added, after each run, and when the clock was set; asked again it
 * says the same. A clock that was set back by less than from one time to the next repeats no time;
 * if it was more, the schedule goes on from what the clock says now, so that it does not stand
 * still. */
DET_API det_time
det_timetable_next(struct det_timetable *table, det_time last, det_time now, uint32_t *ret_missed);
/* Whether a run that was due at `due` and has waited until `now`, because the machine slept or
 * something else kept it, is to be left out: DET_MISSED_SKIP, and it is late by more than
 * DET_LATE_MAX, or the time after it has come. Then it is missed, and the next one is
 * det_timetable_next() with `due` as the last. */
#define DET_LATE_MAX DET_MINUTE
DET_API bool det_timetable_is_over(const struct det_timetable *table, det_time due, det_time now);

DET_END
#endif
