/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_journal.c - writes every event as a line in a file; docs/formats/task-journal.md has the
 * format.
 *
 *     file:    | synced ............... | written, not synced |
 *     buffer:                                                 | events since |
 *              0                  synced                   size      size + used
 *
 * Invariants
 *   1. `synced` <= `size`; all lines of a turn contain the same `synced`.
 *   2. Once `failure` is set nothing is written, and each turn returns it.
 *   3. The buffer always has room for one more line. */
#include <detent/bus.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "task/task_journal.h"

#define BUFFER_SIZE 65536

struct det_task_journal {
    struct det_world *world;
    const struct det_allocator *allocator;
    struct det_file *file;
    uint64_t synced, size;
    int failure;
    size_t used;
    char buffer[BUFFER_SIZE];
};

/* Appends the common fields to the object in `line`, after removing its end. */
static size_t seal(char *line, size_t size, uint64_t synced)
{
    uint32_t crc;

    size--;
    size += (size_t)snprintf(
        line + size, DET_TASK_JOURNAL_LINE_MAX - size, ",\"synced\":%" PRIu64, synced);
    crc = det_task_journal_crc(line, size);
    size += (size_t)snprintf(
        line + size, DET_TASK_JOURNAL_LINE_MAX - size, ",\"crc\":\"%08" PRIx32 "\"}\n", crc);
    return size;
}

static void write_out(struct det_task_journal *journal)
{
    int r;

    if (journal->failure < 0 || journal->used == 0)
        return;
    r = det_file_write(
        journal->world, journal->file, journal->size, journal->buffer, journal->used);
    if (r < 0)
        journal->failure = r;
    journal->size += journal->used;
    journal->used = 0;
}

/* The turn reports a failure; here it would be reported for each event. */
static int append_event(void *user, const struct det_task_event *event)
{
    struct det_task_journal *journal = user;
    char *line;
    size_t size;

    if (journal->failure < 0)
        return 0;
    if (journal->used + DET_TASK_JOURNAL_LINE_MAX > BUFFER_SIZE)
        write_out(journal);
    line = journal->buffer + journal->used;
    size = det_task_event_json(event, line, DET_TASK_EVENT_LINE_MAX);
    journal->used += seal(line, size, journal->synced);
    return 0;
}

static int sync_turn(void *user)
{
    struct det_task_journal *journal = user;

    write_out(journal);
    if (journal->failure == 0 && journal->size > journal->synced)
        journal->failure = det_file_sync(journal->world, journal->file);
    if (journal->failure == 0)
        journal->synced = journal->size;
    return journal->failure;
}

/* Writes the format, and that the sequences start again. */
static int append_opening(struct det_task_journal *journal)
{
    char at[DET_TIME_TEXT];
    size_t size;

    (void)det_format_time(det_world_now(journal->world, DET_CLOCK_WALL), at, sizeof at);
    size = (size_t)snprintf(
        journal->buffer, DET_TASK_JOURNAL_LINE_MAX, "{\"journal\":%d,\"at\":\"%s\"}",
        DET_TASK_JOURNAL_FORMAT, at);
    journal->used = seal(journal->buffer, size, journal->synced);
    return sync_turn(journal);
}

/* A new file is durable when its folder is synced. */
static int sync_folder(struct det_world *world, const char *path)
{
    char folder[DET_PATH_MAX];
    int r;

    r = det_file_folder(path, folder);
    return r < 0 ? r : det_folder_sync(world, folder);
}

static int cut(struct det_task_journal *journal, uint64_t size)
{
    int64_t before;

    before = det_file_size(journal->world, journal->file);
    if (before < 0)
        return (int)before;
    if ((uint64_t)before == size)
        return 0;
    return det_file_truncate(journal->world, journal->file, size);
}

/* Rewrites data whose sync the last program did not confirm: its sync may have failed, and the page
 * cache may then contain data that the disk never gets. */
static int write_again(struct det_task_journal *journal, uint64_t from, uint64_t to)
{
    while (from < to) {
        size_t part = to - from < BUFFER_SIZE ? (size_t)(to - from) : BUFFER_SIZE;
        int64_t size;
        int r;

        size = det_file_read(journal->world, journal->file, from, journal->buffer, part);
        if (size <= 0)
            return size < 0 ? (int)size : DET_ERR_IO;
        r = det_file_write(journal->world, journal->file, from, journal->buffer, (size_t)size);
        if (r < 0)
            return r;
        from += (uint64_t)size;
    }
    return 0;
}

/* A file without a whole line may be missing in its folder: the sync of the folder may have failed,
 * and a later sync does not repair that. Creating a new entry does. */
static int make_again(struct det_task_journal *journal, const char *path)
{
    int r;

    det_file_close(journal->world, journal->file);
    journal->file = NULL;
    r = det_file_remove(journal->world, path);
    if (r < 0)
        return r;
    return det_file_open(
        journal->world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &journal->file);
}

/* Prepares a file with the found lines for appending. */
static int restore(
    struct det_task_journal *journal, const char *path,
    const struct det_task_journal_extent *extent)
{
    int r;

    r = extent->size > 0 ? cut(journal, extent->size) : make_again(journal, path);
    if (r == 0)
        r = write_again(journal, extent->synced, extent->size);
    if (r == 0)
        r = det_file_sync(journal->world, journal->file);
    if (r == 0)
        r = sync_folder(journal->world, path);
    journal->synced = journal->size = extent->size;
    return r < 0 ? r : append_opening(journal);
}

static int open_file(struct det_task_journal *journal, const char *path, struct det_error *reterr)
{
    struct det_task_journal_extent extent;
    struct det_error error;
    int r;

    r = det_file_open(
        journal->world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &journal->file);
    if (r < 0)
        return det_error_set(reterr, r, "%s: %s", path, det_error_text(r));
    r = det_task_journal_scan(
        journal->world, journal->file, journal->buffer, BUFFER_SIZE, &extent, &error);
    if (r < 0) {
        (void)det_error_set(reterr, r, "%s: %s", path, error.text);
        if (reterr)
            reterr->offset = error.offset;
        return r;
    }
    r = restore(journal, path, &extent);
    return r < 0 ? det_error_set(reterr, r, "%s: %s", path, det_error_text(r)) : 0;
}

int det_task_journal_open(
    struct det_world *world, const char *path, const struct det_allocator *allocator,
    struct det_task_journal **ret, struct det_error *reterr)
{
    struct det_task_journal *journal;
    int r;

    journal = DET_NEW(allocator, struct det_task_journal);
    if (!journal)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a journal");
    journal->world = det_world_or_real(world);
    journal->allocator = allocator;
    r = open_file(journal, path, reterr);
    if (r < 0) {
        det_task_journal_close(journal);
        return r;
    }
    *ret = journal;
    return 0;
}

void det_task_journal_close(struct det_task_journal *journal)
{
    if (!journal)
        return;
    det_file_close(journal->world, journal->file);
    DET_DELETE(journal->allocator, journal);
}

struct det_subscriber det_task_journal_subscriber(struct det_task_journal *journal)
{
    return (struct det_subscriber){
        .name = "journal",
        .delivery = DET_DELIVER_LOSSLESS,
        .on_event = append_event,
        .on_turn = sync_turn,
        .user = journal,
    };
}
