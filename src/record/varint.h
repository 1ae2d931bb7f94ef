/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* varint.h - bytes with an end: a writer that goes on counting when they are full, a reader that
 * remembers what was wrong first, and the numbers of docs/formats/record.md between them. */
#ifndef DET_RECORD_VARINT_H
#define DET_RECORD_VARINT_H

#include <detent/base.h>

#include <string.h>

#define DET_VARINT_MAX 10

struct det_byte_writer {
    uint8_t *data;
    size_t capacity;
    size_t size; /* what was put; beyond `capacity` nothing is written */
};

struct det_byte_reader {
    const uint8_t *data;
    size_t size;
    size_t offset;
    int error; /* 0, DET_ERR_TRUNCATED or DET_ERR_MALFORMED */
    size_t error_offset;
};

static inline void det_put_bytes(struct det_byte_writer *writer, const void *bytes, size_t size)
{
    if (size && writer->size <= writer->capacity && size <= writer->capacity - writer->size)
        memcpy(writer->data + writer->size, bytes, size);
    writer->size += size;
}

static inline void det_put_byte(struct det_byte_writer *writer, uint8_t byte)
{
    if (writer->size < writer->capacity)
        writer->data[writer->size] = byte;
    writer->size++;
}

static inline size_t det_varint_encode(uint64_t number, uint8_t target[DET_VARINT_MAX])
{
    size_t size = 0;

    for (; number >= 0x80; number >>= 7)
        target[size++] = (uint8_t)(number | 0x80);
    target[size++] = (uint8_t)number;
    return size;
}

static inline size_t det_varint_size(uint64_t number)
{
    uint8_t bytes[DET_VARINT_MAX];

    return det_varint_encode(number, bytes);
}

static inline void det_put_varint(struct det_byte_writer *writer, uint64_t number)
{
    uint8_t bytes[DET_VARINT_MAX];

    det_put_bytes(writer, bytes, det_varint_encode(number, bytes));
}

static inline void det_put_u64(struct det_byte_writer *writer, uint64_t number)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (8 * i));
    det_put_bytes(writer, bytes, sizeof bytes);
}

static inline uint64_t det_zigzag(int64_t number)
{
    return ((uint64_t)number << 1) ^ (number < 0 ? UINT64_MAX : 0);
}

static inline int64_t det_unzigzag(uint64_t number)
{
    return (int64_t)((number >> 1) ^ (number & 1 ? UINT64_MAX : 0));
}

/* Remembers the first error; returns false so that failing is one line. */
static inline bool det_reader_fail(struct det_byte_reader *reader, int code, size_t offset)
{
    if (!reader->error) {
        reader->error = code;
        reader->error_offset = offset;
    }
    return false;
}

/* `size` bytes in place, or NULL when there are not as many. */
static inline const uint8_t *det_get_bytes(struct det_byte_reader *reader, size_t size)
{
    if (size > reader->size - reader->offset) {
        det_reader_fail(reader, DET_ERR_TRUNCATED, reader->size);
        return NULL;
    }
    reader->offset += size;
    return reader->data + reader->offset - size;
}

static inline bool det_get_byte(struct det_byte_reader *reader, uint8_t *ret)
{
    const uint8_t *byte = det_get_bytes(reader, 1);

    if (byte)
        *ret = *byte;
    return byte != NULL;
}

static inline bool det_get_u64(struct det_byte_reader *reader, uint64_t *ret)
{
    const uint8_t *bytes = det_get_bytes(reader, 8);

    if (!bytes)
        return false;
    *ret = 0;
    for (unsigned i = 0; i < 8; i++)
        *ret |= (uint64_t)bytes[i] << (8 * i);
    return true;
}

static inline bool det_get_varint(struct det_byte_reader *reader, uint64_t *ret)
{
    size_t start = reader->offset;
    uint64_t number = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!det_get_byte(reader, &byte))
            return false;
        if (shift == 63 && byte > 1)
            break;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (byte == 0 && shift > 0)
            break;
        *ret = number;
        return true;
    }
    return det_reader_fail(reader, DET_ERR_MALFORMED, start);
}

#endif
