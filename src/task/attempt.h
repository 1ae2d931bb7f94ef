/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* attempt.h - the interface of a running attempt for other files. */
#ifndef DET_TASK_ATTEMPT_H
#define DET_TASK_ATTEMPT_H

#include <detent/driver/world.h>

#include "task/registry.h"

/* The buffer for the reason of the failure: DET_TASK_REASON_MAX + 1 bytes. On the thread of the
 * work. */
char *det_attempt_text(struct det_task *task);
/* Reports readiness. On the thread of the work. */
void det_attempt_notify(struct det_task *task);
/* Asks everything that uses its context to stop. */
void det_attempt_cancel_work(struct det_task *task);
/* Published once. */
void det_attempt_report_stuck(struct det_task *task);
/* Describes the end of a process, for people. */
void det_process_end_text(const struct det_process_end *end, char *target, size_t size);

#endif
