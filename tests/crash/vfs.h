/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* vfs.h - SQLite on a recorded disk. It guarantees what SQLite's own VFS guarantees on Linux: a
 * write does not change neighbouring sectors (POWERSAFE_OVERWRITE); nothing about order or
 * atomicity.
 *
 * A folder is synced when a new journal or log is synced for the first time, as SQLite does there.
 * Connections in one process share memory, which a power cut deletes. */
#ifndef DET_CRASH_VFS_H
#define DET_CRASH_VFS_H

#include "crash/disk.h"

/* A VFS of that name, used with `?vfs=` or sqlite3_open_v2(). `name` and `disk` stay until it is
 * unregistered. */
struct crash_vfs;
struct crash_vfs *crash_vfs_register(const char *name, struct crash_disk *disk);
void crash_vfs_unregister(struct crash_vfs *vfs);

#endif
