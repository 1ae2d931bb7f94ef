/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_sink.c - the sink `journal`: rows into a stream of a journal, exactly once.
 *
 * A flush appends one group: the rows, and a row with the identity of the run and the positions of
 * what was delivered, in the stream `delivered.<flow>.<stage>`. A group survives whole or not at
 * all, so the last row of that stream says what is in the journal. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "connectors/columns.h"
#include "connectors/connectors.h"
#include "connectors/delivered.h"
#include "connectors/row_key.h"
#include "connectors/settings.h"
#include "os/os.h"

#define REC_SPEC "connectors/journal_sink.rec"
#include <detent/rec/declare.h>

/* A group is appended from this size on before the flush. */
#define GROUP_LARGE 4194304
#define ROWS_FIRST  256
#define WAIT_STEP   (50 * DET_MILLISECOND)

/* A row until its group is appended. */
struct kept_row {
    size_t begin; /* in the buffer */
    det_time event_time;
};

struct journal_sink {
    struct det_journal *journal;
    const struct det_record *record;
    struct journal_sink_settings settings;
    struct columns columns;
    struct delivered delivered;
    struct det_buffer data;
    struct kept_row *kept;
    struct det_journal_row *rows;
    size_t count, capacity;
    uint16_t stream, marks; /* of the rows, of the positions */
    bool is_binary;
    char url[DET_PATH_MAX + 8];
};

static int read_settings(
    struct journal_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    const char *folder, struct det_error *reterr)
{
    struct journal_sink_settings *value = &sink->settings;
    struct settings settings;
    char path[DET_PATH_MAX];
    int r;

    r = settings_open(
        &settings, stage, allocator, journal_sink_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    r = settings_need(&settings, "path", value->path, "path: readings", reterr);
    if (r == 0)
        r = settings_path(&settings, "path", value->path, folder, path, reterr);
    if (r == 0 && *value->format && strcmp(value->format, "json") != 0 &&
        strcmp(value->format, "record") != 0)
        r = settings_fail_key(
            &settings, "format", reterr, "unknown word '%s': use json or record", value->format);
    if (r == 0 && *value->durability && strcmp(value->durability, "disk") != 0 &&
        strcmp(value->durability, "os") != 0)
        r = settings_fail_key(
            &settings, "durability", reterr, "unknown word '%s': use disk or os",
            value->durability);
    settings_close(&settings);
    if (r < 0)
        return r;
    snprintf(sink->url, sizeof sink->url, "file:%s", path);
    sink->is_binary = strcmp(value->format, "record") == 0;
    return 0;
}

static int journal_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct journal_sink *sink = DET_NEW(NULL, struct journal_sink);
    int r;

    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, folder, reterr);
    DET_DELETE(NULL, sink);
    return r;
}

/* The last positions, if they are of this run. */
static int load_positions(
    struct journal_sink *sink, struct det_stage_call *call, struct det_error *reterr)
{
    struct det_journal_reader_options options = { .one_stream = true, .stream = sink->marks };
    struct det_journal_row row = { 0 };
    struct det_journal_reader *reader = NULL;
    char run[ROW_RUN_TEXT];
    size_t length = ROW_RUN_TEXT - 1;
    int r;

    (void)det_journal_last(sink->journal, sink->marks, NULL, &options.from);
    if (options.from == 0)
        return 0;
    r = det_journal_reader_open(sink->journal, &options, &reader, reterr);
    if (r < 0)
        return r;
    r = det_journal_reader_next(reader, &row, reterr);
    if (r > 0 && row.size > length && memcmp(row.data, row_run(call, run), length) == 0 &&
        !delivered_read(
            &sink->delivered, (const char *)row.data + length + 1, row.size - length - 1))
        r = det_error_set(
            reterr, DET_ERR_CORRUPT, "%s: the positions of the flow are damaged; begin a new run",
            sink->url);
    det_journal_reader_close(reader);
    return r < 0 ? r : 0;
}

static int open_journal(
    struct journal_sink *sink, struct det_stage_call *call, struct det_error *reterr)
{
    struct det_journal_options options = { .world = call->world, .allocator = call->allocator };
    const char *stream = *sink->settings.stream ? sink->settings.stream : "main";
    char marks[DET_JOURNAL_NAME_MAX + 32];
    int r;

