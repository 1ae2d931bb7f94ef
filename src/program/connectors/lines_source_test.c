/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines_source_test.c - lines of files and pipes, where they are continued, and hostile input. */
/* test: threads */
#include <fcntl.h>
#include <sys/stat.h>

#include "connectors/file_cursor.h"
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = text_row_record } };
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

static char *settings_for(char target[512], const char *name, const char *more)
{
    (void)snprintf(target, 512, "{path: %s/%s%s}", folder, name, more);
    return target;
}

static void write_input(const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    det_test_write_file(path, text, strlen(text));
}

static const char *text_of(const struct harness *harness, size_t index)
{
    return ((const struct text_row *)harness_row(harness, index))->text;
}

static void each_line_is_a_row(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    write_input("a.txt", "one\ntwo\r\n\n  four\nlast");
    harness_open(&harness, &lines_source, stage, settings_for(settings, "a.txt", ""));
    harness.room = 2;
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 5);
    assert_string_equal(text_of(&harness, 0), "one");
    assert_string_equal(text_of(&harness, 1), "two");
    assert_string_equal(text_of(&harness, 2), "");
    assert_string_equal(text_of(&harness, 3), "  four");
    assert_string_equal(text_of(&harness, 4), "last");
    harness_deinit(&harness);
}

static void lines_are_skipped_as_asked(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    write_input("a.txt", "head\n\none\n\ntwo\n");
    harness_open(
        &harness, &lines_source, stage,
        settings_for(settings, "a.txt", ", skip: 1, skip_blank: true, field: text"));
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_string_equal(text_of(&harness, 0), "one");
    assert_string_equal(text_of(&harness, 1), "two");
    harness_deinit(&harness);
}

static void a_line_that_does_not_fit_is_rejected_with_its_number(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    write_input("a.txt", "one\n0123456789012345678901234567890123456789x\n\xff\nlast\n");
    harness_open(&harness, &lines_source, stage, settings_for(settings, "a.txt", ""));
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(harness.error_count, 2);
    assert_non_null(strstr(harness.errors[0], "a.txt, line 2: the text of 41 bytes is too long"));
    assert_non_null(strstr(harness.errors[1], "a.txt, line 3: the text of 1 byte is not UTF-8"));
    assert_int_equal(harness.last_rejection, DET_REJECT_DESERIALIZATION);
    harness_deinit(&harness);
}

static void a_long_line_is_cut_between_characters(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    write_input("a.txt", "012345678901234567890123456789012345678\xc3\xa9 and more\n");
    harness_open(
        &harness, &lines_source, stage, settings_for(settings, "a.txt", ", truncate: true"));
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_string_equal(text_of(&harness, 0), "012345678901234567890123456789012345678");
    harness_deinit(&harness);
}

/* Memory stays bounded, and the lines after it are read. */
static void a_line_of_many_megabytes_is_rejected_once(void **state)
{
    size_t size = 5u << 20;
    char *text = malloc(size), path[512], settings[512];
    struct harness harness;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text, "one\n", 4);
    memcpy(text + size - 5, "\ntwo\n", 5);
    (void)snprintf(path, sizeof path, "%s/big.txt", folder);
    det_test_write_file(path, text, size);
    free(text);
    harness_open(&harness, &lines_source, stage, settings_for(settings, "big.txt", ""));
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], "line 2: the line is longer than 1048576 bytes"));
    assert_string_equal(text_of(&harness, 1), "two");
    harness_deinit(&harness);
}

static void a_source_continues_at_its_cursor(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    write_input("a.txt", "1\n2\n3\n4\n5\n");
    harness_open(&harness, &lines_source, stage, settings_for(settings, "a.txt", ", skip: 1"));
    harness.room = 2;
    while (harness.row_count < 4) {
        assert_true(harness_next(&harness) >= 0);
        harness_stop(&harness);
        assert_int_equal(harness_start(&harness), 0);
    }
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 4);
    assert_string_equal(text_of(&harness, 0), "2");
    assert_string_equal(text_of(&harness, 3), "5");
    harness_deinit(&harness);
}

static void another_file_with_the_same_name_is_not_continued(void **state)
{
    static const char *const contents[] = { "1\n2\n", "x\n2\n3\n4\n" };
    static const char *const texts[] = { "ends at byte 4, but this run has read it until byte 6",
                                         "is not the file that this run has read until byte 6" };
    char settings[512];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct harness harness;

        write_input("a.txt", "1\n2\n3\n4\n");
        harness_open(&harness, &lines_source, stage, settings_for(settings, "a.txt", ""));
        harness.room = 3;
        assert_int_equal(harness_next(&harness), DET_SOURCE_MORE);
        harness_stop(&harness);
        write_input("a.txt", contents[i]);
        assert_int_equal(harness_start(&harness), 0);
        assert_int_equal(harness_next(&harness), DET_ERR_CONFLICT);
        if (!strstr(harness.failure.text, texts[i]))
            fail_msg("%s", harness.failure.text);
        harness_deinit(&harness);
    }
}

