/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* filter_transform.c - the rows for which a condition is true. */
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

#define REC_SPEC "connectors/filter_transform.rec"
#include <detent/rec/declare.h>

struct filter {
    struct row_stage stage;
    struct filter_settings settings;
    bool is_same; /* input and output are one record */
};

static int read_filter(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    struct filter *filter = (struct filter *)stage;
    int r;

    r = settings_need(
        settings, "where", filter->settings.where, "{where: \"price > 100\"}", reterr);
    if (r == 0)
        r = row_expression(
            options, "where", filter->settings.where, DET_EXPRESSION_BOOL, stage->allocator,
            &stage->condition, reterr);
    filter->is_same = stage_in(stage->definition) == stage_out(stage->definition);
    if (r < 0 || filter->is_same)
        return r;
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const struct row_stage_kind kind = { filter_settings_record, NULL, sizeof(struct filter),
                                            offsetof(struct filter, settings), read_filter };

static int filter_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int filter_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int filter_process(struct det_stage_call *call, const void *in)
{
    struct filter *filter = call->self;
    const void *inputs[ROW_INPUTS];
    struct det_error error;
    int r;

    row_pointers(call, in, inputs);
    r = det_expression_test(filter->stage.condition, inputs, &filter->stage.scratch, &error);
    if (r < 0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "where: %s", error.text);
    if (r == 0)
        return 0;
    if (filter->is_same)
        return det_stage_emit(call, in);
    r = row_stage_fill(call, in);
    return r < 0 ? r : det_stage_emit(call, filter->stage.row);
}

const struct det_connector filter_transform = {
    CONNECTOR_HEAD(filter, transform),
    .functions = { .open = filter_open, .close = row_stage_close, .process = filter_process },
    .check = filter_check,
};
