/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* totals_test.c - the stages aggregate, latest, top and join. */
#include "connectors/harness_test.h"
#include "connectors/row_state.h"

#define REC_SPEC "connectors/totals_test.rec"
#include <detent/rec/declare.h>

/* A stateful stage and one state of it. */
struct totaller {
    struct harness harness;
    const struct det_record *record;
    void *state, *before;
};

static void totaller_open(
    struct totaller *totaller, const struct det_connector *connector,
    const struct det_record *(*out)(void), const char *settings)
{
    struct det_error error;

    harness_open(
        &totaller->harness, connector,
        (struct det_stage){ .in = { .get = amount_record }, .out = { .get = out } }, settings);
    assert_int_equal(
        connector->open_state(&totaller->harness.stage, NULL, &totaller->record, &error), 0);
    assert_int_equal(det_record_check(totaller->record, &error), 0);
    totaller->state = calloc(1, totaller->record->size);
    totaller->before = calloc(1, totaller->record->size);
    assert_non_null(totaller->state);
    assert_non_null(totaller->before);
}

static void totaller_close(struct totaller *totaller)
{
    totaller->harness.connector->close_state(totaller->record, NULL);
    harness_deinit(&totaller->harness);
    free(totaller->state);
    free(totaller->before);
}

/* As a pipeline: a row that is rejected leaves the state as it was. Each state is written to the
 * log and read back. */
static int fold(struct totaller *totaller, const struct amount *in)
{
    const struct det_record *record = totaller->record;
    size_t capacity = det_record_encoded_max(record);
    char *bytes = malloc(capacity);
    struct det_error error;
    int64_t size;
    int r;

    assert_non_null(bytes);
    memcpy(totaller->before, totaller->state, record->size);
    r = totaller->harness.connector->functions.accumulate(
        &totaller->harness.call, totaller->state, in);
    if (r < 0)
        memcpy(totaller->state, totaller->before, record->size);
    size = det_record_encode(record, totaller->state, bytes, capacity, &error);
    assert_true(size > 0);
    memset(totaller->state, 0xa5, record->size);
    assert_int_equal(det_record_decode(record, bytes, (size_t)size, totaller->state, &error), 0);
    free(bytes);
    return r;
}

static const void *emit(struct totaller *totaller)
{
    totaller->harness.row_count = 0;
    assert_int_equal(
        totaller->harness.connector->functions.emit(&totaller->harness.call, totaller->state), 0);
    return harness_row(&totaller->harness, 0);
}

#define ALL                                                                                \
    "{set: {orders: count(), total: sum(cents), mean: avg(cents), low: min(cents),"        \
    " high: max(cents * 2), first: first(cents), last: last(cents), weights: sum(weight)," \
    " rated: count(points), best: max(points), least_name: \"min(lower(customer))\"}}"

static void aggregate_has_a_value_for_each_accumulator(void **state)
{
    static const struct amount rows[] = {
        { .customer = "ann", .cents = 5, .weight = 0.1 },
        { .customer = "Bob", .cents = -7, .weight = 0.2, .has_points = true, .points = 3 },
        { .customer = "Al", .cents = 6, .weight = 0.3, .has_points = true, .points = 2 },
    };
    const struct totals wanted = { .customer = "Al",
                                   .orders = 3,
                                   .total = 4,
                                   .mean = 4.0 / 3,
                                   .low = -7,
                                   .high = 12,
                                   .first = 5,
                                   .last = 6,
                                   .weights = 0.6,
                                   .rated = 2,
                                   .has_best = true,
                                   .best = 3,
                                   .least_name = "al" };
    struct totaller totaller;
    const struct totals *found;

    (void)state;
    totaller_open(&totaller, &aggregate_stateful, totals_record, ALL);
    assert_int_equal(fold(&totaller, &rows[0]), 0);
    found = emit(&totaller);
    assert_int_equal(found->rated, 0);
    assert_false(found->has_best);
    assert_int_equal(fold(&totaller, &rows[1]), 0);
    assert_int_equal(fold(&totaller, &rows[2]), 0);
    assert_true(det_record_equal(totals_record(), emit(&totaller), &wanted));
    totaller_close(&totaller);
}

