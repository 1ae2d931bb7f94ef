/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines.h - bytes as they come from a stream, made into lines of bounded length.
 *
 * Pure: no clock, no I/O, no allocation. See struct det_line for what a line is. */
#ifndef DET_TASK_LINES_H
#define DET_TASK_LINES_H

#include <detent/task.h>

typedef void det_lines_fn(void *user, const struct det_line *line);

/* Zero it, then set the first three. */
struct det_lines {
    enum det_stream stream;
    det_lines_fn *on_line;
    void *user;
    uint64_t dropped; /* since the last line */
    bool is_skipping; /* after a gap: up to the next end of a line */
    size_t size;      /* of the unfinished line */
    /* One more than a line: whether a CR there belongs to the line shows only the byte after it. */
    char pending[DET_LINE_MAX + 1];
};

void det_lines_feed(struct det_lines *lines, const char *data, size_t size);
/* These bytes are thrown away. The unfinished line is handed out cut, and what follows up to the
 * next end of a line is thrown away too, so that no line begins in its middle. */
void det_lines_drop(struct det_lines *lines, const char *data, size_t size);
/* The stream has ended: the unfinished line is handed out, or the number of dropped bytes. */
void det_lines_end(struct det_lines *lines);

/* How much of a stream of bytes is let through: `per_second` on average, as much at once. */
struct det_throttle {
    uint64_t per_second;
    uint64_t left;
    det_time at;
};

void det_throttle_init(struct det_throttle *throttle, uint64_t per_second, det_time now);
/* How many of `size` bytes may pass now. */
size_t det_throttle_take(struct det_throttle *throttle, size_t size, det_time now);

#endif
