/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reader.c - rows out of frames: from the driver up to what was written, from a copy of the buffers
 * for what was only appended.
 *
 *     run:   | frame | frame: row row row | frame |         whole frames, borrowed or copied
 *                             ^ row                ^ run_end
 *
 * `next` is the position of the next row to look at; rows before it are skipped, also after a
 * reader had to start a frame again. */
#include "journal/journal_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"

#define POLL_SPAN (10 * DET_MILLISECOND)

struct det_journal_reader {
    struct det_journal *journal;
    struct det_journal_reader_options options;
    struct det_journal_cursor *cursor; /* NULL: to be opened at `next` */
    uint64_t next;
    const char *run, *run_end;
    struct det_frame frame; /* the current one, if `row` is set */
    const char *row, *frame_end;
    uint64_t row_position;
    char *copy;
    size_t copy_capacity;
};

static int refuse_range(
    const struct det_journal *journal, uint64_t from, uint64_t end, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_RANGE,
        "position %" PRIu64 " is not in the journal, which keeps %" PRIu64 " to %" PRIu64, from,
        det_journal_begin(journal), end);
}

int det_journal_reader_open(
    struct det_journal *journal, const struct det_journal_reader_options *options,
    struct det_journal_reader **ret, struct det_error *reterr)
{
    struct det_journal_reader_options filled =
        options ? *options : (struct det_journal_reader_options){ 0 };
    uint64_t end = det_journal_end(journal);
    struct det_journal_reader *reader;
    int r;

    r = det_reserved_check(filled.reserved, "a reader of a journal", reterr);
    if (r < 0)
        return r;
    if (filled.from == 0)
        filled.from = det_journal_begin(journal);
    if (filled.from < det_journal_begin(journal) || filled.from > end + 1)
        return refuse_range(journal, filled.from, end, reterr);
    reader = DET_NEW(journal->allocator, struct det_journal_reader);
    if (!reader)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a reader of a journal");
    reader->journal = journal;
    reader->options = filled;
    reader->next = filled.from;
    det_journal_lock(journal);
    journal->readers++;
    det_journal_unlock(journal);
    *ret = reader;
    return 0;
}

void det_journal_reader_close(struct det_journal_reader *reader)
{
    struct det_journal *journal;

    if (!reader)
        return;
    journal = reader->journal;
    if (reader->cursor)
        journal->log->ops->cursor_close(reader->cursor);
    if (reader->copy)
        det_free(journal->allocator, reader->copy, reader->copy_capacity);
    DET_DELETE(journal->allocator, reader);
    det_journal_lock(journal);
    journal->readers--;
    det_journal_unlock(journal);
}

static void drop_cursor(struct det_journal_reader *reader)
{
    if (reader->cursor)
        reader->journal->log->ops->cursor_close(reader->cursor);
    reader->cursor = NULL;
}

static int read_written(struct det_journal_reader *reader, uint64_t limit, struct det_error *reterr)
{
    struct det_journal_log *log = reader->journal->log;
    const void *data;
    size_t size;
    int r;

    if (!reader->cursor) {
        r = log->ops->cursor_open(log, reader->next, &reader->cursor, reterr);
        if (r < 0)
            return r;
    }
    r = log->ops->cursor_read(reader->cursor, limit, &data, &size, reterr);
    if (r < 0) {
        drop_cursor(reader);
        return r;
    }
    reader->run = size > 0 ? data : NULL;
    reader->run_end = size > 0 ? reader->run + size : NULL;
    return size > 0;
}

static int grow_copy(struct det_journal_reader *reader, size_t size)
{
    char *copy;

    if (size <= reader->copy_capacity)
        return 0;
    copy = det_realloc(reader->journal->allocator, reader->copy, reader->copy_capacity, size);
    if (!copy)
        return DET_ERR_NO_MEMORY;
    reader->copy = copy;
    reader->copy_capacity = size;
    return 0;
}

