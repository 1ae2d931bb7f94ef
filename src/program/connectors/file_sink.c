/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_sink.c - rows as lines of a file or of standard output. */
#include "connectors/file_sink.h"

#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/descriptor_write.h"

/* Standard output gets its rows from this size on before the flush. */
#define STDOUT_LARGE 65536

static int check_words(
    const struct settings *settings, const struct file_sink_place *place,
    enum file_existing *existing, struct det_error *reterr)
{
    if (!file_existing_of(place->existing, existing))
        return settings_fail_key(
            settings, "existing", reterr, "unknown word '%s': use error, replace or append",
            place->existing);
    if (*place->durability && strcmp(place->durability, "disk") != 0 &&
        strcmp(place->durability, "os") != 0)
        return settings_fail_key(
            settings, "durability", reterr, "unknown word '%s': use disk or os", place->durability);
    return 0;
}

int file_sink_check(
    const struct settings *settings, const struct file_sink_place *place, const char *folder,
    struct file_sink *ret, struct det_error *reterr)
{
    enum file_existing existing;
    char path[DET_PATH_MAX] = "-";
    int r;

    r = settings_need(
        settings, "path", place->path, "path: out.csv, or path: - for standard output", reterr);
    if (r == 0)
        r = check_words(settings, place, &existing, reterr);
    if (r == 0 && strcmp(place->path, "-") != 0)
        r = settings_path(settings, "path", place->path, folder, path, reterr);
    if (r < 0 || !ret)
        return r;
    ret->is_stdout = strcmp(place->path, "-") == 0;
    memcpy(ret->path, path, sizeof path);
    ret->output.existing = existing;
    ret->output.is_synced = strcmp(place->durability, "os") != 0;
    return 0;
}

static void free_sink(struct det_stage_call *call, struct file_sink *sink)
{
    columns_deinit(&sink->columns);
    file_output_deinit(&sink->output);
    DET_DELETE(call->allocator, sink);
}

int file_sink_open(
    struct det_stage_call *call, struct file_sink *sink_take, const struct file_sink_format *format,
    struct det_error *reterr)
{
    struct file_output output = sink_take->output;
    int r;

    sink_take->format = format;
    file_output_init(&sink_take->output, call->world, call->allocator, sink_take->path);
    sink_take->output.existing = output.existing;
    sink_take->output.is_synced = output.is_synced;
    r = columns_init(
        &sink_take->columns, call->allocator, det_record_of(call->stage->in),
        format->flags | (sink_take->is_stdout ? COLUMNS_REDACTED : 0u));
    if (r < 0) {
        free_sink(call, sink_take);
        return det_error_set(reterr, r, "%s: out of memory", call->stage->name);
    }
    call->self = sink_take;
    return 0;
}

void file_sink_close(struct det_stage_call *call)
{
    free_sink(call, call->self);
    call->self = NULL;
}

/* Opens the file at the first call after open(), at the cursor. */
static int begin(struct file_sink *sink, void *cursor, struct det_error *reterr)
{
    int r = 0;
    bool is_empty = !sink->has_begun;

    if (sink->is_stdout ? sink->has_begun : sink->output.file != NULL)
        return 0;
    if (!sink->is_stdout) {
        r = file_output_open(&sink->output, cursor, reterr);
        is_empty = sink->output.written == 0;
    }
    if (r < 0)
        return r;
    sink->has_begun = true;
    if (is_empty && sink->format->write_head)
        sink->format->write_head(sink, &sink->output.buffer);
    return 0;
}

static int write_stdout(
    struct det_stage_call *call, struct file_sink *sink, struct det_error *reterr)
{
    struct det_buffer *buffer = &sink->output.buffer;
    int r = det_buffer_status(buffer);

    if (r == 0)
        r = descriptor_write(call, STDOUT_FILENO, buffer->data, buffer->size);
    det_buffer_clear(buffer);
    return r < 0 ? det_error_set(reterr, r, "standard output: %s", det_error_text(r)) : 0;
}

static int settle(struct det_stage_call *call, int r, const struct det_error *error)
{
    if (r == 0 || r == DET_ERR_CANCELLED)
        return r;
    return det_stage_fail(call, r, "%s", error->text);
}

int file_sink_begin(struct det_stage_call *call, void *cursor)
{
    struct det_error error = { 0 };

    return settle(call, begin(call->self, cursor, &error), &error);
}

int file_sink_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct file_sink *sink = call->self;
    struct det_error error = { 0 };
    int r;

    r = begin(sink, cursor, &error);
    if (r < 0)
        return settle(call, r, &error);
    sink->format->write_row(sink, in, &sink->output.buffer);
    if (!sink->is_stdout)
        r = file_output_relieve(&sink->output, &error);
    else if (sink->output.buffer.size >= STDOUT_LARGE)
        r = write_stdout(call, sink, &error);
    return settle(call, r, &error);
}

int file_sink_flush(struct det_stage_call *call, void *cursor)
{
    struct file_sink *sink = call->self;
    struct det_error error = { 0 };
    int r;

    r = begin(sink, cursor, &error);
    if (r == 0)
        r = sink->is_stdout ? write_stdout(call, sink, &error)
                            : file_output_flush(&sink->output, cursor, &error);
    return settle(call, r, &error);
}
