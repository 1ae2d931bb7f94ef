/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_sink_test.c - rows in files of CSV and JSON lines, exactly once; files that were changed. */
#include <fcntl.h>
#include <sys/stat.h>

#include "connectors/file_output.h"
#include "connectors/sink_harness_test.h"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *settings_for(const char *name, const char *more)
{
    static char settings[600];

    (void)snprintf(settings, sizeof settings, "{path: %s/%s%s}", folder, name, more);
    return settings;
}

static void assert_content(const char *name, const char *expected)
{
    size_t size;
    char *content = det_test_read_file(path_of(name), &size);

    assert_string_equal(content, expected);
    assert_int_equal(size, strlen(expected));
    free(content);
}

#define HEAD  "id,sensor,celsius,note,at,mood,is_valid\n"
#define LINE1 "1,s1,20.5,,2023-11-14T22:13:20Z,hot,true\n"
#define LINE2 "2,s2,20.5,,2023-11-14T22:13:20Z,hot,true\n"
#define LINE3 "3,s3,20.5,,2023-11-14T22:13:20Z,hot,true\n"

static void deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    if (sink_deliver(sink, id, &reading) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static void csv_has_a_header_and_a_line_for_each_row(void **state)
{
    struct sink_harness sink;
    struct stat status;

    (void)state;
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    deliver(&sink, 1);
    deliver(&sink, 2);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("out.csv", HEAD LINE1 LINE2);
    assert_int_equal(stat(path_of("out.csv"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
}

static void csv_without_rows_is_its_header(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ", delimiter: ;"));
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("out.csv", "id;sensor;celsius;note;at;mood;is_valid\n");
    sink_open(
        &sink, &csv_sink, reading_record,
        settings_for("no.csv", ", delimiter: tab, header: false"));
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("no.csv", "");
}

static void rows_after_the_last_receipt_are_written_once(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), 0);
    deliver(&sink, 2);
    assert_int_equal(sink_flush_only(&sink), 0);
    assert_content("out.csv", HEAD LINE1 LINE2);
    sink_crash(&sink);
    deliver(&sink, 2);
    deliver(&sink, 3);
    assert_int_equal(sink_flush(&sink), 0);
    sink_crash(&sink);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("out.csv", HEAD LINE1 LINE2 LINE3);
}

static void a_crash_before_the_first_receipt_leaves_nothing_behind(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    deliver(&sink, 1);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("out.csv", HEAD LINE1);
    det_test_write_file(path_of("old.csv"), "old\n", 4);
    sink_open(&sink, &csv_sink, reading_record, settings_for("old.csv", ", existing: append"));
    deliver(&sink, 1);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("old.csv", "old\n" LINE1);
}

static void an_existing_file_is_not_overwritten_unless_allowed(void **state)
{
    struct sink_harness sink;

    (void)state;
    det_test_write_file(path_of("out.csv"), "old\n", 4);
    sink_init(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    assert_int_equal(sink_start(&sink), DET_ERR_EXISTS);
    assert_non_null(strstr(sink.base.failure.text, "existing: replace"));
    sink_close(&sink);
    assert_content("out.csv", "old\n");
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ", existing: replace"));
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content("out.csv", HEAD LINE1);
}

static void a_file_that_was_changed_is_refused(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    deliver(&sink, 1);
    assert_int_equal(sink_flush(&sink), 0);
    harness_stop(&sink.base);
    det_test_write_file(path_of("out.csv"), HEAD "9" LINE1, strlen(HEAD LINE1) + 1);
    assert_int_equal(sink_start(&sink), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_CONFLICT);
    assert_non_null(strstr(sink.base.failure.text, "was changed by another program"));
    harness_stop(&sink.base);
    det_test_write_file(path_of("out.csv"), HEAD, strlen(HEAD));
    assert_int_equal(sink_start(&sink), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_CONFLICT);
    assert_non_null(strstr(sink.base.failure.text, "restore the file"));
    harness_stop(&sink.base);
    assert_int_equal(unlink(path_of("out.csv")), 0);
    assert_int_equal(sink_start(&sink), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(sink.base.failure.text, "is gone"));
    sink_close(&sink);
}

