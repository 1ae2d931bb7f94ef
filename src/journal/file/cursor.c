/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cursor.c - reads frames from the segments, each with its own descriptor: checks them, and hands
 * on those that are in memory together. */
#include <inttypes.h>

#include "base/assert.h"
#include "journal/file/file_log.h"

struct det_journal_cursor {
    struct det_file_log *log;
    struct det_scan scan;
    struct det_segment segment;
    uint64_t next;        /* position of the next frame */
    uint64_t segment_end; /* position after the segment; 0: it is the last one */
    uint64_t known;       /* the log ended there when the end of the scan was set */
};

/* Frames to hand on. */
struct run {
    const char *data;
    size_t size;
};

static void forget_file(struct det_journal_cursor *cursor)
{
    det_file_close(cursor->log->world, cursor->scan.window.file);
    det_window_set_file(&cursor->scan.window, NULL);
}

static int refuse_place(
    const struct det_journal_cursor *cursor, struct det_error *reterr, const char *reason)
{
    char name[DET_SEGMENT_NAME];

    det_segment_name(cursor->segment.number, name);
    (void)det_log_refuse(
        cursor->log, reterr, DET_ERR_CORRUPT, name, "offset %" PRIu64 ", position %" PRIu64 ": %s",
        cursor->scan.offset, cursor->next, reason);
    if (reterr)
        reterr->offset = cursor->scan.offset;
    return DET_ERR_CORRUPT;
}

static int refuse_dropped(const struct det_journal_cursor *cursor, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_RANGE, "the row at position %" PRIu64 " was dropped", cursor->next);
}

/* Finds out where the segment ends now: frames beyond that are being written. */
static int find_end(struct det_journal_cursor *cursor, struct det_error *reterr)
{
    struct det_file_log *log = cursor->log;
    struct det_segment after;
    int r = 0;

    det_mutex_lock(log->world, log->mutex);
    cursor->known = log->position;
    if (cursor->segment.number < log->first) {
        cursor->scan.end = UINT64_MAX; /* dropped, but this file is open */
        if (cursor->segment_end == 0)
            r = refuse_dropped(cursor, reterr);
    } else if (cursor->segment.number < log->last) {
        r = det_segment_find(log, cursor->segment.number + 1, &after, reterr);
        cursor->scan.end = UINT64_MAX;
        cursor->segment_end = after.base;
    } else {
        cursor->scan.end = log->offset;
        cursor->segment_end = 0;
    }
    det_mutex_unlock(log->world, log->mutex);
    return r;
}

/* Opens the segment with the position `next`; DET_ERR_RANGE. */
static int enter_segment(struct det_journal_cursor *cursor, struct det_error *reterr)
{
    struct det_file_log *log = cursor->log;
    struct det_journal_index_entry place;
    char name[DET_SEGMENT_NAME];
    struct det_file *file;
    bool is_active;
    int r;

    forget_file(cursor);
    det_mutex_lock(log->world, log->mutex);
    if (cursor->next < log->head.first_base)
        r = refuse_dropped(cursor, reterr);
    else
        r = det_segment_of(log, cursor->next, &cursor->segment, reterr);
    is_active = r == 0 && cursor->segment.number == log->last;
    if (is_active)
        place = det_journal_index_find(
            log->index.entries, log->index.count, cursor->next, cursor->segment.base);
    /* Opened under the lock, so that it is not dropped before. */
    if (r == 0) {
        r = det_segment_open(log, cursor->segment.number, DET_FILE_READ, &file);
        det_segment_name(cursor->segment.number, name);
        if (r < 0)
            (void)det_log_refuse(log, reterr, r, name, "%s", det_error_text(r));
    }
    det_mutex_unlock(log->world, log->mutex);
    if (r < 0)
        return r;
    det_window_set_file(&cursor->scan.window, file);
    if (!is_active)
        place = det_journal_index_find_sealed(log, file, &cursor->segment, cursor->next);
    cursor->scan.offset = place.offset;
    cursor->next = place.position;
    return find_end(cursor, reterr);
}

int det_log_cursor_open(
    struct det_journal_log *base, uint64_t from, struct det_journal_cursor **ret,
    struct det_error *reterr)
{
    struct det_file_log *log = (struct det_file_log *)base;
    struct det_journal_cursor *cursor;
    int r;

