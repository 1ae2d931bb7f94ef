/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_output.h - the output of a run: its messages, and lines of its tasks. On the loop's
 * thread. */
#ifndef DET_DAEMON_TASK_OUTPUT_H
#define DET_DAEMON_TASK_OUTPUT_H

#include <detent/task.h>

#include "observe/log_line.h"
#include "terminal/line_prefix.h"

struct up;
struct up_request;

/* task_output.c */

/* 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int up_log_open(struct up *up);
/* Call after the last line. No effect if the log is not open. */
void up_log_close(struct up *up);
/* Keeps a line of a task, writes it to the file of the task, and prints it. */
void up_log_line(struct up *up, const struct det_line *line);

/* log_output.c */

/* Opens the log, or changes it to the settings of the current file. 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int serve_log_open(struct up *up);
void serve_log_close(struct up *up);
/* True if messages of this level are printed. */
bool serve_log_has_level(const struct up *up, enum det_log_level level);
/* Logs a message about `name`. The log must be open. */
void serve_log_note(struct up *up, enum det_log_level level, const char *name, const char *text);
/* Logs a step of an instance of the machine `name`; `trace` NULL: none. */
void serve_log_step(
    struct up *up, enum det_log_level level, const char *name, const char *instance,
    const struct det_trace_context *trace, const char *text);
/* Reports lines that could not be written. */
void serve_log_lost(struct up *up, uint64_t count);
void serve_log_line(struct up *up, const struct det_line *from);

/* task_log_files.c */

void up_log_files_line(struct up *up, const struct det_line *line, det_time at);
void up_log_files_flush(struct up *up);
void up_log_files_close(struct up *up);

/* line_followers.c */

/* Names of tasks; `items` NULL: all. They must outlive the request. */
struct up_names {
    const char *const *items;
    size_t count;
};
/* Sends lines of these tasks, from the newest `count`; `goes_on`: without end. */
void up_follow_lines(
    struct up *up, struct up_request *request, const struct up_names *names, size_t count,
    bool goes_on);
/* Sends events of tasks after this sequence; UP_NEW_EVENTS: only new ones. */
#define UP_NEW_EVENTS UINT64_MAX
void up_follow_events(struct up *up, struct up_request *request, uint64_t after, bool goes_on);
/* Sends available items to all readers, as fast as they read. */
void up_follow_all(struct up *up);

#endif
