/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* documents_test.c - documents in a file: without memory, with rows that are not ours, with
 * a clock that somebody sets, and how long its log becomes; what they do is in
 * tests/conform/document_cases.c. */
#include "lib/test.h"

#include <detent/sim.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "store/document.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

struct bench {
    char *folder, url[1100];
    struct det_sim *sim;
    struct det_store *store;
};

static void bench_open(struct bench *bench, const struct det_allocator *allocator)
{
    struct det_error error = { 0 };

    *bench = (struct bench){ .folder = det_test_folder() };
    snprintf(
        bench->url, sizeof bench->url, "sqlite:%s/documents.db?checkpoint_pages=50", bench->folder);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 5 }, &bench->sim, NULL), 0);
    if (det_store_open_with(
            bench->url,
            &(struct det_store_options){ .world = det_sim_world(bench->sim),
                                         .allocator = allocator },
            &bench->store, &error) < 0)
        fail_msg("%s", error.text);
}

static void bench_close(struct bench *bench)
{
    det_store_close(bench->store);
    det_sim_close(bench->sim);
    det_test_folder_remove(bench->folder);
}

static int save(struct bench *bench, const char *text)
{
    const struct det_document_save saves[] = {
        { .kind = "link",
          .id = "a",
          .role = DET_DOCUMENT_SPEC,
          .text = text,
          .size = strlen(text) },
        { .kind = "link",
          .id = "b",
          .role = DET_DOCUMENT_SPEC,
          .text = text,
          .size = strlen(text) },
    };
    struct det_error error = { 0 };
    int r;

    r = det_store_documents_save(bench->store, saves, 2, NULL, &error);
    assert_int_equal(error.code, r);
    return r;
}

static uint64_t latest_of(struct bench *bench)
{
    struct det_document_position position;

    assert_int_equal(det_store_documents_position(bench->store, &position), 0);
    assert_int_equal(position.oldest, 1);
    return position.latest;
}

static void document_save_survives_failed_allocations(void **state)
{
    struct det_test_memory memory;
    struct bench bench;
    bool has_failed = true;
    uint64_t done = 0;

    (void)state;
    det_test_memory_init(&memory);
    bench_open(&bench, &memory.allocator);
    for (uint64_t i = 1; has_failed; i++) {
        char text[64];
        int r;

        snprintf(text, sizeof text, "{\"n\":%llu}", (unsigned long long)i);
        (void)det_test_memory_fail(&memory, i, false);
        r = save(&bench, text);
        has_failed = det_test_memory_fail(&memory, 0, false);
        assert_true(r == 0 || (has_failed && r == DET_ERR_NO_MEMORY));
        done += r == 0 ? 2 : 0;
        assert_int_equal(latest_of(&bench), done);
    }
    assert_true(done > 0);
    bench_close(&bench);
    det_test_memory_deinit(&memory);
}

static off_t log_size(const struct bench *bench)
{
    struct stat found;
    char path[1100];

    snprintf(path, sizeof path, "%s/documents.db-wal", bench->folder);
    return stat(path, &found) == 0 ? found.st_size : 0;
}

/* Nothing else is written to this store. */
static void document_saves_are_checkpointed(void **state)
{
    struct bench bench;
    char text[64];

    (void)state;
    bench_open(&bench, NULL);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "{\"n\":%u}", i);
        assert_int_equal(save(&bench, text), 0);
    }
    assert_true(log_size(&bench) < (off_t)100 * 4200);
    bench_close(&bench);
}

static int ignore(void *context, const struct det_document *row)
{
    (void)context;
    (void)row;
    return 0;
}

static int ignore_delta(void *context, const struct det_delta *row)
{
    (void)context;
    (void)row;
    return 0;
}

