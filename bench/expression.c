/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression.c - expressions over the rows of a batch, beside the same in C: a function for each,
 * that is called for each row and tests what an expression tests. */
#include <stdio.h>
#include <string.h>

#include <detent/expression.h>

#define REC_SPEC "sale.rec"
#include <detent/rec/declare.h>

#include "bench.h"

#define ROWS   4096 /* a power of two */
#define PASSES 64
#define NOW    INT64_C(1800000000000000000)

static struct sale rows[ROWS];
static int8_t results[ROWS];
static struct det_expression_scratch scratch;
static det_time now = NOW;

/* An expression and its twin in C, which returns 1, 0 or a negative error. */
struct formula {
    const char *text;
    const char *field; /* NULL: a condition */
    int (*twin)(struct sale *row);
};

static int is_large(struct sale *row)
{
    return row->price > 50000;
}

static int is_wanted(struct sale *row)
{
    return row->price > 1000 && row->quantity >= 2 && row->state != SALE_LOST;
}

static int is_late(struct sale *row)
{
    int64_t waited;

    if (__builtin_sub_overflow(now, row->at, &waited))
        return DET_ERR_OVERFLOW;
    return waited > 30 * DET_MINUTE && row->state == SALE_OPEN;
}

static int set_total(struct sale *row)
{
    uint64_t sum = (uint64_t)row->price * row->quantity;

    if (__builtin_sub_overflow(sum, row->discount, &row->total))
        return DET_ERR_RANGE;
    return 0;
}

static int set_balance(struct sale *row)
{
    return __builtin_add_overflow(row->balance, (int64_t)row->price, &row->balance) ||
                   __builtin_sub_overflow(row->balance, (int64_t)row->price, &row->balance)
               ? DET_ERR_OVERFLOW
               : 0;
}

static int set_rate(struct sale *row)
{
    double rate = row->rate * 1.0 + row->price * 0.0;

    if (!__builtin_isfinite(row->rate) || !__builtin_isfinite(rate))
        return DET_ERR_RANGE;
    row->rate = rate;
    return 0;
}

static int is_known(struct sale *row)
{
    return row->has_note && strnlen(row->note, 40) > 5 && memcmp(row->note, "rush: ", 6) == 0;
}

static int set_note(struct sale *row)
{
    char text[96];
    int size =
        snprintf(text, sizeof text, "%s-%llu", row->customer, (unsigned long long)row->number);

    if (size > 40)
        return DET_ERR_RANGE;
    for (int i = 0; i <= size; i++)
        row->note[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] ^ 0x20) : text[i];
    row->has_note = true;
    return 0;
}

static const struct formula large = { "price > 50000", NULL, is_large };
static const struct formula wanted = { "price > 1000 and quantity >= 2 and state != 'lost'", NULL,
                                       is_wanted };
static const struct formula late = { "now - at > 30m and state == 'open'", NULL, is_late };
static const struct formula known = { "has(note) and starts_with(note, 'rush: ')", NULL, is_known };
static const struct formula total = { "price * quantity - discount", "total", set_total };
static const struct formula balance = { "balance + price - price", "balance", set_balance };
static const struct formula rate = { "rate * 1.0 + price * 0.0", "rate", set_rate };
static const struct formula note = { "upper(customer + '-' + text(number))", "note", set_note };

static void fill_rows(void)
{
    static const char *const names[] = { "acme", "northwind", "globex", "initech" };
    uint64_t seed = 1;

    for (unsigned i = 0; i < ROWS; i++) {
        struct sale *row = &rows[i];
        uint64_t random = bench_random(&seed);

        *row = (struct sale){ .number = i,
                              .price = (uint32_t)(random % 100000) + 500,
                              .quantity = (uint16_t)(1 + random % 9),
                              .discount = (uint32_t)(random % 500),
                              .balance = (int64_t)(random % 1000),
                              .rate = (double)(random % 1000),
                              .state = random % 10 ? SALE_OPEN : SALE_LOST,
                              .at = NOW - (det_time)(random % 100) * DET_MINUTE,
                              .has_note = random % 2 == 0 };
        (void)snprintf(row->customer, sizeof row->customer, "%s", names[random % 4]);
        (void)snprintf(row->note, sizeof row->note, "rush: before %u", i);
    }
}

static int run_twin(struct bench_lap *lap)
{
    const struct formula *formula = lap->argument;
    int (*volatile twin)(struct sale * row) = formula->twin;
    uint64_t sum = 0;

    fill_rows();
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations; i++) {
        results[i % ROWS] = (int8_t)twin(&rows[i % ROWS]);
        sum += (uint64_t)results[i % ROWS];
    }
    bench_lap_end(lap);
    bench_use(sum);
    return 0;
}

