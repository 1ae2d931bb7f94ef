/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* dedupe_stateful.c - the first row of each key. The last `keys` keys are remembered, in the log of
 * the flow: the oldest is forgotten, and its next row is passed on again. */
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

#define REC_SPEC "connectors/dedupe_stateful.rec"
#include <detent/rec/declare.h>

#define KEYS     100000
#define KEYS_MAX 100000000

struct dedupe {
    struct row_stage stage;
    struct dedupe_settings settings;
    det_time window; /* 0: none */
    bool is_same;    /* input and output are one record */
};

static int read_dedupe(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    struct dedupe *dedupe = (struct dedupe *)stage;
    int r;

    if (!stage->definition->key)
        return settings_fail(
            settings, NULL, reterr, "the key is missing: add it to the stage, such as KEY(\"id\")");
    if (dedupe->settings.keys == 0)
        dedupe->settings.keys = KEYS;
    if (dedupe->settings.keys > KEYS_MAX)
        return settings_fail_key(settings, "keys", reterr, "keys is from 1 to %d", KEYS_MAX);
    r = settings_duration(settings, "window", dedupe->settings.window, 0, &dedupe->window, reterr);
    dedupe->is_same = stage_in(stage->definition) == stage_out(stage->definition);
    if (r < 0 || dedupe->is_same)
        return r;
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const struct row_stage_kind kind = { dedupe_settings_record, NULL, sizeof(struct dedupe),
                                            offsetof(struct dedupe, settings), read_dedupe };

static int dedupe_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int dedupe_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int dedupe_accumulate(struct det_stage_call *call, void *state_memory, const void *in)
{
    struct dedupe_state *state = state_memory;
    struct dedupe *dedupe = call->self;
    det_time at = call->row.event_time ? call->row.event_time : 1;
    int r;

    if (state->first_at &&
        !(dedupe->window && (at - state->first_at >= dedupe->window || at < state->first_at))) {
        state->dropped++;
        return 0;
    }
    *state = (struct dedupe_state){ .first_at = at };
    det_stage_keep(call, dedupe->settings.keys);
    if (dedupe->is_same)
        return det_stage_emit(call, in);
    r = row_stage_fill(call, in);
    return r < 0 ? r : det_stage_emit(call, dedupe->stage.row);
}

/* Everything was emitted before. */
static int dedupe_emit(struct det_stage_call *call, void *state)
{
    (void)call;
    (void)state;
    return 0;
}

const struct det_connector dedupe_stateful = {
    CONNECTOR_HEAD(dedupe, stateful),
    .state = { .get = dedupe_state_record },
    .functions = { .open = dedupe_open,
                   .close = row_stage_close,
                   .accumulate = dedupe_accumulate,
                   .emit = dedupe_emit },
    .check = dedupe_check,
};
