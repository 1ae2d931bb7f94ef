/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* csv_source.c - a row for each row of a CSV file (RFC 4180).
 *
 *     columns[i] = field of the output, NULL: ignored         bound by the header, or in order
 *
 * A row that is malformed or does not fit is rejected with its line, and reading goes on. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/connectors.h"
#include "connectors/csv_reader.h"
#include "connectors/file_cursor.h"
#include "connectors/row_text.h"
#include "connectors/settings.h"
#include "os/os.h"

#define REC_SPEC "connectors/csv_source.rec"
#include <detent/rec/declare.h>

#define ROWS_MAX 4096 /* of one turn */

/* What `columns` says about a field. */
struct wish {
    const struct det_field *field;
    char *header;    /* title of its column; NULL: the number is set */
    uint32_t number; /* from 1 */
};

struct csv {
    struct csv_settings settings;
    const struct det_allocator *allocator;
    const struct det_record *record;
    char path[DET_PATH_MAX];
    char delimiter;
    bool has_begun, is_bound;
    struct input input;
    struct wish wishes[DET_RECORD_FIELD_MAX];
    uint32_t wish_count;
    const struct det_field *columns[CSV_CELLS_MAX];
    uint32_t column_count; /* of the header; 0: none */
    struct csv_row cells;
    void *row;
};

static int add_wish(
    struct csv *csv, const struct settings *settings, const struct det_datum *item,
    struct det_error *reterr)
{
    struct wish *wish = &csv->wishes[csv->wish_count];
    int r;

    r = settings_field(settings, item, item->key, csv->record, &wish->field, reterr);
    if (r < 0)
        return r;
    if (!row_takes_text(wish->field))
        return settings_fail(
            settings, item, reterr,
            "%s is a list or a record, which CSV cannot have: map it to "
            "another field and parse it",
            item->key);
    if (item->kind == DET_DATUM_SIGNED && item->as.number >= 1 &&
        item->as.number <= CSV_CELLS_MAX) {
        wish->number = (uint32_t)item->as.number;
    } else if (item->kind == DET_DATUM_TEXT && !csv->settings.no_header) {
        wish->header = det_string_copy(csv->allocator, item->text);
        if (!wish->header)
            return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", item->key);
    } else {
        return settings_fail(
            settings, item, reterr, "%s: expected %s the number of its column, from 1 to %d",
            item->key, csv->settings.no_header ? "" : "the title or", CSV_CELLS_MAX);
    }
    csv->wish_count++;
    return 0;
}

/* Without `columns` each field has the column with its name, or is in order. */
static int add_wishes(struct csv *csv, const struct settings *settings, struct det_error *reterr)
{
    const struct det_datum *map = det_datum_get(settings->root, "columns");
    int r = 0;

    if (map && map->kind != DET_DATUM_MAP)
        return settings_fail(
            settings, map, reterr,
            "columns: expected a map from fields to columns, such as {price: \"Unit price\"}");
    for (const struct det_datum *item = map ? map->first : NULL; item && r == 0; item = item->next)
        r = add_wish(csv, settings, item, reterr);
    if (map || r < 0)
        return r;
    for (size_t i = 0; i < csv->record->field_count && r == 0; i++) {
        const struct det_field *field = &csv->record->fields[i];
        struct wish *wish = &csv->wishes[csv->wish_count];

        if (!row_takes_text(field))
            continue;
        wish->field = field;
        wish->number = csv->settings.no_header ? csv->wish_count + 1 : 0;
        wish->header = wish->number ? NULL : det_string_copy(csv->allocator, field->name);
        if (!wish->number && !wish->header)
            r = det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: out of memory", field->name);
        else
            csv->wish_count++;
    }
    return r;
}

static int read_delimiter(
    struct csv *csv, const struct settings *settings, struct det_error *reterr)
{
    const char *text = csv->settings.delimiter;

