/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* strategies_test.c - the breaker, the window and the retry hold up EOF and DRAIN for as
 * long as they say, and never for ever. */
#include <detent/driver/control.h>

#include "lib/test.h"

static struct det_control_decision ask(
    struct det_control_strategy strategy, enum det_signal signal, det_time now,
    struct det_control_memory *memory)
{
    struct det_signal_info info = { .signal = signal, .now = now };

    return det_control_decide(&strategy, 1, &info, memory);
}

static void assert_forwards(struct det_control_decision decision)
{
    assert_int_equal(decision.action, DET_CONTROL_FORWARD);
}

static void assert_delays(struct det_control_decision decision, det_time delay)
{
    assert_int_equal(decision.action, DET_CONTROL_DELAY);
    assert_int_equal(decision.delay, delay);
}

static void breaker_delays_according_to_its_state(void **state)
{
    static const struct {
        uint8_t state;
        det_time cooldown, half_open_delay;
        det_time expected; /* 0: forward */
    } cases[] = {
        { DET_BREAKER_CLOSED, 0, 0, 0 },
        { DET_BREAKER_CLOSED, DET_SECOND, DET_SECOND, 0 },
        { DET_BREAKER_OPEN, 0, 0, 5 * DET_SECOND },
        { DET_BREAKER_OPEN, 60 * DET_SECOND, 0, 5 * DET_SECOND },
        { DET_BREAKER_OPEN, 5 * DET_SECOND + 1, 0, 5 * DET_SECOND },
        { DET_BREAKER_OPEN, 5 * DET_SECOND - 1, 0, 5 * DET_SECOND - 1 },
        { DET_BREAKER_OPEN, 1, 9 * DET_SECOND, 1 },
        { DET_BREAKER_HALF_OPEN, DET_SECOND, 0, 2 * DET_SECOND },
        { DET_BREAKER_HALF_OPEN, DET_SECOND, 9 * DET_SECOND, 9 * DET_SECOND },
        { DET_BREAKER_HALF_OPEN, 0, 1, 1 },
        { 3, 1, 1, 0 },
        { 255, 1, 1, 0 },
    };
    static const enum det_signal held[] = { DET_SIGNAL_EOF, DET_SIGNAL_DRAIN };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct det_breaker_strategy config = { &cases[i / 2].state, cases[i / 2].cooldown,
                                               cases[i / 2].half_open_delay };
        struct det_control_memory memory = { 0 };
        struct det_control_decision decision =
            ask(det_control_breaker(&config), held[i % 2], 0, &memory);

        if (cases[i / 2].expected)
            assert_delays(decision, cases[i / 2].expected);
        else
            assert_forwards(decision);
    }
}

static void a_breaker_holds_each_kind_of_signal_once(void **state)
{
    uint8_t breaker = DET_BREAKER_OPEN;
    struct det_breaker_strategy config = { .state = &breaker };
    struct det_control_strategy strategy = det_control_breaker(&config);
    struct det_control_memory memory = { 0 };

    (void)state;
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 0, &memory), 5 * DET_SECOND);
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 1, &memory));
    breaker = DET_BREAKER_HALF_OPEN;
    assert_delays(ask(strategy, DET_SIGNAL_DRAIN, 2, &memory), 2 * DET_SECOND);
    assert_forwards(ask(strategy, DET_SIGNAL_DRAIN, 3, &memory));
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 4, &memory));
}

static void breaker_that_opens_later_delays_from_then_on(void **state)
{
    uint8_t breaker = DET_BREAKER_CLOSED;
    struct det_breaker_strategy config = { .state = &breaker };
    struct det_control_strategy strategy = det_control_breaker(&config);
    struct det_control_memory memory = { 0 };

    (void)state;
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 0, &memory));
    breaker = DET_BREAKER_HALF_OPEN;
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 0, &memory), 2 * DET_SECOND);
}

static void window_delays_for_its_remaining_time(void **state)
{
    det_time began = 100;
    struct det_window_strategy config = { &began, 50 };
    struct det_control_strategy strategy = det_control_window(&config);
    struct det_control_memory memory = { 0 };

    (void)state;
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 100, &memory), 50);
    assert_delays(ask(strategy, DET_SIGNAL_DRAIN, 120, &memory), 30);
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 149, &memory), 1);
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 150, &memory));
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, DET_NEVER, &memory));
    /* Opened by another thread after the signal was read. */
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 99, &memory), 50);
    began = 0;
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 20, &memory));
    began = 7;
    config.length = DET_NEVER;
    assert_delays(ask(strategy, DET_SIGNAL_EOF, 0, &memory), DET_NEVER);
    config.length = 0;
    assert_forwards(ask(strategy, DET_SIGNAL_EOF, 7, &memory));
}

