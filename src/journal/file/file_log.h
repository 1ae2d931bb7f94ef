/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_log.h - the driver "file:": a log in a folder of segments; docs/formats/journal.md.
 *
 *     head    first ---------------------------- last
 *     mark    | segment | segment | ... | segment rows, zeros |
 *               sealed    sealed          active  ^ offset    ^ allocated
 *
 * Invariants
 *   1. Only the writer changes the log; it takes `mutex` to change what cursors read: the numbers,
 *      `base`, `offset`, `position`, the table of segments, the index.
 *   2. Bytes of the active segment before `offset` never change.
 *   3. With durability DISK, all rows before `base` are on the disk. */
#ifndef DET_JOURNAL_FILE_LOG_H
#define DET_JOURNAL_FILE_LOG_H

#include <stdatomic.h>

#include <detent/driver/journal.h>

#include "base/memory.h"
#include "journal/frame.h"
#include "os/os.h"

#define DET_LOG_VERSION      1
#define DET_LOG_HEAD         80u
#define DET_LOG_MARK_SLOT    512u
#define DET_SEGMENT_HEAD     4096u
#define DET_SEGMENT_TRAILER  32u
#define DET_SEGMENT_FILE_MAX DET_JOURNAL_SEGMENT_MAX
#define DET_IDENTITY_SIZE    16u
#define DET_INDEX_ENTRIES    4096u
#define DET_INDEX_SPAN       65536u

/* head.c: the identity of a log, and its first segment. */
struct det_log_head {
    unsigned char identity[DET_IDENTITY_SIZE];
    uint64_t first;                    /* number of the first segment */
    uint64_t first_base, first_before; /* of its header */
    det_time created;
};

/* mark.c: the last acknowledged position. */
struct det_log_mark {
    uint64_t generation; /* 0: there is no mark */
    uint64_t acknowledged, synced;
    uint64_t segment, offset; /* the end of the rows */
    enum det_journal_durability durability;
    det_time at, started; /* wall time; of the update, and of the start of the machine */
};

/* segment.c: the header of a segment. */
struct det_segment {
    uint64_t number, base;
    det_time created;
    uint64_t before; /* bytes of the segments before it */
};

struct det_journal_index_entry {
    uint64_t position, offset;
};

/* A sparse index: at most DET_INDEX_ENTRIES, at least `span` bytes apart. */
struct det_journal_index {
    struct det_journal_index_entry *entries;
    size_t count, capacity;
    uint64_t span;
};

/* window.c: a block of a file in memory. */
struct det_window {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_file *file;
    char *block, *memory; /* as allocated; aligned */
    size_t block_size, capacity;
    uint64_t offset;
    size_t size;
    size_t next_size; /* bytes to read at least */
};

struct det_file_log {
    struct det_journal_log log;
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_journal_options options;
    char *folder;
    struct det_mutex *mutex;
    struct det_file *lock, *mark_file, *file; /* file: the active segment */
    struct det_log_head head;
    struct det_log_mark mark;
    uint32_t seed;
    uint64_t first, last;         /* numbers of segments */
    struct det_segment active;    /* header of the last one */
    struct det_segment *segments; /* headers of first to last, as far as known: number is set */
    size_t segment_capacity;
    uint64_t offset, allocated;
    uint64_t position; /* of the last row */
    struct det_journal_index index;
    bool has_spare;       /* there may be a file "spare" */
    bool folder_is_dirty; /* the active segment's entry in the folder is not synced */
    bool has_failed;
    _Atomic uint64_t syncs;
};

static inline bool det_log_is_durable(const struct det_file_log *log)
{
    return log->options.durability == DET_JOURNAL_DISK;
}

/* Names the file and says what is wrong; returns `code`. */
DET_PRINTF(5, 6)
int det_log_refuse(
    const struct det_file_log *log, struct det_error *reterr, int code, const char *name,
    const char *format, ...);

/* Writes the path of a file of the log; DET_ERR_INVALID if it is too long. */
DET_MUST_CHECK int det_log_path(const struct det_file_log *log, const char *name, char *target);
#define DET_SEGMENT_NAME 40
void det_segment_name(uint64_t number, char *target);
DET_MUST_CHECK int det_segment_path(const struct det_file_log *log, uint64_t number, char *target);

/* head.c */
/* DET_ERR_NOT_FOUND, DET_ERR_FOREIGN, DET_ERR_VERSION, DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_log_head_load(struct det_file_log *log, struct det_error *reterr);
DET_MUST_CHECK int det_log_head_store(
    const struct det_file_log *log, const struct det_log_head *head);
void det_log_head_create(struct det_file_log *log);

/* mark.c */
/* Reads the mark, or sets generation 0. Fails only if the file cannot be read. */
DET_MUST_CHECK int det_log_mark_load(struct det_file_log *log, struct det_file *file);
/* Updates the mark to the current end. */
int det_log_mark_store(struct det_file_log *log);
/* Opens the mark for writing, and creates it if necessary. */
DET_MUST_CHECK int det_log_mark_open(struct det_file_log *log);

/* segment.c */
/* DET_ERR_CORRUPT: not a header of this log and number; DET_ERR_VERSION. */
DET_MUST_CHECK int det_segment_read_head(
    const struct det_file_log *log, struct det_file *file, uint64_t number,
    struct det_segment *ret);
/* Opens the file of a segment for reading; DET_ERR_NOT_FOUND. */
DET_MUST_CHECK int det_segment_open(
    const struct det_file_log *log, uint64_t number, unsigned flags, struct det_file **ret);
