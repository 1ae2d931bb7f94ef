/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal_scan.c - reads a journal of tasks and distinguishes a torn tail from damage.
 *
 * The scan reads line by line and remembers the first incomplete line. Later whole lines are only
 * checked for how much was on the disk when they were written: if that is beyond the incomplete
 * line, the file is damaged. */
#include "task/task_journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "os/os.h"

#define SYNCED      ",\"synced\":"
#define CRC         ",\"crc\":\""
#define CRC_DIGITS  8
#define CRC_SIZE    (sizeof CRC - 1 + CRC_DIGITS + 2) /* with quote and brace */
#define OPENING     "{\"journal\":"
#define OPENING_MAX 512 /* bytes in an opening line: less than a sector */
/* Limit of the search for a newline: two lines without theirs are read together. */
#define LOOKAHEAD_MAX ((size_t)2 * DET_TASK_JOURNAL_LINE_MAX)
#define DIGITS_MAX    20

struct scan {
    struct det_world *world;
    struct det_file *file;
    char *buffer;
    size_t capacity;
    size_t begin, end; /* read, but not scanned */
    uint64_t offset;   /* of `begin` in the file */
    uint64_t line;     /* its number, from 1 */
    uint64_t synced;   /* the maximum over whole lines */
    bool is_torn;
    uint64_t torn_at, torn_line;
};

uint32_t det_task_journal_crc(const char *line, size_t size)
{
    return det_crc32c(0, line, size);
}

/* The number after `key` at the end of `text`; only digits may follow the key. */
static bool last_number(struct det_view text, const char *key, uint64_t *ret)
{
    size_t size = strlen(key), digits = 0;

    while (digits < text.size && digits < DIGITS_MAX && text.data[text.size - digits - 1] >= '0' &&
           text.data[text.size - digits - 1] <= '9')
        digits++;
    if (text.size < digits + size || memcmp(text.data + text.size - digits - size, key, size) != 0)
        return false;
    return det_parse_u64(det_view_of(text.data + text.size - digits, digits), ret) == 0;
}

/* True if the line, without its newline, is complete and valid. */
static bool is_complete(struct det_view line, uint64_t *ret_synced)
{
    struct det_view before;
    char expected[CRC_SIZE + 1];
    uint32_t crc;

    if (line.size < CRC_SIZE)
        return false;
    before = det_view_of(line.data, line.size - CRC_SIZE);
    crc = det_task_journal_crc(before.data, before.size);
    snprintf(expected, sizeof expected, CRC "%08" PRIx32 "\"}", crc);
    return memcmp(line.data + before.size, expected, CRC_SIZE) == 0 &&
           last_number(before, SYNCED, ret_synced);
}

static int fill(struct scan *scan)
{
    int64_t size;

    memmove(scan->buffer, scan->buffer + scan->begin, scan->end - scan->begin);
    scan->end -= scan->begin;
    scan->begin = 0;
    size = det_file_read(
        scan->world, scan->file, scan->offset + scan->end, scan->buffer + scan->end,
        scan->capacity - scan->end);
    if (size < 0)
        return (int)size;
    scan->end += (size_t)size;
    return 0;
}

/* The next line without its newline, or as much of it as can be one: 1, 0 at the end of the file,
 * or an error. `*ret_size` is its size in the file. */
static int next_line(struct scan *scan, struct det_view *ret, size_t *ret_size, bool *ret_ended)
{
    const char *newline;
    size_t size;
    int r;

    if (scan->end - scan->begin < LOOKAHEAD_MAX) {
        r = fill(scan);
        if (r < 0)
            return r;
    }
    size = scan->end - scan->begin;
    if (size == 0)
        return 0;
    if (size > LOOKAHEAD_MAX)
        size = LOOKAHEAD_MAX;
    newline = memchr(scan->buffer + scan->begin, '\n', size);
    *ret_ended = newline != NULL;
    *ret_size = newline ? (size_t)(newline - (scan->buffer + scan->begin)) + 1 : size;
    *ret = det_view_of(scan->buffer + scan->begin, newline ? *ret_size - 1 : size);
    return 1;
}

