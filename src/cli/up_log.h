/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* up_log.h - what `detent up` and `detent serve` print where a log is wanted: a JSON object for
 * each note and for each line of a task, instead of lines for people. On the loop's thread. */
#ifndef DET_CLI_UP_LOG_H
#define DET_CLI_UP_LOG_H

#include "cli/up.h"
#include "observe/log.h"

/* Before anything has something to say; close it in either case. */
DET_MUST_CHECK int up_log_open(struct up *up, struct det_error *reterr);
void up_log_close(struct up *up);
/* That of the file, which may be another one by now. */
void up_log_set_level(struct up *up);
/* Whether it is important enough, also for people. */
bool up_log_is_told(const struct up *up, enum det_log_level level);
/* Whether it prints a log; else lines for people, or the objects of --json. */
bool up_is_logging(const struct up *up);

/* What detent has to say about a task, a machine or itself. */
void up_log_note(struct up *up, enum det_log_level level, const char *name, const char *text);
/* What a task has said. */
void up_log_line(struct up *up, const struct det_line *said);

#endif
