/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* task_log_files.c - log files for the output of tasks. Each is opened with its first line, written
 * after each turn of the loop, and closed at the end or by a reload. */
#include <string.h>

#include "base/memory.h"
#include "config/log_file.h"
#include "daemon/daemon.h"
#include "daemon/task_output_internal.h"

struct up_log_file {
    struct up_log_file *next;
    struct log_file *file;
};

static void report_text(void *user, const char *text)
{
    struct up *up = user;

    up_note_failure(up, UP_NAME, "log %s", text);
}

static struct up_log_file *find_file(const struct up *up, const char *path)
{
    struct up_log_file *one = up_log(up)->files;

    while (one && strcmp(log_file_path(one->file), path) != 0)
        one = one->next;
    return one;
}

static struct up_log_file *open_file(struct up *up, const struct config_log_file *config)
{
    const struct det_allocator *allocator = up_allocator(up);
    struct up_log_file *one = DET_NEW(allocator, struct up_log_file);

    if (!one)
        return NULL;
    one->file = log_file_new(allocator, up_cli(up)->world, config, report_text, up);
    if (!one->file) {
        DET_DELETE(allocator, one);
        return NULL;
    }
    one->next = up_log(up)->files;
    up_log(up)->files = one;
    return one;
}

void up_log_files_line(struct up *up, const struct det_line *line, det_time at)
{
    const struct config *config = up_config(up);
    struct up_log_file *one;
    int index;

    if (!config->has_log_files)
        return;
    index = up_find_task(up_project(up), line->name);
    if (index < 0 || !config->tasks[index].log.path)
        return;
    one = find_file(up, config->tasks[index].log.path);
    if (!one)
        one = open_file(up, &config->tasks[index].log);
    if (one)
        log_file_line(one->file, line, at);
    else
        up_cli(up)->has_failed = true;
}

void up_log_files_flush(struct up *up)
{
    for (struct up_log_file *one = up_log(up)->files; one; one = one->next)
        log_file_flush(one->file);
}

void up_log_files_close(struct up *up)
{
    while (up_log(up)->files) {
        struct up_log_file *one = up_log(up)->files;

        up_log(up)->files = one->next;
        log_file_close(one->file);
        DET_DELETE(up_allocator(up), one);
    }
}
