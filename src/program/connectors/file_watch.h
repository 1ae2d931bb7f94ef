/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_watch.h - wakes a stage when a file or the files of a folder change: inotify. A file system
 * without it (of another machine), or a limit of the kernel, is looked at every second instead. */
#ifndef DET_CONNECTORS_FILE_WATCH_H
#define DET_CONNECTORS_FILE_WATCH_H

#include <detent/flow.h>

struct file_watch;

/* In open() of a stage. DET_ERR_NO_MEMORY, DET_ERR_LIMIT or DET_ERR_IO. */
DET_MUST_CHECK int file_watch_open(struct det_stage_call *call, struct file_watch **ret);
void file_watch_close(struct file_watch *watch);
/* Watches a file for writes, and its folder for files that come and go; both replace those before.
 * `path` of a file that does not exist: only the folder. */
void file_watch_file(struct file_watch *watch, const char *path);
/* Watches the files of a folder for writes. */
void file_watch_folder(struct file_watch *watch, const char *path);
/* Wakes the stage after the next change. Call it before looking at the file: then no change is
 * missed. */
void file_watch_arm(struct file_watch *watch, struct det_stage_call *call);

#endif
