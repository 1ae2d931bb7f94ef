/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_mark.c - how far a store was acknowledged, in a file beside it: docs/formats/mark.md. The
 * writer's only: inside the group, or while it is opened and closed. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "os/os.h"
#include "store/sqlite.h"

#define SLOT_SIZE    512u
#define MAGIC        "detmark1"
#define REGION_BYTES 32768

enum {
    AT_GENERATION = 8,
    AT_IDENTITY = 16,
    AT_SALTS = 48,
    AT_FRAMES = 56,
    AT_POSITION = 64,
    AT_TIME = 72,
    AT_SUM = 80,
    SLOT_USED = 84,
};

/* In the index of the log, https://sqlite.org/walformat.html: in the order of this machine. */
enum { INDEX_FRAMES = 16, INDEX_SALTS = 32, INDEX_USED = 48 };

static void put(unsigned char *target, uint64_t number, int size)
{
    for (int i = 0; i < size; i++)
        target[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t get(const unsigned char *source, int size)
{
    uint64_t number = 0;

    for (int i = 0; i < size; i++)
        number |= (uint64_t)source[i] << (8 * i);
    return number;
}

/* What the log is now, of which a connection has read something. False: there is none. */
static bool read_log(sqlite3 *database, struct sqlite_mark *ret)
{
    volatile void *region = NULL;
    sqlite3_file *file = NULL;
    unsigned char index[INDEX_USED];
    uint32_t frames;

    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) !=
            SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap ||
        file->pMethods->xShmMap(file, 0, REGION_BYTES, 0, &region) != SQLITE_OK || !region)
        return false;
    for (size_t i = 0; i < sizeof index; i++)
        index[i] = ((const volatile unsigned char *)region)[i];
    memcpy(&frames, index + INDEX_FRAMES, sizeof frames);
    memcpy(&ret->salts, index + INDEX_SALTS, sizeof ret->salts);
    ret->frames = frames;
    return true;
}

/* Whether a slot is whole, and of this store; of any, as long as this one has no identity. */
static bool read_slot(
    const struct sqlite_store *store, const unsigned char *slot, struct sqlite_mark *ret)
{
    const char *identity = store->store.identity;

    if (memcmp(slot, MAGIC, 8) != 0 || get(slot + AT_SUM, 4) != det_crc32c(0, slot, AT_SUM) ||
        (identity[0] && memcmp(slot + AT_IDENTITY, identity, 32) != 0))
        return false;
    ret->generation = get(slot + AT_GENERATION, 8);
    memcpy(&ret->salts, slot + AT_SALTS, sizeof ret->salts);
    ret->frames = get(slot + AT_FRAMES, 8);
    ret->position = (int64_t)get(slot + AT_POSITION, 8);
    ret->at = (det_time)get(slot + AT_TIME, 8);
    return true;
}

static bool read_mark(
    const struct sqlite_store *store, struct det_file *file, struct sqlite_mark *ret)
{
    unsigned char slots[2 * SLOT_SIZE] = { 0 };
    struct sqlite_mark found[2];
    bool is_there[2];

    if (det_file_read(store->store.world, file, 0, slots, sizeof slots) < (int64_t)SLOT_USED)
        return false;
    for (size_t i = 0; i < 2; i++)
        is_there[i] = read_slot(store, slots + i * SLOT_SIZE, &found[i]);
    if (!is_there[0] && !is_there[1])
        return false;
    *ret = found[is_there[1] && (!is_there[0] || found[1].generation > found[0].generation)];
    return true;
}

int64_t det_sqlite_mark_lost(const struct sqlite_mark *mark, sqlite3 *database, int64_t position)
{
    struct sqlite_mark log = { 0 };
    int64_t lost = mark->position > position ? mark->position - position : 0;

    /* Without salts there is no log. */
    if (!read_log(database, &log) || !log.salts || log.salts != mark->salts)
        return lost;
    if (log.frames >= mark->frames)
        return 0;
    return lost ? lost : -1;
}

bool det_sqlite_mark_find(const struct sqlite_store *store, struct sqlite_mark *ret)
{
    struct det_world *world = store->store.world;
    struct det_file *file = NULL;
    char path[DET_PATH_MAX];
    bool is_found;

    /* It would stand in another file system than the store. */
    if (store->vfs)
        return false;
    (void)snprintf(path, sizeof path, "%s.mark", store->path);
    if (det_file_open(world, path, DET_FILE_READ, &file) < 0)
        return false;
    is_found = read_mark(store, file, ret);
    det_file_close(world, file);
    return is_found;
}

int det_sqlite_mark_refuse(
    const struct sqlite_store *store, const struct sqlite_mark *mark, int64_t lost,
    struct det_error *reterr)
{
    char what[80] = "changes";

    if (lost > 0)
        (void)snprintf(
            what, sizeof what, "the last %lld of %lld positions of its log", (long long)lost,
            (long long)mark->position);
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "%s has lost what it had acknowledged: %s are missing; its log (-wal) is damaged or gone, "
        "or an older copy is in its place; take the newest backup, or remove its .mark file to go "
        "on without them; nothing was changed",
        store->path, what);
}

/* Without the file, because it cannot be made, there is no mark: the store is as good without. */
int det_sqlite_mark_open(struct sqlite_store *store, struct det_error *reterr)
{
    struct det_world *world = store->store.world;
    struct sqlite_mark mark = { 0 };
    char path[DET_PATH_MAX];
    int64_t lost = 0;

    store->committed = store->next_position - 1;
    if (det_sqlite_mark_find(store, &mark))
        lost = det_sqlite_mark_lost(&mark, store->writer.database, store->committed);
    if (lost != 0)
        return det_sqlite_mark_refuse(store, &mark, lost, reterr);
    if (store->vfs)
        return 0;
    (void)snprintf(path, sizeof path, "%s.mark", store->path);
    if (det_file_open(world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE, &store->mark) <
        0)
        store->mark = NULL;
    store->mark_generation = mark.generation;
    if (store->mark)
        det_file_share(world, store->mark, store->path);
    det_sqlite_mark_write(store);
    return 0;
}

/* A failure leaves an older mark, which is right too. */
void det_sqlite_mark_write(struct sqlite_store *store)
{
    unsigned char slot[SLOT_USED] = MAGIC;
    struct sqlite_mark log = { 0 };

    if (!store->mark || !read_log(store->writer.database, &log))
        return;
    store->mark_generation++;
    put(slot + AT_GENERATION, store->mark_generation, 8);
    memcpy(slot + AT_IDENTITY, store->store.identity, 32);
    memcpy(slot + AT_SALTS, &log.salts, sizeof log.salts);
    put(slot + AT_FRAMES, log.frames, 8);
    put(slot + AT_POSITION, (uint64_t)store->committed, 8);
    put(slot + AT_TIME, (uint64_t)sqlite_now(store), 8);
    put(slot + AT_SUM, det_crc32c(0, slot, AT_SUM), 4);
    if (det_file_write(
            store->store.world, store->mark, store->mark_generation % 2 * SLOT_SIZE, slot,
            sizeof slot) < 0)
        return;
}

void det_sqlite_mark_close(struct sqlite_store *store)
{
    if (store->mark)
        (void)det_file_sync(store->store.world, store->mark);
    det_file_close(store->store.world, store->mark);
    store->mark = NULL;
}
