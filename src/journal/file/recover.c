/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* recover.c - opening a log for writing: finds its end, removes a torn tail, refuses damage, and
 * writes again what may not be on the disk. docs/formats/journal.md has the rules.
 *
 *     | frames, known to be acknowledged | frames, perhaps acknowledged | torn | zeros
 *                                        ^ `known`                      ^ `offset`, `next` */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "journal/file/file_log.h"

/* Two clocks that are read one after the other, and set a little. */
#define START_TOLERANCE (2 * DET_SECOND)
#define REPAIRS_MAX     1000

/* What a scan of a segment found. */
struct end {
    uint64_t offset, next; /* of the first place without a valid frame */
    uint64_t synced;       /* the highest acknowledged position in the frames, also later ones */
    uint64_t valid_offset, valid_first; /* of the first valid frame after that place; 0: none */
    uint64_t torn;                      /* groups after that place */
    bool has_bytes;                     /* after that place, other than zero */
};

struct recovery {
    struct det_file_log *log;
    const struct det_journal_stream_sink *sink;
    struct det_journal_found *found;
    struct det_error *reterr;
    uint64_t known;  /* was acknowledged, by the mark and the frames */
    uint64_t secure; /* is on the disk */
    bool has_new_head;
    bool is_other_start; /* the machine was started since a log without DISK was written */
};

static int segment_exists(const struct det_file_log *log, uint64_t number)
{
    struct det_file *file;
    int r;

    r = det_segment_open(log, number, DET_FILE_READ, &file);
    if (r == 0)
        det_file_close(log->world, file);
    return r == 0 ? 1 : r == DET_ERR_NOT_FOUND ? 0 : r;
}

/* Numbers have no gaps, so the last one is found in steps that double, then halve. */
int det_log_find_last(const struct det_file_log *log, uint64_t *ret)
{
    uint64_t last = log->head.first - 1, step = 1;
    int r;

    while ((r = segment_exists(log, last + step)) > 0) {
        last += step;
        step *= 2;
    }
    for (step /= 2; r == 0 && step > 0; step /= 2) {
        r = segment_exists(log, last + step);
        if (r > 0)
            last += step;
        r = r < 0 ? r : 0;
    }
    *ret = last;
    return r;
}

static int refuse_segment(
    const struct recovery *recovery, int code, uint64_t number, const char *reason)
{
    char name[DET_SEGMENT_NAME];

    det_segment_name(number, name);
    return det_log_refuse(recovery->log, recovery->reterr, code, name, "%s", reason);
}

static int refuse_code(const struct recovery *recovery, int code, uint64_t number)
{
    return refuse_segment(recovery, code, number, det_error_text(code));
}

static int refuse_damage(const struct recovery *recovery, const struct end *end)
{
    char name[DET_SEGMENT_NAME];

    det_segment_name(recovery->log->last, name);
    (void)det_log_refuse(
        recovery->log, recovery->reterr, DET_ERR_CORRUPT, name,
        "offset %" PRIu64 ": the row at position %" PRIu64
        " is damaged or gone, but position %" PRIu64
        " was acknowledged; restore a copy, or open with accepts_loss",
        end->offset, end->next, recovery->known);
    if (recovery->reterr)
        recovery->reterr->offset = end->offset;
    return DET_ERR_CORRUPT;
}

/* Looks for valid frames after the end of the rows. */
static int scan_rest(struct det_scan *scan, struct end *end)
{
    struct det_frame frame;
    const char *data = NULL;
    int r;

    while ((r = det_scan_resync(scan, end->next, &end->has_bytes)) > 0) {
        r = det_scan_frame(scan, &frame, &data);
        if (r < 0)
            return r;
        if (frame.synced > end->synced)
            end->synced = frame.synced;
        if (end->valid_offset == 0 && det_frame_next(&frame, data) > end->next) {
            end->valid_offset = scan->offset;
            end->valid_first = frame.first;
        }
        end->torn += frame.kind == DET_FRAME_GROUP;
        scan->offset += frame.size;
    }
    return r;
}

