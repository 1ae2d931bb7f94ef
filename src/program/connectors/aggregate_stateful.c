/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* aggregate_stateful.c - counts, sums and the like of the rows of each key.
 *
 *     set: {orders: count(), total: sum(amount), mean: avg(amount), customer: upper(name)}
 *            accumulators, each of an expression over the input           of the last row
 *
 * The state has the row of the output as it would be emitted now, so all that can fail fails with
 * the row that causes it; and for each accumulator its numbers: how many values it has seen, a sum
 * of integers in 128 bits, a sum of floats with what rounding has lost of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "connectors/connectors.h"
#include "connectors/row_stage.h"
#include "connectors/row_state.h"

#define REC_SPEC "connectors/aggregate_stateful.rec"
#include <detent/rec/declare.h>

#define ACCUMULATORS_MAX 64

enum function { COUNT, SUM, AVG, MIN, MAX, FIRST, LAST };
#define FUNCTIONS 7

static const char *const function_names[FUNCTIONS] = { "count", "sum",   "avg", "min",
                                                       "max",   "first", "last" };

struct accumulator {
    enum function function;
    const struct det_field *field;
    enum det_expression_type type; /* of its argument */
    struct det_expression *value;  /* of a row; NULL: count() */
    struct det_expression *store;  /* into the field: of a row, or of a number */
    struct det_expression *kept;   /* MIN, MAX: what is in the field */
    uint32_t number;               /* index of its numbers: how many values, then the sum */
};

struct aggregate {
    struct row_stage stage;
    struct aggregate_settings settings;
    struct row_state_layout layout;
    struct accumulator accumulators[ACCUMULATORS_MAX];
    uint32_t accumulator_count;
    struct det_expression_scratch other; /* a text of `stage.scratch` is compared with one of it */
};

/* ---- settings */

/* A number that is stored: whole, or a fraction. */
struct whole {
    bool is_negative;
    int64_t negative;
    uint64_t natural;
};
static const struct det_expression_input whole_inputs[] = {
    { .name = "is_negative", .kind = DET_KIND_BOOL },
    { .name = "negative", .kind = DET_KIND_SIGNED },
    { .name = "natural", .kind = DET_KIND_UNSIGNED },
};
static const struct det_expression_input fraction_inputs[] = {
    { .name = "number", .kind = DET_KIND_FLOAT },
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n';
}

/* The end of the argument that begins at `at`, after its bracket: a closing bracket with nothing
 * but blanks after it. NULL: the text is not one call. */
static const char *find_end(const char *at, bool *ret_has_comma)
{
    unsigned depth = 1;

    *ret_has_comma = false;
    for (; *at; at++) {
        if (*at == '\'' || *at == '"' || *at == '`') {
            char quote = *at++;

            for (; *at && *at != quote; at++)
                at += *at == '\\' && at[1] && quote != '`';
            if (!*at)
                return NULL;
        } else if (*at == '(' || *at == '[') {
            depth++;
        } else if ((*at == ')' || *at == ']') && --depth == 0) {
            const char *end = at++;

            while (is_blank(*at))
                at++;
            return *at ? NULL : end;
        } else if (*at == ',' && depth == 1) {
            *ret_has_comma = true;
        }
    }
    return NULL;
}

/* Returns true if the text is a call of an accumulator: `sum(price * amount)`. `min(a, b)` is an
 * expression of the last row. */
static bool read_call(const char *text, enum function *ret, struct row_formula_text *argument)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        const char *at = text, *end;
        bool has_comma;

        while (is_blank(*at))
            at++;
        if (strncmp(at, function_names[i], strlen(function_names[i])) != 0)
            continue;
        at += strlen(function_names[i]);
        while (is_blank(*at))
            at++;
        if (*at != '(')
            continue;
        end = find_end(++at, &has_comma);
        if (!end || ((i == MIN || i == MAX) && has_comma))
            return false;
        while (at < end && is_blank(*at))
            at++;
        *ret = (enum function)i;
        argument->text = at;
        argument->size = (size_t)(end - at);
        return true;
    }
    return false;
}

static bool is_number(enum det_expression_type type)
{
    return type == DET_EXPRESSION_INT || type == DET_EXPRESSION_FLOAT;
}

