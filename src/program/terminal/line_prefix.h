/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_prefix.h - merges the output of tasks: each line is preceded by the name of its task.
 *
 *     web      | listening on 8080
 *     database ! the disk is nearly full            ! instead of |: from its error stream
 *     web      | a line of more than 4096 bytes is split; a part that continues ends with \
 *     web      = started, attempt 2                 = : a message of detent about the task
 *
 * A name always has the same color. Text is escaped as in cli_print(); the colors of tasks are kept
 * if colors are enabled, and removed otherwise. With --json each line is an object. */
#ifndef DET_TERMINAL_LINE_PREFIX_H
#define DET_TERMINAL_LINE_PREFIX_H

#include <detent/task.h>

#include "terminal/terminal.h"

/* Longer names are not aligned. */
#define PREFIX_WIDTH_MAX 32

struct prefix {
    struct cli *cli;
    size_t width; /* width of the widest name so far */
    bool has_times;
};

void prefix_init(struct prefix *prefix, struct cli *cli, bool has_times);
/* Reserves the width of a name, so that all lines are aligned from the first one on. */
void prefix_learn(struct prefix *prefix, const char *name);
/* `at` is the wall time. */
void prefix_line(struct prefix *prefix, const struct det_line *line, det_time at);
/* Prints a message of detent about a task. */
void prefix_note(struct prefix *prefix, const char *name, det_time at, const char *format, ...)
    DET_PRINTF(4, 5);
/* Flushes the output, after each turn of the loop. */
void prefix_flush(struct prefix *prefix);

#endif
