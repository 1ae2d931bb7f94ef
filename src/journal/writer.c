/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* writer.c - the writer of a journal: swaps the buffers, gives one to the driver, acknowledges its
 * rows, wakes those that wait.
 *
 *     frames, no writer --> a waiter that comes      writes on its own thread, without a hand-over
 *                       --> a thread of the journal  at once if there are watchers, or much to
 *                                                    write; else after a short time
 *
 * Frames that arrive during a write are in the next batch. */
#include "journal/journal_internal.h"

#include "base/assert.h"
#include "base/memory.h"

/* Bytes that a thread writes at once, although nobody waits for them. */
#define URGENT_SIZE 65536u
/* Bytes that an appender writes itself, while they are in the cache of its processor. */
#define INLINE_SIZE 131072u
/* Batches of a journal before another one has its turn. */
#define BATCHES_MAX 16u

int det_journal_failure_locked(const struct det_journal *journal, struct det_error *reterr)
{
    if (journal->failure < 0 && reterr)
        *reterr = journal->failure_error;
    return journal->failure;
}

int det_journal_sleep(struct det_journal *journal, det_time deadline)
{
    int r;

    journal->sleepers++;
    r = det_condition_wait(journal->world, journal->changed, journal->mutex, deadline);
    journal->sleepers--;
    return r;
}

/* The wall clock is read when the coarse one, which is faster, has moved. */
det_time det_journal_now(struct det_journal *journal)
{
    det_time tick = det_world_now(journal->world, DET_CLOCK_TICK), wall;

    if (tick != journal->tick) {
        journal->tick = tick;
        wall = det_world_now(journal->world, DET_CLOCK_WALL);
        journal->wall = wall;
    }
    return journal->wall;
}

void det_journal_notify(struct det_journal *journal)
{
    if (journal->sleepers > 0)
        det_condition_broadcast(journal->world, journal->changed);
    DET_LIST_EACH(node, &journal->watches)
    {
        struct det_journal_watch *watch = DET_CONTAINER(node, struct det_journal_watch, node);

        if (!atomic_exchange(&watch->is_posted, true))
            det_loop_post(watch->loop, &watch->post);
    }
}

static void poison(struct det_journal *journal, int failure, const struct det_error *error)
{
    det_assert(failure < 0 && journal->failure == 0);
    journal->failure = failure;
    journal->failure_error = *error;
}

/* A table of the streams, if the batch fills a segment. Without memory the segment becomes a little
 * larger. */
static void add_table(
    struct det_journal *journal, struct det_journal_batch *batch, void **ret, size_t *ret_size)
{
    *ret = NULL;
    if (!journal->log->ops->is_full || !journal->log->ops->is_full(journal->log, batch->size))
        return;
    *ret_size = det_journal_streams_table_size(journal);
    *ret = det_alloc(journal->allocator, *ret_size);
    if (!*ret)
        return;
    det_journal_streams_table(journal, batch->last + 1, batch->at, *ret, *ret_size);
    batch->table = *ret;
    batch->table_size = *ret_size;
}

static void acknowledge(struct det_journal *journal, struct det_journal_buffer *buffer)
{
    journal->written = buffer->last;
    if (atomic_load(&journal->acknowledged) < buffer->last)
        atomic_store_explicit(&journal->acknowledged, buffer->last, memory_order_release);
    buffer->used = buffer->start;
}

static bool has_retention(const struct det_journal *journal)
{
    return journal->released > 0 || journal->options.retain_size > 0 ||
           journal->options.retain_age > 0;
}

/* Drops old segments as the writer, without the lock. That it fails is no failure of the journal:
 * it is tried again after the next batch. */
static void drop_old(struct det_journal *journal)
{
    uint64_t released = journal->released;

    journal->must_drop = false;
    if (!has_retention(journal))
        return;
    det_journal_unlock(journal);
    (void)journal->log->ops->drop(
        journal->log, released, det_world_now(journal->world, DET_CLOCK_WALL));
    det_journal_lock(journal);
    atomic_store(&journal->begin, journal->log->ops->extent(journal->log).begin);
}

/* A release permits dropping segments: a thread does that, although there is nothing to write. */
static void drop_released(struct det_journal *journal)
{
    if (!journal->must_drop || journal->is_writing)
        return;
    journal->is_writing = true;
    drop_old(journal);
    journal->is_writing = false;
    det_journal_notify(journal);
}

void det_journal_drop_now(struct det_journal *journal)
{
    if (!has_retention(journal))
        return;
    (void)journal->log->ops->drop(
        journal->log, journal->released, det_world_now(journal->world, DET_CLOCK_WALL));
    atomic_store(&journal->begin, journal->log->ops->extent(journal->log).begin);
}

void det_journal_set_released(struct det_journal *journal, uint64_t position)
{
    uint64_t second;

    journal->released = position;
    if (det_journal_is_immediate(journal)) {
        det_journal_drop_now(journal);
        return;
    }
    second = journal->log->ops->extent(journal->log).second;
    if (second == 0 || second > position)
        return;
    journal->must_drop = true;
    det_journal_write_soon(journal);
}

