/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* columns.c - the fields of a record as named columns, and their values as text. */
#include "connectors/columns.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/number.h"
#include "record/text_sink.h"
#include "json/writer.h"

#define CAPACITY_FIRST 16
/* Digits of the largest number of 64 bits, and its sign. */
#define INTEGER_TEXT 21

static struct column *add_column(struct columns *columns)
{
    size_t capacity = columns->capacity ? columns->capacity * 2 : CAPACITY_FIRST;
    struct column *list;

    if (columns->count < columns->capacity)
        return &columns->list[columns->count];
    list = det_realloc(
        columns->allocator, columns->list, columns->capacity * sizeof *list,
        capacity * sizeof *list);
    if (!list)
        return NULL;
    columns->list = list;
    columns->capacity = capacity;
    return &list[columns->count];
}

/* The name with its quotes and colon, for each row. */
static int add_key(const struct det_allocator *allocator, struct column *column)
{
    struct det_buffer text;

    det_buffer_init(&text, allocator);
    det_json_quote(&text, det_view_text(column->name));
    det_buffer_append_char(&text, ':');
    if (det_buffer_status(&text) == 0)
        column->key = det_string_copy(allocator, det_buffer_text(&text));
    column->key_size = text.size;
    det_buffer_deinit(&text);
    return column->key ? 0 : DET_ERR_NO_MEMORY;
}

static int add_field(struct columns *columns, struct det_walk *walk)
{
    const struct det_field *field = walk->field;
    uint32_t base = (uint32_t)det_walk_frame(walk)->base;
    char place[DET_PLACE_TEXT];
    const char *name;
    struct column *column = add_column(columns);

    if (!column)
        return DET_ERR_NO_MEMORY;
    name = strchr(det_walk_place(walk, place, sizeof place), '.');
    det_assert(name);
    *column = (struct column){
        .name = det_string_copy(columns->allocator, name + 1),
        .field = field,
        .offset = base + field->offset,
        .presence = base + field->presence,
        .is_optional = (field->flags & DET_FIELD_OPTIONAL) != 0,
        .is_composed = (field->flags & DET_FIELD_ARRAY) || field->kind == DET_KIND_RECORD,
        .is_redacted = (field->flags & DET_FIELD_SENSITIVE) && (columns->flags & COLUMNS_REDACTED),
        .hides_sensitive = (columns->flags & COLUMNS_REDACTED) != 0,
        .alone = { .name = "value", .version = 1, .fields = field, .field_count = 1 },
    };
    column->alone.size = det_walk_frame(walk)->place.record->size;
    if (!column->name)
        return DET_ERR_NO_MEMORY;
    columns->count++;
    return add_key(columns->allocator, column);
}

/* A record that is flattened: exactly one of it is always there. */
static bool is_flat(const struct columns *columns, const struct det_field *field)
{
    return field->kind == DET_KIND_RECORD && !(columns->flags & COLUMNS_NESTED) &&
           !(field->flags & (DET_FIELD_ARRAY | DET_FIELD_OPTIONAL)) &&
           !((field->flags & DET_FIELD_SENSITIVE) && (columns->flags & COLUMNS_REDACTED));
}

int columns_init(
    struct columns *columns, const struct det_allocator *allocator, const struct det_record *record,
    unsigned flags)
{
    struct det_walk walk;
    enum det_walk_step step;
    int r = 0;

    *columns = (struct columns){ .allocator = allocator, .flags = flags };
    det_walk_init(&walk, record, NULL);
    while (r == 0 && (step = det_walk_next(&walk)) != DET_WALK_END) {
        if (step != DET_WALK_FIELD || is_flat(columns, walk.field))
            continue;
        r = add_field(columns, &walk);
        det_walk_skip(&walk);
    }
    if (r < 0)
        columns_deinit(columns);
    return r;
}

void columns_deinit(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        det_free_string(columns->allocator, columns->list[i].name);
        det_free_string(columns->allocator, columns->list[i].key);
    }
    det_free(columns->allocator, columns->list, columns->capacity * sizeof *columns->list);
    *columns = (struct columns){ 0 };
}

const struct column *columns_find(const struct columns *columns, const char *name)
{
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->list[i].name, name) == 0)
            return &columns->list[i];
    return NULL;
}

const char *columns_names(const struct columns *columns, char *target, size_t capacity)
{
    struct det_output output = { .target = target, .capacity = capacity };

    for (size_t i = 0; i < columns->count; i++) {
        if (i > 0)
            det_output_text(&output, ", ");
        det_output_text(&output, columns->list[i].name);
    }
    (void)det_output_finish(&output);
    return target;
}

