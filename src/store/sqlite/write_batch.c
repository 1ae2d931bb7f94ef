/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_batch.c - writes a batch of commits in one transaction, and other changes in their own
 * transactions.
 *
 *     BEGIN IMMEDIATE
 *       each commit:  encode, read its conditions ---- refused: its result, nothing written
 *                     head, events, changes ---------- failed half way: ROLLBACK; repeat without it
 *     COMMIT -+- good ---------- every result 0
 *             +- no space ------ ROLLBACK, NO_SPACE for all: it was not written
 *             +- anything else - poisoned: it may exist after a restart, or not */
#include "base/assert.h"
#include "os/os.h"
#include "store/contract.h"
#include "store/sqlite/sqlite.h"

/* A result that is not known yet. */
#define PENDING 1

static void drop_handle(struct sqlite_store *store, struct det_store_commit *commit)
{
    if (!commit->is_new || !commit->instance)
        return;
    det_sqlite_instance_close(store, sqlite_instance_of(commit->instance));
    commit->instance = NULL;
}

/* Writes one commit of a batch: sets its result if it is refused; 0, or a failure that ends the
 * batch. */
static int write_next(struct sqlite_store *store, struct det_store_commit *commit, det_time now)
{
    struct sqlite_write write = { .store = store, .commit = commit, .now = now };
    bool is_dirty = false;
    int r = 0;

    if (commit->is_new)
        r = det_sqlite_instance_open(store, commit);
    write.instance = sqlite_instance_of(commit->instance);
    if (r == 0)
        r = det_sqlite_write_commit(&write, &is_dirty);
    if (r == 0)
        return 0;
    drop_handle(store, commit);
    det_assert(!commit->is_new || !commit->instance);
    if (store->writer.is_failed)
        return DET_ERR_IO;
    /* The refused one of many events is found by inserting them one by one. */
    if (is_dirty && store->append.is_on)
        return r;
    commit->result = r;
    /* After some errors SQLite rolls back by itself: then the other commits are gone, too. */
    return is_dirty || sqlite3_get_autocommit(store->writer.database) ? r : 0;
}

static void roll_back(
    struct sqlite_store *store, struct det_store_commit *const *commits, size_t count)
{
    (void)det_sqlite_roll_back(&store->writer);
    for (size_t i = 0; i < count; i++) {
        if (commits[i]->result == PENDING)
            drop_handle(store, commits[i]);
    }
}

/* True if the path leads to another file now, or to none: writes would be lost. If the file system
 * cannot tell, the file is assumed to be in place. */
static bool has_moved(struct sqlite_store *store)
{
    int moved = 0;

    return sqlite3_file_control(store->writer.database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
               SQLITE_OK &&
           moved;
}

/* Ends a transaction; sets its results, known or unknown. */
static int end_transaction(struct sqlite_store *store)
{
    int r;

    det_check(!sqlite3_get_autocommit(store->writer.database));
    if (has_moved(store)) {
        store->writer.is_failed = true;
        return DET_ERR_IO;
    }
    r = det_sqlite_do(&store->writer, STATEMENT_COMMIT);
    /* Certainly not written only if there was no space, or another process blocked it. */
    if (r < 0 && r != DET_ERR_NO_SPACE && r != DET_ERR_BUSY)
        store->writer.is_failed = true;
    return r;
}

/* The handles are scattered in memory: prefetches the next one while a commit is written. */
static void fetch_ahead(struct det_store_commit *const *commits, size_t count, size_t index)
{
    const char *handle;

    if (index + 2 < count)
        __builtin_prefetch(commits[index + 2]);
    if (index + 1 >= count)
        return;
    handle = (const char *)commits[index + 1]->instance;
    if (!handle)
        return;
    __builtin_prefetch(handle);
    __builtin_prefetch(handle + 64);
}

static bool ends_batch(int r)
{
    return r == DET_ERR_IO || r == DET_ERR_NO_SPACE || r == DET_ERR_NO_MEMORY;
}

/* 0; PENDING: repeat without the failed commit; or an error for all. */
static int write_all(
    struct sqlite_store *store, struct det_store_commit *const *commits, size_t count)
{
    det_time now = det_world_now(store->store.world, DET_CLOCK_WALL);
    int r;

    r = det_sqlite_do(&store->writer, STATEMENT_BEGIN_WRITE);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (commits[i]->result != PENDING)
            continue;
        fetch_ahead(commits, count, i);
        r = write_next(store, commits[i], now);
    }
    if (r == 0)
        r = det_sqlite_append_end(store);
    if (r < 0)
        return ends_batch(r) ? r : PENDING;
    return end_transaction(store);
}

