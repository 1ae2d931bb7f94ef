/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_file.h - the output of a task in a file that is rotated by size and by age.
 *
 * A line is "2026-11-16T15:00:00.123Z | text", with ! for the error stream and = for messages of
 * detent. Files contain whole lines and have mode 0600: a partial line after a full disk is
 * removed, one after a crash is ended. When the next line would make the file larger than
 * `max_size`, or the file is older than `max_age`, it becomes PATH.1, PATH.1 becomes PATH.2, and so
 * on up to PATH.<keep>; the oldest is removed. Lines that cannot be written or buffered are counted
 * and reported with the last reason, at most once a minute and at the end: a full disk stops no
 * task. */
#ifndef DET_CONFIG_LOG_FILE_H
#define DET_CONFIG_LOG_FILE_H

#include <detent/task.h>

#include "base/buffer.h"
#include "config/config.h"

/* Maximum length of a path, so that those of rotated files fit DET_PATH_MAX. */
#define LOG_FILE_PATH_MAX (DET_PATH_MAX - 16)

struct log_file;

/* Problems are reported to `report`. NULL: no memory. Copies the config; its path has at most
 * LOG_FILE_PATH_MAX characters. */
struct log_file *log_file_new(
    const struct det_allocator *allocator, struct det_world *world,
    const struct config_log_file *config, void (*report)(void *user, const char *text), void *user);
const char *log_file_path(const struct log_file *file);
/* Buffers the line until the next flush; `at` is wall time. */
void log_file_line(struct log_file *file, const struct det_line *line, det_time at);
/* Writes the buffered lines. */
void log_file_flush(struct log_file *file);
/* Flushes and closes. NULL is allowed. */
void log_file_close(struct log_file *file);

#endif
