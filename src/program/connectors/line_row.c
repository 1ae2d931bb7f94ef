/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_row.c - makes rows of lines. */
#include "connectors/line_row.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/memory.h"
#include "connectors/row_text.h"

/* Returns the only text field of a record; NULL: none, or several. */
static const struct det_field *only_text(const struct det_record *record)
{
    const struct det_field *found = NULL;

    for (size_t i = 0; i < record->field_count; i++)
        if (record->fields[i].kind == DET_KIND_TEXT &&
            !(record->fields[i].flags & DET_FIELD_ARRAY)) {
            if (found)
                return NULL;
            found = &record->fields[i];
        }
    return found;
}

static int find_field(
    struct line_row *line_row, const struct settings *settings, const char *name,
    struct det_error *reterr)
{
    if (*name)
        return settings_text_field(
            settings, "field", name, line_row->record, &line_row->field, reterr);
    line_row->field = only_text(line_row->record);
    if (line_row->field)
        return 0;
    return settings_fail(
        settings, NULL, reterr,
        "field is missing: name the field of %s that gets the text, of type str",
        line_row->record->name);
}

int line_row_init(
    struct line_row *line_row, const struct settings *settings, enum line_format format,
    const char *field, const struct det_allocator *allocator, struct det_error *reterr)
{
    int r;

    *line_row = (struct line_row){ .allocator = allocator,
                                   .record = stage_out(settings->stage),
                                   .format = format };
    if (format == LINE_JSON && *field)
        return settings_fail_key(
            settings, "field", reterr, "field is for a text, but the format is json: remove it");
    r = format == LINE_TEXT ? find_field(line_row, settings, field, reterr) : 0;
    if (r < 0)
        return r;
    line_row->row = det_alloc_zero(allocator, line_row->record->size);
    if (!line_row->row)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "%s: no memory for a row", settings->what);
    return 0;
}

void line_row_deinit(struct line_row *line_row)
{
    if (line_row->row)
        det_free(line_row->allocator, line_row->row, line_row->record->size);
    line_row->row = NULL;
}

static int reject_line(
    struct det_stage_call *call, const struct line_row *line_row, const char *name, uint64_t number,
    const char *reason)
{
    if (number == 0)
        (void)det_stage_reject(call, DET_REJECT_DESERIALIZATION, "%.160s: %s", name, reason);
    else
        (void)det_stage_reject(
            call, DET_REJECT_DESERIALIZATION, "%.160s, %s %llu: %s", name,
            line_row->unit ? line_row->unit : "line", (unsigned long long)number, reason);
    return 0;
}

static int emit_named(
    struct det_stage_call *call, const struct line_row *line_row, const char *name, uint64_t number)
{
    const char *reason =
        line_row->name_field
            ? row_set_text(line_row->name_field, line_row->row, det_view_text(name))
            : NULL;

    int r;

    if (reason)
        return reject_line(call, line_row, name, number, reason);
    r = det_stage_emit(call, line_row->row);
    return r < 0 ? r : 1;
}

static int emit_text(
    struct det_stage_call *call, struct line_row *line_row, struct det_view line, const char *name,
    uint64_t number)
{
    const char *reason;
    char text[96];

    if (line_row->truncates && line.size > line_row->field->capacity)
        line.size = det_utf8_check(line.data, line_row->field->capacity);
    reason = row_set_text(line_row->field, line_row->row, line);
    if (!reason)
        return emit_named(call, line_row, name, number);
    (void)snprintf(
        text, sizeof text, "the text of %zu byte%s %s", line.size, det_plural(line.size), reason);
    return reject_line(call, line_row, name, number, text);
}

int line_row_emit(
    struct det_stage_call *call, struct line_row *line_row, struct det_view line, const char *name,
    uint64_t number)
{
    struct det_error error;
    int r;

    det_assert(line_row->row != NULL);
    if (line_row->format == LINE_TEXT)
        return emit_text(call, line_row, line, name, number);
    r = det_record_from_json(
        line_row->record, line.data, line.size, line_row->flags, line_row->row, &error);
    if (r < 0)
        return reject_line(call, line_row, name, number, error.text);
    return emit_named(call, line_row, name, number);
}
