/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_migrate_test.c - migration of a PostgreSQL store. */
#include "store/migrate_cases.h"

#include "base/memory.h"
#include "lib/postgres.h"
#include "store/postgres.h"

static struct det_test_postgres *server;

static void new_url(char *target, size_t capacity)
{
    char *url = det_test_postgres_url(server, NULL);

    (void)snprintf(target, capacity, "%s", url);
    free(url);
}

static int open_server(void **state)
{
    (void)state;
    server = det_test_postgres_open();
    return 0;
}

static int close_server(void **state)
{
    (void)state;
    det_test_postgres_close(server);
    return 0;
}

static void while_a_node_lives_nothing_is_renamed(void **state)
{
    struct fixture *f = open_fixture(NEW);
    struct det_store_lease_change change = {
        .verb = DET_LEASE_ACQUIRE, .name = "node/x", .owner = "x", .span = DET_HOUR
    };
    struct det_store_lease lease;
    struct det_error error = { 0 };
    uint64_t rows;

    (void)state;
    open_store(f, false);
    assert_int_equal(f->store->ops->lease(f->store, &change, &lease), 0);
    assert_int_equal(migrate(f, renames, 5, &rows, &error), DET_ERR_LOCKED);
    assert_non_null(strstr(error.text, "1 program is at work on the store; stop it first"));
    change.verb = DET_LEASE_RELEASE;
    change.token = lease.token;
    assert_int_equal(f->store->ops->lease(f->store, &change, &lease), 0);
    assert_int_equal(migrate(f, renames, 5, &rows, &error), 0);
    close_fixture(f);
}

static void a_damaged_row_stops_it_and_nothing_is_renamed(void **state)
{
    struct fixture *f = open_fixture(NEW);
    struct det_error error = { 0 };
    uint64_t rows;
    char *text;

    (void)state;
    open_store(f, false);
    text = det_postgres_qualify(
        postgres_store_of(f->store), "UPDATE @instances SET visit = 77 WHERE id = 'o-1'");
    free(det_test_postgres_execute(server, text));
    det_free_string(NULL, text);
    assert_int_equal(migrate(f, renames, 5, &rows, &error), DET_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "o-1 is damaged"));
    assert_int_equal(f->store->ops->serve(f->store, det_spec_machine(f->old), NULL), 0);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MIGRATE_CASES,
        cmocka_unit_test(while_a_node_lives_nothing_is_renamed),
        cmocka_unit_test(a_damaged_row_stops_it_and_nothing_is_renamed),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
