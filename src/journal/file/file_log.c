/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_log.c - opening, writing and closing a log in a folder. */
#include "journal/file/file_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define ALIGNMENT   4096u
#define LARGE_BATCH 262144u
#define GROWTH_MIN  65536u
#define GROWTH_MAX  1048576u

int det_log_refuse(
    const struct det_file_log *log, struct det_error *reterr, int code, const char *name,
    const char *format, ...)
{
    char reason[DET_ERROR_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return det_error_set(reterr, code, "%.160s/%s: %s", log->folder, name, reason);
}

int det_log_path(const struct det_file_log *log, const char *name, char *target)
{
    int length = snprintf(target, DET_PATH_MAX, "%s/%s", log->folder, name);

    return length < 0 || length >= DET_PATH_MAX ? DET_ERR_INVALID : 0;
}

static void close_log(struct det_journal_log *base)
{
    struct det_file_log *log = (struct det_file_log *)base;

    if (!log)
        return;
    det_file_close(log->world, log->file);
    det_file_close(log->world, log->mark_file);
    det_file_close(log->world, log->lock);
    det_journal_index_deinit(&log->index, log->allocator);
    if (log->segments)
        DET_DELETE_ARRAY(log->allocator, log->segments, log->segment_capacity);
    if (log->folder)
        det_free_string(log->allocator, log->folder);
    det_mutex_close(log->world, log->mutex);
    DET_DELETE(log->allocator, log);
}

/* Writes zeros after the end, so that the syncs of the next batches need not change the size of the
 * file. That it fails is no failure: the next batch grows the file itself, or fails. */
static void write_zeros(struct det_file_log *log, uint64_t end)
{
    static const char zeros[GROWTH_MIN];
    uint64_t growth = end < GROWTH_MIN ? GROWTH_MIN : end > GROWTH_MAX ? GROWTH_MAX : end;
    uint64_t target = (end + growth) / ALIGNMENT * ALIGNMENT;

    while (end < target) {
        size_t size = target - end < sizeof zeros ? (size_t)(target - end) : sizeof zeros;

        if (det_file_write(log->world, log->file, end, zeros, size) < 0)
            return;
        end += size;
        log->allocated = end;
    }
}

static int write_frames(struct det_file_log *log, const struct det_journal_batch *batch)
{
    uint64_t end = log->offset + batch->size;
    int r;

    r = det_file_write(log->world, log->file, log->offset, batch->data, batch->size);
    if (r < 0)
        return r;
    if (end > log->allocated) {
        log->allocated = end;
        if (batch->size < LARGE_BATCH && det_log_is_durable(log))
            write_zeros(log, end);
    }
    return 0;
}

static int sync_frames(struct det_file_log *log)
{
    int r;

    atomic_fetch_add_explicit(&log->syncs, 1, memory_order_relaxed);
    r = det_file_sync(log->world, log->file);
    if (r < 0 || !log->folder_is_dirty)
        return r;
    r = det_folder_sync(log->world, log->folder);
    log->folder_is_dirty = r < 0;
    return r;
}

/* Adds some frames of a batch to the index. Their heads are our own, so they are valid. */
static void index_frames(struct det_file_log *log, const struct det_journal_batch *batch)
{
    const char *data = batch->data;
    uint64_t next = det_journal_index_next(&log->index);
    struct det_frame frame;

    for (size_t at = 0; at < batch->size; at += det_frame_peek_size(data + at)) {
        if (log->offset + at < next || !det_frame_get_head(data + at, batch->size - at, &frame) ||
            frame.kind != DET_FRAME_GROUP)
            continue;
        det_journal_index_add(&log->index, log->allocator, frame.first, log->offset + at);
        next = det_journal_index_next(&log->index);
    }
}

static void move_end(struct det_file_log *log, const struct det_journal_batch *batch)
{
    det_mutex_lock(log->world, log->mutex);
    index_frames(log, batch);
    log->offset += batch->size;
    log->position = batch->last;
    det_mutex_unlock(log->world, log->mutex);
}

/* That it fails is no failure: the segment grows, and the next batch tries again. */
static int begin_segment(struct det_file_log *log, const struct det_journal_batch *batch)
{
    det_segment_seal(log);
    log->allocated = log->offset; /* what is after it is not only zeros */
    if (det_segment_create(log, batch->table, batch->table_size, batch->at) < 0)
        return det_file_truncate(log->world, log->file, log->offset);
    return det_log_is_durable(log) ? 0 : det_log_mark_store(log);
}

static int refuse_write(struct det_file_log *log, int code, struct det_error *reterr)
{
    char name[DET_SEGMENT_NAME];

    log->has_failed = true;
    det_segment_name(log->last, name);
    return det_log_refuse(
        log, reterr, code, name, "a write failed, so the journal takes no more rows: %s",
        det_error_text(code));
}

static int write_log(
    struct det_journal_log *base, const struct det_journal_batch *batch, uint64_t *ret_skew,
    struct det_error *reterr)
{
    struct det_file_log *log = (struct det_file_log *)base;
    int r;

    det_assert(!log->has_failed && batch->first == log->position + 1);
    r = write_frames(log, batch);
    if (r == 0 && det_log_is_durable(log))
        r = sync_frames(log);
    if (r < 0)
        return refuse_write(log, r, reterr);
    move_end(log, batch);
    if (det_log_is_durable(log))
        r = det_log_mark_store(log);
    if (r == 0 && batch->table)
        r = begin_segment(log, batch);
    if (r < 0)
        return refuse_write(log, r, reterr);
    *ret_skew = log->offset % ALIGNMENT;
    return 0;
}

static bool log_is_full(struct det_journal_log *base, size_t size)
{
    const struct det_file_log *log = (struct det_file_log *)base;

    return log->offset + size >= log->options.segment_size;
}

/* Gives back the zeros. */
static void finish_log(struct det_journal_log *base)
{
    struct det_file_log *log = (struct det_file_log *)base;

    if (log->options.is_read_only)
        return;
    if (log->allocated > log->offset)
        (void)det_file_truncate(log->world, log->file, log->offset);
    (void)det_log_mark_store(log);
}

static struct det_journal_extent log_extent(struct det_journal_log *base)
{
    struct det_file_log *log = (struct det_file_log *)base;
    struct det_journal_extent extent;
    struct det_segment second;

    det_mutex_lock(log->world, log->mutex);
    extent = (struct det_journal_extent){
        .begin = log->head.first_base,
        .segments = log->last - log->first + 1,
        .bytes = log->active.before + log->offset - log->head.first_before,
    };
    if (log->last > log->first && det_segment_find(log, log->first + 1, &second, NULL) == 0)
        extent.second = second.base;
    det_mutex_unlock(log->world, log->mutex);
    return extent;
}

static uint64_t log_syncs(const struct det_journal_log *base)
{
    return atomic_load_explicit(&((const struct det_file_log *)base)->syncs, memory_order_relaxed);
}

static const struct det_journal_log_ops file_ops = {
    .version = DET_JOURNAL_DRIVER_VERSION,
    .close = close_log,
    .write = write_log,
    .finish = finish_log,
    .is_full = log_is_full,
    .drop = det_log_drop,
    .extent = log_extent,
    .refresh = det_log_refresh,
    .cursor_open = det_log_cursor_open,
    .cursor_read = det_log_cursor_read,
    .cursor_close = det_log_cursor_close,
    .syncs = log_syncs,
};

/* Creates the folder if it may; syncs the folder that has it. */
static int make_folder(struct det_file_log *log, struct det_error *reterr)
{
    char parent[DET_PATH_MAX];
    int r;

    r = det_file_folder(log->folder, parent);
    if (r == 0 && det_path_is_remote(log->world, log->folder))
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED,
            "%.200s: a journal must be on a file system of this machine: locks of another one "
            "cannot be relied on",
            log->folder);
    if (r == 0)
        r = log->world->ops->folder_make(log->world, log->folder);
    if (r == DET_ERR_EXISTS)
        return 0;
    if (r == 0)
        r = det_folder_sync(log->world, parent);
    return r < 0 ? det_error_set(reterr, r, "%.200s: %s", log->folder, det_error_text(r)) : 0;
}

