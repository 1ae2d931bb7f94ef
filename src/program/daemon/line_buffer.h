/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_buffer.h - the newest lines of tasks, limited in number and bytes.
 *
 * Each line has a number, from 1. A reader keeps the number of the last line that it has read, and
 * detects lost lines by the next number.
 *
 * Invariants
 *   1. At most lines_max lines and bytes_max bytes are kept; the oldest lines are removed first.
 *      The newest line is kept whatever its size.
 *   2. Numbers of kept lines ascend. A gap is a line that was lost for lack of memory. */
#ifndef DET_DAEMON_LINE_BUFFER_H
#define DET_DAEMON_LINE_BUFFER_H

#include <detent/task.h>

#include "base/list.h"

#define UP_LINES_MAX       10000
#define UP_LINES_BYTES_MAX (1 << 20)

struct up_line {
    struct det_list node;
    uint64_t number;
    det_time at; /* wall */
    uint64_t dropped;
    enum det_stream stream;
    bool is_cut;
    size_t size;
    const char *name; /* follows the text; both follow this struct */
    char text[];
};

struct up_lines {
    const struct det_allocator *allocator;
    struct det_list all; /* oldest first */
    size_t count, bytes;
    size_t lines_max, bytes_max;
    uint64_t newest; /* number of the newest line; 0: none */
};

void up_lines_init(struct up_lines *lines, const struct det_allocator *allocator);
void up_lines_deinit(struct up_lines *lines);
/* Out of memory, the line is lost; its number is used. */
void up_lines_add(struct up_lines *lines, const struct det_line *line, det_time at);
/* The first kept line after `number`; NULL: none. */
const struct up_line *up_lines_after(const struct up_lines *lines, uint64_t number);
/* The next line; NULL: this is the newest. */
const struct up_line *up_lines_next(const struct up_lines *lines, const struct up_line *line);
/* The previous line, or the newest if `line` is NULL; NULL: none. */
const struct up_line *up_lines_previous(const struct up_lines *lines, const struct up_line *line);

#endif
