/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jsonl_source_test.c - objects of JSON as rows, and lines that are none. */
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = tagged_record } };
static char *folder;
static char settings[512];

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

static void open_input(struct harness *harness, const char *text, const char *more)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/a.jsonl", folder);
    det_test_write_file(path, text, strlen(text));
    (void)snprintf(settings, sizeof settings, "{path: %s%s}", path, more);
    harness_open(harness, &jsonl_source, stage, settings);
}

static void each_object_is_a_row(void **state)
{
    struct harness harness;
    const struct tagged *row;

    (void)state;
    open_input(
        &harness,
        "{\"id\":1,\"text\":\"a\\u00e9\",\"tags\":[\"x\",\"y\"],\"numbers\":[-1,2]}\r\n\n  \n"
        "{\"more\":{\"deep\":[1,{\"x\":null}]},\"numbers\":[],\"tags\":[],\"text\":\"\",\"id\":2}",
        "");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    row = harness_row(&harness, 0);
    assert_int_equal(row->id, 1);
    assert_string_equal(row->text, "a\xc3\xa9");
    assert_int_equal(row->tags_count, 2);
    assert_string_equal(row->tags[1], "y");
    assert_int_equal(row->numbers[0], -1);
    row = harness_row(&harness, 1);
    assert_int_equal(row->id, 2);
    assert_int_equal(row->tags_count, 0);
    harness_deinit(&harness);
}

static void lines_that_are_no_row_are_rejected_with_their_number(void **state)
{
    struct harness harness;

    (void)state;
    open_input(
        &harness,
        "{\"id\":1}\n[]\n{\"id\":1,\"text\":\"\",\"tags\":[],\"numbers\":[]} x\n{\"id\"\n"
        "{\"id\":-1,\"text\":\"\",\"tags\":[],\"numbers\":[]}\n"
        "{\"id\":9,\"text\":\"\",\"tags\":[],\"numbers\":[]}\n",
        "");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(harness.error_count, 5);
    assert_non_null(strstr(harness.errors[0], "line 1: tagged.text: the field is missing"));
    assert_non_null(strstr(harness.errors[1], "line 2: tagged: expected an object"));
    assert_non_null(strstr(harness.errors[4], "line 5: tagged.id: the number does not fit"));
    harness_deinit(&harness);
}

static void missing_and_unknown_fields_are_as_set(void **state)
{
    struct harness harness;

    (void)state;
    open_input(&harness, "{\"id\":1}\n{\"id\":2,\"txt\":1}\n", ", strict: true, partial: true");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(
        strstr(harness.errors[0], "line 2: tagged: there is no field txt (did you mean"));
    harness_deinit(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_object_is_a_row),
        cmocka_unit_test(lines_that_are_no_row_are_rejected_with_their_number),
        cmocka_unit_test(missing_and_unknown_fields_are_as_set),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
