/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* open_test.c - opening a store on PostgreSQL: creation, checks, refusals and their messages. */
/* test: threads */
#include "store/postgres/postgres_test.h"

#include <detent/driver/world.h>
#include <detent/sim.h>
#include <detent/tool/store.h>

#include "lib/proxy.h"
#include "os/os.h"

static void refused(
    const char *url, const struct det_store_options *options, int code, const char *words)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    assert_int_equal(det_store_open_with(url, options, &store, &error), code);
    assert_null(store);
    if (!strstr(error.text, words))
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
}

static void a_store_keeps_its_identity(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL), *again;

    (void)state;
    assert_int_equal(strlen(det_store_identity(store)), 32);
    again = store_at(url, &(struct det_store_options){ .identity = det_store_identity(store) });
    assert_string_equal(det_store_identity(again), det_store_identity(store));
    /* Each opening is a node. */
    assert_string_not_equal(again->owner, store->owner);
    refused(
        url, &(struct det_store_options){ .identity = "0123456789abcdef0123456789abcdef" },
        DET_ERR_FOREIGN, "and not 0123456789abcdef0123456789abcdef");
    det_store_close(again);
    det_store_close(store);
    free(url);
}

static void both_names_of_the_scheme_open_it(void **state)
{
    char *url = det_test_postgres_url(server, NULL), other[256];

    (void)state;
    snprintf(other, sizeof other, "postgresql%s", url + strlen("postgres"));
    det_store_close(store_at(other, NULL));
    free(url);
}

static void tables_are_not_made_when_they_must_be_there(void **state)
{
    char *url = det_test_postgres_url(server, NULL);

    (void)state;
    refused(
        url, &(struct det_store_options){ .must_exist = true }, DET_ERR_NOT_FOUND,
        "contains no store");
    refused(
        url, &(struct det_store_options){ .is_read_only = true }, DET_ERR_NOT_FOUND,
        "create it with \"detent start FILE.fsm ID --store URL\"");
    free(url);
}

static void missing_tables_and_columns_are_listed_in_one_error(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);

    (void)state;
    free(sql(store, "ALTER TABLE @events DROP COLUMN cause"));
    free(sql(store, "DROP TABLE @deferred"));
    free(sql(store, "ALTER TABLE @timers ALTER COLUMN visit TYPE integer"));
    free(sql(store, "ALTER TABLE @timers ADD COLUMN mine text"));
    refused(url, NULL, DET_ERR_FOREIGN, "events.cause (text), timers.visit (bigint), deferred.");
    det_store_close(store);
    free(url);
}

static void another_schema_version_is_refused(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);

    (void)state;
    free(sql(store, "UPDATE @store SET schema = 8"));
    refused(url, NULL, DET_ERR_VERSION, "have schema version 8, this program supports 7");
    free(sql(store, "UPDATE @store SET schema = 0"));
    refused(url, NULL, DET_ERR_VERSION, "have schema version 0");
    free(sql(store, "DELETE FROM @store"));
    refused(url, NULL, DET_ERR_FOREIGN, "is not detent's");
    free(sql(store, "DROP TABLE @store; CREATE TABLE @store (n integer)"));
    refused(url, NULL, DET_ERR_FOREIGN, "is not detent's");
    det_store_close(store);
    free(url);
}

static void a_server_that_may_lose_a_commit_is_refused(void **state)
{
    static const char *const settings[] = { "fsync", "full_page_writes", "synchronous_commit" };
    char *url = det_test_postgres_url(server, NULL), text[64];

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "-c %s=off", settings[i]);
        det_test_postgres_crash(server);
        det_test_postgres_start(server, text);
        snprintf(text, sizeof text, "%s is off", settings[i]);
        refused(url, NULL, DET_ERR_UNSUPPORTED, text);
    }
    det_test_postgres_crash(server);
    det_test_postgres_start(server, NULL);
    det_store_close(store_at(url, NULL));
    free(url);
}

/* tests/e2e/postgres.py has both kinds of server. */
static void a_server_without_data_checksums_is_advised_against(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);
    char *setting = det_test_postgres_execute(server, "SHOW data_checksums");
    bool has_checksums = strcmp(setting, "on") == 0;

    (void)state;
    assert_int_equal(store->advice == NULL, has_checksums);
    if (!has_checksums)
        assert_non_null(strstr(store->advice, "pg_checksums --enable"));
    det_store_close(store);
    free(setting);
    free(url);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    char *url = det_test_postgres_url(server, NULL);

    (void)state;
    refused(
        url, &(struct det_store_options){ .connections = 65 }, DET_ERR_INVALID,
        "at most 64 connections");
    refused(url, &(struct det_store_options){ .timeout = -1 }, DET_ERR_INVALID, "timeout");
    refused(url, &(struct det_store_options){ .timeout = 2 * DET_DAY }, DET_ERR_INVALID, "timeout");
    refused("postgres:shop", NULL, DET_ERR_INVALID, "postgres://user@host/database");
    free(url);
}

