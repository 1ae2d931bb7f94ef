/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* drop.c - removes the oldest segments: first they are taken from the head, then from the
 * folder. One file is kept as the spare, for the next segment: writing over its blocks is faster
 * than writing new ones. */
#include <string.h>

#include "journal/file/file_log.h"
#include "journal/retention.h"

#define LEFTOVERS_MAX 64

/* The first segment that must be kept: at least one whose header is on the disk, since only that
 * has the positions and the streams. Under the mutex. */
static int find_kept(
    struct det_file_log *log, uint64_t released, det_time now, struct det_segment *ret)
{
    struct det_journal_oldest oldest;
    struct det_segment after;
    int r;

    r = det_segment_find(log, log->first, ret, NULL);
    while (r == 0 && ret->number + log->folder_is_dirty < log->last) {
        r = det_segment_find(log, ret->number + 1, &after, NULL);
        if (r < 0)
            break;
        oldest = (struct det_journal_oldest){
            .last = after.base - 1,
            .newest = after.created,
            .bytes_left = log->active.before + log->offset - after.before,
        };
        if (!det_journal_may_drop(&log->options, released, now, &oldest))
            break;
        *ret = after;
    }
    return r;
}

/* The first one becomes the spare, unless there is one. */
static void remove_segment(struct det_file_log *log, uint64_t number)
{
    char path[DET_PATH_MAX], spare[DET_PATH_MAX];

    if (det_segment_path(log, number, path) < 0 || det_log_path(log, "spare", spare) < 0)
        return;
    if (!log->has_spare && det_file_rename(log->world, path, spare) == 0)
        log->has_spare = true;
    else
        (void)det_file_remove(log->world, path);
}

int det_log_take_spare(struct det_file_log *log, const char *path)
{
    char spare[DET_PATH_MAX];
    int r;

    if (!log->has_spare)
        return DET_ERR_NOT_FOUND;
    log->has_spare = false;
    r = det_log_path(log, "spare", spare);
    return r < 0 ? r : det_file_rename(log->world, spare, path);
}

/* Moves the known headers; under the mutex. */
static void forget_segments(struct det_file_log *log, uint64_t first)
{
    size_t count = (size_t)(first - log->first);

    if (count < log->segment_capacity) {
        memmove(
            log->segments, log->segments + count,
            (log->segment_capacity - count) * sizeof *log->segments);
        memset(log->segments + log->segment_capacity - count, 0, count * sizeof *log->segments);
    } else if (log->segments) {
        memset(log->segments, 0, log->segment_capacity * sizeof *log->segments);
    }
    log->first = first;
}

int det_log_drop(struct det_journal_log *base, uint64_t released, det_time now)
{
    struct det_file_log *log = (struct det_file_log *)base;
    struct det_log_head head = log->head;
    struct det_segment kept;
    uint64_t old = log->first;
    int r;

    if (log->has_failed)
        return DET_ERR_IO;
    det_mutex_lock(log->world, log->mutex);
    r = find_kept(log, released, now, &kept);
    det_mutex_unlock(log->world, log->mutex);
    if (r < 0 || kept.number == old)
        return r;
    head.first = kept.number;
    head.first_base = kept.base;
    head.first_before = kept.before;
    r = det_log_head_store(log, &head);
    if (r < 0)
        return r;
    det_mutex_lock(log->world, log->mutex);
    log->head = head;
    forget_segments(log, kept.number);
    det_mutex_unlock(log->world, log->mutex);
    for (uint64_t number = old; number < kept.number; number++)
        remove_segment(log, number);
    return 0;
}

void det_log_remove_leftovers(const struct det_file_log *log)
{
    struct det_file *file;
    char path[DET_PATH_MAX];

    if (log->first == 1 || det_segment_open(log, log->first - 1, DET_FILE_READ, &file) < 0)
        return;
    det_file_close(log->world, file);
    /* It is unknown whether the head is on the disk. */
    if (det_log_head_store(log, &log->head) < 0)
        return;
    for (uint64_t number = log->first; number-- > 1 && log->first - number <= LEFTOVERS_MAX;) {
        if (det_segment_path(log, number, path) < 0 || det_file_remove(log->world, path) < 0)
            break;
    }
}
