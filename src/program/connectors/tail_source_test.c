/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tail_source_test.c - a file that grows, is rotated, truncated, removed, and continued later. */
/* test: threads */
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = text_row_record } };
static char *folder;
static char path[512], settings[600];

static int make_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    (void)snprintf(path, sizeof path, "%s/app.log", folder);
    (void)snprintf(settings, sizeof settings, "{path: %s}", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static void append_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "ae");

    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

static void rotate(const char *suffix)
{
    char to[600];

    (void)snprintf(to, sizeof to, "%s%s", path, suffix);
    (void)unlink(to);
    assert_int_equal(link(path, to), 0);
    assert_int_equal(unlink(path), 0);
}

static const char *text_of(const struct harness *harness, size_t index)
{
    return ((const struct text_row *)harness_row(harness, index))->text;
}

static void wait_for(struct harness *harness, size_t rows, const char *last)
{
    assert_true(harness_run_until(harness, rows) >= 0);
    assert_int_equal(harness->row_count, rows);
    assert_string_equal(text_of(harness, rows - 1), last);
}

static void appended_lines_are_rows(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &tail_source, stage, settings);
    /* It does not exist yet. */
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    append_text(path, "one\n");
    wait_for(&harness, 1, "one");
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    append_text(path, "two\nthr");
    wait_for(&harness, 2, "two");
    append_text(path, "ee\n");
    wait_for(&harness, 3, "three");
    harness_deinit(&harness);
}

static void a_rotated_file_is_read_to_its_end(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &tail_source, stage, settings);
    append_text(path, "one\n");
    wait_for(&harness, 1, "one");
    rotate(".1");
    append_text(path, "");
    assert_int_equal(harness_run_until(&harness, 1), DET_SOURCE_IDLE);
    /* Its writer has not begun with the new file. */
    (void)snprintf(settings, sizeof settings, "%s.1", path);
    append_text(settings, "two\nthree");
    append_text(path, "four\n");
    (void)snprintf(settings, sizeof settings, "{path: %s}", path);
    wait_for(&harness, 4, "four");
    assert_string_equal(text_of(&harness, 1), "two");
    assert_string_equal(text_of(&harness, 2), "three");
    assert_int_equal(harness.error_count, 0);
    harness_deinit(&harness);
}

static void a_truncated_file_is_read_from_its_begin(void **state)
{
    struct harness harness;

    (void)state;
    det_test_write_file(path, "one\ntwo\n", 8);
    harness_open(&harness, &tail_source, stage, settings);
    wait_for(&harness, 2, "two");
    det_test_write_file(path, "x\n", 2);
    wait_for(&harness, 3, "x");
    harness_deinit(&harness);
}

static void a_source_continues_in_the_rotated_file(void **state)
{
    struct harness harness;

    (void)state;
    det_test_write_file(path, "one\ntwo\nthree\n", 14);
    harness_open(&harness, &tail_source, stage, settings);
    harness.room = 2;
    assert_int_equal(harness_next(&harness), DET_SOURCE_MORE);
    harness_stop(&harness);
    rotate(".7");
    append_text(path, "four\n");
    assert_int_equal(harness_start(&harness), 0);
    wait_for(&harness, 4, "four");
    assert_string_equal(text_of(&harness, 2), "three");
    assert_int_equal(harness.error_count, 0);
    harness_deinit(&harness);
}

static void a_file_that_is_gone_is_reported(void **state)
{
    struct harness harness;

    (void)state;
    det_test_write_file(path, "one\ntwo\n", 8);
    harness_open(&harness, &tail_source, stage, settings);
    wait_for(&harness, 2, "two");
    harness_stop(&harness);
    /* Another file must have another inode. */
    rotate(".8");
    append_text(path, "new\n");
    (void)snprintf(settings, sizeof settings, "%s.8", path);
    assert_int_equal(unlink(settings), 0);
    (void)snprintf(settings, sizeof settings, "{path: %s}", path);
    assert_int_equal(harness_start(&harness), 0);
    while (harness.row_count < 3)
        assert_true(harness_run_until(&harness, harness.row_count + harness.error_count + 1) >= 0);
    assert_string_equal(text_of(&harness, 2), "new");
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], "was read until line 2 is not in its folder"));
    harness_deinit(&harness);
}

static void a_new_run_may_begin_at_the_end(void **state)
{
    struct harness harness;
    char more[640];

    (void)state;
    det_test_write_file(path, "one\ntwo\n", 8);
    (void)snprintf(more, sizeof more, "{path: %s, from_end: true}", path);
    harness_open(&harness, &tail_source, stage, more);
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    append_text(path, "three\n");
    wait_for(&harness, 1, "three");
    harness_deinit(&harness);
}

static void what_is_not_a_file_is_refused(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &tail_source, stage, "{path: /dev/null}");
    assert_int_equal(harness_next(&harness), DET_ERR_INVALID);
    assert_non_null(strstr(harness.failure.text, "is not a file: read it with the source lines"));
    harness_deinit(&harness);
    harness_refuses(&tail_source, stage, "{}", "path is missing");
}

static int read_two_lines(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &tail_source, stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness_run_until(&harness, 2);
    harness_deinit(&harness);
    return r > 0 ? 0 : r;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    det_test_write_file(path, "one\ntwo\n", 8);
    det_test_each_failure(read_two_lines, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(appended_lines_are_rows, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_rotated_file_is_read_to_its_end, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_truncated_file_is_read_from_its_begin, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_source_continues_in_the_rotated_file, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            a_file_that_is_gone_is_reported, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_new_run_may_begin_at_the_end, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_not_a_file_is_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(
            every_failing_allocation_is_reported, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