bool column_is_present(const struct column *column, const void *value)
{
    return !column->is_optional || ((const uint8_t *)value)[column->presence];
}

static void write_unsigned(struct det_buffer *buffer, uint64_t number, bool is_negative)
{
    char text[INTEGER_TEXT];
    size_t at = sizeof text;

    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    if (is_negative)
        text[--at] = '-';
    det_buffer_append(buffer, text + at, sizeof text - at);
}

static void write_signed(struct det_buffer *buffer, int64_t number)
{
    write_unsigned(buffer, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, number < 0);
}

/* Numbers with few decimals, such as 21.5, without the C library: a tenth of the time. The quotient
 * of two exact numbers is the double that the text reads back as, so the result is that of
 * det_format_double(). False: not such a number. */
static bool write_decimal(struct det_buffer *buffer, double number)
{
    double power = 10;

    if (!(fabs(number) >= 1e-4 && fabs(number) < 1e9))
        return false;
    for (unsigned digits = 1; digits <= 6; digits++, power *= 10) {
        double scaled = rint(fabs(number) * power);
        uint64_t whole, part, unit = (uint64_t)power;
        char text[8];

        if (scaled / power != fabs(number))
            continue;
        whole = (uint64_t)scaled / unit;
        part = (uint64_t)scaled % unit;
        write_unsigned(buffer, whole, number < 0);
        text[0] = '.';
        for (unsigned i = digits; i > 0; i--, part /= 10)
            text[i] = (char)('0' + part % 10);
        det_buffer_append(buffer, text, digits + 1);
        return true;
    }
    return false;
}

static void write_float(struct det_buffer *buffer, const void *value, bool is_json)
{
    char text[DET_DOUBLE_TEXT];
    double number;

    memcpy(&number, value, sizeof number);
    if (is_json && !isfinite(number))
        det_buffer_append_text(buffer, "null");
    else if (number == rint(number) && fabs(number) < 1e15 && !(number == 0 && signbit(number)))
        write_signed(buffer, (int64_t)number);
    else if (!write_decimal(buffer, number))
        det_buffer_append_text(buffer, det_format_double(number, text));
}

static void write_base64(struct det_buffer *buffer, struct det_view bytes)
{
    struct det_output output = { .capacity = (bytes.size + 2) / 3 * 4 };

    output.target = det_buffer_extend(buffer, output.capacity);
    if (output.target)
        det_output_base64(&output, bytes);
}

/* The value of a field as in {"name":value}, which the codec of records writes. */
static void write_composed(
    const struct column *column, const uint8_t *value, struct det_buffer *buffer)
{
    /* The codec counts offsets from the record that has the field. */
    const uint8_t *base = value + column->offset - column->field->offset;
    unsigned flags = column->hides_sensitive ? 0 : DET_TEXT_REVEAL;
    size_t size = det_record_to_json(&column->alone, base, flags, NULL, 0);
    size_t begin = buffer->size, head;
    char *target = det_buffer_extend(buffer, size);

    if (!target)
        return;
    /* There is room for the final NUL after each buffer of text. */
    (void)det_record_to_json(&column->alone, base, flags, target, size + 1);
    head = strlen(column->field->name) + strlen("{\"\":");
    det_assert(size > head && target[head - 1] == ':');
    memmove(target, target + head, size - head - 1);
    buffer_cut(buffer, begin + size - head - 1);
}

static struct det_view view_of(const struct column *column, const uint8_t *place, char *text)
{
    const char *name;

    if (column->is_redacted)
        return det_view_text(DET_RECORD_REDACTED);
    if (column->field->kind == DET_KIND_TIME)
        return det_view_text(
            det_format_time(det_value_signed(column->field, place), text, DET_TIME_TEXT));
    if (column->field->kind == DET_KIND_TEXT)
        return det_value_view(column->field, place);
    name = det_value_enum_name(column->field, place);
    return det_view_text(name ? name : "?");
}

