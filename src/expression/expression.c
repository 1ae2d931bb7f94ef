/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* expression.c - opens expressions, evaluates them, and stores their results. */
#include <detent/expression.h>

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/reserved.h"
#include "expression/compile.h"

const char *det_expression_type_name(enum det_expression_type type)
{
    switch (type) {
    case DET_EXPRESSION_ANY:
        return "any";
    case DET_EXPRESSION_INT:
        return "int";
    case DET_EXPRESSION_FLOAT:
        return "float";
    case DET_EXPRESSION_BOOL:
        return "bool";
    case DET_EXPRESSION_TEXT:
        return "text";
    case DET_EXPRESSION_BYTES:
        return "bytes";
    case DET_EXPRESSION_TIME:
        return "time";
    case DET_EXPRESSION_DURATION:
        return "duration";
    case DET_EXPRESSION_ENUM:
        return "enum";
    case DET_EXPRESSION_RECORD:
        return "record";
    case DET_EXPRESSION_ARRAY:
        return "array";
    }
    return "unknown";
}

static bool is_scalar(enum det_kind kind)
{
    return kind != DET_KIND_BYTES && kind != DET_KIND_ENUM && kind != DET_KIND_RECORD;
}

static int check_options(const struct det_expression_options *options, struct det_error *reterr)
{
    int r = det_reserved_check(options->reserved, "det_expression_options", reterr);

    if (r < 0)
        return r;
    if (options->input_count > DET_EXPRESSION_INPUT_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "an expression has at most %d inputs, not %zu",
            DET_EXPRESSION_INPUT_MAX, options->input_count);
    if ((options->target != NULL) != (options->field != NULL))
        return det_error_set(
            reterr, DET_ERR_INVALID, "a target record and its field belong together");
    for (size_t i = 0; i < options->input_count; i++) {
        const struct det_expression_input *input = &options->inputs[i];

        if (!input->record && (!input->name || !is_scalar(input->kind)))
            return det_error_set(
                reterr, DET_ERR_INVALID,
                "an input without a record has a name, and a kind of one value");
        r = input->record ? det_record_check(input->record, reterr) : 0;
        if (r < 0)
            return r;
    }
    return options->target ? det_record_check(options->target, reterr) : 0;
}

/* Each token but the last takes a byte. */
static int init_compiler(struct compiler *compiler)
{
    struct det_arena *work = &compiler->work;
    size_t tokens = compiler->text.size + 2;

    compiler->step_max = STEPS_PER_TOKEN * tokens;
    compiler->steps = det_arena_array(work, compiler->step_max, sizeof *compiler->steps);
    compiler->columns = det_arena_array(work, compiler->step_max, sizeof *compiler->columns);
    compiler->links = det_arena_array(work, compiler->step_max, sizeof *compiler->links);
    compiler->reads = det_arena_array(work, tokens, sizeof *compiler->reads);
    compiler->operands =
        det_arena_array(work, DET_EXPRESSION_DEPTH_MAX, sizeof *compiler->operands);
    compiler->scratch = det_arena_alloc(work, sizeof *compiler->scratch);
    if (!compiler->steps || !compiler->columns || !compiler->links || !compiler->reads ||
        !compiler->operands || !compiler->scratch)
        return DET_ERR_NO_MEMORY;
    return 0;
}

static int compile_text(struct compiler *compiler)
{
    int r = init_compiler(compiler);

    if (r == 0)
        r = det_compile_parse(compiler);
    if (r == 0)
        r = det_compile_finish(compiler);
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(compiler->reterr, r, "%s", det_error_text(r));
    return r;
}

int det_expression_open(
    const char *text, size_t size, const struct det_expression_options *options,
    struct det_expression **ret, struct det_error *reterr)
{
    struct compiler compiler = { .options = options,
                                 .text = det_view_of(text, size),
                                 .reterr = reterr };
    struct det_expression *program;
    int r;

    if (size > DET_EXPRESSION_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "an expression has at most %d bytes, this one has %zu",
            DET_EXPRESSION_SIZE_MAX, size);
    r = check_options(options, reterr);
    if (r < 0)
        return r;
    program = DET_NEW(options->allocator, struct det_expression);
    if (!program)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s", det_error_text(DET_ERR_NO_MEMORY));
    program->allocator = options->allocator;
    det_arena_init(&program->arena, options->allocator);
    det_arena_init(&compiler.work, options->allocator);
    program->input_count = options->input_count;
    compiler.program = program;
    r = compile_text(&compiler);
    det_arena_deinit(&compiler.work);
    if (r < 0) {
        det_expression_close(program);
        return r;
    }
    *ret = program;
    return 0;
}

void det_expression_close(struct det_expression *expression)
{
    if (!expression)
        return;
    det_arena_deinit(&expression->arena);
    det_free(expression->allocator, expression, sizeof *expression);
}

