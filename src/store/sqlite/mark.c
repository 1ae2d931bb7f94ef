/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mark.c - the mark: the last acknowledged position of a store, in a file beside it; see
 * docs/formats/mark.md. The writer updates it, inside the group, or while opening and closing. A
 * reader compares it once, when it opens the store. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "os/os.h"
#include "store/sqlite/sqlite.h"

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
    SLOT_USED = 84, /* by older versions */
    AT_CHECKPOINTED = 84,
    AT_PAGE = 92,
    AT_PAGE_SIZE = 100,
    AT_PAGE_SUM = 104,
    AT_FILE_SUM = 108,
    AT_WHOLE_SUM = 112,
    WHOLE_USED = 116,
    AT_CLOSED = 116,
    SLOT_WRITTEN = 120,
};

/* Offsets in the index of the log, https://sqlite.org/walformat.html: in native byte order. */
enum {
    INDEX_PAGE_SIZE = 14,
    INDEX_FRAMES = 16,
    INDEX_SALTS = 32,
    INDEX_BACKFILL = 96,
    INDEX_USED = 100,
};
/* Offsets in the log: big-endian. */
enum { LOG_HEAD = 32, FRAME_HEAD = 24 };
/* Offsets in the file. */
enum { FILE_HEAD = 100 };

static void put_number(unsigned char *target, uint64_t number, int size)
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

static bool sum_page(sqlite3_file *file, int64_t offset, uint32_t size, uint32_t *ret)
{
    unsigned char part[4096];
    uint32_t sum = 0;

    for (uint32_t done = 0, now; done < size; done += now) {
        now = size - done < sizeof part ? size - done : (uint32_t)sizeof part;
        if (file->pMethods->xRead(file, part, (int)now, offset + done) != SQLITE_OK)
            return false;
        sum = det_crc32c(sum, part, now);
    }
    *ret = sum;
    return true;
}

/* Checksums of a page in the file, without the log (0: the file is shorter), and of the header of
 * the file, which changes when a program moves pages. False: unknown. */
static bool sum_in_file(
    sqlite3 *database, const struct sqlite_mark *mark, uint32_t *ret_page, uint32_t *ret)
{
    unsigned char head[FILE_HEAD];
    sqlite3_file *file = NULL;
    sqlite3_int64 size;

    *ret_page = 0;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) !=
            SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->xFileSize(file, &size) != SQLITE_OK ||
        file->pMethods->xRead(file, head, sizeof head, 0) != SQLITE_OK)
        return false;
    if (mark->page_at + mark->page_size <= (uint64_t)size &&
        !sum_page(file, (int64_t)mark->page_at, mark->page_size, ret_page))
        return false;
    *ret = det_crc32c(*ret_page, head, sizeof head);
    return true;
}

/* The page of the last frame in the log: its offset in the file, and its checksums. */
static void read_last_frame(sqlite3 *database, struct sqlite_mark *mark)
{
    int64_t at = LOG_HEAD + (int64_t)(mark->frames - 1) * (FRAME_HEAD + (int64_t)mark->page_size);
    sqlite3_file *log = NULL;
    unsigned char number[4];
    uint64_t page = 0;
    uint32_t in_file;

    if (mark->frames &&
        sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&log) ==
            SQLITE_OK &&
        log && log->pMethods && log->pMethods->xRead(log, number, 4, at) == SQLITE_OK &&
        sum_page(log, at + FRAME_HEAD, mark->page_size, &mark->page_sum))
        page = (uint64_t)number[0] << 24 | (uint64_t)number[1] << 16 | (uint64_t)number[2] << 8 |
               number[3];
    if (page)
        mark->page_at = (page - 1) * mark->page_size;
    if (!page || !sum_in_file(database, mark, &in_file, &mark->file_sum) ||
        in_file == mark->page_sum)
        mark->page_size = mark->page_sum = 0;
}

