/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* segment.c - the files of a log's segments: header, creation, sealing, and which one has a
 * position. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "journal/file/file_log.h"

#define MAGIC "detseg01"

enum {
    AT_VERSION = 8,
    AT_SIZE = 12,
    AT_IDENTITY = 16,
    AT_NUMBER = 32,
    AT_BASE = 40,
    AT_CREATED = 48,
    AT_BEFORE = 56,
    AT_SUM = 4092,
};

void det_segment_name(uint64_t number, char *target)
{
    (void)snprintf(target, DET_SEGMENT_NAME, "segment-%08" PRIu64, number);
}

int det_segment_path(const struct det_file_log *log, uint64_t number, char *target)
{
    char name[DET_SEGMENT_NAME];

    det_segment_name(number, name);
    return det_log_path(log, name, target);
}

int det_segment_open(
    const struct det_file_log *log, uint64_t number, unsigned flags, struct det_file **ret)
{
    char path[DET_PATH_MAX];
    int r;

    r = det_segment_path(log, number, path);
    if (r < 0)
        return r;
    return det_file_open(log->world, path, flags | DET_FILE_NO_LINK, ret);
}

static void encode_head(
    const struct det_file_log *log, const struct det_segment *segment, char *target)
{
    memset(target, 0, DET_SEGMENT_HEAD);
    memcpy(target, MAGIC, 8);
    det_put32(target + AT_VERSION, DET_LOG_VERSION);
    det_put32(target + AT_SIZE, DET_SEGMENT_HEAD);
    memcpy(target + AT_IDENTITY, log->head.identity, DET_IDENTITY_SIZE);
    det_put64(target + AT_NUMBER, segment->number);
    det_put64(target + AT_BASE, segment->base);
    det_put64(target + AT_CREATED, (uint64_t)segment->created);
    det_put64(target + AT_BEFORE, segment->before);
    det_put32(target + AT_SUM, det_crc32c(log->seed, target, AT_SUM));
}

int det_segment_read_head(
    const struct det_file_log *log, struct det_file *file, uint64_t number, struct det_segment *ret)
{
    char data[DET_SEGMENT_HEAD];
    int64_t size;

    size = det_file_read(log->world, file, 0, data, sizeof data);
    if (size < 0)
        return (int)size;
    if (size < (int64_t)sizeof data || memcmp(data, MAGIC, 8) != 0 ||
        det_get32(data + AT_SUM) != det_crc32c(log->seed, data, AT_SUM))
        return DET_ERR_CORRUPT;
    if (det_get32(data + AT_VERSION) != DET_LOG_VERSION)
        return DET_ERR_VERSION;
    *ret = (struct det_segment){
        .number = det_get64(data + AT_NUMBER),
        .base = det_get64(data + AT_BASE),
        .created = (det_time)det_get64(data + AT_CREATED),
        .before = det_get64(data + AT_BEFORE),
    };
    /* A file that is used again may have an old header of this number, if the log was cut. */
    if (ret->number != number || ret->base == 0 ||
        (number == log->head.first && ret->base != log->head.first_base))
        return DET_ERR_CORRUPT;
    return 0;
}

/* Makes room for the header of one more segment. */
static int reserve_header(struct det_file_log *log, uint64_t number)
{
    size_t need = (size_t)(number - log->first) + 1;
    size_t capacity = log->segment_capacity ? log->segment_capacity : 8;
    struct det_segment *segments;

    if (need <= log->segment_capacity)
        return 0;
    while (capacity < need)
        capacity *= 2;
    segments = det_realloc(
        log->allocator, log->segments, log->segment_capacity * sizeof *segments,
        capacity * sizeof *segments);
    if (!segments)
        return DET_ERR_NO_MEMORY;
    memset(
        segments + log->segment_capacity, 0, (capacity - log->segment_capacity) * sizeof *segments);
    log->segments = segments;
    log->segment_capacity = capacity;
    return 0;
}

int det_segment_find(
    struct det_file_log *log, uint64_t number, struct det_segment *ret, struct det_error *reterr)
{
    char name[DET_SEGMENT_NAME];
    struct det_segment *known;
    struct det_file *file;
    int r;

    det_assert(number >= log->first && number <= log->last);
    if (number == log->last) {
        *ret = log->active;
        return 0;
    }
    det_segment_name(number, name);
    r = reserve_header(log, number);
    if (r < 0)
        return det_log_refuse(log, reterr, r, name, "%s", det_error_text(r));
    known = &log->segments[number - log->first];
    if (known->number == 0) {
        r = det_segment_open(log, number, DET_FILE_READ, &file);
        if (r < 0)
            return det_log_refuse(
                log, reterr, r == DET_ERR_NOT_FOUND ? DET_ERR_CORRUPT : r, name, "%s",
                r == DET_ERR_NOT_FOUND ? "missing" : det_error_text(r));
        r = det_segment_read_head(log, file, number, known);
        det_file_close(log->world, file);
        if (r < 0) {
            known->number = 0;
            return det_log_refuse(log, reterr, r, name, "offset 0: the header is not valid");
        }
    }
    *ret = *known;
    return 0;
}

