/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* join_join.c - a row of fields of the input, by their names, and of the reference, `reference.x`.
 * In a left join the reference is an optional record. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

#define REC_SPEC "connectors/join_join.rec"
#include <detent/rec/declare.h>

enum { INPUT_ROW, INPUT_REFERENCE, INPUT_NOW, INPUT_EVENT_TIME, INPUTS };

struct join {
    struct row_stage stage;
    struct join_settings settings;
    struct det_expression_input inputs[INPUTS];
    /* LEFT: a bool, and the reference */
    struct det_record pair;
    struct det_field pair_field;
    char *pair_value;
};

#define PAIR_OFFSET 8

static bool is_left(const struct row_stage *stage)
{
    return stage->definition->join == DET_JOIN_LEFT;
}

static const struct det_record *reference_of(const struct row_stage *stage)
{
    return det_record_of(stage->definition->reference);
}

static void fill_inputs(struct join *join)
{
    const struct det_record *reference = reference_of(&join->stage);

    join->inputs[INPUT_ROW] = join->stage.inputs[0];
    join->inputs[INPUT_NOW] = join->stage.inputs[1];
    join->inputs[INPUT_EVENT_TIME] = join->stage.inputs[2];
    if (!is_left(&join->stage)) {
        join->inputs[INPUT_REFERENCE] =
            (struct det_expression_input){ .name = "reference", .record = reference };
        return;
    }
    join->pair_field = (struct det_field){ .name = "reference",
                                           .kind = DET_KIND_RECORD,
                                           .flags = DET_FIELD_OPTIONAL,
                                           .offset = PAIR_OFFSET,
                                           .size = reference->size,
                                           .record = { .record = reference } };
    join->pair = (struct det_record){ .name = "pair",
                                      .size = PAIR_OFFSET + reference->size,
                                      .fields = &join->pair_field,
                                      .field_count = 1 };
    join->inputs[INPUT_REFERENCE] = (struct det_expression_input){ .record = &join->pair };
}

/* Fields that only the reference has are copied from it. */
static int copy_field(
    struct join *join, const struct row_fields_options *options, const struct det_field *to,
    struct det_error *reterr)
{
    const struct det_record *reference = reference_of(&join->stage);
    const struct det_field *from = det_record_field(reference, to->name);
    bool is_optional = to->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY);
    char text[DET_NAME_MAX + 16];

    if (row_fields_have(&join->stage.fields, to) || (!from && is_optional))
        return 0;
    if (!from)
        return settings_fail(
            options->settings, NULL, reterr,
            "the field '%s' of %s gets no value: neither %s nor %s has such a field; set it, or "
            "make it OPTIONAL",
            to->name, options->target->name, stage_in(join->stage.definition)->name,
            reference->name);
    if (is_left(&join->stage) && !(to->flags & DET_FIELD_OPTIONAL))
        return settings_fail(
            options->settings, NULL, reterr,
            "the field '%s' of %s gets no value without a reference row: set it, such as "
            "{set: {%s: \"reference.%s or_else ...\"}}, or make it OPTIONAL",
            to->name, options->target->name, to->name, to->name);
    (void)snprintf(text, sizeof text, "reference.`%s`", to->name);
    return row_fields_add(&join->stage.fields, options, NULL, to->name, text, reterr);
}

static int read_join(
    struct row_stage *stage, const struct settings *settings, const struct row_fields_options *rows,
    struct det_error *reterr)
{
    struct join *join = (struct join *)stage;
    struct row_fields_options options = *rows;
    int r;

    options.inputs = join->inputs;
    options.input_count = INPUTS;
    fill_inputs(join);
    if (det_record_field(stage_in(stage->definition), "reference"))
        return settings_fail(
            settings, NULL, reterr,
            "%s has a field 'reference', which is the name of the other side: rename it before",
            stage_in(stage->definition)->name);
    r = row_fields_add_map(&stage->fields, &options, "set", reterr);
    if (r < 0 || join->settings.no_copy)
        return r;
    r = row_fields_add_copies(&stage->fields, &options, stage_in(stage->definition), false, reterr);
    for (size_t i = 0; i < options.target->field_count && r == 0; i++)
        if (stage_in(stage->definition) != options.target)
            r = copy_field(join, &options, &options.target->fields[i], reterr);
    return r;
}

static const char *const trees[] = { "set", NULL };
static const struct row_stage_kind kind = { join_settings_record, trees, sizeof(struct join),
                                            offsetof(struct join, settings), read_join };

static int join_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int join_open(struct det_stage_call *call)
{
    struct join *join;
    int r;

    r = row_stage_open(&kind, call);
    if (r < 0)
        return r;
    join = call->self;
    if (!is_left(&join->stage))
        return 0;
    join->pair_value = det_alloc_zero(join->stage.allocator, join->pair.size);
    if (join->pair_value)
        return 0;
    row_stage_close(call);
    return det_stage_fail(call, DET_ERR_NO_MEMORY, "no memory for a reference row");
}

static void join_close(struct det_stage_call *call)
{
    struct join *join = call->self;

    if (join->pair_value)
        det_free(join->stage.allocator, join->pair_value, join->pair.size);
    row_stage_close(call);
}

/* What expressions read as the reference. */
static const void *reference_input(struct join *join, const void *reference)
{
    const struct det_record *record = reference_of(&join->stage);

    det_assert(record);
    if (!join->pair_value)
        return reference;
    *(bool *)join->pair_value = reference != NULL;
    if (reference)
        memcpy(join->pair_value + PAIR_OFFSET, reference, record->size);
    else
        memset(join->pair_value + PAIR_OFFSET, 0, record->size);
    return join->pair_value;
}

static int join_rows(struct det_stage_call *call, const void *reference, const void *in)
{
    struct join *join = call->self;
    const void *const inputs[INPUTS] = { [INPUT_ROW] = in,
                                         [INPUT_REFERENCE] = reference_input(join, reference),
                                         [INPUT_NOW] = &call->now,
                                         [INPUT_EVENT_TIME] = &call->row.event_time };
    struct det_error error;

    if (row_fields_fill(
            &join->stage.fields, in, inputs, &join->stage.scratch, join->stage.row, &error) < 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
    return det_stage_emit(call, join->stage.row);
}

const struct det_connector join_join = {
    CONNECTOR_HEAD(join, join),
    .functions = { .open = join_open, .close = join_close, .join = join_rows },
    .check = join_check,
};
