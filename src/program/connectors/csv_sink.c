/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_sink.c - the sink `csv`: rows as lines of RFC 4180, with a header. */
#include <string.h>

#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/file_sink.h"

#define REC_SPEC "connectors/csv_sink.rec"
#include <detent/rec/declare.h>

static void write_head(const struct file_sink *sink, struct det_buffer *buffer)
{
    columns_write_csv_head(&sink->columns, sink->delimiter, buffer);
}

static void write_row(const struct file_sink *sink, const void *row, struct det_buffer *buffer)
{
    columns_write_csv(&sink->columns, row, sink->delimiter, buffer);
}

static const struct file_sink_format csv_with_header = { .write_head = write_head,
                                                         .write_row = write_row };
static const struct file_sink_format csv_without_header = { .write_row = write_row };

static int check_delimiter(
    const struct settings *settings, const char *text, char *ret, struct det_error *reterr)
{
    char c = *text;

    if (!*text)
        c = ',';
    else if (strcmp(text, "tab") == 0)
        c = '\t';
    else if (text[1] || !strchr(",;|\t:", *text))
        return settings_fail_key(
            settings, "delimiter", reterr, "'%s' is not a delimiter: use ',', ';', '|', ':' or tab",
            text);
    *ret = c;
    return 0;
}

/* `sink`: NULL, or what gets the settings. */
static int read_settings(
    const struct det_stage *stage, const struct det_allocator *allocator, const char *folder,
    struct file_sink *sink, bool *ret_header, struct det_error *reterr)
{
    struct csv_sink_settings value;
    struct file_sink_place place = { value.path, value.existing, value.durability };
    struct settings settings;
    char delimiter = ',';
    int r;

    r = settings_open(
        &settings, stage, allocator, csv_sink_settings_record(), &value, NULL, reterr);
    if (r < 0)
        return r;
    r = check_delimiter(&settings, value.delimiter, &delimiter, reterr);
    if (r == 0)
        r = file_sink_check(&settings, &place, folder, sink, reterr);
    settings_close(&settings);
    if (r < 0 || !sink)
        return r;
    sink->delimiter = delimiter;
    *ret_header = !value.has_header || value.header;
    return 0;
}

static int csv_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    return read_settings(stage, NULL, folder, NULL, NULL, reterr);
}

static int csv_open(struct det_stage_call *call)
{
    struct file_sink *sink = DET_NEW(call->allocator, struct file_sink);
    struct det_error error = { 0 };
    bool has_header = true;
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    r = read_settings(call->stage, call->allocator, call->folder, sink, &has_header, &error);
    if (r < 0)
        DET_DELETE(call->allocator, sink);
    else
        r = file_sink_open(call, sink, has_header ? &csv_with_header : &csv_without_header, &error);
    return r < 0 ? settings_refuse(call, &error) : 0;
}

const struct det_connector csv_sink = {
    .name = "csv",
    .about = "rows as lines of a CSV file, exactly once",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .cursor = { .get = file_sink_cursor_record },
    .functions = { .open = csv_open,
                   .close = file_sink_close,
                   .begin = file_sink_begin,
                   .deliver = file_sink_deliver,
                   .flush = file_sink_flush },
    .check = csv_check,
};
