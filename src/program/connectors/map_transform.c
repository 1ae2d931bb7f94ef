/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* map_transform.c - one row for each row: fields by expressions, others copied by name. */
#include "connectors/connectors.h"
#include "connectors/row_stage.h"

#define REC_SPEC "connectors/map_transform.rec"
#include <detent/rec/declare.h>

struct map {
    struct row_stage stage;
    struct map_settings settings;
};

static int read_map(
    struct row_stage *stage, const struct settings *settings,
    const struct row_fields_options *options, struct det_error *reterr)
{
    const struct map *map = (const struct map *)stage;
    int r;

    (void)settings;
    r = row_fields_add_map(&stage->fields, options, "set", reterr);
    if (r < 0 || map->settings.no_copy)
        return r;
    return row_fields_add_copies(
        &stage->fields, options, stage_in(stage->definition), true, reterr);
}

static const char *const trees[] = { "set", NULL };
static const struct row_stage_kind kind = { map_settings_record, trees, sizeof(struct map),
                                            offsetof(struct map, settings), read_map };

static int map_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    (void)folder;
    return row_stage_check(&kind, stage, reterr);
}

static int map_open(struct det_stage_call *call)
{
    return row_stage_open(&kind, call);
}

static int map_process(struct det_stage_call *call, const void *in)
{
    const struct row_stage *stage = call->self;
    int r;

    r = row_stage_fill(call, in);
    return r < 0 ? r : det_stage_emit(call, stage->row);
}

const struct det_connector map_transform = {
    CONNECTOR_HEAD(map, transform),
    .functions = { .open = map_open, .close = row_stage_close, .process = map_process },
    .check = map_check,
};
