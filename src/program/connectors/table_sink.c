/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_sink.c - the sink `table`: rows as an aligned table on standard output.
 *
 * Without a key rows are appended. With a key the table has the last row of each key: a terminal
 * shows it live, anything else gets it once, at the end. Sensitive fields are redacted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/descriptor_write.h"
#include "connectors/settings.h"
#include "connectors/table_view.h"
#include "os/os.h"

#define REC_SPEC "connectors/table_sink.rec"
#include <detent/rec/declare.h>

#define WIDTH      40
#define WIDTH_MIN  8
#define ROWS       20
#define ROWS_MAX   1000
#define BATCH_MAX  1048576 /* bytes of cells before they are printed */
#define DRAW_PAUSE (100 * DET_MILLISECOND)

/* The last row of a key. */
struct shown_row {
    uint64_t key;    /* a hash of its text */
    uint64_t number; /* of the change */
    struct det_buffer cells;
};

struct table_sink {
    struct table_sink_settings settings;
    struct columns columns;
    struct table_view view;
    const struct column *key; /* NULL: rows are appended */
    struct det_buffer cells;  /* of rows to append */
    struct det_buffer text;
    struct shown_row *shown;
    size_t shown_count, shown_max;
    uint64_t number;   /* of changes */
    size_t lines;      /* on the terminal */
    det_time drawn_at; /* monotonic */
    bool is_terminal, has_head, has_changed;
};

static int select_columns(
    struct table_sink *sink, const struct settings *settings, struct det_error *reterr)
{
    const struct table_sink_settings *value = &sink->settings;
    char names[160];

    for (uint32_t i = 0; i < value->columns_count; i++) {
        const struct column *column = columns_find(&sink->columns, value->columns[i]);

        if (!column)
            return settings_fail_key(
                settings, "columns", reterr, "unknown field '%s'; the fields are %s",
                value->columns[i], columns_names(&sink->columns, names, sizeof names));
        (void)table_view_add(&sink->view, column);
    }
    for (size_t i = 0; i < sink->columns.count && value->columns_count == 0; i++)
        (void)table_view_add(&sink->view, &sink->columns.list[i]);
    sink->key = *value->key ? columns_find(&sink->columns, value->key) : NULL;
    if (*value->key && !sink->key)
        return settings_fail_key(
            settings, "key", reterr, "unknown field '%s'; the fields are %s", value->key,
            columns_names(&sink->columns, names, sizeof names));
    return 0;
}

static int read_settings(
    struct table_sink *sink, const struct det_stage *stage, const struct det_allocator *allocator,
    struct det_error *reterr)
{
    struct table_sink_settings *value = &sink->settings;
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, allocator, table_sink_settings_record(), value, NULL, reterr);
    if (r < 0)
        return r;
    table_view_init(&sink->view, allocator, value->width >= WIDTH_MIN ? value->width : WIDTH);
    sink->shown_max = value->rows ? value->rows : ROWS;
    if (value->width && value->width < WIDTH_MIN)
        r = settings_fail_key(&settings, "width", reterr, "the smallest width is %d", WIDTH_MIN);
    if (r == 0 && value->rows > ROWS_MAX)
        r = settings_fail_key(&settings, "rows", reterr, "at most %d rows", ROWS_MAX);
    if (r == 0 &&
        columns_init(&sink->columns, allocator, det_record_of(stage->in), COLUMNS_REDACTED) < 0)
        r = det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", settings.what);
    if (r == 0)
        r = select_columns(sink, &settings, reterr);
    settings_close(&settings);
    return r;
}

static void free_sink(struct table_sink *sink, const struct det_allocator *allocator)
{
    for (size_t i = 0; i < sink->shown_count; i++)
        det_buffer_deinit(&sink->shown[i].cells);
    if (sink->shown)
        DET_DELETE_ARRAY(allocator, sink->shown, sink->shown_max);
    columns_deinit(&sink->columns);
    table_view_deinit(&sink->view);
    det_buffer_deinit(&sink->cells);
    det_buffer_deinit(&sink->text);
    DET_DELETE(allocator, sink);
}

static int table_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct table_sink *sink = DET_NEW(NULL, struct table_sink);
    int r;

    (void)folder;
    if (!sink)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", stage->name);
    r = read_settings(sink, stage, NULL, reterr);
    free_sink(sink, NULL);
    return r;
}

static int table_open(struct det_stage_call *call)
{
    struct table_sink *sink = DET_NEW(call->allocator, struct table_sink);
    const char *no_color = getenv("NO_COLOR");
    struct det_error error = { 0 };
    int r;

    if (!sink)
        return DET_ERR_NO_MEMORY;
    det_buffer_init(&sink->cells, call->allocator);
    det_buffer_init(&sink->text, call->allocator);
    r = read_settings(sink, call->stage, call->allocator, &error);
    if (r < 0)
        r = settings_refuse(call, &error);
    sink->is_terminal = isatty(STDOUT_FILENO);
    sink->view.is_colored = sink->is_terminal && !(no_color && *no_color);
    if (r == 0) {
        sink->shown = DET_NEW_ARRAY(call->allocator, sink->shown_max, struct shown_row);
        r = sink->shown ? 0 : DET_ERR_NO_MEMORY;
    }
    if (r < 0)
        free_sink(sink, call->allocator);
    else
        call->self = sink;
    return r;
}

