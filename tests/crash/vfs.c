/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* vfs.c - SQLite's view of a recorded disk: files, locks between connections, shared memory. */
#include "crash/vfs.h"

#include <assert.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash/memo.h"

struct crash_vfs {
    sqlite3_vfs base;
    struct crash_disk *disk;
};

struct file {
    sqlite3_file base;
    struct crash_disk *disk;
    unsigned name, node;
    uint64_t deaths; /* number of power cuts when it was opened */
    int lock;
    bool syncs_folder; /* when it is first synced */
    bool has_shm;
    uint8_t shm_shared, shm_exclusive; /* a bit per lock */
};

static struct file *file_of(sqlite3_file *base)
{
    return (struct file *)base;
}

static struct crash_name *name_of(struct file *file)
{
    return &file->disk->names[file->name];
}

static bool is_dead(const struct file *file)
{
    return file->deaths != file->disk->deaths;
}

/* True if a change may happen: the process lives, and does not die here. */
static bool begin(struct file *file)
{
    return crash_disk_begin(file->disk, file->deaths);
}

static void ask(
    struct crash_disk *disk, const char *path, enum crash_ask kind, uint64_t offset, size_t size)
{
    if (disk->memo)
        crash_memo_read(disk->memo, path, kind, offset, size);
}

static int file_unlock(sqlite3_file *base, int level);
static int shm_unmap(sqlite3_file *base, int is_delete);

static int file_close(sqlite3_file *base)
{
    struct file *file = file_of(base);

    (void)file_unlock(base, SQLITE_LOCK_NONE);
    if (file->has_shm)
        (void)shm_unmap(base, 0);
    base->pMethods = NULL;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *target, int size, sqlite3_int64 offset)
{
    struct file *file = file_of(base);
    const struct crash_bytes *bytes = &file->disk->nodes[file->node];
    size_t there = 0;

    if (is_dead(file))
        return SQLITE_IOERR_READ;
    ask(file->disk, name_of(file)->path, CRASH_ASK_BYTES, (uint64_t)offset, (size_t)size);
    if ((uint64_t)offset < bytes->size)
        there = bytes->size - (size_t)offset;
    if (there > (size_t)size)
        there = (size_t)size;
    if (there)
        memcpy(target, bytes->data + offset, there);
    if (there == (size_t)size)
        return SQLITE_OK;
    memset((char *)target + there, 0, (size_t)size - there);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
    struct file *file = file_of(base);

    if (!begin(file))
        return SQLITE_IOERR_WRITE;
    crash_disk_write(file->disk, file->node, (uint64_t)offset, data, (size_t)size);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *file = file_of(base);

    if (!begin(file))
        return SQLITE_IOERR_TRUNCATE;
    crash_disk_truncate(file->disk, file->node, (uint64_t)size);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct file *file = file_of(base);

    (void)flags;
    if (!begin(file))
        return SQLITE_IOERR_FSYNC;
    if (!crash_disk_sync(file->disk, file->node))
        return SQLITE_IOERR_FSYNC;
    if (file->syncs_folder)
        crash_disk_sync_folder(file->disk);
    file->syncs_folder = false;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    struct file *file = file_of(base);

    ask(file->disk, name_of(file)->path, CRASH_ASK_SIZE, 0, 0);
    *ret = (sqlite3_int64)file->disk->nodes[file->node].size;
    return SQLITE_OK;
}

/* The locks of SQLite's file format: any number of readers, one that reserves the right to write,
 * one that waits for the readers to finish. */
static int file_lock(sqlite3_file *base, int level)
{
    struct file *file = file_of(base);
    struct crash_name *name = name_of(file);

    if (is_dead(file))
        return SQLITE_IOERR_LOCK;
    if (file->lock >= level)
        return SQLITE_OK;
    if (file->lock == SQLITE_LOCK_NONE) {
        if (name->is_pending || name->is_exclusive)
            return SQLITE_BUSY;
        name->shared++;
        file->lock = SQLITE_LOCK_SHARED;
    }
    if (level >= SQLITE_LOCK_RESERVED && file->lock < SQLITE_LOCK_RESERVED) {
        if (name->is_reserved)
            return SQLITE_BUSY;
        name->is_reserved = true;
        file->lock = SQLITE_LOCK_RESERVED;
    }
    if (level == SQLITE_LOCK_EXCLUSIVE) {
        name->is_pending = true;
        file->lock = SQLITE_LOCK_PENDING;
        if (name->shared > 1)
            return SQLITE_BUSY;
        name->is_exclusive = true;
        file->lock = SQLITE_LOCK_EXCLUSIVE;
    }
    return SQLITE_OK;
}