static void retry_stops_at_its_limit_and_forwards(void **state)
{
    (void)state;
    for (uint32_t max = 0; max < 5; max++) {
        struct det_retry_strategy config = { .attempts_max = max };
        struct det_control_strategy strategy = det_control_retry(&config);
        struct det_control_memory memory = { 0 };

        for (uint32_t i = 0; i < max; i++)
            assert_int_equal(ask(strategy, DET_SIGNAL_EOF, 0, &memory).action, DET_CONTROL_RETRY);
        assert_forwards(ask(strategy, DET_SIGNAL_EOF, 0, &memory));
        assert_forwards(ask(strategy, DET_SIGNAL_EOF, 0, &memory));
        for (uint32_t i = 0; i < max; i++)
            assert_int_equal(ask(strategy, DET_SIGNAL_DRAIN, 0, &memory).action, DET_CONTROL_RETRY);
        assert_forwards(ask(strategy, DET_SIGNAL_DRAIN, 0, &memory));
    }
}

static void retry_with_a_saturated_count_forwards(void **state)
{
    struct det_retry_strategy config = { .attempts_max = UINT32_MAX };
    struct det_control_memory memory = { .asked = { UINT32_MAX - 2 } };

    (void)state;
    assert_int_equal(
        ask(det_control_retry(&config), DET_SIGNAL_EOF, 0, &memory).action, DET_CONTROL_RETRY);
    assert_forwards(ask(det_control_retry(&config), DET_SIGNAL_EOF, 0, &memory));
}

static void a_retry_with_a_first_delay_backs_off(void **state)
{
    struct det_retry_strategy config = {
        .attempts_max = 6, .first = 100, .max = 1000, .factor = 3
    };
    static const det_time expected[] = { 100, 300, 900, 1000, 1000, 1000 };
    struct det_control_memory memory = { 0 };

    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_delays(ask(det_control_retry(&config), DET_SIGNAL_EOF, 0, &memory), expected[i]);
    assert_forwards(ask(det_control_retry(&config), DET_SIGNAL_EOF, 0, &memory));
}

static void a_delay_without_a_factor_is_always_the_same(void **state)
{
    struct det_retry_strategy config = { .attempts_max = UINT32_MAX, .first = 100 };
    struct det_control_memory memory = { 0 };

    (void)state;
    for (size_t i = 0; i < 10; i++)
        assert_delays(ask(det_control_retry(&config), DET_SIGNAL_DRAIN, 0, &memory), 100);
    config.factor = 1;
    memory.asked[DET_SIGNAL_DRAIN] = UINT32_MAX - 2;
    assert_delays(ask(det_control_retry(&config), DET_SIGNAL_DRAIN, 0, &memory), 100);
}

static void a_delay_never_overflows(void **state)
{
    struct det_retry_strategy config = {
        .attempts_max = UINT32_MAX, .first = 1, .factor = 1e300, .has_jitter = true
    };
    struct det_control_memory memory = { .asked = { 1000000 } };

    (void)state;
    for (det_time now = 0; now < 100; now++) {
        struct det_control_decision decision =
            ask(det_control_retry(&config), DET_SIGNAL_EOF, now, &memory);

        assert_int_equal(decision.action, DET_CONTROL_DELAY);
        assert_true(decision.delay > DET_NEVER / 10 * 8);
    }
}

static void jitter_spreads_a_delay_by_a_tenth_to_both_sides(void **state)
{
    struct det_retry_strategy config = { .attempts_max = UINT32_MAX,
                                         .first = 1000,
                                         .has_jitter = true };
    struct det_control_memory memory = { 0 };
    det_time least = DET_NEVER, most = 0, sum = 0;

    (void)state;
    for (det_time now = 0; now < 10000; now++) {
        det_time delay = ask(det_control_retry(&config), DET_SIGNAL_EOF, now, &memory).delay;

        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
        sum += delay;
    }
    assert_in_range(least, 900, 905);
    assert_in_range(most, 1095, 1100);
    assert_in_range(sum / 10000, 995, 1005);
}