static void url_is_checked_without_a_server(void **state)
{
    struct det_error error = { 0 };

    (void)state;
    assert_int_equal(det_store_check_url("postgres://shop@nowhere/orders?schema=a", &error), 0);
    assert_int_equal(
        det_store_check_url("postgres://shop@nowhere/orders?schema=pg_a", &error), DET_ERR_INVALID);
    assert_true(error.text[0]);
}

static int no_poller(struct det_world *world, struct det_poller **ret)
{
    (void)world;
    (void)ret;
    return DET_ERR_LIMIT;
}

static int no_watch(
    struct det_world *world, struct det_poller *poller, int descriptor, unsigned events, void *tag)
{
    (void)world;
    (void)poller;
    (void)descriptor;
    (void)events;
    (void)tag;
    return DET_ERR_NO_MEMORY;
}

static int no_thread(
    struct det_world *world, const char *name, det_thread_fn *run, void *argument,
    struct det_thread **ret)
{
    (void)world;
    (void)name;
    (void)run;
    (void)argument;
    (void)ret;
    return DET_ERR_LIMIT;
}

static void no_wake(void *context)
{
    (void)context;
}

static void system_resource_failures_are_reported(void **state)
{
    struct det_world *world = det_world_real();
    const struct det_world_ops *before = world->ops;
    struct det_world_ops ops = *before;
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL);

    (void)state;
    world->ops = &ops;
    ops.poller_open = no_poller;
    refused(url, NULL, DET_ERR_LIMIT, det_error_text(DET_ERR_LIMIT));
    /* Without memory there are no wake-ups, and no other effect. */
    pad->store->ops->listen(pad->store, no_wake, NULL);
    ops.poller_open = before->poller_open;
    ops.thread_start = no_thread;
    pad->store->ops->listen(pad->store, no_wake, NULL);
    ops.thread_start = before->thread_start;
    ops.poller_watch = no_watch;
    refused(url, NULL, DET_ERR_NO_MEMORY, "");
    world->ops = before;
    assert_int_equal(send(pad, BARE, NULL), 0);
    desk_close(pad);
    free(url);
}

static void unreachable_server_is_reported_without_the_password(void **state)
{
    (void)state;
    refused("postgres://ann:geheim@/postgres?host=/nonexistent", NULL, DET_ERR_IO, "/nonexistent");
    refused(
        "postgres://ann:geheim@127.0.0.1:9/postgres?sslmode=disable",
        &(struct det_store_options){ .timeout = DET_SECOND }, DET_ERR_IO, "127.0.0.1");
}

static void unknown_user_is_reported(void **state)
{
    char url[256];
    struct det_error error = { 0 };
    struct det_store *store;

    (void)state;
    snprintf(
        url, sizeof url, "postgres://nobody_such:geheim@/postgres?host=%s",
        det_test_postgres_host(server));
    assert_int_equal(det_store_open(url, &store, &error), DET_ERR_IO);
    assert_non_null(strstr(error.text, "nobody_such"));
    assert_null(strstr(error.text, "geheim"));
}

/* The URL for a user of that name, made with these rights in the schema of the URL. */
static char *url_of_user(const char *url, const char *user, const char *rights)
{
    const char *at = strchr(url, '@'), *schema = strstr(url, "schema=") + strlen("schema=");
    char *statement, *other;

    assert_true(
        asprintf(
            &statement, "CREATE ROLE %s LOGIN; GRANT %s \"%.*s\" TO %s", user, rights,
            (int)strcspn(schema, "&"), schema, user) > 0);
    free(det_test_postgres_execute(server, statement));
    free(statement);
    assert_true(asprintf(&other, "postgres://%s%s", user, at) > 0);
    return other;
}

static void missing_privilege_is_named(void **state)
{
    char *url = det_test_postgres_url(server, NULL), *connect, *reader;
    struct det_store_options reading = { .is_read_only = true };

    (void)state;
    det_store_close(store_at(url, NULL));
    connect = url_of_user(url, "ann", "CREATE ON SCHEMA");
    refused(connect, &reading, DET_ERR_READ_ONLY, "permission denied for schema");
    refused(connect, &reading, DET_ERR_READ_ONLY, "user ann lacks the privilege");
    reader = url_of_user(url, "bob", "USAGE ON SCHEMA");
    refused(reader, &reading, DET_ERR_READ_ONLY, "permission denied for table store");
    free(reader);
    reader = url_of_user(url, "cid", "USAGE ON SCHEMA");
    free(det_test_postgres_execute(server, "GRANT pg_read_all_data TO cid"));
    det_store_close(store_at(reader, &reading));
    refused(reader, NULL, DET_ERR_READ_ONLY, "user cid has no right to write the table events");
    free(det_test_postgres_execute(server, "GRANT pg_write_all_data TO cid"));
    det_store_close(store_at(reader, NULL));
    free(reader);
    free(connect);
    free(url);
}

