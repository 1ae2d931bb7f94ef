/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_writer_test.c - records as JSON and as text for people, and what is never in it. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include <math.h>

#include "lib/test.h"

static struct every example(void)
{
    struct every value = {
        .a = 255,
        .b = 2,
        .c = 3,
        .d = UINT64_MAX,
        .e = -5,
        .f = -6,
        .g = -7,
        .h = INT64_MIN,
        .i = 0.1,
        .j = true,
        .k = DET_DAY + DET_MILLISECOND,
        .l = "\"\n",
        .m = { 2, { 1, 0xfe } },
        .n = COLOR_BLUE,
        .o = { "pen", 12 },
        .secret = "canary",
        .has_note = true,
        .note = "\xe2\x82\xac",
        .has_when = true,
        .when = 77,
        .lines_count = 1,
        .lines = { { "canary", 4294967295 } },
        .words_count = 2,
        .words = { "ab", "" },
        .flags_count = 1,
        .flags = { false },
        .colors_count = 2,
        .colors = { COLOR_RED, COLOR_GREEN },
    };

    return value;
}

static void json_has_the_fields_in_order(void **state)
{
    struct every value = example();
    char text[1024];

    (void)state;
    det_record_to_json(every_record(), &value, 0, text, sizeof text);
    assert_string_equal(
        text, "{\"a\":255,\"b\":2,\"c\":3,\"d\":18446744073709551615,\"e\":-5,\"f\":-6,\"g\":-7,"
              "\"h\":-9223372036854775808,\"i\":0.1,\"j\":true,\"k\":\"1970-01-02T00:00:00.001Z\","
              "\"l\":\"\\\"\\n\",\"m\":\"Af4=\",\"n\":\"dark-blue\",\"o\":{\"name\":\"pen\","
              "\"pieces\":12},"
              "\"secret\":\"{redacted}\",\"note\":\"\xe2\x82\xac\",\"when\":\"{redacted}\","
              "\"lines\":\"{redacted}\",\"words\":[\"ab\",\"\"],\"flags\":[false],\"blobs\":[],"
              "\"colors\":[\"red\",\"green\"]}");
}

static void text_form_shows_names_and_values(void **state)
{
    struct every value = example();
    char text[1024];

    (void)state;
    det_record_print(every_record(), &value, 0, text, sizeof text);
    assert_string_equal(
        text, "every{a=255, b=2, c=3, d=18446744073709551615, e=-5, f=-6, g=-7, "
              "h=-9223372036854775808, i=0.1, j=true, k=1970-01-02T00:00:00.001Z, l=\"\\\"\\n\", "
              "m=0x01fe, n=dark-blue, o=line{name=\"pen\", pieces=12}, secret={redacted}, "
              "note=\"\xe2\x82\xac\", when={redacted}, lines={redacted}, words=[\"ab\", \"\"], "
              "flags=[false], blobs=[], colors=[red, green]}");
}

static void sensitive_fields_are_shown_when_revealed(void **state)
{
    struct every value = example();
    char text[1024];

    (void)state;
    det_record_to_json(every_record(), &value, DET_TEXT_REVEAL, text, sizeof text);
    assert_non_null(strstr(
        text, "\"secret\":\"canary\",\"note\":\"\xe2\x82\xac\","
              "\"when\":\"1970-01-01T00:00:00.000000077Z\","
              "\"lines\":[{\"name\":\"canary\",\"pieces\":4294967295}],"));
    det_record_print(every_record(), &value, DET_TEXT_REVEAL, text, sizeof text);
    assert_non_null(strstr(text, "lines=[line{name=\"canary\", pieces=4294967295}], "));
}

static void sensitive_fields_are_redacted_in_every_other_text(void **state)
{
    struct every value = example();
    char text[2048];

    (void)state;
    for (unsigned flags = 0; flags < 8; flags++) {
        if (flags & DET_TEXT_REVEAL)
            continue;
        for (size_t capacity = 0; capacity < 900; capacity++) {
            memset(text, 0, sizeof text);
            det_record_to_json(every_record(), &value, flags, text, capacity);
            assert_null(memmem(text, sizeof text, "canary", 6));
            det_record_print(every_record(), &value, flags, text, capacity);
            assert_null(memmem(text, sizeof text, "canary", 6));
        }
    }
}

