/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_source_test.c - columns, malformed rows, and where a file is continued. */
#include <sys/stat.h>

#include "connectors/file_cursor.h"
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = trade_record } };
static const char header[] = "id,name,price,amount,note,paid,at,side\n";
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

/* Writes a file of a header and rows, and returns the settings for it. */
static const char *write_csv(const char *head, const char *rows, const char *more)
{
    char path[512], text[4096];
    int size = snprintf(text, sizeof text, "%s%s", head, rows);

    (void)snprintf(path, sizeof path, "%s/a.csv", folder);
    det_test_write_file(path, text, (size_t)size);
    (void)snprintf(settings, sizeof settings, "{path: %s%s}", path, more);
    return settings;
}

static const struct trade *trade_of(const struct harness *harness, size_t index)
{
    return harness_row(harness, index);
}

static void columns_are_fields_by_name(void **state)
{
    struct harness harness;

    (void)state;
    write_csv(
        header,
        "1,pen,1.25,-7,,true,2026-01-31T10:00:00Z,buy\r\n"
        "18446744073709551615,\"a \"\"b\"\"\",-1e3,2147483647,\"x,y\",0,2026-01-31T10:00:00+01:00,"
        "sell",
        "");
    harness_open(&harness, &csv_source, stage, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(trade_of(&harness, 0)->id, 1);
    assert_string_equal(trade_of(&harness, 0)->name, "pen");
    assert_true(trade_of(&harness, 0)->price == 1.25);
    assert_int_equal(trade_of(&harness, 0)->amount, -7);
    assert_false(trade_of(&harness, 0)->has_note);
    assert_true(trade_of(&harness, 0)->paid);
    assert_true(trade_of(&harness, 0)->at == (det_time)1769853600 * DET_SECOND);
    assert_int_equal(trade_of(&harness, 1)->side, SIDE_SELL);
    assert_true(trade_of(&harness, 1)->id == UINT64_MAX);
    assert_string_equal(trade_of(&harness, 1)->name, "a \"b\"");
    assert_true(trade_of(&harness, 1)->price == -1000);
    assert_true(trade_of(&harness, 1)->has_note);
    assert_string_equal(trade_of(&harness, 1)->note, "x,y");
    harness_deinit(&harness);
}

static const struct det_stage two = { .out = { .get = tagged_record } };

static void columns_are_mapped_by_title_and_number(void **state)
{
    struct harness harness;

    (void)state;
    write_csv(
        "# export\n# of today\n\xef\xbb\xbfNo;The text;other\n", "7;hello;x\n8;you;y\n",
        ", delimiter: ';', skip: 2, columns: {id: 1, text: The text}");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(((const struct tagged *)harness_row(&harness, 1))->id, 8);
    assert_string_equal(((const struct tagged *)harness_row(&harness, 1))->text, "you");
    harness_deinit(&harness);
}

static void a_file_without_a_header_is_read_in_order(void **state)
{
    struct harness harness;

    (void)state;
    write_csv("", "7\thello\n\n8\n9\tx\tmore\n", ", delimiter: tab, no_header: true");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(((const struct tagged *)harness_row(&harness, 1))->id, 9);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], "line 3, column text: the row has fewer columns"));
    harness_deinit(&harness);
}

static void malformed_rows_are_rejected_with_their_line(void **state)
{
    struct harness harness;

    (void)state;
    write_csv(
        "id,text\n",
        "1,ok\nx,no\n2,\"two\nlines\"\n3\n4,a\"b\n\"5\",\"open\n6,ok\n-7,x\n8,\xff\n,e\n"
        "99999999999999999999,x\n",
        "");
    harness_open(&harness, &csv_source, two, settings);
    harness.room = 2;
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 3);
    assert_string_equal(((const struct tagged *)harness_row(&harness, 1))->text, "two\nlines");
    assert_int_equal(((const struct tagged *)harness_row(&harness, 2))->id, 6);
    assert_int_equal(harness.error_count, 8);
    assert_non_null(strstr(harness.errors[0], "a.csv, line 3, column id: is not a whole number"));
    assert_non_null(strstr(harness.errors[1], "line 6: the row has 1 cell, the header has 2"));
    assert_non_null(strstr(harness.errors[2], "line 7: a quote is inside of a cell"));
    assert_non_null(strstr(harness.errors[3], "line 8: a quoted cell is not closed"));
    assert_non_null(strstr(harness.errors[4], "line 10, column id: is negative"));
    assert_non_null(strstr(harness.errors[5], "line 11, column text: is not UTF-8"));
    assert_non_null(strstr(harness.errors[6], "line 12, column id: is empty"));
    assert_non_null(strstr(harness.errors[7], "line 13, column id: does not fit"));
    harness_deinit(&harness);
}

