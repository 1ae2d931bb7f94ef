/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* error_test.c - names, sentences, and errors that are filled in one line. */
#include <wchar.h>

#include <detent/base.h>

#include "base/text.h"
#include "lib/test.h"

static const int codes[] = {
#define DET_ERROR(name, number, text) DET_ERR_##name,
#include <detent/errors.def>
#undef DET_ERROR
};

#define CODE_COUNT (sizeof codes / sizeof codes[0])

static void every_error_has_its_own_number_and_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < CODE_COUNT; i++) {
        assert_true(codes[i] < 0);
        assert_string_not_equal(det_error_name(codes[i]), "UNKNOWN");
        assert_true(strlen(det_error_text(codes[i])) > 0);
        for (size_t other = 0; other < i; other++) {
            assert_int_not_equal(codes[i], codes[other]);
            assert_string_not_equal(det_error_name(codes[i]), det_error_name(codes[other]));
        }
    }
    assert_string_equal(det_error_name(DET_ERR_NO_MEMORY), "NO_MEMORY");
    assert_string_equal(det_error_name(-41), "UNHANDLED");
    assert_string_equal(det_error_text(DET_ERR_CLOSED), "already closed");
}

static void zero_means_no_error(void **state)
{
    (void)state;
    assert_string_equal(det_error_name(0), "OK");
    assert_string_equal(det_error_text(0), "no error");
}

static void foreign_numbers_are_unknown(void **state)
{
    (void)state;
    assert_string_equal(det_error_name(1), "UNKNOWN");
    assert_string_equal(det_error_name(-9999), "UNKNOWN");
    assert_string_equal(det_error_text(-9999), "not an error code of libdetent");
}

static void setting_fills_all_fields_and_returns_the_code(void **state)
{
    struct det_error error;

    (void)state;
    memset(&error, 0xA5, sizeof error);
    assert_int_equal(det_error_set(&error, DET_ERR_LIMIT, "%d of %d", 11, 10), DET_ERR_LIMIT);
    assert_int_equal(error.code, DET_ERR_LIMIT);
    assert_string_equal(error.text, "11 of 10");
    assert_null(error.state);
    assert_null(error.event);
    assert_null(error.action);
    assert_int_equal(error.cause, 0);
    assert_true(error.expected == 0 && error.actual == 0 && error.offset == 0);
    assert_int_equal(error.waited, 0);
}

static void no_error_struct_is_fine(void **state)
{
    (void)state;
    assert_int_equal(det_error_set(NULL, DET_ERR_BUSY, "%s", "not read by the test"), DET_ERR_BUSY);
}

static void error_text_may_include_its_previous_text(void **state)
{
    struct det_error error;

    (void)state;
    (void)det_error_set(&error, DET_ERR_IO, "inner");
    (void)det_error_set(&error, DET_ERR_CORRUPT, "outer: %s", error.text);
    assert_string_equal(error.text, "outer: inner");
}

static void a_long_text_is_cut_at_a_character(void **state)
{
    char text[2 * DET_ERROR_TEXT_MAX];
    struct det_error error;

    (void)state;
    /* Three-byte characters after 0, 1 and 2 plain bytes: the cut falls on each of their bytes. */
    for (size_t before = 0; before < 3; before++) {
        size_t size = before;

        memset(text, 'a', before);
        for (; size + 3 < sizeof text; size += 3)
            memcpy(text + size, "\xE2\x82\xAC", 3);
        text[size] = '\0';
        (void)det_error_set(&error, DET_ERR_INVALID, "%s", text);
        size = strlen(error.text);
        assert_true(size > DET_ERROR_TEXT_MAX - 4 && size < DET_ERROR_TEXT_MAX);
        assert_int_equal(det_utf8_check(error.text, size), size);
    }
}

static void a_text_of_just_the_size_is_whole(void **state)
{
    char text[DET_ERROR_TEXT_MAX + 1];
    struct det_error error;

    (void)state;
    memset(text, 'a', sizeof text);
    text[DET_ERROR_TEXT_MAX - 1] = '\0';
    (void)det_error_set(&error, DET_ERR_INVALID, "%s", text);
    assert_string_equal(error.text, text);
    text[DET_ERROR_TEXT_MAX - 1] = 'a';
    text[DET_ERROR_TEXT_MAX] = '\0';
    (void)det_error_set(&error, DET_ERR_INVALID, "%s", text);
    assert_int_equal(strlen(error.text), DET_ERROR_TEXT_MAX - 1);
}

static void format_error_falls_back_to_the_default_text(void **state)
{
    struct det_error error;

    (void)state;
    /* The C locale has no bytes for this character. */
    (void)det_error_set(&error, DET_ERR_CLOSED, "%lc", (wint_t)0x20AC);
    assert_string_equal(error.text, "already closed");
}

static void the_version_has_three_numbers(void **state)
{
    struct det_view version = det_view_text(det_version());
    size_t dots = 0;

    (void)state;
    for (size_t i = 0; i < version.size; i++) {
        dots += version.data[i] == '.' ? 1 : 0;
        assert_non_null(strchr("0123456789.", version.data[i]));
    }
    assert_int_equal(dots, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_number_and_name),
        cmocka_unit_test(zero_means_no_error),
        cmocka_unit_test(foreign_numbers_are_unknown),
        cmocka_unit_test(setting_fills_all_fields_and_returns_the_code),
        cmocka_unit_test(no_error_struct_is_fine),
        cmocka_unit_test(error_text_may_include_its_previous_text),
        cmocka_unit_test(a_long_text_is_cut_at_a_character),
        cmocka_unit_test(a_text_of_just_the_size_is_whole),
        cmocka_unit_test(format_error_falls_back_to_the_default_text),
        cmocka_unit_test(the_version_has_three_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