/* Copies the frames of a buffer from the row `next` on. Under the lock. */
static int copy_buffer(struct det_journal_reader *reader, const struct det_journal_buffer *buffer)
{
    const char *from = buffer->memory + buffer->start, *end = buffer->memory + buffer->used;
    struct det_frame frame;
    size_t size;
    int r;

    while (from < end && det_frame_get_head(from, (size_t)(end - from), &frame) &&
           det_frame_next(&frame, from) <= reader->next)
        from += frame.size;
    size = (size_t)(end - from);
    r = grow_copy(reader, size);
    if (r < 0)
        return r;
    if (size > 0)
        memcpy(reader->copy, from, size);
    reader->run = reader->copy;
    reader->run_end = reader->copy + size;
    return size > 0;
}

static bool has_row(const struct det_journal_buffer *buffer, uint64_t position)
{
    return buffer->used > buffer->start && buffer->first <= position && position <= buffer->last;
}

/* Reads what is not written yet; 0 if it was written meanwhile. */
static int read_buffers(struct det_journal_reader *reader, struct det_error *reterr)
{
    struct det_journal *journal = reader->journal;
    int r = 0;

    det_journal_lock(journal);
    for (unsigned i = 0; i < 2 && r == 0; i++) {
        if (has_row(&journal->buffers[i], reader->next))
            r = copy_buffer(reader, &journal->buffers[i]);
    }
    det_journal_unlock(journal);
    if (r > 0)
        drop_cursor(reader); /* it would read these rows again */
    if (r < 0)
        return det_error_set(reterr, r, "out of memory for a reader of a journal");
    return r;
}

/* The last position that the reader may return now, and the last one that the driver has. */
static uint64_t read_limit(const struct det_journal_reader *reader, uint64_t *ret_written)
{
    struct det_journal *journal = reader->journal;
    uint64_t limit = atomic_load_explicit(&journal->acknowledged, memory_order_acquire);

    *ret_written = limit;
    if (reader->options.unacknowledged || journal->options.durability == DET_JOURNAL_MEMORY) {
        limit = atomic_load_explicit(&journal->end, memory_order_acquire);
        det_journal_lock(journal);
        *ret_written = journal->written;
        det_journal_unlock(journal);
    }
    if (reader->options.until > 0 && limit > reader->options.until)
        limit = reader->options.until;
    return limit;
}

/* Gets more frames: 1, or 0 if there are no more now. */
static int refill(struct det_journal_reader *reader, struct det_error *reterr)
{
    struct det_journal *journal = reader->journal;
    uint64_t written, limit;
    int r;

    limit = read_limit(reader, &written);
    if (reader->next > limit && journal->options.is_read_only) {
        r = det_journal_refresh(journal, reterr);
        if (r < 0)
            return r;
        limit = read_limit(reader, &written);
    }
    if (reader->next > limit)
        return 0;
    if (reader->next > written) {
        r = read_buffers(reader, reterr);
        if (r != 0)
            return r;
        (void)read_limit(reader, &written); /* written meanwhile, unless a write failed */
        if (reader->next > written)
            return 0;
    }
    return read_written(reader, written, reterr);
}

static int refuse_frame(const struct det_journal_reader *reader, struct det_error *reterr)
{
    return det_error_set(
        reterr, DET_ERR_CORRUPT, "the row at position %" PRIu64 " is not well formed",
        reader->next);
}

/* Rows that no frame has. */
static int check_gap(struct det_journal_reader *reader, struct det_error *reterr)
{
    if (reader->frame.first <= reader->next || reader->journal->options.accepts_loss)
        return 0;
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "the rows at positions %" PRIu64 " to %" PRIu64 " are gone; open the journal with "
        "accepts_loss to read the others",
        reader->next, reader->frame.first - 1);
}

