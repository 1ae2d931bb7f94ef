/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_sink_test.c - rows in tables of a real PostgreSQL: exactly once, also when connections
 * are cut, servers crash, and an older process is late. */
#include "connectors/sink_harness_test.h"
#include "lib/postgres.h"

static char *own_schema;

/* Each test has a schema, which is first in the search path. */
static int make_schema(void **state)
{
    static unsigned number;
    char text[120];

    (void)state;
    own_schema = malloc(32);
    (void)snprintf(own_schema, 32, "sink%u", ++number);
    (void)snprintf(text, sizeof text, "CREATE SCHEMA %s", own_schema);
    free(det_test_postgres_execute(det_test_server, text));
    return 0;
}

static int drop_schema(void **state)
{
    (void)state;
    free(own_schema);
    return 0;
}

static const char *settings_at(const char *host, const char *more)
{
    static char settings[900];
    char *url = det_test_postgres_url(det_test_server, NULL);
    const char *user = strstr(url, "://") + 3, *at = strpbrk(url, "?");

    (void)user;
    (void)snprintf(
        settings, sizeof settings,
        "{url: 'postgres:%.*s?host=%s&options=-csearch_path%%3D%s', table: readings%s}",
        (int)(at - strchr(url, ':') - 1), strchr(url, ':') + 1, host, own_schema, more);
    free(url);
    return settings;
}

static const char *settings_for(const char *more)
{
    return settings_at(det_test_postgres_host(det_test_server), more);
}

static void assert_query(const char *sql, const char *expected)
{
    char text[600];
    char *value;

    (void)snprintf(text, sizeof text, "SET search_path = %s; %s", own_schema, sql);
    value = det_test_postgres_execute(det_test_server, text);
    assert_string_equal(value ? value : "NULL", expected);
    free(value);
}

static void execute(const char *sql)
{
    char text[600];

    (void)snprintf(text, sizeof text, "SET search_path = %s; %s", own_schema, sql);
    free(det_test_postgres_execute(det_test_server, text));
}

static void deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    if (sink_deliver(sink, id, &reading) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static void flush(struct sink_harness *sink)
{
    if (sink_flush(sink) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static void rows_are_copied_with_their_types(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(UINT64_MAX);

    (void)state;
    sink_open(&sink, &postgres_sink, reading_record, settings_for(", create: true"));
    deliver(&sink, 1);
    reading.has_note = true;
    memcpy(reading.note, "a\tb\\N\n'", 8);
    assert_int_equal(sink_deliver(&sink, 2, &reading), 0);
    flush(&sink);
    sink_close(&sink);
    assert_query(
        "SELECT string_agg(id || '/' || celsius || '/' || coalesce(note, '-') || '/' || mood || "
        "'/' || is_valid || '/' || extract(epoch FROM at)::int8, ' ' ORDER BY id) FROM readings",
        "1/20.5/-/hot/true/1700000000 18446744073709551615/20.5/a\tb\\N\n'/hot/true/1700000000");
}

static void nested_values_and_bytes_fit(void **state)
{
    struct sink_harness sink;
    struct parcel parcel = { .id = -5,
                             .place = { .city = "Ulm" },
                             .data = { 3, { 1, 0, 255 } },
                             .tags_count = 1,
                             .tags = { "a\"\\b" } };

    (void)state;
    sink_open(&sink, &postgres_sink, parcel_record, settings_for(", create: true"));
    assert_int_equal(sink_deliver(&sink, 1, &parcel), 0);
    flush(&sink);
    sink_close(&sink);
    assert_query(
        "SELECT id || place_city || encode(data, 'hex') || (tags ->> 0) FROM readings",
        "-5Ulm0100ffa\"\\b");
}

static void rows_are_in_the_table_once_wherever_it_ends(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &postgres_sink, reading_record, settings_for(", create: true"));
    deliver(&sink, 1);
    deliver(&sink, 2);
    sink_crash(&sink);
    deliver(&sink, 1);
    deliver(&sink, 2);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    for (uint64_t id = 1; id <= 3; id++)
        deliver(&sink, id);
    flush(&sink);
    assert_query("SELECT string_agg(id::text, ',' ORDER BY id) FROM readings", "1,2,3");
    sink.base.call.run++;
    sink_crash(&sink);
    deliver(&sink, 3);
    flush(&sink);
    sink_close(&sink);
    assert_query("SELECT string_agg(id::text, ',' ORDER BY id) FROM readings", "1,2,3,3");
}

static void an_upsert_keeps_the_last_row_of_a_key(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &postgres_sink, reading_record,
        settings_for(", create: true, key: [sensor], columns: {sensor: sensor, last: id}"));
    for (uint64_t id = 1; id <= 25; id++)
        deliver(&sink, id);
    flush(&sink);
    for (uint64_t id = 26; id <= 27; id++)
        deliver(&sink, id);
    flush(&sink);
    sink_close(&sink);
    assert_query(
        "SELECT count(*) || ' ' || max(last) || ' ' || min(last) FROM readings", "10 27 18");
}

static void rows_that_do_not_fit_are_rejected_alone(void **state)
{
    struct sink_harness sink;

    (void)state;
    execute("CREATE TABLE readings (id int8 PRIMARY KEY CHECK (id % 7 <> 0), sensor varchar(2))");
    sink_open(
        &sink, &postgres_sink, reading_record, settings_for(", columns: {id: id, sensor: sensor}"));
    for (uint64_t id = 1; id <= 30; id++)
        deliver(&sink, id);
    flush(&sink);
    assert_int_equal(sink.base.error_count, 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(sink.rejected[i], 7 * (i + 1));
    assert_non_null(strstr(sink.base.errors[0], "check constraint"));
    assert_query("SELECT count(*)::text FROM readings", "26");
    deliver(&sink, 31);
    flush(&sink);
    sink_close(&sink);
    assert_query("SELECT count(*)::text FROM readings", "27");
}

static void a_late_transaction_of_an_older_process_fails(void **state)
{
    struct sink_harness old, new;

    (void)state;
    sink_open(&old, &postgres_sink, reading_record, settings_for(", create: true"));
    deliver(&old, 1);
    sink_open(&new, &postgres_sink, reading_record, settings_for(", create: true"));
    deliver(&new, 1);
    flush(&new);
    assert_int_equal(sink_flush(&old), DET_ERR_INVALID);
    assert_non_null(strstr(old.base.failure.text, "another connection has taken over"));
    sink_close(&old);
    sink_close(&new);
    assert_query("SELECT count(*)::text FROM readings", "1");
}

static void a_crashed_server_loses_and_repeats_nothing(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &postgres_sink, reading_record, settings_for(", create: true, key: [id]"));
    deliver(&sink, 1);
    flush(&sink);
    det_test_postgres_crash(det_test_server);
    deliver(&sink, 2);
    det_test_postgres_start(det_test_server, NULL);
    flush(&sink);
    sink_close(&sink);
    assert_query("SELECT string_agg(id::text, ',' ORDER BY id) FROM readings", "1,2");
}

static void a_lost_server_fails_the_stage_after_a_while(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(
        &sink, &postgres_sink, reading_record, settings_for(", create: true, retry_for: 1ms"));
    deliver(&sink, 1);
    det_test_postgres_crash(det_test_server);
    assert_int_equal(sink_flush(&sink), DET_ERR_IO);
    assert_non_null(strstr(sink.base.failure.text, "resume the flow"));
    det_test_postgres_start(det_test_server, NULL);
    sink_close(&sink);
}

static void a_lost_server_does_not_block_a_cancel(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &postgres_sink, reading_record, settings_for(", create: true, retry_for: 1h"));
    deliver(&sink, 1);
    det_test_postgres_crash(det_test_server);
    atomic_store(&sink.base.is_cancelled, true);
    assert_int_equal(sink_flush(&sink), DET_ERR_CANCELLED);
    det_test_postgres_start(det_test_server, NULL);
    sink_close(&sink);
}