/* 10,000 times 0.1 is 1000, and a small value beside a huge one is not lost. */
static void sums_of_fractions_do_not_lose_digits(void **state)
{
    static const double rows[] = { 1e100, 1, -1e100 };
    struct totaller totaller;
    const struct totals *found;

    (void)state;
    totaller_open(
        &totaller, &aggregate_stateful, totals_record,
        "{no_copy: true, set: {weights: sum(weight)}}");
    for (int i = 0; i < 10000; i++)
        assert_int_equal(fold(&totaller, &(struct amount){ .weight = 0.1 }), 0);
    found = emit(&totaller);
    assert_true(found->weights == 1000);
    memset(totaller.state, 0, totaller.record->size);
    for (int i = 0; i < 3; i++)
        assert_int_equal(fold(&totaller, &(struct amount){ .weight = rows[i] }), 0);
    found = emit(&totaller);
    assert_true(found->weights == 1);
    totaller_close(&totaller);
}

static void the_row_that_makes_a_sum_overflow_is_rejected(void **state)
{
    const struct amount large = { .customer = "a", .cents = INT64_MAX }, one = { .cents = 1 };
    struct totaller totaller;

    (void)state;
    totaller_open(&totaller, &aggregate_stateful, whole_total_record, "{set: {total: sum(cents)}}");
    assert_int_equal(fold(&totaller, &large), 0);
    assert_int_equal(fold(&totaller, &large), 0);
    assert_int_equal(fold(&totaller, &one), 0);
    assert_true(fold(&totaller, &one) < 0);
    assert_string_equal(totaller.harness.errors[0], "total: overflow of the sum");
    assert_int_equal(totaller.harness.last_rejection, DET_REJECT_DOMAIN);
    assert_true(((const struct whole_total *)emit(&totaller))->total == UINT64_MAX);
    assert_int_equal(fold(&totaller, &(struct amount){ .cents = -1 }), 0);
    assert_true(((const struct whole_total *)emit(&totaller))->total == UINT64_MAX - 1);
    totaller_close(&totaller);
    totaller_open(&totaller, &aggregate_stateful, small_total_record, "{set: {total: sum(cents)}}");
    assert_int_equal(fold(&totaller, &(struct amount){ .cents = 255 }), 0);
    assert_true(fold(&totaller, &one) < 0);
    assert_true(strncmp(totaller.harness.errors[0], "total: ", 7) == 0);
    assert_int_equal(((const struct small_total *)emit(&totaller))->total, 255);
    totaller_close(&totaller);
}

/* The sum of two values of 2^63-1 is no int64. */
static void a_mean_is_exact_where_the_sum_is_large(void **state)
{
    struct totaller totaller;

    (void)state;
    totaller_open(
        &totaller, &aggregate_stateful, totals_record, "{no_copy: true, set: {mean: avg(cents)}}");
    for (int i = 0; i < 5; i++)
        assert_int_equal(fold(&totaller, &(struct amount){ .cents = INT64_MAX - 1024 * i }), 0);
    assert_true(((const struct totals *)emit(&totaller))->mean == (double)(INT64_MAX - 1024 * 2));
    totaller_close(&totaller);
}

static void an_expression_beside_accumulators_is_of_the_last_row(void **state)
{
    struct totaller totaller;
    const struct totals *found;

    (void)state;
    totaller_open(
        &totaller, &aggregate_stateful, totals_record,
        "{no_copy: true, set: {customer: upper(customer), orders: \" count( ) \", "
        "total: \"min(cents, 10)\", low: \"min( if customer == ')' then 1 else cents )\"}}");
    assert_int_equal(fold(&totaller, &(struct amount){ .customer = ")", .cents = 50 }), 0);
    assert_int_equal(fold(&totaller, &(struct amount){ .customer = "b", .cents = 20 }), 0);
    found = emit(&totaller);
    assert_string_equal(found->customer, "B");
    assert_int_equal(found->orders, 2);
    assert_int_equal(found->total, 10);
    assert_int_equal(found->low, 1);
    totaller_close(&totaller);
}

static void latest_is_the_last_row(void **state)
{
    struct totaller totaller;
    const struct place *found;

    (void)state;
    totaller_open(&totaller, &latest_stateful, place_record, "{set: {rank: 7}}");
    assert_int_equal(fold(&totaller, &(struct amount){ .customer = "a", .cents = 1 }), 0);
    assert_int_equal(fold(&totaller, &(struct amount){ .customer = "b", .cents = 2 }), 0);
    found = emit(&totaller);
    assert_int_equal(totaller.harness.row_count, 1);
    assert_string_equal(found->customer, "b");
    assert_int_equal(found->cents, 2);
    assert_int_equal(found->rank, 7);
    totaller_close(&totaller);
}

