/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_test.h - a store in a separate folder with one instance, for the suites of the SQLite
 * driver. */
#ifndef DET_STORE_SQLITE_SQLITE_TEST_H
#define DET_STORE_SQLITE_SQLITE_TEST_H

#include "store/pad_test.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/sqlite.h"

struct shelf {
    char *folder;
    char path[256], url[320];
    struct det_machine *machine;
    struct pad pad;
    struct det_error error;
};

static inline void shelf_init(struct shelf *shelf)
{
    memset(shelf, 0, sizeof *shelf);
    shelf->folder = det_test_folder();
    shelf->machine = pad_machine(1);
    snprintf(shelf->path, sizeof shelf->path, "%s/pad.db", shelf->folder);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s", shelf->path);
}

static inline int shelf_open_with(struct shelf *shelf, const struct det_store_options *options)
{
    struct det_store *store = NULL;
    int r;

    r = det_store_open_with(shelf->url, options, &store, &shelf->error);
    shelf->pad.machine = shelf->machine;
    shelf->pad.store = store;
    if (r == 0)
        r = store->ops->serve(store, shelf->machine, &shelf->error);
    return r;
}

/* Without serving its machine. */
static inline int shelf_open_unserved(struct shelf *shelf)
{
    struct det_store *store = NULL;
    int r;

    r = det_store_open(shelf->url, &store, &shelf->error);
    shelf->pad.store = store;
    return r;
}

static inline int shelf_open(struct shelf *shelf)
{
    return shelf_open_with(shelf, NULL);
}

/* Releases the instance and closes the store. */
static inline void shelf_close(struct shelf *shelf)
{
    if (shelf->pad.store && shelf->pad.instance)
        shelf->pad.store->ops->release(shelf->pad.store, shelf->pad.instance);
    shelf->pad.instance = NULL;
    det_store_close(shelf->pad.store);
    shelf->pad.store = NULL;
}

static inline void shelf_deinit(struct shelf *shelf)
{
    shelf_close(shelf);
    det_machine_close(shelf->machine);
    det_test_folder_remove(shelf->folder);
}

/* Starts the instance "p". */
static inline int shelf_start(struct shelf *shelf)
{
    struct pad *pad = &shelf->pad;
    int r;

    pad->head = (struct det_store_head){ .visit = 1, .started_at = 100, .last_transition_at = 100 };
    begin(pad);
    pad->commit.is_new = true;
    pad->commit.data = &pad->data;
    r = commit(pad);
    if (r == 0)
        pad->instance = pad->commit.instance;
    return r;
}

static inline struct shelf *shelf_new(void)
{
    struct shelf *shelf = malloc(sizeof *shelf);

    assert_non_null(shelf);
    shelf_init(shelf);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_start(shelf), 0);
    return shelf;
}

static inline void shelf_free(struct shelf *shelf)
{
    shelf_deinit(shelf);
    free(shelf);
}

/* Loads "p" again, and replaces the handle. */
static inline int shelf_load(struct shelf *shelf, struct found *found)
{
    const struct det_store_rows rows = { found, found_timer, found_effect, found_deferred };
    struct pad *pad = &shelf->pad;
    int r;

    memset(found, 0, sizeof *found);
    found->loaded.data = &found->data;
    r = pad->store->ops->load(pad->store, pad->machine, "p", &rows, &found->loaded);
    if (r != 0)
        return r;
    if (pad->instance)
        pad->store->ops->release(pad->store, pad->instance);
    pad->instance = found->loaded.instance;
    pad->head = found->loaded.head;
    pad->data = found->data;
    return 0;
}

static inline int shelf_reopen(struct shelf *shelf, struct found *found)
{
    int r;

    memset(found, 0, sizeof *found);
    shelf_close(shelf);
    r = shelf_open(shelf);
    return r < 0 ? r : shelf_load(shelf, found);
}

/* Statements on the file, beside the store or without it. */
static inline void shelf_exec(struct shelf *shelf, const char *text)
{
    sqlite3 *database;
    char *printed = NULL;

    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(det_sqlite_checksum_open(database), SQLITE_OK);
    if (sqlite3_exec(database, text, NULL, NULL, &printed) != SQLITE_OK)
        fail_msg("%s: %s", text, printed);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static inline int64_t shelf_ask(struct shelf *shelf, const char *text)
{
    sqlite3_stmt *statement;
    sqlite3 *database;
    int64_t number;

    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    return number;
}

/* Findings of a check, one behind the other. */
struct findings {
    size_t count;
    char texts[4096];
    uint64_t done, total;
};

static inline int add_finding(void *context, const struct det_store_finding *row)
{
    struct findings *findings = context;
    size_t length = strlen(findings->texts);

    findings->count++;
    snprintf(
        findings->texts + length, sizeof findings->texts - length, "%s/%s/%d: %s\n",
        row->machine ? row->machine : "", row->id ? row->id : "", (int)row->sequence, row->text);
    return 0;
}

static inline void add_progress(void *context, uint64_t done, uint64_t total)
{
    struct findings *findings = context;

    findings->done = done;
    findings->total = total;
}

static inline struct findings *shelf_check(struct shelf *shelf)
{
    static struct findings findings;
    struct det_store *store = shelf->pad.store;

    memset(&findings, 0, sizeof findings);
    assert_int_equal(store->ops->check(store, add_finding, add_progress, &findings), 0);
    return &findings;
}

#endif
