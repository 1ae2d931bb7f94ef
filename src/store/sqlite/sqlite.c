/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite.c - the store in one SQLite file: its URL, opening and closing.
 *
 *     sqlite:<path>[?vfs=<name>][&cache_pages=<number>][&checkpoint_pages=<number>]
 *
 *     place --> lock --> connect --> gate --> readers --> group
 *       |         |         |          |
 *     remote?   in use?   cannot?    foreign, newer, damaged?
 *
 * Each of these is an error, and deletes nothing. */
#include "store/sql/count.h"
#include "store/sql/definitions.h"
#include "store/sql/instance.h"
#include "store/sqlite/session.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "os/os.h"
#include "store/jobs.h"
#include "store/store.h"

#define READERS_DEFAULT 2u
#define READERS_MAX     64u
#define CACHE_DEFAULT   8192u /* pages of 4 KiB */
#define PAGES_MAX       (1u << 24)
#define IDS_DEFAULT     (7 * DET_DAY)

/* "name=number", from 1 to PAGES_MAX. */
static bool read_pages(struct det_view option, const char *name, uint64_t *ret)
{
    size_t size = strlen(name);

    return option.size > size && memcmp(option.data, name, size) == 0 &&
           det_parse_u64(det_view_of(option.data + size, option.size - size), ret) == 0 &&
           *ret > 0 && *ret <= PAGES_MAX;
}

static int read_option(struct sqlite_store *store, struct det_view option, struct det_error *reterr)
{
    static const char vfs[] = "vfs=";
    size_t vfs_size = sizeof vfs - 1;

    if (option.size > vfs_size && memcmp(option.data, vfs, vfs_size) == 0 && !store->vfs) {
        store->vfs = det_string_copy_n(
            store->store.allocator, option.data + vfs_size, option.size - vfs_size);
        return store->vfs ? 0
                          : det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    }
    if (read_pages(option, "cache_pages=", &store->cache_pages) ||
        read_pages(option, "checkpoint_pages=", &store->checkpoint_pages))
        return 0;
    return det_error_set(
        reterr, DET_ERR_INVALID,
        "\"%.*s\" is not an option of a sqlite store; the options are vfs=<name>, cache_pages=<1 "
        "to %u> and "
        "checkpoint_pages=<1 to %u>",
        (int)option.size, option.data, PAGES_MAX, PAGES_MAX);
}

static int read_url(struct sqlite_store *store, const char *rest, struct det_error *reterr)
{
    const char *question = strchr(rest, '?');
    size_t length = question ? (size_t)(question - rest) : strlen(rest);
    int r = 0;

    if (length == 0 || rest[0] == ':' || length >= DET_PATH_MAX - 8)
        return det_error_set(
            reterr, DET_ERR_INVALID,
            "\"sqlite:%s\": give a path after the colon, for example \"sqlite:orders.db\"; for a "
            "store "
            "that ends with the process use \"memory:\"",
            rest);
    store->path = det_string_copy_n(store->store.allocator, rest, length);
    if (!store->path)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    while (r == 0 && question) {
        const char *begin = question + 1, *end = strchr(begin, '&');

        r = read_option(
            store, det_view_of(begin, end ? (size_t)(end - begin) : strlen(begin)), reterr);
        question = end;
    }
    if (r == 0 && !sqlite3_vfs_find(store->vfs))
        return det_error_set(
            reterr, DET_ERR_INVALID, "SQLite has no file system named \"%s\"",
            store->vfs ? store->vfs : "");
    return r;
}

/* After a failed sync the page cache may contain data that the disk does not have, so the file is
 * read from the disk. That takes longer for a larger file, and is unnecessary if the last writer
 * synced everything before closing. The files stay open, because closing them would release locks,
 * see sqlite/place.c. */
static void forget_cached(struct sqlite_store *store)
{
    static const char *const suffixes[] = { "", "-wal" };
    struct det_world *world = store->store.world;
    bool is_synced = det_sqlite_mark_take_closed(store);
    char path[DET_PATH_MAX];

    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(store->path);

        memcpy(path, store->path, length);
        memcpy(path + length, suffixes[i], strlen(suffixes[i]) + 1);
        if (det_file_open(world, path, DET_FILE_READ, &store->kept[i]) < 0)
            store->kept[i] = NULL;
    }
    /* The content of the log is newer. */
    if (is_synced && (!store->kept[1] || det_file_size(world, store->kept[1]) == 0))
        return;
    for (size_t i = 0; i < 2; i++) {
        if (store->kept[i])
            det_file_forget(world, store->kept[i]);
    }
}

/* SQLite creates files readable by all users that the umask permits; its other files inherit mode
 * and owner from this one. A file that root creates in the folder of another user gets that user as
 * its owner, unless that user placed a link there. */
