/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron.h - the times of an expression by number, beside <detent/schedule.h>. */
#ifndef DET_TASK_CRON_H
#define DET_TASK_CRON_H

#include <detent/driver/schedule.h>
#include <detent/schedule.h>

/* How many times match after `after` and not after `until`. Looks at days, not at times. */
uint64_t det_cron_count(const struct det_cron *cron, det_time after, det_time until);
/* The one number `number`, from 1 on, of those after `after`; DET_NEVER when 100 years pass
 * without one, or when it is too late for a det_time. */
det_time det_cron_nth(const struct det_cron *cron, det_time after, uint64_t number);

#endif
