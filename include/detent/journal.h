/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal.h - a durable log: rows are appended in groups and read back in order.
 *
 *     det_journal_open("file:/var/lib/box/readings", NULL, &journal, &error);
 *     det_journal_append(
 *         journal, &(struct det_journal_row){ .data = text, .size = size }, 1, &at, &error);
 *     det_journal_wait(journal, at, DET_NEVER);          it is on the disk now
 *
 * A journal is one sequence of rows, numbered from 1: the position of a row. Each row belongs to a
 * named stream, and is numbered in it too: its sequence. Streams share the log, so one sync makes
 * the rows of all of them durable, and what survives a crash is always a prefix of the log: no row
 * survives without the rows before it.
 *
 *     append -> buffered -> written -> acknowledged          in the order of positions
 *
 * Rows appended by one call are a group: all of them survive, or none. A row is acknowledged when
 * it has the durability of the journal:
 *
 *     DISK    written and synced; survives a power failure (the default)
 *     OS      written to the page cache; survives the end of the process, also kill -9
 *     MEMORY  as soon as it is appended
 *
 * Appends are collected in one of two buffers; a thread writes and syncs the other one meanwhile,
 * so many groups share a sync. A failed write or sync is final: the journal is poisoned, rows that
 * were not acknowledged before never are, and reads of acknowledged rows go on. Open the journal
 * again to continue.
 *
 *     memory:          this process only; gone when it is closed; always durability MEMORY
 *     file:FOLDER      segments in a folder; one process writes, others may read
 *
 * Any thread may call these functions, except that a reader belongs to one thread at a time.
 * driver/journal.h has the contract of a driver, docs/formats/journal.md the format of the
 * files. */
#ifndef DETENT_JOURNAL_H
#define DETENT_JOURNAL_H

#include <detent/loop.h>

DET_BEGIN

struct det_journal;
struct det_journal_reader;
struct det_journal_threads;

enum det_journal_durability { DET_JOURNAL_DISK, DET_JOURNAL_OS, DET_JOURNAL_MEMORY };

#define DET_JOURNAL_ROW_MAX     1048576  /* bytes of data in a row */
#define DET_JOURNAL_GROUP_MAX   16777216 /* bytes in a group, with 16 to 40 for each row */
#define DET_JOURNAL_STREAMS_MAX 4096
#define DET_JOURNAL_NAME_MAX    96 /* bytes in the name of a stream: [a-z0-9_.-] */
#define DET_JOURNAL_SEGMENT_MIN ((uint64_t)65536)
#define DET_JOURNAL_SEGMENT_MAX ((uint64_t)1 << 40)
#define DET_JOURNAL_BUFFER_MIN  4096u
#define DET_JOURNAL_BUFFER_MAX  ((uint32_t)1 << 30)