    if (strcmp(sink->settings.durability, "os") == 0)
        options.durability = DET_JOURNAL_OS;
    snprintf(marks, sizeof marks, "delivered.%s.%s", call->flow, call->stage->name);
    if (strlen(marks) > DET_JOURNAL_NAME_MAX)
        snprintf(marks, sizeof marks, "delivered.%016" PRIx64, det_hash64(marks, strlen(marks), 1));
    r = det_journal_open(sink->url, &options, &sink->journal, reterr);
    if (r == 0)
        r = det_journal_stream(sink->journal, stream, &sink->stream, reterr);
    if (r == 0)
        r = det_journal_stream(sink->journal, marks, &sink->marks, reterr);
    return r < 0 ? r : load_positions(sink, call, reterr);
}

static void free_sink(struct det_stage_call *call, struct journal_sink *sink)
{
    det_journal_close(sink->journal);
    columns_deinit(&sink->columns);
    det_buffer_deinit(&sink->data);
    if (sink->kept)
        DET_DELETE_ARRAY(call->allocator, sink->kept, sink->capacity);
    if (sink->rows)
        DET_DELETE_ARRAY(call->allocator, sink->rows, sink->capacity);
    DET_DELETE(call->allocator, sink);
}

static int journal_open(struct det_stage_call *call)
{
    struct journal_sink *sink = DET_NEW(call->allocator, struct journal_sink);
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&sink->data, call->allocator);
    sink->record = det_record_of(call->stage->in);
    r = read_settings(sink, call->stage, call->allocator, call->folder, &error);
    if (r == 0)
        r = columns_init(&sink->columns, call->allocator, sink->record, COLUMNS_NESTED);
    if (r == 0)
        r = open_journal(sink, call, &error);
    if (r == 0) {
        call->self = sink;
        return 0;
    }
    free_sink(call, sink);
    if (!*error.text)
        (void)det_error_set(&error, r, "%s: %s", call->stage->name, det_error_text(r));
    return settings_refuse(call, &error);
}

static void journal_close(struct det_stage_call *call)
{
    free_sink(call, call->self);
    call->self = NULL;
}

/* The last row of a group is that of the positions. */
static int make_room(struct journal_sink *sink, const struct det_allocator *allocator)
{
    size_t capacity = sink->capacity ? sink->capacity * 2 : ROWS_FIRST;
    struct kept_row *kept;
    struct det_journal_row *rows;

    if (sink->count + 1 < sink->capacity)
        return 0;
    kept = DET_NEW_ARRAY(allocator, capacity, struct kept_row);
    rows = DET_NEW_ARRAY(allocator, capacity, struct det_journal_row);
    if (!kept || !rows) {
        if (kept)
            DET_DELETE_ARRAY(allocator, kept, capacity);
        if (rows)
            DET_DELETE_ARRAY(allocator, rows, capacity);
        return DET_ERR_NO_MEMORY;
    }
    if (sink->kept) {
        memcpy(kept, sink->kept, sink->count * sizeof *kept);
        DET_DELETE_ARRAY(allocator, sink->kept, sink->capacity);
        DET_DELETE_ARRAY(allocator, sink->rows, sink->capacity);
    }
    sink->kept = kept;
    sink->rows = rows;
    sink->capacity = capacity;
    return 0;
}

static int keep_row(struct journal_sink *sink, struct det_stage_call *call, const void *in)
{
    size_t begin = sink->data.size, max;
    void *target;
    int64_t size;
    int r;

    r = make_room(sink, call->allocator);
    if (r < 0)
        return r;
    if (sink->is_binary) {
        max = det_record_encoded_max(sink->record);
        target = det_buffer_extend(&sink->data, max);
        size = target ? det_record_encode(sink->record, in, target, max, NULL) : DET_ERR_NO_MEMORY;
        if (size < 0)
            return (int)size;
        buffer_cut(&sink->data, begin + (size_t)size);
    } else {
        columns_write_json(&sink->columns, in, &sink->data);
    }
    r = det_buffer_status(&sink->data);
    if (r < 0)
        return r;
    if (sink->data.size - begin > DET_JOURNAL_ROW_MAX) {
        buffer_cut(&sink->data, begin);
        return DET_ERR_LIMIT;
    }
    sink->kept[sink->count++] =
        (struct kept_row){ .begin = begin, .event_time = call->row.event_time };
    delivered_add(&sink->delivered, &call->row);
    return 0;
}

