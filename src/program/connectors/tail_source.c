/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tail_source.c - a row for each line that is appended to a file, also after a rotation.
 *
 *     reading --end--> waiting --a write--> reading
 *                         |-----another file has the name--> the rest of this one, then the other
 *                         '-----it is shorter--------------> its begin
 *
 * The cursor has the inode. A source that resumes after a rotation finds the file under its new
 * name in the same folder, and continues there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/file_watch.h"
#include "connectors/input.h"
#include "connectors/line_row.h"
#include "os/os.h"

#define REC_SPEC "connectors/tail_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX 4096 /* of one turn */

struct tail {
    struct tail_settings settings;
    struct det_stage_call *call; /* of open() */
    char path[DET_PATH_MAX];
    char old_path[DET_PATH_MAX]; /* the file of the cursor, after a rotation */
    struct line_row line_row;
    struct input input; /* descriptor -1: no file is open */
    struct file_watch *watch;
};

static int read_settings(
    struct tail *tail, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct tail_settings *value = &tail->settings;
    struct settings settings;
    int r;

    r = settings_open(&settings, stage, allocator, tail_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = settings_need(&settings, "path", value->path, "{path: app.log}", reterr);
    if (r == 0)
        r = settings_path(&settings, "path", value->path, folder, tail->path, reterr);
    if (r == 0)
        r = line_row_init(&tail->line_row, &settings, value->as, value->field, allocator, reterr);
    tail->line_row.truncates = value->truncate;
    tail->line_row.flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                           (value->partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    settings_close(&settings);
    return r;
}

static int tail_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct tail *tail = DET_NEW(NULL, struct tail);
    int r;

    if (!tail)
        return DET_ERR_NO_MEMORY;
    r = read_settings(tail, stage, NULL, folder, reterr);
    line_row_deinit(&tail->line_row);
    DET_DELETE(NULL, tail);
    return r;
}

static void tail_close(struct det_stage_call *call)
{
    struct tail *tail = call->self;

    input_close(&tail->input);
    file_watch_close(tail->watch);
    line_row_deinit(&tail->line_row);
    DET_DELETE(call->allocator, tail);
}

static int tail_open(struct det_stage_call *call)
{
    struct tail *tail = DET_NEW(call->allocator, struct tail);
    struct det_error error;
    int r;

    if (!tail)
        return DET_ERR_NO_MEMORY;
    call->self = tail;
    tail->call = call;
    tail->input.descriptor = -1;
    r = read_settings(tail, call->stage, call->allocator, call->folder, &error);
    if (r == 0) {
        r = file_watch_open(call, &tail->watch);
        if (r < 0)
            (void)det_error_set(
                &error, r, "%.160s cannot be watched: %s", tail->path, det_error_text(r));
    }
    if (r == 0)
        return 0;
    tail_close(call);
    return settings_refuse(call, &error);
}

/* Opens the file at the path; DET_ERR_NOT_FOUND: there is none yet. */
static int open_path(struct tail *tail, const char *path)
{
    struct det_error error;
    int r;

    r = input_open(&tail->input, tail->call, path, DET_JOURNAL_ROW_MAX, &error);
    if (r == DET_ERR_NOT_FOUND)
        return r;
    if (r < 0)
        return det_stage_fail(tail->call, r, "%s", error.text);
    if (!tail->input.is_file) {
        input_close(&tail->input);
        return det_stage_fail(
            tail->call, DET_ERR_INVALID, "%.160s is not a file: read it with the source lines",
            path);
    }
    return 0;
}

static bool is_file_of(const struct tail_cursor *cursor, const struct stat *status)
{
    return status->st_dev == cursor->device && status->st_ino == cursor->inode;
}

/* Finds the file of the cursor in the folder, under any name. */
static bool find_rotated(struct tail *tail, const struct tail_cursor *cursor)
{
    char folder[DET_PATH_MAX];
    struct dirent *entry;
    struct stat status;
    bool is_found = false;
    DIR *entries;

    if (det_file_folder(tail->path, folder) < 0)
        return false;
    entries = opendir(folder);
    while (entries && !is_found && (entry = readdir(entries)))
        if (fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode) && is_file_of(cursor, &status))
            is_found =
                snprintf(tail->old_path, sizeof tail->old_path, "%s/%s", folder, entry->d_name) <
                (int)sizeof tail->old_path;
    if (entries)
        (void)closedir(entries);
    return is_found;
}

static void begin_file(struct tail *tail, struct tail_cursor *cursor)
{
    cursor->device = tail->input.device;
    cursor->inode = tail->input.inode;
    cursor->offset = cursor->lines = 0;
}

/* The file of the cursor is gone: the rest of it is lost. */
static void report_loss(struct tail *tail, const struct tail_cursor *cursor)
{
    (void)det_stage_reject(
        tail->call, DET_REJECT_REMOTE,
        "%.160s was replaced, and the file that was read until line %llu is not in its folder: "
        "what was appended to it later is missing; rotate with a delay, without compression",
        tail->path, (unsigned long long)cursor->lines);
}

