/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_output.h - lines of the log to a descriptor, without ever waiting for it.
 *
 * A pipe, socket or terminal is asked before it is written to, and then takes PIPE_BUF bytes at
 * once; its flags are left alone, since others share them. What it does not take is dropped. A line
 * of which a part got out is ended by the next one, so that it spoils no other. Whoever starts the
 * program has SIGPIPE ignored. */
#ifndef DET_CLI_LOG_OUTPUT_H
#define DET_CLI_LOG_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct log_output {
    int descriptor;
    bool is_torn; /* the last line has no end yet */
};

/* A det_logger_write_fn; `user` is the struct log_output. DET_ERR_BUSY: nobody reads it at the
 * moment; DET_ERR_NO_SPACE; DET_ERR_IO: it is closed, or anything else. */
int log_output_write(void *user, const char *line, size_t size);

#endif