static void write_value(
    const struct column *column, const uint8_t *value, bool is_json, struct det_buffer *buffer)
{
    const struct det_field *field = column->field;
    const uint8_t *place = value + column->offset;
    enum det_kind kind = column->is_redacted   ? DET_KIND_TEXT
                         : column->is_composed ? DET_KIND_RECORD
                                               : field->kind;
    char text[DET_TIME_TEXT];
    struct det_view view;

    switch (kind) {
    case DET_KIND_UNSIGNED:
        write_unsigned(buffer, det_value_unsigned(field, place), false);
        break;
    case DET_KIND_SIGNED:
        write_signed(buffer, det_value_signed(field, place));
        break;
    case DET_KIND_FLOAT:
        write_float(buffer, place, is_json);
        break;
    case DET_KIND_BOOL:
        det_buffer_append_text(buffer, *place ? "true" : "false");
        break;
    case DET_KIND_BYTES:
        if (is_json)
            det_buffer_append_char(buffer, '"');
        write_base64(buffer, det_value_view(field, place));
        if (is_json)
            det_buffer_append_char(buffer, '"');
        break;
    case DET_KIND_RECORD:
        write_composed(column, value, buffer);
        break;
    case DET_KIND_TIME:
    case DET_KIND_TEXT:
    case DET_KIND_ENUM:
        view = view_of(column, place, text);
        if (is_json)
            det_json_quote(buffer, view);
        else
            det_buffer_append(buffer, view.data, view.size);
        break;
    }
}

void column_write(const struct column *column, const void *value, struct det_buffer *buffer)
{
    if (column_is_present(column, value))
        write_value(column, value, false, buffer);
}

void column_write_json(const struct column *column, const void *value, struct det_buffer *buffer)
{
    if (column_is_present(column, value))
        write_value(column, value, true, buffer);
    else
        det_buffer_append_text(buffer, "null");
}

static bool must_quote(struct det_view cell, char delimiter)
{
    for (size_t i = 0; i < cell.size; i++) {
        char c = cell.data[i];

        if (c == delimiter || c == '"' || c == '\n' || c == '\r')
            return true;
    }
    return cell.size == 0 || cell.data[0] == ' ' || cell.data[cell.size - 1] == ' ';
}

/* Doubles the quotes of a cell that begins at `begin`, and puts it between quotes. */
static void quote_cell(struct det_buffer *buffer, size_t begin)
{
    size_t size = buffer->size - begin, quotes = 2, to;

    for (size_t i = begin; i < buffer->size; i++)
        quotes += buffer->data[i] == '"';
    if (!det_buffer_extend(buffer, quotes))
        return;
    to = buffer->size;
    buffer->data[--to] = '"';
    for (size_t from = begin + size; from > begin;) {
        char c = buffer->data[--from];

        buffer->data[--to] = c;
        if (c == '"')
            buffer->data[--to] = '"';
    }
    buffer->data[--to] = '"';
    det_assert(to == begin);
}

static void end_cell(struct det_buffer *buffer, size_t begin, char delimiter)
{
    if (det_buffer_status(buffer) == 0 &&
        must_quote(det_view_of(det_buffer_text(buffer) + begin, buffer->size - begin), delimiter))
        quote_cell(buffer, begin);
}

/* Numbers and truth values need no quotes. */
static bool is_quotable(const struct column *column)
{
    return column->is_composed || column->is_redacted || column->field->kind == DET_KIND_TEXT ||
           column->field->kind == DET_KIND_ENUM || column->field->kind == DET_KIND_BYTES;
}

void columns_write_csv(
    const struct columns *columns, const void *value, char delimiter, struct det_buffer *buffer)
{
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->list[i];
        size_t begin;

        if (i > 0)
            det_buffer_append_char(buffer, delimiter);
        begin = buffer->size;
        if (!column_is_present(column, value))
            continue;
        write_value(column, value, false, buffer);
        if (is_quotable(column))
            end_cell(buffer, begin, delimiter);
    }
    det_buffer_append_char(buffer, '\n');
}

void columns_write_csv_head(
    const struct columns *columns, char delimiter, struct det_buffer *buffer)
{
    for (size_t i = 0; i < columns->count; i++) {
        size_t begin;

        if (i > 0)
            det_buffer_append_char(buffer, delimiter);
        begin = buffer->size;
        det_buffer_append_text(buffer, columns->list[i].name);
        end_cell(buffer, begin, delimiter);
    }
    det_buffer_append_char(buffer, '\n');
}

void columns_write_json(const struct columns *columns, const void *value, struct det_buffer *buffer)
{
    bool is_first = true;

    det_buffer_append_char(buffer, '{');
    for (size_t i = 0; i < columns->count; i++) {
        const struct column *column = &columns->list[i];

        if (!column_is_present(column, value))
            continue;
        if (!is_first)
            det_buffer_append_char(buffer, ',');
        is_first = false;
        det_buffer_append(buffer, column->key, column->key_size);
        write_value(column, value, true, buffer);
    }
    det_buffer_append_char(buffer, '}');
}
