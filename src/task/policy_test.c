/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy_test.c - the inheritance of policies, and refused ones. */
#include <detent/driver/policy.h>
#include <detent/policy.h>

#include <float.h>
#include <math.h>

#include "lib/test.h"

static struct det_policy resolve(struct det_policy policy, const struct det_policy *defaults)
{
    struct det_error error = { 0 };
    struct det_policy ret;
    int r = det_policy_resolve(&policy, defaults, &ret, &error);

    if (r < 0)
        fail_msg("%s", error.text);
    return ret;
}

static void expect_refused(struct det_policy policy, const char *text)
{
    struct det_policy ret = { .grace = 99 };
    struct det_error error = { 0 };

    assert_int_equal(det_policy_resolve(&policy, NULL, &ret, &error), DET_ERR_INVALID);
    assert_int_equal(error.code, DET_ERR_INVALID);
    if (!strstr(error.text, text))
        fail_msg("'%s' has no '%s'", error.text, text);
    assert_int_equal(ret.grace, 99);
    assert_int_equal(det_policy_resolve(&policy, NULL, &ret, NULL), DET_ERR_INVALID);
}

static void a_policy_of_zeroes_is_the_documented_one(void **state)
{
    struct det_policy policy = resolve((struct det_policy){ 0 }, NULL);

    (void)state;
    assert_int_equal(policy.restart, DET_RESTART_ON_FAILURE);
    assert_int_equal(policy.interval, 0);
    assert_true(policy.retries_max == DET_RETRIES_UNLIMITED);
    assert_true(policy.timeout == DET_NO_TIMEOUT);
    assert_true(policy.grace == 10 * DET_SECOND);
    assert_true(policy.backoff.first == 200 * DET_MILLISECOND);
    assert_true(policy.backoff.max == 30 * DET_SECOND);
    assert_true(policy.backoff.factor == 2.0);
    assert_int_equal(policy.backoff.jitter, DET_JITTER_EQUAL);
    assert_true(policy.backoff.stable_after == 60 * DET_SECOND);
}

static const struct det_policy full = {
    .restart = DET_RESTART_ALWAYS,
    .interval = 1,
    .retries_max = 2,
    .timeout = 3,
    .grace = 4,
    .backoff = { .first = 5, .max = 6, .factor = 7, .jitter = DET_JITTER_BAND, .stable_after = 8 },
};

static void expect_equal(const struct det_policy *a, const struct det_policy *b)
{
    assert_int_equal(a->restart, b->restart);
    assert_true(a->interval == b->interval);
    assert_int_equal(a->retries_max, b->retries_max);
    assert_true(a->timeout == b->timeout);
    assert_true(a->grace == b->grace);
    assert_true(a->backoff.first == b->backoff.first);
    assert_true(a->backoff.max == b->backoff.max);
    assert_true(a->backoff.factor == b->backoff.factor);
    assert_int_equal(a->backoff.jitter, b->backoff.jitter);
    assert_true(a->backoff.stable_after == b->backoff.stable_after);
}

static void every_field_is_its_own_or_that_of_the_defaults(void **state)
{
    struct det_policy defaults = resolve((struct det_policy){ 0 }, NULL);
    struct det_policy inherited = resolve((struct det_policy){ 0 }, &full);
    struct det_policy own = resolve(full, &defaults);

    (void)state;
    expect_equal(&inherited, &full);
    expect_equal(&own, &full);
}

static void resolving_a_resolved_policy_changes_nothing(void **state)
{
    struct det_policy once = resolve((struct det_policy){ .interval = 5 }, NULL);
    struct det_policy twice = resolve(once, &full);
    int r;

    (void)state;
    expect_equal(&twice, &once);
    /* In place, too. */
    r = det_policy_resolve(&twice, &full, &twice, NULL);
    assert_int_equal(r, 0);
    expect_equal(&twice, &once);
}

static void task_can_disable_a_default(void **state)
{
    struct det_policy policy = resolve(
        (struct det_policy){ .interval = DET_NO_DELAY,
                             .retries_max = DET_RETRIES_UNLIMITED,
                             .timeout = DET_NO_TIMEOUT,
                             .grace = DET_NEVER,
                             .backoff = { .first = DET_NO_DELAY,
                                          .jitter = DET_JITTER_NONE,
                                          .stable_after = DET_NEVER } },
        &full);

    (void)state;
    assert_true(policy.interval == 0);
    assert_true(policy.retries_max == DET_RETRIES_UNLIMITED);
    assert_true(policy.timeout == DET_NO_TIMEOUT);
    assert_true(policy.grace == DET_NEVER);
    assert_true(policy.backoff.first == DET_NO_DELAY);
    assert_int_equal(policy.backoff.jitter, DET_JITTER_NONE);
    assert_true(policy.backoff.stable_after == DET_NEVER);
}