bool det_journal_write_batch(struct det_journal *journal)
{
    struct det_journal_buffer *buffer = &journal->buffers[journal->active];
    struct det_journal_batch batch;
    struct det_error error;
    uint64_t skew = journal->skew;
    size_t table_size = 0;
    void *table;
    int r;

    if (journal->is_writing || journal->failure < 0 || !det_journal_buffers_has_frames(journal))
        return false;
    journal->is_writing = true;
    batch = (struct det_journal_batch){
        .data = buffer->memory + buffer->start,
        .size = buffer->used - buffer->start,
        .first = buffer->first,
        .last = buffer->last,
        .at = buffer->at,
    };
    add_table(journal, &batch, &table, &table_size);
    journal->skew = (buffer->start + batch.size) % 4096;
    journal->active ^= 1;
    if (journal->has_refused || journal->room_waiters > 0)
        det_journal_notify(journal);
    journal->has_refused = false;
    det_journal_unlock(journal);
    r = journal->log->ops->write(journal->log, &batch, &skew, &error);
    if (table)
        det_free(journal->allocator, table, table_size);
    det_journal_lock(journal);
    journal->counts.writes++;
    if (r < 0) {
        poison(journal, r, &error);
    } else {
        acknowledge(journal, buffer);
        if (!det_journal_buffers_has_frames(journal))
            journal->skew = skew;
        drop_old(journal);
    }
    journal->is_writing = false;
    det_journal_notify(journal);
    return true;
}

static size_t urgent_size(const struct det_journal *journal)
{
    return journal->options.durability == DET_JOURNAL_DISK ? URGENT_SIZE : 2 * INLINE_SIZE;
}

/* True if somebody waits for what is in the active buffer, or it has much. */
static bool is_urgent(const struct det_journal *journal)
{
    const struct det_journal_buffer *buffer = &journal->buffers[journal->active];

    return !det_list_is_empty(&journal->watches) || journal->waiters > 0 || journal->must_drop ||
           journal->has_refused || journal->room_waiters > 0 ||
           buffer->used - buffer->start >= urgent_size(journal);
}

void det_journal_write_soon(struct det_journal *journal)
{
    bool at_once;

    if (det_journal_is_immediate(journal)) {
        det_journal_notify(journal);
        return;
    }
    if (journal->tail_waiters > 0)
        det_condition_broadcast(journal->world, journal->changed);
    if (journal->is_writing)
        return; /* the writer looks again */
    at_once = is_urgent(journal);
    if (journal->is_scheduled && (journal->is_urgent || !at_once))
        return;
    journal->is_scheduled = true;
    journal->is_urgent = at_once;
    det_journal_threads_queue(journal->threads, journal, at_once);
}

bool det_journal_serve(struct det_journal *journal)
{
    unsigned batches = 0;
    bool again = false;

    det_journal_lock(journal);
    journal->is_scheduled = journal->is_urgent = false;
    /* The next batch at once, before a waiter wakes and takes it. */
    while (det_journal_write_batch(journal) && is_urgent(journal) && ++batches < BATCHES_MAX)
        ;
    drop_released(journal);
    if (det_journal_buffers_has_frames(journal) && journal->failure == 0 && !journal->is_writing) {
        again = is_urgent(journal);
        if (again)
            journal->is_scheduled = journal->is_urgent = true;
        else
            det_journal_write_soon(journal);
    }
    det_journal_unlock(journal);
    return again;
}

/* A writer that is not a thread of the journal leaves the rest to one. */
static bool lead_batch(struct det_journal *journal)
{
    if (!det_journal_write_batch(journal))
        return false;
    if (det_journal_buffers_has_frames(journal) && journal->failure == 0)
        det_journal_write_soon(journal);
    return true;
}

bool det_journal_write_inline(struct det_journal *journal)
{
    const struct det_journal_buffer *buffer = &journal->buffers[journal->active];

    return journal->options.durability != DET_JOURNAL_DISK &&
           buffer->used - buffer->start >= INLINE_SIZE && lead_batch(journal);
}

static int wait_acknowledged(struct det_journal *journal, uint64_t position, det_time deadline)
{
    int r = 0;

    while (atomic_load(&journal->acknowledged) < position) {
        if (journal->failure < 0)
            return journal->failure;
        if (r < 0)
            return r;
        if (position > atomic_load(&journal->end))
            return DET_ERR_RANGE;
        if (journal->options.is_read_only || !lead_batch(journal))
            r = det_journal_sleep(journal, deadline);
    }
    return 0;
}

int det_journal_wait(struct det_journal *journal, uint64_t position, det_time deadline)
{
    int r;

    if (atomic_load_explicit(&journal->acknowledged, memory_order_acquire) >= position)
        return 0;
    det_journal_lock(journal);
    journal->waiters++;
    r = wait_acknowledged(journal, position, deadline);
    journal->waiters--;
    det_journal_unlock(journal);
    return r;
}

int det_journal_make_room(struct det_journal *journal)
{
    int r;

    journal->room_waiters++;
    det_journal_write_soon(journal);
    r = det_journal_sleep(journal, DET_NEVER);
    journal->room_waiters--;
    return r;
}

void det_journal_drain(struct det_journal *journal)
{
    det_journal_lock(journal);
    while (journal->is_writing ||
           (det_journal_buffers_has_frames(journal) && journal->failure == 0)) {
        if (!det_journal_write_batch(journal) && det_journal_sleep(journal, DET_NEVER) < 0)
            break;
    }
    det_journal_unlock(journal);
}
