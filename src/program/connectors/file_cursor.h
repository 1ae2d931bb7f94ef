/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_cursor.h - the cursor of sources that read a file: where they are, and that it is still the
 * same file. */
#ifndef DET_CONNECTORS_FILE_CURSOR_H
#define DET_CONNECTORS_FILE_CURSOR_H

#include "connectors/input.h"

#define REC_SPEC "connectors/file_cursor.rec"
#include <detent/rec/declare.h>

/* Continues at the cursor, in the first call of next(). A file that has become shorter, or begins
 * with other bytes, fails the stage. A pipe is read from where it is. */
DET_MUST_CHECK int file_cursor_begin(
    struct det_stage_call *call, struct input *input, struct file_cursor *cursor);
/* Fails the stage because the input cannot be read. */
int file_cursor_fail(struct det_stage_call *call, const struct input *input, int code);

#endif
