/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_text_test.c - values from texts, and numbers compared with the C library. */
#include "connectors/row_text.h"

#include <math.h>

#include "lib/test.h"

#define REC_SPEC "connectors/harness_test.rec"
#include <detent/rec/declare.h>

static const char *set(const char *field, const char *text, struct trade *trade)
{
    return row_set_text(det_record_field(trade_record(), field), trade, det_view_text(text));
}

static void values_are_read_by_the_type_of_their_field(void **state)
{
    struct trade trade = { 0 };

    (void)state;
    assert_null(set("id", "0", &trade));
    assert_null(set("id", "18446744073709551615", &trade));
    assert_true(trade.id == UINT64_MAX);
    assert_null(set("amount", "-2147483648", &trade));
    assert_int_equal(trade.amount, INT32_MIN);
    assert_null(set("paid", "1", &trade));
    assert_true(trade.paid);
    assert_null(set("paid", "false", &trade));
    assert_false(trade.paid);
    assert_null(set("side", "sell", &trade));
    assert_int_equal(trade.side, SIDE_SELL);
    assert_null(set("note", "x", &trade));
    assert_true(trade.has_note);
    assert_null(set("note", "", &trade));
    assert_false(trade.has_note);
    assert_null(set("name", "", &trade));
}

static void values_that_do_not_fit_are_refused_with_a_reason(void **state)
{
    static const struct {
        const char *field, *text, *reason;
    } cases[] = {
        { "id", "18446744073709551616", "does not fit" },
        { "id", "1x", "is not a whole number" },
        { "id", "", "is empty; make the field OPTIONAL" },
        { "id", "-1", "is negative" },
        { "amount", "2147483648", "does not fit" },
        { "amount", "1.5", "is not a whole number" },
        { "price", "1,5", "is not a number" },
        { "price", "", "is empty; make the field OPTIONAL" },
        { "paid", "yes", "is neither true nor false" },
        { "at", "yesterday", "is not a time such as 2026-01-31T10:00:00Z" },
        { "side", "hold", "is not a value of the enum" },
        { "name", "12345678901234567", "is too long" },
    };
    struct trade trade;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(set(cases[i].field, cases[i].text, &trade), cases[i].reason);
}

static void numbers_are_those_of_the_c_library(void **state)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "1.5",
        "+2.50",
        ".5",
        "5.",
        "1e22",
        "1e23",
        "-1e-5",
        "1E+3",
        "0.1",
        "3.141592653589793238462643",
        "1e308",
        "123456789012345678901234567890",
        "9007199254740993",
        "4.9e-324",
        "00012.500",
    };
    static const char *const bad[] = { "",    "-",     ".",       "e5",    "1e",
                                       "1e+", "1.2.3", "0x10",    "inf",   "nan",
                                       "1 ",  " 1",    "1e99999", "1e309", "--1" };
    uint64_t seed = 3;
    double number;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(row_number(det_view_text(texts[i]), &number));
        assert_true(number == strtod(texts[i], NULL));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (row_number(det_view_text(bad[i]), &number))
            fail_msg("'%s' is not a number", bad[i]);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        int64_t digits = (int64_t)(det_test_random(&seed) >> (det_test_random(&seed) % 60));

        (void)snprintf(
            text, sizeof text, "%lld.%llue%d", (long long)digits,
            (unsigned long long)(det_test_random(&seed) % 100000),
            (int)(det_test_random(&seed) % 40) - 20);
        assert_true(row_number(det_view_text(text), &number));
        assert_true(number == strtod(text, NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_by_the_type_of_their_field),
        cmocka_unit_test(values_that_do_not_fit_are_refused_with_a_reason),
        cmocka_unit_test(numbers_are_those_of_the_c_library),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