/* Opens the file in which the cursor is, or the first one. 1: open; 0: there is none yet. */
static int open_file(struct tail *tail, struct tail_cursor *cursor)
{
    struct stat status;
    int r;

    if (cursor->inode && (stat(tail->path, &status) < 0 || !is_file_of(cursor, &status))) {
        if (find_rotated(tail, cursor))
            r = open_path(tail, tail->old_path);
        else
            r = DET_ERR_NOT_FOUND;
        if (r == 0 && tail->input.inode == cursor->inode) {
            input_seek(&tail->input, cursor->offset);
            return 1;
        }
        if (r < 0 && r != DET_ERR_NOT_FOUND)
            return r;
        input_close(&tail->input);
        report_loss(tail, cursor);
        cursor->inode = 0;
        cursor->files++;
    }
    r = open_path(tail, tail->path);
    if (r < 0)
        return r == DET_ERR_NOT_FOUND ? 0 : r;
    file_watch_file(tail->watch, tail->path);
    if (tail->input.inode != cursor->inode) {
        bool is_first = cursor->inode == 0 && cursor->files == 0;

        begin_file(tail, cursor);
        if (is_first && tail->settings.from_end && stat(tail->path, &status) == 0)
            cursor->offset = (uint64_t)status.st_size;
    }
    input_seek(&tail->input, cursor->offset);
    return 1;
}

/* Returns true if another file has the name, and its writer has begun to use it: this one gets no
 * more lines. */
static bool is_replaced(const struct tail *tail, const struct tail_cursor *cursor)
{
    struct stat status;

    return stat(tail->path, &status) == 0 && !is_file_of(cursor, &status) && status.st_size > 0;
}

/* At the end of the file. Returns true if there is something to read now. */
static bool look_again(struct tail *tail, struct tail_cursor *cursor)
{
    struct stat status = { 0 };

    if (fstat(tail->input.descriptor, &status) == 0 && (uint64_t)status.st_size < cursor->offset) {
        cursor->lines = cursor->offset = 0;
        input_seek(&tail->input, 0);
        return true;
    }
    if ((uint64_t)status.st_size > tail->input.offset + input_view(&tail->input).size)
        return true;
    if (!is_replaced(tail, cursor))
        return false;
    /* With a last line that has no end: the next call emits it. */
    if (input_view(&tail->input).size == 0) {
        input_close(&tail->input);
        cursor->inode = 0;
        cursor->files++;
    }
    return true;
}

static int take_line(
    struct tail *tail, struct det_stage_call *call, int result, struct det_view line,
    struct tail_cursor *cursor)
{
    cursor->lines++;
    cursor->offset = tail->input.offset;
    if (result == 1)
        return line_row_emit(call, &tail->line_row, line, tail->input.name, cursor->lines);
    (void)det_stage_reject(
        call, DET_REJECT_DESERIALIZATION, "%.160s, line %llu: the line is longer than %d bytes",
        tail->input.name, (unsigned long long)cursor->lines, DET_JOURNAL_ROW_MAX);
    return 0;
}

/* Reads lines. 1: there are more; 0: the end of the file. */
static int read_lines(
    struct tail *tail, struct det_stage_call *call, struct tail_cursor *cursor, bool ends)
{
    uint32_t room = det_stage_room(call);
    struct det_view line = { NULL, 0 };
    int r;

    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        r = input_line(&tail->input, ends, &line);
        if (r == 0)
            return 0;
        if (r < 0 && r != DET_ERR_LIMIT)
            return det_stage_fail(
                call, r, "%.160s cannot be read: %s", tail->input.name, strerrordesc_np(errno));
        r = take_line(tail, call, r, line, cursor);
        if (r < 0)
            return r;
    }
    return 1;
}

static int tail_next(struct det_stage_call *call, void *cursor_memory)
{
    struct tail_cursor *cursor = cursor_memory;
    struct tail *tail = call->self;
    bool is_last;
    int r;

    if (tail->input.descriptor < 0) {
        file_watch_file(tail->watch, tail->path);
        file_watch_arm(tail->watch, call);
        r = open_file(tail, cursor);
        if (r <= 0)
            return r < 0 ? r : DET_SOURCE_IDLE;
    }
    r = read_lines(tail, call, cursor, false);
    if (r != 0)
        return r < 0 ? r : DET_SOURCE_MORE;
    file_watch_arm(tail->watch, call);
    is_last = is_replaced(tail, cursor);
    tail->input.is_ended = false;
    r = read_lines(tail, call, cursor, is_last);
    tail->input.is_ended = false;
    if (r != 0)
        return r < 0 ? r : DET_SOURCE_MORE;
    return look_again(tail, cursor) ? DET_SOURCE_MORE : DET_SOURCE_IDLE;
}

const struct det_connector tail_source = {
    CONNECTOR_HEAD(tail, source),
    .flags = DET_STAGE_INFINITE,
    .cursor = { .get = tail_cursor_record },
    .functions = { .open = tail_open, .close = tail_close, .next = tail_next },
    .check = tail_check,
};
