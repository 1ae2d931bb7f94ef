/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* latest_stateful.c - the last row of each key. The state is the row that would be emitted now. */
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

#define REC_SPEC "connectors/latest_stateful.rec"
#include <detent/rec/declare.h>

struct latest {
    struct row_stage stage;
    struct latest_settings settings;
};

static int read_latest(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    const struct latest *latest = (const struct latest *)stage;
    int r;

    (void)settings;
    r = row_fields_add_map(&stage->fields, options, "set", reterr);
    if (r < 0 || latest->settings.no_copy)
        return r;
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const char *const trees[] = { "set", NULL };
static const struct row_stage_kind kind = { latest_settings_record, trees, sizeof(struct latest),
                                            offsetof(struct latest, settings), read_latest };

static int latest_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int latest_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int latest_open_state(
    const struct det_stage *stage, const struct det_allocator *allocator,
    const struct det_record **ret, struct det_error *reterr)
{
    (void)allocator;
    (void)reterr;
    *ret = stage_out(stage);
    return 0;
}

static void latest_close_state(
    const struct det_record *record, const struct det_allocator *allocator)
{
    (void)record;
    (void)allocator;
}

static int latest_accumulate(struct det_stage_call *call, void *state, const void *in)
{
    struct latest *latest = call->self;
    const void *inputs[ROW_INPUTS];
    struct det_error error;

    row_pointers(call, in, inputs);
    if (row_fields_fill(&latest->stage.fields, in, inputs, &latest->stage.scratch, state, &error) <
        0)
        return det_stage_reject(call, DET_REJECT_DOMAIN, "%s", error.text);
    return 0;
}

static int latest_emit(struct det_stage_call *call, void *state)
{
    return det_stage_emit(call, state);
}

const struct det_connector latest_stateful = {
    CONNECTOR_HEAD(latest, stateful),
    .functions = { .open = latest_open,
                   .close = row_stage_close,
                   .accumulate = latest_accumulate,
                   .emit = latest_emit },
    .check = latest_check,
    .open_state = latest_open_state,
    .close_state = latest_close_state,
};