/* An open quote does not swallow a large file. */
static void an_open_quote_costs_one_line(void **state)
{
    size_t size = 3u << 20;
    char *text = malloc(size), path[512];
    struct harness harness;

    (void)state;
    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text, "id,text\n1,\"open\n2,b\n3,\"", 23);
    memcpy(text + size - 6, "\n4,c\n", 5);
    text[size - 1] = ' ';
    (void)snprintf(path, sizeof path, "%s/big.csv", folder);
    det_test_write_file(path, text, size - 1);
    free(text);
    (void)snprintf(settings, sizeof settings, "{path: %s}", path);
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2);
    assert_int_equal(((const struct tagged *)harness_row(&harness, 0))->id, 2);
    assert_int_equal(((const struct tagged *)harness_row(&harness, 1))->id, 4);
    assert_non_null(strstr(harness.errors[0], "line 2: text follows a closing quote"));
    assert_non_null(strstr(harness.errors[1], "line 4: a quoted cell is not closed"));
    harness_deinit(&harness);
}

static void a_source_continues_behind_its_last_row(void **state)
{
    struct harness harness;

    (void)state;
    write_csv("id,text\n", "1,a\n2,\"b\nc\"\n3,d\n4,e\n", "");
    harness_open(&harness, &csv_source, two, settings);
    harness.room = 1;
    while (harness.row_count < 4) {
        assert_int_equal(harness_next(&harness), DET_SOURCE_MORE);
        harness_stop(&harness);
        assert_int_equal(harness_start(&harness), 0);
    }
    assert_int_equal(((struct file_cursor *)harness.cursor)->lines, 6);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(((const struct tagged *)harness_row(&harness, i))->id, i + 1);
    harness_deinit(&harness);
}

static void a_header_without_a_field_fails_the_stage(void **state)
{
    struct harness harness;

    (void)state;
    write_csv("id,words\n", "1,a\n", "");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_next(&harness), DET_ERR_MISSING_FIELD);
    assert_non_null(strstr(
        harness.failure.text,
        "has no column 'text' for the field text: its 2 columns begin with 'id'"));
    harness_deinit(&harness);
    write_csv("id,\"text\n", "1,a\n", "");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_next(&harness), DET_ERR_MALFORMED);
    assert_non_null(strstr(harness.failure.text, "has no valid header"));
    harness_deinit(&harness);
}

static void an_empty_file_is_the_end(void **state)
{
    struct harness harness;

    (void)state;
    write_csv("", "", "");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    harness_deinit(&harness);
    write_csv("id,text", "", "");
    harness_open(&harness, &csv_source, two, settings);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 0);
    harness_deinit(&harness);
}

static void wrong_columns_are_refused(void **state)
{
    (void)state;
    harness_refuses(&csv_source, two, "{}", "path is missing: add it, such as {path: in.csv}");
    harness_refuses(
        &csv_source, two, "{path: a, columns: {txt: 1}}",
        "tagged has no field 'txt'; did you mean");
    harness_refuses(
        &csv_source, two, "{path: a, columns: {tags: 1}}", "tags is a list or a record");
    harness_refuses(&csv_source, two, "{path: a, columns: {id: 0}}", "id: expected the title or");
    harness_refuses(&csv_source, two, "{path: a, columns: [id]}", "columns: expected a map");
    harness_refuses(&csv_source, two, "{path: a, delimiter: '\"'}", "delimiter is a character");
    harness_refuses(&csv_source, two, "{path: a, delimiter: ';;'}", "delimiter is one character");
}

static int read_all_rows(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &csv_source, two, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness_run(&harness);
    harness_deinit(&harness);
    return r == DET_SOURCE_DONE ? 0 : r;
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    write_csv("id,text\n", "1,a\n", ", columns: {id: 1, text: text}");
    det_test_each_failure(read_all_rows, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_fields_by_name),
        cmocka_unit_test(columns_are_mapped_by_title_and_number),
        cmocka_unit_test(a_file_without_a_header_is_read_in_order),
        cmocka_unit_test(malformed_rows_are_rejected_with_their_line),
        cmocka_unit_test(an_open_quote_costs_one_line),
        cmocka_unit_test(a_source_continues_behind_its_last_row),
        cmocka_unit_test(a_header_without_a_field_fails_the_stage),
        cmocka_unit_test(an_empty_file_is_the_end),
        cmocka_unit_test(wrong_columns_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