static int take_lock(struct det_file_log *log, struct det_error *reterr)
{
    char path[DET_PATH_MAX];
    unsigned flags = DET_FILE_READ | DET_FILE_WRITE | DET_FILE_NO_LINK;
    int r;

    if (!log->options.must_exist)
        flags |= DET_FILE_CREATE;
    r = det_log_path(log, "lock", path);
    if (r == 0)
        r = det_file_open(log->world, path, flags, &log->lock);
    if (r < 0)
        return det_log_refuse(log, reterr, r, "lock", "%s", det_error_text(r));
    r = det_file_lock(log->world, log->lock);
    if (r == DET_ERR_BUSY)
        return det_error_set(
            reterr, r, "%.200s: another process, or another open journal, writes it", log->folder);
    return r < 0 ? det_log_refuse(log, reterr, r, "lock", "%s", det_error_text(r)) : 0;
}

static int open_for_writing(
    struct det_file_log *log, const struct det_journal_stream_sink *sink,
    struct det_journal_found *found, struct det_error *reterr)
{
    int r = 0;

    if (!log->options.must_exist)
        r = make_folder(log, reterr);
    if (r == 0)
        r = take_lock(log, reterr);
    if (r == 0)
        r = det_log_recover(log, sink, found, reterr);
    return r;
}

static int open_file(
    const char *rest, const struct det_journal_log_options *options, struct det_journal_log **ret,
    struct det_journal_found *ret_found, struct det_error *reterr)
{
    struct det_file_log *log;
    int r;

    if (!*rest || strlen(rest) > DET_PATH_MAX - 64)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "file:%.100s: write file:FOLDER, with a path that is not "
            "too long",
            rest);
    log = DET_NEW(options->journal.allocator, struct det_file_log);
    if (!log)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a journal");
    log->log.ops = &file_ops;
    log->world = options->journal.world;
    log->allocator = options->journal.allocator;
    log->options = options->journal;
    log->folder = det_string_copy(log->allocator, rest);
    r = log->folder ? det_mutex_open(log->world, &log->mutex) : DET_ERR_NO_MEMORY;
    if (r < 0)
        (void)det_error_set(reterr, r, "file:%.200s: %s", rest, det_error_text(r));
    else if (log->options.is_read_only)
        r = det_log_follow_open(log, &options->sink, ret_found, reterr);
    else
        r = open_for_writing(log, &options->sink, ret_found, reterr);
    if (r < 0) {
        close_log(&log->log);
        return r;
    }
    ret_found->begin = log->head.first_base;
    ret_found->end = log->position;
    ret_found->skew = log->offset % ALIGNMENT;
    ret_found->seed = log->seed;
    ret_found->synced = log->mark.synced;
    *ret = &log->log;
    return 0;
}

extern const struct det_journal_driver det_journal_driver_file;
const struct det_journal_driver det_journal_driver_file = {
    .scheme = "file",
    .open = open_file,
};
