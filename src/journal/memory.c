/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.c - the driver "memory:": a list of chunks of frames, which cursors read in place.
 *
 *     oldest -> | frames | -> | frames | -> newest: | frames ... used      capacity |
 *
 * Invariants
 *   1. Frames up to `used` of a chunk do not change; `used` grows by whole frames.
 *   2. The list and `holders` change under `mutex`. A chunk that was dropped is freed by its last
 *      holder. */
#include "journal/journal_internal.h"

#include <inttypes.h>

#include "base/memory.h"
#include "journal/retention.h"

#define CHUNK_BASE 8192u
#define CHUNK_MAX  1048576u

struct chunk {
    struct chunk *next;
    uint64_t first; /* position */
    _Atomic uint64_t last;
    _Atomic size_t used;
    size_t capacity;
    unsigned holders; /* cursors */
    bool is_dropped;
    char frames[];
};

struct memory_log {
    struct det_journal_log log;
    struct det_journal_options options;
    struct det_mutex *mutex;
    struct chunk *oldest, *newest;
    struct chunk
        *spare; /* dropped, to be used again; its pages need not be made again. NULL: none */
    uint64_t chunks, bytes;
    size_t reserved;
};

struct det_journal_cursor {
    struct memory_log *log;
    struct chunk *chunk; /* held; NULL: nothing was appended yet */
    size_t offset;
    uint64_t from;
};

static void free_chunk(struct memory_log *log, struct chunk *chunk)
{
    det_free(log->options.allocator, chunk, sizeof *chunk + chunk->capacity);
}

/* Frees a dropped chunk, or keeps it for the next rows. */
static void retire_chunk(struct memory_log *log, struct chunk *chunk)
{
    if (log->spare || chunk->capacity != CHUNK_MAX)
        free_chunk(log, chunk);
    else
        log->spare = chunk;
}

static struct chunk *take_spare(struct memory_log *log, size_t capacity)
{
    struct chunk *chunk = NULL;

    if (capacity != CHUNK_MAX)
        return NULL;
    det_mutex_lock(log->options.world, log->mutex);
    chunk = log->spare;
    log->spare = NULL;
    det_mutex_unlock(log->options.world, log->mutex);
    return chunk;
}

static void close_memory(struct det_journal_log *base)
{
    struct memory_log *log = (struct memory_log *)base;
    struct chunk *chunk;

    if (!log)
        return;
    while ((chunk = log->oldest)) {
        log->oldest = chunk->next;
        free_chunk(log, chunk);
    }
    if (log->spare)
        free_chunk(log, log->spare);
    det_mutex_close(log->options.world, log->mutex);
    DET_DELETE(log->options.allocator, log);
}

static bool add_chunk(struct memory_log *log, uint64_t first, size_t size)
{
    size_t capacity = log->newest ? 2 * log->newest->capacity : CHUNK_BASE;
    struct chunk *chunk;

    capacity = capacity > CHUNK_MAX ? CHUNK_MAX : capacity;
    capacity = capacity < size ? size : capacity;
    chunk = take_spare(log, capacity);
    if (!chunk)
        chunk = det_alloc(log->options.allocator, sizeof *chunk + capacity);
    if (!chunk)
        return false;
    *chunk = (struct chunk){ .first = first, .capacity = capacity };
    atomic_store(&chunk->last, first - 1);
    det_mutex_lock(log->options.world, log->mutex);
    if (log->newest)
        log->newest->next = chunk;
    else
        log->oldest = chunk;
    log->newest = chunk;
    log->chunks++;
    log->bytes += capacity;
    det_mutex_unlock(log->options.world, log->mutex);
    return true;
}

/* Under the lock of the journal. */
static void *reserve_memory(
    struct det_journal_log *base, uint64_t first, size_t size, bool *ret_begins)
{
    struct memory_log *log = (struct memory_log *)base;
    struct chunk *chunk = log->newest;

