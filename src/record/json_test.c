/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_test.c - the strict reader of JSON, token by token. */
#include "record/json.h"

#include "lib/test.h"

/* The tokens of a text as letters: {} [] k(ey) s n t f 0(null) and . at the end. */
static int tokens(const char *text, size_t size, char *ret, struct det_error *reterr)
{
    static const char letters[] = ".{}[]ksntf0";
    char *exact = malloc(size ? size : 1);
    struct det_json_scanner json;
    struct det_json_token token;
    size_t used = 0;
    int r;

    memcpy(exact, text, size);
    det_json_scanner_init(&json, exact, size);
    do {
        r = det_json_scan(&json, &token, reterr);
        if (r == 0)
            ret[used++] = letters[token.kind];
    } while (r == 0 && token.kind != DET_JSON_END);
    ret[used] = 0;
    free(exact);
    return r;
}

static void expect(const char *text, const char *letters)
{
    char found[256];

    assert_int_equal(tokens(text, strlen(text), found, NULL), 0);
    assert_string_equal(found, letters);
}

static void values_of_every_kind_are_read(void **state)
{
    (void)state;
    expect("{}", "{}.");
    expect(" [ ] ", "[].");
    expect("\t\r\n null \n", "0.");
    expect("true", "t.");
    expect("false", "f.");
    expect("\"\"", "s.");
    expect("0", "n.");
    expect("{\"a\":1,\"b\":[true,{\"c\":null}],\"d\":\"x\"}", "{knk[t{k0}]ks}.");
    expect("[[],{},[1 , 2]]", "[[]{}[nn]].");
    expect("{ \"a\" : { } }", "{k{}}.");
}

static void numbers_have_the_syntax_of_json(void **state)
{
    (void)state;
    expect("[0,-0,10,-1.5,1e9,1E+2,2e-07,0.0,123456789012345678901234567890]", "[nnnnnnnnn].");
}

struct wrong {
    const char *text;
    size_t size;
    int code;
    size_t offset;
};

#define WRONG(text, code, offset)                     \
    {                                                 \
        text, sizeof text - 1, DET_ERR_##code, offset \
    }

static void expect_wrong(const struct wrong *cases, size_t count)
{
    char found[256];

    for (size_t i = 0; i < count; i++) {
        struct det_error error = { 0 };
        int r = tokens(cases[i].text, cases[i].size, found, &error);

        if (r != cases[i].code || error.offset != cases[i].offset)
            fail_msg(
                "'%s': %s at %zu expected, not %s at %zu: %s", cases[i].text,
                det_error_name(cases[i].code), cases[i].offset, det_error_name(r),
                (size_t)error.offset, error.text);
        assert_int_equal(tokens(cases[i].text, cases[i].size, found, NULL), cases[i].code);
    }
}

static void invalid_json_is_refused_at_its_place(void **state)
{
    static const struct wrong cases[] = {
        WRONG("\xef\xbb\xbf{}", MALFORMED, 0),
        WRONG("{} x", MALFORMED, 3),
        WRONG("{}{}", MALFORMED, 2),
        WRONG("[1,]", MALFORMED, 3),
        WRONG("[,1]", MALFORMED, 1),
        WRONG("[1 2]", MALFORMED, 3),
        WRONG("[1}", MALFORMED, 2),
        WRONG("]", MALFORMED, 0),
        WRONG("}", MALFORMED, 0),
        WRONG("{\"a\"}", MALFORMED, 4),
        WRONG("{\"a\":}", MALFORMED, 5),
        WRONG("{\"a\":1,}", MALFORMED, 7),
        WRONG("{\"a\":1]", MALFORMED, 6),
        WRONG("{a:1}", MALFORMED, 1),
        WRONG("{1:1}", MALFORMED, 1),
        WRONG("{'a':1}", MALFORMED, 1),
        WRONG("{,}", MALFORMED, 1),
        WRONG("[1 /* no */]", MALFORMED, 3),
        WRONG("\v1", MALFORMED, 0),
        WRONG("nul", TRUNCATED, 3),
        WRONG("nulL", MALFORMED, 3),
        WRONG("True", MALFORMED, 0),
        WRONG("tru e", MALFORMED, 3),
        WRONG("falsee", MALFORMED, 5),
        WRONG("NaN", MALFORMED, 0),
        WRONG("Infinity", MALFORMED, 0),
        WRONG("\0", MALFORMED, 0),
    };

    (void)state;
    expect_wrong(cases, sizeof cases / sizeof cases[0]);
}

