/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* columns_test.c - fields as columns, and their values as text, CSV and JSON. */
#include "connectors/columns.h"

#include "lib/test.h"
#include "record/number.h"

#define REC_SPEC "connectors/sink_test.rec"
#include <detent/rec/declare.h>

static struct parcel parcel_of(void)
{
    struct parcel parcel = { .id = -7,
                             .place = { .city = "Ulm", .floor = -1 },
                             .code = "hunter2",
                             .data = { 3, { 1, 2, 255 } },
                             .tags_count = 2,
                             .tags = { "a", "b \"c\"" } };

    return parcel;
}

static void assert_written(
    unsigned flags, const struct det_record *record, const void *row, const char *csv,
    const char *json)
{
    struct columns columns;
    struct det_buffer buffer;

    det_buffer_init(&buffer, NULL);
    assert_int_equal(columns_init(&columns, NULL, record, flags), 0);
    columns_write_csv(&columns, row, ',', &buffer);
    assert_string_equal(det_buffer_text(&buffer), csv);
    det_buffer_clear(&buffer);
    columns_write_json(&columns, row, &buffer);
    assert_string_equal(det_buffer_text(&buffer), json);
    columns_deinit(&columns);
    det_buffer_deinit(&buffer);
}

static void nested_records_are_columns_and_arrays_are_json(void **state)
{
    struct parcel parcel = parcel_of();
    struct columns columns;
    char names[200];

    (void)state;
    assert_int_equal(columns_init(&columns, NULL, parcel_record(), 0), 0);
    assert_string_equal(
        columns_names(&columns, names, sizeof names),
        "id, place.city, place.floor, code, data, tags, origin");
    assert_non_null(columns_find(&columns, "place.floor"));
    assert_null(columns_find(&columns, "place"));
    columns_deinit(&columns);
    assert_written(
        0, parcel_record(), &parcel,
        "-7,Ulm,-1,hunter2,AQL/,\"[\"\"a\"\",\"\"b \\\"\"c\\\"\"\"\"]\",\n",
        "{\"id\":-7,\"place.city\":\"Ulm\",\"place.floor\":-1,\"code\":\"hunter2\",\"data\":"
        "\"AQL/\",\"tags\":[\"a\",\"b \\\"c\\\"\"]}");
}

static void json_of_nested_records_is_that_of_the_record(void **state)
{
    struct parcel parcel = parcel_of();
    char json[400];

    (void)state;
    parcel.has_origin = true;
    parcel.origin.floor = 3;
    (void)det_record_to_json(parcel_record(), &parcel, DET_TEXT_REVEAL, json, sizeof json);
    assert_written(
        COLUMNS_NESTED, parcel_record(), &parcel,
        "-7,\"{\"\"city\"\":\"\"Ulm\"\",\"\"floor\"\":-1}\",hunter2,AQL/,\"[\"\"a\"\",\"\"b "
        "\\\"\"c\\\"\"\"\"]\",\"{\"\"city\"\":\"\"\"\",\"\"floor\"\":3}\"\n",
        json);
}

static void sensitive_fields_are_redacted_on_displays(void **state)
{
    struct parcel parcel = parcel_of();
    struct columns columns;
    struct det_buffer buffer;

    (void)state;
    det_buffer_init(&buffer, NULL);
    assert_int_equal(columns_init(&columns, NULL, parcel_record(), COLUMNS_REDACTED), 0);
    columns_write_json(&columns, &parcel, &buffer);
    columns_write_csv(&columns, &parcel, ',', &buffer);
    assert_null(strstr(det_buffer_text(&buffer), "hunter2"));
    assert_non_null(strstr(det_buffer_text(&buffer), "\"code\":\"{redacted}\""));
    columns_deinit(&columns);
    det_buffer_deinit(&buffer);
}

