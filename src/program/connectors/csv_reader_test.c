/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_reader_test.c - rows of RFC 4180, malformed rows, and texts cut at every byte. */
#include "connectors/csv_reader.h"

#include "lib/test.h"

static struct csv_row row;

/* Splits the first row of a copy, so that sanitizers see reads beyond the end. Returns its cells,
 * separated by '|', in `target`. */
static enum csv_result split(const char *text, size_t size, bool is_end, char *target)
{
    char *copy = malloc(size ? size : 1);
    enum csv_result result;
    char *to = target;

    assert_non_null(copy);
    memcpy(copy, text, size);
    result = csv_split(copy, size, ',', is_end, &row);
    for (uint32_t i = 0; result == CSV_ROW && i < row.count; i++) {
        memcpy(to, row.cells[i].data, row.cells[i].size);
        to += row.cells[i].size;
        *to++ = '|';
    }
    *to = 0;
    free(copy);
    return result;
}

static void rows_are_split_into_cells(void **state)
{
    static const struct {
        const char *text, *cells;
        size_t size;
        uint32_t lines;
    } cases[] = {
        { "a,b,c\n", "a|b|c|", 6, 1 },
        { "a,b,c\r\nd", "a|b|c|", 7, 1 },
        { "a", "a|", 1, 1 },
        { "\n", "|", 1, 1 },
        { ",\n", "||", 2, 1 },
        { ",,\r\n", "|||", 4, 1 },
        { "\"a\",\"\",\"b,c\"\n", "a||b,c|", 13, 1 },
        { "\"say \"\"hi\"\"\",\"\"\"\"\n", "say \"hi\"|\"|", 18, 1 },
        { "\"two\nlines\",x\n", "two\nlines|x|", 14, 2 },
        { "\"two\r\nlines\"\r\nnext", "two\r\nlines|", 14, 2 },
        { "long enough for eight bytes,and a second cell,\n",
          "long enough for eight bytes|and a second cell||", 47, 1 },
        { "a\rb,c\n", "a\rb|c|", 6, 1 },
        { "\"a\"", "a|", 3, 1 },
        { "\"a\"\r", "a|", 4, 1 },
        { "x\r", "x|", 2, 1 },
        { "\xff\xfe,\x80\n", "\xff\xfe|\x80|", 5, 1 },
    };
    char cells[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(split(cases[i].text, strlen(cases[i].text), true, cells), CSV_ROW);
        assert_string_equal(cells, cases[i].cells);
        assert_int_equal(row.size, cases[i].size);
        assert_int_equal(row.lines, cases[i].lines);
    }
}

static void malformed_rows_end_at_their_first_line_end(void **state)
{
    static const struct {
        const char *text;
        enum csv_result result;
        size_t size;
    } cases[] = {
        { "a\"b,c\nd\n", CSV_QUOTE, 6 },   { "\"a\"b,c\nd\n", CSV_TAIL, 7 },
        { "x,\"open\nd\n", CSV_OPEN, 8 },  { "\"", CSV_OPEN, 1 },
        { "\"a\" ,b\n", CSV_TAIL, 7 },     { "a,b\"\"\n", CSV_QUOTE, 6 },
        { "\"a\nb\"c\nd\n", CSV_TAIL, 3 },
    };
    char cells[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(split(cases[i].text, strlen(cases[i].text), true, cells), cases[i].result);
        assert_int_equal(row.size, cases[i].size);
        assert_true(*csv_result_text(cases[i].result) != 0);
    }
}

static void a_row_with_too_many_cells_is_refused(void **state)
{
    char text[CSV_CELLS_MAX + 2], cells[2 * CSV_CELLS_MAX + 2];

    (void)state;
    memset(text, ',', sizeof text);
    text[CSV_CELLS_MAX - 1] = '\n';
    assert_int_equal(split(text, CSV_CELLS_MAX, true, cells), CSV_ROW);
    assert_int_equal(row.count, CSV_CELLS_MAX);
    text[CSV_CELLS_MAX - 1] = ',';
    text[CSV_CELLS_MAX] = '\n';
    assert_int_equal(split(text, CSV_CELLS_MAX + 1, true, cells), CSV_CELLS);
    assert_int_equal(row.size, CSV_CELLS_MAX + 1);
}

/* A row that is not complete is never split in a different way than the complete one. */
static void a_prefix_is_partial_until_the_row_is_complete(void **state)
{
    static const char *const texts[] = {
        "a,\"b \"\"c\"\"\n,d\",e\r\nrest",
        "\"a\"\"\",b\nrest",
        "plain,cells,of a row\nrest",
        "\"a\"\r\nrest",
    };
    char complete[256], cells[256];

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t size;

        assert_int_equal(split(texts[i], strlen(texts[i]), false, complete), CSV_ROW);
        size = row.size;
        for (size_t cut = 0; cut <= strlen(texts[i]); cut++) {
            if (cut < size) {
                assert_int_equal(split(texts[i], cut, false, cells), CSV_PARTIAL);
                continue;
            }
            assert_int_equal(split(texts[i], cut, false, cells), CSV_ROW);
            assert_string_equal(cells, complete);
            assert_int_equal(row.size, size);
        }
    }
}

/* Writes cells as CSV and reads them back. */
static void random_cells_come_back(void **state)
{
    static const char letters[] = "ab,\"\n\r ";
    uint64_t seed = 7;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        char text[512], wanted[256], cells[256], *to = text, *want = wanted;
        uint64_t count = 1 + det_test_random(&seed) % 5;

        for (uint64_t i = 0; i < count; i++) {
            uint64_t size = det_test_random(&seed) % 12;

            if (i)
                *to++ = ',';
            *to++ = '"';
            for (uint64_t k = 0; k < size; k++) {
                char c = letters[det_test_random(&seed) % (sizeof letters - 1)];

                *want++ = *to++ = c;
                if (c == '"')
                    *to++ = c;
            }
            *to++ = '"';
            *want++ = '|';
        }
        *to++ = '\n';
        *want = 0;
        assert_int_equal(split(text, (size_t)(to - text), false, cells), CSV_ROW);
        assert_int_equal(row.count, count);
        assert_string_equal(cells, wanted);
        assert_int_equal(row.size, to - text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_split_into_cells),
        cmocka_unit_test(malformed_rows_end_at_their_first_line_end),
        cmocka_unit_test(a_row_with_too_many_cells_is_refused),
        cmocka_unit_test(a_prefix_is_partial_until_the_row_is_complete),
        cmocka_unit_test(random_cells_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
