/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_output_internal.h - the log of a run, shared by its files. */
#ifndef DET_DAEMON_TASK_OUTPUT_INTERNAL_H
#define DET_DAEMON_TASK_OUTPUT_INTERNAL_H

#include "base/list.h"
#include "daemon/line_buffer.h"
#include "daemon/task_output.h"

struct up_log {
    struct det_logger *logger; /* NULL: plain output or JSON data */
    enum det_log_level level;
    struct prefix prefix;
    struct up_lines lines;     /* the newest lines */
    struct up_log_file *files; /* open log files */
    struct det_list followers;
};

#endif
