/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_stage_test.c - the transforms map, filter and rename. */
#include "connectors/harness_test.h"

static const struct det_stage same = { .in = { .get = trade_record },
                                       .out = { .get = trade_record } };
static const struct det_stage other = { .in = { .get = trade_record },
                                        .out = { .get = sale_record } };

static const struct trade pen = { .id = 7,
                                  .name = "pen",
                                  .price = 1.5,
                                  .amount = 3,
                                  .has_note = true,
                                  .note = "blue",
                                  .paid = true,
                                  .side = SIDE_SELL };

static int process(struct harness *harness, const struct trade *trade)
{
    return harness->connector->functions.process(&harness->call, trade);
}

static void map_sets_fields_and_copies_the_others(void **state)
{
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(
        &harness, &map_transform, other,
        "{set: {number: id + 1, total: price * amount, name: upper(name)}}");
    assert_int_equal(process(&harness, &pen), 0);
    sale = harness_row(&harness, 0);
    assert_int_equal(sale->number, 8);
    assert_true(sale->total == 4.5);
    assert_string_equal(sale->name, "PEN");
    assert_int_equal(sale->amount, 3);
    assert_true(sale->has_note);
    assert_string_equal(sale->note, "blue");
    assert_false(sale->has_text);
    harness_deinit(&harness);
}

static void map_of_one_record_keeps_all_other_fields(void **state)
{
    struct trade wanted = pen;
    struct harness harness;

    (void)state;
    wanted.price = 3;
    harness_open(&harness, &map_transform, same, "{set: {price: price * 2}}");
    assert_int_equal(process(&harness, &pen), 0);
    assert_true(det_record_equal(trade_record(), harness_row(&harness, 0), &wanted));
    harness_deinit(&harness);
}

static void a_row_whose_expression_fails_is_rejected(void **state)
{
    struct harness harness;
    struct trade zero = pen;

    (void)state;
    zero.amount = 0;
    harness_open(&harness, &map_transform, same, "{set: {id: 12 / amount}}");
    assert_true(process(&harness, &zero) < 0);
    assert_int_equal(harness.last_rejection, DET_REJECT_DOMAIN);
    assert_int_equal(harness.row_count, 0);
    assert_non_null(strstr(harness.errors[0], "id: "));
    assert_int_equal(process(&harness, &pen), 0);
    harness_deinit(&harness);
}

static void filter_passes_rows_by_a_condition(void **state)
{
    struct harness harness;
    struct trade cheap = pen;

    (void)state;
    cheap.price = 0.5;
    harness_open(&harness, &filter_transform, same, "{where: \"price > 1 and side == 'sell'\"}");
    assert_int_equal(process(&harness, &pen), 0);
    assert_int_equal(process(&harness, &cheap), 0);
    assert_int_equal(harness.row_count, 1);
    assert_true(det_record_equal(trade_record(), harness_row(&harness, 0), &pen));
    harness_deinit(&harness);
    harness_open(&harness, &filter_transform, same, "{where: 12 / amount > 1}");
    cheap.amount = 0;
    assert_true(process(&harness, &cheap) < 0);
    assert_non_null(strstr(harness.errors[0], "where: "));
    harness_deinit(&harness);
}

static void rename_copies_fields_to_other_names(void **state)
{
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(
        &harness, &rename_transform, other, "{fields: {number: id, total: price, text: note}}");
    assert_int_equal(process(&harness, &pen), 0);
    sale = harness_row(&harness, 0);
    assert_int_equal(sale->number, 7);
    assert_true(sale->total == 1.5);
    assert_string_equal(sale->text, "blue");
    assert_string_equal(sale->name, "pen");
    harness_deinit(&harness);
}

static void rename_may_swap_fields_of_one_record(void **state)
{
    static const struct det_stage stage = { .in = { .get = sale_record },
                                            .out = { .get = sale_record } };
    const struct sale in = {
        .name = "x", .has_note = true, .note = "a", .has_text = true, .text = "b"
    };
    struct harness harness;
    const struct sale *sale;

    (void)state;
    harness_open(&harness, &rename_transform, stage, "{fields: {note: text, text: note}}");
    assert_int_equal(harness.connector->functions.process(&harness.call, &in), 0);
    sale = harness_row(&harness, 0);
    assert_string_equal(sale->note, "b");
    assert_string_equal(sale->text, "a");
    assert_string_equal(sale->name, "x");
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(
        &map_transform, other, "{set: {number: id}}",
        "the field 'total' of sale gets no value: trade has no such field; set it, or make it");
    harness_refuses(&map_transform, other, "{set: {number: name, total: 1}}", "number: ");
    harness_refuses(&filter_transform, same, "{}", "where is missing: add it, such as {where:");
    harness_refuses(&filter_transform, same, "{where: price}", "where: ");
    harness_refuses(&rename_transform, other, "{}", "fields is missing: add a map from new names");
    harness_refuses(
        &rename_transform, other, "{fields: {number: idd}}", "trade has no field 'idd'; did you");
}

static int map_once(struct det_test_memory *memory, void *argument)
{
    struct harness harness;
    int r;

    harness_init(&harness, &map_transform, other, argument);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0)
        r = process(&harness, &pen);
    harness_deinit(&harness);
    return r;
}

static void every_failing_allocation_is_reported(void **state)
{
    static char settings[] = "{set: {number: id, total: price}}";

    (void)state;
    det_test_each_failure(map_once, settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_sets_fields_and_copies_the_others),
        cmocka_unit_test(map_of_one_record_keeps_all_other_fields),
        cmocka_unit_test(a_row_whose_expression_fails_is_rejected),
        cmocka_unit_test(filter_passes_rows_by_a_condition),
        cmocka_unit_test(rename_copies_fields_to_other_names),
        cmocka_unit_test(rename_may_swap_fields_of_one_record),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
