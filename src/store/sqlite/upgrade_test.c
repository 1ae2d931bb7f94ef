/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upgrade_test.c - files of an older schema: nothing in them is lost, and an upgrade that
 * does not come to its end leaves them as they were. */
#include "store/sqlite/sqlite_test.h"

#include "store/sqlite/vfs_test.h"
#include "store/upgrade_cases.h"

/* Replaces the file by the frozen store. */
static void put_old_of(struct shelf *shelf, int schema)
{
    char name[32], *text;

    snprintf(name, sizeof name, "%d.sqlite.sql", schema);
    text = old_store(name);

    (void)unlink(shelf->path);
    shelf_exec(shelf, "PRAGMA journal_mode = WAL");
    shelf_exec(shelf, text);
    free(text);
}

static void put_old(struct shelf *shelf)
{
    put_old_of(shelf, 1);
}

static void old_shelf(struct shelf *shelf)
{
    shelf_init(shelf);
    put_old(shelf);
}

static void assert_text(const struct shelf *shelf, const char *words)
{
    if (!strstr(shelf->error.text, words))
        fail_msg("\"%s\" is not in \"%s\"", words, shelf->error.text);
}

/* Everything that makes the tables of a file, in one text; free() it. */
static char *tables_of(struct shelf *shelf)
{
    sqlite3_stmt *statement;
    sqlite3 *database;
    char *text;

    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(
            database,
            "SELECT group_concat(sql, char(10)) FROM (SELECT sql FROM sqlite_schema ORDER BY name)",
            -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    text = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    return text;
}

static void upgrade_from(int schema)
{
    struct shelf shelf;

    shelf_init(&shelf);
    put_old_of(&shelf, schema);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_ask(&shelf, "PRAGMA user_version"), 7);
    assert_int_equal(shelf_ask(&shelf, "SELECT schema FROM store"), 7);
    check_old_store(&shelf.pad);
    check_old_log(&shelf.pad, schema);
    go_on_with_old_store(&shelf.pad);
    check_new_log(&shelf.pad, schema);
    shelf_close(&shelf);
    /* Once is enough. */
    assert_int_equal(
        shelf_open_with(&shelf, &(struct det_store_options){ .is_read_only = true }), 0);
    assert_int_equal(shelf.pad.store->schema, 7);
    shelf_deinit(&shelf);
}

static void every_older_store_is_upgraded_and_nothing_is_lost(void **state)
{
    (void)state;
    for (int schema = 1; schema < DET_SQLITE_SCHEMA; schema++)
        upgrade_from(schema);
}

static void compare_tables(int schema)
{
    struct shelf *fresh = shelf_new(), shelf;
    char *wanted, *found;

    shelf_init(&shelf);
    put_old_of(&shelf, schema);
    assert_int_equal(shelf_open(&shelf), 0);
    wanted = tables_of(fresh);
    found = tables_of(&shelf);
    assert_string_equal(found, wanted);
    free(wanted);
    free(found);
    shelf_deinit(&shelf);
    shelf_free(fresh);
}

static void an_upgraded_store_has_the_tables_of_a_new_one(void **state)
{
    (void)state;
    for (int schema = 1; schema < DET_SQLITE_SCHEMA; schema++)
        compare_tables(schema);
}

