/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_source.c - reads lines and makes rows of them. */
#include "connectors/line_source.h"

#include <string.h>

#define ROWS_MAX 4096 /* of one turn */

int line_source_path(
    struct line_source *source, const struct settings *settings, const char *path,
    const char *folder, struct det_error *reterr)
{
    if (*path && strcmp(path, "-") != 0)
        return settings_path(settings, "path", path, folder, source->path, reterr);
    (void)det_text_copy(source->path, sizeof source->path, "-");
    return 0;
}

void line_source_deinit(struct line_source *source)
{
    input_close(&source->input);
    line_row_deinit(&source->line_row);
}

static bool is_blank(struct det_view line)
{
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t')
            return false;
    return true;
}

/* A line was read, or skipped because it is too long. */
static int take_line(
    struct det_stage_call *call, struct line_source *source, int result, struct det_view line,
    struct file_cursor *cursor)
{
    uint64_t number = ++cursor->lines;

    if (number <= source->skip)
        return 0;
    if (result == DET_ERR_LIMIT) {
        (void)det_stage_reject(
            call, DET_REJECT_DESERIALIZATION, "%.160s, line %llu: the line is longer than %d bytes",
            source->input.name, (unsigned long long)number, DET_JOURNAL_ROW_MAX);
        return 0;
    }
    if (source->skips_blank && is_blank(line))
        return 0;
    return line_row_emit(call, &source->line_row, line, source->input.name, number);
}

int line_source_next(struct det_stage_call *call, void *cursor_memory)
{
    struct file_cursor *cursor = cursor_memory;
    struct line_source *source = call->self;
    uint32_t room = det_stage_room(call);
    struct det_view line = { NULL, 0 };
    int r;

    if (!source->has_begun) {
        r = file_cursor_begin(call, &source->input, cursor);
        if (r < 0)
            return r;
        source->has_begun = true;
    }
    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        r = input_line(&source->input, true, &line);
        if (r == 0)
            return source->input.is_ended ? DET_SOURCE_DONE : DET_SOURCE_IDLE;
        if (r < 0 && r != DET_ERR_LIMIT)
            return file_cursor_fail(call, &source->input, r);
        r = take_line(call, source, r, line, cursor);
        if (r < 0)
            return r;
        cursor->offset = source->input.offset;
    }
    return DET_SOURCE_MORE;
}
