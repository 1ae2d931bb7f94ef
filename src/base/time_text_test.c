/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* time_text_test.c - wall times against known instants, a day-by-day calendar and each other. */
#include "base/text.h"
#include "lib/test.h"

struct instant {
    const char *text;
    det_time wall;
};

static const struct instant instants[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "1969-12-31T23:59:59.999999999Z", -1 },
    { "2001-09-09T01:46:40Z", 1000000000 * DET_SECOND },
    { "2000-02-29T12:00:00Z", 951825600 * DET_SECOND },
    { "2026-01-31T10:00:00.25Z", 1769853600 * DET_SECOND + 250 * DET_MILLISECOND },
    { "2038-01-19T03:14:08Z", 2147483648 * DET_SECOND },
    { "1900-03-01T00:00:00Z", -2203891200 * DET_SECOND },
    { "2100-03-01T00:00:00Z", 4107542400 * DET_SECOND },
    { "1677-09-21T00:12:43.145224192Z", INT64_MIN },
    { "2262-04-11T23:47:16.854775807Z", INT64_MAX },
};

static void known_instants_are_written_and_read(void **state)
{
    char text[DET_TIME_TEXT];
    det_time wall;

    (void)state;
    for (size_t i = 0; i < sizeof instants / sizeof instants[0]; i++) {
        assert_string_equal(det_format_time(instants[i].wall, text, sizeof text), instants[i].text);
        wall = 99;
        assert_int_equal(det_parse_time(det_view_text(instants[i].text), &wall), 0);
        assert_true(wall == instants[i].wall);
    }
}

static void the_basic_form_has_no_separators(void **state)
{
    char text[DET_TIME_TEXT];
    det_time wall = 1769853600 * DET_SECOND;

    (void)state;
    assert_string_equal(det_format_time_basic(wall, text, sizeof text), "20260131T100000Z");
    assert_string_equal(
        det_format_time_basic(wall + 250 * DET_MILLISECOND, text, sizeof text),
        "20260131T100000.25Z");
    assert_string_equal(
        det_format_time_basic(INT64_MAX, text, sizeof text), "22620411T234716.854775807Z");
}

/* A calendar that only knows how to go to the next day. */
static void next_day(int *year, int *month, int *day)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool is_leap = (*year % 4 == 0 && *year % 100 != 0) || *year % 400 == 0;
    int length = *month == 2 && is_leap ? 29 : lengths[*month - 1];

    if (++*day > length) {
        *day = 1;
        *month = *month % 12 + 1;
        *year += *month == 1 ? 1 : 0;
    }
}

static void every_day_of_the_range_has_its_date(void **state)
{
    int year = 1677, month = 9, day = 22;
    int64_t first = INT64_MIN / DET_DAY, last = INT64_MAX / DET_DAY;
    char expected[2 * DET_TIME_TEXT], text[DET_TIME_TEXT];
    det_time wall;

    (void)state;
    for (int64_t number = first; number <= last; number++) {
        (void)snprintf(expected, sizeof expected, "%04d-%02d-%02dT00:00:00Z", year, month, day);
        assert_string_equal(det_format_time(number * DET_DAY, text, sizeof text), expected);
        assert_int_equal(det_parse_time(det_view_text(expected), &wall), 0);
        assert_true(wall == number * DET_DAY);
        next_day(&year, &month, &day);
    }
    assert_int_equal(year * 10000 + month * 100 + day, 22620412);
}

static void random_instants_round_trip(void **state)
{
    uint64_t seed = 2;
    char text[DET_TIME_TEXT];
    det_time back;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        det_time wall = (det_time)det_test_random(&seed);

        (void)det_format_time(wall, text, sizeof text);
        assert_int_equal(det_parse_time(det_view_text(text), &back), 0);
        assert_true(back == wall);
    }
}

static void time_offsets_are_subtracted(void **state)
{
    static const struct instant cases[] = {
        { "1970-01-01T01:00:00+01:00", 0 },
        { "1969-12-31T18:30:00-05:30", 0 },
        { "1970-01-01T00:00:00-00:00", 0 },
        { "1970-01-01t00:00:01z", DET_SECOND },
        { "1970-01-01T00:00:00.1000000000000000000Z", 100 * DET_MILLISECOND },
        { "2262-04-12T09:47:16.854775807+10:00", INT64_MAX },
        { "1677-09-20T14:12:43.145224192-10:00", INT64_MIN },
    };
    det_time wall;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        wall = 99;
        assert_int_equal(det_parse_time(det_view_text(cases[i].text), &wall), 0);
        assert_true(wall == cases[i].wall);
    }
}