static void wrong_numbers_are_refused(void **state)
{
    static const struct wrong cases[] = {
        WRONG("-", TRUNCATED, 1),    WRONG("+1", MALFORMED, 0),      WRONG(".5", MALFORMED, 0),
        WRONG("01", MALFORMED, 1),   WRONG("-01", MALFORMED, 2),     WRONG("1.", TRUNCATED, 2),
        WRONG("[1.]", MALFORMED, 3), WRONG("1.e5", MALFORMED, 2),    WRONG("1e", TRUNCATED, 2),
        WRONG("1e+", TRUNCATED, 3),  WRONG("[1e+-2]", MALFORMED, 4), WRONG("0x10", MALFORMED, 1),
        WRONG("--1", MALFORMED, 1),  WRONG("1_000", MALFORMED, 1),
    };

    (void)state;
    expect_wrong(cases, sizeof cases / sizeof cases[0]);
}

static void wrong_strings_are_refused(void **state)
{
    static const struct wrong cases[] = {
        WRONG("\"a", TRUNCATED, 2),
        WRONG("\"a\nb\"", MALFORMED, 2),
        WRONG("\"a\0b\"", MALFORMED, 2),
        WRONG("\"\x1f\"", MALFORMED, 1),
        WRONG("\"\\", TRUNCATED, 2),
        WRONG("\"\\x\"", MALFORMED, 2),
        WRONG("\"\\\0\"", MALFORMED, 2),
        WRONG("\"\\'\"", MALFORMED, 2),
        WRONG("\"\\u", TRUNCATED, 3),
        WRONG("\"\\u12", TRUNCATED, 5),
        WRONG("\"\\u12\"", MALFORMED, 5),
        WRONG("\"\\u12g4\"", MALFORMED, 5),
        WRONG("\"\\ud800\"", MALFORMED, 1),
        WRONG("\"\\ud800x\"", MALFORMED, 1),
        WRONG("\"\\ud800\\n\"", MALFORMED, 1),
        WRONG("\"\\ud800\\ud800\"", MALFORMED, 1),
        WRONG("\"\\ud800\\u0041\"", MALFORMED, 1),
        WRONG("\"\\ud800\\u00g1\"", MALFORMED, 11),
        WRONG("\"\\ud800", TRUNCATED, 7),
        WRONG("\"\\ud800\\", TRUNCATED, 8),
        WRONG("\"\\ud800\\u", TRUNCATED, 9),
        WRONG("\"\\udc00\"", MALFORMED, 1),
        WRONG("\"\xff\"", MALFORMED, 1),
        WRONG("\"ab\xc3\"", MALFORMED, 3),
        WRONG("\"\xc0\x80\"", MALFORMED, 1),
        WRONG("\"\xed\xa0\x80\"", MALFORMED, 1),
        WRONG("\"\xf4\x90\x80\x80\"", MALFORMED, 1),
        WRONG("{\"\\q\":1}", MALFORMED, 3),
    };

    (void)state;
    expect_wrong(cases, sizeof cases / sizeof cases[0]);
}

static void every_truncation_of_a_document_is_found(void **state)
{
    static const char text[] =
        "{\"key\": [true, false, null, -12.5e+3, \"\\ud83d\\ude00 \xe2\x82\xac\"], \"b\": {}}";
    char found[64];

    (void)state;
    expect(text, "{k[tf0ns]k{}}.");
    for (size_t cut = 0; cut < sizeof text - 1; cut++) {
        struct det_error error = { 0 };
        int r = tokens(text, cut, found, &error);

        /* A cut inside of a character shows as bytes that are not UTF-8. */
        assert_true(r == DET_ERR_TRUNCATED || r == DET_ERR_MALFORMED);
        if (cut < 48)
            assert_int_equal(r, DET_ERR_TRUNCATED);
        assert_true(error.offset <= cut);
    }
}

static void nesting_has_a_limit(void **state)
{
    char text[2 * DET_JSON_DEPTH_MAX + 2], found[2 * DET_JSON_DEPTH_MAX + 2];
    struct det_error error;

    (void)state;
    memset(text, '[', DET_JSON_DEPTH_MAX);
    memset(text + DET_JSON_DEPTH_MAX, ']', DET_JSON_DEPTH_MAX);
    assert_int_equal(tokens(text, sizeof text - 2, found, &error), 0);
    text[DET_JSON_DEPTH_MAX] = '{';
    assert_int_equal(tokens(text, sizeof text - 2, found, &error), DET_ERR_LIMIT);
    assert_int_equal(error.offset, DET_JSON_DEPTH_MAX);
}

