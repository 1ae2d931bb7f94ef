/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* varint.h - encodes and decodes the numbers of docs/formats/record.md within bounds.
 *
 * Every function takes the start position and returns the position after the bytes it wrote or
 * read. A position is a value, not a member of a struct, so that it stays in a register from one
 * number to the next: everything else depends on it. */
#ifndef DET_RECORD_VARINT_H
#define DET_RECORD_VARINT_H

#include <detent/base.h>

#include <string.h>

#include "record/word64.h"

#define DET_VARINT_MAX 10
/* The position after a failed read or write. */
#define DET_NOWHERE SIZE_MAX

/* Bytes that do not fit are not written, but the position advances: the end is the required
 * size. */
struct det_byte_space {
    uint8_t *data;
    size_t capacity;
};

struct det_byte_source {
    const uint8_t *data;
    size_t size;
    int error; /* the error, once a function returned DET_NOWHERE */
    size_t error_offset;
};

static inline size_t det_put_byte(struct det_byte_space space, size_t at, uint8_t byte)
{
    if (at < space.capacity)
        space.data[at] = byte;
    return at + 1;
}

static inline size_t det_put_bytes(
    struct det_byte_space space, size_t at, const void *bytes, size_t size)
{
    if (at + size <= space.capacity)
        memcpy(space.data + at, bytes, size);
    return at + size;
}

static inline size_t det_put_u64(struct det_byte_space space, size_t at, uint64_t number)
{
    if (at + 8 <= space.capacity)
        det_word_store(space.data + at, number);
    return at + 8;
}

static inline size_t det_varint_size(uint64_t number)
{
    return (70 - (size_t)__builtin_clzll(number | 1)) / 7;
}

static inline size_t det_put_varint(struct det_byte_space space, size_t at, uint64_t number)
{
    if (at + DET_VARINT_MAX > space.capacity && at + det_varint_size(number) > space.capacity)
        return at + det_varint_size(number);
    for (; number >= 0x80; number >>= 7)
        space.data[at++] = (uint8_t)(number | 0x80);
    space.data[at++] = (uint8_t)number;
    return at;
}

static inline uint64_t det_zigzag(int64_t number)
{
    return ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0);
}

static inline int64_t det_unzigzag(uint64_t number)
{
    return (int64_t)((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

/* Returns DET_NOWHERE, so that a failure is one line. */
static inline size_t det_source_fail(struct det_byte_source *source, int code, size_t offset)
{
    source->error = code;
    source->error_offset = offset;
    return DET_NOWHERE;
}

/* Returns true if `size` bytes can be read in place. */
static inline bool det_source_has(const struct det_byte_source *source, size_t at, size_t size)
{
    return size <= source->size - at;
}

static inline size_t det_source_end(struct det_byte_source *source)
{
    return det_source_fail(source, DET_ERR_TRUNCATED, source->size);
}

static inline size_t det_get_u64(struct det_byte_source *source, size_t at, uint64_t *ret)
{
    if (!det_source_has(source, at, 8))
        return det_source_end(source);
    *ret = det_word_load(source->data + at);
    return at + 8;
}

/* A number and the position after it. */
struct det_varint {
    uint64_t number;
    size_t end;
};

/* Reads a number of any size, at most 10 bytes. */
struct det_varint det_get_long_varint(struct det_byte_source *source, size_t at);

static inline struct det_varint det_get_varint(struct det_byte_source *source, size_t at)
{
    if (det_source_has(source, at, 1) && source->data[at] < 0x80)
        return (struct det_varint){ source->data[at], at + 1 };
    return det_get_long_varint(source, at);
}

#endif