/* True if a frame of this position was begun; otherwise the bytes may be old ones of the file. */
static bool is_begun(struct det_scan *scan, uint64_t next)
{
    struct det_frame frame;
    const char *data = NULL;
    int64_t size;

    size = det_window_get(&scan->window, scan->offset, DET_FRAME_HEAD, scan->end, &data);
    return size >= (int64_t)DET_FRAME_HEAD && det_frame_get_head(data, (size_t)size, &frame) &&
           det_frame_head_is_valid(data, scan->seed) && frame.first == next;
}

/* Reads the rows of the active segment. DET_ERR_CORRUPT without a table of streams. */
static int scan_rows(struct recovery *recovery, struct det_scan *scan, struct end *end)
{
    struct det_file_log *log = recovery->log;
    struct det_frame frame;
    const char *data = NULL;
    int r;

    *end = (struct end){ .next = log->active.base };
    log->index.count = 0;
    log->index.span = 0;
    scan->offset = DET_SEGMENT_HEAD;
    while ((r = det_scan_frame(scan, &frame, &data)) == DET_SCAN_FRAME) {
        if (frame.first != end->next || frame.kind == DET_FRAME_INDEX ||
            (scan->offset == DET_SEGMENT_HEAD && frame.kind != DET_FRAME_TABLE))
            break;
        r = recovery->sink ? det_scan_streams(&frame, data, recovery->sink) : 0;
        if (r < 0)
            return r;
        if (frame.kind == DET_FRAME_GROUP)
            det_journal_index_add(&log->index, log->allocator, frame.first, scan->offset);
        if (frame.synced > end->synced)
            end->synced = frame.synced;
        end->next = det_frame_next(&frame, data);
        scan->offset += frame.size;
    }
    if (r < 0)
        return r;
    end->offset = scan->offset;
    end->torn = r == DET_SCAN_BAD && is_begun(scan, end->next);
    r = scan_rest(scan, end);
    if (r < 0)
        return r;
    return end->offset == DET_SEGMENT_HEAD ? DET_ERR_CORRUPT : 0;
}

static int scan_segment(struct recovery *recovery, struct end *end)
{
    struct det_file_log *log = recovery->log;
    struct det_scan scan = { .seed = log->seed, .end = UINT64_MAX };
    int r;

    det_window_init(&scan.window, log->world, log->allocator);
    det_window_set_file(&scan.window, log->file);
    r = scan_rows(recovery, &scan, end);
    det_window_deinit(&scan.window);
    if (end->synced > recovery->known)
        recovery->known = end->synced;
    if (end->synced > recovery->secure)
        recovery->secure = end->synced;
    return r;
}

/* Opens the last segment and reads its header: DET_ERR_CORRUPT if that is not valid. */
static int open_last(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    int r;

    det_file_close(log->world, log->file);
    log->file = NULL;
    r = det_segment_open(log, log->last, DET_FILE_READ | DET_FILE_WRITE, &log->file);
    if (r == 0)
        r = det_segment_read_head(log, log->file, log->last, &log->active);
    return r;
}

static int remove_last(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    char path[DET_PATH_MAX];
    int r;

    det_file_close(log->world, log->file);
    log->file = NULL;
    r = det_segment_path(log, log->last, path);
    if (r == 0)
        r = det_file_remove(log->world, path);
    if (r == 0)
        r = det_folder_sync(log->world, log->folder);
    if (r < 0)
        return refuse_code(recovery, r, log->last);
    log->last--;
    return 0;
}

/* The highest acknowledged position in the frames of a segment without a valid header. */
static int scan_headless(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    struct det_scan scan = { .seed = log->seed, .offset = DET_SEGMENT_HEAD, .end = UINT64_MAX };
    struct end end = { 0 };
    int r;

    det_window_init(&scan.window, log->world, log->allocator);
    det_window_set_file(&scan.window, log->file);
    r = scan_rest(&scan, &end);
    det_window_deinit(&scan.window);
    if (end.synced > recovery->known)
        recovery->known = end.synced;
    recovery->found->torn += end.torn;
    return r;
}