/* Programs before the second number wrote such files: they made the tables, and counted on. */
static void a_store_of_schema_1_that_has_the_tables_is_upgraded_too(void **state)
{
    struct shelf shelf;

    (void)state;
    old_shelf(&shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_close(&shelf);
    shelf_exec(
        &shelf,
        "DROP TABLE starts; ALTER TABLE jobs DROP COLUMN lost; DROP INDEX instances_locked;"
        "ALTER TABLE outbox DROP COLUMN reason; ALTER TABLE dead_letters DROP COLUMN reason;"
        "ALTER TABLE outbox DROP COLUMN trace; ALTER TABLE dead_letters DROP COLUMN trace;"
        "ALTER TABLE outbox DROP COLUMN origin; ALTER TABLE dead_letters DROP COLUMN origin;"
        "ALTER TABLE events DROP COLUMN trace; ALTER TABLE store DROP COLUMN position;"
        "ALTER TABLE store DROP COLUMN sync; DROP TABLE documents; DROP TABLE deltas;"
        "DROP INDEX timers_due; DROP INDEX timers_dead; CREATE INDEX timers_due ON timers "
        "(machine, due);"
        "ALTER TABLE store DROP COLUMN checksum;"
        "ALTER TABLE definitions DROP COLUMN checksum;"
        "ALTER TABLE timers DROP COLUMN checksum;"
        "ALTER TABLE outbox DROP COLUMN checksum;"
        "ALTER TABLE dead_letters DROP COLUMN checksum;"
        "ALTER TABLE deferred DROP COLUMN checksum;"
        "ALTER TABLE answers DROP COLUMN checksum;"
        "ALTER TABLE renames DROP COLUMN checksum;"
        "ALTER TABLE leases DROP COLUMN checksum;"
        "ALTER TABLE schedules DROP COLUMN checksum;"
        "DROP INDEX jobs_queued; DROP INDEX jobs_delayed; DROP INDEX jobs_running;"
        "ALTER TABLE jobs DROP COLUMN checksum;"
        "ALTER TABLE timers DROP COLUMN attempts; ALTER TABLE timers DROP COLUMN last_error;"
        "ALTER TABLE timers DROP COLUMN next_at; ALTER TABLE timers DROP COLUMN reason;"
        "ALTER TABLE timers DROP COLUMN dead_at; ALTER TABLE answers DROP COLUMN event;"
        "ALTER TABLE answers DROP COLUMN request; ALTER TABLE instances DROP COLUMN owned;"
        "ALTER TABLE instances DROP COLUMN lock_checksum;"
        "PRAGMA user_version = 1; UPDATE store SET schema = 1");
    assert_int_equal(shelf_open(&shelf), 0);
    check_old_store(&shelf.pad);
    shelf_deinit(&shelf);
}

static void read_only_open_of_an_older_schema_names_the_upgrade(void **state)
{
    struct det_store_options options = { .is_read_only = true };
    struct shelf shelf;
    size_t before_size, after_size;
    char *before, *after;

    (void)state;
    old_shelf(&shelf);
    before = det_test_read_file(shelf.path, &before_size);
    assert_int_equal(shelf_open_with(&shelf, &options), DET_ERR_VERSION);
    assert_text(&shelf, "detent store upgrade");
    assert_int_equal(shelf.error.expected, 7);
    assert_int_equal(shelf.error.actual, 1);
    /* Also with another required identity. */
    options = (struct det_store_options){ .identity = "ffeeddccbbaa99887766554433221100" };
    assert_int_equal(shelf_open_with(&shelf, &options), DET_ERR_FOREIGN);
    after = det_test_read_file(shelf.path, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    free(before);
    free(after);
    shelf_deinit(&shelf);
}

static void older_store_missing_its_own_tables_is_damaged(void **state)
{
    struct shelf shelf;

    (void)state;
    old_shelf(&shelf);
    shelf_exec(&shelf, "DROP TABLE answers; DROP TABLE leases");
    assert_int_equal(shelf_open(&shelf), DET_ERR_CORRUPT);
    assert_text(&shelf, "newest backup");
    assert_text(&shelf, "no such table: answers");
    assert_int_equal(shelf_ask(&shelf, "PRAGMA user_version"), 1);
    shelf_deinit(&shelf);
}

/* Schema 7 has other checksums of effects: what did not match its old one does not match the new
 * one. */
static void a_damaged_effect_of_an_older_store_is_damaged_after_an_upgrade(void **state)
{
    static const char *const damages[] = {
        "UPDATE outbox SET attempts = 9 WHERE instance = 2",
        "UPDATE dead_letters SET attempts = 9 WHERE instance = 2",
    };
    struct found found;

    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct shelf shelf;

        shelf_init(&shelf);
        put_old_of(&shelf, 6);
        shelf_exec(&shelf, damages[i]);
        assert_int_equal(shelf_open(&shelf), 0);
        assert_int_equal(load_old(&shelf.pad, "p", &found), DET_ERR_CORRUPT);
        assert_int_equal(shelf_check(&shelf)->count, 1);
        shelf_deinit(&shelf);
    }
}

static int upgrade(struct det_test_memory *memory, void *argument)
{
    struct det_store_options options = { .allocator = &memory->allocator };
    struct shelf *shelf = argument;
    int64_t schema;
    int r;

    put_old(shelf);
    r = shelf_open_with(shelf, &options);
    shelf_close(shelf);
    schema = shelf_ask(shelf, "PRAGMA user_version");
    assert_true(schema == 7 || (r < 0 && schema == 1));
    assert_int_equal(shelf_open(shelf), 0);
    check_old_store(&shelf->pad);
    shelf_close(shelf);
    return r;
}

static void upgrade_without_memory_leaves_the_store_unchanged(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    det_test_each_failure(upgrade, &shelf);
    shelf_deinit(&shelf);
}

/* Each call to the file system fails, once or from then on. */
static void an_upgrade_that_fails_leaves_a_whole_store_of_either_schema(void **state)
{
    struct shelf shelf;
    unsigned old = 0, done = 0;

    (void)state;
    shelf_init(&shelf);
    faulty_init();
    for (uint64_t call = 1;; call++) {
        int r;

        put_old(&shelf);
        snprintf(shelf.url, sizeof shelf.url, "sqlite:%s?vfs=faulty", shelf.path);
        faulty = (struct faulty){ .fail_at = call, .is_sticky = call % 2 == 0 };
        r = shelf_open(&shelf);
        faulty.fail_at = 0;
        shelf_close(&shelf);
        if (!faulty.has_failed)
            break;
        if (shelf_ask(&shelf, "PRAGMA user_version") == 1) {
            assert_true(r < 0);
            assert_int_equal(shelf_ask(&shelf, "SELECT schema FROM store"), 1);
            assert_int_equal(
                shelf_ask(&shelf, "SELECT count(*) FROM sqlite_schema WHERE name = 'jobs'"), 0);
            old++;
        } else {
            done++;
        }
        snprintf(shelf.url, sizeof shelf.url, "sqlite:%s", shelf.path);
        assert_int_equal(shelf_open(&shelf), 0);
        check_old_store(&shelf.pad);
        shelf_close(&shelf);
    }
    assert_true(old > 10 && done > 1);
    shelf_deinit(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_older_store_is_upgraded_and_nothing_is_lost),
        cmocka_unit_test(an_upgraded_store_has_the_tables_of_a_new_one),
        cmocka_unit_test(a_store_of_schema_1_that_has_the_tables_is_upgraded_too),
        cmocka_unit_test(read_only_open_of_an_older_schema_names_the_upgrade),
        cmocka_unit_test(older_store_missing_its_own_tables_is_damaged),
        cmocka_unit_test(a_damaged_effect_of_an_older_store_is_damaged_after_an_upgrade),
        cmocka_unit_test(upgrade_without_memory_leaves_the_store_unchanged),
        cmocka_unit_test(an_upgrade_that_fails_leaves_a_whole_store_of_either_schema),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
