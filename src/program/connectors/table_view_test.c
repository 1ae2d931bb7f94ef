/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_view_test.c - aligned lines, cut and harmless cells. */
#include "connectors/table_view.h"

#include "lib/test.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

static void assert_table(
    size_t width, const struct reading *rows, size_t count, const char *expected)
{
    struct columns columns;
    struct table_view view;
    struct det_buffer cells, text;
    const char *at;

    det_buffer_init(&cells, NULL);
    det_buffer_init(&text, NULL);
    assert_int_equal(columns_init(&columns, NULL, reading_record(), COLUMNS_REDACTED), 0);
    table_view_init(&view, NULL, width);
    assert_true(table_view_add(&view, columns_find(&columns, "sensor")));
    assert_true(table_view_add(&view, columns_find(&columns, "celsius")));
    assert_true(table_view_add(&view, columns_find(&columns, "note")));
    for (size_t i = 0; i < count; i++)
        table_view_cells(&view, &rows[i], &cells);
    at = det_buffer_text(&cells);
    for (size_t i = 0; i < count; i++)
        at += table_view_fit(&view, at);
    table_view_head(&view, &text);
    at = det_buffer_text(&cells);
    for (size_t i = 0; i < count; i++)
        at += table_view_line(&view, at, &text);
    assert_string_equal(det_buffer_text(&text), expected);
    table_view_deinit(&view);
    columns_deinit(&columns);
    det_buffer_deinit(&cells);
    det_buffer_deinit(&text);
}

static void columns_are_as_wide_as_their_cells(void **state)
{
    struct reading rows[] = {
        { .sensor = "attic", .celsius = 21.5, .has_note = true, .note = "ok" },
        { .sensor = "k\xc3\xbc", .celsius = -3 }
    };

    (void)state;
    assert_table(
        40, rows, 2,
        "sensor  celsius  note\n"
        "attic      21.5  ok\n"
        "k\xc3\xbc           -3  \n");
}

static void cells_cannot_control_the_terminal(void **state)
{
    struct reading rows[] = { { .sensor = "\x1b[2J\a", .has_note = true, .note = "a\nb\tc" } };

    (void)state;
    assert_table(
        40, rows, 1,
        "sensor       celsius  note\n"
        "\\x1b[2J\\x07        0  a b c\n");
}

static void long_cells_are_cut_between_characters(void **state)
{
    struct reading rows[] = { { .sensor = "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
                                          "\xc3\xbc\xc3\xbc\xc3\xbc" } };

    (void)state;
    assert_table(
        8, rows, 1,
        "sensor    celsius  note\n"
        "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc...        0  \n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_cells),
        cmocka_unit_test(cells_cannot_control_the_terminal),
        cmocka_unit_test(long_cells_are_cut_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