    csv->delimiter = !*text ? ',' : strcmp(text, "tab") == 0 ? '\t' : *text;
    if (strlen(text) > 1 && csv->delimiter != '\t')
        return settings_fail_key(
            settings, "delimiter", reterr, "delimiter is one character, or tab");
    if (csv->delimiter == '"' || csv->delimiter == '\n' || csv->delimiter == '\r' ||
        (unsigned char)csv->delimiter >= 0x80)
        return settings_fail_key(
            settings, "delimiter", reterr,
            "delimiter is a character that neither quotes nor ends a line, such as ';'");
    return 0;
}

static void free_csv(struct csv *csv)
{
    input_close(&csv->input);
    for (uint32_t i = 0; i < csv->wish_count; i++)
        det_free_string(csv->allocator, csv->wishes[i].header);
    if (csv->row)
        det_free(csv->allocator, csv->row, csv->record->size);
    DET_DELETE(csv->allocator, csv);
}

static int fill_csv(
    struct csv *csv, const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    static const char *const trees[] = { "columns", NULL };
    struct settings settings;
    int r;

    r = settings_open(
        &settings, stage, csv->allocator, csv_settings_record(), &csv->settings, trees, reterr);
    if (r < 0)
        return r;
    r = settings_need(&settings, "path", csv->settings.path, "{path: in.csv}", reterr);
    if (r == 0 && strcmp(csv->settings.path, "-") == 0)
        (void)det_text_copy(csv->path, sizeof csv->path, "-");
    else if (r == 0)
        r = settings_path(&settings, "path", csv->settings.path, folder, csv->path, reterr);
    if (r == 0)
        r = read_delimiter(csv, &settings, reterr);
    if (r == 0)
        r = add_wishes(csv, &settings, reterr);
    settings_close(&settings);
    return r;
}

static int make_csv(
    const struct det_stage *stage, const struct det_allocator *allocator, const char *folder,
    struct csv **ret, struct det_error *reterr)
{
    struct csv *csv = DET_NEW(allocator, struct csv);
    int r;

    if (!csv)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "'%s': out of memory", stage->name);
    csv->allocator = allocator;
    csv->record = stage_out(stage);
    csv->row = det_alloc_zero(allocator, csv->record->size);
    r = csv->row
            ? fill_csv(csv, stage, folder, reterr)
            : det_error_set(reterr, DET_ERR_NO_MEMORY, "'%s': no memory for a row", stage->name);
    if (r < 0) {
        free_csv(csv);
        return r;
    }
    *ret = csv;
    return 0;
}

static int csv_check(const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    struct csv *csv = NULL;
    int r;

    r = make_csv(stage, NULL, folder, &csv, reterr);
    if (r == 0)
        free_csv(csv);
    return r;
}

static void csv_close(struct det_stage_call *call)
{
    free_csv(call->self);
}

static int csv_open(struct det_stage_call *call)
{
    struct det_error error;
    struct csv *csv = NULL;
    int r;

    r = make_csv(call->stage, call->allocator, call->folder, &csv, &error);
    if (r < 0)
        return settings_refuse(call, &error);
    r = input_open(&csv->input, call, csv->path, DET_JOURNAL_ROW_MAX, &error);
    if (r < 0) {
        free_csv(csv);
        return settings_refuse(call, &error);
    }
    call->self = csv;
    return 0;
}

static int reject_row(
    struct det_stage_call *call, const struct csv *csv, uint64_t line, const char *what,
    const char *reason)
{
    (void)det_stage_reject(
        call, DET_REJECT_DESERIALIZATION, "%.160s, line %llu%s%s: %s", csv->input.name,
        (unsigned long long)line, *what ? ", column " : "", what, reason);
    return 0;
}

/* The row is too long, probably by an open quote: it is cut at its first line end, or at the limit,
 * which counts as a line. */
static enum csv_result cut_row(struct csv *csv, struct det_view unread)
{
    const char *end = memchr(unread.data, '\n', unread.size);

    csv->cells.lines = 1;
    csv->cells.size = end ? (size_t)(end - unread.data) + 1 : unread.size;
    return CSV_OPEN;
}

