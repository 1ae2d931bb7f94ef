/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* scan.c - frames of a segment: one after the other, and after a place that has none. */
#include <string.h>

#include "journal/file/file_log.h"

static bool is_zero(const char *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* Fewer bytes than a head: the end if all of them are zero. */
static int judge_rest(const char *data, int64_t size)
{
    return size <= 0 || is_zero(data, (size_t)size) ? DET_SCAN_END : DET_SCAN_BAD;
}

int det_scan_frame(struct det_scan *scan, struct det_frame *ret, const char **ret_data)
{
    const char *data = NULL;
    int64_t size;

    size = det_window_get(&scan->window, scan->offset, DET_FRAME_HEAD, scan->end, &data);
    if (size < 0)
        return (int)size;
    if (size < (int64_t)DET_FRAME_HEAD)
        return judge_rest(data, size);
    if (!det_frame_get_head(data, (size_t)size, ret) || !det_frame_head_is_valid(data, scan->seed))
        return is_zero(data, DET_FRAME_HEAD) ? DET_SCAN_END : DET_SCAN_BAD;
    size = det_window_get(&scan->window, scan->offset, ret->size, scan->end, &data);
    if (size < 0)
        return (int)size;
    if (size < (int64_t)ret->size || !det_frame_body_is_valid(data, ret->size, scan->seed))
        return DET_SCAN_BAD;
    *ret_data = data;
    return DET_SCAN_FRAME;
}

/* Skips zeros and bytes that cannot begin a frame, as far as they are in memory. */
static uint64_t skip_bytes(const char *data, size_t size, bool *ret_has_bytes)
{
    size_t at = 0;

    while (at + 8 <= size) {
        if (det_get64(data + at) != 0) {
            *ret_has_bytes = true;
            if (memcmp(data + at, "det", 3) == 0)
                break;
        }
        at += 8;
    }
    if (at == 0 && size < 8) {
        *ret_has_bytes = *ret_has_bytes || !is_zero(data, size);
        return size;
    }
    return at;
}

int det_scan_resync(struct det_scan *scan, uint64_t first, bool *ret_has_bytes)
{
    struct det_frame frame;
    const char *data = NULL;
    uint64_t skipped;
    int64_t size;
    int r;

    for (;;) {
        size = det_window_get(&scan->window, scan->offset, 8, scan->end, &data);
        if (size <= 0)
            return (int)size;
        skipped = skip_bytes(data, (size_t)size, ret_has_bytes);
        if (skipped > 0) {
            scan->offset += skipped;
            continue;
        }
        r = det_scan_frame(scan, &frame, &data);
        if (r < 0)
            return r;
        if (r == DET_SCAN_FRAME && frame.first >= first && frame.kind != DET_FRAME_INDEX)
            return 1;
        scan->offset += 8;
    }
}

static int table_streams(
    const struct det_frame *frame, const char *data, const struct det_journal_stream_sink *sink)
{
    const char *at = data + DET_FRAME_HEAD, *end = data + frame->size;
    struct det_frame_entry entry;
    size_t size;
    int r;

    for (uint32_t i = 0; i < frame->count; i++) {
        size = det_frame_get_entry(at, end, &entry);
        if (size == 0)
            return DET_ERR_CORRUPT;
        r = sink->found(
            sink->context, entry.stream, entry.name, entry.name_size, entry.sequence,
            entry.position);
        if (r < 0)
            return r;
        at += size;
    }
    return 0;
}

int det_scan_streams(
    const struct det_frame *frame, const char *data, const struct det_journal_stream_sink *sink)
{
    const char *at = data + DET_FRAME_HEAD, *end = data + frame->size;
    struct det_journal_row row;
    size_t size;
    int r;

    if (frame->kind == DET_FRAME_TABLE)
        return table_streams(frame, data, sink);
    if (frame->kind != DET_FRAME_GROUP)
        return 0;
    for (uint32_t i = 0; i < frame->count; i++) {
        size = det_frame_get_row(frame, at, end, &row);
        if (size == 0)
            return DET_ERR_CORRUPT;
        r = sink->found(sink->context, row.stream, NULL, 0, row.sequence, frame->first + i);
        if (r < 0)
            return r;
        at += size;
    }
    return 0;
}