    cursor = DET_NEW(log->allocator, struct det_journal_cursor);
    if (!cursor)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a reader of a journal");
    cursor->log = log;
    cursor->next = from;
    cursor->scan.seed = log->seed;
    det_window_init(&cursor->scan.window, log->world, log->allocator);
    r = enter_segment(cursor, reterr);
    if (r < 0) {
        det_log_cursor_close(cursor);
        return r;
    }
    *ret = cursor;
    return 0;
}

void det_log_cursor_close(struct det_journal_cursor *cursor)
{
    forget_file(cursor);
    det_window_deinit(&cursor->scan.window);
    DET_DELETE(cursor->log->allocator, cursor);
}

/* True if the file may have become that of a newer segment. */
static bool is_dropped(const struct det_journal_cursor *cursor)
{
    struct det_file_log *log = cursor->log;
    uint64_t first;

    det_mutex_lock(log->world, log->mutex);
    if (log->options.is_read_only)
        (void)det_log_follow_head(log, NULL);
    first = log->first;
    det_mutex_unlock(log->world, log->mutex);
    return cursor->segment.number < first;
}

/* Goes on after a damaged place, if loss is accepted. */
static int skip_damage(struct det_journal_cursor *cursor, struct det_error *reterr)
{
    struct det_frame frame;
    const char *data;
    bool has_bytes;
    int r;

    if (is_dropped(cursor))
        return refuse_dropped(cursor, reterr);
    if (!cursor->log->options.accepts_loss)
        return refuse_place(cursor, reterr, "damaged; rows that were acknowledged are lost");
    r = det_scan_resync(&cursor->scan, cursor->next, &has_bytes);
    if (r > 0)
        r = det_scan_frame(&cursor->scan, &frame, &data);
    if (r < 0)
        return det_error_set(reterr, r, "a reader of a journal: %s", det_error_text(r));
    if (r == DET_SCAN_FRAME && (cursor->segment_end == 0 || frame.first < cursor->segment_end))
        cursor->next = frame.first;
    else
        cursor->next = cursor->segment_end ? cursor->segment_end : cursor->known + 1;
    return 0;
}

/* Adds the next frame to the run: 1; 0: hand on what there is. */
static int add_frame(struct det_journal_cursor *cursor, struct run *run, struct det_error *reterr)
{
    struct det_scan *scan = &cursor->scan;
    struct det_frame frame = { .kind = DET_FRAME_GROUP };
    const char *data = NULL;
    int r;

    /* What is in memory must stay there while it is in the run. */
    if (run->size > 0) {
        if (!det_window_has(&scan->window, scan->offset, DET_FRAME_HEAD) ||
            !det_frame_get_head(run->data + run->size, DET_FRAME_HEAD, &frame) ||
            !det_window_has(&scan->window, scan->offset, frame.size))
            return 0;
    }
    r = det_scan_frame(scan, &frame, &data);
    if (r < 0)
        return det_error_set(reterr, r, "a reader of a journal: %s", det_error_text(r));
    if (r != DET_SCAN_FRAME || frame.first != cursor->next || frame.kind == DET_FRAME_INDEX) {
        if (run->size > 0)
            return 0;
        r = skip_damage(cursor, reterr);
        return r < 0 ? r : 1;
    }
    if (run->size == 0)
        run->data = data;
    run->size += frame.size;
    scan->offset += frame.size;
    cursor->next = det_frame_next(&frame, data);
    return 1;
}

/* The end of what is known: looks again, perhaps in the next segment. */
static int move_on(struct det_journal_cursor *cursor, struct det_error *reterr)
{
    int r;

    if (cursor->segment_end == 0) {
        r = find_end(cursor, reterr);
        if (r < 0 || cursor->segment_end == 0 || cursor->next < cursor->segment_end)
            return r;
    }
    return enter_segment(cursor, reterr);
}

int det_log_cursor_read(
    struct det_journal_cursor *cursor, uint64_t limit, const void **ret, size_t *ret_size,
    struct det_error *reterr)
{
    struct run run = { .size = 0 };
    int r = 1;

    *ret_size = 0;
    while (r > 0 && cursor->next <= limit) {
        bool is_at_end = cursor->segment_end ? cursor->next >= cursor->segment_end
                                             : cursor->next > cursor->known;

        if (!is_at_end && cursor->scan.window.file) {
            r = add_frame(cursor, &run, reterr);
        } else if (run.size > 0) {
            break;
        } else {
            r = move_on(cursor, reterr);
            r = r < 0 ? r : 1;
        }
    }
    if (r < 0)
        return r;
    *ret = run.data;
    *ret_size = run.size;
    return 0;
}
