/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* frame.h - the bytes of a group of rows, and of a table of streams; see docs/formats/journal.md.
 *
 *     | head 48 | row | row | ... |            a group: rows are 8-aligned
 *     | head 48 | entry | entry | ... |        a table: streams with their last row
 *     | head 48 | count | damaged bytes |      a gap: rows that are lost */
#ifndef DET_JOURNAL_FRAME_H
#define DET_JOURNAL_FRAME_H

#include <string.h>

#include <detent/journal.h>

#define DET_FRAME_HEAD    48u
#define DET_FRAME_ROW     16u
#define DET_FRAME_ENTRY   24u
#define DET_FRAME_MAX     (DET_JOURNAL_GROUP_MAX + DET_FRAME_HEAD)
#define DET_FRAME_COVERED 40u /* bytes of the head before its checksums */

enum det_frame_kind {
    DET_FRAME_GROUP = 1,
    DET_FRAME_TABLE = 2,
    DET_FRAME_INDEX = 3,
    DET_FRAME_GAP = 4
};

enum det_frame_row_flags {
    DET_FRAME_PARENT = 1,
    DET_FRAME_CORRELATION = 2,
    DET_FRAME_EVENT_TIME = 4,
    DET_FRAME_CAUSE_UNKNOWN = 8,
};

/* The head of a frame. */
struct det_frame {
    enum det_frame_kind kind;
    uint32_t size;    /* with the head; a multiple of 8 */
    uint64_t first;   /* position of the first row; of a table: of the next row after it */
    uint64_t synced;  /* position that was known to be on the disk when the frame was made */
    det_time at;      /* wall time */
    uint32_t count;   /* of rows or entries */
    uint32_t streams; /* bit (stream % 32) for each row */
};

static inline uint32_t det_get32(const void *source)
{
    uint32_t value;

    memcpy(&value, source, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    return value;
}

static inline uint64_t det_get64(const void *source)
{
    uint64_t value;

    memcpy(&value, source, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline uint16_t det_get16(const void *source)
{
    const unsigned char *bytes = source;

    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline void det_put16(void *target, uint16_t value)
{
    unsigned char *bytes = target;

    bytes[0] = (unsigned char)(value & 0xff);
    bytes[1] = (unsigned char)(value >> 8);
}

static inline void det_put32(void *target, uint32_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(target, &value, sizeof value);
}

static inline void det_put64(void *target, uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    memcpy(target, &value, sizeof value);
}

/* Bytes of a row in a frame. */
size_t det_frame_row_size(const struct det_journal_row *row);
/* Writes a row with its sequence; returns its size. */
size_t det_frame_put_row(void *target, const struct det_journal_row *row, uint64_t sequence);
/* Reads a row of a group whose head is `frame`; `at` is the first byte of the row, `end` the first
 * byte after the frame. Sets all fields but position and is_group_end. Returns its size, or 0 if it
 * is not well formed. */
size_t det_frame_get_row(
    const struct det_frame *frame, const char *at, const char *end, struct det_journal_row *ret);

/* An entry of a table. */
struct det_frame_entry {
    uint16_t stream;
    uint64_t sequence, position; /* of its last row; 0: none */
    const char *name;            /* not terminated */
    size_t name_size;
};
size_t det_frame_entry_size(size_t name_size);
size_t det_frame_put_entry(void *target, const struct det_frame_entry *entry);
/* Returns the size of the entry, or 0 if it is not well formed. */
size_t det_frame_get_entry(const char *at, const char *end, struct det_frame_entry *ret);

/* The size of a frame whose head is known to be valid. */
static inline uint32_t det_frame_peek_size(const char *data)
{
    return det_get32(data + 4);
}

/* Writes the head, without checksums. */
void det_frame_put_head(void *target, const struct det_frame *frame);
/* Reads a head; false if no frame has such a head. `capacity` bytes are there. Does not look at
 * checksums. */
bool det_frame_get_head(const void *source, size_t capacity, struct det_frame *ret);
/* Sets the checksums; `seed` is of the log and the segment. */
void det_frame_seal(void *data, size_t size, uint32_t seed);
/* Checks the checksum of the head alone, or of the whole frame. */
bool det_frame_head_is_valid(const void *data, uint32_t seed);
bool det_frame_body_is_valid(const void *data, size_t size, uint32_t seed);

/* The position after the last row of a frame; `data` is the whole frame. */
uint64_t det_frame_next(const struct det_frame *frame, const void *data);

/* The name of a stream is [a-z0-9_.-]{1,96}. */
bool det_frame_name_is_valid(const char *name, size_t size);

#endif
