/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* place.c - the path of the file: its existence, its permissions, and the lock file.
 *
 * The checks use SQLite's VFS without a descriptor: closing a descriptor would release the locks of
 * another store of this process on the file. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* False if the check fails. */
static bool may_access(const struct sqlite_store *store, const char *path, int what)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(store->vfs);
    int is_so = 0;

    return vfs->xAccess(vfs, path, what, &is_so) == SQLITE_OK && is_so;
}

bool det_sqlite_is_there(const struct sqlite_store *store, const char *suffix)
{
    char path[DET_PATH_MAX];

    (void)snprintf(path, sizeof path, "%s%s", store->path, suffix);
    return may_access(store, path, SQLITE_ACCESS_EXISTS);
}

bool det_sqlite_folder_is_ours(const struct sqlite_store *store)
{
    char folder[DET_PATH_MAX];

    return det_file_folder(store->path, folder) == 0 &&
           may_access(store, folder, SQLITE_ACCESS_READWRITE);
}

int det_sqlite_place(
    const struct sqlite_store *store, const struct det_store_options *options,
    struct det_error *reterr)
{
    if (det_path_is_remote(options->world, store->path))
        return det_error_set(
            reterr, DET_ERR_UNSUPPORTED,
            "%s is on a network file system, where locks and syncs cannot be relied on; use a "
            "local disk, or a postgres store to share it",
            store->path);
    if (det_sqlite_is_there(store, "/."))
        return det_error_set(
            reterr, DET_ERR_IO, "%s is a folder; give the path of a file", store->path);
    if ((options->must_exist || options->is_read_only) && !det_sqlite_is_there(store, ""))
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%s does not exist; create it with \"detent start FILE.fsm ID --store sqlite:%s\"",
            store->path, store->path);
    return 0;
}

/* The error of opening the lock file. */
static int explain_lock(
    const struct sqlite_store *store, const char *lock, int r, struct det_error *reterr)
{
    char folder[DET_PATH_MAX];
    bool is_ours = det_sqlite_folder_is_ours(store);

    if (det_file_folder(lock, folder) < 0 || (r != DET_ERR_NOT_FOUND && r != DET_ERR_IO))
        return det_error_set(
            reterr, r, "%s: cannot open its lock file: %s", store->path, det_error_text(r));
    if (r == DET_ERR_NOT_FOUND && may_access(store, folder, SQLITE_ACCESS_EXISTS))
        return det_error_set(
            reterr, DET_ERR_IO,
            "%s: the folder %s does not accept new files; choose another folder", store->path,
            folder);
    if (r == DET_ERR_NOT_FOUND)
        return det_error_set(
            reterr, r, "%s: the folder %s does not exist; create it first", store->path, folder);
    if (may_access(store, lock, SQLITE_ACCESS_READWRITE))
        return det_error_set(
            reterr, r,
            "%s: cannot open its lock file %s: %s; remove it if it is a link, else check the disk",
            store->path, lock, det_error_text(r));
    return det_error_set(
        reterr, DET_ERR_READ_ONLY,
        "%s: this process cannot write to %s (no permission, or a read-only file system); change "
        "the "
        "permissions, remove it if it is a link, or open the store for reading only",
        store->path, is_ours || may_access(store, lock, SQLITE_ACCESS_EXISTS) ? lock : folder);
}

static int refuse_second(const struct sqlite_store *store, struct det_error *reterr)
{
    char text[24] = { 0 }, who[48] = "another process";
    int64_t size, holder = 0;

    size = det_file_read(store->store.world, store->lock, 0, text, sizeof text - 1);
    if (size > 0)
        (void)det_parse_i64(det_view_of(text, strcspn(text, "\n")), &holder);
    /* A process that has just locked the file may not have written its number yet. */
    if (holder > 0)
        (void)snprintf(who, sizeof who, "process %lld", (long long)holder);
    return det_error_set(
        reterr, DET_ERR_BUSY,
        "%s is open for writing in %s; stop that, go through it, or open the store for reading "
        "only",
        store->path, who);
}

/* For people only: the lock does not depend on the content. */
static void write_number(const struct sqlite_store *store)
{
    struct det_world *world = store->store.world;
    char text[24];
    int length = snprintf(text, sizeof text, "%lld\n", (long long)det_self_number(world));

    (void)det_file_truncate(world, store->lock, 0);
    (void)det_file_write(world, store->lock, 0, text, (size_t)length);
}

int det_sqlite_lock_file(struct sqlite_store *store, struct det_error *reterr)
{
    struct det_world *world = store->store.world;
    char path[DET_PATH_MAX];
    int r;

    (void)snprintf(path, sizeof path, "%s.lock", store->path);
    r = det_file_open(
        world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_NO_LINK,
        &store->lock);
    if (r < 0)
        return explain_lock(store, path, r, reterr);
    r = det_file_lock(world, store->lock);
    if (r == DET_ERR_BUSY)
        return refuse_second(store, reterr);
    if (r < 0)
        return det_error_set(
            reterr, r, "%s: cannot lock it: %s; use a file system that has locks", path,
            det_error_text(r));
    write_number(store);
    return 0;
}
