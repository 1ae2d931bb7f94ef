/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* zone.h - the offsets of a time zone, beside <detent/schedule.h>. Seconds are those since 1970 in
 * UTC. */
#ifndef DET_TASK_ZONE_H
#define DET_TASK_ZONE_H

#include <detent/driver/schedule.h>

#include "task/cron.h"

/* Seconds that local time is ahead of UTC. */
int32_t det_zone_offset(const struct det_zone *zone, int64_t second);
/* The first change after `second`; false: none. */
bool det_zone_next(const struct det_zone *zone, int64_t second, struct det_zone_change *ret);

/* Like det_cron_count() and det_cron_nth(), by the clock of the zone; NULL: UTC. */
uint64_t det_zone_count(
    const struct det_zone *zone, const struct det_cron *cron, det_time after, det_time until);
det_time det_zone_nth(
    const struct det_zone *zone, const struct det_cron *cron, det_time after, uint64_t number);

#endif
