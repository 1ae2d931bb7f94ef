/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_test.c - the log while transactions are under way: a reader stops before a position that may
 * still be committed, and does not wait for one that was rolled back. */
#include <detent/tool/store.h>

#include "store/postgres/postgres_test.h"

/* A transaction of another program, which stays open. */
struct writer {
    PGconn *pq;
    const struct postgres_store *store;
};

static void run(struct writer *writer, const char *text)
{
    char *qualified = det_postgres_qualify(writer->store, text);
    PGresult *result = PQexec(writer->pq, qualified);

    assert_non_null(qualified);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", qualified, PQerrorMessage(writer->pq));
    PQclear(result);
    det_free_string(writer->store->store.allocator, qualified);
}

static struct writer writer_open(struct pad *pad)
{
    struct writer writer = { PQconnectdb(det_test_postgres_conninfo(server)),
                             postgres_store_of(pad->store) };

    assert_int_equal(PQstatus(writer.pq), CONNECTION_OK);
    return writer;
}

static void writer_close(struct writer *writer)
{
    PQfinish(writer->pq);
}

/* Begins, and has a position. */
static void hold(struct writer *writer, int sequence)
{
    char text[400];

    snprintf(
        text, sizeof text,
        "BEGIN; INSERT INTO @events (instance, sequence, version, visit, from_state, to_state, "
        "event, outcome, choice, timeout, at, hash) SELECT key, %d, 1, 1, 'A', 'A', 'BARE', "
        "'stay', "
        "0, false, 1, '' FROM @instances WHERE id = 'p'",
        sequence);
    run(writer, text);
}

static int write_sequence(void *context, const struct det_store_logged *row)
{
    char *text = context;
    size_t length = strlen(text);

    snprintf(text + length, 200 - length, "%d ", (int)row->sequence);
    return 0;
}

/* Reads the sequences after `*after`, and advances it. */
static const char *read_on(struct det_store *store, uint64_t *after)
{
    static char text[200];
    const struct det_store_log_query query = { .after = *after };

    text[0] = 0;
    assert_int_equal(det_store_log(store, &query, write_sequence, text, after), 0);
    return text;
}

static const char *read_back(struct det_store *store)
{
    static char text[200];
    const struct det_store_log_query query = { .is_backward = true };
    uint64_t next;

    text[0] = 0;
    assert_int_equal(det_store_log(store, &query, write_sequence, text, &next), 0);
    return text;
}

static void log_reader_stops_before_an_open_transaction(void **state)
{
    struct pad *pad = desk_open();
    struct writer writer = writer_open(pad);
    uint64_t after = 0, fresh = 0;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    hold(&writer, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "0 1 ");
    assert_int_equal(after, 2);
    assert_string_equal(read_on(pad->store, &after), "");
    assert_int_equal(after, 2);
    run(&writer, "COMMIT");
    assert_string_equal(read_on(pad->store, &after), "1001 2 3 ");
    assert_string_equal(read_on(pad->store, &fresh), "0 1 1001 2 3 ");
    assert_int_equal(after, fresh);
    writer_close(&writer);
    desk_close(pad);
}

static void log_reader_skips_rolled_back_positions(void **state)
{
    struct pad *pad = desk_open();
    struct writer writer = writer_open(pad);
    uint64_t after = 0;

    (void)state;
    hold(&writer, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "0 ");
    run(&writer, "ROLLBACK");
    assert_string_equal(read_on(pad->store, &after), "1 ");
    assert_int_equal(after, 3);
    writer_close(&writer);
    desk_close(pad);
}

/* Each who came since has ended before the first one, and one is always there. */
static void log_gap_waits_only_for_earlier_transactions(void **state)
{
    struct pad *pad = desk_open();
    struct writer first = writer_open(pad), second = writer_open(pad);
    uint64_t after = 0;

    (void)state;
    hold(&first, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "0 ");
    hold(&second, 1002);
    run(&first, "ROLLBACK");
    assert_string_equal(read_on(pad->store, &after), "1 ");
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "");
    run(&second, "COMMIT");
    assert_string_equal(read_on(pad->store, &after), "1002 2 ");
    writer_close(&first);
    writer_close(&second);
    desk_close(pad);
}

static void unrelated_long_transaction_does_not_block_the_log(void **state)
{
    struct pad *pad = desk_open();
    struct writer elsewhere = writer_open(pad), writer = writer_open(pad);
    uint64_t after = 0;

    (void)state;
    run(&elsewhere, "BEGIN; CREATE TABLE @elsewhere (n integer); INSERT INTO @elsewhere VALUES (1);"
                    "SELECT count(*) FROM @events");
    hold(&writer, 1001);
    run(&writer, "ROLLBACK");
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "0 1 ");
    run(&elsewhere, "ROLLBACK");
    writer_close(&elsewhere);
    writer_close(&writer);
    desk_close(pad);
}

static void log_end_is_before_any_open_transaction(void **state)
{
    const struct det_store_log_query end = { .is_backward = true, .limit = 1, .wants_end = true };
    struct pad *pad = desk_open();
    struct writer writer = writer_open(pad);
    uint64_t after = 0, next;
    char text[200] = "";

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_back(pad->store), "1 0 ");
    hold(&writer, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_back(pad->store), "1 0 ");
    assert_int_equal(det_store_log(pad->store, &end, write_sequence, text, &next), DET_ERR_BUSY);
    run(&writer, "COMMIT");
    assert_int_equal(det_store_log(pad->store, &end, write_sequence, text, &next), 0);
    assert_string_equal(text, "2 ");
    assert_string_equal(read_back(pad->store), "2 1001 1 0 ");
    assert_string_equal(read_on(pad->store, &after), "0 1 1001 2 ");
    writer_close(&writer);
    desk_close(pad);
}

