/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* append.c - a group of rows becomes a frame: checked, numbered and encoded under the lock. */
#include "journal/journal_internal.h"

#include "base/assert.h"

/* The rows of a call, and what they become. */
struct group {
    const struct det_journal_row *rows;
    size_t count;
    size_t size;
    uint64_t first;
};

static int refuse_row(struct det_error *reterr, size_t index, int code, const char *reason)
{
    return det_error_set(reterr, code, "row %zu of the group: %s", index + 1, reason);
}

/* Checks what does not depend on the journal, and sums up the size. */
static int measure_group(struct group *group, struct det_error *reterr)
{
    size_t size = DET_FRAME_HEAD;

    if (group->count == 0)
        return det_error_set(reterr, DET_ERR_INVALID, "a group has at least one row");
    for (size_t i = 0; i < group->count; i++) {
        const struct det_journal_row *row = &group->rows[i];

        if (row->size > DET_JOURNAL_ROW_MAX)
            return refuse_row(reterr, i, DET_ERR_LIMIT, "a row has at most 1,048,576 bytes");
        det_assert(row->data || row->size == 0);
        size += det_frame_row_size(row);
        if (size > DET_JOURNAL_GROUP_MAX)
            return det_error_set(
                reterr, DET_ERR_LIMIT, "a group has at most 16,777,216 bytes; divide it");
    }
    group->size = size;
    return 0;
}

static int check_rows(
    const struct det_journal *journal, const struct group *group, struct det_error *reterr)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct det_journal_row *row = &group->rows[i];

        if (row->stream >= journal->stream_count)
            return refuse_row(reterr, i, DET_ERR_INVALID, "its stream is unknown");
        if (row->parent >= group->first + i || row->correlation >= group->first + i)
            return refuse_row(
                reterr, i, DET_ERR_INVALID, "its parent and correlation must be rows before it");
    }
    return 0;
}

static void encode_group(
    struct det_journal *journal, const struct group *group, det_time at, char *target)
{
    struct det_frame frame = {
        .kind = DET_FRAME_GROUP,
        .size = (uint32_t)group->size,
        .first = group->first,
        .synced = det_journal_synced(journal),
        .at = at,
        .count = (uint32_t)group->count,
    };
    char *place = target + DET_FRAME_HEAD;

    for (size_t i = 0; i < group->count; i++) {
        const struct det_journal_row *row = &group->rows[i];
        struct det_journal_stream *stream = journal->streams[row->stream];

        stream->sequence++;
        stream->position = group->first + i;
        frame.streams |= 1u << row->stream % 32;
        place += det_frame_put_row(place, row, stream->sequence);
    }
    det_assert(place == target + group->size);
    det_frame_put_head(target, &frame);
}

static void count_group(struct det_journal *journal, const struct group *group)
{
    journal->counts.rows += group->count;
    journal->counts.groups++;
    journal->counts.bytes += group->size;
}

/* For a driver with `reserve`: the rows are acknowledged at once. */
static int append_immediately(
    struct det_journal *journal, const struct group *group, struct det_error *reterr)
{
    uint64_t last = group->first + group->count - 1;
    bool begins;
    void *target;

    target = journal->log->ops->reserve(journal->log, group->first, group->size, &begins);
    if (!target)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for rows of a journal");
    encode_group(journal, group, det_journal_now(journal), target);
    count_group(journal, group);
    journal->log->ops->publish(journal->log, last, group->size);
    journal->written = last;
    atomic_store_explicit(&journal->end, last, memory_order_release);
    atomic_store_explicit(&journal->acknowledged, last, memory_order_release);
    if (begins)
        det_journal_drop_now(journal);
    det_journal_write_soon(journal);
    return 0;
}

static int append_buffered(
    struct det_journal *journal, const struct group *group, bool may_wait, struct det_error *reterr)
{
    uint64_t last;
    det_time at;
    void *target;
    int r;

    r = det_journal_buffers_reserve(journal, group->size, false, &target);
    if (r == DET_ERR_BUSY && !may_wait) {
        journal->has_refused = true;
        return det_error_set(reterr, r, "both buffers of the journal are full");
    }
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "out of memory for a buffer of a journal");
    if (r < 0)
        return r;
    at = det_journal_now(journal);
    encode_group(journal, group, at, target);
    det_frame_seal(target, group->size, journal->seed);
    count_group(journal, group);
    last = group->first + group->count - 1;
    det_journal_buffers_commit(journal, group->size, group->first, last, at);
    atomic_store_explicit(&journal->end, last, memory_order_release);
    if (journal->options.durability == DET_JOURNAL_MEMORY) {
        atomic_store_explicit(&journal->acknowledged, last, memory_order_release);
        det_journal_notify(journal);
    }
    if (!may_wait || !det_journal_write_inline(journal))
        det_journal_write_soon(journal);
    return 0;
}

static int try_append(
    struct det_journal *journal, struct group *group, bool may_wait, struct det_error *reterr)
{
    int r;

    r = det_journal_failure_locked(journal, reterr);
    if (r < 0)
        return r;
    group->first = atomic_load_explicit(&journal->end, memory_order_relaxed) + 1;
    r = check_rows(journal, group, reterr);
    if (r < 0)
        return r;
    if (det_journal_is_immediate(journal))
        return append_immediately(journal, group, reterr);
    return append_buffered(journal, group, may_wait, reterr);
}

static int append_group(
    struct det_journal *journal, const struct det_journal_row *rows, size_t count, bool may_wait,
    uint64_t *ret, struct det_error *reterr)
{
    struct group group = { .rows = rows, .count = count };
    int r;

    if (journal->options.is_read_only)
        return det_error_set(reterr, DET_ERR_READ_ONLY, "the journal is open for reading only");
    r = measure_group(&group, reterr);
    if (r < 0)
        return r;
    det_journal_lock(journal);
    while ((r = try_append(journal, &group, may_wait, reterr)) == DET_ERR_BUSY && may_wait) {
        r = det_journal_make_room(journal);
        if (r < 0) {
            r = det_error_set(reterr, r, "a journal that is full: %s", det_error_text(r));
            break;
        }
    }
    det_journal_unlock(journal);
    if (r == 0 && ret)
        *ret = group.first + count - 1;
    return r;
}

int det_journal_append(
    struct det_journal *journal, const struct det_journal_row *rows, size_t count, uint64_t *ret,
    struct det_error *reterr)
{
    return append_group(journal, rows, count, true, ret, reterr);
}

int det_journal_offer(
    struct det_journal *journal, const struct det_journal_row *rows, size_t count, uint64_t *ret,
    struct det_error *reterr)
{
    return append_group(journal, rows, count, false, ret, reterr);
}
