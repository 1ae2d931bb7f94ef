/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_queue.h - output that does not block the loop: text that the reader does not take yet is
 * buffered, within limits.
 *
 *     cli.out --> buffer --as far as it is taken--> the descriptor of the output
 *                   \--the buffer is full: lines are dropped and counted
 *
 * A pipe or terminal is polled before each write of at most PIPE_BUF bytes, which then does not
 * block. Its flags are not changed, since other processes share them. A file is written at once.
 *
 * Invariants
 *   1. The descriptor is watched only while text waits for it.
 *   2. After an error of the output no text is kept until up_output_forgive(). The text printed
 *      next starts with a new line. */
#ifndef DET_DAEMON_OUTPUT_QUEUE_H
#define DET_DAEMON_OUTPUT_QUEUE_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/buffer.h"
#include "terminal/terminal.h"

#define UP_OUTPUT_MAX (4 << 20)

struct up_output {
    struct cli cli;    /* the cli of the run: its `out` is the buffer */
    struct cli *outer; /* the original cli */
    struct det_loop *loop;
    struct det_watch watch;
    struct det_buffer buffer; /* unwritten text starts at `sent` */
    size_t sent, limit;
    uint64_t hidden; /* dropped lines, not reported yet */
    uint64_t lost;   /* lines lost to an error, not reported yet */
    bool is_torn;    /* the error has cut a line */
};

/* 0 or DET_ERR_NO_MEMORY, and then it is not open. */
DET_MUST_CHECK int up_output_open(struct up_output *output, struct cli *cli);
/* Waits until everything is written; close it before its loop. */
void up_output_close(struct up_output *output);
/* From now on the buffer is written by this loop. */
void up_output_attach(struct up_output *output, struct det_loop *loop);
/* Writes what the output takes; call it after each turn of the loop. */
void up_output_flush(struct up_output *output);
/* Clears an error: from now on text is written again. Returns the number of lost lines. */
uint64_t up_output_forgive(struct up_output *output);
/* True if one more line fits; otherwise counts it as hidden. */
bool up_output_has_room(struct up_output *output);
/* Number of hidden lines, once there is room again, or at the end (`is_last`); 0: none, or no room
 * yet. */
uint64_t up_output_take_hidden(struct up_output *output, bool is_last);

#endif
