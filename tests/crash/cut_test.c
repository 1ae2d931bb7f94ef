/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* cut_test.c - the rig itself, with plain SQLite: no committed row is lost if syncs are honoured,
 * and the rig detects if they are not. */
#include "lib/test.h"

#include <sqlite3.h>

#include "crash/cut.h"
#include "crash/vfs.h"

#define ROWS 8
#define WAL  "wal; PRAGMA synchronous=full"

struct bench {
    struct crash_disk disk, scratch;
    struct crash_vfs *vfs, *scratch_vfs;
    uint64_t lost, doubled, damaged;
    uint64_t acked; /* rows with an acknowledged commit */
};

static struct bench *bench_open(void)
{
    struct bench *bench = calloc(1, sizeof *bench);

    assert_non_null(bench);
    crash_disk_init(&bench->disk);
    crash_disk_init(&bench->scratch);
    bench->vfs = crash_vfs_register("crash", &bench->disk);
    bench->scratch_vfs = crash_vfs_register("again", &bench->scratch);
    return bench;
}

static void bench_close(struct bench *bench)
{
    crash_vfs_unregister(bench->vfs);
    crash_vfs_unregister(bench->scratch_vfs);
    crash_disk_deinit(&bench->disk);
    crash_disk_deinit(&bench->scratch);
    free(bench);
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t answer = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        return -1;
    if (sqlite3_step(statement) == SQLITE_ROW)
        answer = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return answer;
}

