/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* backoff_test.c - delays: exact before jitter, in their range after it, and spread over it. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include <float.h>

#include "base/checked.h"
#include "lib/test.h"

#define MS       DET_MILLISECOND
#define ALL_BITS UINT64_MAX

static struct det_backoff doubling(enum det_jitter jitter)
{
    return (struct det_backoff){
        .first = 100 * MS,
        .max = 30 * DET_SECOND,
        .factor = 2,
        .jitter = jitter,
        .stable_after = DET_MINUTE,
    };
}

static void backoff_base_doubles_up_to_its_maximum(void **state)
{
    static const det_time expected[] = { 100, 200, 400, 800, 1600 };
    struct det_backoff backoff = doubling(DET_JITTER_NONE);

    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(det_backoff_base(&backoff, i) == expected[i] * MS);
        assert_true(det_backoff_delay(&backoff, i, 0, ALL_BITS) == expected[i] * MS);
    }
    backoff.max = DET_SECOND;
    assert_true(det_backoff_base(&backoff, 10) == DET_SECOND);
    assert_true(det_backoff_base(&backoff, UINT32_MAX) == DET_SECOND);
}

static void no_exponent_leaves_the_range(void **state)
{
    static const double factors[] = { 1, 1 + DBL_EPSILON, 1.0000001, 1.5, 2, 1e300, DBL_MAX };
    static const det_time maxima[] = { 1, MS, DET_DAY, DET_NEVER - 1, DET_NEVER };

    (void)state;
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        for (size_t m = 0; m < sizeof maxima / sizeof maxima[0]; m++) {
            struct det_backoff backoff = { .first = 1, .max = maxima[m], .factor = factors[f] };

            for (uint32_t e = UINT32_MAX; e; e >>= 1) {
                det_time base = det_backoff_base(&backoff, e);

                assert_true(base >= 1 && base <= maxima[m]);
            }
            backoff.first = maxima[m];
            assert_true(det_backoff_base(&backoff, 0) == maxima[m]);
            assert_true(det_backoff_base(&backoff, UINT32_MAX) == maxima[m]);
        }
    }
}

static void backoff_factor_one_keeps_the_delay(void **state)
{
    struct det_backoff backoff = { .first = 123456789, .max = DET_HOUR, .factor = 1 };

    (void)state;
    assert_true(det_backoff_base(&backoff, 1) == 123456789);
    assert_true(det_backoff_base(&backoff, UINT32_MAX) == 123456789);
}

/* The factor is `over` / 2; in whole numbers, rounded to the nearest. */
static det_time exact_base(det_time first, unsigned over, uint32_t failures, det_time max)
{
    det_u128 value = (det_u128)first, divisor = 1;

    for (uint32_t i = 0; i < failures; i++, divisor *= 2)
        value *= over;
    value = (value + divisor / 2) / divisor;
    return value > (det_u128)max ? max : (det_time)value;
}

static void the_base_is_exact_to_the_nanosecond(void **state)
{
    (void)state;
    for (unsigned over = 2; over <= 8; over++) {
        struct det_backoff backoff = { .first = 100 * MS,
                                       .max = 30 * DET_DAY,
                                       .factor = over / 2.0 };

        for (uint32_t i = 0; i < 20; i++)
            assert_true(
                det_backoff_base(&backoff, i) == exact_base(100 * MS, over, i, 30 * DET_DAY));
    }
}

static void tenths_are_rounded_and_not_cut(void **state)
{
    struct det_backoff backoff = { .first = 100 * MS, .max = DET_HOUR, .factor = 1.1 };

    (void)state;
    assert_true(det_backoff_base(&backoff, 1) == 110 * MS);
    assert_true(det_backoff_base(&backoff, 2) == 121 * MS);
    assert_true(det_backoff_base(&backoff, 3) == 133100 * DET_MICROSECOND);
}

