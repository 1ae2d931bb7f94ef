/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* open_test.c - accepted and refused files, with their messages; refused files are unchanged. */
#include <detent/tool/store.h>

#include "store/sqlite/sqlite_test.h"

#include "os/os.h"
#include "store/sqlite/vfs_test.h"

static void assert_text(const struct det_error *error, const char *wanted)
{
    if (!strstr(error->text, wanted))
        fail_msg("\"%s\" is not in \"%s\"", wanted, error->text);
}

/* Expects a refusal, and that no byte of the file changed. */
static void assert_refused(struct shelf *shelf, int code, const char *words)
{
    size_t before_size, after_size;
    char *before = det_test_read_file(shelf->path, &before_size), *after;

    for (int i = 0; i < 2; i++) {
        struct det_store_options options = { .is_read_only = i == 1 };

        memset(&shelf->error, 0, sizeof shelf->error);
        assert_int_equal(shelf_open_with(shelf, &options), code);
        assert_int_equal(shelf->error.code, code);
        assert_text(&shelf->error, words);
        assert_text(&shelf->error, shelf->path);
        assert_null(shelf->pad.store);
    }
    after = det_test_read_file(shelf->path, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
    free(before);
    free(after);
}

static void a_new_store_has_its_marks_and_keeps_its_identity(void **state)
{
    struct shelf *shelf = shelf_new();
    char identity[33];
    struct found found;

    (void)state;
    memcpy(identity, det_store_identity(shelf->pad.store), sizeof identity);
    assert_int_equal(strspn(identity, "0123456789abcdef"), 32);
    assert_int_equal(shelf_reopen(shelf, &found), 0);
    assert_string_equal(det_store_identity(shelf->pad.store), identity);
    assert_int_equal(shelf_ask(shelf, "PRAGMA application_id"), 0x64657465);
    assert_int_equal(shelf_ask(shelf, "PRAGMA user_version"), 7);
    assert_int_equal(shelf_ask(shelf, "SELECT schema FROM store"), 7);
    assert_int_equal(shelf->pad.store->schema, 7);
    shelf_close(shelf);
    assert_int_equal(
        shelf_open_with(shelf, &(struct det_store_options){ .identity = identity }), 0);
    shelf_close(shelf);
    assert_int_equal(
        shelf_open_with(shelf, &(struct det_store_options){ .identity = "another" }),
        DET_ERR_FOREIGN);
    assert_text(&shelf->error, identity);
    shelf_free(shelf);
}

static void invalid_sqlite_urls_are_refused(void **state)
{
    static const char *const urls[] = {
        "sqlite:",
        "sqlite::memory:",
        "sqlite:?vfs=unix",
        "sqlite:x.db?vfs=nobody",
        "sqlite:x.db?",
        "sqlite:x.db?mode=ro",
        "sqlite:x.db?cache_pages=0",
        "sqlite:x.db?cache_pages=ten",
        "sqlite:x.db?vfs=unix&vfs=unix",
    };
    struct det_store *store = NULL;
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(det_store_open(urls[i], &store, &error), DET_ERR_INVALID);
        assert_true(error.text[0]);
    }
    assert_int_equal(
        det_store_open_with(
            "sqlite:x.db", &(struct det_store_options){ .connections = 65 }, &store, &error),
        DET_ERR_INVALID);
    assert_int_not_equal(access("x.db", F_OK), 0);
}

static void options_in_the_url_are_taken(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s?vfs=unix&cache_pages=77", shelf.path);
    assert_int_equal(shelf_open_with(&shelf, &(struct det_store_options){ .connections = 5 }), 0);
    assert_int_equal(sqlite_store_of(shelf.pad.store)->cache_pages, 77);
    assert_int_equal(sqlite_store_of(shelf.pad.store)->reader_count, 5);
    shelf_deinit(&shelf);
}

static void read_only_open_does_not_create_a_store(void **state)
{
    char lock[300];
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    snprintf(lock, sizeof lock, "%s.lock", shelf.path);
    assert_int_equal(
        shelf_open_with(&shelf, &(struct det_store_options){ .must_exist = true }),
        DET_ERR_NOT_FOUND);
    assert_int_equal(
        shelf_open_with(&shelf, &(struct det_store_options){ .is_read_only = true }),
        DET_ERR_NOT_FOUND);
    assert_text(&shelf.error, "does not exist");
    assert_text(&shelf.error, "\"detent start FILE.fsm ID --store sqlite:/");
    assert_int_not_equal(access(shelf.path, F_OK), 0);
    assert_int_not_equal(access(lock, F_OK), 0);
    shelf_deinit(&shelf);
}