static void a_factor_that_does_not_grow_is_refused(void **state)
{
    const double wrong[] = { NAN, -NAN, INFINITY, -INFINITY, -1, 0.999999, DBL_MIN };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refused((struct det_policy){ .backoff = { .factor = wrong[i] } }, "at least 1");
    (void)resolve((struct det_policy){ .backoff = { .factor = 1 } }, NULL);
    (void)resolve((struct det_policy){ .backoff = { .factor = DBL_MAX } }, NULL);
}

static void a_first_delay_over_the_longest_is_refused(void **state)
{
    (void)state;
    expect_refused(
        (struct det_policy){ .backoff = { .first = DET_MINUTE, .max = 30 * DET_SECOND } },
        "the first delay (1m) is over the longest (30s); raise max");
}

/* A user who sets one of the two need not know the other. */
static void inherited_backoff_delay_yields_to_the_given_one(void **state)
{
    const struct det_policy defaults = { .backoff = { .first = DET_SECOND, .max = DET_MINUTE } };
    struct det_policy policy;

    (void)state;
    policy = resolve((struct det_policy){ .backoff = { .max = 100 * DET_MILLISECOND } }, NULL);
    assert_true(policy.backoff.first == 100 * DET_MILLISECOND);
    assert_true(policy.backoff.max == 100 * DET_MILLISECOND);
    policy = resolve((struct det_policy){ .backoff = { .max = DET_MILLISECOND } }, &defaults);
    assert_true(policy.backoff.first == DET_MILLISECOND);
    policy = resolve((struct det_policy){ .backoff = { .first = DET_HOUR } }, &defaults);
    assert_true(policy.backoff.first == DET_HOUR);
    assert_true(policy.backoff.max == DET_HOUR);
    policy = resolve((struct det_policy){ .backoff = { .first = DET_MINUTE } }, NULL);
    assert_true(policy.backoff.max == DET_MINUTE);
    policy = resolve((struct det_policy){ .backoff = { .max = DET_SECOND } }, &defaults);
    assert_true(policy.backoff.first == DET_SECOND);
}

static void negative_times_are_refused(void **state)
{
    (void)state;
    expect_refused((struct det_policy){ .interval = -2 }, "the interval is negative: -2ns");
    expect_refused((struct det_policy){ .timeout = -1 }, "the timeout");
    expect_refused((struct det_policy){ .grace = -1 }, "the grace");
    expect_refused((struct det_policy){ .backoff = { .first = -2 } }, "the first delay");
    expect_refused((struct det_policy){ .backoff = { .max = -1 } }, "the longest delay");
    expect_refused((struct det_policy){ .backoff = { .stable_after = -1 } }, "stable_after");
}

static void unknown_enum_values_of_a_policy_are_refused(void **state)
{
    (void)state;
    expect_refused(
        (struct det_policy){ .restart = (enum det_restart)4 }, "the restart 4 is unknown");
    expect_refused(
        (struct det_policy){ .backoff = { .jitter = (enum det_jitter)6 } },
        "the jitter 6 is unknown");
}

static void unused_defaults_are_not_validated(void **state)
{
    const struct det_policy wrong = { .timeout = -1 };

    (void)state;
    assert_true(resolve((struct det_policy){ .timeout = 5 }, &wrong).timeout == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_of_zeroes_is_the_documented_one),
        cmocka_unit_test(every_field_is_its_own_or_that_of_the_defaults),
        cmocka_unit_test(resolving_a_resolved_policy_changes_nothing),
        cmocka_unit_test(task_can_disable_a_default),
        cmocka_unit_test(a_factor_that_does_not_grow_is_refused),
        cmocka_unit_test(a_first_delay_over_the_longest_is_refused),
        cmocka_unit_test(inherited_backoff_delay_yields_to_the_given_one),
        cmocka_unit_test(negative_times_are_refused),
        cmocka_unit_test(unknown_enum_values_of_a_policy_are_refused),
        cmocka_unit_test(unused_defaults_are_not_validated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
