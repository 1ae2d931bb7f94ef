/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tasks_internal.h - the tasks of a run, shared by their files. */
#ifndef DET_DAEMON_TASKS_INTERNAL_H
#define DET_DAEMON_TASKS_INTERNAL_H

#include <detent/bus.h>
#include <stdatomic.h>

#include "base/list.h"
#include "daemon/tasks.h"

/* The last failed attempt: events that follow from it are reported with it. */
struct up_failure {
    det_task_id id;
    char reason[DET_TASK_REASON_MAX + 1];
};

struct up_tasks {
    struct det_tasks *supervisor;
    struct det_subscription *notes, *journal_subscription;
    struct det_task_journal *journal;
    struct det_list waits;
    struct up_failure failure;
    struct det_task_end early_end; /* the end with the highest id since the last task was added */
    atomic_uint_fast64_t restarts; /* attempts after the first, of all tasks */
    bool are_over;                 /* no task is left, and none can be added */
};

#endif
