/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* keep_test.c - maintenance of a store in a file: snapshots, pruning, checks, copies, space. */
#include "store/sqlite/sqlite_test.h"

#include "store/sqlite/vfs_test.h"

static void assert_found(struct shelf *shelf, const char *wanted)
{
    struct findings *findings = shelf_check(shelf);

    if (!strstr(findings->texts, wanted))
        fail_msg("\"%s\" is not among: %s", wanted, findings->texts);
}

/* Changes the file by another connection, and compares the findings of the check. */
static void assert_damage_found(struct shelf *shelf, const char *statement, const char *wanted)
{
    shelf_close(shelf);
    shelf_exec(shelf, statement);
    assert_int_equal(shelf_open(shelf), 0);
    assert_found(shelf, wanted);
}

static int prune(struct shelf *shelf, uint64_t sequence, uint64_t *ret)
{
    struct pad *pad = &shelf->pad;

    return pad->store->ops->prune(pad->store, pad->instance, sequence, 0, ret);
}

static void take_snapshot(struct shelf *shelf)
{
    struct pad *pad = &shelf->pad;
    struct found found;

    assert_int_equal(shelf_load(shelf, &found), 0);
    begin(pad);
    pad->commit.is_snapshot = true;
    pad->commit.history = found.loaded.history;
    pad->commit.history_count = found.loaded.history_count;
    assert_int_equal(commit(pad), 0);
}

static void events_before_a_snapshot_can_go_and_the_history_stays(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct found before, after;
    struct rows rows = { 0 };
    uint64_t gone = 99;

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(prune(shelf, 6, &gone), 0);
    assert_int_equal(gone, 0);
    take_snapshot(shelf);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_load(shelf, &before), 0);
    assert_int_equal(prune(shelf, 4, &gone), 0);
    assert_int_equal(gone, 4);
    assert_int_equal(shelf_load(shelf, &after), 0);
    assert_int_equal(after.loaded.history_count, 9);
    assert_memory_equal(before.loaded.history, after.loaded.history, 18);
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(prune(shelf, 100, &gone), 0);
    assert_int_equal(gone, 2);
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.first, 7);
    assert_int_equal(rows.count, 3);
    assert_int_equal(shelf_reopen(shelf, &after), 0);
    assert_memory_equal(before.loaded.history, after.loaded.history, 18);
    assert_int_equal(after.loaded.head.sequence, 9);
    take_snapshot(shelf);
    assert_int_equal(prune(shelf, 9, &gone), 0);
    assert_int_equal(gone, 3);
    assert_int_equal(walk(pad, 0, &rows), 0);
    assert_int_equal(rows.count, 0);
    assert_int_equal(shelf_reopen(shelf, &after), 0);
    assert_memory_equal(before.loaded.history, after.loaded.history, 18);
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void damaged_snapshot_is_ignored(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct det_store_snapshot snapshot = { .loaded.data = &pad->data };
    struct found found;
    uint64_t gone;

    (void)state;
    assert_int_equal(
        pad->store->ops->snapshot(pad->store, pad->instance, &snapshot), DET_ERR_NOT_FOUND);
    for (int i = 0; i < 4; i++)
        assert_int_equal(send(pad, BARE, NULL), 0);
    take_snapshot(shelf);
    assert_int_equal(pad->store->ops->snapshot(pad->store, pad->instance, &snapshot), 0);
    assert_int_equal(snapshot.loaded.head.sequence, 4);
    assert_int_equal(snapshot.loaded.history_count, 4);
    assert_true(snapshot.taken_at > 0);
    assert_int_equal(prune(shelf, 2, &gone), 0);
    shelf_close(shelf);
    shelf_exec(shelf, "UPDATE snapshots SET visit = 77");
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.history_count, 2);
    assert_int_equal(
        pad->store->ops->snapshot(pad->store, pad->instance, &snapshot), DET_ERR_CORRUPT);
    assert_int_equal(prune(shelf, 4, &gone), DET_ERR_CORRUPT);
    assert_found(shelf, "pad/p/0: the snapshot does not match its checksum");
    assert_found(shelf, "pad/p/3: older events are missing");
    assert_damage_found(shelf, "DELETE FROM snapshots", "older events are missing");
    shelf_free(shelf);
}