static void arrays_and_objects_of_any_depth_are_kept_apart(void **state)
{
    static const char open[] = "[{\"k\":[{\"k\":{\"k\":[", closed[] = "]}}]}]";
    char text[64], found[64];

    (void)state;
    snprintf(text, sizeof text, "%s%s", open, closed);
    assert_int_equal(tokens(text, strlen(text), found, NULL), 0);
    for (size_t i = 0; i < sizeof closed - 1; i++) {
        char *bracket = &text[sizeof open - 1 + i];

        *bracket = *bracket == ']' ? '}' : ']';
        assert_int_equal(tokens(text, strlen(text), found, NULL), DET_ERR_MALFORMED);
        *bracket = *bracket == ']' ? '}' : ']';
    }
}

static void tokens_know_where_they_start(void **state)
{
    static const size_t offsets[] = { 1, 3, 8, 13, 17, 20 };
    struct det_json_scanner json;
    struct det_json_token token;

    (void)state;
    det_json_scanner_init(&json, " { \"a\": 12 , \"b\":\"x\"}", 21);
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        assert_int_equal(det_json_scan(&json, &token, NULL), 0);
        assert_int_equal(token.offset, offsets[i]);
    }
}

static void expect_unescaped(const char *escaped, const char *text, size_t size)
{
    char target[32];
    struct det_view view = det_view_text(escaped);

    assert_int_equal(det_json_unescape(view, target, sizeof target), size);
    assert_memory_equal(target, text, size);
    assert_int_equal(det_json_unescape(view, NULL, 0), size);
}

static void escapes_are_resolved(void **state)
{
    (void)state;
    expect_unescaped("", "", 0);
    expect_unescaped("plain", "plain", 5);
    expect_unescaped("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t", 8);
    expect_unescaped("\\u0041\\u007f", "A\x7f", 2);
    expect_unescaped("\\u0000x", "\0x", 2);
    expect_unescaped("\\u0080\\u07ff", "\xc2\x80\xdf\xbf", 4);
    expect_unescaped("\\u0800\\uFFFF", "\xe0\xa0\x80\xef\xbf\xbf", 6);
    expect_unescaped("\\ud800\\udc00", "\xf0\x90\x80\x80", 4);
    expect_unescaped("\\uDBFF\\uDFFF", "\xf4\x8f\xbf\xbf", 4);
    expect_unescaped("\\ud83d\\ude00", "\xf0\x9f\x98\x80", 4);
}

static void keys_are_compared_without_escapes(void **state)
{
    char long_key[DET_NAME_MAX + 8] = "\\u0041";

    (void)state;
    assert_true(det_json_text_is(det_view_text("card"), "card"));
    assert_true(det_json_text_is(det_view_text("c\\u0061rd"), "card"));
    assert_false(det_json_text_is(det_view_text("c\\u0061rds"), "card"));
    assert_false(det_json_text_is(det_view_text("car"), "card"));
    memset(long_key + 6, 'A', DET_NAME_MAX);
    assert_false(det_json_text_is(det_view_text(long_key), "A"));
}

static void integers_are_exact(void **state)
{
    uint64_t number;
    bool is_negative;

    (void)state;
    assert_int_equal(
        det_json_integer(det_view_text("18446744073709551615"), &is_negative, &number), 0);
    assert_true(number == UINT64_MAX && !is_negative);
    assert_int_equal(
        det_json_integer(det_view_text("-9223372036854775808"), &is_negative, &number), 0);
    assert_true(number == (uint64_t)INT64_MAX + 1 && is_negative);
    assert_int_equal(
        det_json_integer(det_view_text("18446744073709551616"), &is_negative, &number),
        DET_ERR_RANGE);
    assert_int_equal(det_json_integer(det_view_text("1.0"), &is_negative, &number), DET_ERR_TYPE);
    assert_int_equal(det_json_integer(det_view_text("1e2"), &is_negative, &number), DET_ERR_TYPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_kind_are_read),
        cmocka_unit_test(numbers_have_the_syntax_of_json),
        cmocka_unit_test(invalid_json_is_refused_at_its_place),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(wrong_strings_are_refused),
        cmocka_unit_test(every_truncation_of_a_document_is_found),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(arrays_and_objects_of_any_depth_are_kept_apart),
        cmocka_unit_test(tokens_know_where_they_start),
        cmocka_unit_test(escapes_are_resolved),
        cmocka_unit_test(keys_are_compared_without_escapes),
        cmocka_unit_test(integers_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