static void absent_fields_are_omitted(void **state)
{
    struct every value = { 0 };
    char text[1024];

    (void)state;
    det_record_to_json(every_record(), &value, 0, text, sizeof text);
    assert_null(strstr(text, "note"));
    assert_null(strstr(text, "when"));
    assert_non_null(strstr(text, "\"lines\":\"{redacted}\""));
}

static void indented_text_has_a_line_for_each_value(void **state)
{
    struct line line = { "pen", 12 };
    char text[128];

    (void)state;
    det_record_to_json(line_record(), &line, DET_TEXT_INDENT, text, sizeof text);
    assert_string_equal(text, "{\n    \"name\": \"pen\",\n    \"pieces\": 12\n}");
    det_record_print(line_record(), &line, DET_TEXT_INDENT, text, sizeof text);
    assert_string_equal(text, "line{\n    name=\"pen\",\n    pieces=12\n}");
    det_record_to_json(det_empty_record(), &line, DET_TEXT_INDENT, text, sizeof text);
    assert_string_equal(text, "{}");
    det_record_print(det_empty_record(), &line, 0, text, sizeof text);
    assert_string_equal(text, "empty{}");
}

static void indented_arrays_have_a_line_for_each_element(void **state)
{
    struct every value = { .colors_count = 2 };
    char text[1024];

    (void)state;
    det_record_to_json(every_record(), &value, DET_TEXT_INDENT, text, sizeof text);
    assert_non_null(strstr(
        text, "    \"blobs\": [],\n    \"colors\": [\n        \"red\",\n"
              "        \"red\"\n    ]\n}"));
    assert_non_null(
        strstr(text, "    \"o\": {\n        \"name\": \"\",\n        \"pieces\": 0\n    },"));
}

static void every_capacity_gives_a_prefix_and_the_length(void **state)
{
    struct every value = example();
    char whole[1024], part[1024];
    size_t length = det_record_to_json(every_record(), &value, 0, whole, sizeof whole);

    (void)state;
    assert_int_equal(length, strlen(whole));
    assert_int_equal(det_record_to_json(every_record(), &value, 0, NULL, 0), length);
    for (size_t capacity = 1; capacity <= length + 2; capacity++) {
        size_t shown = capacity <= length ? capacity - 1 : length;

        memset(part, '#', sizeof part);
        assert_int_equal(det_record_to_json(every_record(), &value, 0, part, capacity), length);
        assert_memory_equal(part, whole, shown);
        assert_int_equal(part[shown], 0);
        assert_int_equal(part[shown + 1], '#');
    }
}

static void non_finite_numbers_are_json_null(void **state)
{
    struct every value = { .i = INFINITY };
    char text[1024];

    (void)state;
    det_record_to_json(every_record(), &value, 0, text, sizeof text);
    assert_non_null(strstr(text, "\"i\":null,"));
    det_record_print(every_record(), &value, 0, text, sizeof text);
    assert_non_null(strstr(text, "i=inf,"));
}

static void writing_what_is_not_valid_stays_inside_the_struct(void **state)
{
    struct every value;
    char text[4096];
    size_t length;

    (void)state;
    memset(&value, 0xff, sizeof value);
    length = det_record_to_json(every_record(), &value, DET_TEXT_REVEAL, text, sizeof text);
    assert_true(length < sizeof text);
    assert_non_null(strstr(text, "\"n\":\"?\""));
    assert_non_null(strstr(text, "\"l\":\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""));
    det_record_print(every_record(), &value, DET_TEXT_REVEAL, text, sizeof text);
    assert_non_null(strstr(text, "m=0xffffffffffffff,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_the_fields_in_order),
        cmocka_unit_test(text_form_shows_names_and_values),
        cmocka_unit_test(sensitive_fields_are_shown_when_revealed),
        cmocka_unit_test(sensitive_fields_are_redacted_in_every_other_text),
        cmocka_unit_test(absent_fields_are_omitted),
        cmocka_unit_test(indented_text_has_a_line_for_each_value),
        cmocka_unit_test(indented_arrays_have_a_line_for_each_element),
        cmocka_unit_test(every_capacity_gives_a_prefix_and_the_length),
        cmocka_unit_test(non_finite_numbers_are_json_null),
        cmocka_unit_test(writing_what_is_not_valid_stays_inside_the_struct),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