static void expect_top(struct totaller *totaller, const char *wanted)
{
    char text[256] = "";

    (void)emit(totaller);
    for (size_t i = 0; i < totaller->harness.row_count; i++) {
        const struct place *place = harness_row(&totaller->harness, i);

        (void)snprintf(
            text + strlen(text), sizeof text - strlen(text), "%u %s %lld;", place->rank,
            place->customer, (long long)place->cents);
    }
    assert_string_equal(text, wanted);
}

static void put(struct totaller *totaller, const char *customer, int64_t cents)
{
    struct amount row = { .cents = cents };

    (void)snprintf(row.customer, sizeof row.customer, "%s", customer);
    assert_int_equal(fold(totaller, &row), 0);
}

static void top_keeps_the_highest_scores_in_their_order(void **state)
{
    struct totaller totaller;

    (void)state;
    totaller_open(&totaller, &top_stateful, place_record, "{rows: 3, score: cents, rank: rank}");
    put(&totaller, "a", 5);
    put(&totaller, "b", 9);
    put(&totaller, "c", 5);
    put(&totaller, "d", 5);
    expect_top(&totaller, "1 b 9;2 a 5;3 c 5;");
    put(&totaller, "e", 7);
    put(&totaller, "e", 7);
    expect_top(&totaller, "1 b 9;2 e 7;3 e 7;");
    totaller_close(&totaller);
}

static void top_counts_the_last_score_of_a_key(void **state)
{
    struct totaller totaller;

    (void)state;
    totaller_open(
        &totaller, &top_stateful, place_record,
        "{rows: 3, score: cents, of: lower(customer), rank: rank}");
    put(&totaller, "a", 5);
    put(&totaller, "b", 9);
    put(&totaller, "A", 10);
    expect_top(&totaller, "1 A 10;2 b 9;");
    put(&totaller, "c", 1);
    put(&totaller, "a", 0);
    expect_top(&totaller, "1 b 9;2 c 1;3 a 0;");
    put(&totaller, "d", 0);
    expect_top(&totaller, "1 b 9;2 c 1;3 a 0;");
    put(&totaller, "b", -1);
    put(&totaller, "e", 4);
    expect_top(&totaller, "1 e 4;2 c 1;3 a 0;");
    totaller_close(&totaller);
}

static const struct det_stage joined = { .in = { .get = amount_record },
                                         .reference = { .get = customer_record },
                                         .out = { .get = bill_record } };

static void join_has_fields_of_both_rows(void **state)
{
    const struct customer ann = { .id = "a", .name = "Ann", .level = 3 };
    const struct amount row = { .customer = "a", .cents = 5 };
    struct harness harness;
    const struct bill *found;

    (void)state;
    harness_open(&harness, &join_join, joined, "{set: {cents: cents * reference.level}}");
    assert_int_equal(join_join.functions.join(&harness.call, &ann, &row), 0);
    found = harness_row(&harness, 0);
    assert_string_equal(found->customer, "a");
    assert_int_equal(found->cents, 15);
    assert_string_equal(found->name, "Ann");
    assert_true(found->has_level && found->level == 3);
    harness_deinit(&harness);
}

