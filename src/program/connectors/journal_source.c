/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_source.c - the rows of a stream of a journal, or of a stage of another flow, as they are
 * acknowledged. The journal is opened for reading; another process or flow may write it.
 *
 * Of a stage of a flow only its rows count: not its end, and not what it has rejected
 * (docs/formats/flow-log.md). */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/file_watch.h"
#include "connectors/line_row.h"
#include "os/os.h"

#define REC_SPEC "connectors/journal_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX      4096 /* of one turn */
#define FLOW_ROW_DATA 1    /* kind of a row that a stage has emitted */
#define RUN_SIZE      8

struct journal_source {
    struct journal_source_settings settings;
    const struct det_allocator *allocator;
    char path[DET_PATH_MAX];
    char folder[DET_PATH_MAX + 16]; /* of the journal */
    struct line_row line_row;
    struct det_journal *journal;
    struct det_journal_reader *reader;
    struct file_watch *watch;
    uint64_t run; /* of a flow; 0: a plain journal */
};

static int read_settings(
    struct journal_source *source, const struct det_stage *stage,
    const struct det_allocator *allocator, const char *folder, struct det_error *reterr)
{
    struct journal_source_settings *value = &source->settings;
    struct settings settings;
    int r;

    source->allocator = allocator;
    r = settings_open(
        &settings, stage, allocator, journal_source_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = settings_need(&settings, "path", value->path, "{path: readings}", reterr);
    if (r == 0)
        r = settings_path(&settings, "path", value->path, folder, source->path, reterr);
    if (r == 0)
        r = line_row_init(
            &source->line_row, &settings, value->format == JOURNAL_TEXT ? LINE_TEXT : LINE_JSON,
            value->field, allocator, reterr);
    source->line_row.unit = "position";
    source->line_row.flags = (value->strict ? 0u : (unsigned)DET_TEXT_EXTRA) |
                             (value->partial ? (unsigned)DET_TEXT_PARTIAL : 0u);
    if (!*value->stream)
        (void)det_text_copy(value->stream, sizeof value->stream, "main");
    settings_close(&settings);
    return r;
}

static void free_source(struct journal_source *source)
{
    det_journal_reader_close(source->reader);
    det_journal_close(source->journal);
    file_watch_close(source->watch);
    line_row_deinit(&source->line_row);
    DET_DELETE(source->allocator, source);
}

static int journal_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct journal_source *source = DET_NEW(NULL, struct journal_source);
    int r;

    if (!source)
        return DET_ERR_NO_MEMORY;
    r = read_settings(source, stage, NULL, folder, reterr);
    free_source(source);
    return r;
}

/* The folder of a flow has a file with the number of its last run. */
static void find_run(struct journal_source *source, struct det_world *world)
{
    char path[DET_PATH_MAX + 16], *text = NULL;
    size_t size = 0;

    (void)snprintf(path, sizeof path, "%s/latest", source->path);
    (void)snprintf(source->folder, sizeof source->folder, "%s", source->path);
    if (det_file_load(world, source->allocator, path, RUN_SIZE, &text, &size) < 0)
        return;
    if (size > 0 &&
        det_parse_u64(det_view_of(text, size - (text[size - 1] == '\n')), &source->run) == 0)
        (void)snprintf(
            source->folder, sizeof source->folder, "%s/%06llu", source->path,
            (unsigned long long)source->run);
    det_free(source->allocator, text, size + 1);
}

static int open_journal(
    struct journal_source *source, struct det_stage_call *call, struct det_error *reterr)
{
    struct det_journal_options options = {
        .world = call->world, .allocator = call->allocator, .is_read_only = true, .must_exist = true
    };
    char url[sizeof source->folder + 8];
    int r;

    find_run(source, det_world_or_real(call->world));
    (void)snprintf(url, sizeof url, "file:%s", source->folder);
    r = det_journal_open(url, &options, &source->journal, reterr);
    if (r < 0 || source->settings.once)
        return r;
    r = file_watch_open(call, &source->watch);
    if (r < 0)
        return det_error_set(
            reterr, r, "%.160s cannot be watched: %s", source->folder, det_error_text(r));
    file_watch_folder(source->watch, source->folder);
    return 0;
}