static void check_finds_every_foreign_change(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_int_equal(shelf_check(shelf)->done, 1);
    assert_int_equal(shelf_check(shelf)->total, 1);
    assert_damage_found(
        shelf, "UPDATE events SET at = at + 1 WHERE sequence = 1",
        "pad/p/1: the event does not match its hash");
    shelf_exec(shelf, "UPDATE events SET at = at - 1 WHERE sequence = 1");
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_damage_found(
        shelf, "UPDATE events SET hash = zeroblob(32) WHERE sequence = 3",
        "pad/p/4: the event does not match its hash");
    assert_found(shelf, "pad/p/3: the event does not match its hash");
    assert_damage_found(
        shelf, "UPDATE events SET hash = x'00' WHERE sequence = 3",
        "pad/p/3: the event is missing");
    assert_found(shelf, "3 events are not in the chain");
    assert_damage_found(
        shelf, "UPDATE events SET sequence = 9, hash = zeroblob(32) WHERE sequence = 3",
        "another event is at the position");
    assert_damage_found(
        shelf, "UPDATE instances SET hash = zeroblob(32)", "the head does not match its last");
    assert_found(shelf, "the head does not match its checksum");
    assert_damage_found(shelf, "UPDATE instances SET hash = ''", "the head cannot be read");
    assert_damage_found(
        shelf, "UPDATE instances SET last_event = 0, hash = zeroblob(32)",
        "older events are missing");
    assert_damage_found(
        shelf,
        "DELETE FROM instances; INSERT INTO answers VALUES (77, 'x', 'goto', 'A', 1, 1, 1, NULL, "
        "0, 0)",
        "5 events belong to no instance");
    assert_found(shelf, "1 answer belongs to no instance");
    shelf_free(shelf);
}

static void an_instance_without_events_is_checked_too(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    assert_int_equal(shelf_check(shelf)->count, 0);
    assert_damage_found(
        shelf, "UPDATE instances SET hash = zeroblob(32)", "the head does not match its hash");
    shelf_free(shelf);
}

static int stop_at_once(void *context, const struct det_store_finding *row)
{
    (void)context;
    (void)row;
    return 42;
}

static void visitor_ends_the_check_at_any_finding(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store;

    (void)state;
    assert_damage_found(shelf, "UPDATE instances SET visit = 9", "checksum");
    store = shelf->pad.store;
    assert_int_equal(store->ops->check(store, stop_at_once, NULL, NULL), 42);
    shelf_free(shelf);
}

static void damaged_instance_is_not_loaded_but_others_are(void **state)
{
    static const struct {
        const char *statement;
        int code;
    } cases[] = {
        { "UPDATE instances SET visit = visit + 1", DET_ERR_CORRUPT },
        { "UPDATE instances SET data = x'01'", DET_ERR_CORRUPT },
        { "UPDATE instances SET hash = x'01'", DET_ERR_CORRUPT },
        { "UPDATE events SET hash = zeroblob(32) WHERE sequence = 2", DET_ERR_CORRUPT },
        { "UPDATE events SET sequence = 7 WHERE sequence = 1", DET_ERR_CORRUPT },
        { "DELETE FROM events WHERE sequence = 2", DET_ERR_CORRUPT },
        { "UPDATE timers SET payload = x'0102'", DET_ERR_CORRUPT },
        { "UPDATE timers SET name = 'gone'", DET_ERR_CORRUPT },
        { "UPDATE timers SET event = 'GONE'", DET_ERR_CORRUPT },
        { "UPDATE outbox SET data = x'0102'", DET_ERR_CORRUPT },
        { "UPDATE outbox SET effect = 'gone'", DET_ERR_CORRUPT },
        { "UPDATE deferred SET event = 'GONE'", DET_ERR_CORRUPT },
        { "UPDATE deferred SET payload = x'0102'", DET_ERR_CORRUPT },
    };
    uint64_t data = 1;
    struct pad_event value = { .kind = SMALL };
    struct det_store_timer_change timer = {
        DET_STORE_SET, { .timer = 0, .event = SMALL, .visit = 1, .due = 5, .value = &value }
    };
    struct det_store_effect_change effect = { DET_STORE_SET,
                                              { .sequence = 1, .data = &data, .event = &value } };
    struct det_store_deferred_change deferred = { DET_STORE_SET, { 1, &value } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shelf *shelf = shelf_new();
        struct found found;

        begin(&shelf->pad);
        shelf->pad.commit.timers = &timer;
        shelf->pad.commit.effects = &effect;
        shelf->pad.commit.deferred = &deferred;
        shelf->pad.commit.timer_count = shelf->pad.commit.effect_count =
            shelf->pad.commit.deferred_count = 1;
        assert_int_equal(commit(&shelf->pad), 0);
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
        assert_int_equal(shelf_load(shelf, &found), 0);
        shelf_exec(shelf, cases[i].statement);
        if (shelf_load(shelf, &found) != cases[i].code)
            fail_msg("%s: not told", cases[i].statement);
        shelf_free(shelf);
    }
}

