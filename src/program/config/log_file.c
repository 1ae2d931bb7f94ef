/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_file.c - implements log_file.h.
 *
 * Invariants
 *   1. `size` is the size of the file plus the buffered lines.
 *   2. No buffered line belongs to a file that was renamed. */
#include "config/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"

#define KEPT_MAX     (256 << 10) /* more is written at once */
#define REPORT_EVERY DET_MINUTE
#define TIME_SIZE    24

struct log_file {
    const struct det_allocator *allocator;
    struct det_world *world;
    char path[DET_PATH_MAX];
    struct config_log_file config;
    void (*report)(void *user, const char *text);
    void *user;
    struct det_buffer kept;
    size_t kept_lines;
    int descriptor;       /* -1: not open */
    uint64_t size;        /* including buffered lines */
    det_time began;       /* wall: when the file was made */
    uint64_t lost;        /* lines since they were last reported */
    int lost_by;          /* errno of the last loss */
    det_time reported_at; /* monotonic; 0: never */
};

static void assert_log_file(const struct log_file *file)
{
    det_assert((file->kept.size == 0) == (file->kept_lines == 0));
    det_assert(file->kept_lines <= file->kept.size);
    det_assert(file->descriptor < 0 || file->size >= file->kept.size);
}

struct log_file *log_file_new(
    const struct det_allocator *allocator, struct det_world *world,
    const struct config_log_file *config, void (*report)(void *user, const char *text), void *user)
{
    struct log_file *file;

    det_assert(strlen(config->path) <= LOG_FILE_PATH_MAX);
    file = DET_NEW(allocator, struct log_file);
    if (!file)
        return NULL;
    file->allocator = allocator;
    file->world = world;
    file->config = *config;
    (void)snprintf(file->path, sizeof file->path, "%s", config->path);
    file->config.path = file->path;
    file->report = report;
    file->user = user;
    file->descriptor = -1;
    det_buffer_init(&file->kept, allocator);
    return file;
}

const char *log_file_path(const struct log_file *file)
{
    return file->path;
}

static void report_lost(struct log_file *file)
{
    char text[DET_PATH_MAX + 128];

    (void)snprintf(
        text, sizeof text, "%s: %s; %llu line%s %s not written", file->path,
        strerrordesc_np(file->lost_by), (unsigned long long)file->lost, det_plural(file->lost),
        det_was_or_were(file->lost));
    file->lost = 0;
    file->report(file->user, text);
}

static void lose(struct log_file *file, size_t lines, int number)
{
    det_time now = det_world_now(file->world, DET_CLOCK_MONOTONIC);

    file->lost += lines;
    file->lost_by = number;
    if (file->lost == 0 || (file->reported_at && now - file->reported_at < REPORT_EVERY))
        return;
    file->reported_at = now;
    report_lost(file);
}

/* Creation time; the last write if the file system has none. */
static det_time birth_of(int descriptor)
{
    struct statx status;
    const struct statx_timestamp *time = &status.stx_mtime;

    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_BTIME | STATX_MTIME, &status) < 0)
        return 0;
    if (status.stx_mask & STATX_BTIME)
        time = &status.stx_btime;
    return time->tv_sec * DET_SECOND + time->tv_nsec;
}

/* Ends the last line if a crash has left a partial one. */
static void end_last_line(int descriptor, off_t *size)
{
    char last = '\n';

    if (*size == 0 || pread(descriptor, &last, 1, *size - 1) != 1 || last == '\n')
        return;
    if (write(descriptor, "\n", 1) == 1)
        (*size)++;
}

