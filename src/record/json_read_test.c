/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_read_test.c - JSON into records: what is taken, what is refused, where. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include "lib/test.h"

/* A record that is short enough to write out. */
struct small {
    char name[9];
    uint8_t size;
    int16_t depth;
    bool has_ratio;
    double ratio;
    uint32_t tags_count;
    enum color tags[2];
};
static const struct det_field small_fields[] = {
    { .name = "name",
      .kind = DET_KIND_TEXT,
      .offset = offsetof(struct small, name),
      .size = 9,
      .capacity = 8,
      .flags = DET_FIELD_SENSITIVE },
    { .name = "size",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct small, size),
      .size = 1 },
    { .name = "depth",
      .kind = DET_KIND_SIGNED,
      .offset = offsetof(struct small, depth),
      .size = 2 },
    { .name = "ratio",
      .kind = DET_KIND_FLOAT,
      .flags = DET_FIELD_OPTIONAL,
      .offset = offsetof(struct small, ratio),
      .size = 8,
      .presence = offsetof(struct small, has_ratio) },
    { .name = "tags",
      .kind = DET_KIND_ENUM,
      .flags = DET_FIELD_ARRAY,
      .offset = offsetof(struct small, tags),
      .size = sizeof(enum color),
      .presence = offsetof(struct small, tags_count),
      .count_max = 2,
      .enumeration = { .get = color_enum } },
};
static const struct det_record small = { "small", 1, sizeof(struct small), small_fields, 5 };

/* Reads from memory that ends exactly where the text does. */
static int read_flags(
    const struct det_record *record, const char *text, size_t size, unsigned flags, void *value,
    struct det_error *reterr)
{
    char *exact = malloc(size ? size : 1);
    int r;

    memcpy(exact, text, size);
    memset(value, 0x5a, record->size);
    r = det_record_from_json(record, exact, size, flags, value, reterr);
    free(exact);
    return r;
}

static int read_text(const struct det_record *record, const char *text, void *value)
{
    return read_flags(record, text, strlen(text), 0, value, NULL);
}

static void expect_failure(
    const struct det_record *record, const char *text, int code, size_t offset, const char *words)
{
    static const uint8_t zero[1024];
    uint8_t value[1024];
    struct det_error error = { 0 };
    int r = read_flags(record, text, strlen(text), 0, value, &error);

    if (r != code || error.code != code || error.offset != offset || strcmp(error.text, words) != 0)
        fail_msg(
            "%s\n'%s' at %zu expected, not %s at %zu:\n'%s'", text, words, offset,
            det_error_name(r), (size_t)error.offset, error.text);
    assert_memory_equal(value, zero, record->size);
    assert_int_equal(read_text(record, text, value), code);
}