static void cells_are_quoted_when_they_must_be(void **state)
{
    struct reading reading = { .id = UINT64_MAX, .celsius = -0.25, .at = 0, .has_note = true };

    (void)state;
    memcpy(reading.sensor, "a,\"b\"\n", 7);
    assert_written(
        0, reading_record(), &reading,
        "18446744073709551615,\"a,\"\"b\"\"\n\",-0.25,\"\",1970-01-01T00:00:00Z,calm,false\n",
        "{\"id\":18446744073709551615,\"sensor\":\"a,\\\"b\\\"\\n\",\"celsius\":-0.25,\"note\":"
        "\"\",\"at\":\"1970-01-01T00:00:00Z\",\"mood\":\"calm\",\"is_valid\":false}");
    reading.has_note = false;
    reading.celsius = 1e300;
    memcpy(reading.sensor, " x", 3);
    assert_written(
        0, reading_record(), &reading,
        "18446744073709551615,\" x\",1e+300,,1970-01-01T00:00:00Z,calm,false\n",
        "{\"id\":18446744073709551615,\"sensor\":\" x\",\"celsius\":1e+300,\"at\":"
        "\"1970-01-01T00:00:00Z\",\"mood\":\"calm\",\"is_valid\":false}");
}

static void floats_are_written_like_in_records(void **state)
{
    static const double numbers[] = { 0,       -0.0, 0.5,   -21.25,   0.1,       1e-4,
                                      0.00012, 1e-5, 1e15,  999999.5, 1e9,       123456789.123456,
                                      1.0 / 3, -0.3, 1e100, 5e-324,   0.1 + 0.2, 100.000001 };
    uint64_t seed = 1;
    struct columns columns;
    struct det_buffer buffer;

    (void)state;
    det_buffer_init(&buffer, NULL);
    assert_int_equal(columns_init(&columns, NULL, reading_record(), 0), 0);
    for (size_t i = 0; i < 20000; i++) {
        struct reading reading = { .celsius = 0 };
        uint64_t random = det_test_random(&seed);
        char text[DET_DOUBLE_TEXT];

        if (i < sizeof numbers / sizeof *numbers)
            reading.celsius = numbers[i];
        else if (i % 3 == 0)
            reading.celsius = (double)(random % 100000000) / 1000;
        else if (i % 3 == 1)
            reading.celsius = -(double)(random % 1000000000000) / 1000000;
        else
            reading.celsius = (double)random / 1e17;
        det_buffer_clear(&buffer);
        column_write(columns_find(&columns, "celsius"), &reading, &buffer);
        assert_string_equal(det_buffer_text(&buffer), det_format_double(reading.celsius, text));
    }
    columns_deinit(&columns);
    det_buffer_deinit(&buffer);
}

static void the_head_has_the_names(void **state)
{
    struct columns columns;
    struct det_buffer buffer;

    (void)state;
    det_buffer_init(&buffer, NULL);
    assert_int_equal(columns_init(&columns, NULL, parcel_record(), 0), 0);
    columns_write_csv_head(&columns, ';', &buffer);
    assert_string_equal(
        det_buffer_text(&buffer), "id;place.city;place.floor;code;data;tags;origin\n");
    columns_deinit(&columns);
    det_buffer_deinit(&buffer);
}

static int write_all(struct det_test_memory *memory, void *argument)
{
    struct parcel parcel = parcel_of();
    struct columns columns;
    struct det_buffer buffer;
    int r;

    (void)argument;
    det_buffer_init(&buffer, &memory->allocator);
    r = columns_init(&columns, &memory->allocator, parcel_record(), 0);
    if (r == 0) {
        for (int i = 0; i < 20; i++)
            columns_write_csv(&columns, &parcel, ',', &buffer);
        columns_write_json(&columns, &parcel, &buffer);
        r = det_buffer_status(&buffer);
        columns_deinit(&columns);
    }
    det_buffer_deinit(&buffer);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(write_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_records_are_columns_and_arrays_are_json),
        cmocka_unit_test(json_of_nested_records_is_that_of_the_record),
        cmocka_unit_test(sensitive_fields_are_redacted_on_displays),
        cmocka_unit_test(cells_are_quoted_when_they_must_be),
        cmocka_unit_test(floats_are_written_like_in_records),
        cmocka_unit_test(the_head_has_the_names),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
