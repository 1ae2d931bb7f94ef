/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* project_internal.h - the current file, for its own files and those of a reload. */
#ifndef DET_DAEMON_PROJECT_INTERNAL_H
#define DET_DAEMON_PROJECT_INTERNAL_H

#include "config/project_file.h"
#include "daemon/project.h"
#include "os/os.h"

/* Where a task of the file is. */
struct up_configured {
    det_task_id id;  /* 0: the supervisor does not have it */
    bool is_pending; /* it waits for its dependencies before it is added */
    bool has_ended;
    bool is_replaced;        /* once it has ended, it restarts as the new file defines it */
    bool is_reported;        /* the reason why it is held was printed */
    struct det_task_end end; /* the last one */
    det_time at;             /* wall: when it became pending, or ended */
};

/* The current detent.yaml, and which of its tasks run. */
struct up_project {
    struct config_file file;
    char folder[DET_PATH_MAX];        /* of the file */
    bool *is_selected;                /* by index of the tasks of the file */
    struct up_configured *configured; /* the same */
    size_t selected_count;
    bool serves_machines;
};

#endif
