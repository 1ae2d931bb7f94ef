/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* input.h - the bytes of a file, a pipe or standard input, in a buffer from which a source takes
 * whole lines or rows.
 *
 *     data [ taken | unread: input_view() | free ]
 *                  ^ offset
 *
 * Reading never blocks: a pipe without bytes wakes the stage when it has some (waker.h). A file is
 * read at its offset, so a source that resumes opens it at the offset in its cursor.
 *
 * Invariants:
 *   1. begin <= end <= capacity <= INPUT_CHUNK + limit.
 *   2. `offset` is that of data[begin]. */
#ifndef DET_CONNECTORS_INPUT_H
#define DET_CONNECTORS_INPUT_H

#include <detent/flow.h>

#include "base/text.h"

#define INPUT_CHUNK 262144

struct waker;

struct input {
    struct det_stage_call *call;
    const char *name; /* for messages; borrowed */
    struct waker *waker;
    char *data;
    size_t begin, end, capacity;
    size_t limit; /* bytes of the longest row */
    uint64_t offset;
    uint64_t device, inode; /* of a file */
    int descriptor;
    bool is_file;
    bool is_owned; /* the descriptor is closed with it */
    bool is_ended;
    bool is_skipping; /* the rest of a line that was too long */
};

/* Opens a file; "-": standard input. A pipe and a symbolic link are read as `cat` does. Fails with
 * the reason and the remedy. `call` is that of open(); `path` is borrowed. */
DET_MUST_CHECK int input_open(
    struct input *input, struct det_stage_call *call, const char *path, size_t limit,
    struct det_error *reterr);
/* Uses a descriptor of a pipe, which stays the caller's. */
DET_MUST_CHECK int input_open_pipe(
    struct input *input, struct det_stage_call *call, const char *name, int descriptor,
    size_t limit, struct det_error *reterr);
/* For the zero value, too. */
void input_close(struct input *input);
/* Continues a file at an offset. */
void input_seek(struct input *input, uint64_t offset);
/* Returns the checksum of the first `size` bytes of a file, at most INPUT_HEAD; DET_ERR_TRUNCATED
 * if it has less; DET_ERR_IO. */
#define INPUT_HEAD 4096
DET_MUST_CHECK int input_head(const struct input *input, size_t size, uint32_t *ret);

static inline struct det_view input_view(const struct input *input)
{
    return det_view_of(input->data ? input->data + input->begin : "", input->end - input->begin);
}
/* The same bytes, to be changed; there must be some. */
static inline char *input_text(struct input *input)
{
    return input->data + input->begin;
}
static inline void input_take(struct input *input, size_t size)
{
    input->begin += size;
    input->offset += size;
}
/* Reads more after the unread bytes. 1: there are more; 0: not now, the stage will be woken, or
 * `is_ended` is set. DET_ERR_LIMIT: `limit` bytes are unread. DET_ERR_IO, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int input_more(struct input *input);

/* Takes the next line, without its "\n" or "\r\n"; the last one needs none if `ends`. It is valid
 * until the next call. 1: a line; 0: none now, or the end; DET_ERR_LIMIT: a line was too long, all
 * of it is or will be skipped. */
DET_MUST_CHECK int input_line(struct input *input, bool ends, struct det_view *ret);

#endif
