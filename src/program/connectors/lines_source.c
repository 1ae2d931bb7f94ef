/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines_source.c - a row for each line of a file, a pipe or standard input. */
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/line_source.h"

#define REC_SPEC "connectors/lines_source.rec"
#include <detent/rec/declare.h>

static int read_settings(
    struct line_source *lines, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct lines_settings value;
    struct settings settings;
    int r;

    r = settings_open(&settings, stage, allocator, lines_settings_record(), &value, NULL, reterr);
    if (r < 0)
        return r;
    r = line_row_init(&lines->line_row, &settings, LINE_TEXT, value.field, allocator, reterr);
    if (r == 0)
        r = line_source_path(lines, &settings, value.path, folder, reterr);
    lines->line_row.truncates = value.truncate;
    lines->skip = value.skip;
    lines->skips_blank = value.skip_blank;
    settings_close(&settings);
    return r;
}

static int lines_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct line_source lines = { .has_begun = false };
    int r;

    r = read_settings(&lines, stage, NULL, folder, reterr);
    line_source_deinit(&lines);
    return r;
}

static void lines_close(struct det_stage_call *call)
{
    line_source_deinit(call->self);
    det_free(call->allocator, call->self, sizeof(struct line_source));
}

static int lines_open(struct det_stage_call *call)
{
    struct line_source *lines = DET_NEW(call->allocator, struct line_source);
    struct det_error error;
    int r;

    if (!lines)
        return DET_ERR_NO_MEMORY;
    call->self = lines;
    r = read_settings(lines, call->stage, call->allocator, call->folder, &error);
    if (r == 0)
        r = input_open(&lines->input, call, lines->path, DET_JOURNAL_ROW_MAX, &error);
    if (r == 0)
        return 0;
    lines_close(call);
    return settings_refuse(call, &error);
}

const struct det_connector lines_source = {
    CONNECTOR_HEAD(lines, source),
    .cursor = { .get = file_cursor_record },
    .functions = { .open = lines_open, .close = lines_close, .next = line_source_next },
    .check = lines_check,
};
