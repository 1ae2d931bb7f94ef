/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/journal.h - where a journal keeps its frames, for authors of a driver; others include
 * journal.h.
 *
 * The journal encodes each group of rows as a frame (docs/formats/journal.md), numbers the rows,
 * collects frames in buffers, and wakes callers. A driver keeps frames in their order and reads
 * them back; it sees only whole frames.
 *
 *     append -> frame -> buffer -> write(batch) -> acknowledged
 *                                  cursor_read(...) -> frames -> rows of readers
 *
 * A driver with `reserve` has no buffers: frames are encoded in its memory, and are acknowledged at
 * once. */
#ifndef DETENT_DRIVER_JOURNAL_H
#define DETENT_DRIVER_JOURNAL_H

#include <detent/journal.h>

DET_BEGIN

/* Changes with the table below; asserted when a journal is opened. */
#define DET_JOURNAL_DRIVER_VERSION 1

/* The first member of every driver's state, which its `open` sets. */
struct det_journal_log {
    const struct det_journal_log_ops *ops;
};

/* Frames to write: whole ones, in their order. `first` is the position of the first row, `last`
 * that of the last one; `last` is `first - 1` if there are only names of streams. */
struct det_journal_batch {
    const void *data;
    size_t size;
    uint64_t first, last;
    det_time at; /* wall time of the last append */
    /* NULL, or a frame with all streams as of the end of this batch: `is_full` returned true. It
     * begins what the driver keeps and drops as a whole, such as a segment. */
    const void *table;
    size_t table_size;
};

/* What `open` found. */
struct det_journal_found {
    uint64_t begin, end; /* positions; end is begin - 1 if there are no rows */
    uint64_t synced;     /* without durability DISK: the last position that is on the disk */
    uint64_t skew;       /* buffers begin at this offset from a multiple of 4096, for aligned I/O */
    uint32_t seed;       /* of the checksums of frames */
    uint64_t torn, lost; /* as in struct det_journal_counts */
};

/* Receives a stream that `open` or `refresh` found: of a number that it did not have, or with a
 * higher sequence. */
struct det_journal_stream_sink {
    void *context;
    int (*found)(
        void *context, uint16_t stream, const char *name, size_t name_size, uint64_t sequence,
        uint64_t position);
};

/* What a driver keeps now. */
struct det_journal_extent {
    uint64_t begin;
    uint64_t segments, bytes;
    uint64_t second; /* first position after the oldest segment; 0: there is only one */
};

struct det_journal_cursor;

struct det_journal_log_ops {
    unsigned version; /* DET_JOURNAL_DRIVER_VERSION */
    /* Called when nothing else is under way. Accepts NULL. */
    void (*close)(struct det_journal_log *log);
    /* Returns memory for a frame of this size, a multiple of 8; NULL without memory. The frame is
     * visible to cursors after `publish`. `ret_begins`: a segment ended before this frame. One call
     * of both at a time. NULL: the driver has `write` instead. */
    void *(*reserve)(struct det_journal_log *log, uint64_t first, size_t size, bool *ret_begins);
    void (*publish)(struct det_journal_log *log, uint64_t last, size_t size);
    /* Writes frames after all others, and syncs them unless the durability is OS or MEMORY. Returns
     * an error if they may not have the durability; the journal is poisoned then. `ret_skew`: for
     * the batch after the next one. Like all of the following, but not at the same time as itself,
     * `finish` or `drop`, on any thread. */
    int (*write)(
        struct det_journal_log *log, const struct det_journal_batch *batch, uint64_t *ret_skew,
        struct det_error *reterr);
    /* The journal is closed after all batches were written without an error. NULL: nothing to
     * do. */
    void (*finish)(struct det_journal_log *log);
    /* Returns true if a batch of this size fills the segment. NULL: never. */
    bool (*is_full)(struct det_journal_log *log, size_t size);
    /* Drops what the options and `released` (0: nothing was released) permit. `now` is the wall
     * time. */
    int (*drop)(struct det_journal_log *log, uint64_t released, det_time now);
    struct det_journal_extent (*extent)(struct det_journal_log *log);
    /* Read only: looks for rows that were written since, and returns the last position. NULL: not
     * supported. */
    int (*refresh)(
        struct det_journal_log *log, const struct det_journal_stream_sink *sink, uint64_t *ret_end,
        struct det_error *reterr);
    /* A cursor reads frames, from the one that has the row `from` or comes next after it. It
     * belongs to one thread at a time; several may be open while the log is written.
     * DET_ERR_RANGE: `from` was dropped. */
    int (*cursor_open)(
        struct det_journal_log *log, uint64_t from, struct det_journal_cursor **ret,
        struct det_error *reterr);
    /* Returns whole frames with rows up to position `limit`, which was written; they are borrowed
     * until the next call. Size 0: none up to there. DET_ERR_CORRUPT with the place. */
    int (*cursor_read)(
        struct det_journal_cursor *cursor, uint64_t limit, const void **ret, size_t *ret_size,
        struct det_error *reterr);
    void (*cursor_close)(struct det_journal_cursor *cursor);
    uint64_t (*syncs)(const struct det_journal_log *log); /* NULL: none */
};

/* What `open` gets: options with the defaults filled in. */
struct det_journal_log_options {
    struct det_journal_options journal;
    struct det_journal_stream_sink sink;
};

/* A driver: a URL "scheme:rest" is opened by the one whose `scheme` it has. */
struct det_journal_driver {
    const char *scheme;
    int (*open)(
        const char *rest, const struct det_journal_log_options *options,
        struct det_journal_log **ret, struct det_journal_found *ret_found,
        struct det_error *reterr);
};

DET_END
#endif