/* Reads the last segment, or the one before it if the last one is only begun. */
static int find_end(struct recovery *recovery, struct end *end)
{
    struct det_file_log *log = recovery->log;
    uint64_t begun = 0;
    int r;

    for (;;) {
        r = open_last(recovery);
        if (r == 0)
            r = scan_segment(recovery, end);
        if (r == 0)
            break;
        if (r != DET_ERR_CORRUPT || !log->file)
            return refuse_code(recovery, r, log->last);
        r = scan_headless(recovery);
        if (r < 0)
            return refuse_code(recovery, r, log->last);
        if (begun > 0 || (log->last == log->first && recovery->known > 0))
            return refuse_segment(
                recovery, DET_ERR_CORRUPT, log->last,
                "offset 0: header or streams are damaged, but rows were acknowledged");
        begun = log->last;
        if (log->last == log->first)
            return 0; /* the caller makes it again */
        log->last--;
    }
    if (begun == 0)
        return 1;
    if (end->next <= recovery->known)
        return refuse_segment(
            recovery, DET_ERR_CORRUPT, begun,
            "offset 0: header or streams are damaged, but rows were acknowledged");
    log->last = begun;
    r = remove_last(recovery);
    if (r == 0)
        r = open_last(recovery);
    return r < 0 ? r : 1;
}

/* The first segment, with the table that has only the stream "main". */
static int create_first(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    struct det_frame_entry entry = { .name = "main", .name_size = 4 };
    char table[DET_FRAME_HEAD + 64];
    struct det_frame frame = {
        .kind = DET_FRAME_TABLE,
        .size = (uint32_t)(DET_FRAME_HEAD + det_frame_entry_size(entry.name_size)),
        .first = log->head.first_base,
        .at = det_world_now(log->world, DET_CLOCK_WALL),
        .count = 1,
    };
    int r;

    (void)det_frame_put_entry(table + DET_FRAME_HEAD, &entry);
    det_frame_put_head(table, &frame);
    det_frame_seal(table, frame.size, log->seed);
    log->last = log->first - 1;
    log->position = log->head.first_base - 1;
    log->offset = 0;
    log->active = (struct det_segment){ .before = log->head.first_before };
    r = det_segment_create(log, table, frame.size, frame.at);
    if (r == 0)
        r = det_file_sync(log->world, log->file);
    if (r == 0)
        r = det_folder_sync(log->world, log->folder);
    log->folder_is_dirty = false;
    return r < 0 ? refuse_code(recovery, r, log->first) : 0;
}

/* Replaces damaged bytes by a gap of `lost` rows. A tail becomes a small gap. */
static int write_gap(
    struct recovery *recovery, const struct end *end, uint64_t until, uint64_t lost)
{
    struct det_file_log *log = recovery->log;
    size_t size = (size_t)(until - end->offset);
    struct det_frame frame = {
        .kind = DET_FRAME_GAP,
        .first = end->next,
        .at = det_world_now(log->world, DET_CLOCK_WALL),
    };
    char *data;
    int r;

    if (until == 0)
        size = DET_FRAME_HEAD + 8;
    if (size > DET_FRAME_MAX || size < DET_FRAME_HEAD + 8)
        return DET_ERR_UNSUPPORTED;
    frame.size = (uint32_t)size;
    data = det_alloc_zero(log->allocator, size);
    if (!data)
        return DET_ERR_NO_MEMORY;
    r = until ? (int)det_file_read(log->world, log->file, end->offset, data, size) : 0;
    if (r >= 0) {
        det_put64(data + DET_FRAME_HEAD, lost);
        det_frame_put_head(data, &frame);
        det_frame_seal(data, size, log->seed);
        r = det_file_write(log->world, log->file, end->offset, data, size);
    }
    det_free(log->allocator, data, size);
    if (r == 0 && until == 0)
        r = det_file_truncate(log->world, log->file, end->offset + size);
    if (r == 0)
        r = det_file_sync(log->world, log->file);
    return r;
}