static void a_left_join_can_ask_for_the_reference(void **state)
{
    const struct customer ann = { .id = "a", .name = "Ann", .level = 3 };
    const struct amount row = { .customer = "a", .cents = 5 };
    struct det_stage left = joined;
    struct harness harness;
    const struct bill *found;

    (void)state;
    left.join = DET_JOIN_LEFT;
    harness_open(
        &harness, &join_join, left,
        "{set: {name: \"reference.name or_else 'nobody'\", cents: \"if has(reference) then cents "
        "else 0\"}}");
    for (int i = 0; i < 4; i++)
        assert_int_equal(join_join.functions.join(&harness.call, i % 2 ? NULL : &ann, &row), 0);
    for (size_t i = 0; i < 4; i++) {
        found = harness_row(&harness, i);
        assert_string_equal(found->name, i % 2 ? "nobody" : "Ann");
        assert_int_equal(found->cents, i % 2 ? 0 : 5);
        assert_true(found->has_level == !(i % 2));
    }
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    static const struct det_stage total = { .in = { .get = amount_record },
                                            .out = { .get = totals_record } };
    static const struct det_stage place = { .in = { .get = amount_record },
                                            .out = { .get = place_record } };
    struct det_stage left = joined;

    (void)state;
    left.join = DET_JOIN_LEFT;
    harness_refuses(&aggregate_stateful, total, "{}", "set is missing: add a map from fields");
    harness_refuses(
        &aggregate_stateful, total, "{set: {total: sum(customer)}}",
        "line 1, column 15: total: sum() is of numbers, and this is of type text");
    harness_refuses(
        &aggregate_stateful, total, "{set: {total: sum(cent)}}", "did you mean 'cents'?");
    harness_refuses(
        &aggregate_stateful, total, "{set: {totl: sum(cents)}}",
        "totals has no field 'totl'; did you mean 'total'?");
    harness_refuses(&aggregate_stateful, total, "{set: {total: sum(weight)}}", "total: ");
    harness_refuses(&aggregate_stateful, total, "{set: {low: max(points)}}", "may be absent");
    harness_refuses(
        &aggregate_stateful, total, "{set: {orders: count()}}",
        "the field 'total' of totals gets no value");
    harness_refuses(&top_stateful, place, "{}", "score is missing: add it, such as {rows: 10");
    harness_refuses(&top_stateful, place, "{score: cents, rows: 1001}", "rows is from 1 to 1000");
    harness_refuses(&top_stateful, place, "{score: cents, rows: 256, rank: rank}", "rank: ");
    harness_refuses(&top_stateful, place, "{score: cents > 1, rank: rank}", "score: expected a");
    harness_refuses(
        &top_stateful, place, "{score: cents}", "the field 'rank' of place gets no value");
    harness_refuses(
        &join_join, left, "{}", "the field 'name' of bill gets no value without a reference row");
    harness_refuses(&join_join, joined, "{set: {cents: reference.levl}}", "did you mean 'level'?");
}

static void a_state_that_is_too_large_is_refused(void **state)
{
    const struct det_record *record = NULL;
    struct det_error error;

    (void)state;
    assert_int_equal(
        row_state_open(
            &(struct row_state_layout){ totals_record(), 10000, 1 }, NULL, &record, &error),
        DET_ERR_LIMIT);
    assert_non_null(strstr(error.text, "keep fewer rows"));
}

struct once {
    const struct det_connector *connector;
    const char *settings;
    const struct det_record *(*out)(void);
};

static int run_once(struct det_test_memory *memory, void *argument)
{
    const struct once *once = argument;
    const struct det_record *record = NULL;
    struct harness harness;
    struct det_error error;
    int r;

    harness_init(
        &harness, once->connector,
        (struct det_stage){ .in = { .get = amount_record },
                            .reference = { .get = customer_record },
                            .out = { .get = once->out },
                            .join = DET_JOIN_LEFT },
        once->settings);
    harness.call.allocator = &memory->allocator;
    r = harness_start(&harness);
    if (r == 0 && once->connector->open_state) {
        r = once->connector->open_state(&harness.stage, &memory->allocator, &record, &error);
        if (r == 0)
            once->connector->close_state(record, &memory->allocator);
    }
    harness_deinit(&harness);
    return r;
}

static void every_failing_allocation_is_reported(void **state)
{
    static struct once all[] = {
        { &aggregate_stateful, ALL, totals_record },
        { &latest_stateful, "{set: {rank: 1}}", place_record },
        { &top_stateful, "{score: cents, of: customer, rank: rank}", place_record },
        { &join_join, "{set: {name: \"reference.name or_else ''\"}}", bill_record },
    };

    (void)state;
    for (size_t i = 0; i < 4; i++)
        det_test_each_failure(run_once, &all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aggregate_has_a_value_for_each_accumulator),
        cmocka_unit_test(sums_of_fractions_do_not_lose_digits),
        cmocka_unit_test(the_row_that_makes_a_sum_overflow_is_rejected),
        cmocka_unit_test(a_mean_is_exact_where_the_sum_is_large),
        cmocka_unit_test(an_expression_beside_accumulators_is_of_the_last_row),
        cmocka_unit_test(latest_is_the_last_row),
        cmocka_unit_test(top_keeps_the_highest_scores_in_their_order),
        cmocka_unit_test(top_counts_the_last_score_of_a_key),
        cmocka_unit_test(join_has_fields_of_both_rows),
        cmocka_unit_test(a_left_join_can_ask_for_the_reference),
        cmocka_unit_test(wrong_settings_are_refused),
        cmocka_unit_test(a_state_that_is_too_large_is_refused),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
