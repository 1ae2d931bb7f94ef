/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep.c - checkpoints of the log into the file, backups of a store, and compaction. */
#include <string.h>

#include "base/assert.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

/* Checkpoints as much as readers permit; the rest waits for the next time. */
static int run_checkpoint(void *context)
{
    struct sqlite_store *store = context;
    int in_log = 0, done = 0, code;

    if (store->is_poisoned)
        return DET_ERR_IO;
    det_sqlite_mark_sync(store);
    code = sqlite3_wal_checkpoint_v2(
        store->writer.database, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &done);
    code = det_sqlite_settle(store->writer.database, code, false);
    store->checkpoint_at = (int)store->checkpoint_pages;
    if (code != SQLITE_OK || done < in_log)
        store->checkpoint_at += store->wal_pages;
    if ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM)
        store->is_poisoned = true;
    det_sqlite_mark_write(store);
    return det_sqlite_error(code);
}

void det_sqlite_checkpoint(struct sqlite_store *store)
{
    if (!atomic_exchange(&store->checkpoint_wanted, false))
        return;
    /* The commit is in the log in any case: the next commit reports a failure. */
    if (det_group_alone(store->group, run_checkpoint, store) == DET_ERR_NO_MEMORY)
        atomic_store(&store->checkpoint_wanted, true);
}

void det_sqlite_checkpoint_last(struct sqlite_store *store)
{
    if (store->mark && run_checkpoint(store) == 0)
        det_sqlite_mark_set_closed(store);
}

static bool path_exists(const struct sqlite_store *store, const char *path)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(store->vfs);
    int is_there = 0;

    (void)vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &is_there);
    return is_there != 0;
}

/* Copies all pages in one transaction of the copy, which is synced, as is its folder: after a crash
 * the copy is complete or empty. */
static int copy_pages(struct sqlite_connection *reader, sqlite3 *target)
{
    sqlite3_backup *backup;
    int code;

    sqlite3_extended_result_codes(target, 1);
    code = sqlite3_exec(target, "PRAGMA synchronous = EXTRA", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    backup = sqlite3_backup_init(target, "main", reader->database, "main");
    if (!backup)
        return sqlite3_extended_errcode(target);
    code = sqlite3_backup_step(backup, -1);
    if (code == SQLITE_DONE)
        return sqlite3_backup_finish(backup);
    (void)sqlite3_backup_finish(backup);
    return code == SQLITE_OK ? SQLITE_BUSY : code;
}

static int copy_to(
    struct sqlite_store *store, struct sqlite_connection *reader, const char *path,
    struct det_error *reterr)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(store->vfs);
    struct det_world *world = store->store.world;
    struct det_file *file = NULL;
    sqlite3 *target = NULL;
    int code, closed;

    /* Not accessible for other users, whatever the umask. SQLite reports why it cannot be made. */
    if (!store->vfs &&
        det_file_open(world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &file) < 0)
        file = NULL;
    code = sqlite3_open_v2(
        path, &target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
        store->vfs);
    if (code == SQLITE_OK)
        code = det_sqlite_settle(target, copy_pages(reader, target), false);
    if (code != SQLITE_OK)
        (void)det_error_set(
            reterr, det_sqlite_error(code), "%s: cannot copy the store there: %s; %s", path,
            sqlite3_errstr(code), det_sqlite_remedy(det_sqlite_error(code)));
    closed = sqlite3_close(target);
    det_assert(closed == SQLITE_OK);
    det_file_close(world, file);
    /* The file did not exist before, so the incomplete copy is ours and is removed. */
    if (code != SQLITE_OK)
        (void)vfs->xDelete(vfs, path, 0);
    return det_sqlite_error(code);
}

int det_sqlite_backup(struct det_store *base, const char *path, struct det_error *reterr)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct sqlite_connection *reader;
    int r;

    if (!path[0] || path[0] == ':')
        return det_error_set(reterr, DET_ERR_INVALID, "\"%s\" is not the path of a file", path);
    if (path_exists(store, path))
        return det_error_set(
            reterr, DET_ERR_EXISTS, "%s already exists; choose a new file for the copy", path);
    /* The copy has no mark, so the loss could no longer be detected. */
    if (store->loss && !store->accepts_loss)
        return det_sqlite_check_loss(base, reterr);
    r = det_sqlite_reader(store, &reader);
    if (r < 0)
        return det_error_set(reterr, r, "%s: cannot read it: %s", store->path, det_error_text(r));
    r = copy_to(store, reader, path, reterr);
    det_sqlite_reader_end(store, reader);
    return r;
}

static int forget_answers(struct sqlite_store *store, void *context)
{
    static const enum sqlite_statement steps[] = { STATEMENT_ANSWER_DISOWN_ALL,
                                                   STATEMENT_ANSWER_FORGET_ALL };
    det_time before = sqlite_now(store) - store->store.event_ids_span;
    struct sqlite_call call;
    int r = 0;

    (void)context;
    for (size_t i = 0; r == 0 && i < sizeof steps / sizeof *steps; i++) {
        det_sqlite_call(&store->writer, steps[i], &call);
        det_sqlite_number(&call, before);
        r = det_sqlite_run(&call);
    }
    return r;
}

struct compaction {
    struct sqlite_store *store;
    struct det_error *reterr;
};

static int run_compact(void *context)
{
    struct compaction *compaction = context;
    struct sqlite_store *store = compaction->store;
    sqlite3 *database = store->writer.database;
    int code;

    if (store->is_poisoned)
        return det_error_set(
            compaction->reterr, DET_ERR_IO, "%s: a write has failed; open the store again",
            store->path);
    code = sqlite3_exec(database, "VACUUM", NULL, NULL, NULL);
    code = det_sqlite_settle(database, code, true);
    if (code == SQLITE_OK) {
        det_sqlite_mark_write(store);
        det_sqlite_mark_sync(store);
        code = sqlite3_wal_checkpoint_v2(database, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        code = det_sqlite_settle(database, code, false);
        /* A reader is active: the file shrinks when it is done. */
        if ((code & 0xff) == SQLITE_BUSY)
            code = SQLITE_OK;
    }
    if ((code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_NOMEM)
        store->is_poisoned = true;
    if (code == SQLITE_OK) {
        det_sqlite_mark_write(store);
        return 0;
    }
    return det_sqlite_explain(store, database, code, "compact it", compaction->reterr);
}

int det_sqlite_compact(struct det_store *base, struct det_error *reterr)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct compaction compaction = { store, reterr };
    int r;

    r = det_sqlite_alone(store, forget_answers, NULL);
    if (r < 0)
        return det_error_set(
            reterr, r, "%s: cannot compact it: %s", store->path, det_error_text(r));
    return det_group_alone(store->group, run_compact, &compaction);
}