static int journal_open(struct det_stage_call *call)
{
    struct journal_source *source = DET_NEW(call->allocator, struct journal_source);
    struct det_error error = { 0 };
    int r;

    if (!source)
        return DET_ERR_NO_MEMORY;
    r = read_settings(source, call->stage, call->allocator, call->folder, &error);
    if (r == 0)
        r = open_journal(source, call, &error);
    if (r < 0) {
        free_source(source);
        error.code = r;
        return settings_refuse(call, &error);
    }
    call->self = source;
    return 0;
}

static void journal_close(struct det_stage_call *call)
{
    free_source(call->self);
}

static int fail_source(
    struct det_stage_call *call, const struct journal_source *source, int code,
    const struct det_error *error)
{
    return det_stage_fail(call, code, "%.120s: %s", source->folder, error->text);
}

/* Opens the reader at the cursor. 1: it is open; 0: the stream does not exist yet. */
static int begin_reading(
    struct det_stage_call *call, struct journal_source *source, struct journal_cursor *cursor)
{
    struct det_journal_reader_options options = { .one_stream = true };
    struct det_error error = { 0 };
    int r;

    if (cursor->has_begun && cursor->run != source->run)
        return det_stage_fail(
            call, DET_ERR_CONFLICT,
            "%.120s is at run %llu, but run %llu was read before: set path to the folder of that "
            "run, or begin a new run",
            source->path, (unsigned long long)source->run, (unsigned long long)cursor->run);
    r = det_journal_stream(source->journal, source->settings.stream, &options.stream, &error);
    if (r == DET_ERR_NOT_FOUND)
        return 0;
    if (r < 0)
        return fail_source(call, source, r, &error);
    if (!cursor->has_begun && source->settings.from_end)
        cursor->position = det_journal_acknowledged(source->journal);
    cursor->has_begun = true;
    cursor->run = source->run;
    options.from = cursor->position ? cursor->position + 1 : 0;
    r = det_journal_reader_open(source->journal, &options, &source->reader, &error);
    if (r == DET_ERR_RANGE)
        return det_stage_fail(
            call, r,
            "%.120s: position %llu was read, but what follows was dropped: begin a new run, "
            "or keep more",
            source->folder, (unsigned long long)cursor->position);
    return r < 0 ? fail_source(call, source, r, &error) : 1;
}

static int emit_record(
    struct det_stage_call *call, struct journal_source *source, const struct det_journal_row *row)
{
    struct det_error error;

    if (det_record_decode(
            source->line_row.record, row->data, row->size, source->line_row.row, &error) == 0)
        return det_stage_emit_at(call, source->line_row.row, row->event_time);
    (void)det_stage_reject(
        call, DET_REJECT_DESERIALIZATION, "%.160s, position %llu: %s", source->folder,
        (unsigned long long)row->position, error.text);
    return 0;
}

static int emit_row(
    struct det_stage_call *call, struct journal_source *source, const struct det_journal_row *row)
{
    if (source->run && row->kind != FLOW_ROW_DATA)
        return 0;
    if (source->settings.format == JOURNAL_RECORD)
        return emit_record(call, source, row);
    return line_row_emit(
        call, &source->line_row, det_view_of(row->data, row->size), source->folder, row->position);
}

static int wait_for_rows(struct det_stage_call *call, struct journal_source *source)
{
    (void)call;
    return source->settings.once ? DET_SOURCE_DONE : DET_SOURCE_IDLE;
}

static int journal_next(struct det_stage_call *call, void *cursor_memory)
{
    struct journal_cursor *cursor = cursor_memory;
    struct journal_source *source = call->self;
    uint32_t room = det_stage_room(call);
    struct det_journal_row row;
    struct det_error error = { 0 };
    int r;

    if (source->watch)
        file_watch_arm(source->watch, call);
    if (!source->reader) {
        r = begin_reading(call, source, cursor);
        if (r <= 0)
            return r < 0 ? r : wait_for_rows(call, source);
    }
    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        r = det_journal_reader_next(source->reader, &row, &error);
        if (r < 0)
            return fail_source(call, source, r, &error);
        if (r == 0)
            return wait_for_rows(call, source);
        cursor->position = row.position;
        r = emit_row(call, source, &row);
        if (r < 0)
            return r;
    }
    return DET_SOURCE_MORE;
}

const struct det_connector journal_source = {
    CONNECTOR_HEAD(journal, source),
    .cursor = { .get = journal_cursor_record },
    .functions = { .open = journal_open, .close = journal_close, .next = journal_next },
    .check = journal_check,
};