/* After a transaction that ended well: nothing is left of it, and positions only grow. */
static void assert_written(const struct sqlite_store *store, int64_t position)
{
    det_assert(sqlite3_get_autocommit(store->writer.database));
    det_assert(store->append.count == 0);
    det_assert(store->next_position >= position && store->committed < store->next_position);
}

int det_sqlite_write(void *context, unsigned writer, const void *items, size_t count)
{
    struct det_store_commit *const *commits = items;
    struct sqlite_store *store = context;
    int64_t position;
    int r;

    (void)writer;
    det_assert(store->writer.database && count > 0);
    if (store->is_poisoned)
        return DET_ERR_IO;
    for (size_t i = 0; i < count; i++) {
        commits[i]->result = PENDING;
        if (commits[i]->is_new)
            commits[i]->instance = NULL;
    }
    det_sqlite_append_begin(store, count >= SQLITE_ROWS);
    do {
        position = store->next_position;
        r = write_all(store, commits, count);
        if (r != 0) {
            roll_back(store, commits, count);
            store->next_position = position;
            det_sqlite_append_begin(store, false);
        }
    } while (r == PENDING);
    if (store->writer.is_failed) {
        store->is_poisoned = true;
        return DET_ERR_IO;
    }
    if (r < 0)
        return r;
    assert_written(store, position);
    for (size_t i = 0; i < count; i++) {
        if (commits[i]->result != PENDING)
            continue;
        det_assert(commits[i]->instance);
        commits[i]->result = 0;
        sqlite_instance_of(commits[i]->instance)->is_stale = false;
    }
    if (store->next_position > position)
        store->committed = store->next_position - 1;
    det_sqlite_mark_write(store);
    store->checkpoint_wanted = store->wal_pages >= store->checkpoint_at;
    return 0;
}

int det_sqlite_commit(struct det_store *base, struct det_store_commit *const *commits, size_t count)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int r;

    if (!store->writer.database)
        return DET_ERR_READ_ONLY;
    if (count == 0)
        return 0;
    det_contract_commits(commits, count);
    r = det_group_commit(store->group, commits, count);
    if (r == 0 && store->checkpoint_wanted)
        det_sqlite_checkpoint(store);
    return r;
}

/* Alone. */

struct alone {
    struct sqlite_store *store;
    int (*run)(struct sqlite_store *store, void *context);
    void *context;
};

static int run_alone(void *context)
{
    struct alone *alone = context;
    struct sqlite_store *store = alone->store;
    int r;

    if (store->is_poisoned)
        return DET_ERR_IO;
    r = det_sqlite_do(&store->writer, STATEMENT_BEGIN_WRITE);
    if (r == 0)
        r = alone->run(store, alone->context);
    if (r == 0)
        r = end_transaction(store);
    if (r != 0) {
        (void)det_sqlite_roll_back(&store->writer);
    } else {
        det_sqlite_mark_write(store);
        store->checkpoint_wanted = store->wal_pages >= store->checkpoint_at;
    }
    if (!store->writer.is_failed)
        return r;
    store->is_poisoned = true;
    return DET_ERR_IO;
}

int det_sqlite_alone(
    struct sqlite_store *store, int (*run)(struct sqlite_store *store, void *context),
    void *context)
{
    struct alone alone = { store, run, context };
    int r;

    det_assert(run);
    if (!store->writer.database)
        return DET_ERR_READ_ONLY;
    r = det_group_alone(store->group, run_alone, &alone);
    if (r == 0 && store->checkpoint_wanted)
        det_sqlite_checkpoint(store);
    return r;
}
