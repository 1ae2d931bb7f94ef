/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines.h - splits the bytes of a stream into lines of bounded length.
 *
 * Pure: no clock, no I/O, no allocation. struct det_line describes a line. */
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
    bool is_skipping; /* after a gap: skip to the next end of a line */
    uint64_t passed;  /* bytes of the current line passed by det_lines_feed_within(); 0: at its
                       * start */
    size_t size;      /* of the unfinished line */
    /* One more than a line: only the next byte shows whether a final CR belongs to the line. */
    char pending[DET_LINE_MAX + 1];
};

void det_lines_feed(struct det_lines *lines, const char *data, size_t size);
/* Drops these bytes. The unfinished line is passed on as cut, and the rest up to the next end of a
 * line is dropped, so that no line begins in its middle. */
void det_lines_drop(struct det_lines *lines, const char *data, size_t size);
/* Ends the stream: passes on the unfinished line, or the number of dropped bytes. */
void det_lines_end(struct det_lines *lines);

/* Limits the throughput of a stream to `per_second` bytes in each second. */
struct det_throttle {
    int64_t per_second;
    int64_t left; /* rest of this second; negative: the last line was longer, which reduces the next
                  * second */
    det_time at;  /* when the second began */
};

void det_throttle_init(struct det_throttle *throttle, uint64_t per_second, det_time now);
/* Passes whole lines within the limit, and drops whole lines beyond it: a started line is finished,
 * unless it is longer than DET_LINE_MAX. Bytes dropped in a second are reported with the first line
 * of a later one, so at most once a second. */
void det_lines_feed_within(
    struct det_lines *lines, struct det_throttle *throttle, const char *data, size_t size,
    det_time now);

#endif
