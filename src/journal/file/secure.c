/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* secure.c - with durability DISK: rows that may not be on the disk are written again when a log is
 * opened. After a failed sync the page cache may have bytes that the disk does not have, and a
 * later sync does not write them. */
#include "journal/file/file_log.h"

/* Rewrites the bytes of a file from `from` to `to` in place. */
static int rewrite_bytes(
    struct det_file_log *log, struct det_file *file, uint64_t from, uint64_t to)
{
    size_t capacity = 65536;
    char *data;
    int r = 0;

    data = det_alloc(log->allocator, capacity);
    if (!data)
        return DET_ERR_NO_MEMORY;
    while (r == 0 && from < to) {
        size_t part = to - from < capacity ? (size_t)(to - from) : capacity;
        int64_t size = det_file_read(log->world, file, from, data, part);

        if (size <= 0)
            r = size < 0 ? (int)size : DET_ERR_IO;
        else
            r = det_file_write(log->world, file, from, data, (size_t)size);
        from += size > 0 ? (uint64_t)size : 0;
    }
    det_free(log->allocator, data, capacity);
    return r < 0 ? r : det_file_sync(log->world, file);
}

/* Writes a whole segment to a new file: nothing is known about this one's entry in the folder. */
static int replace_segment(struct det_file_log *log, uint64_t number)
{
    bool is_active = number == log->last;
    char path[DET_PATH_MAX], *data;
    size_t size;
    int r;

    r = det_segment_path(log, number, path);
    if (r == 0)
        r = det_file_load(log->world, log->allocator, path, DET_SEGMENT_FILE_MAX, &data, &size);
    if (r < 0)
        return r;
    r = det_file_replace(log->world, path, data, is_active ? (size_t)log->offset : size);
    det_free(log->allocator, data, size + 1);
    if (r < 0 || !is_active)
        return r;
    det_file_close(log->world, log->file);
    log->file = NULL;
    log->allocated = log->offset;
    return det_segment_open(log, number, DET_FILE_READ | DET_FILE_WRITE, &log->file);
}

static int rewrite_segment(
    struct det_file_log *log, const struct det_segment *segment, uint64_t secure)
{
    struct det_file *file;
    struct det_journal_index_entry place;
    int64_t size;
    int r;

    if (segment->number == log->last) {
        place =
            det_journal_index_find(log->index.entries, log->index.count, secure + 1, segment->base);
        return rewrite_bytes(log, log->file, place.offset, log->offset);
    }
    r = det_segment_open(log, segment->number, DET_FILE_READ | DET_FILE_WRITE, &file);
    if (r < 0)
        return r;
    size = det_file_size(log->world, file);
    r = size < 0 ? (int)size : rewrite_bytes(log, file, DET_SEGMENT_HEAD, (uint64_t)size);
    det_file_close(log->world, file);
    return r;
}

int det_log_secure(struct det_file_log *log, uint64_t secure, struct det_error *reterr)
{
    char name[DET_SEGMENT_NAME];
    struct det_segment segment;
    int r;

    /* The entry of a segment without such rows may be missing, too. */
    if (!det_log_is_durable(log) || (secure >= log->position && secure >= log->active.base))
        return 0;
    r = det_segment_of(log, secure + 1, &segment, reterr);
    if (r < 0)
        return r;
    for (uint64_t number = segment.number; number <= log->last; number++) {
        r = det_segment_find(log, number, &segment, reterr);
        if (r < 0)
            return r;
        if (segment.base > secure)
            r = replace_segment(log, number);
        else
            r = rewrite_segment(log, &segment, secure);
        det_segment_name(number, name);
        if (r < 0)
            return det_log_refuse(log, reterr, r, name, "%s", det_error_text(r));
    }
    return 0;
}
