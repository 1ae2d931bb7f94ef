/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* number_test.c - doubles as text and back, with any decimal point. */
#include "record/number.h"

#include <float.h>
#include <math.h>

#include "lib/test.h"

static void expect_text(double number, const char *text)
{
    char target[DET_DOUBLE_TEXT];

    assert_string_equal(det_format_double(number, target), text);
}

static void doubles_have_their_shortest_text(void **state)
{
    (void)state;
    expect_text(0.0, "0");
    expect_text(-0.0, "-0");
    expect_text(0.1, "0.1");
    expect_text(1e21, "1e+21");
    expect_text(123456.789, "123456.789");
    expect_text(0.1 + 0.2, "0.30000000000000004");
    expect_text(1.0 / 3, "0.3333333333333333");
    expect_text(DBL_MAX, "1.7976931348623157e+308");
    expect_text(DBL_MIN, "2.2250738585072014e-308");
    expect_text(-DBL_TRUE_MIN, "-4.94065645841247e-324");
}

static void nan_and_infinities_are_written_as_words(void **state)
{
    (void)state;
    expect_text(NAN, "nan");
    expect_text(INFINITY, "inf");
    expect_text(-INFINITY, "-inf");
}

static void every_double_reads_back_as_itself(void **state)
{
    uint64_t seed = 1, bits;
    char text[DET_DOUBLE_TEXT];
    double number, again;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        bits = det_test_random(&seed);
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        det_format_double(number, text);
        assert_int_equal(det_parse_double(det_view_text(text), &again), 0);
        assert_memory_equal(&number, &again, sizeof number);
    }
}

static void numbers_too_long_or_too_large_are_refused(void **state)
{
    char digits[DET_NUMBER_TEXT_MAX + 1];
    double number = 7;

    (void)state;
    memset(digits, '0', sizeof digits);
    assert_int_equal(det_parse_double(det_view_text("1e309"), &number), DET_ERR_RANGE);
    assert_int_equal(det_parse_double(det_view_text("-1e309"), &number), DET_ERR_RANGE);
    assert_int_equal(
        det_parse_double(det_view_of(digits, DET_NUMBER_TEXT_MAX), &number), DET_ERR_LIMIT);
    assert_true(number == 7);
    assert_int_equal(det_parse_double(det_view_of(digits, DET_NUMBER_TEXT_MAX - 1), &number), 0);
    assert_int_equal(det_parse_double(det_view_text("1e-400"), &number), 0);
    assert_true(number == 0);
}

static void any_decimal_point_becomes_a_dot(void **state)
{
    char target[DET_DOUBLE_TEXT];

    (void)state;
    det_number_from_locale("-1,5e+20", target);
    assert_string_equal(target, "-1.5e+20");
    det_number_from_locale(
        "0\xd9\xab"
        "25",
        target);
    assert_string_equal(target, "0.25");
    det_number_from_locale("17", target);
    assert_string_equal(target, "17");
}

static void a_dot_becomes_any_decimal_point(void **state)
{
    char target[16];

    (void)state;
    assert_true(det_number_to_locale(det_view_text("-1.5e+20"), det_view_text(","), target, 16));
    assert_string_equal(target, "-1,5e+20");
    assert_true(det_number_to_locale(det_view_text("0.25"), det_view_text("\xd9\xab"), target, 6));
    assert_memory_equal(
        target,
        "0\xd9\xab"
        "25",
        6);
    assert_false(det_number_to_locale(det_view_text("0.25"), det_view_text("\xd9\xab"), target, 5));
    assert_true(det_number_to_locale(det_view_text("17"), det_view_text(","), target, 3));
    assert_string_equal(target, "17");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubles_have_their_shortest_text),
        cmocka_unit_test(nan_and_infinities_are_written_as_words),
        cmocka_unit_test(every_double_reads_back_as_itself),
        cmocka_unit_test(numbers_too_long_or_too_large_are_refused),
        cmocka_unit_test(any_decimal_point_becomes_a_dot),
        cmocka_unit_test(a_dot_becomes_any_decimal_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