int det_segment_of(
    struct det_file_log *log, uint64_t position, struct det_segment *ret, struct det_error *reterr)
{
    uint64_t low = log->first, high = log->last;
    int r;

    /* The segment is one of low to high. */
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;

        r = det_segment_find(log, middle, ret, reterr);
        if (r < 0)
            return r;
        if (ret->base <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return det_segment_find(log, low, ret, reterr);
}

/* A failed attempt may have left a file with this number: it has no rows. `ret_size`: of the old
 * content, which frames of the new segment are written over. */
static int create_file(
    struct det_file_log *log, uint64_t number, struct det_file **ret, uint64_t *ret_size)
{
    unsigned flags = DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_EXCLUSIVE;
    char path[DET_PATH_MAX];
    int64_t size;
    int r;

    *ret_size = 0;
    r = det_segment_path(log, number, path);
    if (r < 0)
        return r;
    if (det_log_take_spare(log, path) == 0 &&
        det_segment_open(log, number, DET_FILE_READ | DET_FILE_WRITE, ret) == 0) {
        size = det_file_size(log->world, *ret);
        *ret_size = size > 0 ? (uint64_t)size : 0;
        return 0;
    }
    r = det_segment_open(log, number, flags, ret);
    if (r != DET_ERR_EXISTS)
        return r;
    r = det_file_remove(log->world, path);
    return r < 0 ? r : det_segment_open(log, number, flags, ret);
}

static int write_start(
    const struct det_file_log *log, struct det_file *file, const struct det_segment *segment,
    const void *table, size_t table_size)
{
    size_t size = DET_SEGMENT_HEAD + table_size;
    char *data;
    int r;

    data = det_alloc(log->allocator, size);
    if (!data)
        return DET_ERR_NO_MEMORY;
    encode_head(log, segment, data);
    memcpy(data + DET_SEGMENT_HEAD, table, table_size);
    r = det_file_write(log->world, file, 0, data, size);
    det_free(log->allocator, data, size);
    return r;
}

int det_segment_create(struct det_file_log *log, const void *table, size_t table_size, det_time at)
{
    struct det_segment segment = {
        .number = log->last + 1,
        .base = log->position + 1,
        .created = at,
        .before = log->active.before + log->offset,
    };
    struct det_file *file;
    uint64_t size;
    int r;

    r = reserve_header(log, segment.number);
    if (r == 0)
        r = create_file(log, segment.number, &file, &size);
    if (r < 0)
        return r;
    r = write_start(log, file, &segment, table, table_size);
    if (r < 0) {
        det_file_close(log->world, file);
        return r;
    }
    det_mutex_lock(log->world, log->mutex);
    if (log->last >= log->first)
        log->segments[log->last - log->first] = log->active;
    log->active = segment;
    log->last = segment.number;
    log->offset = DET_SEGMENT_HEAD + table_size;
    log->allocated = size > log->offset ? size : log->offset;
    log->index.count = 0;
    log->index.span = 0;
    det_mutex_unlock(log->world, log->mutex);
    det_file_close(log->world, log->file);
    log->file = file;
    log->folder_is_dirty = true;
    return 0;
}

static void encode_index(const struct det_file_log *log, char *data, size_t size)
{
    struct det_frame frame = {
        .kind = DET_FRAME_INDEX,
        .size = (uint32_t)(size - DET_SEGMENT_TRAILER),
        .first = log->position + 1,
        .synced = log->mark.synced,
        .at = det_world_now(log->world, DET_CLOCK_WALL),
        .count = (uint32_t)log->index.count,
    };
    char *at = data + DET_FRAME_HEAD, *trailer = data + frame.size;

    for (size_t i = 0; i < log->index.count; i++, at += 16) {
        det_put64(at, log->index.entries[i].position);
        det_put64(at + 8, log->index.entries[i].offset);
    }
    det_frame_put_head(data, &frame);
    det_frame_seal(data, frame.size, log->seed);
    memcpy(trailer, "detindex", 8);
    det_put64(trailer + 8, log->offset);
    det_put64(trailer + 16, log->position);
    det_put32(trailer + 24, 0);
    det_put32(trailer + 28, det_crc32c(log->seed, trailer, 28));
}

void det_segment_seal(struct det_file_log *log)
{
    size_t size = DET_FRAME_HEAD + 16 * log->index.count + DET_SEGMENT_TRAILER;
    char *data;

    data = det_alloc(log->allocator, size);
    if (!data)
        return;
    encode_index(log, data, size);
    if (det_file_write(log->world, log->file, log->offset, data, size) == 0)
        (void)det_file_truncate(log->world, log->file, log->offset + size);
    det_free(log->allocator, data, size);
}
