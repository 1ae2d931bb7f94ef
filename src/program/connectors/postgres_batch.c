/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* postgres_batch.c - rows as lines of COPY, and the statements around them. */
#include "connectors/postgres_batch.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "record/field_value.h"

#define ROWS_FIRST 64
#define STAGING    "pg_temp.detent_rows"

void postgres_batch_init(struct postgres_batch_rows *batch, const struct det_allocator *allocator)
{
    *batch = (struct postgres_batch_rows){ .allocator = allocator };
    det_buffer_init(&batch->lines, allocator);
}

void postgres_batch_deinit(struct postgres_batch_rows *batch)
{
    det_buffer_deinit(&batch->lines);
    if (batch->rows)
        DET_DELETE_ARRAY(batch->allocator, batch->rows, batch->capacity);
    batch->rows = NULL;
    batch->count = batch->capacity = 0;
}

void postgres_batch_clear(struct postgres_batch_rows *batch)
{
    det_buffer_clear(&batch->lines);
    batch->count = 0;
}

static bool has_room(struct postgres_batch_rows *batch)
{
    size_t capacity = batch->capacity ? batch->capacity * 2 : ROWS_FIRST;
    struct postgres_row *rows;

    if (batch->count < batch->capacity)
        return true;
    rows = det_realloc(
        batch->allocator, batch->rows, batch->capacity * sizeof *rows, capacity * sizeof *rows);
    if (!rows)
        return false;
    batch->rows = rows;
    batch->capacity = capacity;
    return true;
}

/* Escapes what was appended from `begin` on: tab, line feed, return, backslash. */
static void escape_cell(struct det_buffer *buffer, size_t begin)
{
    size_t from = buffer->size, extra = 0, to;

    if (det_buffer_status(buffer) < 0)
        return;
    for (size_t i = begin; i < from; i++)
        extra += strchr("\t\n\r\\", buffer->data[i]) != NULL;
    if (extra == 0 || !det_buffer_extend(buffer, extra))
        return;
    to = buffer->size;
    while (from > begin) {
        char c = buffer->data[--from];

        buffer->data[--to] = (char)(c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c);
        if (strchr("\t\n\r\\", c))
            buffer->data[--to] = '\\';
    }
    det_assert(to == begin);
}

static void write_bytes(struct det_view bytes, struct det_buffer *buffer)
{
    static const char digits[] = "0123456789abcdef";

    det_buffer_append_text(buffer, "\\\\x");
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t byte = (uint8_t)bytes.data[i];

        det_buffer_append_char(buffer, digits[byte >> 4]);
        det_buffer_append_char(buffer, digits[byte & 15]);
    }
}

static void write_cell(const struct column *column, const void *in, struct det_buffer *buffer)
{
    size_t begin = buffer->size;

    if (!column_is_present(column, in)) {
        det_buffer_append_text(buffer, "\\N");
        return;
    }
    if (!column->is_composed && column->field->kind == DET_KIND_BYTES) {
        write_bytes(det_value_view(column->field, (const uint8_t *)in + column->offset), buffer);
        return;
    }
    column_write(column, in, buffer);
    if (column->is_composed || column->field->kind == DET_KIND_TEXT ||
        column->field->kind == DET_KIND_ENUM)
        escape_cell(buffer, begin);
}

int postgres_batch_add(
    struct postgres_batch_rows *batch, const struct sql_mapping *mapping,
    const struct det_row_info *info, const void *in)
{
    struct det_buffer *lines = &batch->lines;

    if (!has_room(batch))
        return DET_ERR_NO_MEMORY;
    batch->rows[batch->count] = (struct postgres_row){ .begin = lines->size, .info = *info };
    for (size_t i = 0; i < mapping->target_count; i++) {
        if (i > 0)
            det_buffer_append_char(lines, '\t');
        write_cell(mapping->targets[i].column, in, lines);
    }
    if (mapping->table.key_count > 0)
        det_buffer_format(lines, "\t%zu", batch->count);
    det_buffer_append_char(lines, '\n');
    batch->count++;
    return det_buffer_status(lines);
}

struct det_view postgres_batch_lines(
    const struct postgres_batch_rows *batch, size_t first, size_t count)
{
    size_t begin, end = batch->lines.size;

    det_assert(count > 0 && first + count <= batch->count);
    begin = batch->rows[first].begin;
    if (first + count < batch->count)
        end = batch->rows[first + count].begin;
    return det_view_of(batch->lines.data + begin, end - begin);
}

static void write_keys(const struct sql_table *table, struct det_buffer *buffer)
{
    const char *between = "";

    for (size_t i = 0; i < table->target_count; i++) {
        if (!table->targets[i].is_key)
            continue;
        det_buffer_format(buffer, "%s\"%s\"", between, table->targets[i].name);
        between = ", ";
    }
}

void postgres_write_staging(const struct sql_table *table, struct det_buffer *buffer)
{
    if (table->key_count == 0)
        return;
    det_buffer_append_text(
        buffer, "CREATE TEMP TABLE detent_rows ON COMMIT DELETE ROWS AS SELECT ");
    sql_write_targets(table, buffer);
    det_buffer_append_text(buffer, ", 0::bigint AS detent_order FROM ");
    sql_write_table_name(table, buffer);
    det_buffer_append_text(buffer, " WITH NO DATA; ");
}

static void write_copy(const struct sql_table *table, bool is_staged, struct det_buffer *buffer)
{
    det_buffer_append_text(buffer, "COPY ");
    if (is_staged)
        det_buffer_append_text(buffer, STAGING);
    else
        sql_write_table_name(table, buffer);
    det_buffer_append_text(buffer, " (");
    sql_write_targets(table, buffer);
    det_buffer_append_text(buffer, is_staged ? ", detent_order) FROM STDIN" : ") FROM STDIN");
}

void postgres_write_copy(const struct sql_table *table, struct det_buffer *buffer)
{
    bool is_staged = table->key_count > 0;

    write_copy(table, is_staged, buffer);
    if (!is_staged)
        return;
    det_buffer_append_text(buffer, "; INSERT INTO ");
    sql_write_table_name(table, buffer);
    det_buffer_append_text(buffer, " (");
    sql_write_targets(table, buffer);
    det_buffer_append_text(buffer, ") SELECT ");
    sql_write_targets(table, buffer);
    det_buffer_append_text(buffer, " FROM (SELECT DISTINCT ON (");
    write_keys(table, buffer);
    det_buffer_append_text(buffer, ") * FROM " STAGING " ORDER BY ");
    write_keys(table, buffer);
    det_buffer_append_text(buffer, ", detent_order DESC) latest");
    sql_write_conflict(table, buffer);
}
