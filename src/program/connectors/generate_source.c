/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* generate_source.c - rows with a number, from 1. The random numbers of a row depend on the seed
 * and its number alone, so a source that resumes makes the rows that it would have made. */
#include <stdio.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/row_fields.h"
#include "connectors/row_text.h"
#include "record/field_value.h"

#define REC_SPEC "connectors/generate_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX 4096 /* of one turn */
#define INPUTS   4    /* n, random, bits, now */
#define RATE_MAX 1e9

struct generate {
    struct generate_settings settings;
    struct det_expression_input inputs[INPUTS];
    struct row_fields fields;
    struct det_expression_scratch scratch;
    void *row;
    size_t row_size;
    det_time begun_at; /* monotonic; of the first row in this process */
    uint64_t begun_rows;
    bool has_begun;
    bool is_plain; /* without expressions */
};

static const char *const trees[] = { "fields", NULL };

static int add_fields(
    struct generate *generate, const struct settings *settings, const struct det_record *out,
    struct det_error *reterr)
{
    struct row_fields_options options = { settings, generate->inputs, INPUTS, out };

    generate->inputs[0] = (struct det_expression_input){ .name = "n", .kind = DET_KIND_UNSIGNED };
    generate->inputs[1] = (struct det_expression_input){ .name = "random", .kind = DET_KIND_FLOAT };
    generate->inputs[2] =
        (struct det_expression_input){ .name = "bits", .kind = DET_KIND_UNSIGNED };
    generate->inputs[3] = (struct det_expression_input){ .name = "now", .kind = DET_KIND_TIME };
    generate->is_plain = !det_datum_get(settings->root, "fields");
    return row_fields_add_map(&generate->fields, &options, "fields", reterr);
}

/* After an error nothing needs to be closed. */
static int read_settings(
    struct generate *generate, const struct det_stage *stage, const struct det_allocator *allocator,
    struct det_error *reterr)
{
    struct settings settings;
    int r;

    generate->fields.allocator = allocator;
    r = settings_open(
        &settings, stage, allocator, generate_settings_record(), &generate->settings, trees,
        reterr);
    if (r < 0)
        return r;
    if (generate->settings.rate < 0 || generate->settings.rate > RATE_MAX)
        r = settings_fail_key(
            &settings, "rate", reterr, "rate is in rows per second, from 0 to 1000000000");
    if (r == 0)
        r = add_fields(generate, &settings, stage_out(stage), reterr);
    settings_close(&settings);
    if (r < 0)
        row_fields_close(&generate->fields);
    return r;
}

static int generate_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct generate *generate = DET_NEW(NULL, struct generate);
    int r;

    (void)folder;
    if (!generate)
        return DET_ERR_NO_MEMORY;
    r = read_settings(generate, stage, NULL, reterr);
    if (r == 0)
        row_fields_close(&generate->fields);
    DET_DELETE(NULL, generate);
    return r;
}

static void generate_close(struct det_stage_call *call)
{
    struct generate *generate = call->self;

    row_fields_close(&generate->fields);
    det_free(call->allocator, generate->row, generate->row_size);
    DET_DELETE(call->allocator, generate);
}

static int generate_open(struct det_stage_call *call)
{
    struct generate *generate = DET_NEW(call->allocator, struct generate);
    struct det_error error;
    int r;

    if (!generate)
        return DET_ERR_NO_MEMORY;
    call->self = generate;
    r = read_settings(generate, call->stage, call->allocator, &error);
    if (r == 0) {
        generate->row_size = stage_out(call->stage)->size;
        generate->row = det_alloc_zero(call->allocator, generate->row_size);
        r = generate->row ? 0 : det_error_set(&error, DET_ERR_NO_MEMORY, "out of memory");
    }
    if (r < 0) {
        generate_close(call);
        return settings_refuse(call, &error);
    }
    return 0;
}