static void foreign_files_are_refused_and_unchanged(void **state)
{
    static const char text[] = "this is a letter to somebody, and long enough to be read as a file";
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    det_test_write_file(shelf.path, text, sizeof text);
    assert_refused(&shelf, DET_ERR_FOREIGN, "not a database");
    assert_int_equal(unlink(shelf.path), 0);
    shelf_exec(&shelf, "PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
    assert_refused(&shelf, DET_ERR_FOREIGN, "another program");
    assert_int_equal(unlink(shelf.path), 0);
    shelf_exec(&shelf, "PRAGMA application_id = 7; PRAGMA user_version = 9");
    assert_refused(&shelf, DET_ERR_FOREIGN, "no tables");
    /* The lost file had content. */
    assert_int_equal(unlink(shelf.path), 0);
    shelf_exec(&shelf, "CREATE TABLE t (a); DROP TABLE t");
    assert_refused(&shelf, DET_ERR_FOREIGN, "no tables");
    shelf_deinit(&shelf);
}

static void an_empty_file_becomes_a_store_unless_it_must_be_one(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    det_test_write_file(shelf.path, "", 0);
    assert_int_equal(
        shelf_open_with(&shelf, &(struct det_store_options){ .must_exist = true }),
        DET_ERR_NOT_FOUND);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_start(&shelf), 0);
    shelf_deinit(&shelf);
}

/* A writer killed while it creates the file leaves one empty page. */
static void incomplete_new_file_becomes_a_store_unless_must_exist(void **state)
{
    static const char *const left[] = {
        "PRAGMA journal_mode = WAL; PRAGMA user_version = 0",
        "PRAGMA journal_mode = WAL; PRAGMA application_id = 0x64657465; PRAGMA user_version = 3",
        "PRAGMA application_id = 0x64657465",
    };
    struct shelf shelf;

    (void)state;
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        shelf_init(&shelf);
        shelf_exec(&shelf, left[i]);
        assert_int_equal(shelf_ask(&shelf, "PRAGMA page_count"), 1);
        assert_int_equal(
            shelf_open_with(&shelf, &(struct det_store_options){ .must_exist = true }),
            DET_ERR_NOT_FOUND);
        assert_int_equal(
            shelf_open_with(&shelf, &(struct det_store_options){ .is_read_only = true }),
            DET_ERR_NOT_FOUND);
        assert_text(&shelf.error, "contains no store yet");
        assert_int_equal(shelf_ask(&shelf, "SELECT count(*) FROM sqlite_schema"), 0);
        assert_int_equal(shelf_open(&shelf), 0);
        assert_int_equal(shelf_start(&shelf), 0);
        shelf_deinit(&shelf);
    }
}

static void newer_and_invalid_schema_numbers_are_refused(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    shelf_close(shelf);
    shelf_exec(shelf, "PRAGMA user_version = 8");
    assert_refused(shelf, DET_ERR_VERSION, "newer detent");
    assert_int_equal(shelf->error.expected, 7);
    assert_int_equal(shelf->error.actual, 8);
    shelf_exec(shelf, "PRAGMA user_version = 0");
    assert_refused(shelf, DET_ERR_CORRUPT, "unknown schema");
    shelf_free(shelf);
}

static void missing_columns_are_listed_and_extra_ones_ignored(void **state)
{
    struct shelf *shelf = shelf_new();
    struct found found;

    (void)state;
    shelf_close(shelf);
    shelf_exec(shelf, "ALTER TABLE timers ADD COLUMN note TEXT; CREATE TABLE more (a)");
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    shelf_close(shelf);
    shelf_exec(
        shelf, "DROP TABLE leases; ALTER TABLE events DROP COLUMN cause;"
               "ALTER TABLE deferred RENAME TO old; CREATE TABLE deferred (instance INTEGER,"
               " sequence TEXT, event TEXT, payload BLOB)");
    assert_refused(shelf, DET_ERR_CORRUPT, "events.cause TEXT");
    assert_text(&shelf->error, "leases.token INTEGER");
    assert_text(&shelf->error, "deferred.sequence INTEGER");
    shelf_free(shelf);
}

