/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* follow.c - a log that another process writes: reads the mark, then the frames up to it; without
 * durability DISK all valid frames. */
#include <inttypes.h>

#include "base/assert.h"
#include "journal/file/file_log.h"

static int refuse_follow(
    const struct det_file_log *log, int code, uint64_t offset, struct det_error *reterr)
{
    char name[DET_SEGMENT_NAME];

    det_segment_name(log->last, name);
    if (code != DET_ERR_CORRUPT)
        return det_log_refuse(log, reterr, code, name, "%s", det_error_text(code));
    (void)det_log_refuse(
        log, reterr, code, name,
        "offset %" PRIu64 ", position %" PRIu64 ": damaged; rows that were acknowledged are lost",
        offset, log->position + 1);
    if (reterr)
        reterr->offset = offset;
    return code;
}

/* The mark is read before the frames: what it names is there. An older one, which a torn read of
 * the newer one leaves, is ignored. */
static int read_mark(struct det_file_log *log)
{
    struct det_log_mark before = log->mark;
    char path[DET_PATH_MAX];
    int r = 0;

    if (!log->mark_file) {
        r = det_log_path(log, "mark", path);
        if (r == 0)
            r = det_file_open(log->world, path, DET_FILE_READ | DET_FILE_NO_LINK, &log->mark_file);
        if (r == DET_ERR_NOT_FOUND)
            return 0;
    }
    if (r == 0)
        r = det_log_mark_load(log, log->mark_file);
    if (log->mark.generation < before.generation)
        log->mark = before;
    return r;
}

/* True if rows after the position may be read. */
static bool may_read(const struct det_file_log *log, uint64_t position)
{
    if (log->mark.generation == 0 || log->mark.durability != DET_JOURNAL_DISK)
        return true;
    return position < log->mark.acknowledged;
}

/* Goes on after damage that the mark proves, if loss is accepted: 1. */
static int skip_damage(struct det_file_log *log, struct det_scan *scan)
{
    struct det_frame frame;
    const char *data;
    bool has_bytes;
    int r;

    if (!log->options.accepts_loss || log->position >= log->mark.acknowledged)
        return 0;
    r = det_scan_resync(scan, log->position + 1, &has_bytes);
    if (r > 0)
        r = det_scan_frame(scan, &frame, &data) == DET_SCAN_FRAME;
    if (r > 0)
        log->position = frame.first - 1;
    return r;
}

/* Reads the frames of the last segment from `offset` on. */
static int follow_frames(struct det_file_log *log, const struct det_journal_stream_sink *sink)
{
    struct det_scan scan = { .seed = log->seed, .offset = log->offset, .end = UINT64_MAX };
    struct det_frame frame;
    const char *data = NULL;
    int r = 0;

    det_window_init(&scan.window, log->world, log->allocator);
    det_window_set_file(&scan.window, log->file);
    while (r >= 0 && may_read(log, log->position)) {
        r = det_scan_frame(&scan, &frame, &data);
        if (r < 0)
            break;
        if (r != DET_SCAN_FRAME || frame.first != log->position + 1 ||
            frame.kind == DET_FRAME_INDEX) {
            r = skip_damage(log, &scan);
            if (r <= 0)
                break;
            continue;
        }
        r = det_scan_streams(&frame, data, sink);
        if (r < 0)
            break;
        det_journal_index_add(&log->index, log->allocator, frame.first, scan.offset);
        scan.offset += frame.size;
        log->offset = scan.offset;
        log->position = det_frame_next(&frame, data) - 1;
    }
    det_window_deinit(&scan.window);
    return r < 0 ? r : 0;
}