enum det_expression_type det_expression_type(const struct det_expression *expression)
{
    return expression->type;
}

const struct det_expression_read *det_expression_reads(
    const struct det_expression *expression, size_t *ret_count)
{
    *ret_count = expression->read_count;
    return expression->reads;
}

int det_expression_report(
    const struct det_expression *expression, const struct expression_step *step,
    const struct expression_frame *frame, int code, struct det_error *reterr)
{
    if (!reterr)
        return code;
    return det_expression_fail(
        reterr, code, expression->columns[step - expression->steps], "%s", frame->reason);
}

/* 0, 1 if the result is absent, or an error. */
static int evaluate(
    const struct det_expression *expression, const void *const *inputs,
    struct expression_frame *frame, struct det_error *reterr)
{
    const struct expression_step *failed = NULL;
    int r;

    frame->scratch->used = 0;
    r = det_expression_run(expression->steps, inputs, frame, &failed);
    return r < 0 ? det_expression_report(expression, failed, frame, r, reterr) : r;
}

int det_expression_value(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, struct det_expression_value *ret,
    struct det_error *reterr)
{
    const union expression_slot *slot = expression_result(scratch);
    struct expression_frame frame = { .scratch = scratch };
    int r;

    det_assert(!expression->target.field);
    r = evaluate(expression, inputs, &frame, reterr);
    if (r < 0)
        return r;
    *ret = (struct det_expression_value){ .type = expression->type, .is_absent = r > 0 };
    if (r > 0)
        return 0;
    switch (expression->type) {
    case DET_EXPRESSION_INT:
        ret->is_unsigned = slot->i < 0 && slot->w.high == 0;
        ret->natural = slot->w.low;
        break;
    case DET_EXPRESSION_FLOAT:
        ret->number = slot->f;
        break;
    case DET_EXPRESSION_BOOL:
        ret->truth = slot->b;
        break;
    case DET_EXPRESSION_TEXT:
    case DET_EXPRESSION_BYTES:
        ret->text = (struct det_expression_text){ slot->text.data, slot->text.size };
        break;
    case DET_EXPRESSION_TIME:
    case DET_EXPRESSION_DURATION:
    case DET_EXPRESSION_ENUM:
        ret->integer = slot->i;
        break;
    case DET_EXPRESSION_ANY:
        break;
    case DET_EXPRESSION_RECORD:
    case DET_EXPRESSION_ARRAY:
        ret->record = slot->place;
        break;
    }
    return 0;
}

int det_expression_test(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, struct det_error *reterr)
{
    struct expression_frame frame = { .scratch = scratch };
    int r;

    det_assert(expression->type == DET_EXPRESSION_BOOL && !expression->target.field);
    r = evaluate(expression, inputs, &frame, reterr);
    return r < 0 ? r : r == 0 && expression_result(scratch)->b;
}

int det_expression_store(
    const struct det_expression *expression, const void *const *inputs,
    struct det_expression_scratch *scratch, void *target, struct det_error *reterr)
{
    struct expression_frame frame = { .scratch = scratch, .target = target };
    int r;

    det_assert(expression->target.field != NULL);
    r = evaluate(expression, inputs, &frame, reterr);
    return r < 0 ? r : 0;
}

/* Runs the rows; an error ends a run, and the next one goes on with the row after it. */
static size_t run_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct expression_frame *frame, struct expression_batch *batch, int8_t *results)
{
    const struct expression_step *failed;
    size_t errors = 0;

    batch->results = results;
    batch->strides = rows->strides;
    batch->input_count = expression->input_count;
    batch->count = rows->count;
    frame->batch = batch;
    frame->scratch->used = 0;
    for (size_t i = 0; i < batch->input_count; i++)
        batch->inputs[i] = rows->inputs[i];
    while (batch->index < batch->count) {
        int r = det_expression_run(expression->steps, batch->inputs, frame, &failed);

        if (r == 0)
            break;
        errors++;
        if (!expression_next_row(frame, (int8_t)r))
            break;
    }
    return errors;
}

size_t det_expression_test_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, int8_t *results)
{
    struct expression_frame frame = { .scratch = scratch };
    struct expression_batch batch = { .target_stride = 0 };

    det_assert(expression->type == DET_EXPRESSION_BOOL && !expression->target.field);
    return run_rows(expression, rows, &frame, &batch, results);
}

size_t det_expression_store_rows(
    const struct det_expression *expression, const struct det_expression_rows *rows,
    struct det_expression_scratch *scratch, void *targets, size_t stride, int8_t *results)
{
    struct expression_frame frame = { .scratch = scratch, .target = targets };
    struct expression_batch batch = { .target_stride = stride };

    det_assert(expression->target.field != NULL);
    return run_rows(expression, rows, &frame, &batch, results);
}
