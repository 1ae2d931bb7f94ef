/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_internal.h - a journal: its streams, its two buffers, its waiters and watchers.
 *
 *     append ---> buffers[active] --- swap ---> buffers[!active] ---> driver
 *                 collects frames              written by the writer
 *
 *     begin <= acknowledged <= written <= end
 *
 * The writer is whoever holds the role `is_writing`: a thread of det_journal_threads, or a caller
 * of det_journal_wait() that waits alone.
 *
 * Invariants, under `mutex`
 *   1. Frames of the active buffer come after those of the other one, and these after `written`.
 *   2. Only the writer, or whoever finds no writer, swaps; the other buffer has frames only while
 *      there is a writer.
 *   3. `failure` is set once; then `acknowledged` and `written` do not change.
 *   4. Streams are never removed, and their names never move. */
#ifndef DET_JOURNAL_JOURNAL_INTERNAL_H
#define DET_JOURNAL_JOURNAL_INTERNAL_H

#include <stdatomic.h>

#include <detent/driver/journal.h>
#include <detent/driver/loop.h>

#include "base/list.h"
#include "base/map.h"
#include "journal/frame.h"
#include "os/os.h"

/* A stream; found by name in a map. */
struct det_journal_stream {
    const char *name;
    uint64_t sequence, position; /* of its last row */
    uint16_t number;
    char text[DET_JOURNAL_NAME_MAX + 1];
};

/* Frames to be written: bytes from `start` to `used` of aligned memory. */
struct det_journal_buffer {
    char *block;  /* as allocated */
    char *memory; /* aligned to 4096 */
    size_t block_size, capacity;
    size_t start, used;
    uint64_t first, last; /* positions; last == first - 1: only names */
    uint64_t groups;
    det_time at;
};

/* A registration of a watcher. It outlives an unwatch while its post is under way. */
struct det_journal_watch {
    struct det_list node;
    struct det_post post;
    const struct det_allocator *allocator;
    struct det_journal_watcher *watcher; /* NULL: unwatched. Of the loop's thread */
    struct det_loop *loop;
    atomic_bool is_posted;
};

struct det_journal {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_journal_options options;
    struct det_journal_log *log;
    struct det_mutex *mutex;
    struct det_condition *changed; /* acknowledged, written, failure, is_writing, room */
    struct det_journal_stream **streams;
    size_t stream_count, stream_capacity;
    struct det_map names;
    struct det_journal_buffer buffers[2];
    unsigned active;
    bool is_writing;
    bool must_drop;        /* a release permits dropping segments */
    bool has_refused;      /* an offer found no room: watchers hear of room */
    unsigned waiters;      /* callers that wait for an acknowledgement */
    unsigned tail_waiters; /* callers that wait for an append */
    unsigned room_waiters; /* callers that wait for room */
    unsigned sleepers;     /* callers that wait for `changed` */
    uint64_t written, released;
    uint64_t synced; /* without durability DISK: the last position that is on the disk */
    uint32_t seed;
    uint64_t skew;
    _Atomic uint64_t begin, acknowledged, end;
    det_time wall, tick; /* of two clocks at the same time */
    int failure;
    struct det_error failure_error;
    struct det_list watches;
    unsigned readers;
    struct det_journal_counts counts;
    struct det_journal_threads *threads; /* NULL: `reserve`, or read only */
    bool has_own_threads;
    bool is_scheduled;      /* a thread will look */
    bool is_urgent;         /* at once */
    struct det_list queued; /* in the queue of the threads; this and `due` under their mutex */
    det_time due;
};

static inline bool det_journal_is_immediate(const struct det_journal *journal)
{
    return journal->log->ops->reserve != NULL;
}

static inline void det_journal_lock(const struct det_journal *journal)
{
    det_mutex_lock(journal->world, journal->mutex);
}

static inline void det_journal_unlock(const struct det_journal *journal)
{
    det_mutex_unlock(journal->world, journal->mutex);
}

/* The last position that is on the disk. */
static inline uint64_t det_journal_synced(const struct det_journal *journal)
{
    if (journal->options.durability != DET_JOURNAL_DISK)
        return journal->synced;
    return atomic_load_explicit(&journal->acknowledged, memory_order_relaxed);
}