static void a_copy_is_a_store_of_its_own_with_the_same_identity(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store = shelf->pad.store;
    char identity[33];
    char path[300];
    struct found found;

    (void)state;
    memcpy(identity, store->identity, sizeof identity);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    snprintf(path, sizeof path, "%s/copy.db", shelf->folder);
    assert_int_equal(store->ops->backup(store, path, &shelf->error), 0);
    assert_int_equal(store->ops->backup(store, path, &shelf->error), DET_ERR_EXISTS);
    assert_true(strstr(shelf->error.text, "new file") != NULL);
    assert_int_equal(store->ops->backup(store, "", &shelf->error), DET_ERR_INVALID);
    assert_int_equal(store->ops->backup(store, ":memory:", &shelf->error), DET_ERR_INVALID);
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    shelf_close(shelf);
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s", path);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_int_equal(found.loaded.head.sequence, 3);
    assert_string_equal(shelf->pad.store->identity, identity);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void failed_backup_leaves_no_file(void **state)
{
    struct shelf shelf;
    struct det_store *store;
    char path[300];
    int r;

    (void)state;
    faulty_init();
    shelf_init(&shelf);
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s?vfs=faulty", shelf.path);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    store = shelf.pad.store;
    for (uint64_t i = 0;; i++) {
        snprintf(path, sizeof path, "%s/copy%d.db", shelf.folder, (int)i);
        faulty.has_failed = false;
        faulty.fail_at = faulty.calls + i + 1;
        r = store->ops->backup(store, path, &shelf.error);
        faulty.fail_at = 0;
        if (r == 0)
            break;
        assert_true(faulty.has_failed && shelf.error.text[0]);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    assert_true(faulty.calls > 20);
    snprintf(path, sizeof path, "%s/no/copy.db", shelf.folder);
    assert_int_equal(store->ops->backup(store, path, &shelf.error), DET_ERR_IO);
    shelf_deinit(&shelf);
}

static void compacting_gives_space_back_and_forgets_old_ids(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    struct stat before, after;
    struct found found;
    uint64_t gone;
    char id[16];

    (void)state;
    memset(pad->value.as.note.text, 'x', 99);
    for (int i = 0; i < 500; i++) {
        snprintf(id, sizeof id, "e%d", i);
        assert_int_equal(send(pad, TEXT, id), 0);
    }
    take_snapshot(shelf);
    assert_int_equal(prune(shelf, 500, &gone), 0);
    assert_int_equal(gone, 500);
    shelf_exec(shelf, "UPDATE answers SET at = 5 WHERE event_id < 'e4'");
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_int_equal(stat(shelf->path, &before), 0);
    assert_int_equal(pad->store->ops->compact(pad->store, &shelf->error), 0);
    assert_int_equal(stat(shelf->path, &after), 0);
    assert_true(after.st_size < before.st_size);
    assert_true(shelf_ask(shelf, "SELECT count(*) FROM answers") < 200);
    assert_true(shelf_ask(shelf, "SELECT count(*) FROM answers") > 10);
    assert_int_equal(send(pad, BARE, NULL), 0);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

static void pruning_forgets_the_ids_that_are_old_enough(void **state)
{
    struct shelf *shelf = shelf_new();
    struct pad *pad = &shelf->pad;
    uint64_t gone = 1;

    (void)state;
    assert_int_equal(send(pad, BARE, "old"), 0);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 0, 5, &gone), 0);
    assert_int_equal(gone, 0);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM answers"), 1);
    assert_int_equal(pad->store->ops->prune(pad->store, pad->instance, 0, DET_NEVER, &gone), 0);
    assert_int_equal(shelf_ask(shelf, "SELECT count(*) FROM answers"), 0);
    shelf_free(shelf);
}

/* The log does not grow without limit, with or without readers. */
static void log_is_checkpointed_regularly(void **state)
{
    struct shelf *shelf = shelf_new();
    struct sqlite_store *store = sqlite_store_of(shelf->pad.store);
    struct sqlite_connection *reader;
    struct sqlite_call call;

    (void)state;
    store->checkpoint_at = 10;
    for (int i = 0; i < 20; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_int_equal(store->checkpoint_at, DET_SQLITE_CHECKPOINT_PAGES);
    assert_true(store->wal_pages < 60);
    assert_int_equal(det_sqlite_reader(store, &reader), 0);
    det_sqlite_call(reader, STATEMENT_INSTANCE_COUNT, &call);
    assert_int_equal(det_sqlite_step(&call), 1);
    store->checkpoint_at = 5;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    assert_true(store->checkpoint_at > DET_SQLITE_CHECKPOINT_PAGES);
    det_sqlite_end(&call);
    det_sqlite_reader_end(store, reader);
    assert_int_equal(shelf_check(shelf)->count, 0);
    shelf_free(shelf);
}

/* Another one on the file; the store does not wait for it. */
static sqlite3 *beside(struct shelf *shelf)
{
    sqlite3 *database = NULL;

    sqlite3_busy_timeout(sqlite_store_of(shelf->pad.store)->writer.database, 0);
    assert_int_equal(sqlite3_open(shelf->path, &database), SQLITE_OK);
    return database;
}

static void compacting_beside_a_reader_is_done_and_the_file_shrinks_later(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store = shelf->pad.store;
    sqlite3 *reader = beside(shelf);
    struct stat before, after;

    (void)state;
    assert_int_equal(
        sqlite3_exec(
            reader,
            "CREATE TABLE big (a); INSERT INTO big VALUES (zeroblob(400000));"
            "DROP TABLE big; PRAGMA wal_checkpoint; BEGIN; SELECT count(*) FROM events",
            NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(stat(shelf->path, &before), 0);
    assert_int_equal(store->ops->compact(store, &shelf->error), 0);
    assert_int_equal(stat(shelf->path, &after), 0);
    assert_true(after.st_size == before.st_size);
    assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    shelf_close(shelf);
    assert_int_equal(stat(shelf->path, &after), 0);
    assert_true(after.st_size < before.st_size);
    shelf_free(shelf);
}

/* Takes the write lock before the store can vacuum. */
static int get_in_the_way(unsigned kind, void *context, void *statement, void *text)
{
    (void)kind;
    (void)statement;
    if (strcmp(text, "VACUUM") == 0)
        assert_int_equal(sqlite3_exec(context, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return 0;
}

static void compacting_beside_a_writer_is_busy_and_can_be_tried_again(void **state)
{
    struct shelf *shelf = shelf_new();
    struct det_store *store = shelf->pad.store;
    sqlite3 *writer = sqlite_store_of(store)->writer.database, *other = beside(shelf);

    (void)state;
    assert_int_equal(sqlite3_trace_v2(writer, SQLITE_TRACE_STMT, get_in_the_way, other), SQLITE_OK);
    assert_int_equal(store->ops->compact(store, &shelf->error), DET_ERR_BUSY);
    assert_non_null(strstr(shelf->error.text, "another process keeps it busy"));
    assert_int_equal(sqlite3_trace_v2(writer, 0, NULL, NULL), SQLITE_OK);
    /* It still has it: now the ids cannot be forgotten. */
    assert_int_equal(store->ops->compact(store, &shelf->error), DET_ERR_BUSY);
    assert_int_equal(send(&shelf->pad, BARE, NULL), DET_ERR_BUSY);
    assert_false(store->ops->is_lost(store));
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(store->ops->compact(store, &shelf->error), 0);
    shelf->pad.head.sequence = 0;
    assert_int_equal(send(&shelf->pad, BARE, NULL), 0);
    shelf_free(shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_before_a_snapshot_can_go_and_the_history_stays),
        cmocka_unit_test(damaged_snapshot_is_ignored),
        cmocka_unit_test(check_finds_every_foreign_change),
        cmocka_unit_test(an_instance_without_events_is_checked_too),
        cmocka_unit_test(visitor_ends_the_check_at_any_finding),
        cmocka_unit_test(damaged_instance_is_not_loaded_but_others_are),
        cmocka_unit_test(a_copy_is_a_store_of_its_own_with_the_same_identity),
        cmocka_unit_test(failed_backup_leaves_no_file),
        cmocka_unit_test(compacting_gives_space_back_and_forgets_old_ids),
        cmocka_unit_test(compacting_beside_a_reader_is_done_and_the_file_shrinks_later),
        cmocka_unit_test(compacting_beside_a_writer_is_busy_and_can_be_tried_again),
        cmocka_unit_test(pruning_forgets_the_ids_that_are_old_enough),
        cmocka_unit_test(log_is_checkpointed_regularly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
