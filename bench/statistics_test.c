/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* statistics_test.c - quantiles of samples whose quantiles are known. */
#include "lib/test.h"
#include "statistics.h"

static void median_of_an_odd_count_is_a_sample(void **state)
{
    double samples[] = { 9, 1, 5 };

    (void)state;
    assert_true(bench_quantile(samples, 3, 0.5) == 5);
}

static void median_of_an_even_count_lies_between_two_samples(void **state)
{
    double samples[] = { 4, 1, 2, 8 };

    (void)state;
    assert_true(bench_quantile(samples, 4, 0.5) == 3);
}

static void extreme_quantiles_are_the_least_and_greatest_sample(void **state)
{
    double samples[] = { 4, 1, 2, 8 };

    (void)state;
    assert_true(bench_quantile(samples, 4, 0) == 1);
    assert_true(bench_quantile(samples, 4, 1) == 8);
}

static void a_tenth_of_eleven_samples_is_the_second(void **state)
{
    double samples[] = { 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 };

    (void)state;
    assert_true(bench_quantile(samples, 11, 0.1) == 1);
    assert_true(bench_quantile(samples, 11, 0.9) == 9);
}

static void one_sample_is_every_quantile(void **state)
{
    double samples[] = { 3 };

    (void)state;
    assert_true(bench_quantile(samples, 1, 0.1) == 3);
    assert_true(bench_quantile(samples, 1, 0.9) == 3);
}

static void take_quantile_of_nothing(void *argument)
{
    (void)bench_quantile(argument, 0, 0.5);
}

static void quantile_of_no_samples_aborts(void **state)
{
    double samples[] = { 0 };

    (void)state;
    assert_true(det_test_aborts(take_quantile_of_nothing, samples, "count > 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_of_an_odd_count_is_a_sample),
        cmocka_unit_test(median_of_an_even_count_lies_between_two_samples),
        cmocka_unit_test(extreme_quantiles_are_the_least_and_greatest_sample),
        cmocka_unit_test(a_tenth_of_eleven_samples_is_the_second),
        cmocka_unit_test(one_sample_is_every_quantile),
        cmocka_unit_test(quantile_of_no_samples_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
