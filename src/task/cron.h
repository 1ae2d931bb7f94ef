/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cron.h - counts the times of an expression, and finds them by number; beside
 * <detent/schedule.h>. */
#ifndef DET_TASK_CRON_H
#define DET_TASK_CRON_H

#include <detent/driver/schedule.h>
#include <detent/schedule.h>

/* Number of matching times after `after` and not after `until`. Iterates over days, not over
 * times. */
uint64_t det_cron_count(const struct det_cron *cron, det_time after, det_time until);
/* The matching time number `number`, from 1, after `after`; DET_NEVER if 100 years pass without
 * one, or the result exceeds a det_time. */
det_time det_cron_nth(const struct det_cron *cron, det_time after, uint64_t number);

#endif