#define FAILS(text, code, offset, words) \
    expect_failure(&small, text, DET_ERR_##code, offset, "small" words)

static void fields_come_in_any_order(void **state)
{
    struct small value;

    (void)state;
    assert_int_equal(det_record_check(&small, NULL), 0);
    assert_int_equal(
        read_text(
            &small,
            "{\"tags\": [\"green\", \"dark-\\u0062lue\"], \"depth\": -5,\n"
            " \"ratio\": 0.25, \"si\\u007ae\": 255, \"name\": \"\\u20ac\\n\"}",
            &value),
        0);
    assert_string_equal(value.name, "\xe2\x82\xac\n");
    assert_int_equal(value.size, 255);
    assert_int_equal(value.depth, -5);
    assert_true(value.has_ratio && value.ratio == 0.25);
    assert_int_equal(value.tags_count, 2);
    assert_int_equal(value.tags[0], COLOR_GREEN);
    assert_int_equal(value.tags[1], COLOR_BLUE);
}

static void optional_fields_may_be_left_out_or_null(void **state)
{
    struct small value;

    (void)state;
    assert_int_equal(
        read_text(&small, "{\"name\":\"\",\"size\":0,\"depth\":0,\"tags\":[]}", &value), 0);
    assert_false(value.has_ratio);
    assert_int_equal(
        read_text(
            &small, "{\"name\":\"\",\"size\":0,\"depth\":0,\"tags\":[],\"ratio\":null}", &value),
        0);
    assert_false(value.has_ratio);
    assert_true(value.ratio == 0);
}

static void partial_json_leaves_absent_fields_zero(void **state)
{
    struct small value, zero = { 0 };
    struct every every;

    (void)state;
    assert_int_equal(read_flags(&small, "{}", 2, DET_TEXT_PARTIAL, &value, NULL), 0);
    assert_memory_equal(&value, &zero, sizeof value);
    assert_int_equal(
        read_flags(every_record(), "{\"o\":{\"pieces\":7}}", 18, DET_TEXT_PARTIAL, &every, NULL),
        0);
    assert_int_equal(every.o.pieces, 7);
    assert_int_equal(
        read_flags(&small, "{\"sizes\":1}", 11, DET_TEXT_PARTIAL, &value, NULL),
        DET_ERR_UNKNOWN_FIELD);
}

static void extra_fields_are_skipped_when_asked(void **state)
{
    static const char *const good[] = {
        "{\"x\":1,\"pieces\":7,\"name\":\"bolt\",\"y\":null}",
        "{\"name\":\"bolt\",\"x\":{\"name\":[{},[1,[2]],{\"pieces\":3}]},\"pieces\":7}",
        "{\"x\":[],\"x\":{},\"pieces\":7,\"name\":\"bolt\"}",
    };
    static const char *const bad[] = { "{\"x\":}", "{\"x\":[1,2}", "{\"x\":[", "{\"x\"" };
    struct line value;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(
            det_record_from_json(
                line_record(), good[i], strlen(good[i]), DET_TEXT_EXTRA, &value, NULL),
            0);
        assert_string_equal(value.name, "bolt");
        assert_int_equal(value.pieces, 7);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(
            det_record_from_json(
                line_record(), bad[i], strlen(bad[i]), DET_TEXT_EXTRA, &value, NULL) < 0);
}

static void redacted_json_round_trips(void **state)
{
    struct every value, read;
    char text[4096], again[4096];

    (void)state;
    memset(&value, 0, sizeof value);
    value.n = COLOR_BLUE;
    value.has_when = true;
    value.lines_count = 1;
    (void)snprintf(value.secret, sizeof value.secret, "x");
    for (int optional = 0; optional < 2; optional++) {
        value.has_when = optional;
        assert_true(det_record_to_json(every_record(), &value, 0, text, sizeof text) < sizeof text);
        assert_int_equal(
            read_flags(every_record(), text, strlen(text), DET_TEXT_HIDDEN, &read, NULL), 0);
        assert_int_equal(read.has_when, optional);
        (void)det_record_to_json(every_record(), &read, 0, again, sizeof again);
        assert_string_equal(again, text);
        assert_true(read_flags(every_record(), text, strlen(text), 0, &read, NULL) < 0);
    }
    /* In a field that is not sensitive it is an ordinary text. */
    assert_int_equal(
        read_flags(every_record(), "{\"a\":\"{redacted}\"}", 18, DET_TEXT_HIDDEN, &read, NULL),
        DET_ERR_TYPE);
}

static void an_empty_record_is_an_empty_object(void **state)
{
    struct det_empty value;

    (void)state;
    assert_int_equal(read_text(det_empty_record(), " { } ", &value), 0);
    assert_int_equal(read_text(det_empty_record(), "{\"a\":1}", &value), DET_ERR_UNKNOWN_FIELD);
}

static void every_type_is_read(void **state)
{
    struct every value;

    (void)state;
    assert_int_equal(
        read_text(
            every_record(),
            "{\"a\":255,\"b\":65535,\"c\":4294967295,\"d\":18446744073709551615,\"e\":-128,"
            "\"f\":-32768,\"g\":-2147483648,\"h\":-9223372036854775808,\"i\":1E2,\"j\":true,"
            "\"k\":\"2026-01-31T11:00:00.25+01:00\",\"l\":\"abcde\",\"m\":\"AAEC\","
            "\"n\":\"dark-blue\",\"o\":{\"name\":\"pen\",\"pieces\":-0},\"secret\":\"{redacted}\","
            "\"lines\":[{\"pieces\":1,\"name\":\"a\"},{\"name\":\"b\",\"pieces\":2}],"
            "\"words\":[\"x\"],\"flags\":[false,true],\"blobs\":[\"\",\"AA==\"],\"colors\":[]}",
            &value),
        0);
    assert_true(value.d == UINT64_MAX && value.h == INT64_MIN);
    assert_true(value.i == 100 && value.j);
    assert_true(value.k == 1769853600250000000);
    assert_int_equal(value.m.size, 3);
    assert_memory_equal(value.m.data, "\0\1\2\0\0\0\0", 7);
    assert_string_equal(value.lines[1].name, "b");
    assert_int_equal(value.blobs[1].size, 1);
    assert_int_equal(det_record_validate(every_record(), &value, NULL), 0);
}

static void unknown_fields_are_refused_with_the_nearest_name(void **state)
{
    (void)state;
    FAILS(
        "{\"sise\":1}", UNKNOWN_FIELD, 1,
        ": there is no field sise (did you mean size?) at byte 1");
    FAILS("{\"q\":1}", UNKNOWN_FIELD, 1, ": there is no field q at byte 1");
    FAILS("{\"\\u001b[2J\":1}", UNKNOWN_FIELD, 1, ": there is no such field at byte 1");
    FAILS("{\"\":1}", UNKNOWN_FIELD, 1, ": there is no such field at byte 1");
    FAILS("{\"size\\u0000\":1}", UNKNOWN_FIELD, 1, ": there is no such field at byte 1");
}

static void a_key_of_any_length_is_safe(void **state)
{
    char letters[1000], text[1024];
    struct small value;

    (void)state;
    memset(letters, 'n', sizeof letters);
    for (int length = 1; length < 1000; length++) {
        snprintf(text, sizeof text, "{\"%.*s\":1}", length, letters);
        assert_int_equal(read_text(&small, text, &value), DET_ERR_UNKNOWN_FIELD);
    }
}

static void doubled_fields_are_refused(void **state)
{
    (void)state;
    FAILS("{\"size\":1, \"size\":1}", DUPLICATE_FIELD, 11, ".size: duplicate field at byte 11");
    FAILS(
        "{\"ratio\":null,\"ratio\":1}", DUPLICATE_FIELD, 14, ".ratio: duplicate field at byte 14");
    FAILS(
        "{\"tags\":[],\"t\\u0061gs\":[]}", DUPLICATE_FIELD, 11,
        ".tags: duplicate field at byte 11");
}

static void missing_fields_are_refused_at_the_end(void **state)
{
    (void)state;
    FAILS("{}", MISSING_FIELD, 1, ".name: the field is missing at byte 1");
    FAILS(
        "{\"name\":\"\",\"size\":0,\"depth\":0}", MISSING_FIELD, 29,
        ".tags: the field is missing at byte 29");
}

static void wrong_types_are_refused(void **state)
{
    static const char *const keys[] = { "name", "size", "ratio", "tags" };
    static const char *const values[] = { "true", "1", "\"x\"", "{}", "[]", "null" };
    /* Which value fits which key, in the order above. */
    static const bool fits[4][6] = {
        { false, false, true, false, false, false },
        { false, true, false, false, false, false },
        { false, true, false, false, false, true },
        { false, false, false, false, true, false },
    };
    struct small value;
    char text[64];

    (void)state;
    for (size_t k = 0; k < 4; k++) {
        for (size_t v = 0; v < 6; v++) {
            snprintf(text, sizeof text, "{\"%s\":%s}", keys[k], values[v]);
            assert_int_equal(
                read_text(&small, text, &value), fits[k][v] ? DET_ERR_MISSING_FIELD : DET_ERR_TYPE);
        }
    }
    FAILS("[]", TYPE, 0, ": expected an object at byte 0");
    FAILS(
        "{\"size\":1.0}", TYPE, 8,
        ".size: expected a number without fraction and exponent at byte 8");
    FAILS(
        "{\"size\":1e1}", TYPE, 8,
        ".size: expected a number without fraction and exponent at byte 8");
    FAILS("{\"tags\":[[]]}", TYPE, 9, ".tags[0]: expected a string at byte 9");
    FAILS("{\"name\":[[[[", TYPE, 8, ".name: expected a string at byte 8");
    expect_failure(
        every_record(), "{\"j\":0}", DET_ERR_TYPE, 5, "every.j: expected true or false at byte 5");
    expect_failure(
        every_record(), "{\"k\":0}", DET_ERR_TYPE, 5, "every.k: expected a string at byte 5");
    expect_failure(
        every_record(), "{\"m\":0}", DET_ERR_TYPE, 5, "every.m: expected a string at byte 5");
    expect_failure(
        every_record(), "{\"o\":[]}", DET_ERR_TYPE, 5, "every.o: expected an object at byte 5");
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    FAILS("{\"size\":256}", RANGE, 8, ".size: the number does not fit at byte 8");
    FAILS("{\"size\":-1}", RANGE, 8, ".size: the number does not fit at byte 8");
    FAILS("{\"depth\":32768}", RANGE, 9, ".depth: the number does not fit at byte 9");
    FAILS("{\"depth\":-32769}", RANGE, 9, ".depth: the number does not fit at byte 9");
    FAILS("{\"ratio\":1e999}", RANGE, 9, ".ratio: the number does not fit at byte 9");
    expect_failure(
        every_record(), "{\"d\":18446744073709551616}", DET_ERR_RANGE, 5,
        "every.d: the number does not fit at byte 5");
    expect_failure(
        every_record(), "{\"h\":9223372036854775808}", DET_ERR_RANGE, 5,
        "every.h: the number does not fit at byte 5");
    expect_failure(
        every_record(), "{\"h\":-9223372036854775809}", DET_ERR_RANGE, 5,
        "every.h: the number does not fit at byte 5");
}

static void a_number_of_too_many_digits_is_a_limit(void **state)
{
    char digits[1100], text[1200];
    struct small value;

    (void)state;
    memset(digits, '1', sizeof digits);
    snprintf(text, sizeof text, "{\"ratio\":%.*s}", (int)sizeof digits, digits);
    assert_int_equal(read_text(&small, text, &value), DET_ERR_LIMIT);
}

static void texts_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    FAILS("{\"name\":\"123456789\"}", RANGE, 8, ".name: the text is too long at byte 8");
    FAILS("{\"name\":\"1234567\\u00e4\"}", RANGE, 8, ".name: the text is too long at byte 8");
    FAILS("{\"name\":\"a\\u0000b\"}", MALFORMED, 8, ".name: the text contains U+0000 at byte 8");
    FAILS(
        "{\"tags\":[\"red\",\"pink\"]}", RANGE, 15,
        ".tags[1]: the enum has no such value at byte 15");
    FAILS("{\"tags\":[\"red\",\"red\",\"red\"]}", RANGE, 21, ".tags: too many elements at byte 21");
    expect_failure(
        every_record(), "{\"m\":\"AAAAAAAAAAA=\"}", DET_ERR_RANGE, 5,
        "every.m: too many bytes at byte 5");
    expect_failure(
        every_record(), "{\"m\":\"A\"}", DET_ERR_MALFORMED, 5,
        "every.m: expected base64 at byte 5");
    expect_failure(
        every_record(), "{\"m\":\"\\u0041AAA\"}", DET_ERR_MALFORMED, 5,
        "every.m: expected base64 at byte 5");
    expect_failure(
        every_record(), "{\"k\":\"yesterday\"}", DET_ERR_MALFORMED, 5,
        "every.k: expected a time in RFC 3339 format at byte 5");
    expect_failure(
        every_record(), "{\"k\":\"9999-01-01T00:00:00Z\"}", DET_ERR_RANGE, 5,
        "every.k: the time is out of range at byte 5");
}

