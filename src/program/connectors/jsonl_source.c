/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jsonl_source.c - a row for each line of JSON: an object with the fields of the record. */
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/line_source.h"

#define REC_SPEC "connectors/jsonl_source.rec"
#include <detent/rec/declare.h>

static int read_settings(
    struct line_source *jsonl, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct jsonl_settings value;
    struct settings settings;
    int r;

    r = settings_open(&settings, stage, allocator, jsonl_settings_record(), &value, NULL, reterr);
    if (r < 0)
        return r;
    r = line_row_init(&jsonl->line_row, &settings, LINE_JSON, "", allocator, reterr);
    if (r == 0)
        r = line_source_path(jsonl, &settings, value.path, folder, reterr);
    jsonl->line_row.flags = (value.strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                            (value.partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    jsonl->skips_blank = true;
    settings_close(&settings);
    return r;
}

static int jsonl_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct line_source jsonl = { .has_begun = false };
    int r;

    r = read_settings(&jsonl, stage, NULL, folder, reterr);
    line_source_deinit(&jsonl);
    return r;
}

static void jsonl_close(struct det_stage_call *call)
{
    line_source_deinit(call->self);
    det_free(call->allocator, call->self, sizeof(struct line_source));
}

static int jsonl_open(struct det_stage_call *call)
{
    struct line_source *jsonl = DET_NEW(call->allocator, struct line_source);
    struct det_error error;
    int r;

    if (!jsonl)
        return DET_ERR_NO_MEMORY;
    call->self = jsonl;
    r = read_settings(jsonl, call->stage, call->allocator, call->folder, &error);
    if (r == 0)
        r = input_open(&jsonl->input, call, jsonl->path, DET_JOURNAL_ROW_MAX, &error);
    if (r == 0)
        return 0;
    jsonl_close(call);
    return settings_refuse(call, &error);
}

const struct det_connector jsonl_source = {
    CONNECTOR_HEAD(jsonl, source),
    .cursor = { .get = file_cursor_record },
    .functions = { .open = jsonl_open, .close = jsonl_close, .next = line_source_next },
    .check = jsonl_check,
};
