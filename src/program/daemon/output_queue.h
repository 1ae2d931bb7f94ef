/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output_queue.h - output that never keeps the loop waiting: what a reader does not take yet is
 * kept for it, within bounds.
 *
 *     cli.out --> buffer --as far as it is taken--> the descriptor of the output
 *                   \--too much waits: lines are left out, and counted
 *
 * A pipe or a terminal is asked before it is written to, at most PIPE_BUF bytes at a time, which it
 * takes then without waiting. Its flags are left alone, since others share them. A file is written
 * at once.
 *
 * Invariants
 *   1. The descriptor is watched only while something waits for it.
 *   2. After an error of the output nothing is kept any more, until it is forgiven. What is printed
 *      then begins with a line of its own. */
#ifndef DET_DAEMON_OUTPUT_QUEUE_H
#define DET_DAEMON_OUTPUT_QUEUE_H

#include <detent/driver/loop.h>
#include <detent/loop.h>

#include "base/buffer.h"
#include "terminal/terminal.h"

#define UP_OUTPUT_MAX (4 << 20)

struct up_output {
    struct cli cli;    /* the run as its parts see it: `out` ends in the buffer */
    struct cli *outer; /* the run as it was given */
    struct det_loop *loop;
    struct det_watch watch;
    struct det_buffer buffer; /* what waits, from `sent` on */
    size_t sent, limit;
    uint64_t hidden; /* lines that were left out and not told yet */
    uint64_t lost;   /* lines that an error has swallowed, and nobody has asked for yet */
    bool is_torn;    /* a part of the last line was written before the error */
};

/* 0 or DET_ERR_NO_MEMORY. Then it is not open. */
DET_MUST_CHECK int up_output_open(struct up_output *output, struct cli *cli);
/* Waits until all is written; its loop is still there. */
void up_output_close(struct up_output *output);
/* From here on it may wait for the output on this loop. */
void up_output_attach(struct up_output *output, struct det_loop *loop);
/* Writes what the output takes: after each turn of the loop. */
void up_output_flush(struct up_output *output);
/* After an error: it is forgotten, and what is printed from now on is tried. Returns how many lines
 * were lost. */
uint64_t up_output_forgive(struct up_output *output);
/* Whether one more line has room; else it is counted as hidden. */
bool up_output_has_room(struct up_output *output);
/* How many lines were hidden before there was room again, or at all, for the last time; 0: none, or
 * there is no room yet. */
uint64_t up_output_take_hidden(struct up_output *output, bool is_last);

#endif
