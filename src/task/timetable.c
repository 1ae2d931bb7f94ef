/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* timetable.c - the next time of a schedule, and the missed ones.
 *
 *     base    t1    t2    t3    t4    now    t5    t6        t: the times of the schedule
 *             \______ passed ______/
 *
 *     SKIP    t5 is next, 4 are missed
 *     ONCE    t4 is next, at once; 3 are missed
 *     ALL     t1 is next, at once; none is missed, 3 are owed
 *
 * Invariants, as long as the clock goes forward:
 *   1. Each time after the first is run once or counted as missed once.
 *   2. A due time is after the last one.
 *   3. A query changes only `owed`, which depends on the query alone.
 *
 * Computations use the times of the schedule; the spread is subtracted from inputs and added to
 * results. */
#include <detent/driver/schedule.h>

#include "base/checked.h"
#include "base/text.h"
#include "task/cron.h"
#include "task/spread.h"
#include "task/zone.h"

/* Number of missed times that are still run. */
static uint64_t runs_max(enum det_missed missed)
{
    switch (missed) {
    case DET_MISSED_SKIP:
        return 0;
    case DET_MISSED_ONCE:
        return 1;
    case DET_MISSED_ALL:
        return DET_MISSED_MAX;
    }
    return 0;
}

/* The number of the last time of `every` that is not after `at`. */
static det_i128 number_at(const struct det_timetable *table, det_time at)
{
    det_i128 span = (det_i128)at - table->origin;

    return span / table->every - (span % table->every < 0 ? 1 : 0);
}

static det_time bounded(const struct det_timetable *table, det_time after)
{
    return after < table->from ? table->from - 1 : after;
}

/* Number of times after `after` and not after `until`. */
static uint64_t count_times(const struct det_timetable *table, det_time after, det_time until)
{
    after = bounded(table, after);
    if (until <= after)
        return 0;
    if (table->is_cron)
        return det_zone_count(table->zone, &table->cron, after, until);
    return (uint64_t)(number_at(table, until) - number_at(table, after));
}

/* The time number `number`, from 1, after `after`. */
static det_time find_time(const struct det_timetable *table, det_time after, uint64_t number)
{
    det_i128 time;

    after = bounded(table, after);
    if (table->is_cron)
        return det_zone_nth(table->zone, &table->cron, after, number);
    time = table->origin + (number_at(table, after) + number) * table->every;
    return time < DET_NEVER ? (det_time)time : DET_NEVER;
}

static int invalid(struct det_error *reterr, const char *text)
{
    return det_error_set(reterr, DET_ERR_INVALID, "%s", text);
}

static int check(const struct det_schedule *schedule, struct det_error *reterr)
{
    char floor[DET_DURATION_TEXT];

    if (schedule->every && schedule->cron)
        return invalid(reterr, "a schedule has `every` or `cron`, not both");
    if (schedule->every && schedule->every < DET_DELAY_FLOOR)
        return det_error_set(
            reterr, DET_ERR_INVALID, "`every` is at least %s",
            det_format_duration(DET_DELAY_FLOOR, floor, sizeof floor));
    if (schedule->from && !schedule->every)
        return invalid(reterr, "`from` is for `every`; a cron expression defines its own times");
    if (schedule->zone && !schedule->cron)
        return invalid(reterr, "a time zone is for `cron`");
    if (schedule->from < 0 || schedule->spread < 0)
        return invalid(reterr, "`from` and `spread` are not negative");
    if ((unsigned)schedule->missed > DET_MISSED_ALL)
        return invalid(reterr, "`missed` is invalid; use skip, once or all");
    if (!schedule->every && !schedule->cron && (schedule->spread || schedule->missed))
        return invalid(reterr, "`spread` and `missed` need `every` or `cron`");
    return 0;
}

int det_timetable_init(
    struct det_timetable *table, const struct det_schedule *schedule, det_time added,
    uint64_t chance, struct det_error *reterr)
{
    struct det_timetable made = {
        .every = schedule->every,
        .origin = schedule->from ? schedule->from : added,
        .from = schedule->from ? schedule->from : INT64_MIN,
        .since = added,
        .zone = schedule->zone,
        .missed = schedule->missed,
        .is_cron = schedule->cron != NULL,
        .is_on = schedule->cron || schedule->every,
    };
    int r = check(schedule, reterr);

    if (r == 0 && schedule->cron)
        r = det_cron_parse(schedule->cron, &made.cron, reterr);
    if (r < 0)
        return r;
    made.spread = det_spread(0, schedule->spread, chance);
    /* A user-defined time equal to now has not passed yet. */
    if (schedule->from)
        made.since = (added > schedule->from ? added : schedule->from) - 1;
    *table = made;
    return 0;
}

/* The time of the schedule after which the next one is searched. */
static det_time base_of(const struct det_timetable *table, det_time last, det_time now)
{
    det_time base = last ? det_add_time(last, -table->spread) : table->since;
    det_time nominal_now = det_add_time(now, -table->spread);

    if ((last ? last : table->since) <= now)
        return base;
    /* The clock was set back (or the first time is in the future). Unless there are times before
     * the last one, none can be repeated. */
    return find_time(table, nominal_now, 1) < base ? nominal_now : base;
}

det_time det_timetable_next(
    struct det_timetable *table, det_time last, det_time now, uint32_t *ret_missed)
{
    uint64_t most = runs_max(table->missed), passed, runs, missed;
    det_time base, until, due;

    table->owed = 0;
    if (ret_missed)
        *ret_missed = 0;
    if (!table->is_on)
        return DET_NEVER;
    base = base_of(table, last, now);
    /* Unless missed times are run, a time that is due right now has not passed. */
    until = det_add_time(now, -table->spread - (most ? 0 : 1));
    passed = count_times(table, base, until);
    runs = passed < most ? passed : most;
    missed = passed - runs;
    due = find_time(table, base, missed + 1);
    table->owed = runs ? (uint32_t)(runs - 1) : 0;
    if (ret_missed)
        *ret_missed = missed < UINT32_MAX ? (uint32_t)missed : UINT32_MAX;
    return det_add_time(due, table->spread);
}

bool det_timetable_is_over(const struct det_timetable *table, det_time due, det_time now)
{
    det_time next;

    if (!table->is_on || table->missed != DET_MISSED_SKIP || due >= now)
        return false;
    next = find_time(table, det_add_time(due, -table->spread), 1);
    return (uint64_t)now - (uint64_t)due > (uint64_t)DET_LATE_MAX ||
           det_add_time(next, table->spread) <= now;
}