static int accept_loss(struct recovery *recovery, const struct end *end)
{
    bool has_later = end->valid_offset > 0 && end->valid_first <= recovery->known + 1;
    uint64_t lost = (has_later ? end->valid_first : recovery->known + 1) - end->next;
    int r;

    r = write_gap(recovery, end, has_later ? end->valid_offset : 0, lost);
    if (r < 0)
        return refuse_code(recovery, r, recovery->log->last);
    recovery->found->lost += lost;
    return 0;
}

static int cut_tail(struct recovery *recovery, const struct end *end)
{
    struct det_file_log *log = recovery->log;
    int64_t size;
    int r = 0;

    recovery->found->torn += end->torn;
    if (end->has_bytes) {
        r = det_file_truncate(log->world, log->file, end->offset);
        if (r == 0)
            r = det_file_sync(log->world, log->file);
    }
    if (r < 0)
        return refuse_code(recovery, r, log->last);
    size = det_file_size(log->world, log->file);
    if (size < 0)
        return refuse_code(recovery, (int)size, log->last);
    log->offset = end->offset;
    log->allocated = (uint64_t)size;
    log->position = end->next - 1;
    return 0;
}

/* What the mark proves. After a power failure a mark without DISK proves nothing about the end. */
static void believe_mark(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    const struct det_log_mark *mark = &log->mark;
    det_time started =
        det_world_now(log->world, DET_CLOCK_WALL) - det_world_now(log->world, DET_CLOCK_BOOT);

    if (mark->generation == 0)
        return;
    recovery->secure = mark->synced;
    recovery->known = mark->synced;
    if (mark->durability == DET_JOURNAL_DISK)
        return;
    recovery->is_other_start =
        mark->started - started >= START_TOLERANCE || started - mark->started >= START_TOLERANCE;
    if (!recovery->is_other_start)
        recovery->known = mark->acknowledged;
}

/* True if all rows of a segment are there, up to the base of the next one. */
static bool is_whole(struct recovery *recovery, uint64_t number)
{
    struct recovery quiet = { .log = recovery->log };
    struct det_file_log *log = recovery->log;
    struct det_segment after;
    struct det_file *file;
    struct end end;
    int r;

    log->last = number;
    r = open_last(&quiet);
    if (r == 0)
        r = scan_segment(&quiet, &end);
    if (r == 0)
        r = det_segment_open(log, number + 1, DET_FILE_READ, &file);
    if (r < 0)
        return false;
    r = det_segment_read_head(log, file, number + 1, &after);
    det_file_close(log->world, file);
    return r == 0 && after.base == end.next;
}

/* The segment with the first row that may not be on the disk. */
static uint64_t find_unsynced(const struct det_file_log *log)
{
    uint64_t number = log->last;
    struct det_segment segment;
    struct det_file *file;

    for (; number > log->first; number--) {
        int r = det_segment_open(log, number, DET_FILE_READ, &file);

        if (r < 0)
            continue;
        r = det_segment_read_head(log, file, number, &segment);
        det_file_close(log->world, file);
        if (r == 0 && segment.base <= log->mark.synced + 1)
            break;
    }
    return number;
}

/* After a power failure any part of a log without DISK may be missing. It is cut at the first
 * segment that is not whole; the last one is checked later, as always. */
static int check_unsynced(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    uint64_t last = log->last > log->mark.segment ? log->last : log->mark.segment;
    uint64_t number = find_unsynced(log);
    char path[DET_PATH_MAX];
    int r = 0;

    while (number < last && is_whole(recovery, number))
        number++;
    log->last = number;
    for (; last > number && r == 0; last--) {
        r = det_segment_path(log, last, path);
        if (r == 0)
            r = det_file_remove(log->world, path);
        recovery->found->torn += r == 0;
        r = r == DET_ERR_NOT_FOUND ? 0 : r;
    }
    if (r == 0)
        r = det_folder_sync(log->world, log->folder);
    return r < 0 ? refuse_code(recovery, r, last) : 0;
}

