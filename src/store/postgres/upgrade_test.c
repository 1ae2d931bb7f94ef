/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upgrade_test.c - tables of an older schema: nothing in them is lost, and an upgrade that
 * does not come to its end leaves them as they were. */
/* test: threads */
/* test: sanitized */
#include "store/postgres/postgres_test.h"

#include <pthread.h>

#include "lib/patience.h"
#include "lib/proxy.h"
#include "store/upgrade_cases.h"

/* The frozen store in a separate schema. */
struct old {
    char *url;
    struct postgres_store named; /* for its name only */
    struct pad pad;
};

static char *ask(struct old *old, const char *text)
{
    return sql(&old->named.store, text);
}

static void assert_old_schema(struct old *old, const char *wanted)
{
    char *found = ask(old, "SELECT schema::text FROM @store");

    assert_string_equal(found, wanted);
    free(found);
}

static void old_init_of(struct old *old, int schema)
{
    char name[32], *text;

    snprintf(name, sizeof name, "%d.postgres.sql", schema);
    text = old_store(name);
    memset(old, 0, sizeof *old);
    old->url = det_test_postgres_url(server, NULL);
    assert_int_equal(
        det_postgres_url_init(
            &old->named.url, strstr(old->url, "//"), &(struct det_store_options){ 0 }, NULL),
        0);
    free(ask(old, text));
    free(text);
    old->pad.machine = pad_machine(1);
}

static void old_init(struct old *old)
{
    old_init_of(old, 1);
}

static void old_deinit(struct old *old)
{
    det_store_close(old->pad.store);
    det_machine_close(old->pad.machine);
    det_postgres_url_deinit(&old->named.url);
    free(old->url);
}

static void old_open(struct old *old)
{
    old->pad.store = store_at(old->url, NULL);
    assert_int_equal(old->pad.store->ops->serve(old->pad.store, old->pad.machine, NULL), 0);
}

static void every_older_store_is_upgraded_and_nothing_is_lost(void **state)
{
    struct old old;

    (void)state;
    for (int schema = 1; schema < POSTGRES_SCHEMA; schema++) {
        old_init_of(&old, schema);
        old_open(&old);
        assert_old_schema(&old, "7");
        check_old_store(&old.pad);
        check_old_log(&old.pad, schema);
        go_on_with_old_store(&old.pad);
        check_new_log(&old.pad, schema);
        old_deinit(&old);
    }
}

static const char describe[] =
    "SELECT string_agg(x, E'\\n' ORDER BY x) FROM (SELECT c.table_name || ' ' || c.column_name "
    "|| ' ' || c.data_type || ' ' || c.is_nullable || ' ' || coalesce(c.collation_name, '') || ' ' "
    "|| c.is_identity AS x FROM information_schema.columns c WHERE '\"' || c.table_schema || '\"' "
    "= '@' UNION ALL SELECT replace(indexdef, schemaname || '.', '') FROM pg_indexes "
    "WHERE '\"' || schemaname || '\"' = '@' UNION ALL SELECT relname || ' ' || "
    "array_to_string(reloptions, ',') FROM pg_class WHERE relnamespace::regnamespace::text = "
    "replace('@', '\"', '') AND reloptions IS NOT NULL) t";

static void an_upgraded_store_has_the_tables_of_a_new_one(void **state)
{
    struct pad *fresh = desk_open();
    struct old old;
    char *wanted, *found;

    (void)state;
    wanted = sql(fresh->store, describe);
    assert_non_null(strstr(wanted, "jobs_queued"));
    for (int schema = 1; schema < POSTGRES_SCHEMA; schema++) {
        old_init_of(&old, schema);
        old_open(&old);
        found = ask(&old, describe);
        assert_string_equal(found, wanted);
        free(found);
        old_deinit(&old);
    }
    free(wanted);
    desk_close(fresh);
}