/* The current log; the connection must have read something. False: no log. */
static bool read_log(sqlite3 *database, struct sqlite_mark *ret)
{
    volatile void *region = NULL;
    sqlite3_file *file = NULL;
    unsigned char index[INDEX_USED];
    uint32_t frames, backfill;
    uint16_t page_size;

    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&file) !=
            SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2 || !file->pMethods->xShmMap ||
        file->pMethods->xShmMap(file, 0, REGION_BYTES, 0, &region) != SQLITE_OK || !region)
        return false;
    for (size_t i = 0; i < sizeof index; i++)
        index[i] = ((const volatile unsigned char *)region)[i];
    memcpy(&frames, index + INDEX_FRAMES, sizeof frames);
    memcpy(&ret->salts, index + INDEX_SALTS, sizeof ret->salts);
    memcpy(&page_size, index + INDEX_PAGE_SIZE, sizeof page_size);
    memcpy(&backfill, index + INDEX_BACKFILL, sizeof backfill);
    ret->frames = frames;
    ret->checkpointed = backfill;
    /* 65,536 is written as 1. */
    ret->page_size = page_size == 1 ? 65536 : page_size;
    return true;
}

/* True if a slot is complete and of this store; of any store, while this one has no identity. */
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
    ret->checkpointed = get(slot + AT_CHECKPOINTED, 8);
    ret->page_at = get(slot + AT_PAGE, 8);
    ret->page_size = (uint32_t)get(slot + AT_PAGE_SIZE, 4);
    ret->page_sum = (uint32_t)get(slot + AT_PAGE_SUM, 4);
    ret->file_sum = (uint32_t)get(slot + AT_FILE_SUM, 4);
    ret->has_page = get(slot + AT_WHOLE_SUM, 4) == det_crc32c(0, slot, AT_WHOLE_SUM);
    ret->is_closed = ret->has_page && get(slot + AT_CLOSED, 4) == det_crc32c(0, slot, AT_CLOSED);
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

static uint64_t slot_at(uint64_t generation)
{
    return generation % 2 * SLOT_SIZE;
}

bool det_sqlite_mark_take_closed(const struct sqlite_store *store)
{
    static const unsigned char open[4] = { 0 };
    struct det_world *world = store->store.world;
    struct sqlite_mark mark = { 0 };
    struct det_file *file = NULL;
    char path[DET_PATH_MAX];
    bool is_closed;

    if (store->vfs)
        return false;
    (void)snprintf(path, sizeof path, "%s.mark", store->path);
    if (det_file_open(world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_NO_LINK, &file) < 0)
        return false;
    is_closed =
        read_mark(store, file, &mark) && mark.is_closed &&
        det_file_write(world, file, slot_at(mark.generation) + AT_CLOSED, open, sizeof open) >= 0;
    det_file_close(world, file);
    return is_closed;
}

void det_sqlite_mark_set_closed(const struct sqlite_store *store)
{
    struct det_world *world = store->store.world;
    uint64_t at = slot_at(store->mark_generation);
    unsigned char slot[AT_CLOSED], sum[4];
    struct sqlite_mark log = { 0 };

    if (!read_log(store->writer.database, &log) || log.frames > log.checkpointed ||
        det_file_read(world, store->mark, at, slot, sizeof slot) < (int64_t)sizeof slot)
        return;
    put_number(sum, det_crc32c(0, slot, sizeof slot), 4);
    /* Without this write the next opening reads the file from the disk. */
    if (det_file_write(world, store->mark, at + AT_CLOSED, sum, sizeof sum) < 0)
        return;
}

bool det_sqlite_mark_is_in_log(const struct sqlite_mark *mark)
{
    return mark->has_page && mark->frames > mark->checkpointed;
}

/* True if the file lacks the last frame: its page in the file is as it was when the frame was only
 * in the log. A checkpoint or another program has changed any other page. */
static bool is_missing(const struct sqlite_mark *mark, sqlite3 *database)
{
    uint32_t page, sum;

    return det_sqlite_mark_is_in_log(mark) && mark->page_size &&
           sum_in_file(database, mark, &page, &sum) && sum == mark->file_sum;
}

