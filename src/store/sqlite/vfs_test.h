/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* vfs_test.h - "faulty", a file system for SQLite that fails on request, over the real one.
 *
 * Every call that touches a file counts; the chosen one fails, or it and all after it. A sync that
 * does not fail does nothing: what a crash leaves is for others to test. */
#ifndef DET_STORE_SQLITE_VFS_TEST_H
#define DET_STORE_SQLITE_VFS_TEST_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* What happens to files from now on. */
struct faulty {
    uint64_t calls;
    uint64_t fail_at; /* this call, from 1; 0: none */
    bool is_sticky;   /* and all after it */
    bool sync_fails;
    bool is_full;      /* writes that would need new space find none */
    bool is_read_only; /* files open for reading only */
    bool is_shut;      /* nothing may be written there, and no log be made */
    bool is_hasty;     /* who waits for a lock does not sleep */
    bool has_failed;
};
static struct faulty faulty;

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static inline sqlite3_vfs *faulty_below(sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

static inline sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct faulty_file *)(void *)file)->real;
}

static inline bool fails_now(void)
{
    faulty.calls++;
    if (!faulty.fail_at || faulty.calls < faulty.fail_at ||
        (faulty.calls > faulty.fail_at && !faulty.is_sticky))
        return false;
    faulty.has_failed = true;
    return true;
}

static inline int faulty_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static inline int faulty_read(sqlite3_file *file, void *target, int size, sqlite3_int64 offset)
{
    if (fails_now())
        return SQLITE_IOERR_READ;
    return real_of(file)->pMethods->xRead(real_of(file), target, size, offset);
}

static inline int faulty_write(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
    sqlite3_int64 end = 0;

    if (fails_now())
        return SQLITE_IOERR_WRITE;
    if (faulty.is_full) {
        (void)real_of(file)->pMethods->xFileSize(real_of(file), &end);
        if (offset + size > end)
            return SQLITE_FULL;
    }
    return real_of(file)->pMethods->xWrite(real_of(file), data, size, offset);
}

static inline int faulty_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    if (fails_now())
        return SQLITE_IOERR_TRUNCATE;
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static inline int faulty_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return fails_now() || faulty.sync_fails ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static inline int faulty_size(sqlite3_file *file, sqlite3_int64 *size)
{
    if (fails_now())
        return SQLITE_IOERR_FSTAT;
    return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static inline int faulty_lock(sqlite3_file *file, int level)
{
    if (fails_now())
        return SQLITE_IOERR_LOCK;
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static inline int faulty_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static inline int faulty_reserved(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static inline int faulty_control(sqlite3_file *file, int operation, void *argument)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}

static inline int faulty_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static inline int faulty_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static inline int faulty_shm_map(
    sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    if (fails_now())
        return SQLITE_IOERR_SHMMAP;
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static inline int faulty_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    if ((flags & SQLITE_SHM_LOCK) && fails_now())
        return SQLITE_IOERR_SHMLOCK;
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}

static inline void faulty_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static inline int faulty_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), is_deleted);
}

static const sqlite3_io_methods faulty_methods = {
    .iVersion = 2,
    .xClose = faulty_close,
    .xRead = faulty_read,
    .xWrite = faulty_write,
    .xTruncate = faulty_truncate,
    .xSync = faulty_sync,
    .xFileSize = faulty_size,
    .xLock = faulty_lock,
    .xUnlock = faulty_unlock,
    .xCheckReservedLock = faulty_reserved,
    .xFileControl = faulty_control,
    .xSectorSize = faulty_sector,
    .xDeviceCharacteristics = faulty_traits,
    .xShmMap = faulty_shm_map,
    .xShmLock = faulty_shm_lock,
    .xShmBarrier = faulty_shm_barrier,
    .xShmUnmap = faulty_shm_unmap,
};

static inline int faulty_open(
    sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret_flags)
{
    struct faulty_file *ours = (struct faulty_file *)(void *)file;
    sqlite3_vfs *below = faulty_below(vfs);
    int code;

    file->pMethods = NULL;
    if (fails_now())
        return SQLITE_CANTOPEN;
    if (faulty.is_shut && (flags & SQLITE_OPEN_WAL))
        return SQLITE_READONLY_DIRECTORY;
    if (faulty.is_read_only && (flags & SQLITE_OPEN_MAIN_DB))
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    ours->real = (sqlite3_file *)(void *)(ours + 1);
    memset(ours->real, 0, (size_t)below->szOsFile);
    code = below->xOpen(below, path, ours->real, flags, ret_flags);
    if (code == SQLITE_OK)
        file->pMethods = &faulty_methods;
    return code;
}

static inline int faulty_delete(sqlite3_vfs *vfs, const char *path, int is_synced)
{
    sqlite3_vfs *below = faulty_below(vfs);

    if (fails_now())
        return SQLITE_IOERR_DELETE;
    return below->xDelete(below, path, is_synced);
}

static inline int faulty_access(sqlite3_vfs *vfs, const char *path, int what, int *ret)
{
    sqlite3_vfs *below = faulty_below(vfs);

    *ret = 0;
    if (faulty.is_shut && what == SQLITE_ACCESS_READWRITE)
        return SQLITE_OK;
    return below->xAccess(below, path, what, ret);
}

static inline int faulty_sleep(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *below = faulty_below(vfs);

    return faulty.is_hasty ? microseconds : below->xSleep(below, microseconds);
}

/* Registers it, once. */
static inline void faulty_init(void)
{
    static sqlite3_vfs vfs;
    sqlite3_vfs *below = sqlite3_vfs_find(NULL);

    memset(&faulty, 0, sizeof faulty);
    if (vfs.zName)
        return;
    vfs = *below;
    vfs.szOsFile = below->szOsFile + (int)sizeof(struct faulty_file);
    vfs.zName = "faulty";
    vfs.pNext = NULL;
    vfs.pAppData = below;
    vfs.xOpen = faulty_open;
    vfs.xDelete = faulty_delete;
    vfs.xAccess = faulty_access;
    vfs.xSleep = faulty_sleep;
    (void)sqlite3_vfs_register(&vfs, 0);
}

#endif
