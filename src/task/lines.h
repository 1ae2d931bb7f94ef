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
    uint64_t passed;  /* bytes of the line under way, by det_lines_feed_within(); 0: at its start */
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

/* How much of a stream is let through: `per_second` bytes in each second. */
struct det_throttle {
    int64_t per_second;
    int64_t
        left;    /* of this second; negative: the last line was longer, and the next one has less */
    det_time at; /* when the second began */
};

void det_throttle_init(struct det_throttle *throttle, uint64_t per_second, det_time now);
/* Feeds whole lines while something is left, and drops whole lines when nothing is: a line that has
 * begun is finished, unless it is longer than DET_LINE_MAX. What was dropped in a second is counted
 * with the first line of a later one, so that it is told once a second at most. */
void det_lines_feed_within(
    struct det_lines *lines, struct det_throttle *throttle, const char *data, size_t size,
    det_time now);

#endif
