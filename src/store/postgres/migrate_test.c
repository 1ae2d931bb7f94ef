/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* migrate_test.c - the suite of migrating, over a schema of a server. */
/* test: sanitized */
#include "lib/postgres.h"
#include "store/migrate_cases.h"

static void place(char url[URL_MAX])
{
    char *made = det_test_postgres_url(det_test_server, NULL);

    (void)snprintf(url, URL_MAX, "%s", made);
    free(made);
}

static void leave(void)
{
}

static void spoil(const char *url, const char *table)
{
    const char *schema = strstr(url, "schema=");
    char text[200];

    assert_non_null(schema);
    schema += strlen("schema=");
    (void)snprintf(
        text, sizeof text, "UPDATE %.*s.%s SET checksum = checksum + 1", (int)strcspn(schema, "&"),
        schema, table);
    free(det_test_postgres_execute(det_test_server, text));
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

int main(void)
{
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(while_a_node_lives_nothing_is_renamed),
    };
    int failed = cmocka_run_group_tests(migrate_cases, det_test_server_open, det_test_server_close);

    return failed + cmocka_run_group_tests(own, det_test_server_open, det_test_server_close);
}