static void links_and_shared_files_are_refused(void **state)
{
    struct sink_harness sink, other;

    (void)state;
    det_test_write_file(path_of("target"), "", 0);
    assert_int_equal(symlink("target", path_of("link.csv")), 0);
    sink_init(&sink, &csv_sink, reading_record, settings_for("link.csv", ""));
    assert_true(sink_start(&sink) < 0);
    assert_non_null(strstr(sink.base.failure.text, "a symbolic link is not followed"));
    sink_close(&sink);
    sink_open(&sink, &csv_sink, reading_record, settings_for("out.csv", ""));
    sink_init(&other, &jsonl_sink, reading_record, settings_for("out.csv", ""));
    assert_int_equal(sink_start(&other), DET_ERR_BUSY);
    assert_non_null(strstr(other.base.failure.text, "use one path for each sink"));
    sink_close(&other);
    sink_close(&sink);
}

static void jsonl_has_an_object_for_each_row(void **state)
{
    struct sink_harness sink;
    struct parcel parcel = { .id = 1, .place = { .city = "Ulm" } };

    (void)state;
    sink_open(&sink, &jsonl_sink, parcel_record, settings_for("out.jsonl", ", durability: os"));
    assert_int_equal(sink_deliver(&sink, 1, &parcel), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_crash(&sink);
    parcel.id = 2;
    assert_int_equal(sink_deliver(&sink, 2, &parcel), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_content(
        "out.jsonl",
        "{\"id\":1,\"place\":{\"city\":\"Ulm\",\"floor\":0},\"code\":\"\",\"data\":\"\",\"tags\":"
        "[]}\n"
        "{\"id\":2,\"place\":{\"city\":\"Ulm\",\"floor\":0},\"code\":\"\",\"data\":\"\",\"tags\":"
        "[]}\n");
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&csv_sink, reading_record, "{}", "path");
    sink_refuses(&csv_sink, reading_record, "{path: a.csv, delimiter: x}", "is not a delimiter");
    sink_refuses(
        &csv_sink, reading_record, "{path: a.csv, existing: maybe}",
        "use error, replace or append");
    sink_refuses(&jsonl_sink, reading_record, "{path: a, durability: x}", "use disk or os");
    sink_refuses(&jsonl_sink, reading_record, "{path: a, delimter: x}", "delimter");
}

static void a_full_disk_fails_the_stage_with_a_remedy(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_init(&sink, &jsonl_sink, reading_record, "{path: /dev/full, existing: append}");
    if (sink_start(&sink) == 0) {
        deliver(&sink, 1);
        assert_int_equal(sink_flush(&sink), DET_ERR_NO_SPACE);
        assert_non_null(strstr(sink.base.failure.text, "make space on the disk"));
    }
    sink_close(&sink);
}

static int write_file(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);
    int r;

    (void)argument;
    (void)unlink(path_of("memory.csv"));
    sink_init(&sink, &csv_sink, reading_record, settings_for("memory.csv", ""));
    sink.base.call.allocator = &memory->allocator;
    r = sink_start(&sink);
    for (uint64_t i = 1; i < 50 && r == 0; i++)
        r = sink_deliver(&sink, i, &reading);
    if (r == 0)
        r = sink_flush(&sink);
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(write_file, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(csv_has_a_header_and_a_line_for_each_row),
        TEST(csv_without_rows_is_its_header),
        TEST(rows_after_the_last_receipt_are_written_once),
        TEST(a_crash_before_the_first_receipt_leaves_nothing_behind),
        TEST(an_existing_file_is_not_overwritten_unless_allowed),
        TEST(a_file_that_was_changed_is_refused),
        TEST(links_and_shared_files_are_refused),
        TEST(jsonl_has_an_object_for_each_row),
        TEST(settings_are_checked),
        TEST(a_full_disk_fails_the_stage_with_a_remedy),
        TEST(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