/* Splits the next row. 1: `cells` has it; 0: none now, or the end; otherwise a malformed one, which
 * was rejected, is DET_ERR_MALFORMED. */
static int next_row(struct det_stage_call *call, struct csv *csv, struct file_cursor *cursor)
{
    for (;;) {
        struct det_view unread = input_view(&csv->input);
        enum csv_result result = unread.size == 0
                                     ? CSV_PARTIAL
                                     : csv_split(
                                           input_text(&csv->input), unread.size, csv->delimiter,
                                           csv->input.is_ended, &csv->cells);
        int r;

        if (result == CSV_PARTIAL) {
            r = input_more(&csv->input);
            if (r == 0 && csv->input.is_ended && unread.size)
                continue;
            if (r == 0 || (r < 0 && r != DET_ERR_LIMIT))
                return r;
            if (r == 1)
                continue;
            result = cut_row(csv, unread);
        }
        input_take(&csv->input, csv->cells.size);
        cursor->offset = csv->input.offset;
        cursor->lines += csv->cells.lines;
        if (result == CSV_ROW)
            return 1;
        (void)reject_row(call, csv, cursor->lines, "", csv_result_text(result));
        return DET_ERR_MALFORMED;
    }
}

/* Returns the index of a column by its title; UINT32_MAX: there is none. */
static uint32_t find_column(const struct csv *csv, const char *title)
{
    for (uint32_t i = 0; i < csv->cells.count; i++)
        if (det_view_is(csv->cells.cells[i], title))
            return i;
    return UINT32_MAX;
}

static int fail_column(struct det_stage_call *call, const struct csv *csv, const struct wish *wish)
{
    struct det_view first = csv->cells.cells[0];
    bool is_shown = first.size < 32 && det_utf8_check(first.data, first.size) == first.size;

    return det_stage_fail(
        call, DET_ERR_MISSING_FIELD,
        "%.120s has no column '%.48s' for the field %s: its %u column%s with '%.*s'; set columns, "
        "or make the field OPTIONAL",
        csv->input.name, wish->header ? wish->header : "", wish->field->name, csv->cells.count,
        csv->cells.count == 1 ? " begins" : "s begin", is_shown ? (int)first.size : 0, first.data);
}

/* `cells` has the header, or nothing without one. */
static int bind_columns(struct det_stage_call *call, struct csv *csv)
{
    csv->column_count = csv->settings.no_header ? 0 : csv->cells.count;
    for (uint32_t i = 0; i < csv->wish_count; i++) {
        const struct wish *wish = &csv->wishes[i];
        uint32_t column = wish->header ? find_column(csv, wish->header) : wish->number - 1;

        if (csv->column_count && column >= csv->column_count) {
            if (wish->field->flags & DET_FIELD_OPTIONAL)
                continue;
            return fail_column(call, csv, wish);
        }
        if (csv->columns[column])
            return det_stage_fail(
                call, DET_ERR_MISSING_FIELD, "column %u is for the field %s and for %s: use one",
                column + 1, csv->columns[column]->name, wish->field->name);
        csv->columns[column] = wish->field;
    }
    csv->is_bound = true;
    return 0;
}

/* A mark of byte order, which some programs write at the begin of a file. */
static void skip_mark(struct csv *csv)
{
    struct det_view unread = input_view(&csv->input);

    if (csv->input.offset == 0 && unread.size >= 3 && memcmp(unread.data, "\xef\xbb\xbf", 3) == 0)
        input_take(&csv->input, 3);
}

/* Reads what is before the first row. 1: done; 0: not now, or the input has ended. */
static int read_header(struct det_stage_call *call, struct csv *csv, struct file_cursor *cursor)
{
    struct det_view line;
    int r;

    while (cursor->lines < csv->settings.skip) {
        r = input_line(&csv->input, true, &line);
        if (r == 0 || (r < 0 && r != DET_ERR_LIMIT))
            return r;
        cursor->lines++;
    }
    cursor->offset = csv->input.offset;
    if (!csv->settings.no_header) {
        if (input_view(&csv->input).size == 0) {
            r = input_more(&csv->input);
            if (r <= 0)
                return r;
        }
        skip_mark(csv);
        r = next_row(call, csv, cursor);
        if (r == DET_ERR_MALFORMED)
            return det_stage_fail(
                call, r, "%.160s has no valid header: correct it, or set no_header",
                csv->input.name);
        if (r <= 0)
            return r;
    }
    r = bind_columns(call, csv);
    return r < 0 ? r : 1;
}

