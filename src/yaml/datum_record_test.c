/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_record_test.c - YAML into records: valid values, and the messages about invalid ones. */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include "yaml/datum_record.h"

#include "lib/test.h"

static int read(const char *yaml, struct every *ret, struct det_error *reterr)
{
    struct det_datum *datum = NULL;
    struct det_arena arena;
    int r;

    memset(ret, 0xA5, sizeof *ret);
    det_arena_init(&arena, NULL);
    r = det_datum_from_yaml(&arena, "config", yaml, strlen(yaml), &datum, reterr);
    assert_int_equal(r, 0);
    r = det_datum_to_record(datum, "config", every_record(), ret, reterr);
    det_arena_deinit(&arena);
    return r;
}

static void all_kinds_are_read(void **state)
{
    static const char yaml[] =
        "a: 255\nb: 0xffff\nc: 4294967295\nd: 18446744073709551615\n"
        "e: -128\nf: -32768\ng: -2147483648\nh: -9223372036854775808\n"
        "i: 1.5\nj: true\nk: \"2026-01-31T10:00:00Z\"\nl: \"12345\"\nm: AQID\nn: dark-blue\n"
        "o: {name: bolt, pieces: 7}\nsecret: x\nnote: hello\n"
        "lines: [{name: nut}, {pieces: 3}]\nwords: [ab, ''] \nflags: [true, false, true]\n"
        "blobs: [AQ==]\ncolors: [red, green]\n";
    struct every value;
    struct det_error error;

    (void)state;
    assert_int_equal(read(yaml, &value, &error), 0);
    assert_int_equal(value.a, 255);
    assert_int_equal(value.b, 65535);
    assert_int_equal(value.c, UINT32_MAX);
    assert_true(value.d == UINT64_MAX);
    assert_int_equal(value.e, -128);
    assert_int_equal(value.f, -32768);
    assert_int_equal(value.g, INT32_MIN);
    assert_true(value.h == INT64_MIN);
    assert_true(value.i > 1.4 && value.i < 1.6);
    assert_true(value.j);
    assert_true(value.k == (det_time)1769853600 * DET_SECOND);
    assert_string_equal(value.l, "12345");
    assert_int_equal(value.m.size, 3);
    assert_int_equal(value.m.data[2], 3);
    assert_int_equal(value.n, COLOR_BLUE);
    assert_string_equal(value.o.name, "bolt");
    assert_int_equal(value.o.pieces, 7);
    assert_true(value.has_note && !value.has_when);
    assert_int_equal(value.lines_count, 2);
    assert_string_equal(value.lines[0].name, "nut");
    assert_int_equal(value.lines[1].pieces, 3);
    assert_int_equal(value.words_count, 2);
    assert_int_equal(value.flags_count, 3);
    assert_int_equal(value.colors[1], COLOR_GREEN);
    assert_int_equal(det_record_validate(every_record(), &value, &error), 0);
}

static void absent_yaml_fields_are_zero(void **state)
{
    static const char *const rows[] = {
        "", "{}", "~", "a:\nl: null\nlines: ~\nnote:\nn:\no:\n", "lines: []\no: {}\n",
    };
    static const struct every zero;
    struct every value;
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(read(rows[i], &value, &error), 0);
        assert_memory_equal(&value, &zero, sizeof zero);
    }
    assert_int_equal(read("i: 3\n", &value, &error), 0);
    assert_true(value.i > 2.9 && value.i < 3.1);
}

