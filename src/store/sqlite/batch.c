/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* batch.c - writes a batch of commits in one transaction, and other changes in transactions of
 * their own.
 *
 *     BEGIN IMMEDIATE
 *       each commit:  encode, read its conditions ---- refused: its result, nothing written
 *                     head, events, changes ---------- failed half way: ROLLBACK; without it again
 *     COMMIT -+- good ---------- every result 0
 *             +- no space ------ ROLLBACK, NO_SPACE for all: it was not written
 *             +- anything else - poisoned: it may be there after a restart, or not */
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

/* One of a batch: its result if it is refused, 0 or a failure that ends the batch. */
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
    if (store->writer.is_failed)
        return DET_ERR_IO;
    /* Which of many events was refused shows when they are inserted one by one. */
    if (is_dirty && store->append.is_on)
        return r;
    commit->result = r;
    /* Some errors make SQLite roll back by itself: then the others are gone too. */
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

/* Whether the path leads to another file by now, or to none: what is written here nobody will find
 * again. A file system that cannot tell is believed. */
static bool has_moved(struct sqlite_store *store)
{
    int moved = 0;

    return sqlite3_file_control(store->writer.database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
               SQLITE_OK &&
           moved;
}

/* The end of a transaction, known or not. */
static int end_transaction(struct sqlite_store *store)
{
    int r;

    if (has_moved(store)) {
        store->writer.is_failed = true;
        return DET_ERR_IO;
    }
    r = det_sqlite_do(&store->writer, STATEMENT_COMMIT);
    /* Only where there was no room, or somebody was in the way, was it certainly not written. */
    if (r < 0 && r != DET_ERR_NO_SPACE && r != DET_ERR_BUSY)
        store->writer.is_failed = true;
    return r;
}

/* The handles lie all over the memory: while one commit is written the next handle is fetched. */
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

/* 0; PENDING: again, without the one that failed; or an error for all. */
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

int det_sqlite_write(void *context, unsigned writer, const void *items, size_t count)
{
    struct det_store_commit *const *commits = items;
    struct sqlite_store *store = context;
    int64_t position;
    int r;

    (void)writer;
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
    for (size_t i = 0; i < count; i++) {
        if (commits[i]->result != PENDING)
            continue;
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

    if (!store->writer.database)
        return DET_ERR_READ_ONLY;
    r = det_group_alone(store->group, run_alone, &alone);
    if (r == 0 && store->checkpoint_wanted)
        det_sqlite_checkpoint(store);
    return r;
}
