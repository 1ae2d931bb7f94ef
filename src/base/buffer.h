/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* buffer.h - bytes that grow, with an error that sticks.
 *
 * Writers append without testing each call: the first failure (no memory, or `limit` reached) is
 * remembered in `error`, later appends do nothing, and the caller tests once at the end with
 * det_buffer_status(). `data[size]` is always 0 once something was appended, so a buffer of text
 * is a C string. The zero value with an allocator (or NULL) is an empty buffer. */
#ifndef DET_BASE_BUFFER_H
#define DET_BASE_BUFFER_H

#include <detent/base.h>

struct det_buffer {
    const struct det_allocator *allocator;
    char *data;
    size_t size;     /* bytes in use, without the final 0 */
    size_t capacity; /* bytes allocated */
    size_t limit;    /* limit in bytes; 0: none */
    int error;       /* 0, DET_ERR_NO_MEMORY or DET_ERR_LIMIT; sticky */
};

void det_buffer_init(struct det_buffer *buffer, const struct det_allocator *allocator);
void det_buffer_deinit(struct det_buffer *buffer);
/* Empties the buffer and clears the error; keeps the memory. */
void det_buffer_clear(struct det_buffer *buffer);
void det_buffer_append(struct det_buffer *buffer, const void *bytes, size_t size);
void det_buffer_append_text(struct det_buffer *buffer, const char *text);
void det_buffer_append_char(struct det_buffer *buffer, char c);
void det_buffer_format(struct det_buffer *buffer, const char *format, ...) DET_PRINTF(2, 3);
/* Appends `size` zeroed bytes and returns them; NULL when the buffer has failed. */
void *det_buffer_extend(struct det_buffer *buffer, size_t size);
/* Removes the first `size` bytes, which must exist; keeps memory and error. */
void det_buffer_drop(struct det_buffer *buffer, size_t size);
/* "" when empty; never NULL. */
const char *det_buffer_text(const struct det_buffer *buffer);
static inline int det_buffer_status(const struct det_buffer *buffer)
{
    return buffer->error;
}

#endif
