/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* row_stage.c - opens and closes transforms of rows. */
#include "connectors/row_stage.h"

#include "base/memory.h"

void row_stage_drop(struct row_stage *stage)
{
    row_fields_close(&stage->fields);
    det_expression_close(stage->condition);
    for (uint32_t i = 0; i < stage->expression_count; i++)
        det_expression_close(stage->expressions[i]);
    det_free(stage->allocator, stage->row, stage->row_size);
    det_free(stage->allocator, stage, stage->size);
}

static int read_settings(
    struct row_stage *stage, const struct row_stage_kind *kind, struct det_error *reterr)
{
    struct row_fields_options options = { .inputs = stage->inputs, .input_count = ROW_INPUTS };
    void *value = (char *)stage + kind->settings_offset;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage->definition, stage->allocator, kind->settings(), value, kind->trees,
        reterr);
    if (r < 0)
        return r;
    row_inputs(stage_in(stage->definition), stage->inputs);
    options.settings = &settings;
    options.target = stage_out(stage->definition);
    r = kind->read(stage, &settings, &options, reterr);
    settings_close(&settings);
    return r;
}

int row_stage_make(
    const struct row_stage_kind *kind, const struct det_stage *definition,
    const struct det_allocator *allocator, struct row_stage **ret, struct det_error *reterr)
{
    struct row_stage *stage = det_alloc_zero(allocator, kind->size);
    int r;

    if (!stage)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "settings of '%s': out of memory", definition->name);
    stage->allocator = stage->fields.allocator = allocator;
    stage->definition = definition;
    stage->size = kind->size;
    r = read_settings(stage, kind, reterr);
    if (r == 0) {
        stage->row_size = stage_out(definition)->size;
        stage->row = det_alloc_zero(allocator, stage->row_size);
        if (!stage->row)
            r = det_error_set(
                reterr, DET_ERR_NO_MEMORY, "'%s': no memory for a row", definition->name);
    }
    if (r < 0) {
        row_stage_drop(stage);
        return r;
    }
    *ret = stage;
    return 0;
}

int row_stage_check(
    const struct row_stage_kind *kind, const struct det_stage *definition, struct det_error *reterr)
{
    struct row_stage *stage = NULL;
    int r;

    r = row_stage_make(kind, definition, NULL, &stage, reterr);
    if (r == 0)
        row_stage_drop(stage);
    return r;
}

int row_stage_open(const struct row_stage_kind *kind, struct det_stage_call *call)
{
    struct row_stage *stage = NULL;
    struct det_error error;
    int r;

    r = row_stage_make(kind, call->stage, call->allocator, &stage, &error);
    if (r < 0)
        return settings_refuse(call, &error);
    call->self = stage;
    return 0;
}

void row_stage_close(struct det_stage_call *call)
{
    row_stage_drop(call->self);
}

int row_stage_fill(struct det_stage_call *call, const void *in)
{
    struct row_stage *stage = call->self;
    const void *inputs[ROW_INPUTS];
    struct det_error error;

    row_pointers(call, in, inputs);
    if (row_fields_fill(&stage->fields, in, inputs, &stage->scratch, stage->row, &error) < 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
    return 0;
}

int row_stage_compile(
    struct row_stage *stage, const struct settings *settings,
    const struct row_formula_text *formula, const struct det_expression_options *options,
    struct det_expression **ret, struct det_error *reterr)
{
    struct det_expression_options wanted = *options;
    struct det_error error;
    int r;

    if (stage->expression_count == ROW_EXPRESSIONS)
        return settings_fail(
            settings, formula->datum, reterr, "more than %d expressions", ROW_EXPRESSIONS);
    wanted.allocator = stage->allocator;
    r = det_expression_open(formula->text, formula->size, &wanted, ret, &error);
    if (r == 0) {
        stage->expressions[stage->expression_count++] = *ret;
        return 0;
    }
    if (r == DET_ERR_NO_MEMORY)
        return det_error_set(reterr, r, "%s", error.text);
    return settings_fail(settings, formula->datum, reterr, "%.64s: %s", formula->name, error.text);
}