/* Zero: durable on disk, segments of 64 MiB, everything kept. */
struct det_journal_options {
    struct det_world *world;               /* NULL: the real one */
    const struct det_allocator *allocator; /* NULL: the default one */
    enum det_journal_durability durability;
    bool is_read_only; /* file: reads what another process writes */
    bool must_exist;   /* file: do not create it */
    bool accepts_loss; /* file: opens although acknowledged rows are gone; det_journal_counts() has
                        * how many */
    uint64_t segment_size; /* file: bytes; 0: 64 MiB */
    uint32_t buffer_size;  /* file: bytes of each of the two; 0: 4 MiB. They start small and grow */
    uint64_t retain_size;  /* bytes that are kept at least; 0: all */
    det_time retain_age;   /* rows younger than this are kept; 0: all. What both of these and
                            * det_journal_release() permit is dropped, whole segments at a time */
    struct det_journal_threads *threads;     /* file: shared threads; NULL: one of its own */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* A row. To append one, set the fields above the line; the zero value of each is the default. */
struct det_journal_row {
    const void *data;
    uint32_t size;
    uint16_t stream;       /* 0: the stream "main" */
    uint8_t kind;          /* of the caller */
    bool is_cause_unknown; /* there was a cause, but it is not in this journal */
    uint64_t parent;       /* position of the row that caused this one; 0: none */
    uint64_t correlation;  /* position of the first row of the chain; 0: this row begins one. A
                            * reader gets the row's own position then */
    det_time event_time;   /* wall time at which it happened; 0: when it was appended. A reader gets
                            * that time then */
    /* ---- set by readers */
    uint64_t position;
    uint64_t sequence; /* in its stream, from 1 */
    det_time at;       /* wall time of the append, up to 10 ms early */
    bool is_group_end; /* last row of its group */
};

/* Counts since the journal was opened. */
struct det_journal_counts {
    uint64_t rows, groups, bytes; /* appended; bytes as written, with their headers */
    uint64_t writes, syncs;
    uint64_t segments, segment_bytes; /* kept now */
    uint64_t torn;                    /* groups at the end that opening removed: a crash came before
                                       * they were acknowledged */
    uint64_t lost;                    /* acknowledged rows that are gone (accepts_loss) */
};

/* Opens a journal. DET_ERR_UNSUPPORTED: unknown scheme. DET_ERR_INVALID: the URL or an option is
 * not valid for the driver. DET_ERR_BUSY: another process, or another open journal of this one,
 * writes it. DET_ERR_NOT_FOUND: there is none (is_read_only, must_exist). DET_ERR_CORRUPT:
 * acknowledged rows are damaged or gone; the text has file and offset. DET_ERR_FOREIGN: the files
 * do not belong together. DET_ERR_VERSION: written by a newer detent. `options` NULL: all zero. */
DET_API int det_journal_open(
    const char *url, const struct det_journal_options *options, struct det_journal **ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Writes and syncs what was appended, then closes; blocks meanwhile. Whether that succeeded is
 * known only to det_journal_wait(), called before. Close readers and remove watchers first. */
DET_API void det_journal_close(struct det_journal *journal);
DET_SCOPED_CLOSE(journal)

/* Finds or creates a stream by its name. The number is the same in every opening of this journal.
 * "main" is 0 and always exists. A new name is appended like a row, and is durable with the rows
 * after it. DET_ERR_INVALID: not a name. DET_ERR_LIMIT: DET_JOURNAL_STREAMS_MAX.
 * DET_ERR_NOT_FOUND: unknown, and the journal is open for reading. */
DET_API int det_journal_stream(
    struct det_journal *journal, const char *name, uint16_t *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* The name of a stream, as long as the journal is open; NULL: no such stream. Numbers have no
 * gaps. */
DET_API const char *det_journal_stream_name(const struct det_journal *journal, uint16_t stream);

/* Appends the rows as one group and returns without waiting for the disk; waits only while both
 * buffers are full. `ret` (may be NULL) is the position of the last row; the positions of a group
 * are consecutive. DET_ERR_INVALID: no rows, an unknown stream, or a parent or correlation that is
 * not before its row (rows of the same group may refer to each other). DET_ERR_LIMIT:
 * DET_JOURNAL_ROW_MAX or DET_JOURNAL_GROUP_MAX. DET_ERR_READ_ONLY. After the journal was poisoned:
 * that failure. After any error nothing was appended. */
DET_API int det_journal_append(
    struct det_journal *journal, const struct det_journal_row *rows, size_t count, uint64_t *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Non-blocking variant for event-loop threads: DET_ERR_BUSY while both buffers are full. Watchers
 * are called when there is room again. */
DET_API int det_journal_offer(
    struct det_journal *journal, const struct det_journal_row *rows, size_t count, uint64_t *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Waits until the position is acknowledged; a caller that waits alone writes and syncs itself.
 * DET_ERR_TIMEOUT at the (monotonic) deadline, which a write under way may exceed; DET_ERR_RANGE:
 * the position was not appended; else the failure that poisoned the journal. Not on a loop
 * thread. */
DET_API int det_journal_wait(struct det_journal *journal, uint64_t position, det_time deadline)
    DET_MUST_CHECK;

/* The last position that was appended; 0: none yet. */
DET_API uint64_t det_journal_end(const struct det_journal *journal);
/* The last position that was acknowledged; 0: none yet. */
DET_API uint64_t det_journal_acknowledged(const struct det_journal *journal);
/* The first position that is kept: at most det_journal_end() + 1. */
DET_API uint64_t det_journal_begin(const struct det_journal *journal);
/* The last sequence that was appended to a stream, and the position of its row; 0: none.
 * DET_ERR_NOT_FOUND: no such stream. Outputs may be NULL. */
DET_API int det_journal_last(
    struct det_journal *journal, uint16_t stream, uint64_t *ret_sequence, uint64_t *ret_position);
/* 0, or the failure that poisoned the journal. */
DET_API int det_journal_failure(const struct det_journal *journal, struct det_error *reterr);
/* Permits dropping the rows before `position`, which must not be after det_journal_end() + 1; a
 * lower position than before has no effect. The files are removed later, by the thread that
 * writes. Without this call and without retain_size and retain_age everything is kept; what is not
 * set does not keep anything. */
DET_API int det_journal_release(struct det_journal *journal, uint64_t position);
DET_API struct det_journal_counts det_journal_counts(const struct det_journal *journal);

/* Calls `run` on `loop` after more rows were acknowledged, after buffers got room for an offer, or
 * after a failure; several changes count as one. In the memory of its owner; set the first three
 * fields. */
struct det_journal_watcher {
    struct det_loop *loop;
    void (*run)(void *argument);
    void *argument;
    struct {
        void *watch;
    } internal;
};
/* Begins watching. DET_ERR_NO_MEMORY. On the thread of the loop, or before it runs. */
DET_API int det_journal_watch(struct det_journal *journal, struct det_journal_watcher *watcher)
    DET_MUST_CHECK;
/* Ends watching: `run` is not called after this. No effect if the watcher does not watch. On the
 * thread of the loop, or when it does not run. The allocator of the journal must live until the
 * loop was turned once more, or closed. */
DET_API void det_journal_unwatch(struct det_journal *journal, struct det_journal_watcher *watcher);

/* What a reader reads. Zero: all acknowledged rows that are kept. */
struct det_journal_reader_options {
    uint64_t from;   /* position of the first row; 0: the first row that is kept */
    uint64_t until;  /* ends after this position; 0: goes on as rows are appended */
    bool one_stream; /* reads `stream` only */
    uint16_t stream;
    bool unacknowledged; /* reads rows that are only appended, too: a crash may remove them */
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* must be zero */
};

/* Opens a reader. DET_ERR_RANGE: `from` is before the first row that is kept, or more than one
 * after the last appended one. `options` NULL: all zero. */
DET_API int det_journal_reader_open(
    struct det_journal *journal, const struct det_journal_reader_options *options,
    struct det_journal_reader **ret, struct det_error *reterr) DET_MUST_CHECK;
/* Returns 1 and a row, which is borrowed until the next call; 0: no more rows now. DET_ERR_CORRUPT
 * with file and offset of the damage. DET_ERR_RANGE: the next row was dropped meanwhile. After an
 * error each call tries again. */
DET_API int det_journal_reader_next(
    struct det_journal_reader *reader, struct det_journal_row *ret,
    struct det_error *reterr) DET_MUST_CHECK;
/* Waits until there may be a row to read: call det_journal_reader_next() again. DET_ERR_TIMEOUT at
 * the (monotonic) deadline; the failure that poisoned the journal, when the reader has read all
 * rows that were acknowledged. DET_ERR_RANGE: it has read up to `until`. A reader of a journal that
 * another process writes looks again every 10 ms. Not on a loop thread. */
DET_API int det_journal_reader_wait(struct det_journal_reader *reader, det_time deadline)
    DET_MUST_CHECK;
DET_API void det_journal_reader_close(struct det_journal_reader *reader);
DET_SCOPED_CLOSE(journal_reader)

/* Threads that write and sync several journals, so that a thousand journals need not have a
 * thousand threads. They start with the first journal. Close the journals first. `count`: 0: 2; at
 * most 64. */
DET_API int det_journal_threads_open(
    struct det_world *world, const struct det_allocator *allocator, unsigned count,
    struct det_journal_threads **ret, struct det_error *reterr) DET_MUST_CHECK;
DET_API void det_journal_threads_close(struct det_journal_threads *threads);
DET_SCOPED_CLOSE(journal_threads)

DET_END
#endif
