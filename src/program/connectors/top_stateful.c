/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* top_stateful.c - the rows with the highest scores, in their order. The state has these rows of
 * the input; the output is made of them alone, so a row whose output cannot be made is rejected
 * when it comes. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "connectors/connectors.h"
#include "connectors/row_stage.h"
#include "connectors/row_state.h"

#define REC_SPEC "connectors/top_stateful.rec"
#include <detent/rec/declare.h>

#define ROWS     10
#define ROWS_MAX 1000

struct top {
    struct row_stage stage;
    struct top_settings settings;
    struct row_state_layout layout;
    struct det_expression *score, *of, *rank; /* NULL: not set, but for `score` */
    struct det_expression_scratch other;
};

/* ---- settings */

static int read_expressions(
    struct top *top, const struct settings *settings, const struct row_fields_options *options,
    struct det_error *reterr)
{
    const struct det_expression_options wanted = { .inputs = options->inputs,
                                                   .input_count = options->input_count };
    const struct row_formula_text score = { det_datum_get(settings->root, "score"), "score",
                                            top->settings.score, strlen(top->settings.score) };
    const struct row_formula_text of = { det_datum_get(settings->root, "of"), "of",
                                         top->settings.of, strlen(top->settings.of) };
    enum det_expression_type type;
    int r;

    r = row_stage_compile(&top->stage, settings, &score, &wanted, &top->score, reterr);
    if (r < 0)
        return r;
    if (!row_value_is_ordered(det_expression_type(top->score)))
        return settings_fail_key(
            settings, "score", reterr, "score: expected a number, a text or a time, found %s",
            det_expression_type_name(det_expression_type(top->score)));
    if (!*top->settings.of)
        return 0;
    r = row_stage_compile(&top->stage, settings, &of, &wanted, &top->of, reterr);
    if (r < 0)
        return r;
    type = det_expression_type(top->of);
    if (type == DET_EXPRESSION_RECORD || type == DET_EXPRESSION_ARRAY)
        return settings_fail_key(
            settings, "of", reterr, "of: expected a single value, found %s",
            det_expression_type_name(type));
    return 0;
}

/* The field of the rank must have room for the last one. */
static int read_rank(
    struct top *top, const struct settings *settings, const struct row_fields_options *options,
    struct det_error *reterr)
{
    static const struct det_expression_input input = { .name = "rank", .kind = DET_KIND_UNSIGNED };
    struct det_expression_options wanted = { .inputs = &input,
                                             .input_count = 1,
                                             .target = options->target };
    struct row_formula_text formula = { .datum = det_datum_get(settings->root, "rank"),
                                        .name = "rank" };
    struct det_expression *last;
    const struct det_field *field;
    char text[24];
    int r;

    if (!*top->settings.rank)
        return 0;
    r = settings_field(
        settings, formula.datum, top->settings.rank, options->target, &field, reterr);
    if (r < 0)
        return r;
    row_fields_reserve(&top->stage.fields, field);
    wanted.field = field->name;
    formula.text = text;
    formula.size = (size_t)snprintf(text, sizeof text, "%u", top->settings.rows);
    r = row_stage_compile(&top->stage, settings, &formula, &wanted, &last, reterr);
    if (r < 0)
        return r;
    formula.text = "rank";
    formula.size = strlen("rank");
    return row_stage_compile(&top->stage, settings, &formula, &wanted, &top->rank, reterr);
}

static int read_top(
    struct row_stage *stage, const struct settings *settings, const struct row_fields_options *all,
    struct det_error *reterr)
{
    struct top *top = (struct top *)stage;
    /* Only the row: its output is the same whenever it is made. */
    struct row_fields_options options = *all;
    const struct det_record *state;
    int r;

    options.input_count = 1;
    if (top->settings.rows == 0)
        top->settings.rows = ROWS;
    if (top->settings.rows > ROWS_MAX)
        return settings_fail_key(settings, "rows", reterr, "rows is from 1 to %d", ROWS_MAX);
    r = settings_need(
        settings, "score", top->settings.score, "{rows: 10, score: price * amount}", reterr);
    if (r == 0)
        r = read_expressions(top, settings, &options, reterr);
    if (r == 0)
        r = read_rank(top, settings, &options, reterr);
    if (r == 0)
        r = row_fields_add_map(&stage->fields, &options, "set", reterr);
    if (r == 0 && !top->settings.no_copy)
        r = row_fields_add_copies(
            &stage->fields, &options, stage_in(stage->definition), true, reterr);
    top->layout = (struct row_state_layout){ .row = stage_in(stage->definition),
                                             .rows_max = top->settings.rows,
                                             .numbers_max = 1 };
    if (r == 0)
        r = row_state_open(&top->layout, stage->allocator, &state, reterr);
    if (r == 0)
        row_state_close(state, stage->allocator);
    return r;
}