static void invalid_input_is_reported(void **state)
{
    static const struct {
        const char *yaml;
        int code;
        const char *text;
    } rows[] = {
        { "[1]", DET_ERR_TYPE,
          "config, line 1, column 1: expected a map of fields, found "
          "a list" },
        { "text", DET_ERR_TYPE, "expected a map of fields, found text" },
        { "a: 1\nnotes: x\n", DET_ERR_UNKNOWN_FIELD,
          "config, line 2, column 1: unknown field 'notes'; did you mean 'note'?" },
        { "xyzzy: x\n", DET_ERR_UNKNOWN_FIELD,
          "unknown field 'xyzzy'; the record has a and others" },
        { "'a b': x\n", DET_ERR_UNKNOWN_FIELD, "unknown field;" },
        { "o: {nam: x}\n", DET_ERR_UNKNOWN_FIELD,
          "line 1, column 5: o: unknown field 'nam'; "
          "did you mean 'name'?" },
        { "lines:\n  - {name: a}\n  - {name: b}\n  - {port: 1}\n", DET_ERR_UNKNOWN_FIELD,
          "line 4, column 6: lines[2]: unknown field 'port'" },
        { "a: 256\n", DET_ERR_RANGE,
          "line 1, column 4: a: expected a whole number from 0 to 255, "
          "found 256" },
        { "a: -1\n", DET_ERR_RANGE, "found -1" },
        { "d: -1\n", DET_ERR_RANGE, "from 0 to 18446744073709551615" },
        { "e: 128\n", DET_ERR_RANGE, "from -128 to 127, found 128" },
        { "h: 9223372036854775808\n", DET_ERR_RANGE, "found 9223372036854775808" },
        { "a: 1.0\n", DET_ERR_TYPE, "expected a number without a fraction" },
        { "a: '1'\n", DET_ERR_TYPE, "found text; remove the quotes" },
        { "a: true\n", DET_ERR_TYPE, "from 0 to 255, found a truth value" },
        { "a: []\n", DET_ERR_TYPE, "found a list" },
        { "i: x\n", DET_ERR_TYPE, "i: expected a number, found text" },
        { "i: .inf\n", DET_ERR_RANGE, "expected a finite number" },
        { "j: yes\n", DET_ERR_TYPE, "j: expected true or false, found text" },
        { "j: 1\n", DET_ERR_TYPE, "expected true or false, found a number" },
        { "k: yesterday\n", DET_ERR_MALFORMED, "expected a time such as 2026-01-31T10:00:00Z" },
        { "k: 12\n", DET_ERR_TYPE, "expected text, found a number" },
        { "l: 123456\n", DET_ERR_RANGE, "l: the field holds at most 5 bytes, found 6" },
        { "l: abcdef\n", DET_ERR_RANGE, "l: the field holds at most 5 bytes, found 6" },
        { "l: [a]\n", DET_ERR_TYPE, "expected text, found a list; write one value" },
        { "m: '!!'\n", DET_ERR_MALFORMED, "m: expected bytes as base64" },
        { "m: AQIDBAUGBwg=\n", DET_ERR_RANGE, "the field holds at most 7 bytes" },
        { "n: grren\n", DET_ERR_RANGE, "n: unknown color; did you mean 'green'?" },
        { "n: xyzzy\n", DET_ERR_RANGE, "unknown color; use red, green, dark-blue" },
        { "o: 1\n", DET_ERR_TYPE, "o: expected a map of fields" },
        { "o: {pieces: x}\n", DET_ERR_TYPE, "o.pieces: expected a whole number" },
        { "words: ab\n", DET_ERR_TYPE, "words: expected a list, found text" },
        { "words: [a, b, c]\n", DET_ERR_RANGE,
          "words: the field holds at most 2 elements, found 3" },
        { "words: [a, abcd]\n", DET_ERR_RANGE, "words[1]: the field holds at most 3 bytes" },
        { "words: [~]\n", DET_ERR_TYPE, "words[0]: expected text, found null" },
        { "lines: [{}, 3]\n", DET_ERR_TYPE, "lines[1]: expected a map of fields" },
        { "lines: [{}, {name: x}, {pieces: -5}]\n", DET_ERR_RANGE,
          "lines[2].pieces: expected a whole number from 0 to 4294967295" },
    };
    static const struct every zero;
    struct every value;
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int r = read(rows[i].yaml, &value, &error);

        if (r != rows[i].code || !strstr(error.text, rows[i].text))
            fail_msg("%s: %d: %s", rows[i].yaml, r, error.text);
        assert_memory_equal(&value, &zero, sizeof zero);
    }
}

/* `lines` is sensitive, and so is everything in it. */
static void errors_do_not_reveal_secrets(void **state)
{
    struct every value;
    struct det_error error;

    (void)state;
    assert_int_equal(read("lines: [{pieces: -4711}]\n", &value, &error), DET_ERR_RANGE);
    assert_null(strstr(error.text, "4711"));
    assert_int_equal(read("secret: [4711]\n", &value, &error), DET_ERR_TYPE);
    assert_null(strstr(error.text, "4711"));
}

static void yaml_numbers_read_as_text_keep_their_spelling(void **state)
{
    static const char *const rows[] = { "1.10", "0640", "true", "0x1f", "-0", "1e3" };
    struct every value;
    struct det_error error;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[32];

        (void)snprintf(yaml, sizeof yaml, "l: %s\n", rows[i]);
        assert_int_equal(read(yaml, &value, &error), 0);
        assert_string_equal(value.l, rows[i]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_are_read),
        cmocka_unit_test(absent_yaml_fields_are_zero),
        cmocka_unit_test(invalid_input_is_reported),
        cmocka_unit_test(errors_do_not_reveal_secrets),
        cmocka_unit_test(yaml_numbers_read_as_text_keep_their_spelling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