/* `mode`: of the journal, and of syncs. */
static sqlite3 *must_open(const char *vfs, const char *mode)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    char pragma[80];
    sqlite3 *db;

    assert_int_equal(sqlite3_open_v2("t.db", &db, flags, vfs), SQLITE_OK);
    snprintf(pragma, sizeof pragma, "PRAGMA journal_mode=%s", mode);
    assert_int_equal(sqlite3_exec(db, pragma, NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* Inserts rows from 1 on, each in its own transaction, with a concurrent reader and a
 * checkpoint. */
static void run(struct bench *bench, const char *mode, bool acks_early)
{
    sqlite3 *db, *reader;
    char sql[80];

    (void)crash_disk_record(&bench->disk);
    db = must_open("crash", mode);
    assert_int_equal(
        sqlite3_exec(db, "CREATE TABLE t(n INTEGER PRIMARY KEY, b BLOB)", NULL, NULL, NULL), 0);
    reader = must_open("crash", mode);
    crash_disk_mark(&bench->disk, 1);
    for (uint64_t i = 1; i <= ROWS; i++) {
        if (acks_early)
            crash_disk_mark(&bench->disk, 1 + i);
        snprintf(sql, sizeof sql, "INSERT INTO t VALUES(%d, randomblob(2000))", (int)i);
        if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
            continue;
        bench->acked = i;
        crash_disk_mark(&bench->disk, 1 + i);
        assert_true(ask(reader, "SELECT count(*) FROM t") > 0);
        if (i == ROWS / 2)
            (void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    }
    (void)sqlite3_close(reader);
    (void)sqlite3_close(db);
}

static int inspect(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    struct bench *bench = context;
    int64_t acked = (int64_t)cut->mark - 1;
    int64_t count;
    sqlite3 *db;

    (void)disk;
    assert_int_equal(
        sqlite3_open_v2("t.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "again"), 0);
    count = ask(db, "SELECT count(*) FROM t");
    if (cut->mark == 0) {
        (void)sqlite3_close(db);
        return 0;
    }
    if (count < acked)
        bench->lost++;
    if (count > acked + 1 || count != ask(db, "SELECT coalesce(max(n), 0) FROM t"))
        bench->doubled++;
    if (ask(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") != 1)
        bench->damaged++;
    (void)sqlite3_close(db);
    return 0;
}

static uint64_t cut(struct bench *bench)
{
    struct crash_cut_options options = { .chances = 3, .seed = 7, .singles_max = 4 };
    uint64_t states = 0;

    assert_int_equal(
        crash_cut_each(&bench->disk, &options, &bench->scratch, inspect, bench, &states), 0);
    return states;
}

static void no_loss_of_unsynced_writes_loses_a_committed_row(void **state)
{
    static const char *const modes[] = { WAL, "delete; PRAGMA synchronous=extra",
                                         "truncate; PRAGMA synchronous=full" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bench *bench = bench_open();
        uint64_t states;

        run(bench, modes[i], false);
        assert_int_equal(bench->acked, ROWS);
        states = cut(bench);
        print_message("plain SQLite, %s: %d states\n", modes[i], (int)states);
        assert_true(states > 600);
        assert_int_equal(bench->lost + bench->doubled + bench->damaged, 0);
        bench_close(bench);
    }
}

static void disk_that_ignores_syncs_is_detected(void **state)
{
    struct bench *bench = bench_open();

    (void)state;
    bench->disk.fault.ignores_syncs = true;
    run(bench, WAL, false);
    (void)cut(bench);
    assert_true(bench->lost > 50);
    bench_close(bench);
}

/* Deleting the journal is the commit, and FULL does not wait until the deletion is on the disk. */
static void reappearing_journal_undoes_a_commit(void **state)
{
    struct bench *bench = bench_open();

    (void)state;
    run(bench, "delete; PRAGMA synchronous=full", false);
    (void)cut(bench);
    assert_true(bench->lost > 50);
    assert_int_equal(bench->damaged, 0);
    bench_close(bench);
}

static void acknowledgement_before_the_commit_is_detected(void **state)
{
    struct bench *bench = bench_open();

    (void)state;
    run(bench, WAL, true);
    (void)cut(bench);
    assert_true(bench->lost > 50);
    assert_int_equal(bench->damaged, 0);
    bench_close(bench);
}

/* After a failed sync the connection continues as if nothing had happened, and later commits may be
 * lost: a user of SQLite must stop there. */
static void answers_after_a_failed_sync_may_be_lost(void **state)
{
    uint64_t lost = 0;

    (void)state;
    for (uint64_t i = 1;; i++) {
        struct bench *bench = bench_open();
        bool failed;

        bench->disk.fault = (struct crash_fault){ .sync_at = 6 + i, .drops = i & 1 };
        run(bench, WAL, false);
        failed = bench->disk.failed_syncs > 0;
        if (failed)
            (void)cut(bench);
        lost += bench->lost;
        bench_close(bench);
        if (!failed)
            break;
    }
    assert_true(lost > 0);
}

static void shards_cover_the_whole_and_runs_are_reproducible(void **state)
{
    struct bench *bench = bench_open();
    struct crash_cut_options options = { .chances = 3, .seed = 9 };
    uint64_t whole, part, sum = 0;

    (void)state;
    run(bench, WAL, false);
    assert_int_equal(
        crash_cut_each(&bench->disk, &options, &bench->scratch, inspect, bench, &whole), 0);
    options.shard_count = 3;
    for (options.shard = 0; options.shard < 3; options.shard++) {
        assert_int_equal(
            crash_cut_each(&bench->disk, &options, &bench->scratch, inspect, bench, &part), 0);
        sum += part;
    }
    assert_int_equal(sum, whole);
    bench_close(bench);
}

/* Some changes of one file: "abcd" synced, then "XY" over its middle. */
static unsigned write_some(struct crash_disk *disk)
{
    unsigned name;

    (void)crash_disk_record(disk);
    name = crash_disk_name(disk, "f");
    crash_disk_create(disk, name);
    crash_disk_write(disk, 0, 0, "abcd", 4);
    assert_true(crash_disk_sync(disk, 0));
    crash_disk_sync_folder(disk);
    crash_disk_write(disk, 0, 1, "XY", 2);
    return name;
}

static void bytes_dropped_by_a_failed_sync_are_visible_until_forget(void **state)
{
    struct bench *bench = bench_open();
    struct crash_disk *disk = &bench->disk;

    (void)state;
    (void)write_some(disk);
    crash_disk_forget(disk, 0);
    assert_memory_equal(disk->nodes[0].data, "aXYd", 4);
    disk->fault = (struct crash_fault){ .sync_at = 2, .drops = true };
    assert_false(crash_disk_sync(disk, 0));
    assert_memory_equal(disk->nodes[0].data, "aXYd", 4);
    assert_true(crash_disk_sync(disk, 0));
    crash_disk_write(disk, 0, 3, "Z", 1);
    crash_disk_forget(disk, 0);
    assert_memory_equal(disk->nodes[0].data, "abcZ", 4);
    bench_close(bench);
}

struct texts {
    unsigned states;
    bool seen[2];
};

static int look_text(void *context, const struct crash_cut *cut, struct crash_disk *disk)
{
    static const char *const wanted[] = { "abcd", "aXYd" };
    struct texts *texts = context;

    texts->states++;
    if (cut->place < 6)
        return 0;
    assert_int_equal(disk->names[0].node, 0);
    for (unsigned i = 0; i < 2; i++)
        texts->seen[i] |= memcmp(disk->nodes[0].data, wanted[i], 4) == 0;
    return 0;
}

static void power_cut_keeps_synced_bytes_and_any_of_the_rest(void **state)
{
    struct bench *bench = bench_open();
    struct texts texts = { 0 };

    (void)state;
    (void)write_some(&bench->disk);
    assert_int_equal(
        crash_cut_each(
            &bench->disk, &(struct crash_cut_options){ 0 }, &bench->scratch, look_text, &texts,
            NULL),
        0);
    assert_true(texts.seen[0] && texts.seen[1]);
    bench_close(bench);
}

static void crashed_process_changes_nothing_and_holds_no_lock(void **state)
{
    struct bench *bench = bench_open();
    sqlite3 *dead, *alive;

    (void)state;
    (void)crash_disk_record(&bench->disk);
    dead = must_open("crash", WAL);
    assert_int_equal(sqlite3_exec(dead, "CREATE TABLE t(n)", NULL, NULL, NULL), SQLITE_OK);
    bench->disk.fault.dies_at = bench->disk.change_count + 2;
    assert_int_equal(sqlite3_exec(dead, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_exec(dead, "INSERT INTO t VALUES(1); COMMIT", NULL, NULL, NULL);
    assert_int_equal(bench->disk.deaths, 1);
    alive = must_open("crash", WAL);
    assert_int_equal(ask(alive, "SELECT count(*) FROM t"), 0);
    assert_int_equal(sqlite3_exec(alive, "INSERT INTO t VALUES(2)", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(dead);
    assert_int_equal(ask(alive, "SELECT max(n) FROM t"), 2);
    (void)sqlite3_close(alive);
    bench_close(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_loss_of_unsynced_writes_loses_a_committed_row),
        cmocka_unit_test(disk_that_ignores_syncs_is_detected),
        cmocka_unit_test(reappearing_journal_undoes_a_commit),
        cmocka_unit_test(acknowledgement_before_the_commit_is_detected),
        cmocka_unit_test(answers_after_a_failed_sync_may_be_lost),
        cmocka_unit_test(bytes_dropped_by_a_failed_sync_are_visible_until_forget),
        cmocka_unit_test(power_cut_keeps_synced_bytes_and_any_of_the_rest),
        cmocka_unit_test(crashed_process_changes_nothing_and_holds_no_lock),
        cmocka_unit_test(shards_cover_the_whole_and_runs_are_reproducible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
