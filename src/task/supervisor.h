/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* supervisor.h - the supervisor's own machine, for tasks.c. */
#ifndef DET_TASK_SUPERVISOR_H
#define DET_TASK_SUPERVISOR_H

#include "task/registry.h"

DET_MUST_CHECK int det_supervisor_start(struct det_tasks *tasks);
/* Ends the machine in any state. */
void det_supervisor_stop(struct det_tasks *tasks);
/* Any thread but the loop: waits until the last task is gone, after a shutdown. */
void det_supervisor_wait_over(struct det_tasks *tasks);

#endif