/* The header is read again by each open; then a file is continued at the cursor. */
static int begin_csv(struct det_stage_call *call, struct csv *csv, struct file_cursor *cursor)
{
    struct file_cursor header = { 0 };
    int r;

    if (!csv->has_begun) {
        r = file_cursor_begin(call, &csv->input, cursor);
        if (r < 0)
            return r;
        if (csv->input.is_file)
            input_seek(&csv->input, 0);
        csv->has_begun = true;
    }
    r = read_header(call, csv, csv->input.is_file ? &header : cursor);
    if (r < 0 && r != DET_ERR_MISSING_FIELD && r != DET_ERR_MALFORMED)
        return file_cursor_fail(call, &csv->input, r);
    if (r <= 0 || !csv->input.is_file)
        return r;
    if (cursor->offset > csv->input.offset) {
        input_seek(&csv->input, cursor->offset);
        return r;
    }
    cursor->offset = header.offset;
    cursor->lines = header.lines;
    return r;
}

static int emit_row(struct det_stage_call *call, struct csv *csv, uint64_t line)
{
    const struct csv_row *cells = &csv->cells;
    char text[96];

    if (cells->count == 1 && cells->cells[0].size == 0 && csv->column_count != 1)
        return 0;
    if (csv->column_count && cells->count != csv->column_count) {
        (void)snprintf(
            text, sizeof text, "the row has %u cell%s, the header has %u", cells->count,
            det_plural(cells->count), csv->column_count);
        return reject_row(call, csv, line, "", text);
    }
    for (uint32_t i = 0; i < csv->wish_count && !csv->column_count; i++)
        if (csv->wishes[i].number > cells->count &&
            !(csv->wishes[i].field->flags & DET_FIELD_OPTIONAL))
            return reject_row(
                call, csv, line, csv->wishes[i].field->name, "the row has fewer columns");
    for (uint32_t i = 0; i < cells->count; i++) {
        const char *reason =
            csv->columns[i] ? row_set_text(csv->columns[i], csv->row, cells->cells[i]) : NULL;

        if (reason)
            return reject_row(call, csv, line, csv->columns[i]->name, reason);
    }
    return det_stage_emit(call, csv->row);
}

static int csv_next(struct det_stage_call *call, void *cursor_memory)
{
    struct file_cursor *cursor = cursor_memory;
    struct csv *csv = call->self;
    uint32_t room = det_stage_room(call);
    int r;

    if (!csv->is_bound) {
        r = begin_csv(call, csv, cursor);
        if (r <= 0)
            return r < 0 ? r : csv->input.is_ended ? DET_SOURCE_DONE : DET_SOURCE_IDLE;
    }
    room = room < ROWS_MAX ? room : ROWS_MAX;
    for (uint32_t i = 0; i < room; i++) {
        uint64_t line = cursor->lines + 1;

        r = next_row(call, csv, cursor);
        if (r == 0)
            return csv->input.is_ended ? DET_SOURCE_DONE : DET_SOURCE_IDLE;
        if (r < 0 && r != DET_ERR_MALFORMED)
            return file_cursor_fail(call, &csv->input, r);
        r = r == 1 ? emit_row(call, csv, line) : 0;
        if (r < 0)
            return r;
    }
    return DET_SOURCE_MORE;
}

const struct det_connector csv_source = {
    CONNECTOR_HEAD(csv, source),
    .cursor = { .get = file_cursor_record },
    .functions = { .open = csv_open, .close = csv_close, .next = csv_next },
    .check = csv_check,
};