static void a_time_or_enum_of_any_length_is_safe(void **state)
{
    char digits[400], text[512];
    struct every value;

    (void)state;
    memset(digits, '1', sizeof digits);
    for (int length = 0; length < 400; length++) {
        snprintf(text, sizeof text, "{\"k\":\"%.*s\"}", length, digits);
        assert_int_equal(read_text(every_record(), text, &value), DET_ERR_MALFORMED);
        text[2] = 'n';
        assert_int_equal(read_text(every_record(), text, &value), DET_ERR_RANGE);
    }
}

static void invalid_json_is_refused(void **state)
{
    (void)state;
    expect_failure(&small, "", DET_ERR_TRUNCATED, 0, "the JSON ends at byte 0: expected a value");
    expect_failure(
        &small, "{\"size\":1,}", DET_ERR_MALFORMED, 10,
        "invalid JSON at byte 10: expected the name of a member");
    expect_failure(
        det_empty_record(), "{} {}", DET_ERR_MALFORMED, 3,
        "invalid JSON at byte 3: expected the end of the text");
}

static void errors_of_nested_records_name_the_whole_place(void **state)
{
    (void)state;
    expect_failure(
        every_record(), "{\"lines\":[{\"name\":\"\",\"pieces\":1},{\"pieces\":true}]}",
        DET_ERR_TYPE, 43, "every.lines[1].pieces: expected a whole number at byte 43");
    expect_failure(
        every_record(), "{\"lines\":[{\"name\":\"\"}]}", DET_ERR_MISSING_FIELD, 20,
        "every.lines[0].pieces: the field is missing at byte 20");
}

