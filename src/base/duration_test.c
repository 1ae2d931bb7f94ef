/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* duration_test.c - durations are read and written exactly, and nothing else is read. */
#include "base/text.h"
#include "lib/test.h"

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        det_time span;
    } cases[] = {
        { "250ms", 250 * DET_MILLISECOND },
        { "1.5s", 1500 * DET_MILLISECOND },
        { "30m", 30 * DET_MINUTE },
        { "1h30m", 90 * DET_MINUTE },
        { "7d", 7 * DET_DAY },
        { "1d2h3m4s5ms6us7ns", DET_DAY + 2 * DET_HOUR + 3 * DET_MINUTE + 4 * DET_SECOND + 5006007 },
        { "0s", 0 },
        { "-0ns", 0 },
        { "90m", 90 * DET_MINUTE },
        { "0.000000001s", 1 },
        { "0.0000000010000000000000000000s", 1 },
        { "0.1us", 100 },
        { "1.0ns", 1 },
        { "0.5d", 12 * DET_HOUR },
        { "1h0.25s", DET_HOUR + 250 * DET_MILLISECOND },
        { "-1h30m", -90 * DET_MINUTE },
        { "007s", 7 * DET_SECOND },
        { "9223372036854775807ns", INT64_MAX },
        { "-9223372036854775808ns", INT64_MIN },
        { "106751d23h47m16.854775807s", INT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        det_time span = 99;

        assert_int_equal(det_parse_duration(det_view_text(cases[i].text), &span), 0);
        assert_true(span == cases[i].span);
    }
}

static void malformed_durations_are_rejected(void **state)
{
    static const char *const malformed[] = {
        "",
        "-",
        "1",
        "0",
        "s",
        "ms",
        "1x",
        "1S",
        "1sec",
        "1 s",
        " 1s",
        "1s ",
        "+1s",
        "--1s",
        "1.s",
        ".5s",
        "1..5s",
        "1.5.5s",
        "1.5",
        "1,5s",
        "1m1h",
        "1s1s",
        "1ms1s",
        "1.5h30m",
        "1h-30m",
        "1mms",
        "0.5ns",
        "1.0000000001s",
        "0.00000000000000001d",
        "0.0000000000000001d",
        "1h30",
        "1h.5m",
        "99999999999999999999999sx",
        "1e3s",
    };
    det_time span = 99;

    (void)state;
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        int r = det_parse_duration(det_view_text(malformed[i]), &span);

        if (r != DET_ERR_MALFORMED)
            fail_msg("\"%s\" gives %d", malformed[i], r);
    }
    assert_int_equal(span, 99);
}

/* 5^11 * 2^16 is the part of a day that decides: 16 digits can still be whole. */
static void the_finest_fraction_of_a_day_is_exact(void **state)
{
    det_time span;

    (void)state;
    /* 27 ns, as 27 / (2^16 * 3^3 * 5^11) = 1 / 3200000000000 = 3.125e-13 of a day */
    assert_int_equal(det_parse_duration(det_view_text("0.0000000000003125d"), &span), 0);
    assert_int_equal(span, 27);
    assert_int_equal(
        det_parse_duration(det_view_text("0.0000000000003126d"), &span), DET_ERR_MALFORMED);
}

static void durations_out_of_range_overflow(void **state)
{
    static const char *const too_long[] = { "9223372036854775808ns",
                                            "-9223372036854775809ns",
                                            "106752d",
                                            "106751d23h47m16.854775808s",
                                            "18446744073709551616ns",
                                            "18446744073709551615d",
                                            "99999999999999999999999s",
                                            "-99999999999999999999999d99999999999999999999h" };
    det_time span = 99;

    (void)state;
    for (size_t i = 0; i < sizeof too_long / sizeof too_long[0]; i++)
        assert_int_equal(det_parse_duration(det_view_text(too_long[i]), &span), DET_ERR_OVERFLOW);
    assert_int_equal(span, 99);
}

static void durations_are_written_shortly(void **state)
{
    static const struct {
        det_time span;
        const char *text;
    } cases[] = {
        { 0, "0s" },
        { 1, "1ns" },
        { -1, "-1ns" },
        { 1500, "1.5us" },
        { 250000000, "250ms" },
        { 1000000, "1ms" },
        { 1001000, "1.001ms" },
        { 1500 * DET_MILLISECOND, "1.5s" },
        { DET_SECOND + 1, "1.000000001s" },
        { DET_MINUTE, "1m" },
        { 90 * DET_MINUTE, "1h30m" },
        { 7 * DET_DAY, "7d" },
        { 36 * DET_HOUR, "1d12h" },
        { DET_HOUR + 250 * DET_MILLISECOND, "1h250ms" },
        { DET_DAY + 1, "1d1ns" },
        { INT64_MAX, "106751d23h47m16.854775807s" },
        { INT64_MIN, "-106751d23h47m16.854775808s" },
    };
    char text[DET_DURATION_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(det_format_duration(cases[i].span, text, sizeof text), cases[i].text);
}

static void small_target_gets_a_truncated_text(void **state)
{
    char text[4];

    (void)state;
    assert_ptr_equal(det_format_duration(90 * DET_MINUTE, text, sizeof text), text);
    assert_string_equal(text, "1h3");
}

static void random_durations_round_trip(void **state)
{
    uint64_t seed = 1;
    char text[DET_DURATION_TEXT];

    (void)state;
    for (int i = 0; i < 200000; i++) {
        /* Durations of all magnitudes, often round in some unit. */
        uint64_t magnitude = det_test_random(&seed) >> (det_test_random(&seed) % 64);
        det_time span = (det_time)magnitude;
        det_time back = 0;

        if (i % 3 == 0)
            span -= span % (i % 2 == 0 ? DET_MILLISECOND : DET_MINUTE);
        (void)det_format_duration(span, text, sizeof text);
        assert_int_equal(det_parse_duration(det_view_text(text), &back), 0);
        assert_true(back == span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(malformed_durations_are_rejected),
        cmocka_unit_test(the_finest_fraction_of_a_day_is_exact),
        cmocka_unit_test(durations_out_of_range_overflow),
        cmocka_unit_test(durations_are_written_shortly),
        cmocka_unit_test(small_target_gets_a_truncated_text),
        cmocka_unit_test(random_durations_round_trip),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