static void store_with_a_damaged_identity_is_refused(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    shelf_close(shelf);
    shelf_exec(shelf, "UPDATE store SET created_at = created_at + 1");
    assert_refused(shelf, DET_ERR_CORRUPT, "does not match its checksum");
    shelf_exec(shelf, "UPDATE store SET identity = 'x'");
    assert_refused(shelf, DET_ERR_CORRUPT, "which store it is");
    shelf_exec(shelf, "DELETE FROM store");
    assert_refused(shelf, DET_ERR_CORRUPT, "which store it is");
    shelf_free(shelf);
}

static void damage_at(struct shelf *shelf, size_t pages_before_end)
{
    size_t size;
    char *data = det_test_read_file(shelf->path, &size);

    assert_true(size > (pages_before_end + 10) * 4096);
    memset(data + size - pages_before_end * 4096, 0x5a, 2048);
    det_test_write_file(shelf->path, data, size);
    free(data);
}

static void a_damaged_file_is_found_when_it_is_opened(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    memset(shelf->pad.value.as.note.text, 'x', 99);
    for (int i = 0; i < 400; i++)
        assert_int_equal(send(&shelf->pad, TEXT, NULL), 0);
    shelf_close(shelf);
    damage_at(shelf, 5);
    assert_refused(shelf, DET_ERR_CORRUPT, "damaged");
    shelf_free(shelf);
}

static void incomplete_index_is_found_at_open(void **state)
{
    struct shelf *shelf = shelf_new();

    (void)state;
    shelf_close(shelf);
    assert_true(shelf_ask(shelf, "SELECT count(*) FROM starts") > 0);
    /* For as long as the index is of no row at all, it is built anew. */
    shelf_exec(
        shelf, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || ' WHERE 0'"
               " WHERE name = 'starts_position'");
    shelf_exec(shelf, "REINDEX starts_position");
    shelf_exec(
        shelf, "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET"
               " sql = replace(sql, ' WHERE 0', '') WHERE name = 'starts_position'");
    assert_refused(shelf, DET_ERR_CORRUPT, "starts_position");
    shelf_free(shelf);
}