/* 0 or errno. */
static int open_log(struct log_file *file)
{
    struct stat status;

    if (file->descriptor >= 0)
        return 0;
    file->descriptor =
        open(file->path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (file->descriptor < 0)
        return errno;
    if (fstat(file->descriptor, &status) < 0 || !S_ISREG(status.st_mode)) {
        close(file->descriptor);
        file->descriptor = -1;
        return EINVAL;
    }
    if (status.st_size == 0)
        (void)fchmod(file->descriptor, 0600);
    end_last_line(file->descriptor, &status.st_size);
    file->size = (uint64_t)status.st_size + file->kept.size;
    file->began =
        status.st_size ? birth_of(file->descriptor) : det_world_now(file->world, DET_CLOCK_WALL);
    return 0;
}

/* Removes a partial line at the end of a write. Returns how many whole lines are in the file. */
static size_t keep_whole_lines(struct log_file *file, size_t sent)
{
    const char *data = (const char *)file->kept.data;
    size_t lines = 0, whole = 0;
    struct stat status;

    for (size_t i = 0; i < sent; i++) {
        if (data[i] == '\n') {
            lines++;
            whole = i + 1;
        }
    }
    /* If that fails, the line is ended when the file is opened again. */
    if (sent > whole && fstat(file->descriptor, &status) == 0)
        (void)!ftruncate(file->descriptor, status.st_size - (off_t)(sent - whole));
    return lines;
}

/* Writes the first `size` bytes of the buffer, whole lines, and drops the rest. */
static void write_kept(struct log_file *file, size_t size)
{
    size_t sent = 0, lines;
    int number;

    if (size == 0) {
        det_buffer_clear(&file->kept);
        det_assert(file->kept_lines == 0);
        return;
    }
    det_assert(size <= file->kept.size && file->kept.data[size - 1] == '\n');
    number = open_log(file);
    while (number == 0 && sent < size) {
        ssize_t count = write(file->descriptor, file->kept.data + sent, size - sent);

        if (count > 0)
            sent += (size_t)count;
        else if (errno != EINTR)
            number = errno;
    }
    if (number) {
        lines = keep_whole_lines(file, sent);
        det_assert(lines <= file->kept_lines);
        lose(file, file->kept_lines - lines, number);
        /* Opens it again: it may have been moved, or space was freed. */
        if (file->descriptor >= 0)
            close(file->descriptor);
        file->descriptor = -1;
    }
    det_buffer_clear(&file->kept);
    file->kept_lines = 0;
}

void log_file_flush(struct log_file *file)
{
    write_kept(file, file->kept.size);
}

static const char *numbered(const struct log_file *file, uint32_t number, char target[DET_PATH_MAX])
{
    det_assert(number <= file->config.keep);
    if (number == 0)
        return file->path;
    (void)snprintf(target, DET_PATH_MAX, "%.*s.%u", LOG_FILE_PATH_MAX, file->path, number);
    return target;
}

static void rotate(struct log_file *file)
{
    const struct det_world_ops *ops = file->world->ops;
    char from[DET_PATH_MAX], to[DET_PATH_MAX];

    log_file_flush(file);
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
    assert_log_file(file);
    if (file->config.keep == 0)
        (void)ops->file_remove(file->world, file->path);
    /* A missing file leaves a gap, which later rotations close. */
    for (uint32_t i = file->config.keep; i > 0; i--)
        (void)ops->file_rename(file->world, numbered(file, i - 1, from), numbered(file, i, to));
    file->size = 0;
}

static bool must_rotate(const struct log_file *file, size_t more, det_time at)
{
    if (file->size == 0)
        return false;
    return file->size + more > file->config.max_size ||
           (file->config.max_age != DET_NEVER && at - file->began >= file->config.max_age);
}

static void append(
    struct log_file *file, det_time at, char mark, const char *text, size_t size, bool is_cut)
{
    det_time rest = at % DET_SECOND;
    char seconds[DET_TIME_TEXT];
    size_t whole;
    /* "2026-11-16T15:00:00.123Z", a blank, the mark, a blank, the end. */
    size_t more = TIME_SIZE + 4 + size + is_cut;

    (void)det_format_time(at - rest, seconds, sizeof seconds);
    if (file->descriptor < 0 && file->kept.size == 0)
        (void)open_log(file);
    if (must_rotate(file, more, at))
        rotate(file);
    if (file->size == 0)
        file->began = at;
    whole = file->kept.size;
    det_buffer_format(&file->kept, "%.19s.%03dZ %c ", seconds, (int)(rest / DET_MILLISECOND), mark);
    det_buffer_append(&file->kept, text, size);
    det_buffer_append_text(&file->kept, is_cut ? "\\\n" : "\n");
    if (det_buffer_status(&file->kept) < 0) {
        write_kept(file, whole);
        lose(file, 1, ENOMEM);
        return;
    }
    file->size += file->kept.size - whole;
    file->kept_lines++;
    assert_log_file(file);
    if (file->kept.size > KEPT_MAX)
        log_file_flush(file);
}

void log_file_line(struct log_file *file, const struct det_line *line, det_time at)
{
    char text[96];

    if (line->dropped) {
        int size = snprintf(
            text, sizeof text, "%llu byte%s of output %s dropped: it wrote too fast",
            (unsigned long long)line->dropped, det_plural(line->dropped),
            det_was_or_were(line->dropped));

        append(file, at, '=', text, (size_t)size, false);
    }
    if (line->size || !line->is_cut)
        append(
            file, at, line->stream == DET_STREAM_ERROR ? '!' : '|', line->text, line->size,
            line->is_cut);
}

void log_file_close(struct log_file *file)
{
    if (!file)
        return;
    log_file_flush(file);
    if (file->lost)
        report_lost(file);
    if (file->descriptor >= 0)
        close(file->descriptor);
    det_buffer_deinit(&file->kept);
    DET_DELETE(file->allocator, file);
}