/* Creates the next segment, after the frame with its table of streams was made; the log then ends
 * in it. After an error the log is as before. */
DET_MUST_CHECK int det_segment_create(
    struct det_file_log *log, const void *table, size_t table_size, det_time at);
/* Writes index and trailer to the active segment. A failure is harmless. */
void det_segment_seal(struct det_file_log *log);
/* Reads the header of a segment, from the table if it is there. Under the mutex. */
DET_MUST_CHECK int det_segment_find(
    struct det_file_log *log, uint64_t number, struct det_segment *ret, struct det_error *reterr);
/* The segment with a position, which is not before the first one. Under the mutex. */
DET_MUST_CHECK int det_segment_of(
    struct det_file_log *log, uint64_t position, struct det_segment *ret, struct det_error *reterr);

/* index.c */
/* Without memory the index has fewer entries. */
void det_journal_index_add(
    struct det_journal_index *index, const struct det_allocator *allocator, uint64_t position,
    uint64_t offset);
/* The least offset of the next entry. */
uint64_t det_journal_index_next(const struct det_journal_index *index);
void det_journal_index_deinit(
    struct det_journal_index *index, const struct det_allocator *allocator);
/* The last entry at or before a position; offset DET_SEGMENT_HEAD if there is none. */
struct det_journal_index_entry det_journal_index_find(
    const struct det_journal_index_entry *entries, size_t count, uint64_t position, uint64_t base);
/* Finds the place in a sealed segment by its index; the start if that is not valid. */
struct det_journal_index_entry det_journal_index_find_sealed(
    const struct det_file_log *log, struct det_file *file, const struct det_segment *segment,
    uint64_t position);

/* window.c */
void det_window_init(
    struct det_window *window, struct det_world *world, const struct det_allocator *allocator);
void det_window_deinit(struct det_window *window);
/* Another file: nothing is in memory. */
void det_window_set_file(struct det_window *window, struct det_file *file);
/* The bytes from `offset` on: at least `need` of them, unless the file or `end` comes first. They
 * are borrowed until the next call. Returns their number, or an error. */
int64_t det_window_get(
    struct det_window *window, uint64_t offset, size_t need, uint64_t end, const char **ret);
/* True if `need` bytes are in memory. */
bool det_window_has(const struct det_window *window, uint64_t offset, size_t need);

/* scan.c: the next frame of a segment. */
enum det_scan_result {
    DET_SCAN_FRAME, /* a valid frame */
    DET_SCAN_END,   /* the end of the file, or zeros */
    DET_SCAN_BAD,   /* something else */
};
struct det_scan {
    struct det_window window;
    uint32_t seed;
    uint64_t offset, end; /* of the next frame; the bytes from `end` on are not read */
};
/* Looks at the frame at `offset`; does not move on. Returns enum det_scan_result, or an error of
 * reading. `ret_data` is borrowed until the next call. */
int det_scan_frame(struct det_scan *scan, struct det_frame *ret, const char **ret_data);
/* Moves to the next valid frame of a position not before `first`, in steps of 8 bytes: 1, or 0 if
 * there is none. `ret_has_bytes`: there were bytes that are not zero. */
int det_scan_resync(struct det_scan *scan, uint64_t first, bool *ret_has_bytes);
/* Gives the streams of a group or table to a sink. DET_ERR_CORRUPT. */
DET_MUST_CHECK int det_scan_streams(
    const struct det_frame *frame, const char *data, const struct det_journal_stream_sink *sink);

/* recover.c */
DET_MUST_CHECK int det_log_recover(
    struct det_file_log *log, const struct det_journal_stream_sink *sink,
    struct det_journal_found *found, struct det_error *reterr);
/* Finds the number of the last segment; `first` - 1: there is none. */
DET_MUST_CHECK int det_log_find_last(const struct det_file_log *log, uint64_t *ret);

/* secure.c: writes the rows after position `secure` again, if the log is durable. */
DET_MUST_CHECK int det_log_secure(
    struct det_file_log *log, uint64_t secure, struct det_error *reterr);

/* follow.c */
DET_MUST_CHECK int det_log_follow_open(
    struct det_file_log *log, const struct det_journal_stream_sink *sink,
    struct det_journal_found *found, struct det_error *reterr);
/* Reads the head again: segments may have been dropped. Under the mutex. */
int det_log_follow_head(struct det_file_log *log, struct det_error *reterr);
int det_log_refresh(
    struct det_journal_log *base, const struct det_journal_stream_sink *sink, uint64_t *ret_end,
    struct det_error *reterr);

/* drop.c */
int det_log_drop(struct det_journal_log *base, uint64_t released, det_time now);
/* Gives a dropped segment's file, with its old content, the name `path`. DET_ERR_NOT_FOUND: there
 * is none. */
DET_MUST_CHECK int det_log_take_spare(struct det_file_log *log, const char *path);
/* Removes files before the first segment, which a crash has left. */
void det_log_remove_leftovers(const struct det_file_log *log);

/* cursor.c */
int det_log_cursor_open(
    struct det_journal_log *base, uint64_t from, struct det_journal_cursor **ret,
    struct det_error *reterr);
int det_log_cursor_read(
    struct det_journal_cursor *cursor, uint64_t limit, const void **ret, size_t *ret_size,
    struct det_error *reterr);
void det_log_cursor_close(struct det_journal_cursor *cursor);

#endif