/* Beyond the size that is checked completely. */
static void large_file_is_checked_only_in_its_small_tables(void **state)
{
    struct shelf *shelf = shelf_new();
    struct found found;

    (void)state;
    shelf_close(shelf);
    shelf_exec(
        shelf, "PRAGMA synchronous = OFF; CREATE TABLE big (a); INSERT INTO big VALUES"
               " (zeroblob(8500000))");
    damage_at(shelf, 1000);
    assert_int_equal(shelf_open(shelf), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    assert_true(shelf_check(shelf)->count > 0);
    shelf_free(shelf);
}

static void a_folder_is_not_a_store(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    assert_int_equal(mkdir(shelf.path, 0700), 0);
    assert_int_equal(shelf_open(&shelf), DET_ERR_IO);
    assert_text(&shelf.error, "is a folder");
    assert_int_equal(
        shelf_open_with(&shelf, &(struct det_store_options){ .is_read_only = true }), DET_ERR_IO);
    assert_text(&shelf.error, "is a folder");
    snprintf(shelf.url, sizeof shelf.url, "sqlite:%s/no/folder.db", shelf.folder);
    assert_int_equal(shelf_open(&shelf), DET_ERR_NOT_FOUND);
    assert_text(&shelf.error, "/no does not exist");
    shelf_deinit(&shelf);
}

static void a_file_that_may_not_be_written_is_refused_but_can_be_read(void **state)
{
    struct shelf *shelf = shelf_new();
    struct found found;

    (void)state;
    shelf_close(shelf);
    faulty_init();
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty", shelf->path);
    faulty.is_read_only = true;
    assert_int_equal(shelf_open(shelf), DET_ERR_READ_ONLY);
    assert_text(&shelf->error, "reading only");
    faulty.is_read_only = false;
    assert_int_equal(
        shelf_open_with(shelf, &(struct det_store_options){ .is_read_only = true }), 0);
    assert_int_equal(shelf_load(shelf, &found), 0);
    shelf_free(shelf);
}

static int inspect(struct det_test_memory *memory, void *argument)
{
    struct det_store_options options = { .allocator = &memory->allocator, .is_read_only = true };
    struct shelf *shelf = argument;
    struct found found;
    int r;

    r = shelf_open_with(shelf, &options);
    if (r == 0)
        r = shelf_load(shelf, &found);
    shelf_close(shelf);
    return r;
}

static void file_on_read_only_media_is_read_if_it_has_no_log(void **state)
{
    const struct det_store_options reading = { .is_read_only = true };
    struct shelf *shelf = shelf_new();
    char path[300];

    (void)state;
    shelf_close(shelf);
    faulty_init();
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty", shelf->path);
    faulty.is_shut = true;
    snprintf(path, sizeof path, "%s-wal", shelf->path);
    det_test_write_file(path, "", 0);
    det_test_each_failure(inspect, shelf);
    det_test_write_file(path, "something", 9);
    assert_int_equal(shelf_open_with(shelf, &reading), DET_ERR_READ_ONLY);
    assert_text(&shelf->error, "commits in");
    assert_text(&shelf->error, path);
    /* Somebody has it open. */
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s-shm", shelf->path);
    det_test_write_file(path, "something", 9);
    assert_int_equal(shelf_open_with(shelf, &reading), DET_ERR_READ_ONLY);
    assert_text(&shelf->error, "cannot open it");
    assert_int_equal(unlink(path), 0);
    faulty.is_shut = false;
    shelf_free(shelf);
}

static int open_result;

static int no_file(struct det_world *world, const char *path, unsigned flags, struct det_file **ret)
{
    (void)world;
    (void)path;
    (void)flags;
    (void)ret;
    return open_result;
}

static void unopenable_lock_file_is_reported_with_the_reason(void **state)
{
    static const struct {
        int result;
        bool is_shut, is_there;
        int code;
        const char *words;
    } cases[] = {
        { DET_ERR_IO, true, true, DET_ERR_READ_ONLY, ".lock (no permission" },
        { DET_ERR_IO, true, false, DET_ERR_READ_ONLY, " (no permission" },
        { DET_ERR_IO, false, false, DET_ERR_READ_ONLY, ".lock (no permission" },
        { DET_ERR_IO, false, true, DET_ERR_IO, "check the disk" },
        { DET_ERR_LIMIT, false, true, DET_ERR_LIMIT, "cannot open its lock file" },
    };
    struct det_world *world = det_world_real();
    const struct det_world_ops *before = world->ops;
    struct det_world_ops ops = *before;
    struct shelf *shelf = shelf_new();
    char lock[300];

    (void)state;
    shelf_close(shelf);
    faulty_init();
    snprintf(shelf->url, sizeof shelf->url, "sqlite:%s?vfs=faulty", shelf->path);
    snprintf(lock, sizeof lock, "%s.lock", shelf->path);
    world->ops = &ops;
    ops.file_open = no_file;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)unlink(lock);
        if (cases[i].is_there)
            det_test_write_file(lock, "1", 1);
        open_result = cases[i].result;
        faulty.is_shut = cases[i].is_shut;
        assert_int_equal(shelf_open(shelf), cases[i].code);
        assert_text(&shelf->error, cases[i].words);
    }
    faulty.is_shut = false;
    world->ops = before;
    shelf_free(shelf);
}

static bool is_remote(struct det_world *world, const char *path)
{
    (void)world;
    (void)path;
    return true;
}

static int no_locks(struct det_world *world, struct det_file *file)
{
    (void)world;
    (void)file;
    return DET_ERR_IO;
}

static void file_systems_that_cannot_be_relied_on_are_refused(void **state)
{
    struct det_world *world = det_world_real();
    const struct det_world_ops *before = world->ops;
    struct det_world_ops ops = *before;
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    world->ops = &ops;
    ops.path_is_remote = is_remote;
    assert_int_equal(shelf_open(&shelf), DET_ERR_UNSUPPORTED);
    assert_text(&shelf.error, "network");
    ops.path_is_remote = before->path_is_remote;
    ops.file_lock = no_locks;
    assert_int_equal(shelf_open(&shelf), DET_ERR_IO);
    assert_text(&shelf.error, "lock");
    assert_int_not_equal(access(shelf.path, F_OK), 0);
    world->ops = before;
    shelf_deinit(&shelf);
}

static int no_mutex(struct det_world *world, struct det_mutex **ret)
{
    (void)world;
    (void)ret;
    return DET_ERR_NO_MEMORY;
}

static int no_condition(struct det_world *world, struct det_condition **ret)
{
    (void)world;
    (void)ret;
    return DET_ERR_NO_MEMORY;
}

static int no_sync(struct det_world *world, const char *path)
{
    (void)world;
    (void)path;
    return DET_ERR_IO;
}

