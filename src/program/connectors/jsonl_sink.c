/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* jsonl_sink.c - the sink `jsonl`: rows as JSON objects, one in a line. */
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/file_sink.h"

#define REC_SPEC "connectors/jsonl_sink.rec"
#include <detent/rec/declare.h>

static void write_row(const struct file_sink *sink, const void *row, struct det_buffer *buffer)
{
    columns_write_json(&sink->columns, row, buffer);
    det_buffer_append_char(buffer, '\n');
}

static const struct file_sink_format jsonl_format = { .flags = COLUMNS_NESTED,
                                                      .write_row = write_row };

/* `sink`: NULL, or what gets the settings. */
static int read_settings(
    const struct det_stage *stage, const struct det_allocator *allocator, const char *folder,
    struct file_sink *sink, struct det_error *reterr)
{
    struct jsonl_sink_settings value;
    struct file_sink_place place = { value.path, value.existing, value.durability };
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, jsonl_sink_settings_record(), &value, NULL, reterr);
    if (r < 0)
        return r;
    r = file_sink_check(&settings, &place, folder, sink, reterr);
    settings_close(&settings);
    return r;
}

static int jsonl_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    return read_settings(stage, NULL, folder, NULL, reterr);
}

static int jsonl_open(struct det_stage_call *call)
{
    struct file_sink *sink = DET_NEW(call->allocator, struct file_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    r = read_settings(call->stage, call->allocator, call->folder, sink, &error);
    if (r < 0)
        DET_DELETE(call->allocator, sink);
    else
        r = file_sink_open(call, sink, &jsonl_format, &error);
    return r < 0 ? settings_refuse(call, &error) : 0;
}

const struct det_connector jsonl_sink = {
    .name = "jsonl",
    .about = "rows as JSON objects, one in a line of a file, exactly once",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .cursor = { .get = file_sink_cursor_record },
    .functions = { .open = jsonl_open,
                   .close = file_sink_close,
                   .begin = file_sink_begin,
                   .deliver = file_sink_deliver,
                   .flush = file_sink_flush },
    .check = jsonl_check,
};