int64_t det_sqlite_mark_lost(const struct sqlite_mark *mark, sqlite3 *database, int64_t position)
{
    struct sqlite_mark log = { 0 };
    int64_t lost = mark->position > position ? mark->position - position : 0;

    /* Without salts there is no log. */
    if (!read_log(database, &log) || !log.salts || log.salts != mark->salts)
        return !lost && is_missing(mark, database) ? -1 : lost;
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

    /* The mark would be in another file system than the store. */
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
            what, sizeof what, "the last %lld of %lld position%s of its log", (long long)lost,
            (long long)mark->position, det_plural((uint64_t)mark->position));
    return det_error_set(
        reterr, DET_ERR_CORRUPT,
        "%s has lost acknowledged commits: %s %s missing; its log (-wal) is damaged or missing, or "
        "the file is an older copy; take the newest backup, or remove its .mark file to continue "
        "without them; nothing was changed",
        store->path, what, lost == 1 ? "is" : "are");
}

/* The last position visible to a reader; below 0: an error. */
static int64_t read_position(struct sqlite_connection *reader)
{
    int64_t position = 0;
    int r;

    r = det_sqlite_ask_number(reader, STATEMENT_EVENT_LAST, &position);
    return r < 0 ? r : position;
}

int det_sqlite_mark_compare(
    struct sqlite_store *store, struct sqlite_connection *reader, const struct sqlite_mark *mark,
    struct det_error *reterr)
{
    int64_t position = read_position(reader), lost;
    struct sqlite_mark now;

    if (position == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    /* A store that cannot be read is damaged in another way, and may still be inspected. */
    if (position < 0)
        return 0;
    lost = det_sqlite_mark_lost(mark, reader->database, position);
    /* The mark must belong to this store, whose identity is known now. A writer may have
     * checkpointed the log of the mark meanwhile, and started another. */
    if (lost == 0 || !det_sqlite_mark_find(store, &now) || now.generation != mark->generation)
        return 0;
    store->loss = lost;
    store->lost_mark = *mark;
    return 0;
}

int det_sqlite_check_loss(struct det_store *base, struct det_error *reterr)
{
    const struct sqlite_store *store = sqlite_store_of(base);

    return store->loss ? det_sqlite_mark_refuse(store, &store->lost_mark, store->loss, reterr) : 0;
}

/* If the file cannot be created, the store works without a mark. */
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
    if (det_file_open(
            world, path, DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE | DET_FILE_NO_LINK,
            &store->mark) < 0)
        store->mark = NULL;
    store->mark_generation = mark.generation;
    if (store->mark)
        det_file_share(world, store->mark, store->path);
    det_sqlite_mark_write(store);
    return 0;
}

/* After a failure the older mark stays, which is still valid. */
void det_sqlite_mark_write(struct sqlite_store *store)
{
    unsigned char slot[SLOT_WRITTEN] = MAGIC;
    struct sqlite_mark log = { 0 };

    if (!store->mark || !read_log(store->writer.database, &log))
        return;
    det_assert(store->committed >= 0 && store->committed < store->next_position);
    read_last_frame(store->writer.database, &log);
    store->mark_generation++;
    put_number(slot + AT_GENERATION, store->mark_generation, 8);
    memcpy(slot + AT_IDENTITY, store->store.identity, 32);
    memcpy(slot + AT_SALTS, &log.salts, sizeof log.salts);
    put_number(slot + AT_FRAMES, log.frames, 8);
    put_number(slot + AT_POSITION, (uint64_t)store->committed, 8);
    put_number(slot + AT_TIME, (uint64_t)sqlite_now(store), 8);
    put_number(slot + AT_SUM, det_crc32c(0, slot, AT_SUM), 4);
    put_number(slot + AT_CHECKPOINTED, log.checkpointed, 8);
    put_number(slot + AT_PAGE, log.page_at, 8);
    put_number(slot + AT_PAGE_SIZE, log.page_size, 4);
    put_number(slot + AT_PAGE_SUM, log.page_sum, 4);
    put_number(slot + AT_FILE_SUM, log.file_sum, 4);
    put_number(slot + AT_WHOLE_SUM, det_crc32c(0, slot, AT_WHOLE_SUM), 4);
    if (det_file_write(
            store->store.world, store->mark, slot_at(store->mark_generation), slot, sizeof slot) <
        0)
        return;
}

void det_sqlite_mark_sync(struct sqlite_store *store)
{
    if (store->mark)
        (void)det_file_sync(store->store.world, store->mark);
}

void det_sqlite_mark_close(struct sqlite_store *store)
{
    det_sqlite_mark_sync(store);
    det_file_close(store->store.world, store->mark);
    store->mark = NULL;
}