/* Points to the bytes of all rows; the last one is that of the positions. */
static void fill_rows(struct journal_sink *sink, size_t marks_begin)
{
    for (size_t i = 0; i <= sink->count; i++) {
        bool is_marks = i == sink->count;
        size_t begin = is_marks ? marks_begin : sink->kept[i].begin;
        size_t end = is_marks               ? sink->data.size
                     : i + 1 == sink->count ? marks_begin
                                            : sink->kept[i + 1].begin;

        sink->rows[i] =
            (struct det_journal_row){ .data = sink->data.data + begin,
                                      .size = (uint32_t)(end - begin),
                                      .stream = is_marks ? sink->marks : sink->stream,
                                      .event_time = is_marks ? 0 : sink->kept[i].event_time };
    }
}

static int append_group(
    struct journal_sink *sink, struct det_stage_call *call, uint64_t *ret, struct det_error *reterr)
{
    size_t marks_begin = sink->data.size;
    char run[ROW_RUN_TEXT];
    int r;

    det_buffer_append_text(&sink->data, row_run(call, run));
    det_buffer_append_char(&sink->data, ' ');
    delivered_write(&sink->delivered, &sink->data);
    r = det_buffer_status(&sink->data);
    if (r < 0)
        return det_error_set(reterr, r, "%s: out of memory", sink->url);
    fill_rows(sink, marks_begin);
    r = det_journal_append(sink->journal, sink->rows, sink->count + 1, ret, reterr);
    if (r < 0)
        return r;
    delivered_commit(&sink->delivered);
    det_buffer_clear(&sink->data);
    sink->count = 0;
    return 0;
}

static int settle(struct det_stage_call *call, int r, const struct det_error *error)
{
    return r < 0 ? det_stage_fail(call, r, "%s", *error->text ? error->text : det_error_text(r))
                 : 0;
}

static int journal_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct journal_sink *sink = call->self;
    struct det_error error = { 0 };
    int r = 0;

    (void)cursor;
    if (delivered_has(&sink->delivered, &call->row))
        return 0;
    if (sink->data.size >= GROUP_LARGE)
        r = append_group(sink, call, NULL, &error);
    if (r == 0)
        r = keep_row(sink, call, in);
    if (r == DET_ERR_LIMIT)
        return det_stage_reject(
            call, DET_REJECT_PERMANENT, "more than %d bytes in a row of a journal",
            DET_JOURNAL_ROW_MAX);
    return settle(call, r, &error);
}

static int journal_flush(struct det_stage_call *call, void *cursor)
{
    struct journal_sink *sink = call->self;
    struct det_error error = { 0 };
    struct det_world *world = det_world_or_real(call->world);
    uint64_t position = 0;
    int r = 0;

    (void)cursor;
    if (sink->count > 0)
        r = append_group(sink, call, &position, &error);
    if (r < 0)
        return settle(call, r, &error);
    position = det_journal_end(sink->journal);
    do {
        r = det_journal_wait(
            sink->journal, position, det_world_now(world, DET_CLOCK_MONOTONIC) + WAIT_STEP);
        if (r == DET_ERR_TIMEOUT && det_stage_is_cancelled(call))
            return DET_ERR_CANCELLED;
    } while (r == DET_ERR_TIMEOUT);
    if (r < 0)
        (void)det_journal_failure(sink->journal, &error);
    return settle(call, r, &error);
}

const struct det_connector journal_sink = {
    .name = "journal",
    .about = "rows into a stream of a journal, exactly once",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = journal_open,
                   .close = journal_close,
                   .deliver = journal_deliver,
                   .flush = journal_flush },
    .check = journal_check,
};