static void foreign_table_is_named(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);

    (void)state;
    free(sql(store, "DROP SCHEMA @ CASCADE; CREATE SCHEMA @; CREATE TABLE @instances (a int)"));
    det_store_close(store);
    refused(
        url, &(struct det_store_options){ .is_read_only = true }, DET_ERR_FOREIGN,
        "has a table \"instances\" that is not detent's");
    refused(url, NULL, DET_ERR_FOREIGN, "has a table \"instances\" that is not detent's");
    free(url);
}

static void server_without_tls_is_reported_with_a_remedy(void **state)
{
    char *url = det_test_postgres_url(server, NULL), *through, other[256];
    struct det_test_proxy *proxy = det_test_proxy_open(server);

    (void)state;
    through = det_test_proxy_url(proxy, url);
    snprintf(
        other, sizeof other, "%.*ssslmode=require%s", (int)(strstr(through, "sslmode") - through),
        through, strstr(through, "&gssencmode"));
    refused(other, NULL, DET_ERR_IO, "add sslmode=disable to the URL if that is intended");
    free(through);
    det_test_proxy_close(proxy);
    free(url);
}

static void a_simulated_world_has_no_server(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_sim *sim;

    (void)state;
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL), 0);
    refused(
        url, &(struct det_store_options){ .world = det_sim_world(sim) }, DET_ERR_UNSUPPORTED,
        "simulated");
    det_sim_close(sim);
    free(url);
}

static void read_only_store_refuses_every_change(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct pad *pad = desk_at(url, NULL), reader = { 0 };
    struct det_store_lease lease;
    struct found found;
    size_t count;
    uint64_t pruned;

    (void)state;
    reader.machine = pad->machine;
    reader.store = store_at(url, &(struct det_store_options){ .is_read_only = true });
    assert_int_equal(reader.store->ops->serve(reader.store, reader.machine, NULL), 0);
    assert_int_equal(look_up(&reader, "p", &found), 0);
    assert_int_equal(start(&reader, "q"), DET_ERR_READ_ONLY);
    assert_int_equal(
        reader.store->ops->adopt(reader.store, reader.machine, 1, &count), DET_ERR_READ_ONLY);
    assert_int_equal(
        reader.store->ops->prune(reader.store, pad->instance, 1, 0, &pruned), DET_ERR_READ_ONLY);
    assert_int_equal(
        reader.store->ops->lease(
            reader.store,
            &(struct det_store_lease_change){ DET_LEASE_ACQUIRE, "l", "me", 0, DET_SECOND },
            &lease),
        DET_ERR_READ_ONLY);
    assert_int_equal(
        reader.store->ops->lease(
            reader.store, &(struct det_store_lease_change){ DET_LEASE_READ, "l", NULL, 0, 0 },
            &lease),
        0);
    det_store_close(reader.store);
    desk_close(pad);
    free(url);
}

/* A definition without a name that rows use is refused, with the name and the number of rows. */
static void definition_missing_used_names_is_refused_with_counts(void **state)
{
    struct pad *pad = desk_open();
    struct det_error error = { 0 };

    (void)state;
    free(
        sql(pad->store, "INSERT INTO @definitions VALUES ('pad', 0, 'x', '', 1, '\\x00'); "
                        "UPDATE @instances SET state = 'GONE'"));
    assert_int_equal(pad->store->ops->serve(pad->store, pad->machine, &error), DET_ERR_VERSION);
    assert_non_null(
        strstr(error.text, "has no state \"GONE\", but the store has instances in it: 1;"));
    free(sql(pad->store, "UPDATE @instances SET state = 'A'"));
    free(
        sql(pad->store, "INSERT INTO @timers (instance, name, machine, visit, due, event, owner, "
                        "next_at, checksum) "
                        "VALUES (1, 'later', 'pad', 1, 1, 'LOST', '', 1, '\\x00')"));
    assert_int_equal(pad->store->ops->serve(pad->store, pad->machine, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "no event \"LOST\""));
    desk_close(pad);
}

