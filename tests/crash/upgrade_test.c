/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* upgrade_test.c - power cuts at every write and sync during the upgrade of an older schema: the
 * store has one schema or the other, and nothing in it is lost. */
#include "crash/bed.h"
#include "crash/cut.h"
#include "store/sqlite/sqlite.h"
#include "store/upgrade_cases.h"

#include <sqlite3.h>

struct scene {
    struct crash_bed bed;
    struct det_machine *machine;
    uint64_t states, old, new;
};

/* The test's own connection to the store of a level. */
static sqlite3 *connect(unsigned level)
{
    static const char *const names[] = { "crash0", "crash1" };
    sqlite3 *database;

    assert_int_equal(
        sqlite3_open_v2(
            "store.db", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, names[level]),
        SQLITE_OK);
    return database;
}

static void execute(sqlite3 *database, const char *text)
{
    char *printed = NULL;

    if (sqlite3_exec(database, text, NULL, NULL, &printed) != SQLITE_OK)
        fail_msg("%s", printed);
}

static int64_t ask(sqlite3 *database, const char *text)
{
    sqlite3_stmt *statement;
    int64_t number;

    assert_int_equal(sqlite3_prepare_v2(database, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static struct det_store *open_store(struct scene *scene, unsigned level)
{
    struct det_store_options options = { .world = det_sim_world(scene->bed.sim), .connections = 1 };
    struct det_error error = { 0 };
    struct det_store *store = NULL;

    scene->bed.active = &scene->bed.disks[level];
    if (det_store_open_with(crash_bed_url(level), &options, &store, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(store->ops->serve(store, scene->machine, NULL), 0);
    return store;
}

/* The first mark: the old store is complete. The second: it has been upgraded. */
static int inspect(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct scene *scene = context;
    struct pad pad = { .machine = scene->machine };
    sqlite3 *database;
    int64_t schema;

    (void)disk;
    scene->bed.active = &scene->bed.disks[1];
    database = connect(1);
    schema = ask(database, "PRAGMA user_version");
    assert_true(schema == DET_SQLITE_SCHEMA || (schema == 1 && cut->mark == 1));
    assert_int_equal(ask(database, "SELECT schema FROM store"), schema);
    assert_int_equal(
        ask(database, "SELECT count(*) FROM sqlite_schema WHERE name IN ('jobs', 'starts')"),
        schema == DET_SQLITE_SCHEMA ? 2 : 0);
    sqlite3_close(database);
    pad.store = open_store(scene, 1);
    check_old_store(&pad);
    pad.store->ops->release(pad.store, pad.instance);
    det_store_close(pad.store);
    scene->states++;
    *(schema == DET_SQLITE_SCHEMA ? &scene->new : &scene->old) += 1;
    return 0;
}

static void crash_during_upgrade_leaves_one_schema_and_loses_nothing(void **state)
{
    struct crash_cut_options options = { .chances = 8, .seed = 1, .singles_max = 24 };
    struct scene *scene = calloc(1, sizeof *scene);
    char *text = old_store("1.sqlite.sql");
    struct crash_disk *disk;
    sqlite3 *database;

    (void)state;
    assert_non_null(scene);
    scene->machine = pad_machine(1);
    crash_bed_open(&scene->bed, 1);
    disk = &scene->bed.disks[0];
    database = connect(0);
    execute(database, "PRAGMA journal_mode = WAL");
    execute(database, text);
    sqlite3_close(database);
    free(text);
    crash_disk_sync_folder(disk);
    crash_disk_mark(disk, 1);
    options.first = disk->op_count;
    det_store_close(open_store(scene, 0));
    crash_disk_mark(disk, 2);
    (void)crash_cut_each(disk, &options, &scene->bed.disks[1], inspect, scene, NULL);
    print_message(
        "             %llu states, %llu of schema 1, %llu of schema %d\n",
        (unsigned long long)scene->states, (unsigned long long)scene->old,
        (unsigned long long)scene->new, DET_SQLITE_SCHEMA);
    assert_true(scene->old > 20 && scene->new > 20);
    crash_bed_close(&scene->bed);
    det_machine_close(scene->machine);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_during_upgrade_leaves_one_schema_and_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