static int open_head(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    struct det_file *file;
    char path[DET_PATH_MAX];
    int r;

    r = det_log_head_load(log, recovery->reterr);
    if (r != DET_ERR_NOT_FOUND || log->options.must_exist)
        return r;
    det_log_head_create(log);
    r = det_log_path(log, "mark", path);
    if (r == 0)
        r = det_file_open(log->world, path, DET_FILE_READ | DET_FILE_NO_LINK, &file);
    if (r == 0)
        det_file_close(log->world, file);
    if (r == DET_ERR_NOT_FOUND)
        r = segment_exists(log, 1) > 0 ? 0 : DET_ERR_NOT_FOUND;
    if (r == 0)
        return det_log_refuse(
            log, recovery->reterr, DET_ERR_CORRUPT, "head",
            "missing, but other files of a journal are there; restore it, or remove them");
    if (r == DET_ERR_NOT_FOUND)
        r = det_log_head_store(log, &log->head);
    recovery->has_new_head = r == 0;
    return r < 0 ? det_log_refuse(log, recovery->reterr, r, "head", "%s", det_error_text(r)) : 0;
}

static int open_mark(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    int r;

    r = det_log_mark_open(log);
    if (r == 0)
        r = det_log_mark_load(log, log->mark_file);
    return r < 0 ? det_log_refuse(log, recovery->reterr, r, "mark", "%s", det_error_text(r)) : 0;
}

/* The mark is on the disk from now on; what it says later need not be. */
static int store_mark(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    int r;

    r = det_log_mark_store(log);
    if (r == 0)
        r = det_file_sync(log->world, log->mark_file);
    if (r == 0)
        r = det_folder_sync(log->world, log->folder);
    return r < 0 ? det_log_refuse(log, recovery->reterr, r, "mark", "%s", det_error_text(r)) : 0;
}

static int find_segments(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    int r;

    log->first = log->head.first;
    r = det_log_find_last(log, &log->last);
    if (r < 0)
        return refuse_code(recovery, r, log->first);
    if (log->last >= log->first)
        return 0;
    if (recovery->known > 0 || log->first > 1 || segment_exists(log, log->first + 1) > 0)
        return refuse_segment(
            recovery, DET_ERR_CORRUPT, log->first, "missing, with all rows; restore a copy");
    return 0;
}

static int recover_segments(struct recovery *recovery)
{
    struct det_file_log *log = recovery->log;
    struct end end;
    int r;

    for (int i = 0; i < REPAIRS_MAX; i++) {
        r = find_end(recovery, &end);
        if (r == 0)
            return create_first(recovery);
        if (r < 0)
            return r;
        if (recovery->known < end.next)
            return cut_tail(recovery, &end);
        if (!log->options.accepts_loss)
            return refuse_damage(recovery, &end);
        r = accept_loss(recovery, &end);
        if (r < 0)
            return r;
    }
    return refuse_damage(recovery, &end);
}

int det_log_recover(
    struct det_file_log *log, const struct det_journal_stream_sink *sink,
    struct det_journal_found *found, struct det_error *reterr)
{
    struct recovery recovery = { .log = log, .sink = sink, .found = found, .reterr = reterr };
    int r;

    r = open_head(&recovery);
    if (r == 0)
        r = open_mark(&recovery);
    if (r < 0)
        return r;
    believe_mark(&recovery);
    if (recovery.secure == 0 &&
        !recovery.has_new_head) { /* it is unknown whether the head is on the disk */
        r = det_log_head_store(log, &log->head);
        if (r < 0)
            return det_log_refuse(log, reterr, r, "head", "%s", det_error_text(r));
    }
    r = find_segments(&recovery);
    if (r == 0 && recovery.is_other_start && log->last >= log->first)
        r = check_unsynced(&recovery);
    if (r == 0)
        r = log->last < log->first ? create_first(&recovery) : recover_segments(&recovery);
    if (r == 0)
        r = det_log_secure(log, recovery.secure, reterr);
    if (r == 0)
        r = store_mark(&recovery);
    if (r == 0)
        det_log_remove_leftovers(log);
    log->has_spare = true; /* perhaps */
    return r;
}