/* Goes to the next segment, if there is one that begins after the rows of this one: 1. */
static int follow_segment(struct det_file_log *log)
{
    struct det_segment segment;
    struct det_file *file;
    int r;

    r = det_segment_open(log, log->last + 1, DET_FILE_READ, &file);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND ? 0 : r;
    r = det_segment_read_head(log, file, log->last + 1, &segment);
    if (r < 0 || segment.base != log->position + 1) {
        det_file_close(log->world, file);
        return r == DET_ERR_CORRUPT || r == 0 ? 0 : r; /* it is being made */
    }
    det_file_close(log->world, log->file);
    log->file = file;
    log->last = segment.number;
    log->active = segment;
    log->offset = DET_SEGMENT_HEAD;
    log->index.count = 0;
    log->index.span = 0;
    return 1;
}

int det_log_follow_head(struct det_file_log *log, struct det_error *reterr)
{
    uint64_t before = log->head.first;
    int r;

    r = det_log_head_load(log, reterr);
    if (r == 0 && log->head.first > before && log->head.first <= log->last) {
        if (log->segments)
            DET_DELETE_ARRAY(log->allocator, log->segments, log->segment_capacity);
        log->segments = NULL;
        log->segment_capacity = 0;
        log->first = log->head.first;
    }
    return r;
}

static int follow_end(
    struct det_file_log *log, const struct det_journal_stream_sink *sink, struct det_error *reterr)
{
    bool has_moved = false;
    int r;

    r = read_mark(log);
    if (r < 0)
        return det_log_refuse(log, reterr, r, "mark", "%s", det_error_text(r));
    do {
        r = follow_frames(log, sink);
        if (r == 0)
            r = follow_segment(log);
        has_moved = has_moved || r > 0;
    } while (r > 0);
    if (r == 0 && !log->options.accepts_loss && log->mark.generation > 0 &&
        log->mark.durability == DET_JOURNAL_DISK && log->position < log->mark.acknowledged)
        r = DET_ERR_CORRUPT;
    if (r < 0)
        return refuse_follow(log, r, log->offset, reterr);
    return has_moved ? det_log_follow_head(log, reterr) : 0;
}

int det_log_refresh(
    struct det_journal_log *base, const struct det_journal_stream_sink *sink, uint64_t *ret_end,
    struct det_error *reterr)
{
    struct det_file_log *log = (struct det_file_log *)base;
    int r;

    det_assert(log->options.is_read_only);
    det_mutex_lock(log->world, log->mutex);
    r = follow_end(log, sink, reterr);
    *ret_end = log->position;
    det_mutex_unlock(log->world, log->mutex);
    return r;
}

static int open_last(struct det_file_log *log)
{
    int r;

    det_file_close(log->world, log->file);
    log->file = NULL;
    r = det_segment_open(log, log->last, DET_FILE_READ, &log->file);
    return r < 0 ? r : det_segment_read_head(log, log->file, log->last, &log->active);
}

/* Opens the last segment, or the one before it while the last one is being made. If that one had
 * acknowledged rows, the mark shows that they are gone. */
static int open_end(struct det_file_log *log)
{
    int r;

    r = det_log_find_last(log, &log->last);
    if (r == 0 && log->last < log->first) {
        log->last = log->first;
        return DET_ERR_NOT_FOUND;
    }
    if (r == 0)
        r = open_last(log);
    if (r == DET_ERR_CORRUPT && log->last > log->first) {
        log->last--;
        r = open_last(log);
    }
    return r;
}

int det_log_follow_open(
    struct det_file_log *log, const struct det_journal_stream_sink *sink,
    struct det_journal_found *found, struct det_error *reterr)
{
    char name[DET_SEGMENT_NAME];
    int r;

    (void)found;
    r = det_log_head_load(log, reterr);
    if (r < 0)
        return r;
    log->first = log->head.first;
    r = open_end(log);
    det_segment_name(log->last, name);
    if (r < 0)
        return det_log_refuse(log, reterr, r, name, "%s", det_error_text(r));
    log->offset = DET_SEGMENT_HEAD;
    log->position = log->active.base - 1;
    return follow_end(log, sink, reterr);
}