static void make_private(struct sqlite_store *store, const struct det_store_options *options)
{
    unsigned flags = DET_FILE_READ | DET_FILE_WRITE | DET_FILE_CREATE;
    struct det_world *world = store->store.world;
    char folder[DET_PATH_MAX];
    int r;

    if (store->kept[0] || store->vfs || options->must_exist)
        return;
    r = det_file_open(world, store->path, flags | DET_FILE_EXCLUSIVE, &store->kept[0]);
    if (r == 0 && det_file_folder(store->path, folder) == 0)
        det_file_share(world, store->kept[0], folder);
    if (r == DET_ERR_EXISTS)
        r = det_file_open(world, store->path, flags, &store->kept[0]);
    if (r < 0)
        store->kept[0] = NULL;
}

static int count_pages(void *context, sqlite3 *database, const char *name, int pages)
{
    struct sqlite_store *store = context;

    (void)database;
    (void)name;
    store->wal_pages = pages;
    return SQLITE_OK;
}

/* The name of the log must be durable, like its content. SQLite ensures this only for a log that it
 * creates, but this one may come from a process that was killed before it synced the folder. */
static int keep_names(const struct sqlite_store *store, struct det_error *reterr)
{
    char folder[DET_PATH_MAX];
    int r;

    r = det_file_folder(store->path, folder);
    if (r == 0)
        r = det_folder_sync(store->store.world, folder);
    if (r < 0)
        (void)det_error_set(
            reterr, r, "%s: cannot sync its folder: %s; check the disk", store->path,
            det_error_text(r));
    return r;
}

/* The remedy for a busy file is the complete message. */
static int refuse_open(
    const struct sqlite_store *store, int r, const char *what, struct det_error *reterr)
{
    bool is_busy = r == DET_ERR_BUSY;

    return det_error_set(
        reterr, r, "%s: cannot %s: %s%s%s", store->path, what, is_busy ? "" : det_error_text(r),
        is_busy ? "" : "; ", det_sqlite_remedy(r));
}

static int open_groups(struct sqlite_store *store, const struct det_store_options *options)
{
    struct det_group_options group = { .world = options->world,
                                       .allocator = options->allocator,
                                       .writers = 1,
                                       .item_size = sizeof(struct det_store_commit *),
                                       .write = det_sqlite_write,
                                       .context = store };
    int r;

    r = det_group_open(&group, &store->group);
    if (r < 0)
        return r;
    group.item_size = sizeof(struct det_jobs_put_call);
    group.write = det_sqlite_jobs_write;
    return det_group_open(&group, &store->job_group);
}

static int open_writer(
    struct sqlite_store *store, const struct det_store_options *options, struct det_error *reterr)
{
    int r;

    r = det_sqlite_lock_file(store, reterr);
    if (r < 0)
        return r;
    forget_cached(store);
    store->was_there = store->kept[0] != NULL;
    make_private(store, options);
    r = det_sqlite_connect(store, true, !options->must_exist, &store->writer, reterr);
    /* Now the file exists, so the lock file gets its owner. */
    det_file_share(store->store.world, store->lock, store->path);
    if (r == 0)
        r = det_sqlite_schema(store, &store->writer, options, reterr);
    if (r < 0)
        return r;
    store->checkpoint_at = (int)store->checkpoint_pages;
    (void)sqlite3_wal_hook(store->writer.database, count_pages, store);
    r = det_sqlite_ask_number(&store->writer, STATEMENT_EVENT_LAST, &store->next_position);
    if (r == 0 && (store->next_position < 0 || store->next_position == INT64_MAX))
        r = DET_ERR_CORRUPT;
    if (r < 0)
        return refuse_open(store, r, "read its events", reterr);
    store->next_position++;
    r = det_sqlite_mark_open(store, reterr);
    if (r < 0) {
        /* Closing must not change the log. */
        store->store.identity[0] = '\0';
        return r;
    }
    r = keep_names(store, reterr);
    if (r < 0)
        return r;
    r = det_sqlite_lease_free_all(store);
    if (r < 0)
        return refuse_open(store, r, "free the locks of a process that is gone", reterr);
    return open_groups(store, options);
}

static int open_readers(
    struct sqlite_store *store, const struct det_store_options *options, struct det_error *reterr)
{
    unsigned count = options->connections ? options->connections : READERS_DEFAULT;
    struct sqlite_mark mark;
    bool has_mark = options->is_read_only && det_sqlite_mark_find(store, &mark);
    int r;

    r = det_mutex_open(options->world, &store->sql.mutex);
    if (r == 0)
        r = det_condition_open(options->world, &store->given_back);
    if (r < 0)
        return det_error_set(reterr, r, "no mutex for a store");
    store->readers = DET_NEW_ARRAY(options->allocator, count, struct sqlite_connection);
    if (!store->readers)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    store->reader_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct sqlite_connection *reader = &store->readers[i];

        r = det_sqlite_connect(store, false, false, reader, reterr);
        if (r == 0 && i == 0 && options->is_read_only)
            r = det_sqlite_schema(store, reader, options, reterr);
        if (r == 0 && i == 0 && has_mark)
            r = det_sqlite_mark_compare(store, reader, &mark, reterr);
        if (r < 0)
            return r;
        reader->next = store->free;
        store->free = reader;
    }
    return 0;
}

