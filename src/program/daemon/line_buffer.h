/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_buffer.h - the newest lines that tasks have written, within bounds of number and bytes.
 *
 * Each line has a number, from 1; a reader keeps the number of the last one it has seen, and sees
 * by the next number what has gone meanwhile.
 *
 * Invariants
 *   1. At most lines_max lines and bytes_max bytes are kept, the oldest ones are given up first;
 *      the newest line is kept whatever its size.
 *   2. Numbers of kept lines ascend. A gap is a line that there was no memory for. */
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
    const char *name; /* behind the text; both behind this struct */
    char text[];
};

struct up_lines {
    const struct det_allocator *allocator;
    struct det_list all; /* oldest first */
    size_t count, bytes;
    size_t lines_max, bytes_max;
    uint64_t newest; /* the number of the newest line; 0: none yet */
};

void up_lines_init(struct up_lines *lines, const struct det_allocator *allocator);
void up_lines_deinit(struct up_lines *lines);
/* Without memory the line is missed by all: its number is used all the same. */
void up_lines_add(struct up_lines *lines, const struct det_line *line, det_time at);
/* The first line behind `number` that is still there; NULL: none. */
const struct up_line *up_lines_after(const struct up_lines *lines, uint64_t number);
/* The line behind this one; NULL: it is the newest. */
const struct up_line *up_lines_next(const struct up_lines *lines, const struct up_line *line);
/* The line before it; `line` NULL: the newest. NULL: there is none. */
const struct up_line *up_lines_previous(const struct up_lines *lines, const struct up_line *line);

#endif