static void a_store_of_schema_1_that_has_the_tables_is_upgraded_too(void **state)
{
    struct old old;

    (void)state;
    old_init(&old);
    old_open(&old);
    det_store_close(old.pad.store);
    free(
        ask(&old, "DROP TABLE @starts; ALTER TABLE @jobs DROP COLUMN lost; "
                  "ALTER TABLE @outbox DROP COLUMN reason; "
                  "ALTER TABLE @dead_letters DROP COLUMN reason; "
                  "ALTER TABLE @events DROP COLUMN trace; ALTER TABLE @outbox DROP COLUMN trace; "
                  "ALTER TABLE @dead_letters DROP COLUMN trace; "
                  "ALTER TABLE @outbox DROP COLUMN origin; "
                  "ALTER TABLE @dead_letters DROP COLUMN origin; "
                  "ALTER TABLE @store DROP COLUMN sync; DROP TABLE @documents; DROP TABLE @deltas; "
                  "ALTER TABLE @definitions DROP COLUMN checksum; "
                  "ALTER TABLE @timers DROP COLUMN checksum; "
                  "ALTER TABLE @outbox DROP COLUMN checksum; "
                  "ALTER TABLE @dead_letters DROP COLUMN checksum; "
                  "ALTER TABLE @deferred DROP COLUMN checksum; "
                  "ALTER TABLE @answers DROP COLUMN checksum; "
                  "ALTER TABLE @renames DROP COLUMN checksum; "
                  "ALTER TABLE @schedules DROP COLUMN checksum; "
                  "DROP INDEX @jobs_queued; DROP INDEX @jobs_held; "
                  "ALTER TABLE @jobs DROP COLUMN checksum; "
                  "CREATE INDEX jobs_due ON @jobs (queue, state, due_at, key); "
                  "ALTER TABLE @timers DROP COLUMN attempts, DROP COLUMN last_error, "
                  "DROP COLUMN next_at, DROP COLUMN reason, DROP COLUMN dead_at; "
                  "CREATE INDEX timers_due ON @timers (machine, owner, due); "
                  "ALTER TABLE @answers DROP COLUMN event, DROP COLUMN request; "
                  "UPDATE @store SET schema = 1"));
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

static void read_only_open_of_an_older_schema_names_the_upgrade(void **state)
{
    struct det_store_options options = { .is_read_only = true };
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;

    (void)state;
    old_init(&old);
    assert_int_equal(det_store_open_with(old.url, &options, &store, &error), DET_ERR_VERSION);
    assert_non_null(strstr(error.text, "detent store upgrade"));
    assert_true(error.expected == 7 && error.actual == 1);
    options = (struct det_store_options){ .identity = "ffeeddccbbaa99887766554433221100" };
    assert_int_equal(det_store_open_with(old.url, &options, &store, &error), DET_ERR_FOREIGN);
    assert_old_schema(&old, "1");
    old_deinit(&old);
}

static void table_missing_in_an_older_store_is_named(void **state)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;

    (void)state;
    old_init(&old);
    free(ask(&old, "DROP TABLE @answers; DROP TABLE @leases"));
    assert_int_equal(det_store_open(old.url, &store, &error), DET_ERR_FOREIGN);
    assert_non_null(strstr(error.text, "newest backup"));
    assert_non_null(strstr(error.text, "leases"));
    old_deinit(&old);
}

static void older_store_missing_other_tables_is_not_upgraded(void **state)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;
    char *found;

    (void)state;
    old_init(&old);
    free(ask(&old, "ALTER TABLE @leases RENAME TO elsewhere"));
    assert_int_equal(det_store_open(old.url, &store, &error), DET_ERR_FOREIGN);
    assert_non_null(strstr(error.text, "leases"));
    assert_null(strstr(error.text, "jobs"));
    assert_old_schema(&old, "1");
    found = ask(&old, "SELECT to_regclass('@jobs')::text");
    assert_null(found);
    free(ask(&old, "ALTER TABLE @elsewhere RENAME TO leases"));
    old_open(&old);
    assert_old_schema(&old, "7");
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

/* Older programs would write rows without checksums, or with wrong ones. */
static void refuse_beside_others(int schema)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;
    char found[8];

    snprintf(found, sizeof found, "%d", schema);
    old_init_of(&old, schema);
    free(
        ask(&old, "INSERT INTO @leases (name, token, owner, expires_at) VALUES "
                  "('node/00112233445566778899aabbccddeeff', 1, 'x', 9223372036854775807)"));
    assert_int_equal(det_store_open(old.url, &store, &error), DET_ERR_LOCKED);
    assert_non_null(strstr(error.text, "until the lease of a killed one has lapsed"));
    assert_non_null(strstr(error.text, "stop them first"));
    assert_old_schema(&old, found);
    free(ask(&old, "UPDATE @leases SET expires_at = 0"));
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

static void older_store_in_use_is_not_upgraded(void **state)
{
    (void)state;
    for (int schema = 1; schema < POSTGRES_SCHEMA; schema++)
        refuse_beside_others(schema);
}

/* Schema 7 has other checksums of effects: what did not match its old one does not match the new
 * one. */
static void a_damaged_effect_of_an_older_store_is_damaged_after_an_upgrade(void **state)
{
    static const char *const damages[] = {
        "UPDATE @outbox SET attempts = 9",
        "UPDATE @dead_letters SET attempts = 9",
    };
    struct found found;
    struct old old;

    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        old_init_of(&old, 6);
        free(ask(&old, damages[i]));
        old_open(&old);
        assert_int_equal(load_old(&old.pad, "p", &found), DET_ERR_CORRUPT);
        old_deinit(&old);
    }
}

