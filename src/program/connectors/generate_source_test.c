/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* generate_source_test.c - counted rows, the same ones after each start, at their rate. */
#include "connectors/harness_test.h"

static const struct det_stage stage = { .out = { .get = trade_record } };

static const struct trade *trade_of(const struct harness *harness, size_t index)
{
    return harness_row(harness, index);
}

static void rows_are_counted(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &generate_source, stage, "{count: 2500}");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 2500);
    assert_int_equal(trade_of(&harness, 0)->id, 1);
    assert_string_equal(trade_of(&harness, 2499)->name, "2500");
    assert_true(trade_of(&harness, 2499)->price == 2500);
    assert_int_equal(trade_of(&harness, 2499)->amount, 2500);
    harness_deinit(&harness);
}

static const char fields[] =
    "{count: 100, seed: 7, fields: {id: n * 10, name: \"'t' + text(n)\", price: random * 100,"
    " amount: bits % 6 + 1, paid: random < 0.5}}";

static void fields_are_computed(void **state)
{
    struct harness harness;
    int paid = 0;

    (void)state;
    harness_open(&harness, &generate_source, stage, fields);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 100);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(trade_of(&harness, i)->id, 10 * (i + 1));
        assert_in_range(trade_of(&harness, i)->amount, 1, 6);
        assert_true(trade_of(&harness, i)->price >= 0 && trade_of(&harness, i)->price < 100);
        paid += trade_of(&harness, i)->paid;
    }
    assert_in_range(paid, 20, 80);
    assert_string_equal(trade_of(&harness, 4)->name, "t5");
    harness_deinit(&harness);
}

static void a_source_that_resumes_makes_the_same_rows(void **state)
{
    struct harness once, often;

    (void)state;
    harness_open(&once, &generate_source, stage, fields);
    assert_int_equal(harness_run(&once), DET_SOURCE_DONE);
    harness_open(&often, &generate_source, stage, fields);
    often.room = 7;
    while (harness_next(&often) == DET_SOURCE_MORE) {
        harness_stop(&often);
        assert_int_equal(harness_start(&often), 0);
    }
    assert_int_equal(often.row_count, 100);
    for (size_t i = 0; i < 100; i++)
        assert_true(det_record_equal(trade_record(), trade_of(&once, i), trade_of(&often, i)));
    harness_deinit(&once);
    harness_deinit(&often);
}

static void a_rate_is_kept(void **state)
{
    struct harness harness;
    det_time begin = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);

    (void)state;
    harness_open(&harness, &generate_source, stage, "{count: 11, rate: 100}");
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 11);
    assert_true(
        det_world_now(det_world_real(), DET_CLOCK_MONOTONIC) - begin >= 100 * DET_MILLISECOND);
    harness_deinit(&harness);
}

static void a_row_that_does_not_fit_is_rejected(void **state)
{
    struct harness harness;

    (void)state;
    harness_open(&harness, &generate_source, stage, "{count: 3, fields: {id: 6 / (n - 2)}}");
    assert_int_equal(harness_run(&harness), DET_SOURCE_DONE);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(harness.error_count, 2);
    assert_non_null(strstr(harness.errors[0], "row 1, id: "));
    assert_non_null(strstr(harness.errors[1], "row 2, id: "));
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(&generate_source, stage, "{count: -1}", "count: expected a whole number");
    harness_refuses(&generate_source, stage, "{rate: -1}", "rate is in rows per second");
    harness_refuses(&generate_source, stage, "{fields: {idd: n}}", "idd: ");
    harness_refuses(&generate_source, stage, "{fields: {id: m}}", "line 1, column 15: id: ");
    harness_refuses(&generate_source, stage, "{fields: [id]}", "fields: expected a map");
    harness_refuses(&generate_source, stage, "{fields: {id: [1]}}", "id: expected an expression");
}

static int run_once(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &generate_source, stage, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = harness_run(&harness);
    harness_deinit(&harness);
    return r == DET_SOURCE_DONE ? 0 : r;
}

static void every_failing_allocation_is_reported(void **state)
{
    static char settings[] = "{count: 2, fields: {id: n, name: text(n)}}";

    (void)state;
    det_test_each_failure(run_once, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_counted),
        cmocka_unit_test(fields_are_computed),
        cmocka_unit_test(a_source_that_resumes_makes_the_same_rows),
        cmocka_unit_test(a_rate_is_kept),
        cmocka_unit_test(a_row_that_does_not_fit_is_rejected),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