static int check_type(
    const struct accumulator *accumulator, const struct settings *settings,
    const struct row_formula_text *argument, struct det_error *reterr)
{
    const char *name = function_names[accumulator->function];
    const char *type = det_expression_type_name(accumulator->type);

    switch (accumulator->function) {
    case SUM:
    case AVG:
        if (is_number(accumulator->type))
            return 0;
        return settings_fail(
            settings, argument->datum, reterr,
            "%.64s: %s() is of numbers, and this is of type %s; a duration becomes a number by a "
            "unit: waited / 1ms",
            argument->name, name, type);
    case MIN:
    case MAX:
        if (row_value_is_ordered(accumulator->type))
            return 0;
        return settings_fail(
            settings, argument->datum, reterr,
            "%.64s: %s() is of numbers, texts and times, and this is of type %s", argument->name,
            name, type);
    case COUNT:
        if (accumulator->type != DET_EXPRESSION_ARRAY)
            return 0;
        return settings_fail(
            settings, argument->datum, reterr,
            "%.64s: count() counts rows; for the elements of an array write sum(count(...))",
            argument->name);
    case FIRST:
    case LAST:
        return 0;
    }
    return 0;
}

/* Compiles what is evaluated for each row. */
static int add_value(
    struct aggregate *aggregate, struct accumulator *accumulator,
    const struct row_fields_options *options, const struct row_formula_text *argument,
    struct det_error *reterr)
{
    struct det_expression_options wanted = { .inputs = options->inputs,
                                             .input_count = options->input_count,
                                             .is_optional = true };
    bool is_kept = accumulator->function == MIN || accumulator->function == MAX;
    int r;

    if (is_kept && accumulator->field->kind == DET_KIND_FLOAT)
        wanted.type = DET_EXPRESSION_FLOAT;
    r = row_stage_compile(
        &aggregate->stage, options->settings, argument, &wanted, &accumulator->value, reterr);
    if (r < 0)
        return r;
    accumulator->type = det_expression_type(accumulator->value);
    return check_type(accumulator, options->settings, argument, reterr);
}

/* Compiles what stores a number in the field. */
static int add_number_store(
    struct aggregate *aggregate, struct accumulator *accumulator,
    const struct row_fields_options *options, struct row_formula_text formula,
    struct det_error *reterr)
{
    bool is_whole = accumulator->function == COUNT ||
                    (accumulator->function == SUM && accumulator->type == DET_EXPRESSION_INT);
    struct det_expression_options wanted = {
        .inputs = is_whole ? whole_inputs : fraction_inputs,
        .input_count = is_whole ? 3 : 1,
        .target = options->target,
        .field = accumulator->field->name,
    };

    formula.text = is_whole ? "if is_negative then negative else natural" : "number";
    formula.size = strlen(formula.text);
    return row_stage_compile(
        &aggregate->stage, options->settings, &formula, &wanted, &accumulator->store, reterr);
}

/* Compiles what stores a value of the row in the field, and what reads it. */
static int add_value_store(
    struct aggregate *aggregate, struct accumulator *accumulator,
    const struct row_fields_options *options, const struct row_formula_text *argument,
    struct det_error *reterr)
{
    struct det_expression_options wanted = { .inputs = options->inputs,
                                             .input_count = options->input_count,
                                             .target = options->target,
                                             .field = accumulator->field->name };
    struct det_expression_input output = { .record = options->target };
    struct row_formula_text kept = *argument;
    char name[DET_NAME_MAX + 3];
    int r;

    r = row_stage_compile(
        &aggregate->stage, options->settings, argument, &wanted, &accumulator->store, reterr);
    if (r < 0 || (accumulator->function != MIN && accumulator->function != MAX))
        return r;
    kept.size = (size_t)snprintf(name, sizeof name, "`%.64s`", accumulator->field->name);
    kept.text = name;
    wanted =
        (struct det_expression_options){ .inputs = &output, .input_count = 1, .is_optional = true };
    return row_stage_compile(
        &aggregate->stage, options->settings, &kept, &wanted, &accumulator->kept, reterr);
}

static uint32_t numbers_of(const struct accumulator *accumulator)
{
    switch (accumulator->function) {
    case SUM:
    case AVG:
        return 3;
    case COUNT:
    case MIN:
    case MAX:
    case FIRST:
        return 1;
    case LAST:
        return 0;
    }
    return 0;
}

static int add_accumulator(
    struct aggregate *aggregate, const struct row_fields_options *options, enum function function,
    const struct row_formula_text *argument, struct det_error *reterr)
{
    struct accumulator *accumulator = &aggregate->accumulators[aggregate->accumulator_count];
    bool is_number = function == COUNT || function == SUM || function == AVG;
    int r;

    if (aggregate->accumulator_count == ACCUMULATORS_MAX)
        return settings_fail(
            options->settings, argument->datum, reterr, "more than %d accumulators",
            ACCUMULATORS_MAX);
    *accumulator =
        (struct accumulator){ .function = function, .number = aggregate->layout.numbers_max };
    r = settings_field(
        options->settings, argument->datum, argument->name, options->target, &accumulator->field,
        reterr);
    if (r == 0 && !(function == COUNT && argument->size == 0))
        r = add_value(aggregate, accumulator, options, argument, reterr);
    if (r == 0)
        r = is_number ? add_number_store(aggregate, accumulator, options, *argument, reterr)
                      : add_value_store(aggregate, accumulator, options, argument, reterr);
    if (r < 0)
        return r;
    row_fields_reserve(&aggregate->stage.fields, accumulator->field);
    aggregate->layout.numbers_max += numbers_of(accumulator);
    aggregate->accumulator_count++;
    return 0;
}