/* The first line identifies the kind of file. */
static int check_opening(struct det_view line, struct det_error *reterr)
{
    uint64_t format;
    size_t size = sizeof OPENING - 1, digits = 0;

    if (line.size > size && memcmp(line.data, OPENING, size) == 0)
        while (digits < DIGITS_MAX && line.data[size + digits] >= '0' &&
               line.data[size + digits] <= '9')
            digits++;
    if (det_parse_u64(det_view_of(line.data + size, digits), &format) < 0)
        return det_error_set(reterr, DET_ERR_MALFORMED, "this is not a journal of tasks");
    if (format > DET_TASK_JOURNAL_FORMAT)
        return det_error_set(
            reterr, DET_ERR_VERSION, "a journal of format %" PRIu64 "; this program supports %d",
            format, DET_TASK_JOURNAL_FORMAT);
    return 0;
}

static int refuse(const struct scan *scan, struct det_error *reterr)
{
    (void)det_error_set(
        reterr, DET_ERR_CORRUPT,
        "line %" PRIu64 " at byte %" PRIu64 " is damaged, and line %" PRIu64
        " records that it was on the disk; keep the file and inspect it",
        scan->torn_line, scan->torn_at, scan->line);
    if (reterr)
        reterr->offset = scan->torn_at;
    return DET_ERR_CORRUPT;
}

/* An incomplete first line that is alone was interrupted by a stop of this program; any other is a
 * foreign file, and must not be cut. */
static int check_torn_opening(
    const struct scan *scan, struct det_view line, struct det_error *reterr)
{
    int64_t size = det_file_size(scan->world, scan->file);
    size_t common = line.size < sizeof OPENING - 1 ? line.size : sizeof OPENING - 1;
    bool is_zero = true;

    if (size < 0)
        return det_error_set(reterr, (int)size, "%s", det_error_text((int)size));
    for (size_t i = 0; i < line.size; i++)
        is_zero = is_zero && line.data[i] == 0;
    if (size <= OPENING_MAX && (is_zero || memcmp(line.data, OPENING, common) == 0))
        return 0;
    return det_error_set(reterr, DET_ERR_MALFORMED, "this is not a journal of tasks");
}

/* The newline before a whole line may be damaged: the line is then inside of an invalid one. A
 * brace before a quote only occurs at the beginning of a line, since quotes in texts are
 * escaped. */
static bool has_whole_inside(struct det_view line, uint64_t *ret_synced)
{
    for (size_t i = 1; i + 1 < line.size; i++)
        if (line.data[i] == '{' && line.data[i + 1] == '"' &&
            is_complete(det_view_of(line.data + i, line.size - i), ret_synced))
            return true;
    return false;
}

static void remember_torn(struct scan *scan)
{
    if (scan->is_torn)
        return;
    scan->is_torn = true;
    scan->torn_at = scan->offset;
    scan->torn_line = scan->line;
}

static int inspect(struct scan *scan, struct det_view line, bool is_ended, struct det_error *reterr)
{
    uint64_t synced;

    bool is_there = is_ended && line.size < DET_TASK_JOURNAL_LINE_MAX && is_complete(line, &synced);

    if (!is_there) {
        remember_torn(scan);
        is_there = is_ended && has_whole_inside(line, &synced);
    }
    if (scan->is_torn && is_there && synced > scan->torn_at)
        return refuse(scan, reterr);
    if (scan->is_torn)
        return scan->offset == 0 ? check_torn_opening(scan, line, reterr) : 0;
    if (synced > scan->offset)
        return det_error_set(
            reterr, DET_ERR_MALFORMED, "line %" PRIu64 " records that later bytes were synced",
            scan->line);
    scan->synced = synced;
    return scan->line == 1 ? check_opening(line, reterr) : 0;
}

int det_task_journal_scan(
    /* NOLINTNEXTLINE(readability-non-const-parameter): written through `scan` */
    struct det_world *world, struct det_file *file, char *buffer, size_t capacity,
    struct det_task_journal_extent *ret, struct det_error *reterr)
{
    struct scan scan = {
        .world = world,
        .file = file,
        .buffer = buffer,
        .capacity = capacity,
        .line = 1,
    };
    struct det_view line = { 0 };
    bool is_ended = false;
    size_t size = 0;
    int r;

    det_assert(capacity >= LOOKAHEAD_MAX);
    while ((r = next_line(&scan, &line, &size, &is_ended)) > 0) {
        r = inspect(&scan, line, is_ended, reterr);
        if (r < 0)
            return r;
        scan.begin += size;
        scan.offset += size;
        scan.line += is_ended;
    }
    if (r < 0)
        return det_error_set(reterr, r, "the journal cannot be read: %s", det_error_text(r));
    ret->size = scan.is_torn ? scan.torn_at : scan.offset;
    ret->synced = scan.synced;
    return 0;
}