    *ret_begins = !chunk || chunk->capacity - atomic_load(&chunk->used) < size;
    if (*ret_begins) {
        if (!add_chunk(log, first, size))
            return NULL;
        chunk = log->newest;
    }
    return chunk->frames + atomic_load_explicit(&chunk->used, memory_order_relaxed);
}

static void publish_memory(struct det_journal_log *base, uint64_t last, size_t size)
{
    struct memory_log *log = (struct memory_log *)base;
    struct chunk *chunk = log->newest;
    size_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);

    atomic_store_explicit(&chunk->last, last, memory_order_release);
    atomic_store_explicit(&chunk->used, used + size, memory_order_release);
}

/* The time of the last frame of a chunk. */
static det_time chunk_time(const struct chunk *chunk)
{
    struct det_frame frame = { 0 };
    size_t used = atomic_load(&chunk->used);

    for (size_t at = 0; at < used; at += frame.size)
        (void)det_frame_get_head(chunk->frames + at, used - at, &frame);
    return frame.at;
}

static bool may_drop_oldest(struct memory_log *log, uint64_t released, det_time now)
{
    const struct chunk *chunk = log->oldest;
    struct det_journal_oldest oldest;

    if (!chunk || !chunk->next)
        return false;
    oldest = (struct det_journal_oldest){
        .last = atomic_load(&chunk->last),
        .newest = log->options.retain_age > 0 ? chunk_time(chunk) : 0,
        .bytes_left = log->bytes - chunk->capacity,
    };
    return det_journal_may_drop(&log->options, released, now, &oldest);
}

static int drop_memory(struct det_journal_log *base, uint64_t released, det_time now)
{
    struct memory_log *log = (struct memory_log *)base;

    det_mutex_lock(log->options.world, log->mutex);
    while (may_drop_oldest(log, released, now)) {
        struct chunk *chunk = log->oldest;

        log->oldest = chunk->next;
        log->chunks--;
        log->bytes -= chunk->capacity;
        chunk->is_dropped = true;
        if (chunk->holders == 0)
            retire_chunk(log, chunk);
    }
    det_mutex_unlock(log->options.world, log->mutex);
    return 0;
}

static struct det_journal_extent extent_memory(struct det_journal_log *base)
{
    struct memory_log *log = (struct memory_log *)base;
    struct det_journal_extent extent = { .begin = 1 };

    det_mutex_lock(log->options.world, log->mutex);
    if (log->oldest) {
        extent = (struct det_journal_extent){
            .begin = log->oldest->first,
            .segments = log->chunks,
            .bytes = log->bytes,
            .second = log->oldest->next ? log->oldest->next->first : 0,
        };
    }
    det_mutex_unlock(log->options.world, log->mutex);
    return extent;
}

/* Holds `chunk` instead of the cursor's; under the mutex. */
static void hold_chunk(struct det_journal_cursor *cursor, struct chunk *chunk)
{
    struct chunk *old = cursor->chunk;

    if (chunk)
        chunk->holders++;
    cursor->chunk = chunk;
    cursor->offset = 0;
    if (old && --old->holders == 0 && old->is_dropped)
        retire_chunk(cursor->log, old);
}

/* The chunk with the row `from`, or the newest. Under the mutex. */
static struct chunk *find_chunk(struct memory_log *log, uint64_t from)
{
    struct chunk *chunk = log->oldest;

    while (chunk && chunk->next && chunk->next->first <= from)
        chunk = chunk->next;
    return chunk;
}

/* Moves to the chunk with the row `from`, or to the newest. Under the mutex. */
static int move_to(struct det_journal_cursor *cursor, uint64_t from, struct det_error *reterr)
{
    struct chunk *chunk = find_chunk(cursor->log, from);

    if (chunk && chunk->first > from)
        return det_error_set(
            reterr, DET_ERR_RANGE, "the row at position %" PRIu64 " was dropped", from);
    if (chunk && chunk != cursor->chunk)
        hold_chunk(cursor, chunk);
    return 0;
}