static int add_item(
    struct aggregate *aggregate, const struct row_fields_options *options,
    const struct det_datum *item, struct det_error *reterr)
{
    struct row_formula_text argument = { .datum = item, .name = item->key };
    enum function function;

    if (!det_datum_is_scalar(item) || !item->text)
        return settings_fail(
            options->settings, item, reterr, "%.64s: expected an expression, found %s", item->key,
            det_datum_kind_text(item->kind));
    if (read_call(item->text, &function, &argument))
        return add_accumulator(aggregate, options, function, &argument, reterr);
    return row_fields_add(&aggregate->stage.fields, options, item, item->key, item->text, reterr);
}

static int read_aggregate(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    struct aggregate *aggregate = (struct aggregate *)stage;
    const struct det_datum *map = det_datum_get(settings->root, "set");
    const struct det_record *state;
    int r = 0;

    if (!map || map->kind != DET_DATUM_MAP || !map->first)
        return settings_fail(
            settings, map, reterr,
            "set is missing: add a map from fields to accumulators and expressions, such as "
            "{set: {orders: count(), total: sum(price)}}");
    /* The first number is there in any case, so that there is one. */
    aggregate->layout =
        (struct row_state_layout){ .row = options->target, .rows_max = 1, .numbers_max = 1 };
    for (const struct det_datum *item = map->first; item && r == 0; item = item->next)
        r = add_item(aggregate, options, item, reterr);
    if (r == 0 && !aggregate->settings.no_copy)
        r = row_fields_add_copies(
            &stage->fields, options, stage_in(stage->definition), true, reterr);
    if (r == 0)
        r = row_state_open(&aggregate->layout, stage->allocator, &state, reterr);
    if (r == 0)
        row_state_close(state, stage->allocator);
    return r;
}

static const char *const trees[] = { "set", NULL };
static const struct row_stage_kind kind = { aggregate_settings_record, trees,
                                            sizeof(struct aggregate),
                                            offsetof(struct aggregate, settings), read_aggregate };

static int aggregate_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int aggregate_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int aggregate_open_state(
    const struct det_stage *stage, const struct det_allocator *allocator,
    const struct det_record **ret, struct det_error *reterr)
{
    struct row_stage *opened = NULL;
    int r;

    r = row_stage_make(&kind, stage, allocator, &opened, reterr);
    if (r < 0)
        return r;
    r = row_state_open(&((struct aggregate *)opened)->layout, allocator, ret, reterr);
    row_stage_drop(opened);
    return r;
}

/* ---- rows */

static int store_whole(
    struct aggregate *aggregate, const struct accumulator *accumulator, det_i128 number, void *row,
    struct det_error *reterr)
{
    struct whole whole = { .is_negative = number < 0 };
    const void *const inputs[] = { &whole.is_negative, &whole.negative, &whole.natural };

    if (number < INT64_MIN || number > (det_i128)UINT64_MAX)
        return det_error_set(reterr, DET_ERR_OVERFLOW, "overflow of the sum");
    if (whole.is_negative)
        whole.negative = (int64_t)number;
    else
        whole.natural = (uint64_t)number;
    return det_expression_store(accumulator->store, inputs, &aggregate->stage.scratch, row, reterr);
}

static int store_fraction(
    struct aggregate *aggregate, const struct accumulator *accumulator, double number, void *row,
    struct det_error *reterr)
{
    const void *const inputs[] = { &number };

    if (!isfinite(number))
        return det_error_set(reterr, DET_ERR_OVERFLOW, "overflow of the sum");
    return det_expression_store(accumulator->store, inputs, &aggregate->stage.scratch, row, reterr);
}

/* 2^63 rows of the largest integers fit. */
static det_i128 add_whole(uint64_t sum[2], const struct det_expression_value *value)
{
    det_i128 total = (det_i128)(((det_u128)sum[1] << 64) + sum[0]);

    if (value->is_unsigned)
        total += value->natural;
    else
        total += value->integer;
    sum[0] = (uint64_t)total;
    sum[1] = (uint64_t)(total >> 64);
    return total;
}

