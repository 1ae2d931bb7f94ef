/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* text_sink_test.c - text into a fixed array, quotes, base64. */
#include "record/text_sink.h"

#include "lib/test.h"

static void everything_over_the_capacity_is_counted(void **state)
{
    char target[8];

    (void)state;
    for (size_t capacity = 0; capacity <= sizeof target; capacity++) {
        struct det_output output = { target, capacity, 0 };

        memset(target, '#', sizeof target);
        det_output_text(&output, "abc");
        det_output_char(&output, 'd');
        det_output_append(&output, "ef", 2);
        assert_int_equal(det_output_finish(&output), 6);
        if (capacity > 0)
            assert_int_equal(strlen(target), capacity > 6 ? 6 : capacity - 1);
        for (size_t i = capacity > 7 ? 7 : capacity; i < sizeof target; i++)
            assert_int_equal(target[i], '#');
    }
}

static void expect_quoted(const char *text, size_t size, const char *quoted)
{
    char target[128];
    struct det_output output = { target, sizeof target, 0 };

    det_output_quoted(&output, det_view_of(text, size));
    det_output_finish(&output);
    assert_string_equal(target, quoted);
}

#define QUOTED(text, quoted) expect_quoted(text, sizeof text - 1, quoted)

static void strings_are_escaped_as_json_demands(void **state)
{
    (void)state;
    QUOTED("", "\"\"");
    QUOTED("plain / text", "\"plain / text\"");
    QUOTED("a\"b\\c", "\"a\\\"b\\\\c\"");
    QUOTED("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
    QUOTED("\0\x1b\x1f", "\"\\u0000\\u001b\\u001f\"");
    QUOTED("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void control_and_bidi_characters_are_escaped(void **state)
{
    /* As numbers: in a source file they would affect the reader's editor. */
    static const unsigned codes[] = { 0x7f,   0x80,   0x9b,   0x9f,   0x61c,  0x200e,
                                      0x200f, 0x2028, 0x202a, 0x202e, 0x2066, 0x2069 };
    char text[3], quoted[16];

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        unsigned code = codes[i];
        size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : 3;

        text[0] = (char)(size == 1 ? code : size == 2 ? 0xc0 | code >> 6 : 0xe0 | code >> 12);
        text[1] = (char)(0x80 | ((size == 2 ? code : code >> 6) & 0x3f));
        text[2] = (char)(0x80 | (code & 0x3f));
        snprintf(quoted, sizeof quoted, "\"\\u%04x\"", code);
        expect_quoted(text, size, quoted);
    }
}

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    QUOTED("a\xff", "\"a\\ufffd\"");
    QUOTED("\xc3", "\"\\ufffd\"");
    QUOTED("\xe2\x82x", "\"\\ufffd\\ufffdx\"");
    QUOTED("\xc0\x80", "\"\\ufffd\\ufffd\"");
}

static void expect_base64(const char *bytes, size_t size, const char *text)
{
    char target[64];
    uint8_t again[16];
    struct det_output output = { target, sizeof target, 0 };
    size_t again_size = 99;

    det_output_base64(&output, det_view_of(bytes, size));
    det_output_finish(&output);
    assert_string_equal(target, text);
    assert_int_equal(det_base64_decode(det_view_text(text), again, size, &again_size), 0);
    assert_int_equal(again_size, size);
    assert_memory_equal(again, bytes, size);
    if (size > 0)
        assert_int_equal(
            det_base64_decode(det_view_text(text), again, size - 1, &again_size), DET_ERR_RANGE);
}

static void base64_round_trips(void **state)
{
    (void)state;
    expect_base64("", 0, "");
    expect_base64("f", 1, "Zg==");
    expect_base64("fo", 2, "Zm8=");
    expect_base64("foo", 3, "Zm9v");
    expect_base64("foob", 4, "Zm9vYg==");
    expect_base64("\xff\xef\xbe", 3, "/+++");
}

static void base64_has_one_form(void **state)
{
    static const char *const wrong[] = { "Z",        "Zg",   "Zg=",  "Zg===", "=",
                                         "====",     "Z===", "Zh==", "Zm9=",  "Zm 8",
                                         "Zg==Zg==", "Zm-_", "Zm=v", "Zm9v\n" };
    uint8_t bytes[16];
    size_t size;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(
            det_base64_decode(det_view_text(wrong[i]), bytes, sizeof bytes, &size),
            DET_ERR_MALFORMED);
    assert_int_equal(
        det_base64_decode(det_view_of("Zm\0v", 4), bytes, 16, &size), DET_ERR_MALFORMED);
}

static void hex_is_two_digits_a_byte(void **state)
{
    char target[8];
    struct det_output output = { target, sizeof target, 0 };

    (void)state;
    det_output_hex(&output, det_view_of("\x00\x1f\xa9", 3));
    det_output_finish(&output);
    assert_string_equal(target, "001fa9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_over_the_capacity_is_counted),
        cmocka_unit_test(strings_are_escaped_as_json_demands),
        cmocka_unit_test(control_and_bidi_characters_are_escaped),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(base64_round_trips),
        cmocka_unit_test(base64_has_one_form),
        cmocka_unit_test(hex_is_two_digits_a_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