static void open_fails_when_system_resources_are_missing(void **state)
{
    struct det_world *world = det_world_real();
    const struct det_world_ops *before = world->ops;
    struct det_world_ops ops = *before;
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    world->ops = &ops;
    ops.mutex_open = no_mutex;
    assert_int_equal(shelf_open(&shelf), DET_ERR_NO_MEMORY);
    ops.mutex_open = before->mutex_open;
    ops.condition_open = no_condition;
    assert_int_equal(shelf_open(&shelf), DET_ERR_NO_MEMORY);
    ops.condition_open = before->condition_open;
    ops.folder_sync = no_sync;
    assert_int_equal(shelf_open(&shelf), DET_ERR_IO);
    assert_text(&shelf.error, "cannot sync its folder");
    world->ops = before;
    assert_int_equal(shelf_open(&shelf), 0);
    shelf_deinit(&shelf);
}

/* Starts another instance each time, with all kinds of rows. */
static int begin_one(struct shelf *shelf)
{
    static unsigned number;
    static const uint16_t history[] = { 0, 1 };
    struct pad pad = shelf->pad;
    char id[16];
    int r;

    snprintf(id, sizeof id, "more-%u", ++number);
    pad.instance = NULL;
    pad.head = (struct det_store_head){ .visit = 1, .started_at = 7, .last_transition_at = 7 };
    begin(&pad);
    pad.commit.id = id;
    pad.commit.is_new = true;
    pad.commit.data = &pad.data;
    pad.commit.is_snapshot = true;
    pad.commit.history = history;
    pad.commit.history_count = 2;
    r = commit(&pad);
    if (r == 0)
        pad.store->ops->release(pad.store, pad.commit.instance);
    return r;
}

static int live(struct det_test_memory *memory, void *argument)
{
    struct det_store_options options = { .allocator = &memory->allocator };
    struct shelf *shelf = argument;
    struct found found;
    struct rows rows = { 0 };
    int r;

    r = shelf_open_with(shelf, &options);
    if (r == 0)
        r = shelf_load(shelf, &found);
    if (r == DET_ERR_NOT_FOUND)
        r = shelf_start(shelf);
    for (unsigned i = 0; r == 0 && i < 2; i++) {
        uint64_t sequence = shelf->pad.head.sequence;

        shelf->pad.value.as.small = (sequence + 1) * 3;
        begin(&shelf->pad);
        add_event(&shelf->pad, SMALL);
        shelf->pad.commit.data = &shelf->pad.data;
        shelf->pad.commit.reason = "because";
        shelf->pad.commit.is_snapshot = true;
        r = commit(&shelf->pad);
        /* An instance refused for lack of memory does not exist. */
        if (r == DET_ERR_NO_MEMORY)
            shelf->pad.head.sequence = sequence;
    }
    if (r == 0)
        r = begin_one(shelf);
    if (r == 0)
        r = walk(&shelf->pad, 0, &rows);
    shelf_close(shelf);
    return r;
}

static void store_survives_every_failed_allocation(void **state)
{
    struct shelf shelf;

    (void)state;
    shelf_init(&shelf);
    det_test_each_failure(live, &shelf);
    assert_int_equal(shelf_open(&shelf), 0);
    assert_int_equal(shelf_check(&shelf)->count, 0);
    shelf_deinit(&shelf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_store_has_its_marks_and_keeps_its_identity),
        cmocka_unit_test(invalid_sqlite_urls_are_refused),
        cmocka_unit_test(options_in_the_url_are_taken),
        cmocka_unit_test(read_only_open_does_not_create_a_store),
        cmocka_unit_test(foreign_files_are_refused_and_unchanged),
        cmocka_unit_test(an_empty_file_becomes_a_store_unless_it_must_be_one),
        cmocka_unit_test(incomplete_new_file_becomes_a_store_unless_must_exist),
        cmocka_unit_test(newer_and_invalid_schema_numbers_are_refused),
        cmocka_unit_test(missing_columns_are_listed_and_extra_ones_ignored),
        cmocka_unit_test(store_with_a_damaged_identity_is_refused),
        cmocka_unit_test(a_damaged_file_is_found_when_it_is_opened),
        cmocka_unit_test(incomplete_index_is_found_at_open),
        cmocka_unit_test(large_file_is_checked_only_in_its_small_tables),
        cmocka_unit_test(a_folder_is_not_a_store),
        cmocka_unit_test(a_file_that_may_not_be_written_is_refused_but_can_be_read),
        cmocka_unit_test(file_on_read_only_media_is_read_if_it_has_no_log),
        cmocka_unit_test(unopenable_lock_file_is_reported_with_the_reason),
        cmocka_unit_test(file_systems_that_cannot_be_relied_on_are_refused),
        cmocka_unit_test(open_fails_when_system_resources_are_missing),
        cmocka_unit_test(store_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