static void a_leap_second_is_read_where_it_can_be(void **state)
{
    det_time wall, next;

    (void)state;
    assert_int_equal(det_parse_time(det_view_text("2017-01-01T00:00:00Z"), &next), 0);
    assert_int_equal(det_parse_time(det_view_text("2016-12-31T23:59:60Z"), &wall), 0);
    assert_true(wall == next);
    assert_int_equal(det_parse_time(det_view_text("2017-01-01T00:59:60+01:00"), &wall), 0);
    assert_true(wall == next);
    assert_int_equal(det_parse_time(det_view_text("2016-12-31T22:59:60Z"), &wall), DET_ERR_RANGE);
    assert_int_equal(det_parse_time(det_view_text("2016-12-30T23:59:60Z"), &wall), DET_ERR_RANGE);
}

static void check_all(const char *const *texts, size_t count, int expected)
{
    det_time wall = 99;

    for (size_t i = 0; i < count; i++) {
        int r = det_parse_time(det_view_text(texts[i]), &wall);

        if (r != expected)
            fail_msg("\"%s\" gives %d", texts[i], r);
    }
    assert_int_equal(wall, 99);
}

static void malformed_times_are_rejected(void **state)
{
    static const char *const malformed[] = {
        "",
        "now",
        "1970",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01T00:00Z",
        "1970-01-01 00:00:00Z",
        "70-01-01T00:00:00Z",
        "1970-1-01T00:00:00Z",
        "1970/01/01T00:00:00Z",
        "1970-01/01T00:00:00Z",
        "1970-01-01T00.00:00Z",
        "1970-01-01T00:00.00Z",
        "1970-01-01T00:00:0Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00,5Z",
        "1970-01-01T00:00:00Zx",
        "1970-01-01T00:00:00+01",
        "1970-01-01T00:00:00+0100",
        "1970-01-01T00:00:00+1:00",
        "1970-01-01T00:00:00+01:0",
        "-970-01-01T00:00:00Z",
        " 1970-01-01T00:00:00Z",
        "11970-01-01T00:00:00Z",
        "1970-01-01T00:00:00*01:00",
    };

    (void)state;
    check_all(malformed, sizeof malformed / sizeof malformed[0], DET_ERR_MALFORMED);
}

static void impossible_and_distant_times_are_out_of_range(void **state)
{
    static const char *const impossible[] = {
        "1970-00-01T00:00:00Z",           "1970-13-01T00:00:00Z",
        "1970-01-00T00:00:00Z",           "1970-01-32T00:00:00Z",
        "1970-04-31T00:00:00Z",           "1970-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",           "2000-02-30T00:00:00Z",
        "1970-01-01T24:00:00Z",           "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:61Z",           "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+00:60",      "1970-01-01T00:00:00.0000000001Z",
        "1677-09-21T00:12:43.145224191Z", "2262-04-11T23:47:16.854775808Z",
        "0000-01-01T00:00:00Z",           "0000-03-01T00:00:00Z",
        "9999-12-31T23:59:59Z",           "9999-12-31T23:59:60Z",
    };

    (void)state;
    check_all(impossible, sizeof impossible / sizeof impossible[0], DET_ERR_RANGE);
}

static void small_target_gets_a_truncated_text(void **state)
{
    char text[11];

    (void)state;
    assert_ptr_equal(det_format_time(0, text, sizeof text), text);
    assert_string_equal(text, "1970-01-01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instants_are_written_and_read),
        cmocka_unit_test(the_basic_form_has_no_separators),
        cmocka_unit_test(every_day_of_the_range_has_its_date),
        cmocka_unit_test(random_instants_round_trip),
        cmocka_unit_test(time_offsets_are_subtracted),
        cmocka_unit_test(a_leap_second_is_read_where_it_can_be),
        cmocka_unit_test(malformed_times_are_rejected),
        cmocka_unit_test(impossible_and_distant_times_are_out_of_range),
        cmocka_unit_test(small_target_gets_a_truncated_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