static void the_base_never_shrinks(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct det_backoff backoff = {
            .first = 1 + (det_time)(det_test_random(&seed) % (uint64_t)DET_SECOND),
            .max = DET_HOUR + (det_time)(det_test_random(&seed) >> 2),
            .factor = 1.01 + (double)(det_test_random(&seed) % 1000) / 250,
        };
        det_time before = 0;

        for (uint32_t e = 0; e < 500; e++) {
            det_time base = det_backoff_base(&backoff, e);

            assert_true(base >= before && base <= backoff.max);
            before = base;
        }
        assert_true(det_backoff_base(&backoff, 1u << 20) == backoff.max);
    }
}

static void expect_range(
    const struct det_backoff *backoff, uint32_t failures, det_time before, det_time least,
    det_time most)
{
    uint64_t seed = failures;

    assert_true(det_backoff_delay(backoff, failures, before, 0) == least);
    assert_true(det_backoff_delay(backoff, failures, before, ALL_BITS) == most);
    for (int i = 0; i < 1000; i++) {
        det_time delay = det_backoff_delay(backoff, failures, before, det_test_random(&seed));

        assert_true(delay >= least && delay <= most);
    }
}

static void each_jitter_reaches_both_ends_of_its_range(void **state)
{
    struct det_backoff full = doubling(DET_JITTER_FULL), equal = doubling(DET_JITTER_EQUAL);
    struct det_backoff band = doubling(DET_JITTER_BAND), real = doubling(DET_JITTER_DECORRELATED);

    (void)state;
    /* Full begins at zero; below that is only the floor. */
    expect_range(&full, 0, 0, MS, 100 * MS);
    expect_range(&full, 4, 0, MS, 1600 * MS);
    expect_range(&equal, 0, 0, 50 * MS, 100 * MS);
    expect_range(&equal, 4, 0, 800 * MS, 1600 * MS);
    expect_range(&band, 0, 0, 100 * MS, 300 * MS);
    expect_range(&band, 4, 0, 100 * MS, 4800 * MS);
    expect_range(&band, 40, 0, 100 * MS, 30 * DET_SECOND);
    /* The first, any, and one whose triple is too much; what the base says does not matter. */
    expect_range(&real, 0, 0, 100 * MS, 300 * MS);
    expect_range(&real, 40, 150 * MS, 100 * MS, 450 * MS);
    expect_range(&real, 0, 25 * DET_SECOND, 100 * MS, 30 * DET_SECOND);
    /* A delay before that is less than a third of the first: of another policy, say. */
    expect_range(&real, 3, 1, 100 * MS, 100 * MS);
}

static void equal_jitter_of_an_odd_base_reaches_the_maximum(void **state)
{
    struct det_backoff backoff = doubling(DET_JITTER_EQUAL);

    (void)state;
    backoff.first = 5 * MS + 1;
    expect_range(&backoff, 0, 0, 5 * MS / 2, 5 * MS + 1);
}

static void tripled_backoff_saturates_at_the_maximum(void **state)
{
    struct det_backoff backoff = doubling(DET_JITTER_BAND);

    (void)state;
    backoff.max = DET_NEVER;
    expect_range(&backoff, UINT32_MAX, 0, 100 * MS, DET_NEVER);
    backoff.jitter = DET_JITTER_DECORRELATED;
    expect_range(&backoff, 0, DET_NEVER, 100 * MS, DET_NEVER);
    backoff.jitter = DET_JITTER_FULL;
    expect_range(&backoff, UINT32_MAX, 0, MS, DET_NEVER);
}

static void delays_fill_their_range_evenly(void **state)
{
    static const enum det_jitter jitters[] = { DET_JITTER_FULL, DET_JITTER_EQUAL, DET_JITTER_BAND,
                                               DET_JITTER_DECORRELATED };
    uint64_t seed = 7;

    (void)state;
    for (size_t j = 0; j < 4; j++) {
        struct det_backoff backoff = doubling(jitters[j]);
        det_time least = det_backoff_delay(&backoff, 3, 400 * MS, 0);
        det_time most = det_backoff_delay(&backoff, 3, 400 * MS, ALL_BITS);
        int parts[10] = { 0 };

        for (int i = 0; i < 100000; i++) {
            det_time delay = det_backoff_delay(&backoff, 3, 400 * MS, det_test_random(&seed));

            parts[(delay - least) * 10 / (most - least + 1)]++;
        }
        for (int i = 0; i < 10; i++)
            assert_in_range(parts[i], 9500, 10500);
    }
}