static void table_close(struct det_stage_call *call)
{
    free_sink(call->self, call->allocator);
    call->self = NULL;
}

static int print_text(struct table_sink *sink, struct det_stage_call *call)
{
    int r = det_buffer_status(&sink->text);

    if (r == 0)
        r = descriptor_write(call, STDOUT_FILENO, sink->text.data, sink->text.size);
    det_buffer_clear(&sink->text);
    if (r == 0 || r == DET_ERR_CANCELLED)
        return r;
    return det_stage_fail(
        call, r, "standard output: %s; check the program that reads it", det_error_text(r));
}

static int print_rows(struct table_sink *sink, struct det_stage_call *call)
{
    const char *cells = det_buffer_text(&sink->cells), *end = cells + sink->cells.size;

    if (det_buffer_status(&sink->cells) < 0)
        return det_stage_fail(call, DET_ERR_NO_MEMORY, "table: out of memory");
    for (const char *at = cells; at < end;)
        at += table_view_fit(&sink->view, at);
    if (!sink->has_head)
        table_view_head(&sink->view, &sink->text);
    sink->has_head = true;
    for (const char *at = cells; at < end;)
        at += table_view_line(&sink->view, at, &sink->text);
    det_buffer_clear(&sink->cells);
    return print_text(sink, call);
}

/* The row of this key, or a free one, or the one that has not changed for the longest time. */
static struct shown_row *find_shown(struct table_sink *sink, uint64_t key)
{
    struct shown_row *oldest = sink->shown;

    for (size_t i = 0; i < sink->shown_count; i++) {
        if (sink->shown[i].key == key)
            return &sink->shown[i];
        if (sink->shown[i].number < oldest->number)
            oldest = &sink->shown[i];
    }
    if (sink->shown_count < sink->shown_max)
        oldest = &sink->shown[sink->shown_count++];
    oldest->key = key;
    return oldest;
}

static int show_row(struct table_sink *sink, struct det_stage_call *call, const void *in)
{
    struct shown_row *shown;

    det_buffer_clear(&sink->cells);
    column_write(sink->key, in, &sink->cells);
    shown = find_shown(sink, det_hash64(det_buffer_text(&sink->cells), sink->cells.size, 1));
    shown->number = ++sink->number;
    if (!shown->cells.data)
        det_buffer_init(&shown->cells, call->allocator);
    det_buffer_clear(&shown->cells);
    table_view_cells(&sink->view, in, &shown->cells);
    sink->has_changed = true;
    return det_buffer_status(&shown->cells) < 0 || det_buffer_status(&sink->cells) < 0
               ? det_stage_fail(call, DET_ERR_NO_MEMORY, "table: out of memory")
               : 0;
}

static int draw(struct table_sink *sink, struct det_stage_call *call)
{
    for (size_t i = 0; i < sink->shown_count; i++)
        (void)table_view_fit(&sink->view, sink->shown[i].cells.data);
    if (sink->lines > 0)
        det_buffer_format(&sink->text, "\x1b[%zuA\x1b[J", sink->lines);
    table_view_head(&sink->view, &sink->text);
    for (size_t i = 0; i < sink->shown_count; i++)
        (void)table_view_line(&sink->view, sink->shown[i].cells.data, &sink->text);
    sink->lines = sink->shown_count + 1;
    sink->has_changed = false;
    return print_text(sink, call);
}

static int table_deliver(struct det_stage_call *call, void *cursor, const void *in)
{
    struct table_sink *sink = call->self;

    (void)cursor;
    if (sink->key)
        return show_row(sink, call, in);
    table_view_cells(&sink->view, in, &sink->cells);
    return sink->cells.size >= BATCH_MAX ? print_rows(sink, call) : 0;
}

/* At most ten times a second. */
static int draw_live(struct table_sink *sink, struct det_stage_call *call)
{
    struct det_world *world = det_world_or_real(call->world);
    det_time next = sink->drawn_at + DRAW_PAUSE;

    while (sink->drawn_at && det_world_now(world, DET_CLOCK_MONOTONIC) < next)
        if (det_stage_wait(call, next) == DET_ERR_CANCELLED)
            return DET_ERR_CANCELLED;
    sink->drawn_at = det_world_now(world, DET_CLOCK_MONOTONIC);
    return draw(sink, call);
}

static int table_flush(struct det_stage_call *call, void *cursor)
{
    struct table_sink *sink = call->self;

    (void)cursor;
    if (!sink->key)
        return sink->cells.size > 0 ? print_rows(sink, call) : 0;
    return sink->is_terminal && sink->has_changed ? draw_live(sink, call) : 0;
}

static int table_drain(struct det_stage_call *call)
{
    struct table_sink *sink = call->self;

    return sink->key && sink->has_changed ? draw(sink, call) : 0;
}

const struct det_connector table_sink = {
    .name = "table",
    .about = "rows as a table on standard output; with a key live, one row for each key",
    .kinds = 1 << DET_STAGE_SINK,
    .flags = DET_STAGE_ASYNC | DET_STAGE_BUFFERED,
    .functions = { .open = table_open,
                   .close = table_close,
                   .deliver = table_deliver,
                   .flush = table_flush,
                   .drain = table_drain },
    .check = table_check,
};
