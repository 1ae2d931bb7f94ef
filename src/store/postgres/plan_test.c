/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* plan_test.c - the statements of a get, a send, a list and a history use indexes, with any
 * statistics of the tables. */
#include "store/postgres/postgres_test.h"

#include "store/postgres/plan_test.h"

/* As the PROLOGUE of each transaction says. */
#define SETTINGS                                            \
    "SET enable_seqscan = off; SET enable_hashjoin = off; " \
    "SET enable_mergejoin = off; "

/* A store with so many rows in the tables that grow, of which nothing but the plans is asked. */
static void fill_tables(struct det_store *store)
{
    free(sql(
        store,
        "INSERT INTO @instances (key, machine, id, version, state, sequence, visit, transitions, "
        "started_at, moved_at, stopped, data, hash, checksum) SELECT n, 'pad', 'i' || n, 1, 'x', "
        "9, "
        "1, 1, 1, 1, false, '', '', 0 FROM generate_series(1000, 21000) n; "
        "INSERT INTO @events (instance, sequence, version, visit, from_state, to_state, outcome, "
        "choice, timeout, at, hash) SELECT 1000 + n / 100, n % 100 + 1, 1, 1, 'x', 'x', 'stay', 0, "
        "false, 1, '' FROM generate_series(0, 20000) n; "
        "INSERT INTO @answers (instance, event_id, outcome, state, sequence, visit, at, checksum) "
        "SELECT 1000 + n, 'e', 'stay', 'x', 1, 1, 1, '' FROM generate_series(0, 20000) n; "
        "ANALYZE @instances; ANALYZE @events; ANALYZE @answers"));
}

static void assert_looks_up(
    struct det_store *store, enum postgres_statement_id id, const char *arguments)
{
    char *plan = plan_of(store, id, SETTINGS, arguments), *rest = plan;
    unsigned scans = 0;

    while (next_scan(&rest, id, NULL))
        scans++;
    assert_true(scans > 0);
    free(plan);
}

static void assert_all_look_up(struct det_store *store)
{
    assert_looks_up(store, POSTGRES_LOAD_HEAD, "'pad', 'i1000'");
    assert_looks_up(store, POSTGRES_LOAD_ROWS, "'pad', 'i1000'");
    assert_looks_up(store, POSTGRES_LOAD_HISTORY, "'pad', 'i1000'");
    assert_looks_up(store, POSTGRES_ANSWER_FIND, "1000, 'e'");
    assert_looks_up(store, POSTGRES_EVENTS_AFTER, "1000, 5, 100");
    assert_looks_up(store, POSTGRES_START_READ, "1000");
    assert_looks_up(store, POSTGRES_SNAPSHOT_READ, "1000");
    assert_looks_up(store, POSTGRES_LIST, "'pad', 'i1000', 'x', 0, 0, 100, 0");
    assert_looks_up(store, POSTGRES_DUE, "'pad', 100, 0, 0, 'owner'");
    assert_looks_up(store, POSTGRES_LOCK_LOOK, "'pad', 'i1000'");
    assert_looks_up(store, POSTGRES_LOCK_ACQUIRE, "'pad', 'i1000', 'me', 1000");
    assert_looks_up(store, POSTGRES_PRUNE_EVENTS, "1000, 50");
    assert_looks_up(store, POSTGRES_PRUNE_ANSWERS, "1000, 50");
    assert_looks_up(store, POSTGRES_LOG, "1, 1, 1, 100");
    assert_looks_up(store, POSTGRES_LOG_BACK, "9, 9, 9, 100");
}

/* Plans are kept for as long as a connection, so none may be good only for the statistics that it
 * was made with. */
static void reads_and_sends_use_indexes_whatever_the_statistics(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);

    (void)state;
    assert_all_look_up(store);
    fill_tables(store);
    assert_all_look_up(store);
    det_store_close(store);
    free(url);
}

/* The test above uses these settings. */
static void transactions_are_planned_without_sequential_scans(void **state)
{
    static const char *const settings[] = { "enable_seqscan", "enable_hashjoin",
                                            "enable_mergejoin" };
    char *url = det_test_postgres_url(server, NULL), text[80];
    struct det_store *store = store_at(url, NULL);
    const char *prologue = postgres_store_of(store)->statements[POSTGRES_PROLOGUE].text;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "set_config('%s', 'off', true)", settings[i]);
        assert_non_null(strstr(prologue, text));
    }
    det_store_close(store);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_sends_use_indexes_whatever_the_statistics),
        cmocka_unit_test(transactions_are_planned_without_sequential_scans),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