/* Looks at the next frame of the run, and enters it unless it has no rows for the reader. */
static int begin_frame(struct det_journal_reader *reader, struct det_error *reterr)
{
    struct det_frame *frame = &reader->frame;
    const char *start = reader->run;
    uint64_t next;
    bool is_wanted;
    int r;

    if (!det_frame_get_head(start, (size_t)(reader->run_end - start), frame) ||
        frame->size > (size_t)(reader->run_end - start))
        return refuse_frame(reader, reterr);
    next = det_frame_next(frame, start);
    if (next > reader->next) {
        r = check_gap(reader, reterr);
        if (r < 0)
            return r;
        is_wanted =
            frame->kind == DET_FRAME_GROUP &&
            (!reader->options.one_stream || frame->streams & 1u << reader->options.stream % 32);
        if (is_wanted) {
            reader->row = start + DET_FRAME_HEAD;
            reader->frame_end = start + frame->size;
            reader->row_position = frame->first;
        } else {
            reader->next = next;
        }
    }
    reader->run += frame->size;
    return 0;
}

/* The next row of the frame: 1, or 0 if it is not for the reader. */
static int take_row(
    struct det_journal_reader *reader, struct det_journal_row *ret, struct det_error *reterr)
{
    uint64_t position = reader->row_position;
    bool is_last = position == reader->frame.first + reader->frame.count - 1;
    size_t size;

    size = det_frame_get_row(&reader->frame, reader->row, reader->frame_end, ret);
    if (size == 0) {
        reader->row = NULL;
        return refuse_frame(reader, reterr);
    }
    reader->row = is_last ? NULL : reader->row + size;
    reader->row_position++;
    if (position < reader->next)
        return 0;
    reader->next = position + 1;
    if (reader->options.one_stream && ret->stream != reader->options.stream)
        return 0;
    ret->position = position;
    if (ret->correlation == 0)
        ret->correlation = position;
    ret->is_group_end = is_last;
    return 1;
}

int det_journal_reader_next(
    struct det_journal_reader *reader, struct det_journal_row *ret, struct det_error *reterr)
{
    int r;

    for (;;) {
        if (reader->options.until > 0 && reader->next > reader->options.until)
            return 0;
        if (reader->row)
            r = take_row(reader, ret, reterr);
        else if (reader->run < reader->run_end)
            r = begin_frame(reader, reterr);
        else if ((r = refill(reader, reterr)) > 0)
            continue;
        else
            return r;
        if (r < 0) {
            reader->run = reader->run_end = NULL;
            drop_cursor(reader);
        }
        if (r != 0)
            return r;
    }
}

/* True if there may be something to read. */
static bool is_ready(const struct det_journal_reader *reader)
{
    const struct det_journal *journal = reader->journal;
    uint64_t limit = reader->options.unacknowledged ? atomic_load(&journal->end)
                                                    : atomic_load(&journal->acknowledged);

    return reader->next <= limit;
}

static int wait_appended(struct det_journal_reader *reader, det_time deadline)
{
    struct det_journal *journal = reader->journal;
    unsigned *count = reader->options.unacknowledged ? &journal->tail_waiters : &journal->waiters;
    int r = 0;

    det_journal_lock(journal);
    ++*count;
    while (r == 0 && !is_ready(reader)) {
        r = journal->failure;
        if (r == 0 && !reader->options.unacknowledged && det_journal_write_batch(journal))
            continue;
        if (r == 0)
            r = det_journal_sleep(journal, deadline);
    }
    --*count;
    r = is_ready(reader) ? 0 : r;
    det_journal_unlock(journal);
    return r;
}

static int wait_written_elsewhere(struct det_journal_reader *reader, det_time deadline)
{
    struct det_world *world = reader->journal->world;
    int r;

    for (;;) {
        r = det_journal_refresh(reader->journal, NULL);
        if (r < 0 || is_ready(reader))
            return r;
        if (det_world_now(world, DET_CLOCK_MONOTONIC) >= deadline)
            return DET_ERR_TIMEOUT;
        r = det_world_sleep(world, POLL_SPAN);
        if (r < 0)
            return r;
    }
}

int det_journal_reader_wait(struct det_journal_reader *reader, det_time deadline)
{
    if (reader->options.until > 0 && reader->next > reader->options.until)
        return DET_ERR_RANGE;
    if (reader->row || reader->run < reader->run_end)
        return 0;
    if (reader->journal->options.is_read_only)
        return wait_written_elsewhere(reader, deadline);
    return wait_appended(reader, deadline);
}
