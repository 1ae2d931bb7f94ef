/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* buffer.c - bytes that grow, with an error that sticks.
 *
 * Invariants:
 *   1. size < capacity and data[size] == 0, or nothing is allocated yet;
 *   2. size <= limit unless limit is 0;
 *   3. once error is set, data and size stay as they are until det_buffer_clear(). */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"

#define CAPACITY_MIN ((size_t)64)

static void assert_buffer(const struct det_buffer *buffer)
{
    if (buffer->data == NULL) {
        det_assert(buffer->size == 0 && buffer->capacity == 0);
        return;
    }
    det_assert(buffer->size < buffer->capacity);
    det_assert(buffer->data[buffer->size] == '\0');
    det_assert(buffer->limit == 0 || buffer->size <= buffer->limit);
}

static bool set_failed(struct det_buffer *buffer, int error)
{
    buffer->error = error;
    return false;
}

/* Doubles the capacity, up to the limit. */
static size_t next_capacity(const struct det_buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity < CAPACITY_MIN ? CAPACITY_MIN : buffer->capacity;

    while (capacity < needed) {
        if (!det_mul_size(capacity, 2, &capacity))
            return needed;
    }
    if (buffer->limit != 0 && capacity - 1 > buffer->limit)
        return buffer->limit + 1 > needed ? buffer->limit + 1 : needed;
    return capacity;
}

static bool grow_to(struct det_buffer *buffer, size_t needed)
{
    size_t capacity = next_capacity(buffer, needed);
    char *data = det_realloc(buffer->allocator, buffer->data, buffer->capacity, capacity);

    if (data == NULL)
        return set_failed(buffer, DET_ERR_NO_MEMORY);
    data[buffer->size] = '\0';
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

static bool fits_limit(const struct det_buffer *buffer, size_t size)
{
    return buffer->limit == 0 || size <= buffer->limit;
}

/* Makes room for `extra` bytes and the final NUL. */
static bool reserve_extra(struct det_buffer *buffer, size_t extra)
{
    size_t size, needed;

    assert_buffer(buffer);
    if (buffer->error != 0)
        return false;
    if (!det_add_size(buffer->size, extra, &size) || !det_add_size(size, 1, &needed))
        return set_failed(buffer, buffer->limit != 0 ? DET_ERR_LIMIT : DET_ERR_NO_MEMORY);
    if (!fits_limit(buffer, size))
        return set_failed(buffer, DET_ERR_LIMIT);
    return needed <= buffer->capacity || grow_to(buffer, needed);
}

static void advance_size(struct det_buffer *buffer, size_t size)
{
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
    det_check((assert_buffer(buffer), true));
}

void det_buffer_init(struct det_buffer *buffer, const struct det_allocator *allocator)
{
    *buffer = (struct det_buffer){ .allocator = allocator };
}

void det_buffer_deinit(struct det_buffer *buffer)
{
    assert_buffer(buffer);
    det_free(buffer->allocator, buffer->data, buffer->capacity);
    *buffer = (struct det_buffer){ .allocator = buffer->allocator, .limit = buffer->limit };
}

void det_buffer_clear(struct det_buffer *buffer)
{
    assert_buffer(buffer);
    buffer->size = 0;
    buffer->error = 0;
    if (buffer->data != NULL)
        buffer->data[0] = '\0';
}

void det_buffer_append(struct det_buffer *buffer, const void *bytes, size_t size)
{
    if (!reserve_extra(buffer, size))
        return;
    if (size > 0)
        memcpy(buffer->data + buffer->size, bytes, size);
    advance_size(buffer, size);
}

void det_buffer_append_text(struct det_buffer *buffer, const char *text)
{
    det_buffer_append(buffer, text, strlen(text));
}

void det_buffer_append_char(struct det_buffer *buffer, char c)
{
    if (!reserve_extra(buffer, 1))
        return;
    buffer->data[buffer->size] = c;
    advance_size(buffer, 1);
}

/* Most texts fit into the free space, so the first try usually succeeds. */
void det_buffer_format(struct det_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    size_t room;
    int length;

    if (!reserve_extra(buffer, 0))
        return;
    room = buffer->capacity - buffer->size;
    va_start(arguments, format);
    length = vsnprintf(buffer->data + buffer->size, room, format, arguments);
    va_end(arguments);
    if (length >= 0 && (size_t)length < room && fits_limit(buffer, buffer->size + (size_t)length)) {
        advance_size(buffer, (size_t)length);
        return;
    }
    /* Removes the partial output. A size that printf cannot represent exceeds every limit. */
    buffer->data[buffer->size] = '\0';
    if (!(length < 0 ? set_failed(buffer, DET_ERR_LIMIT) : reserve_extra(buffer, (size_t)length)))
        return;
    va_start(arguments, format);
    (void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    advance_size(buffer, (size_t)length);
}

void *det_buffer_extend(struct det_buffer *buffer, size_t size)
{
    char *start;

    if (!reserve_extra(buffer, size))
        return NULL;
    start = buffer->data + buffer->size;
    memset(start, 0, size);
    advance_size(buffer, size);
    return start;
}

void det_buffer_drop(struct det_buffer *buffer, size_t size)
{
    assert_buffer(buffer);
    det_assert(size <= buffer->size);
    if (size == 0)
        return;
    /* Also moves the final NUL. */
    memmove(buffer->data, buffer->data + size, buffer->size - size + 1);
    buffer->size -= size;
}

const char *det_buffer_text(const struct det_buffer *buffer)
{
    return buffer->data != NULL ? buffer->data : "";
}