static const char *const trees[] = { "set", NULL };
static const struct row_stage_kind kind = { top_settings_record, trees, sizeof(struct top),
                                            offsetof(struct top, settings), read_top };

static int top_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int top_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int top_open_state(
    const struct det_stage *stage, const struct det_allocator *allocator,
    const struct det_record **ret, struct det_error *reterr)
{
    struct row_stage *opened = NULL;
    int r;

    r = row_stage_make(&kind, stage, allocator, &opened, reterr);
    if (r < 0)
        return r;
    r = row_state_open(&((struct top *)opened)->layout, allocator, ret, reterr);
    row_stage_drop(opened);
    return r;
}

/* ---- rows */

/* The index of the row with the same `of`; the number of rows: none has it. */
static int find_same(
    struct top *top, struct row_state *state, const void *in, uint32_t *ret,
    struct det_error *reterr)
{
    struct det_expression_value wanted, found;
    uint32_t i;
    int r;

    *ret = state->row_count;
    if (!top->of)
        return 0;
    r = det_expression_value(top->of, &in, &top->stage.scratch, &wanted, reterr);
    if (r < 0)
        return r;
    for (i = 0; i < state->row_count; i++) {
        const void *row = row_state_row(&top->layout, state, i);

        r = det_expression_value(top->of, &row, &top->other, &found, reterr);
        if (r < 0)
            return r;
        if (row_value_compare(&wanted, &found) == 0)
            break;
    }
    *ret = i;
    return 0;
}

/* The index that a row gets: after those with scores that are not lower. */
static int find_place(
    struct top *top, struct row_state *state, const void *in, uint32_t *ret,
    struct det_error *reterr)
{
    struct det_expression_value wanted, found;
    uint32_t i;
    int r;

    r = det_expression_value(top->score, &in, &top->stage.scratch, &wanted, reterr);
    for (i = state->row_count; i > 0 && r == 0; i--) {
        const void *row = row_state_row(&top->layout, state, i - 1);

        r = det_expression_value(top->score, &row, &top->other, &found, reterr);
        if (r == 0 && row_value_compare(&found, &wanted) >= 0)
            break;
    }
    *ret = i;
    return r;
}

static void move_rows(
    const struct top *top, struct row_state *state, uint32_t to, uint32_t from, uint32_t count)
{
    char *rows = row_state_row(&top->layout, state, 0);
    size_t size = top->layout.row->size;

    memmove(rows + to * size, rows + from * size, count * size);
}

static int insert_row(
    struct top *top, struct row_state *state, const void *in, struct det_error *reterr)
{
    uint32_t same, place, moved;
    int r;

    r = find_same(top, state, in, &same, reterr);
    if (r < 0)
        return r;
    if (same < state->row_count)
        move_rows(top, state, same, same + 1, --state->row_count - same);
    r = find_place(top, state, in, &place, reterr);
    if (r < 0 || place == top->layout.rows_max)
        return r;
    if (state->row_count < top->layout.rows_max)
        state->row_count++;
    moved = state->row_count - 1 - place;
    move_rows(top, state, place + 1, place, moved);
    memcpy(row_state_row(&top->layout, state, place), in, top->layout.row->size);
    return 0;
}

static int top_accumulate(struct det_stage_call *call, void *state, const void *in)
{
    struct top *top = call->self;
    struct det_error error;
    int r;

    r = row_stage_fill(call, in);
    if (r < 0)
        return r;
    if (insert_row(top, state, in, &error) < 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
    return 0;
}

static int emit_row(struct det_stage_call *call, const void *in, uint64_t rank)
{
    struct top *top = call->self;
    const void *number = &rank;
    struct det_error error;
    int r;

    r = row_stage_fill(call, in);
    if (r == 0 && top->rank)
        r = det_expression_store(top->rank, &number, &top->stage.scratch, top->stage.row, &error);
    return r < 0 ? r : det_stage_emit(call, top->stage.row);
}

static int top_emit(struct det_stage_call *call, void *memory)
{
    const struct top *top = call->self;
    struct row_state *state = memory;
    int r = 0;

    for (uint32_t i = 0; i < state->row_count && r >= 0; i++)
        r = emit_row(call, row_state_row(&top->layout, state, i), i + 1);
    return r;
}

const struct det_connector top_stateful = {
    CONNECTOR_HEAD(top, stateful),
    .functions = { .open = top_open,
                   .close = row_stage_close,
                   .accumulate = top_accumulate,
                   .emit = top_emit },
    .check = top_check,
    .open_state = top_open_state,
    .close_state = row_state_close,
};