/* Without expressions: numbers are n, texts its digits. */
static void fill_plainly(const struct det_record *record, void *row, uint64_t n)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (size_t i = 0; i < record->field_count; i++) {
        const struct det_field *field = &record->fields[i];
        const struct det_enum *enumeration = det_enum_of(field->enumeration);
        uint8_t *value = (uint8_t *)row + field->offset;

        if (!row_takes_text(field))
            continue;
        det_field_set_count(field, row, 1);
        if (field->kind == DET_KIND_TEXT || field->kind == DET_KIND_FLOAT)
            (void)row_set_text(field, row, det_view_text(digits));
        else if (enumeration)
            det_value_store(
                field, value, (uint64_t)enumeration->values[n % enumeration->value_count].value);
        else if (field->kind == DET_KIND_BOOL)
            *value = n & 1;
        else if (field->kind == DET_KIND_TIME)
            det_value_store(field, value, n * (uint64_t)DET_SECOND & INT64_MAX);
        else if (field->kind == DET_KIND_SIGNED)
            det_value_store(field, value, n & (UINT64_MAX >> (65 - 8 * field->size)));
        else if (field->kind == DET_KIND_UNSIGNED)
            det_value_store(field, value, n);
    }
}

/* Each field has random numbers of its own. */
static int fill_by_expressions(
    struct det_stage_call *call, struct generate *generate, uint64_t n, struct det_error *reterr)
{
    uint64_t bits = det_hash_mix(generate->settings.seed, n);
    double random = 0;
    const void *inputs[INPUTS] = { &n, &random, &bits, &call->now };
    int r = 0;

    for (uint32_t i = 0; i < generate->fields.formula_count && r == 0; i++) {
        const struct row_formula *formula = &generate->fields.formulas[i];
        struct det_error error;

        bits = det_hash_mix(bits, i);
        random = (double)(bits >> 11) / (double)((uint64_t)1 << 53);
        r = det_expression_store(
            formula->expression, inputs, &generate->scratch, generate->row, &error);
        if (r < 0)
            (void)det_error_set(
                reterr, r, "row %llu, %s: %s", (unsigned long long)n, formula->field, error.text);
    }
    return r;
}

/* Returns how many rows may exist now, by the rate. */
static uint64_t rows_due(struct det_stage_call *call, struct generate *generate, uint64_t rows)
{
    det_time now = det_world_now(call->world, DET_CLOCK_MONOTONIC);
    double rate = generate->settings.rate;
    uint64_t due;

    if (rate <= 0)
        return UINT64_MAX;
    if (!generate->has_begun) {
        generate->has_begun = true;
        generate->begun_at = now;
        generate->begun_rows = rows;
    }
    due = generate->begun_rows + 1 +
          (uint64_t)((double)(now - generate->begun_at) / (double)DET_SECOND * rate);
    return due;
}

/* Waits for the time of the row after `rows`. */
static int wait_for_rate(
    struct det_stage_call *call, const struct generate *generate, uint64_t rows)
{
    double seconds = (double)(rows - generate->begun_rows) / generate->settings.rate;

    det_stage_wake_at(call, generate->begun_at + 1 + (det_time)(seconds * (double)DET_SECOND));
    return DET_SOURCE_IDLE;
}

static int generate_one(struct det_stage_call *call, struct generate *generate, uint64_t n)
{
    struct det_error error;

    if (generate->is_plain)
        fill_plainly(stage_out(call->stage), generate->row, n);
    else if (fill_by_expressions(call, generate, n, &error) < 0) {
        (void)det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
        return 0;
    }
    return det_stage_emit(call, generate->row);
}

static int generate_next(struct det_stage_call *call, void *cursor_memory)
{
    struct generate_cursor *cursor = cursor_memory;
    struct generate *generate = call->self;
    uint64_t room = det_stage_room(call), due = rows_due(call, generate, cursor->rows);
    uint64_t end = generate->settings.has_count ? generate->settings.count : UINT64_MAX;
    int r;

    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (; room && cursor->rows < due && cursor->rows < end; room--) {
        r = generate_one(call, generate, cursor->rows + 1);
        if (r < 0)
            return r;
        cursor->rows++;
    }
    if (cursor->rows >= end)
        return DET_SOURCE_DONE;
    return cursor->rows >= due ? wait_for_rate(call, generate, cursor->rows) : DET_SOURCE_MORE;
}

const struct det_connector generate_source = {
    CONNECTOR_HEAD(generate, source),
    .cursor = { .get = generate_cursor_record },
    .functions = { .open = generate_open, .close = generate_close, .next = generate_next },
    .check = generate_check,
};
