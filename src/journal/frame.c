/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* frame.c - encoding and decoding of frames, rows and tables; pure. */
#include "journal/frame.h"

#include "base/assert.h"
#include "base/hash.h"

enum {
    AT_KIND = 0,
    AT_SIZE = 4,
    AT_FIRST = 8,
    AT_SYNCED = 16,
    AT_TIME = 24,
    AT_COUNT = 32,
    AT_STREAMS = 36,
    AT_BODY_SUM = 40,
    AT_HEAD_SUM = 44,
};
enum { ROW_SIZE = 0, ROW_STREAM = 4, ROW_KIND = 6, ROW_FLAGS = 7, ROW_SEQUENCE = 8 };
enum { ENTRY_STREAM = 0, ENTRY_NAME_SIZE = 2, ENTRY_SEQUENCE = 8, ENTRY_POSITION = 16 };

/* "detF" and the kind in the last byte. */
#define MAGIC     0x00746564u
#define FLAGS_ALL 15u

static size_t align8(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static unsigned row_flags(const struct det_journal_row *row)
{
    return (row->parent ? DET_FRAME_PARENT : 0u) | (row->correlation ? DET_FRAME_CORRELATION : 0u) |
           (row->event_time ? DET_FRAME_EVENT_TIME : 0u) |
           (row->is_cause_unknown ? DET_FRAME_CAUSE_UNKNOWN : 0u);
}

static size_t flags_size(unsigned flags)
{
    return 8 * (size_t)__builtin_popcount(flags & ~(unsigned)DET_FRAME_CAUSE_UNKNOWN);
}

size_t det_frame_row_size(const struct det_journal_row *row)
{
    return DET_FRAME_ROW + flags_size(row_flags(row)) + align8(row->size);
}

size_t det_frame_put_row(void *target, const struct det_journal_row *row, uint64_t sequence)
{
    unsigned flags = row_flags(row);
    char *at = target;

    det_put32(at + ROW_SIZE, row->size);
    det_put16(at + ROW_STREAM, row->stream);
    at[ROW_KIND] = (char)row->kind;
    at[ROW_FLAGS] = (char)flags;
    det_put64(at + ROW_SEQUENCE, sequence);
    at += DET_FRAME_ROW;
    if (flags & DET_FRAME_PARENT) {
        det_put64(at, row->parent);
        at += 8;
    }
    if (flags & DET_FRAME_CORRELATION) {
        det_put64(at, row->correlation);
        at += 8;
    }
    if (flags & DET_FRAME_EVENT_TIME) {
        det_put64(at, (uint64_t)row->event_time);
        at += 8;
    }
    if (row->size > 0) {
        det_put64(at + align8(row->size) - 8, 0);
        memcpy(at, row->data, row->size);
        at += align8(row->size);
    }
    return (size_t)(at - (char *)target);
}

static uint64_t take_number(const char **at, unsigned flags, unsigned flag)
{
    uint64_t value;

    if (!(flags & flag))
        return 0;
    value = det_get64(*at);
    *at += 8;
    return value;
}

size_t det_frame_get_row(
    const struct det_frame *frame, const char *at, const char *end, struct det_journal_row *ret)
{
    size_t room = (size_t)(end - at), size;
    const char *start = at;
    unsigned flags;

    if (room < DET_FRAME_ROW)
        return 0;
    *ret = (struct det_journal_row){
        .size = det_get32(at + ROW_SIZE),
        .stream = det_get16(at + ROW_STREAM),
        .kind = (uint8_t)at[ROW_KIND],
        .sequence = det_get64(at + ROW_SEQUENCE),
        .at = frame->at,
    };
    flags = (unsigned char)at[ROW_FLAGS];
    size = DET_FRAME_ROW + flags_size(flags) + align8(ret->size);
    if (flags & ~FLAGS_ALL || ret->size > DET_JOURNAL_ROW_MAX || size > room)
        return 0;
    ret->is_cause_unknown = (flags & DET_FRAME_CAUSE_UNKNOWN) != 0;
    at += DET_FRAME_ROW;
    ret->parent = take_number(&at, flags, DET_FRAME_PARENT);
    ret->correlation = take_number(&at, flags, DET_FRAME_CORRELATION);
    ret->event_time = (det_time)take_number(&at, flags, DET_FRAME_EVENT_TIME);
    if (ret->event_time == 0)
        ret->event_time = frame->at;
    ret->data = at;
    return (size_t)(at - start) + align8(ret->size);
}

size_t det_frame_entry_size(size_t name_size)
{
    return DET_FRAME_ENTRY + align8(name_size);
}

size_t det_frame_put_entry(void *target, const struct det_frame_entry *entry)
{
    size_t size = det_frame_entry_size(entry->name_size);
    char *at = target;

    memset(at, 0, size);
    det_put16(at + ENTRY_STREAM, entry->stream);
    det_put16(at + ENTRY_NAME_SIZE, (uint16_t)entry->name_size);
    det_put64(at + ENTRY_SEQUENCE, entry->sequence);
    det_put64(at + ENTRY_POSITION, entry->position);
    memcpy(at + DET_FRAME_ENTRY, entry->name, entry->name_size);
    return size;
}

size_t det_frame_get_entry(const char *at, const char *end, struct det_frame_entry *ret)
{
    size_t room = (size_t)(end - at), size;

    if (room < DET_FRAME_ENTRY)
        return 0;
    *ret = (struct det_frame_entry){
        .stream = det_get16(at + ENTRY_STREAM),
        .sequence = det_get64(at + ENTRY_SEQUENCE),
        .position = det_get64(at + ENTRY_POSITION),
        .name = at + DET_FRAME_ENTRY,
        .name_size = det_get16(at + ENTRY_NAME_SIZE),
    };
    size = det_frame_entry_size(ret->name_size);
    if (size > room || ret->stream >= DET_JOURNAL_STREAMS_MAX ||
        !det_frame_name_is_valid(ret->name, ret->name_size))
        return 0;
    return size;
}

void det_frame_put_head(void *target, const struct det_frame *frame)
{
    char *at = target;

    det_assert(frame->size % 8 == 0 && frame->size >= DET_FRAME_HEAD);
    det_put32(at + AT_KIND, MAGIC | (uint32_t)frame->kind << 24);
    det_put32(at + AT_SIZE, frame->size);
    det_put64(at + AT_FIRST, frame->first);
    det_put64(at + AT_SYNCED, frame->synced);
    det_put64(at + AT_TIME, (uint64_t)frame->at);
    det_put32(at + AT_COUNT, frame->count);
    det_put32(at + AT_STREAMS, frame->streams);
    det_put64(at + AT_BODY_SUM, 0);
}

bool det_frame_get_head(const void *source, size_t capacity, struct det_frame *ret)
{
    const char *at = source;
    uint32_t kind, unit;

    if (capacity < DET_FRAME_HEAD)
        return false;
    kind = det_get32(at + AT_KIND);
    if ((kind & 0xffffffu) != MAGIC || kind >> 24 < DET_FRAME_GROUP || kind >> 24 > DET_FRAME_GAP)
        return false;
    *ret = (struct det_frame){
        .kind = (enum det_frame_kind)(kind >> 24),
        .size = det_get32(at + AT_SIZE),
        .first = det_get64(at + AT_FIRST),
        .synced = det_get64(at + AT_SYNCED),
        .at = (det_time)det_get64(at + AT_TIME),
        .count = det_get32(at + AT_COUNT),
        .streams = det_get32(at + AT_STREAMS),
    };
    unit = ret->kind == DET_FRAME_GROUP ? DET_FRAME_ROW : 8;
    return ret->size % 8 == 0 && ret->size >= DET_FRAME_HEAD && ret->size <= DET_FRAME_MAX &&
           ret->first > 0 && ret->count <= (ret->size - DET_FRAME_HEAD) / unit &&
           (ret->kind != DET_FRAME_GROUP || ret->count > 0) &&
           (ret->kind != DET_FRAME_GAP || ret->size >= DET_FRAME_HEAD + 8);
}

uint64_t det_frame_next(const struct det_frame *frame, const void *data)
{
    if (frame->kind == DET_FRAME_GROUP)
        return frame->first + frame->count;
    if (frame->kind == DET_FRAME_GAP)
        return frame->first + det_get64((const char *)data + DET_FRAME_HEAD);
    return frame->first;
}

/* The checksum of the body is part of that of the head as its start. */
static uint32_t sum_head(const char *data, uint32_t seed)
{
    return det_crc32c(seed ^ det_get32(data + AT_BODY_SUM), data, DET_FRAME_COVERED);
}

void det_frame_seal(void *data, size_t size, uint32_t seed)
{
    char *at = data;

    det_put32(at + AT_BODY_SUM, det_crc32c(seed, at + DET_FRAME_HEAD, size - DET_FRAME_HEAD));
    det_put32(at + AT_HEAD_SUM, sum_head(at, seed));
}

bool det_frame_head_is_valid(const void *data, uint32_t seed)
{
    return det_get32((const char *)data + AT_HEAD_SUM) == sum_head(data, seed);
}

bool det_frame_body_is_valid(const void *data, size_t size, uint32_t seed)
{
    const char *at = data;

    return det_get32(at + AT_BODY_SUM) ==
           det_crc32c(seed, at + DET_FRAME_HEAD, size - DET_FRAME_HEAD);
}

bool det_frame_name_is_valid(const char *name, size_t size)
{
    if (size < 1 || size > DET_JOURNAL_NAME_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        char c = name[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-'))
            return false;
    }
    return true;
}