/* The last statement of the upgrade fails. */
static void an_upgrade_that_fails_changes_nothing(void **state)
{
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;
    char *found;

    (void)state;
    old_init(&old);
    free(
        ask(&old, "CREATE FUNCTION @refuse() RETURNS trigger LANGUAGE plpgsql AS "
                  "'BEGIN RAISE EXCEPTION ''not today''; END'; CREATE TRIGGER refuse BEFORE UPDATE "
                  "ON @store FOR EACH ROW EXECUTE FUNCTION @refuse()"));
    /* An error of a foreign function is not taken for a running older program. */
    assert_int_equal(det_store_open(old.url, &store, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "not today"));
    assert_null(strstr(error.text, "older version"));
    assert_old_schema(&old, "1");
    found = ask(&old, "SELECT to_regclass('@jobs')::text");
    assert_null(found);
    free(ask(&old, "DROP FUNCTION @refuse CASCADE"));
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

static int start_of(struct pad *pad, struct det_store_start *ret, struct pad_data *data)
{
    *ret = (struct det_store_start){ .data = data };
    return pad->store->ops->start(pad->store, pad->instance, ret);
}

/* It knows of events only, and goes on until it is opened again. */
static void start_pruned_by_an_older_program_is_not_returned(void **state)
{
    struct pad *pad = desk_open();
    struct det_store_start start;
    struct pad_data data;

    (void)state;
    assert_int_equal(start_of(pad, &start, &data), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(start_of(pad, &start, &data), 0);
    free(sql(pad->store, "DELETE FROM @events WHERE sequence = 1"));
    assert_int_equal(start_of(pad, &start, &data), DET_ERR_NOT_FOUND);
    free(sql(pad->store, "DELETE FROM @events"));
    assert_int_equal(start_of(pad, &start, &data), DET_ERR_NOT_FOUND);
    desk_close(pad);
}

static void an_upgrade_that_is_not_answered_ends_when_its_time_is_over(void **state)
{
    const struct det_store_options options = { .timeout = 2 * DET_SECOND * det_test_load() };
    struct det_test_proxy *proxy = det_test_proxy_open(server);
    struct det_error error = { 0 };
    struct det_store *store = NULL;
    struct old old;
    char *url;

    (void)state;
    old_init(&old);
    url = det_test_proxy_url(proxy, old.url);
    det_test_proxy_mute(proxy, "CREATE TABLE");
    assert_int_equal(det_store_open_with(url, &options, &store, &error), DET_ERR_TIMEOUT);
    assert_true(det_test_proxy_was_mute(proxy));
    assert_old_schema(&old, "1");
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
    det_test_proxy_close(proxy);
    free(url);
}

static void *open_it(void *context)
{
    struct old *old = context;
    struct det_store *store = NULL;

    if (det_store_open(old->url, &store, NULL) < 0)
        return NULL;
    return store;
}

static void concurrent_opens_upgrade_once(void **state)
{
    pthread_t threads[4];
    struct old old;

    (void)state;
    old_init(&old);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_it, &old), 0);
    for (int i = 0; i < 4; i++) {
        void *store;

        assert_int_equal(pthread_join(threads[i], &store), 0);
        assert_non_null(store);
        det_store_close(store);
    }
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

static void upgrade_without_memory_leaves_the_store_unchanged(void **state)
{
    struct det_store *store = NULL;
    struct old old;
    uint64_t point = 1;
    int r;

    (void)state;
    old_init(&old);
    do {
        struct det_test_memory memory;

        det_test_memory_init(&memory);
        memory.fail_at = point++;
        r = det_store_open_with(
            old.url, &(struct det_store_options){ .allocator = &memory.allocator }, &store, NULL);
        assert_true(r == 0 || r == DET_ERR_NO_MEMORY);
        if (r == 0)
            det_store_close(store);
        det_test_memory_deinit(&memory);
    } while (r < 0);
    assert_true(point > 50);
    old_open(&old);
    check_old_store(&old.pad);
    old.pad.store->ops->release(old.pad.store, old.pad.instance);
    old_deinit(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_older_store_is_upgraded_and_nothing_is_lost),
        cmocka_unit_test(an_upgraded_store_has_the_tables_of_a_new_one),
        cmocka_unit_test(a_store_of_schema_1_that_has_the_tables_is_upgraded_too),
        cmocka_unit_test(read_only_open_of_an_older_schema_names_the_upgrade),
        cmocka_unit_test(table_missing_in_an_older_store_is_named),
        cmocka_unit_test(older_store_missing_other_tables_is_not_upgraded),
        cmocka_unit_test(older_store_in_use_is_not_upgraded),
        cmocka_unit_test(a_damaged_effect_of_an_older_store_is_damaged_after_an_upgrade),
        cmocka_unit_test(an_upgrade_that_fails_changes_nothing),
        cmocka_unit_test(start_pruned_by_an_older_program_is_not_returned),
        cmocka_unit_test(an_upgrade_that_is_not_answered_ends_when_its_time_is_over),
        cmocka_unit_test(concurrent_opens_upgrade_once),
        cmocka_unit_test(upgrade_without_memory_leaves_the_store_unchanged),
    };

    return cmocka_run_group_tests(tests, open_server, close_server);
}