static void no_error_shows_a_value(void **state)
{
    static const char *const texts[] = {
        "{\"name\":\"canary-canary\"}",
        "{\"name\":\"canary\", \"size\":}",
        "{\"name\":\"canary\", \"size\":\"canary\"}",
        "{\"tags\":[\"canary\"]}",
        "{\"name\":\"canary",
    };
    struct det_error error;
    struct small value;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_true(read_flags(&small, texts[i], strlen(texts[i]), 0, &value, &error) < 0);
        assert_null(strstr(error.text, "canary"));
    }
}

static void every_truncation_is_refused(void **state)
{
    static const char text[] = "{\"name\":\"\\u20acx\",\"size\":7,\"depth\":-3,\"ratio\":1.5,"
                               "\"tags\":[\"red\",\"green\"]}";
    struct small value;
    struct det_error error;

    (void)state;
    assert_int_equal(read_text(&small, text, &value), 0);
    for (size_t cut = 0; cut < sizeof text - 1; cut++) {
        assert_int_equal(read_flags(&small, text, cut, 0, &value, &error), DET_ERR_TRUNCATED);
        assert_int_equal(error.offset, cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_in_any_order),
        cmocka_unit_test(optional_fields_may_be_left_out_or_null),
        cmocka_unit_test(partial_json_leaves_absent_fields_zero),
        cmocka_unit_test(extra_fields_are_skipped_when_asked),
        cmocka_unit_test(redacted_json_round_trips),
        cmocka_unit_test(an_empty_record_is_an_empty_object),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(unknown_fields_are_refused_with_the_nearest_name),
        cmocka_unit_test(a_key_of_any_length_is_safe),
        cmocka_unit_test(doubled_fields_are_refused),
        cmocka_unit_test(missing_fields_are_refused_at_the_end),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(a_number_of_too_many_digits_is_a_limit),
        cmocka_unit_test(texts_that_do_not_fit_are_refused),
        cmocka_unit_test(a_time_or_enum_of_any_length_is_safe),
        cmocka_unit_test(invalid_json_is_refused),
        cmocka_unit_test(errors_of_nested_records_name_the_whole_place),
        cmocka_unit_test(no_error_shows_a_value),
        cmocka_unit_test(every_truncation_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