static void no_delay_stays_no_delay(void **state)
{
    (void)state;
    for (int j = DET_JITTER_NONE; j <= DET_JITTER_DECORRELATED; j++) {
        struct det_backoff backoff = doubling((enum det_jitter)j);

        backoff.first = DET_NO_DELAY;
        assert_true(det_backoff_base(&backoff, 0) == 0);
        assert_true(det_backoff_base(&backoff, UINT32_MAX) == 0);
        expect_range(&backoff, 0, 0, 0, 0);
        expect_range(&backoff, UINT32_MAX, 5, 0, 0);
    }
}

static void backoff_keeps_fractions_of_a_millisecond(void **state)
{
    struct det_backoff backoff = doubling(DET_JITTER_NONE);
    uint64_t seed = 11;
    int whole = 0;

    (void)state;
    backoff.first = 1234567;
    assert_true(det_backoff_delay(&backoff, 0, 0, 0) == 1234567);
    assert_true(det_backoff_delay(&backoff, 1, 0, 0) == 2469134);
    backoff.jitter = DET_JITTER_FULL;
    for (int i = 0; i < 1000; i++)
        whole += det_backoff_delay(&backoff, 6, 0, det_test_random(&seed)) % MS == 0;
    /* About one in 80 is under the floor, which is a whole one. */
    assert_true(whole < 40);
}

static void backoff_floor_is_a_millisecond_or_the_maximum(void **state)
{
    struct det_backoff backoff = { .first = 10, .max = DET_SECOND, .factor = 2 };

    (void)state;
    for (int j = DET_JITTER_NONE; j <= DET_JITTER_DECORRELATED; j++) {
        backoff.jitter = (enum det_jitter)j;
        backoff.max = DET_SECOND;
        assert_true(det_backoff_delay(&backoff, 0, 0, 0) == MS);
        assert_true(det_backoff_delay(&backoff, 0, 0, ALL_BITS) == MS);
        backoff.max = 20;
        assert_true(det_backoff_delay(&backoff, 5, 0, 0) == 20);
    }
}

static void backoff_jitter_defaults_to_equal(void **state)
{
    struct det_backoff backoff = doubling(DET_JITTER_INHERIT);

    (void)state;
    expect_range(&backoff, 0, 0, 50 * MS, 100 * MS);
}

static void take_unresolved(void *argument)
{
    (void)det_backoff_base(argument, 3);
}

static void unresolved_backoff_aborts(void **state)
{
    struct det_backoff zero = { 0 };

    (void)state;
    assert_true(det_test_aborts(take_unresolved, &zero, "backoff.c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backoff_base_doubles_up_to_its_maximum),
        cmocka_unit_test(no_exponent_leaves_the_range),
        cmocka_unit_test(backoff_factor_one_keeps_the_delay),
        cmocka_unit_test(the_base_is_exact_to_the_nanosecond),
        cmocka_unit_test(tenths_are_rounded_and_not_cut),
        cmocka_unit_test(the_base_never_shrinks),
        cmocka_unit_test(each_jitter_reaches_both_ends_of_its_range),
        cmocka_unit_test(equal_jitter_of_an_odd_base_reaches_the_maximum),
        cmocka_unit_test(tripled_backoff_saturates_at_the_maximum),
        cmocka_unit_test(delays_fill_their_range_evenly),
        cmocka_unit_test(no_delay_stays_no_delay),
        cmocka_unit_test(backoff_keeps_fractions_of_a_millisecond),
        cmocka_unit_test(backoff_floor_is_a_millisecond_or_the_maximum),
        cmocka_unit_test(backoff_jitter_defaults_to_equal),
        cmocka_unit_test(unresolved_backoff_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
