/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* beside_test.c - other programs on the same file: a second writer, readers, a killed writer, and a
 * program that removes the file. */
#include "store/sqlite/sqlite_test.h"

#include <sys/wait.h>

#include "store/sqlite/vfs_test.h"

static void a_second_writer_is_refused_with_the_number_of_the_first(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store = NULL;
    char lock[300], number[32];
    int status;
    pid_t child;

    (void)state;
    snprintf(number, sizeof number, "process %d", (int)getpid());
    assert_int_equal(det_store_open(shelf->url, &store, &shelf->error), DET_ERR_BUSY);
    assert_non_null(strstr(shelf->error.text, number));
    /* The other program may not have written its number yet. */
    snprintf(lock, sizeof lock, "%s.lock", shelf->path);
    det_test_write_file(lock, "", 0);
    assert_int_equal(det_store_open(shelf->url, &store, &shelf->error), DET_ERR_BUSY);
    assert_non_null(strstr(shelf->error.text, "in another process;"));
    child = fork();
    if (child == 0)
        _exit(det_store_open(shelf->url, &store, NULL) == DET_ERR_BUSY ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    shelf_close(shelf);
    /* The content of the lock file does not matter. */
    det_test_write_file(lock, "nonsense", 8);
    assert_int_equal(shelf_open(shelf), 0);
    shelf_free(shelf);
}

static void a_reader_beside_the_writer_sees_what_is_committed_and_changes_nothing(void **state)
{
    struct shelf *shelf = shelf_new(), reader = *shelf;
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "p", .owner = "me", .span = DET_SECOND
    };
    struct det_store_lease lease;
    struct det_store *store;
    struct found found;
    uint64_t gone;

    (void)state;
    reader.pad.instance = NULL;
    assert_int_equal(
        shelf_open_with(&reader, &(struct det_store_options){ .is_read_only = true }), 0);
    store = reader.pad.store;
    for (int i = 1; i < 4; i++) {
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
        assert_int_equal(shelf_load(&reader, &found), 0);
        assert_int_equal(found.loaded.head.sequence, i);
    }
    assert_int_equal(send(&reader.pad, BARE, NULL), DET_ERR_READ_ONLY);
    assert_int_equal(store->ops->lease(store, &change, &lease), DET_ERR_READ_ONLY);
    assert_int_equal(store->ops->lock(store, shelf->machine, &change, &lease), DET_ERR_READ_ONLY);
    assert_int_equal(store->ops->prune(store, reader.pad.instance, 3, 0, &gone), DET_ERR_READ_ONLY);
    assert_int_equal(store->ops->compact(store, &reader.error), DET_ERR_READ_ONLY);
    change.verb = DET_LEASE_READ;
    assert_int_equal(store->ops->lease(store, &change, &lease), 0);
    assert_int_equal(lease.token, 0);
    /* It also continues when the writer closes and opens again. */
    shelf_close(shelf);
    assert_int_equal(shelf_load(&reader, &found), 0);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(shelf_load(&reader, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 4);
    shelf_close(&reader);
    shelf_free(shelf);
}

static void copy_file(const char *from, const char *to, const char *suffix)
{
    char source[300], target[300];
    size_t size;
    char *data;

    snprintf(source, sizeof source, "%s%s", from, suffix);
    snprintf(target, sizeof target, "%s%s", to, suffix);
    data = det_test_read_file(source, &size);
    det_test_write_file(target, data, size);
    free(data);
}

/* A killed writer leaves the file and a log without a checkpoint. */
static void files_of_a_killed_writer_can_be_read_and_written(void **state)
{
    struct shelf *shelf = shelf_new();
    char path[256];
    struct found found;

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    snprintf(path, sizeof path, "%s/left.db", shelf->folder);
    copy_file(shelf->path, path, "");
    copy_file(shelf->path, path, "-wal");
    shelf_close(shelf);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s", path);
    assert_int_equal(
        shelf_open_with(shelf, &(struct det_store_options){ .is_read_only = true }), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 5);
    shelf_close(shelf);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void moved_store_file_gets_no_more_commits(void **state)
{
    struct shelf *shelf = shelf_new();
    char path[256];

    (void)state;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    snprintf(path, sizeof path, "%s/away.db", shelf->folder);
    assert_int_equal(rename(shelf->path, path), 0);
    assert_int_equal(send(&shelf->pad, BARE, NULL), DET_ERR_IO);
    assert_int_equal(rename(path, shelf->path), 0);
    assert_int_equal(send(&shelf->pad, BARE, NULL), DET_ERR_IO);
    shelf_free(shelf);
}

/* Another program holds the lock of those who write. */
static sqlite3 *write_beside(struct shelf *shelf)
{
    sqlite3 *database;

    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return database;
}

static void store_opens_beside_a_writer_if_no_locks_need_freeing(void **state)
{
    struct shelf *shelf = shelf_new();
    struct found found;
    sqlite3 *other;

    (void)state;
    shelf_close(shelf);
    other = write_beside(shelf);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    shelf_close(shelf);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    shelf_free(shelf);
}

static void locks_that_cannot_be_freed_are_reported_once(void **state)
{
    struct shelf *shelf = shelf_new();
    sqlite3 *other;

    (void)state;
    shelf_close(shelf);
    shelf_exec(
        shelf,
        "INSERT INTO leases VALUES ('n', 1, 'gone', 9, row_checksum('leases', 'n', 1, 'gone', 9))");
    faulty_init();
    faulty.is_hasty = true;
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty", shelf->path);
    other = write_beside(shelf);
    assert_int_equal(shelf_open(shelf), DET_ERR_BUSY);
    assert_non_null(strstr(
        shelf->error.text, "cannot free the locks of a process that is gone: another process keeps "
                           "it busy; try again"));
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_ask(shelf, "SELECT expires_at FROM leases"), 0);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_writer_is_refused_with_the_number_of_the_first),
        cmocka_unit_test(a_reader_beside_the_writer_sees_what_is_committed_and_changes_nothing),
        cmocka_unit_test(files_of_a_killed_writer_can_be_read_and_written),
        cmocka_unit_test(moved_store_file_gets_no_more_commits),
        cmocka_unit_test(store_opens_beside_a_writer_if_no_locks_need_freeing),
        cmocka_unit_test(locks_that_cannot_be_freed_are_reported_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
