/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* attempt.h - one attempt of a task while it runs, as far as others than attempt.c may know. */
#ifndef DET_TASK_ATTEMPT_H
#define DET_TASK_ATTEMPT_H

#include "task/registry.h"

/* Where the work writes why it fails: DET_TASK_REASON_MAX + 1 bytes. On the thread of the work. */
char *det_attempt_text(struct det_task *task);
/* The work says that it is ready. On the thread of the work. */
void det_attempt_notify(struct det_task *task);

#endif