/* The sum and, beside it, what rounding has lost (Neumaier). */
static double add_fraction(uint64_t state[2], double value)
{
    double sum, lost, total;

    memcpy(&sum, &state[0], sizeof sum);
    memcpy(&lost, &state[1], sizeof lost);
    total = sum + value;
    lost += fabs(sum) >= fabs(value) ? (sum - total) + value : (value - total) + sum;
    memcpy(&state[0], &total, sizeof total);
    memcpy(&state[1], &lost, sizeof lost);
    return total + lost;
}

static int fold_sum(
    struct aggregate *aggregate, const struct accumulator *accumulator,
    const struct det_expression_value *value, uint64_t *numbers, void *row,
    struct det_error *reterr)
{
    double count = (double)numbers[0], sum;

    if (accumulator->type == DET_EXPRESSION_INT) {
        det_i128 whole = add_whole(numbers + 1, value);

        if (accumulator->function == SUM)
            return store_whole(aggregate, accumulator, whole, row, reterr);
        return store_fraction(aggregate, accumulator, (double)whole / count, row, reterr);
    }
    sum = add_fraction(numbers + 1, value->number);
    return store_fraction(
        aggregate, accumulator, accumulator->function == SUM ? sum : sum / count, row, reterr);
}

/* Returns 1 if the value replaces that in the field. */
static int is_better(
    struct aggregate *aggregate, const struct accumulator *accumulator,
    const struct det_expression_value *value, const void *row, struct det_error *reterr)
{
    struct det_expression_value kept;
    int r;

    r = det_expression_value(accumulator->kept, &row, &aggregate->other, &kept, reterr);
    if (r < 0)
        return r;
    r = row_value_compare(value, &kept);
    return accumulator->function == MIN ? r < 0 : r > 0;
}

static int fold_value(
    struct aggregate *aggregate, const struct accumulator *accumulator, const void *const *inputs,
    uint64_t *numbers, void *row, struct det_error *reterr)
{
    struct det_expression_value value = { .is_absent = false };
    uint64_t none = 0, *seen = numbers_of(accumulator) > 0 ? &numbers[accumulator->number] : &none;
    bool is_first = *seen == 0;
    int r = 0;

    if (accumulator->value)
        r = det_expression_value(
            accumulator->value, inputs, &aggregate->stage.scratch, &value, reterr);
    if (r < 0)
        return r;
    *seen += !value.is_absent;
    if (accumulator->function == COUNT)
        return store_whole(aggregate, accumulator, *seen, row, reterr);
    if (value.is_absent)
        return 0;
    if (accumulator->function == SUM || accumulator->function == AVG)
        return fold_sum(aggregate, accumulator, &value, seen, row, reterr);
    if (accumulator->function == FIRST && !is_first)
        return 0;
    if ((accumulator->function == MIN || accumulator->function == MAX) && !is_first) {
        r = is_better(aggregate, accumulator, &value, row, reterr);
        if (r <= 0)
            return r;
    }
    return det_expression_store(accumulator->store, inputs, &aggregate->stage.scratch, row, reterr);
}

static int aggregate_accumulate(struct det_stage_call *call, void *memory, const void *in)
{
    struct aggregate *aggregate = call->self;
    struct row_state *state = memory;
    void *row = row_state_row(&aggregate->layout, state, 0);
    const void *inputs[ROW_INPUTS];
    struct det_error error;
    int r;

    state->row_count = 1;
    state->number_count = aggregate->layout.numbers_max;
    row_pointers(call, in, inputs);
    r = row_fields_fill(
        &aggregate->stage.fields, in, inputs, &aggregate->stage.scratch, row, &error);
    if (r < 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
    for (uint32_t i = 0; i < aggregate->accumulator_count; i++) {
        const struct accumulator *accumulator = &aggregate->accumulators[i];

        r = fold_value(
            aggregate, accumulator, inputs, row_state_numbers(&aggregate->layout, state), row,
            &error);
        if (r < 0)
            return det_stage_reject(
                call, DET_REJECT_DOMAIN, "%s: %s", accumulator->field->name, error.text);
    }
    return 0;
}

static int aggregate_emit(struct det_stage_call *call, void *state)
{
    const struct aggregate *aggregate = call->self;

    return det_stage_emit(call, row_state_row(&aggregate->layout, state, 0));
}

const struct det_connector aggregate_stateful = {
    CONNECTOR_HEAD(aggregate, stateful),
    .functions = { .open = aggregate_open,
                   .close = row_stage_close,
                   .accumulate = aggregate_accumulate,
                   .emit = aggregate_emit },
    .check = aggregate_check,
    .open_state = aggregate_open_state,
    .close_state = row_state_close,
};