static void a_pipe_is_read_as_it_is_written(void **state)
{
    struct harness harness;
    char settings[512], path[512];
    int pipe_end;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    harness_open(&harness, &lines_source, stage, settings_for(settings, "fifo", ""));
    /* No writer yet. */
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    pipe_end = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(pipe_end >= 0);
    assert_int_equal(write(pipe_end, "one\ntw", 6), 6);
    assert_int_equal(harness_run_until(&harness, 1), DET_SOURCE_IDLE);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(write(pipe_end, "o\n", 2), 2);
    assert_int_equal(harness_run_until(&harness, 2), DET_SOURCE_IDLE);
    assert_string_equal(text_of(&harness, 1), "two");
    (void)close(pipe_end);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    harness_deinit(&harness);
}

/* A cancel closes the stage while its thread waits. */
static void a_pipe_without_a_writer_does_not_block_a_close(void **state)
{
    struct harness harness;
    char settings[512], path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/silent", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    harness_open(&harness, &lines_source, stage, settings_for(settings, "silent", ""));
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    harness_deinit(&harness);
}

static void wrong_settings_are_refused_with_a_remedy(void **state)
{
    struct det_stage two_texts = { .out = { .get = trade_record } };

    (void)state;
    harness_refuses(
        &lines_source, stage, "{pth: a}",
        "line 1, column 2: unknown setting 'pth'; did you mean 'path'?");
    harness_refuses(
        &lines_source, stage, "{path orders.txt}",
        "unknown setting 'path orders.txt'; the settings are path, ");
    harness_refuses(
        &lines_source, stage, "{\"a\\tb\": 1}", "unknown setting; the settings are path, ");
    harness_refuses(
        &lines_source, stage, "[a]",
        "the settings must be a map such as {path: in.csv}, not a list; the settings are path, ");
    harness_refuses(
        &lines_source, stage, "orders.txt",
        "such as {path: in.csv}, not text 'orders.txt'; the settings are path, ");
    harness_refuses(
        &lines_source, stage, "{url postgres://a:b@c/d}",
        "unknown setting; the settings are path, ");
    harness_refuses(
        &lines_source, stage, "{field: txt}", "text_row has no field 'txt'; did you mean 'text'?");
    harness_refuses(&lines_source, two_texts, "{}", "field is missing: name the field of trade");
    harness_refuses(&lines_source, two_texts, "{field: id}", "'id' of trade is not a text");
}

static void a_missing_file_fails_the_stage(void **state)
{
    struct harness harness;
    char settings[512];

    (void)state;
    harness_init(&harness, &lines_source, stage, settings_for(settings, "none", ""));
    assert_int_equal(harness_start(&harness), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(harness.failure.text, "No such file or directory; create it"));
    harness_deinit(&harness);
    harness_init(&harness, &lines_source, stage, settings_for(settings, "", ""));
    assert_int_equal(harness_start(&harness), DET_ERR_IO);
    assert_non_null(strstr(harness.failure.text, "Is a directory"));
    harness_deinit(&harness);
}

static int read_all_lines(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &lines_source, stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0) {
        r = harness_run(&harness);
        r = r == DET_SOURCE_DONE ? 0 : r;
        assert_int_equal(harness.row_count, r == 0 ? 2 : 0);
    }
    harness_deinit(&harness);
    return r;
}

static void every_failing_allocation_is_reported(void **state)
{
    char settings[512];

    (void)state;
    write_input("a.txt", "1\n2\n");
    det_test_each_failure(read_all_lines, settings_for(settings, "a.txt", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_is_a_row),
        cmocka_unit_test(lines_are_skipped_as_asked),
        cmocka_unit_test(a_line_that_does_not_fit_is_rejected_with_its_number),
        cmocka_unit_test(a_long_line_is_cut_between_characters),
        cmocka_unit_test(a_line_of_many_megabytes_is_rejected_once),
        cmocka_unit_test(a_source_continues_at_its_cursor),
        cmocka_unit_test(another_file_with_the_same_name_is_not_continued),
        cmocka_unit_test(a_pipe_is_read_as_it_is_written),
        cmocka_unit_test(a_pipe_without_a_writer_does_not_block_a_close),
        cmocka_unit_test(wrong_settings_are_refused_with_a_remedy),
        cmocka_unit_test(a_missing_file_fails_the_stage),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