static void signals_that_do_not_end_the_input_pass(void **state)
{
    static const uint8_t open = DET_BREAKER_OPEN;
    static const det_time began = 1;
    struct det_breaker_strategy breaker = { .state = &open };
    struct det_window_strategy window = { &began, DET_HOUR };
    struct det_retry_strategy retry = { .attempts_max = 9 };
    struct det_control_strategy strategies[] = { det_control_breaker(&breaker),
                                                 det_control_window(&window),
                                                 det_control_retry(&retry) };
    struct det_control_memory memories[3] = { 0 };

    (void)state;
    for (int signal = 0; signal < DET_SIGNAL_KINDS; signal++) {
        struct det_signal_info info = { .signal = (enum det_signal)signal, .now = 1 };
        struct det_control_decision decision = det_control_decide(strategies, 3, &info, memories);

        if (info.signal == DET_SIGNAL_EOF || info.signal == DET_SIGNAL_DRAIN)
            assert_delays(decision, DET_HOUR);
        else
            assert_forwards(decision);
    }
}

/* Whatever the three say together, a stage that asks again after every delay gets its EOF. */
static void combined_strategies_delay_for_a_bounded_time(void **state)
{
    static const uint8_t open = DET_BREAKER_OPEN;
    det_time began = 1, now = 1;
    struct det_breaker_strategy breaker = { .state = &open };
    struct det_window_strategy window = { &began, 7 * DET_SECOND };
    struct det_retry_strategy retry = { .attempts_max = 3 };
    struct det_control_strategy strategies[] = { det_control_retry(&retry),
                                                 det_control_breaker(&breaker),
                                                 det_control_window(&window) };
    struct det_control_memory memories[3] = { 0 };
    static const enum det_control_action expected[] = { DET_CONTROL_DELAY, DET_CONTROL_RETRY,
                                                        DET_CONTROL_RETRY, DET_CONTROL_FORWARD };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct det_signal_info info = { .signal = DET_SIGNAL_EOF, .now = now };
        struct det_control_decision decision = det_control_decide(strategies, 3, &info, memories);

        assert_int_equal(decision.action, expected[i]);
        now += decision.delay;
    }
    assert_int_equal(now, 1 + 7 * DET_SECOND);
}

static void source_with_an_open_breaker_ends_with_poison(void **state)
{
    uint8_t breaker = DET_BREAKER_CLOSED;
    struct det_breaker_strategy config = { .state = &breaker };

    (void)state;
    assert_int_equal(det_control_source_end(NULL), DET_SOURCE_EOF);
    assert_int_equal(det_control_source_end(&config), DET_SOURCE_EOF);
    breaker = DET_BREAKER_HALF_OPEN;
    assert_int_equal(det_control_source_end(&config), DET_SOURCE_EOF);
    breaker = DET_BREAKER_OPEN;
    assert_int_equal(det_control_source_end(&config), DET_SOURCE_POISON);
}

static void make_breaker(void *argument)
{
    (void)det_control_breaker(argument);
}

static void make_window(void *argument)
{
    (void)det_control_window(argument);
}

static void make_retry(void *argument)
{
    (void)det_control_retry(argument);
}

static void invalid_strategy_config_aborts(void **state)
{
    (void)state;
    assert_true(det_test_aborts(
        make_breaker, &(struct det_breaker_strategy){ .cooldown = -1 }, "cooldown"));
    assert_true(det_test_aborts(
        make_breaker, &(struct det_breaker_strategy){ .half_open_delay = -1 }, "half_open_delay"));
    assert_true(
        det_test_aborts(make_window, &(struct det_window_strategy){ .length = -1 }, "length"));
    assert_true(det_test_aborts(make_retry, &(struct det_retry_strategy){ .first = -1 }, "first"));
    assert_true(det_test_aborts(make_retry, &(struct det_retry_strategy){ .max = -1 }, "max"));
    assert_true(
        det_test_aborts(make_retry, &(struct det_retry_strategy){ .factor = 0.5 }, "factor"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaker_delays_according_to_its_state),
        cmocka_unit_test(a_breaker_holds_each_kind_of_signal_once),
        cmocka_unit_test(breaker_that_opens_later_delays_from_then_on),
        cmocka_unit_test(window_delays_for_its_remaining_time),
        cmocka_unit_test(retry_stops_at_its_limit_and_forwards),
        cmocka_unit_test(retry_with_a_saturated_count_forwards),
        cmocka_unit_test(a_retry_with_a_first_delay_backs_off),
        cmocka_unit_test(a_delay_without_a_factor_is_always_the_same),
        cmocka_unit_test(a_delay_never_overflows),
        cmocka_unit_test(jitter_spreads_a_delay_by_a_tenth_to_both_sides),
        cmocka_unit_test(signals_that_do_not_end_the_input_pass),
        cmocka_unit_test(combined_strategies_delay_for_a_bounded_time),
        cmocka_unit_test(source_with_an_open_breaker_ends_with_poison),
        cmocka_unit_test(invalid_strategy_config_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
