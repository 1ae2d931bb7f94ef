/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_prefix.h - the output of many tasks as one: each line with the name of its task before it.
 *
 *     web      | listening on 8080
 *     database ! the disk is nearly full            ! instead of |: from its error stream
 *     web      | a line of more than 4096 bytes is told in pieces, all but the last end with \
 *     web      = started, attempt 2                 = : detent about the task
 *
 * A name has always the same color. What could steer a terminal is escaped as in cli_print(); the
 * colors of the tasks are kept where there are colors, and left out elsewhere. With --json each
 * line is an object. */
#ifndef DET_TERMINAL_LINE_PREFIX_H
#define DET_TERMINAL_LINE_PREFIX_H

#include <detent/task.h>

#include "terminal/terminal.h"

/* Longer names stand out. */
#define PREFIX_WIDTH_MAX 32

struct prefix {
    struct cli *cli;
    size_t width; /* of the widest name up to now */
    bool has_times;
};

void prefix_init(struct prefix *prefix, struct cli *cli, bool has_times);
/* Makes room for a name, so that later lines stand below each other from the first one on. */
void prefix_learn(struct prefix *prefix, const char *name);
/* `at` is the wall time. */
void prefix_line(struct prefix *prefix, const struct det_line *line, det_time at);
/* What the program says about a task. */
void prefix_note(struct prefix *prefix, const char *name, det_time at, const char *format, ...)
    DET_PRINTF(4, 5);
/* To the reader with it: after each turn of the loop. */
void prefix_flush(struct prefix *prefix);

#endif