/* Also updates the checksums, so that the rows are wrong in another way. */
static void execute(struct bench *bench, const char *sql)
{
    static const char sums[] =
        "UPDATE documents SET checksum = row_checksum('documents', id, kind, role, sync, version,"
        " created_at, updated_at, text); UPDATE deltas SET checksum = row_checksum('deltas', sync,"
        " at, kind, id, role, change, version, size, text); UPDATE store SET checksum ="
        " row_checksum('store', identity, schema, created_at, program, position, sync)";
    sqlite3 *database = NULL;
    char path[1100];

    snprintf(path, sizeof path, "%s/documents.db", bench->folder);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(det_sqlite_checksum_open(database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sums, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static int note_finding(void *context, const struct det_store_finding *row)
{
    char *text = context;

    /* The deltas may also not fit the row. */
    if (strcmp(row->text, "documents are missing, or older than their deltas") == 0)
        return 0;
    assert_string_equal(text, "");
    snprintf(text, 256, "%s", row->text);
    return 0;
}

/* One at most. */
static void assert_findings(struct bench *bench, const char *expected)
{
    char text[256] = "";

    assert_int_equal(bench->store->ops->check(bench->store, note_finding, NULL, text), 0);
    assert_memory_equal(text, expected, strlen(expected) + !*expected);
}

static void invalid_document_rows_are_reported(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench, NULL);
    assert_int_equal(save(&bench, "{\"n\":1}"), 0);
    assert_findings(&bench, "");
    execute(&bench, "UPDATE documents SET text = '{' WHERE id = 'a'");
    assert_findings(&bench, "the document link a, spec: not JSON, at byte 1");
    assert_int_equal(save(&bench, "{\"n\":2}"), DET_ERR_CORRUPT);
    execute(&bench, "UPDATE documents SET text = '{}', sync = 3 WHERE id = 'a'");
    assert_findings(&bench, "the document link a, spec: its version or sync id is too high");
    execute(&bench, "UPDATE documents SET sync = 1, role = 'other' WHERE id = 'a'");
    assert_findings(&bench, "not all documents can be read");
    assert_int_equal(
        det_store_documents_list(bench.store, NULL, ignore, NULL, NULL), DET_ERR_CORRUPT);
    execute(&bench, "UPDATE documents SET role = 'spec'; DELETE FROM deltas WHERE sync = 2");
    assert_findings(
        &bench, "the newest deltas of documents do not match the position of the store");
    execute(
        &bench, "UPDATE deltas SET sync = 2; INSERT INTO deltas SELECT 4, at, kind, id, role, "
                "change, version, size, text, 0 FROM deltas; UPDATE store SET sync = 4");
    assert_findings(&bench, "the delta with the sync id 4: those before it are missing");
    execute(&bench, "UPDATE deltas SET change = 'other' WHERE sync = 2");
    assert_findings(&bench, "not all deltas of documents can be read");
    assert_int_equal(
        det_store_documents_deltas(bench.store, NULL, ignore_delta, NULL, NULL), DET_ERR_CORRUPT);
    bench_close(&bench);
}

/* A delta newer than a kept one is kept, with any time. */
static void a_clock_that_is_set_back_makes_no_gap(void **state)
{
    struct det_document_position position;
    struct bench bench;
    uint64_t count;
    det_time since;

    (void)state;
    bench_open(&bench, NULL);
    det_sim_jump_wall(bench.sim, DET_DAY);
    assert_int_equal(save(&bench, "{\"n\":1}"), 0);
    det_sim_jump_wall(bench.sim, -DET_DAY);
    assert_int_equal(save(&bench, "{\"n\":2}"), 0);
    since = bench.store->ops->now(bench.store) + DET_HOUR;
    assert_int_equal(
        det_store_documents_compact(
            bench.store, &(struct det_document_keep){ .since = since }, &count),
        0);
    assert_int_equal(count, 0);
    assert_int_equal(det_store_documents_position(bench.store, &position), 0);
    assert_true(position.latest == 4 && position.oldest == 1);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_save_survives_failed_allocations),
        cmocka_unit_test(document_saves_are_checkpointed),
        cmocka_unit_test(invalid_document_rows_are_reported),
        cmocka_unit_test(a_clock_that_is_set_back_makes_no_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