static void what_cannot_work_is_refused_with_a_remedy(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_init(&sink, &postgres_sink, reading_record, settings_for(""));
    assert_int_equal(sink_start(&sink), 0);
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), DET_ERR_INVALID);
    assert_non_null(strstr(sink.base.failure.text, "create: true"));
    sink_close(&sink);
    sink_init(
        &sink, &postgres_sink, reading_record,
        settings_at("/nowhere", ", password_environment: NO_SUCH_VARIABLE"));
    assert_true(sink_start(&sink) < 0);
    sink_close(&sink);
    sink_init(&sink, &postgres_sink, reading_record, settings_at("/nowhere", ""));
    assert_int_equal(sink_start(&sink), DET_ERR_IO);
    assert_non_null(strstr(sink.base.failure.text, "/nowhere"));
    sink_close(&sink);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&postgres_sink, reading_record, "{table: a}", "url");
    sink_refuses(
        &postgres_sink, reading_record, "{url: 'mysql://x', table: a}",
        "not the URL of a PostgreSQL database");
    sink_refuses(
        &postgres_sink, reading_record, "{url: 'postgres://me:hunter2@host/x', table: a}",
        "the URL has a password");
    sink_refuses(
        &postgres_sink, reading_record, "{url: 'postgres://host/x', table: a.b.c}",
        "is not a name of a table");
    sink_refuses(
        &postgres_sink, reading_record, "{url: 'postgres://host/x', table: a, retry_for: soon}",
        "retry_for");
}

static int write_table(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    sink_init(
        &sink, &postgres_sink, reading_record,
        settings_for(", create: true, key: [id, at], retry_for: 1ms"));
    sink.base.call.allocator = &memory->allocator;
    sink.base.call.run = memory->fail_at + 1;
    r = sink_start(&sink);
    for (uint64_t i = 1; i < 100 && r == 0; i++) {
        struct reading reading = reading_of(i);

        r = sink_deliver(&sink, i, &reading);
    }
    if (r == 0)
        r = sink_flush(&sink);
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_some_failures(write_table, NULL, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_schema, drop_schema)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_copied_with_their_types),
        TEST(nested_values_and_bytes_fit),
        TEST(rows_are_in_the_table_once_wherever_it_ends),
        TEST(an_upsert_keeps_the_last_row_of_a_key),
        TEST(rows_that_do_not_fit_are_rejected_alone),
        TEST(a_late_transaction_of_an_older_process_fails),
        TEST(a_crashed_server_loses_and_repeats_nothing),
        TEST(a_lost_server_fails_the_stage_after_a_while),
        TEST(a_lost_server_does_not_block_a_cancel),
        TEST(what_cannot_work_is_refused_with_a_remedy),
        TEST(settings_are_checked),
        TEST(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, det_test_server_open, det_test_server_close);
}
