/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sqlite_sink_test.c - rows in tables of SQLite: exactly once, rejected alone, other writers. */
#include <sqlite3.h>
#include <sys/stat.h>

#include "connectors/sink_harness_test.h"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *settings_for(const char *more)
{
    static char settings[700];

    (void)snprintf(settings, sizeof settings, "{path: %s/a.db, table: readings%s}", folder, more);
    return settings;
}

/* Runs statements on a connection of its own; the first value of the last one, free() it. */
static char *query(const char *sql)
{
    sqlite3 *database;
    sqlite3_stmt *statement = NULL;
    const char *rest = sql;
    char *value = NULL;

    assert_int_equal(sqlite3_open(path_of("a.db"), &database), SQLITE_OK);
    while (*rest) {
        if (sqlite3_prepare_v2(database, rest, -1, &statement, &rest) != SQLITE_OK)
            fail_msg("%s: %s", sql, sqlite3_errmsg(database));
        free(value);
        value = NULL;
        if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
            value = strdup((const char *)sqlite3_column_text(statement, 0));
        assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    }
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    return value;
}

static void assert_query(const char *sql, const char *expected)
{
    char *value = query(sql);

    assert_string_equal(value ? value : "NULL", expected);
    free(value);
}

static void deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    if (sink_deliver(sink, id, &reading) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static void rows_are_inserted_with_their_types(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);
    struct stat status;

    (void)state;
    sink_open(&sink, &sqlite_sink, reading_record, settings_for(", create: true"));
    deliver(&sink, 1);
    reading.has_note = true;
    memcpy(reading.note, "it's", 5);
    assert_int_equal(sink_deliver(&sink, 2, &reading), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_query(
        "SELECT group_concat(typeof(id)||typeof(celsius)||typeof(at)||typeof(is_valid)||"
        "quote(note)||mood||at, ' ') FROM readings",
        "integerrealtextintegerNULLhot2023-11-14T22:13:20Z "
        "integerrealtextinteger'it''s'hot2023-11-14T22:13:20Z");
    assert_int_equal(stat(path_of("a.db"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void rows_are_in_the_table_once_wherever_it_ends(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &sqlite_sink, reading_record, settings_for(", create: true"));
    deliver(&sink, 1);
    deliver(&sink, 2);
    sink_crash(&sink);
    assert_query("SELECT count(*) FROM readings", "0");
    deliver(&sink, 1);
    deliver(&sink, 2);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    deliver(&sink, 1);
    deliver(&sink, 2);
    deliver(&sink, 3);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_query("SELECT group_concat(id) FROM readings", "1,2,3");
}

static void each_run_and_stream_has_its_own_positions(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(9);

    (void)state;
    sink_open(&sink, &sqlite_sink, reading_record, settings_for(", create: true"));
    assert_int_equal(sink_deliver_from(&sink, 3, 10, &reading), 0);
    assert_int_equal(sink_deliver_from(&sink, 4, 5, &reading), 0);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    assert_int_equal(sink_deliver_from(&sink, 4, 5, &reading), 0);
    assert_int_equal(sink_deliver_from(&sink, 4, 6, &reading), 0);
    assert_int_equal(sink_deliver_from(&sink, 3, 10, &reading), 0);
    assert_int_equal(sink_flush(&sink), 0);
    assert_query("SELECT count(*) FROM readings", "3");
    sink.base.call.run = 2;
    sink_crash(&sink);
    assert_int_equal(sink_deliver_from(&sink, 3, 10, &reading), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_query("SELECT count(*) FROM readings", "4");
}

static void a_key_makes_an_upsert(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &sqlite_sink, reading_record,
        settings_for(", create: true, key: [name], columns: {name: sensor, last: id}"));
    for (uint64_t id = 1; id <= 25; id++)
        deliver(&sink, id);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_query(
        "SELECT count(*) || ' ' || max(last) || ' ' || min(last) FROM readings", "10 25 16");
}

static void a_row_that_does_not_fit_is_rejected_alone(void **state)
{
    struct sink_harness sink;
    struct reading large = reading_of(UINT64_MAX);

    (void)state;
    free(query("CREATE TABLE readings (id INTEGER PRIMARY KEY CHECK (id <> 7), sensor TEXT)"));
    sink_open(
        &sink, &sqlite_sink, reading_record, settings_for(", columns: {id: id, sensor: sensor}"));
    for (uint64_t id = 6; id <= 8; id++) {
        struct reading reading = reading_of(id);

        assert_int_equal(sink_deliver(&sink, id, &reading) < 0, id == 7);
    }
    assert_true(sink_deliver(&sink, 9, &large) < 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_int_equal(sink.base.error_count, 2);
    assert_non_null(strstr(sink.base.errors[0], "CHECK constraint failed"));
    assert_non_null(strstr(sink.base.errors[1], "largest INTEGER of SQLite"));
    assert_int_equal(sink.rejected[0], 7);
    assert_query("SELECT group_concat(id) FROM readings", "6,8");
}

static void a_table_that_does_not_fit_is_refused_with_a_remedy(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_init(&sink, &sqlite_sink, reading_record, settings_for(""));
    assert_int_equal(sink_start(&sink), DET_ERR_INVALID);
    assert_non_null(strstr(sink.base.failure.text, "no such table: readings"));
    assert_non_null(strstr(sink.base.failure.text, "create: true"));
    sink_close(&sink);
    det_test_write_file(path_of("a.db"), "not a database at all, but long enough for a header", 51);
    sink_init(&sink, &sqlite_sink, reading_record, settings_for(""));
    assert_int_equal(sink_start(&sink), DET_ERR_FOREIGN);
    assert_non_null(strstr(sink.base.failure.text, "left as it is"));
    sink_close(&sink);
}

static void a_busy_database_does_not_block_a_cancel(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);
    sqlite3 *other;

    (void)state;
    sink_open(&sink, &sqlite_sink, reading_record, settings_for(", create: true"));
    assert_int_equal(sqlite3_open(path_of("a.db"), &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    atomic_store(&sink.base.is_cancelled, true);
    assert_int_equal(sink_deliver(&sink, 1, &reading), DET_ERR_CANCELLED);
    atomic_store(&sink.base.is_cancelled, false);
    assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sink_deliver(&sink, 1, &reading), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_query("SELECT count(*) FROM readings", "1");
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&sqlite_sink, reading_record, "{table: a}", "path");
    sink_refuses(&sqlite_sink, reading_record, "{path: a.db}", "table");
    sink_refuses(
        &sqlite_sink, reading_record, "{path: a.db, table: 'a; DROP TABLE b'}",
        "is not a name of a table");
    sink_refuses(
        &sqlite_sink, reading_record, "{path: a.db, table: a, columns: {'x\"y': id}}",
        "is not a name of a column");
    sink_refuses(
        &sqlite_sink, reading_record, "{path: a.db, table: a, columns: {x: idd}}",
        "unknown field 'idd' for the column 'x'; the fields are id, sensor");
    sink_refuses(
        &sqlite_sink, reading_record, "{path: a.db, table: a, key: [b]}",
        "'b' is not a column that is written");
    sink_refuses(
        &sqlite_sink, reading_record, "{path: a.db, table: a, columns: {x: id, X: id}}",
        "duplicate column 'X'");
    sink_refuses(&sqlite_sink, reading_record, "{path: a.db, table: a, columns: []}", "a map");
}

static int write_table(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);
    int r;

    (void)argument;
    sink_init(&sink, &sqlite_sink, reading_record, settings_for(", create: true, key: [id, at]"));
    sink.base.call.allocator = &memory->allocator;
    sink.base.call.run = memory->fail_at + 1;
    r = sink_start(&sink);
    for (uint64_t i = 1; i < 5 && r == 0; i++)
        r = sink_deliver(&sink, i, &reading);
    if (r == 0)
        r = sink_flush(&sink);
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(write_table, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_inserted_with_their_types),
        TEST(rows_are_in_the_table_once_wherever_it_ends),
        TEST(each_run_and_stream_has_its_own_positions),
        TEST(a_key_makes_an_upsert),
        TEST(a_row_that_does_not_fit_is_rejected_alone),
        TEST(a_table_that_does_not_fit_is_refused_with_a_remedy),
        TEST(a_busy_database_does_not_block_a_cancel),
        TEST(settings_are_checked),
        TEST(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
