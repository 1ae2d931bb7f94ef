/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_cursor.c - continues a file at its cursor. */
#include "connectors/file_cursor.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Remembers the first bytes of the file: all of them, if it has less than INPUT_HEAD. */
static int remember_head(
    struct det_stage_call *call, const struct input *input, struct file_cursor *cursor)
{
    struct stat status;
    uint32_t head = 0;
    int r;

    if (fstat(input->descriptor, &status) < 0)
        return file_cursor_fail(call, input, DET_ERR_IO);
    cursor->head_size = status.st_size < INPUT_HEAD ? (uint32_t)status.st_size : INPUT_HEAD;
    r = input_head(input, cursor->head_size, &head);
    if (r < 0)
        return file_cursor_fail(call, input, r);
    cursor->head = head;
    return 0;
}

static int check_head(
    struct det_stage_call *call, const struct input *input, const struct file_cursor *cursor)
{
    struct stat status;
    uint32_t head = 0;
    int r;

    if (fstat(input->descriptor, &status) < 0)
        return file_cursor_fail(call, input, DET_ERR_IO);
    if ((uint64_t)status.st_size < cursor->offset)
        return det_stage_fail(
            call, DET_ERR_CONFLICT,
            "%.160s ends at byte %lld, but this run has read it until byte %llu: restore the file, "
            "or begin a new run",
            input->name, (long long)status.st_size, (unsigned long long)cursor->offset);
    r = input_head(input, cursor->head_size, &head);
    if (r == DET_ERR_IO)
        return file_cursor_fail(call, input, r);
    if (r == 0 && head == cursor->head)
        return 0;
    return det_stage_fail(
        call, DET_ERR_CONFLICT,
        "%.160s is not the file that this run has read until byte %llu: restore the file, or begin "
        "a new run",
        input->name, (unsigned long long)cursor->offset);
}

int file_cursor_begin(struct det_stage_call *call, struct input *input, struct file_cursor *cursor)
{
    int r;

    if (!input->is_file) {
        *cursor = (struct file_cursor){ 0 };
        return 0;
    }
    r = cursor->offset ? check_head(call, input, cursor) : remember_head(call, input, cursor);
    if (r == 0)
        input_seek(input, cursor->offset);
    return r;
}

int file_cursor_fail(struct det_stage_call *call, const struct input *input, int code)
{
    int number = errno;

    if (code != DET_ERR_IO)
        return det_stage_fail(call, code, "%.160s: %s", input->name, det_error_text(code));
    return det_stage_fail(
        call, code, "%.160s cannot be read: %s", input->name, strerrordesc_np(number));
}