static int open_formula(
    struct bench_lap *lap, const struct formula *formula, struct det_expression **ret)
{
    struct det_expression_input inputs[] = { { .record = sale_record() },
                                             { .name = "now", .kind = DET_KIND_TIME } };
    struct det_expression_options options = {
        .inputs = inputs,
        .input_count = 2,
        .target = formula->field ? sale_record() : NULL,
        .field = formula->field,
    };
    struct det_error error;
    int r = det_expression_open(formula->text, strlen(formula->text), &options, ret, &error);

    return r < 0 ? bench_lap_fail(lap, r, "%s", error.text) : 0;
}

static int run_rows(struct bench_lap *lap)
{
    const struct formula *formula = lap->argument;
    DET_SCOPED(expression) expression = NULL;
    struct det_expression_rows batch = { .inputs = (const void *[]){ rows, &now },
                                         .strides = (size_t[]){ sizeof rows[0], 0 } };
    size_t errors = 0;
    int r = open_formula(lap, formula, &expression);

    if (r < 0)
        return r;
    fill_rows();
    bench_lap_begin(lap);
    for (uint64_t done = 0; done < lap->operations; done += batch.count) {
        batch.count = lap->operations - done < ROWS ? (size_t)(lap->operations - done) : ROWS;
        errors += formula->field ? det_expression_store_rows(
                                       expression, &batch, &scratch, rows, sizeof rows[0], results)
                                 : det_expression_test_rows(expression, &batch, &scratch, results);
    }
    bench_lap_end(lap);
    return errors > 0 ? bench_lap_fail(lap, DET_ERR_INVALID, "%zu rows failed", errors) : 0;
}

static int run_compile(struct bench_lap *lap)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        DET_SCOPED(expression) expression = NULL;

        r = open_formula(lap, &wanted, &expression);
    }
    bench_lap_end(lap);
    return r;
}

/* Both must agree before anything is measured. */
static int check_formula(const struct formula *formula, char *ret_note)
{
    struct det_expression *expression = NULL;
    struct bench_lap lap = { .operations = 1 };
    int r = open_formula(&lap, formula, &expression);

    if (r < 0) {
        (void)snprintf(ret_note, BENCH_NOTE_MAX, "%s", lap.note);
        return r;
    }
    fill_rows();
    for (unsigned i = 0; i < ROWS && r >= 0; i++) {
        struct sale copy = rows[i], stored = rows[i];
        int twin = formula->twin(&copy);
        int ours = formula->field
                       ? det_expression_store(
                             expression, (const void *[]){ &stored, &now }, &scratch, &stored, NULL)
                       : det_expression_test(
                             expression, (const void *[]){ &stored, &now }, &scratch, NULL);

        if (twin != ours || !det_record_equal(sale_record(), &copy, &stored)) {
            (void)snprintf(
                ret_note, BENCH_NOTE_MAX, "row %u: %s is not its twin", i, formula->text);
            r = DET_ERR_CORRUPT;
        }
    }
    det_expression_close(expression);
    return r < 0 ? r : 0;
}

static int open_rows(char *ret_note)
{
    static const struct formula *const formulas[] = { &large, &wanted,  &late, &known,
                                                      &total, &balance, &rate, &note };
    int r = 0;

    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0] && r == 0; i++)
        r = check_formula(formulas[i], ret_note);
    return r;
}

#define ROWS_OF_LAP ((uint64_t)ROWS * PASSES)
#define PAIR(text, formula)                                                            \
    { .name = text " in C",                                                            \
      .role = BENCH_LIMIT,                                                             \
      .run = run_twin,                                                                 \
      .argument = &(formula),                                                          \
      .operations = ROWS_OF_LAP,                                                       \
      .clock = BENCH_OWN,                                                              \
      .against = "" },                                                                 \
    {                                                                                  \
        .name = text, .role = BENCH_OURS, .run = run_rows, .argument = &(formula),     \
        .operations = ROWS_OF_LAP, .clock = BENCH_OWN, .against = text " in C",        \
        .goals = { { BENCH_RATIO_MAX, 5, NULL }, { BENCH_ALLOCATIONS_MAX, 0, NULL } }, \
    }

static const struct bench_case cases[] = {
    PAIR("one comparison", large),
    PAIR("three comparisons", wanted),
    PAIR("time and enum", late),
    PAIR("optional text", known),
    PAIR("u32 * u16 - u32, stored", total),
    PAIR("i64 + u32 - u32, stored", balance),
    PAIR("floats, stored", rate),
    PAIR("texts, stored", note),
    { .name = "compile three comparisons",
      .role = BENCH_OURS,
      .run = run_compile,
      .operations = 2000,
      .clock = BENCH_OWN,
      .against = "" },
};

const struct bench bench_expression = {
    .title = "expressions over rows, beside a function in C",
    .operation = "row",
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_rows,
};