/* Readers close first and do not change the log; the writer, last, checkpoints it into the file. */
static void sqlite_close(struct det_store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct det_world *world = base->world;

    det_group_close(store->job_group);
    det_group_close(store->group);
    for (unsigned i = 0; i < store->reader_count; i++)
        det_sqlite_disconnect(&store->readers[i]);
    if (store->writer.database && base->identity[0] && !store->writer.is_failed)
        det_sqlite_checkpoint_last(store);
    /* Not after a failed sync, and not before the identity of the file is known. */
    if (store->writer.database &&
        (store->is_poisoned || store->writer.is_failed || !base->identity[0]))
        (void)sqlite3_db_config(store->writer.database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    det_sqlite_mark_close(store);
    det_sqlite_disconnect(&store->writer);
    if (store->readers)
        DET_DELETE_ARRAY(base->allocator, store->readers, store->reader_count);
    det_condition_close(world, store->given_back);
    det_mutex_close(world, store->sql.mutex);
    det_file_close(world, store->kept[0]);
    det_file_close(world, store->kept[1]);
    det_file_close(world, store->lock);
    det_sql_renames_close(base);
    det_buffer_deinit(&store->scratch.bytes);
    det_buffer_deinit(&store->scratch.spans);
    det_buffer_deinit(&store->scratch.hashes);
    det_sqlite_append_deinit(store);
    det_free_string(base->allocator, store->path);
    det_free_string(base->allocator, store->vfs);
    DET_DELETE(base->allocator, store);
}

static det_time now_of(struct det_store *store)
{
    return det_world_now(store->world, DET_CLOCK_WALL);
}

static bool is_lost(struct det_store *store)
{
    return sqlite_store_of(store)->is_poisoned;
}

static const struct det_store_ops sqlite_ops = {
    .has_free_events = true,
    .close = sqlite_close,
    .now = now_of,
    .serve = det_sql_serve,
    .commit = det_sqlite_commit,
    .load = det_sqlite_load,
    .release = det_sqlite_release,
    .answer = det_sql_answer,
    .events = det_sqlite_events,
    .list = det_sqlite_list,
    .due = det_sqlite_due,
    .lease = det_sqlite_lease,
    .lock = det_sqlite_lock,
    .snapshot = det_sql_snapshot,
    .start = det_sql_start,
    .prune = det_sqlite_prune,
    .check = det_sqlite_check,
    .is_lost = is_lost,
    .machines = det_sql_machines,
    .log = det_sqlite_log,
    .count = det_sql_count_all,
    .migrate = det_sqlite_migrate,
    .repair = det_sqlite_repair,
    .check_loss = det_sqlite_check_loss,
    .backup = det_sqlite_backup,
    .compact = det_sqlite_compact,
    .jobs = &det_sqlite_jobs,
    .documents = &det_sqlite_documents,
};

static int open_parts(
    struct sqlite_store *store, const char *rest, const struct det_store_options *options,
    struct det_error *reterr)
{
    int r;

    store->accepts_loss = options->accepts_loss;
    r = read_url(store, rest, reterr);
    if (r == 0)
        r = det_sqlite_place(store, options, reterr);
    if (r == 0 && !options->is_read_only)
        r = open_writer(store, options, reterr);
    if (r == 0)
        r = open_readers(store, options, reterr);
    if (r < 0)
        return r;
    r = det_sql_renames_read(&store->store, NULL);
    if (r < 0)
        (void)det_error_set(
            reterr, r, "%s: cannot read its renames: %s", store->path, det_error_text(r));
    return r;
}

static int sqlite_open(
    const char *rest, const struct det_store_options *options, struct det_store **ret,
    struct det_error *reterr)
{
    struct sqlite_store *store;
    int r;

    if (options->connections > READERS_MAX)
        return det_error_set(
            reterr, DET_ERR_INVALID, "a sqlite store has at most %u connections for reading",
            READERS_MAX);
    store = DET_NEW(options->allocator, struct sqlite_store);
    if (!store)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "out of memory for a store");
    det_chain_prepare();
    store->store.ops = &sqlite_ops;
    store->sql.sql = &det_sqlite_sql;
    store->sql.is_read_only = options->is_read_only;
    store->store.world = options->world;
    store->store.allocator = options->allocator;
    store->cache_pages = CACHE_DEFAULT;
    store->checkpoint_pages = DET_SQLITE_CHECKPOINT_PAGES;
    store->store.event_ids_span =
        options->event_ids_span > 0 ? options->event_ids_span : IDS_DEFAULT;
    det_buffer_init(&store->scratch.bytes, options->allocator);
    det_buffer_init(&store->scratch.spans, options->allocator);
    det_buffer_init(&store->scratch.hashes, options->allocator);
    det_sqlite_append_init(store);
    r = open_parts(store, rest, options, reterr);
    if (r < 0) {
        sqlite_close(&store->store);
        return r;
    }
    *ret = &store->store;
    return 0;
}

const struct det_store_driver det_store_driver_sqlite = {
    .version = DET_STORE_DRIVER_VERSION,
    .scheme = "sqlite",
    .summary = "one file; one process writes, others may read",
    .open = sqlite_open,
};
