/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_output.c - the log of a run: keeps, prints and writes each line of a task. */
#include "base/assert.h"
#include "base/memory.h"
#include "daemon/daemon.h"
#include "daemon/task_output_internal.h"

int up_log_open(struct up *up)
{
    struct up_log *log = DET_NEW(up_allocator(up), struct up_log);

    det_assert(!up_log(up));
    if (!log)
        return DET_ERR_NO_MEMORY;
    up_lines_init(&log->lines, up_allocator(up));
    det_list_init(&log->followers);
    prefix_init(&log->prefix, up_cli(up), up_options(up)->has_times);
    log->level = DET_LOG_INFO;
    up_set_log(up, log);
    return 0;
}

void up_log_close(struct up *up)
{
    if (!up_log(up))
        return;
    det_assert(!up_log(up)->files && det_list_is_empty(&up_log(up)->followers));
    up_lines_deinit(&up_log(up)->lines);
    DET_DELETE(up_allocator(up), up_log(up));
    up_set_log(up, NULL);
}

void up_log_line(struct up *up, const struct det_line *line)
{
    det_time at = det_world_now(up_cli(up)->world, DET_CLOCK_WALL);

    up_lines_add(&up_log(up)->lines, line, at);
    up_log_files_line(up, line, at);
    if (!serve_log_has_level(up, DET_LOG_INFO))
        return;
    if (up_log(up)->logger)
        serve_log_line(up, line);
    else if (up_has_output_room(up))
        prefix_line(&up_log(up)->prefix, line, at);
}