static int file_unlock(sqlite3_file *base, int level)
{
    struct file *file = file_of(base);
    struct crash_name *name = name_of(file);

    if (is_dead(file) || file->lock <= level)
        return SQLITE_OK;
    if (file->lock >= SQLITE_LOCK_RESERVED)
        name->is_reserved = name->is_pending = name->is_exclusive = false;
    if (level == SQLITE_LOCK_NONE)
        name->shared--;
    file->lock = level;
    return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *ret)
{
    *ret = name_of(file_of(base))->is_reserved;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int verb, void *argument)
{
    (void)base, (void)verb, (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector_size(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int file_characteristics(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shm_map(sqlite3_file *base, int region, int size, int is_extend, void volatile **ret)
{
    struct file *file = file_of(base);
    struct crash_shm *shm = &name_of(file)->shm;

    if (is_dead(file))
        return SQLITE_IOERR_SHMMAP;
    assert(region < CRASH_SHM_MAX);
    if (!file->has_shm)
        shm->users++;
    file->has_shm = true;
    if (!shm->regions[region] && is_extend)
        shm->regions[region] = calloc(1, (size_t)size);
    *ret = shm->regions[region];
    return SQLITE_OK;
}

static int shm_lock_one(struct file *file, unsigned at, int flags)
{
    struct crash_shm *shm = &name_of(file)->shm;
    uint8_t bit = (uint8_t)(1u << at);

    if (flags & SQLITE_SHM_UNLOCK) {
        if (file->shm_shared & bit)
            shm->shared[at]--;
        if (file->shm_exclusive & bit)
            shm->exclusive[at] = false;
        file->shm_shared &= (uint8_t)~bit;
        file->shm_exclusive &= (uint8_t)~bit;
    } else if (flags & SQLITE_SHM_SHARED) {
        if (shm->exclusive[at])
            return SQLITE_BUSY;
        if (!(file->shm_shared & bit))
            shm->shared[at]++;
        file->shm_shared |= bit;
    } else {
        if (shm->exclusive[at] || shm->shared[at])
            return SQLITE_BUSY;
        shm->exclusive[at] = true;
        file->shm_exclusive |= bit;
    }
    return SQLITE_OK;
}

/* Locks several together or none. */
static int shm_lock(sqlite3_file *base, int offset, int count, int flags)
{
    struct file *file = file_of(base);
    int r = SQLITE_OK;
    int i;

    if (is_dead(file))
        return flags & SQLITE_SHM_UNLOCK ? SQLITE_OK : SQLITE_IOERR_SHMLOCK;
    for (i = offset; i < offset + count && r == SQLITE_OK; i++)
        r = shm_lock_one(file, (unsigned)i, flags);
    if (r != SQLITE_OK)
        for (int j = offset; j < i - 1; j++)
            (void)shm_lock_one(file, (unsigned)j, SQLITE_SHM_UNLOCK);
    return r;
}

static void shm_barrier(sqlite3_file *base)
{
    (void)base;
}

static int shm_unmap(sqlite3_file *base, int is_delete)
{
    struct file *file = file_of(base);
    struct crash_shm *shm = &name_of(file)->shm;

    (void)is_delete;
    if (!file->has_shm || is_dead(file))
        return SQLITE_OK;
    (void)shm_lock(base, 0, CRASH_SHM_LOCKS, SQLITE_SHM_UNLOCK);
    file->has_shm = false;
    if (--shm->users == 0)
        crash_shm_free(shm);
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(
    sqlite3_vfs *base, const char *path, sqlite3_file *target, int flags, int *ret_flags)
{
    struct crash_vfs *vfs = (struct crash_vfs *)base;
    struct file *file = file_of(target);
    struct crash_name *name;

    memset(file, 0, sizeof *file);
    if (!path)
        return SQLITE_CANTOPEN; /* temporary files are kept in memory: temp_store */
    file->disk = vfs->disk;
    file->deaths = vfs->disk->deaths;
    file->name = crash_disk_name(vfs->disk, path);
    name = name_of(file);
    ask(vfs->disk, path, CRASH_ASK_EXISTS, 0, 0);
    if (name->node < 0) {
        if (!(flags & SQLITE_OPEN_CREATE))
            return SQLITE_CANTOPEN;
        if (!crash_disk_begin(vfs->disk, vfs->disk->deaths))
            return SQLITE_CANTOPEN;
        crash_disk_create(vfs->disk, file->name);
        file->syncs_folder = flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);
    }
    file->node = (unsigned)name->node;
    file->base.pMethods = &methods;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int syncs_folder)
{
    struct crash_vfs *vfs = (struct crash_vfs *)base;
    unsigned name = crash_disk_name(vfs->disk, path);

    ask(vfs->disk, path, CRASH_ASK_EXISTS, 0, 0);
    if (vfs->disk->names[name].node < 0)
        return SQLITE_IOERR_DELETE_NOENT;
    if (!crash_disk_begin(vfs->disk, vfs->disk->deaths))
        return SQLITE_IOERR_DELETE;
    crash_disk_delete(vfs->disk, name);
    if (syncs_folder)
        crash_disk_sync_folder(vfs->disk);
    return SQLITE_OK;
}

/* As on Linux, an empty file does not exist: SQLite treats it as a journal that was never used. */
static int vfs_access(sqlite3_vfs *base, const char *path, int flags, int *ret)
{
    struct crash_vfs *vfs = (struct crash_vfs *)base;
    int node = vfs->disk->names[crash_disk_name(vfs->disk, path)].node;

    ask(vfs->disk, path, CRASH_ASK_SIZE, 0, 0);
    *ret = node >= 0 && (flags != SQLITE_ACCESS_EXISTS || vfs->disk->nodes[node].size > 0);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *base, const char *path, int size, char *target)
{
    (void)base;
    return snprintf(target, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

struct crash_vfs *crash_vfs_register(const char *name, struct crash_disk *disk)
{
    struct crash_vfs *vfs = calloc(1, sizeof *vfs);

    if (!vfs)
        abort();
    vfs->base = *sqlite3_vfs_find(NULL);
    vfs->base.zName = name;
    vfs->base.pNext = NULL;
    vfs->base.szOsFile = (int)sizeof(struct file);
    vfs->base.mxPathname = CRASH_PATH_MAX;
    vfs->base.xOpen = vfs_open;
    vfs->base.xDelete = vfs_delete;
    vfs->base.xAccess = vfs_access;
    vfs->base.xFullPathname = vfs_full_path;
    vfs->disk = disk;
    if (sqlite3_vfs_register(&vfs->base, 0) != SQLITE_OK)
        abort();
    return vfs;
}

void crash_vfs_unregister(struct crash_vfs *vfs)
{
    if (vfs)
        (void)sqlite3_vfs_unregister(&vfs->base);
    free(vfs);
}