/* Creating the tables fails at every third allocation. */
static void table_creation_survives_every_failed_allocation(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = NULL;
    uint64_t point = 1;
    int r;

    (void)state;
    do {
        struct det_test_memory memory;

        det_test_memory_init(&memory);
        memory.fail_at = point;
        r = det_store_open_with(
            url, &(struct det_store_options){ .allocator = &memory.allocator }, &store, NULL);
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        if (r == 0)
            det_store_close(store);
        det_test_memory_deinit(&memory);
        point += 3;
    } while (r < 0);
    assert_true(point > 100);
    det_store_close(store_at(url, &(struct det_store_options){ .must_exist = true }));
    free(url);
}

/* The error names the missing parts, or is DET_ERR_NO_MEMORY. */
static void out_of_memory_is_not_reported_as_missing_tables(void **state)
{
    char *url = det_test_postgres_url(server, NULL);
    struct det_store *store = store_at(url, NULL);
    uint64_t point = 1;
    int r;

    (void)state;
    free(sql(store, "DROP TABLE @deferred, @timers, @outbox"));
    det_store_close(store);
    do {
        struct det_test_memory memory;
        struct det_error error = { 0 };

        det_test_memory_init(&memory);
        memory.fail_at = point++;
        r = det_store_open_with(
            url, &(struct det_store_options){ .allocator = &memory.allocator }, &store, &error);
        assert_int_equal(r, memory.failed ? DET_ERR_NO_MEMORY : DET_ERR_FOREIGN);
        assert_true(error.text[0]);
        det_test_memory_deinit(&memory);
    } while (r == DET_ERR_NO_MEMORY);
    assert_true(point > 10);
    free(url);
}

static void missing_privilege_to_create_tables_is_reported(void **state)
{
    char *url = det_test_postgres_url(server, NULL), *guest;
    struct det_store *store = store_at(url, NULL);

    (void)state;
    free(sql(store, "DROP SCHEMA @ CASCADE; CREATE SCHEMA @"));
    det_store_close(store);
    guest = url_of_user(url, "dan", "USAGE ON SCHEMA");
    refused(guest, NULL, DET_ERR_READ_ONLY, "permission denied for schema");
    free(guest);
    free(url);
}

struct opener {
    const char *url;
    struct det_thread *thread;
    struct det_store *store;
    struct det_error error;
    int r;
};

static void run_opener(void *argument)
{
    struct opener *opener = argument;

    opener->r = det_store_open(opener->url, &opener->store, &opener->error);
}

static void concurrent_opens_create_the_tables_once(void **state)
{
    struct det_world *world = det_world_real();
    char *url = det_test_postgres_url(server, NULL);
    struct opener openers[6] = { 0 };

    (void)state;
    for (int i = 0; i < 6; i++) {
        openers[i].url = url;
        assert_int_equal(
            det_thread_start(world, "opener", run_opener, &openers[i], &openers[i].thread), 0);
    }
    for (int i = 0; i < 6; i++)
        det_thread_join(world, openers[i].thread);
    for (int i = 0; i < 6; i++) {
        if (openers[i].r < 0)
            fail_msg("%s", openers[i].error.text);
        assert_string_equal(openers[i].store->identity, openers[0].store->identity);
    }
    for (int i = 0; i < 6; i++)
        det_store_close(openers[i].store);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_keeps_its_identity),
        cmocka_unit_test(both_names_of_the_scheme_open_it),
        cmocka_unit_test(tables_are_not_made_when_they_must_be_there),
        cmocka_unit_test(missing_tables_and_columns_are_listed_in_one_error),
        cmocka_unit_test(another_schema_version_is_refused),
        cmocka_unit_test(a_server_that_may_lose_a_commit_is_refused),
        cmocka_unit_test(a_server_without_data_checksums_is_advised_against),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(url_is_checked_without_a_server),
        cmocka_unit_test(system_resource_failures_are_reported),
        cmocka_unit_test(unreachable_server_is_reported_without_the_password),
        cmocka_unit_test(unknown_user_is_reported),
        cmocka_unit_test(missing_privilege_is_named),
        cmocka_unit_test(foreign_table_is_named),
        cmocka_unit_test(server_without_tls_is_reported_with_a_remedy),
        cmocka_unit_test(a_simulated_world_has_no_server),
        cmocka_unit_test(read_only_store_refuses_every_change),
        cmocka_unit_test(definition_missing_used_names_is_refused_with_counts),
        cmocka_unit_test(table_creation_survives_every_failed_allocation),
        cmocka_unit_test(out_of_memory_is_not_reported_as_missing_tables),
        cmocka_unit_test(missing_privilege_to_create_tables_is_reported),
        cmocka_unit_test(concurrent_opens_create_the_tables_once),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
