/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* attempt.h - one attempt of a task while it runs, as far as others than attempt.c may know. */
#ifndef DET_TASK_ATTEMPT_H
#define DET_TASK_ATTEMPT_H

#include <detent/driver/world.h>

#include "task/registry.h"

/* Where the work writes why it fails: DET_TASK_REASON_MAX + 1 bytes. On the thread of the work. */
char *det_attempt_text(struct det_task *task);
/* The work says that it is ready. On the thread of the work. */
void det_attempt_notify(struct det_task *task);
/* What runs with its context is told to come to an end. */
void det_attempt_cancel_work(struct det_task *task);
/* Told once. */
void det_attempt_tell_stuck(struct det_task *task);
/* How a process ended, for people. */
void det_process_end_text(const struct det_process_end *end, char *target, size_t size);

#endif
