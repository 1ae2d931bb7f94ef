/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_value_test.c - fields and expressions of a row as text and JSON. */
#include "connectors/row_value.h"

#include "lib/test.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

static struct columns columns;

static int set_up(void **state)
{
    (void)state;
    return columns_init(&columns, NULL, reading_record(), COLUMNS_NESTED);
}

static int tear_down(void **state)
{
    (void)state;
    columns_deinit(&columns);
    return 0;
}

static void assert_written(const char *expression, const char *text, const char *json)
{
    static struct det_expression_scratch scratch;
    struct reading reading = { .id = 7, .sensor = "a\"b", .celsius = 1.5, .mood = MOOD_HOT };
    struct det_error error;
    struct det_buffer buffer;
    struct row_value value;

    det_buffer_init(&buffer, NULL);
    if (row_value_init(&value, NULL, expression, &columns, reading_record(), &error) < 0)
        fail_msg("%s: %s", expression, error.text);
    assert_int_equal(row_value_write(&value, &reading, false, &scratch, &buffer, &error), 0);
    assert_string_equal(det_buffer_text(&buffer), text);
    det_buffer_clear(&buffer);
    assert_int_equal(row_value_write(&value, &reading, true, &scratch, &buffer, &error), 0);
    assert_string_equal(det_buffer_text(&buffer), json);
    row_value_deinit(&value);
    det_buffer_deinit(&buffer);
}

static void fields_and_expressions_are_written(void **state)
{
    (void)state;
    assert_written("sensor", "a\"b", "\"a\\\"b\"");
    assert_written("mood", "hot", "\"hot\"");
    assert_written("note", "", "null");
    assert_written("id + 1", "8", "8");
    assert_written("celsius * 2", "3", "3");
    assert_written("id > 3", "true", "true");
    assert_written("upper(sensor)", "A\"B", "\"A\\\"B\"");
    assert_written("at + 1s", "1970-01-01T00:00:01Z", "\"1970-01-01T00:00:01Z\"");
}

static void errors_are_those_of_expressions(void **state)
{
    static struct det_expression_scratch scratch;
    struct reading reading = { .id = 0 };
    struct det_error error;
    struct det_buffer buffer;
    struct row_value value;

    (void)state;
    assert_true(row_value_init(&value, NULL, "idd", &columns, reading_record(), &error) < 0);
    det_buffer_init(&buffer, NULL);
    assert_int_equal(row_value_init(&value, NULL, "1 / id", &columns, reading_record(), &error), 0);
    assert_true(row_value_write(&value, &reading, false, &scratch, &buffer, &error) < 0);
    row_value_deinit(&value);
    det_buffer_deinit(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_and_expressions_are_written),
        cmocka_unit_test(errors_are_those_of_expressions),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
