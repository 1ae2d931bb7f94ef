/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* exec_child.h - a command that gets lines on its standard input; its output and errors are read
 * meanwhile, so that neither side waits for the other.
 *
 *     none --start--> running --finish, or it ends--> none */
#ifndef DET_CONNECTORS_EXEC_CHILD_H
#define DET_CONNECTORS_EXEC_CHILD_H

#include <detent/driver/world.h>
#include <detent/flow.h>

#include "base/buffer.h"

#define EXEC_CHILD_ERROR 200

struct exec_child {
    struct det_stage_call *call; /* of the function that runs now */
    struct det_world *world;
    struct det_process *process;  /* NULL: not running */
    int input;                    /* our end of its standard input; -1: closed */
    struct det_buffer output;     /* what it has written, and was not taken */
    char error[EXEC_CHILD_ERROR]; /* the end of its standard error */
    bool output_has_ended, error_has_ended;
};

void exec_child_init(struct exec_child *child, struct det_stage_call *call);
/* Kills it if it runs: first with SIGTERM. */
void exec_child_deinit(struct exec_child *child);

DET_MUST_CHECK int exec_child_start(
    struct exec_child *child, const char *const *argv, const char *folder,
    struct det_error *reterr);
/* Writes some of `data`, or reads some of the output, or waits for either until `deadline`. Returns
 * how much was written; DET_ERR_CLOSED: it does not read, or has ended its output; DET_ERR_TIMEOUT;
 * DET_ERR_CANCELLED; DET_ERR_LIMIT: more than a megabyte of output was not taken. */
DET_MUST_CHECK int64_t
exec_child_exchange(struct exec_child *child, const char *data, size_t size, det_time deadline);
/* Closes its input, reads until it has ended, and forgets it. Results as exec_child_exchange(); it
 * is killed unless 0 is returned. */
int exec_child_finish(struct exec_child *child, det_time deadline, struct det_process_end *ret);
void exec_child_kill(struct exec_child *child);

#endif