/* The failure that poisoned the journal, or 0. Under the lock. */
DET_MUST_CHECK int det_journal_failure_locked(
    const struct det_journal *journal, struct det_error *reterr);

/* streams.c; all under the lock */
DET_MUST_CHECK int det_journal_streams_init(struct det_journal *journal);
void det_journal_streams_deinit(struct det_journal *journal);
/* Adds a stream with the next number. */
DET_MUST_CHECK int det_journal_streams_add(
    struct det_journal *journal, const char *name, size_t size, struct det_journal_stream **ret);
/* For struct det_journal_stream_sink: the context is the journal. */
int det_journal_streams_found(
    void *context, uint16_t stream, const char *name, size_t name_size, uint64_t sequence,
    uint64_t position);
size_t det_journal_streams_table_size(const struct det_journal *journal);
/* Encodes all streams as a table that precedes the row `next`. */
void det_journal_streams_table(
    const struct det_journal *journal, uint64_t next, det_time at, void *target, size_t size);

/* buffers.c; under the lock */
void det_journal_buffers_deinit(struct det_journal *journal);
/* Returns memory for a frame of a number of bytes in the active buffer. DET_ERR_BUSY: it is full,
 * and the other one is being written. `is_forced`: grows it beyond its limit instead. */
DET_MUST_CHECK int det_journal_buffers_reserve(
    struct det_journal *journal, size_t size, bool is_forced, void **ret);
void det_journal_buffers_commit(
    struct det_journal *journal, size_t size, uint64_t first, uint64_t last, det_time at);
bool det_journal_buffers_has_frames(const struct det_journal *journal);

/* writer.c */
/* Writes one batch as the writer; false if there is no work, or another writer. Enters and leaves
 * with the lock, which it releases in between. */
bool det_journal_write_batch(struct det_journal *journal);
/* After a change of the active buffer, under the lock: a thread writes it soon, or at once. */
void det_journal_write_soon(struct det_journal *journal);
/* Without durability DISK, if there is much to write and no writer: writes a batch, which is a copy
 * to the page cache and costs less than handing it to a thread. False: it did not. Under the lock,
 * which it releases in between. */
bool det_journal_write_inline(struct det_journal *journal);
/* A thread has time for the journal; false if it need not come again at once. Without the lock. */
bool det_journal_serve(struct det_journal *journal);
/* Permits dropping the rows before a position. Under the lock. */
void det_journal_set_released(struct det_journal *journal, uint64_t position);
/* For a driver with `reserve`: drops what may be dropped. Under the lock. */
void det_journal_drop_now(struct det_journal *journal);
/* Wakes waiters and posts to watchers. Under the lock. */
void det_journal_notify(struct det_journal *journal);
/* Waits for a thread to write a batch. Enters and leaves with the lock. */
DET_MUST_CHECK int det_journal_make_room(struct det_journal *journal);
/* Waits for `changed`. Enters and leaves with the lock. */
DET_MUST_CHECK int det_journal_sleep(struct det_journal *journal, det_time deadline);
/* The wall time of an append, up to 10 ms early: the clock is not read for each. */
det_time det_journal_now(struct det_journal *journal);
/* Writes all frames; returns when there is no writer and no frame, or the journal has failed. */
void det_journal_drain(struct det_journal *journal);

/* threads.c */
/* A thread calls det_journal_serve() soon, or at once. Under the lock of the journal; repeating the
 * call makes it urgent. */
void det_journal_threads_queue(
    struct det_journal_threads *threads, struct det_journal *journal, bool is_urgent);
/* Removes the journal; no thread serves it when this returns. */
void det_journal_threads_forget(struct det_journal_threads *threads, struct det_journal *journal);
DET_MUST_CHECK int det_journal_threads_start(struct det_journal_threads *threads);

/* read_only.c: looks for rows that another process wrote. */
DET_MUST_CHECK int det_journal_refresh(struct det_journal *journal, struct det_error *reterr);

#endif