static void cursor_close_memory(struct det_journal_cursor *cursor)
{
    struct memory_log *log = cursor->log;

    det_mutex_lock(log->options.world, log->mutex);
    hold_chunk(cursor, NULL);
    det_mutex_unlock(log->options.world, log->mutex);
    DET_DELETE(log->options.allocator, cursor);
}

static int cursor_open_memory(
    struct det_journal_log *base, uint64_t from, struct det_journal_cursor **ret,
    struct det_error *reterr)
{
    struct memory_log *log = (struct memory_log *)base;
    struct det_journal_cursor *cursor;
    int r;

    cursor = DET_NEW(log->options.allocator, struct det_journal_cursor);
    if (!cursor)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a reader of a journal");
    cursor->log = log;
    cursor->from = from;
    det_mutex_lock(log->options.world, log->mutex);
    r = move_to(cursor, from, reterr);
    det_mutex_unlock(log->options.world, log->mutex);
    if (r < 0) {
        cursor_close_memory(cursor);
        return r;
    }
    *ret = cursor;
    return 0;
}

/* Moves to the next chunk, if this one is read. It is found by its position: the successor of a
 * chunk that was dropped may have been freed. */
static int next_chunk(struct det_journal_cursor *cursor, struct det_error *reterr)
{
    struct memory_log *log = cursor->log;
    uint64_t next = cursor->from;
    int r;

    det_mutex_lock(log->options.world, log->mutex);
    if (cursor->chunk)
        next = atomic_load(&cursor->chunk->last) + 1;
    r = move_to(cursor, next, reterr);
    det_mutex_unlock(log->options.world, log->mutex);
    return r;
}

static size_t unread(const struct det_journal_cursor *cursor)
{
    if (!cursor->chunk)
        return 0;
    return atomic_load_explicit(&cursor->chunk->used, memory_order_acquire) - cursor->offset;
}

static int cursor_read_memory(
    struct det_journal_cursor *cursor, uint64_t limit, const void **ret, size_t *ret_size,
    struct det_error *reterr)
{
    size_t size = unread(cursor);
    int r;

    (void)limit; /* all that is published was acknowledged */
    if (size == 0) {
        r = next_chunk(cursor, reterr);
        if (r < 0)
            return r;
        size = unread(cursor);
    }
    *ret_size = size;
    if (size > 0) {
        *ret = cursor->chunk->frames + cursor->offset;
        cursor->offset += size;
    }
    return 0;
}

static const struct det_journal_log_ops memory_ops = {
    .version = DET_JOURNAL_DRIVER_VERSION,
    .close = close_memory,
    .reserve = reserve_memory,
    .publish = publish_memory,
    .drop = drop_memory,
    .extent = extent_memory,
    .cursor_open = cursor_open_memory,
    .cursor_read = cursor_read_memory,
    .cursor_close = cursor_close_memory,
};

static int open_memory(
    const char *rest, const struct det_journal_log_options *options, struct det_journal_log **ret,
    struct det_journal_found *ret_found, struct det_error *reterr)
{
    struct memory_log *log;
    int r;

    if (*rest)
        return det_error_set(
            reterr, DET_ERR_INVALID, "memory:%.100s: nothing may follow 'memory:'", rest);
    if (options->journal.is_read_only || options->journal.must_exist)
        return det_error_set(reterr, DET_ERR_NOT_FOUND, "memory: a journal in memory begins empty");
    log = DET_NEW(options->journal.allocator, struct memory_log);
    if (!log)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a journal");
    log->log.ops = &memory_ops;
    log->options = options->journal;
    r = det_mutex_open(log->options.world, &log->mutex);
    if (r < 0) {
        close_memory(&log->log);
        return det_error_set(reterr, r, "memory: %s", det_error_text(r));
    }
    *ret = &log->log;
    *ret_found = (struct det_journal_found){ .begin = 1 };
    return 0;
}

extern const struct det_journal_driver det_journal_driver_memory;
const struct det_journal_driver det_journal_driver_memory = {
    .scheme = "memory",
    .open = open_memory,
};
