/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* zone_cron.c - the times of a cron expression by the clock of a zone.
 *
 *     UTC   ------- o1 -------|------- o2 -------|------- o1 ------    a stretch per offset
 *     local ------------ 02:00|03:00 ------ 03:00|02:00 -----------
 *                          skipped            repeated
 *
 * Within a stretch the local clock runs like UTC. Where local time jumps:
 *   - An expression that matches every hour follows real time, without jumps.
 *   - Of any other, times in the hour that is skipped run once, at the jump; times in the hour that
 *     is repeated run in the first of the two. */
#include <detent/driver/schedule.h>

#include "base/checked.h"
#include "task/zone.h"

#define ALL_HOURS UINT32_C(0xffffff)
#define STRETCHES 256 /* more than 100 years have */
#define LOOK_BACK (400 * INT64_C(86400))

struct stretch {
    det_time begin, end; /* UTC; the end is exclusive */
    det_time offset, before;
};

static det_time in_time(int64_t seconds)
{
    if (seconds >= DET_NEVER / DET_SECOND)
        return DET_NEVER;
    return seconds <= INT64_MIN / DET_SECOND ? INT64_MIN : seconds * DET_SECOND;
}

static int64_t in_seconds(det_time time)
{
    return time / DET_SECOND - (time % DET_SECOND < 0 ? 1 : 0);
}

/* The last change that is not after `second`, if there is one in the year before it. */
static bool last_change(const struct det_zone *zone, int64_t second, struct det_zone_change *ret)
{
    struct det_zone_change change;
    bool is_found = false;

    for (int64_t at = second - LOOK_BACK; det_zone_next(zone, at, &change) && change.at <= second;
         at = change.at) {
        *ret = change;
        is_found = true;
    }
    return is_found;
}

/* The stretch that contains `time`. If it began long ago, its beginning is unset. */
static struct stretch stretch_at(const struct det_zone *zone, det_time time)
{
    int64_t second = in_seconds(time);
    struct det_zone_change last, next = { .at = INT64_MAX };
    struct stretch stretch = { .begin = INT64_MIN };

    stretch.offset = stretch.before = det_zone_offset(zone, second) * DET_SECOND;
    if (last_change(zone, second, &last)) {
        stretch.begin = in_time(last.at);
        stretch.before = det_zone_offset(zone, last.at - 1) * DET_SECOND;
    }
    (void)det_zone_next(zone, second, &next);
    stretch.end = in_time(next.at);
    return stretch;
}

static bool is_real_time(const struct det_cron *cron)
{
    return (cron->hours & ALL_HOURS) == ALL_HOURS;
}

/* The time that replaces those skipped at the beginning of the stretch; DET_NEVER: none. */
static det_time jump_of(const struct det_cron *cron, const struct stretch *stretch)
{
    det_time from, until;

    if (is_real_time(cron) || stretch->begin == INT64_MIN || stretch->offset <= stretch->before)
        return DET_NEVER;
    from = stretch->begin + stretch->before;
    until = stretch->begin + stretch->offset;
    /* A time at the jump itself also replaces the skipped ones. */
    if (det_cron_count(cron, until - 1, until) > 0 ||
        det_cron_count(cron, from - 1, until - 1) == 0)
        return DET_NEVER;
    return stretch->begin;
}

/* The time in UTC after which the times of the stretch itself count. */
static det_time floor_of(const struct det_cron *cron, const struct stretch *stretch, det_time after)
{
    det_time floor = stretch->begin == INT64_MIN ? INT64_MIN : stretch->begin - 1;

    if (!is_real_time(cron) && stretch->begin != INT64_MIN && stretch->offset < stretch->before)
        floor = stretch->begin + (stretch->before - stretch->offset) - 1;
    return after > floor ? after : floor;
}

static uint64_t count_in(
    const struct det_cron *cron, const struct stretch *stretch, det_time after, det_time until)
{
    det_time jump = jump_of(cron, stretch);
    det_time last = until < stretch->end ? until : stretch->end - 1;
    uint64_t count = jump != DET_NEVER && jump > after && jump <= last;

    return count + det_cron_count(
                       cron, det_add_time(floor_of(cron, stretch, after), stretch->offset),
                       det_add_time(last, stretch->offset));
}

uint64_t det_zone_count(
    const struct det_zone *zone, const struct det_cron *cron, det_time after, det_time until)
{
    struct stretch stretch;
    uint64_t count = 0;

    if (!zone)
        return det_cron_count(cron, after, until);
    if (until <= after)
        return 0;
    stretch = stretch_at(zone, after);
    for (;; stretch = stretch_at(zone, stretch.end)) {
        count += count_in(cron, &stretch, after, until);
        if (stretch.end == DET_NEVER || stretch.end > until)
            return count;
    }
}

static det_time nth_in(
    const struct det_cron *cron, const struct stretch *stretch, det_time after, uint64_t number)
{
    det_time jump = jump_of(cron, stretch), local;

    if (jump != DET_NEVER && jump > after && --number == 0)
        return jump;
    local =
        det_cron_nth(cron, det_add_time(floor_of(cron, stretch, after), stretch->offset), number);
    return local == DET_NEVER ? DET_NEVER : local - stretch->offset;
}

det_time det_zone_nth(
    const struct det_zone *zone, const struct det_cron *cron, det_time after, uint64_t number)
{
    struct stretch stretch;

    if (!zone || after == DET_NEVER)
        return det_cron_nth(cron, after, number);
    stretch = stretch_at(zone, after);
    for (int i = 0; i < STRETCHES; i++, stretch = stretch_at(zone, stretch.end)) {
        uint64_t count;

        if (stretch.end == DET_NEVER)
            return nth_in(cron, &stretch, after, number);
        count = count_in(cron, &stretch, after, stretch.end - 1);
        if (number <= count)
            return nth_in(cron, &stretch, after, number);
        number -= count;
    }
    return DET_NEVER;
}