/* It has seen nothing final yet: that is not an empty log. */
static void new_opening_waits_for_an_open_transaction_in_the_log(void **state)
{
    const struct det_store_log_query query = { .is_backward = true };
    char *url = det_test_postgres_url(server, NULL), text[200] = "";
    struct pad *pad = desk_at(url, NULL);
    struct writer writer = writer_open(pad);
    struct det_store *other = store_at(url, NULL);
    uint64_t next;

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    hold(&writer, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(det_store_log(other, &query, write_sequence, text, &next), DET_ERR_BUSY);
    assert_string_equal(text, "");
    run(&writer, "ROLLBACK");
    assert_string_equal(read_back(other), "2 1 0 ");
    det_store_close(other);
    writer_close(&writer);
    desk_close(pad);
    free(url);
}

/* A start has a position, and a reader waits for it like for an event. */
static void log_waits_for_an_uncommitted_start(void **state)
{
    struct pad *pad = desk_open();
    struct writer writer = writer_open(pad);
    uint64_t after = 0;

    (void)state;
    run(&writer, "BEGIN; INSERT INTO @starts (instance, position, version, state, data, at, "
                 "checksum) "
                 "SELECT key + 1000000, nextval('@events_position_seq'), 1, 'A', data, 1, '\\x00' "
                 "FROM @instances WHERE id = 'p'");
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_string_equal(read_on(pad->store, &after), "0 ");
    run(&writer, "ROLLBACK");
    assert_string_equal(read_on(pad->store, &after), "1 ");
    writer_close(&writer);
    desk_close(pad);
}

static int ignore_counted(void *context, const struct det_store_counted *row)
{
    (void)context;
    return row->machine ? 0 : -1;
}

/* The right to read the tables only, without the sequence. */
static void read_only_user_reads_past_a_log_gap(void **state)
{
    const struct det_store_options options = { .is_read_only = true };
    char *url = det_test_postgres_url(server, NULL), *other;
    struct pad *pad = desk_at(url, NULL);
    struct writer writer = writer_open(pad);
    struct det_store *store;
    uint64_t after = 0;

    (void)state;
    run(&writer, "CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA @ TO clerk;"
                 "GRANT SELECT ON ALL TABLES IN SCHEMA @ TO clerk");
    hold(&writer, 1001);
    run(&writer, "ROLLBACK");
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_true(asprintf(&other, "postgres://clerk%s", strchr(url, '@')) > 0);
    store = store_at(other, &options);
    assert_string_equal(read_on(store, &after), "0 1 ");
    assert_string_equal(read_back(store), "1 0 ");
    assert_int_equal(det_store_count(store, ignore_counted, NULL, &after), 0);
    assert_true(after > 0);
    det_store_close(store);
    writer_close(&writer);
    desk_close(pad);
    free(other);
    free(url);
}

static int read_all(struct det_test_memory *memory, void *argument)
{
    const struct det_store_options options = { .allocator = &memory->allocator };
    const struct det_store_log_query back = { .is_backward = true };
    struct det_store *store = NULL;
    char text[200] = "";
    uint64_t next;
    int r;

    r = det_store_open_with(argument, &options, &store, NULL);
    if (r == 0)
        r = det_store_log(store, NULL, write_sequence, text, &next);
    if (r == 0)
        assert_string_equal(text, "0 1 ");
    text[0] = 0;
    if (r == 0)
        r = det_store_log(store, NULL, write_sequence, text, &next);
    text[0] = 0;
    if (r == 0)
        r = det_store_log(store, &back, write_sequence, text, &next);
    if (r == DET_ERR_BUSY)
        r = 0;
    if (r == 0)
        r = det_store_count(store, ignore_counted, NULL, &next);
    det_store_close(store);
    return r;
}

/* With a gap and an active writer, whose name must be stored. */
static void log_reading_reports_failed_allocations(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL);
    struct writer writer = writer_open(pad);

    (void)state;
    assert_int_equal(send(pad, BARE, NULL), 0);
    hold(&writer, 1001);
    assert_int_equal(send(pad, BARE, NULL), 0);
    det_test_each_failure(read_all, url);
    run(&writer, "ROLLBACK");
    writer_close(&writer);
    desk_close(pad);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_reader_stops_before_an_open_transaction),
        cmocka_unit_test(log_reader_skips_rolled_back_positions),
        cmocka_unit_test(log_gap_waits_only_for_earlier_transactions),
        cmocka_unit_test(unrelated_long_transaction_does_not_block_the_log),
        cmocka_unit_test(log_end_is_before_any_open_transaction),
        cmocka_unit_test(new_opening_waits_for_an_open_transaction_in_the_log),
        cmocka_unit_test(log_waits_for_an_uncommitted_start),
        cmocka_unit_test(read_only_user_reads_past_a_log_gap),
        cmocka_unit_test(log_reading_reports_failed_allocations),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
