/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* json_read.c - reads a record from JSON, strictly.
 *
 *     frames:  payment { lines [ 3 ] } -- line { name }       the innermost reads the next token
 *
 * Invariants:
 *   1. frames[i].base plus the size of its record lies inside frames[i - 1]'s record.
 *   2. The bit of a field in `seen` is set before the field is stored.
 *   3. No error text contains a value, because it could be a secret. */
#include <detent/record.h>

#include <string.h>

#include "base/assert.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/json.h"
#include "record/number.h"
#include "record/text_sink.h"

struct frame {
    struct det_place place;
    size_t base;         /* of this record in the outermost one */
    uint32_t next_index; /* of the next element, when in an array */
    uint32_t expected;   /* number of the field after the last one: most texts keep the order */
    bool in_array;
    uint64_t seen[DET_RECORD_FIELD_MAX / 64];
};

struct reader {
    struct det_json_scanner json;
    struct det_json_token token;
    struct det_error *reterr;
    uint8_t *value;
    unsigned flags;
    unsigned depth;
    struct frame frames[DET_RECORD_DEPTH_MAX];
};

static struct frame *top_frame(struct reader *reader)
{
    return &reader->frames[reader->depth - 1];
}

/* Fails at the current token; the error names the field. */
static int fail_token(struct reader *reader, int code, const char *reason)
{
    struct det_place places[DET_RECORD_DEPTH_MAX];
    char text[DET_PLACE_TEXT];

    for (unsigned i = 0; i < reader->depth; i++)
        places[i] = reader->frames[i].place;
    return DET_FAIL_AT(
        reader->reterr, code, reader->token.offset, "%s: %s at byte %zu",
        det_place_format(places, reader->depth, text, sizeof text), reason, reader->token.offset);
}

static int next_token(struct reader *reader)
{
    return det_json_scan(&reader->json, &reader->token, reader->reterr);
}

static void push_frame(struct reader *reader, const struct det_record *record, size_t base)
{
    struct frame *frame;

    det_assert(record != NULL);
    det_assert(reader->depth < DET_RECORD_DEPTH_MAX);
    det_assert(record->field_count <= DET_RECORD_FIELD_MAX);
    frame = &reader->frames[reader->depth++];
    if (reader->depth > 1)
        det_assert(
            base >= frame[-1].base &&
            base - frame[-1].base + record->size <= frame[-1].place.record->size);
    *frame = (struct frame){ .place = { record, NULL, 0 }, .base = base };
}

static bool is_seen(const struct frame *frame, size_t number)
{
    return frame->seen[number / 64] >> (number % 64) & 1;
}

/* Reports an unknown key, with the nearest field. The key itself is shown only if it is a plain
 * name: otherwise it may be a misplaced value, or not printable. */
static int fail_unknown(struct reader *reader)
{
    const struct det_record *record = top_frame(reader)->place.record;
    const char *names[DET_RECORD_FIELD_MAX];
    char key[DET_NAME_MAX + 1] = "", text[2 * DET_NAME_MAX + 64];
    size_t size = det_json_unescape(reader->token.text, key, DET_NAME_MAX);
    struct det_output output = { text, sizeof text, 0 };
    int nearest;

    top_frame(reader)->place.field = NULL;
    for (size_t i = 0; i < record->field_count; i++)
        names[i] = record->fields[i].name;
    if (size > DET_NAME_MAX || strlen(key) != size || !det_name_is_valid(key))
        return fail_token(reader, DET_ERR_UNKNOWN_FIELD, "there is no such field");
    nearest = det_text_nearest(key, names, record->field_count);
    det_output_text(&output, "there is no field ");
    det_output_text(&output, key);
    if (nearest >= 0) {
        det_output_text(&output, " (did you mean ");
        det_output_text(&output, names[nearest]);
        det_output_text(&output, "?)");
    }
    det_output_finish(&output);
    return fail_token(reader, DET_ERR_UNKNOWN_FIELD, text);
}

/* Returns the number of the field of the current key; the number of fields if it is unknown. */
static size_t find_field(const struct reader *reader, const struct frame *frame)
{
    const struct det_record *record = frame->place.record;
    size_t number = frame->expected;

    for (size_t i = 0; i < record->field_count; i++, number++) {
        if (number >= record->field_count)
            number = 0;
        if (det_json_text_is(reader->token.text, record->fields[number].name))
            return number;
    }
    return record->field_count;
}

/* Returns 1 if the key is unknown and its value is to be skipped. */
static int read_key(struct reader *reader)
{
    struct frame *frame = top_frame(reader);
    const struct det_record *record = frame->place.record;
    size_t number = find_field(reader, frame);

    if (number == record->field_count)
        return reader->flags & DET_TEXT_EXTRA ? 1 : fail_unknown(reader);
    frame->expected = (uint32_t)number + 1;
    frame->place.field = &record->fields[number];
    frame->place.index = DET_PLACE_ALL;
    if (is_seen(frame, number))
        return fail_token(reader, DET_ERR_DUPLICATE_FIELD, "duplicate field");
    frame->seen[number / 64] |= (uint64_t)1 << (number % 64);
    return 0;
}

static int store_integer(struct reader *reader, const struct det_field *field, uint8_t *value)
{
    uint64_t magnitude = 0;
    bool is_negative = false, fits;
    int r;

    if (reader->token.kind != DET_JSON_NUMBER)
        return fail_token(reader, DET_ERR_TYPE, "expected a whole number");
    r = det_json_integer(reader->token.text, &is_negative, &magnitude);
    if (r == DET_ERR_TYPE)
        return fail_token(reader, r, "expected a number without fraction and exponent");
    fits = r == 0;
    if (fits && field->kind == DET_KIND_UNSIGNED)
        fits = (!is_negative || magnitude == 0) && det_value_set_unsigned(field, value, magnitude);
    else if (fits && is_negative)
        fits = magnitude <= (uint64_t)INT64_MAX + 1 &&
               det_value_set_signed(field, value, (int64_t)(0 - magnitude));
    else if (fits)
        fits = magnitude <= INT64_MAX && det_value_set_signed(field, value, (int64_t)magnitude);
    return fits ? 0 : fail_token(reader, DET_ERR_RANGE, "the number does not fit");
}

static int store_float(struct reader *reader, uint8_t *value)
{
    double number = 0;
    int r;

    if (reader->token.kind != DET_JSON_NUMBER)
        return fail_token(reader, DET_ERR_TYPE, "expected a number");
    r = det_parse_double(reader->token.text, &number);
    if (r == DET_ERR_LIMIT)
        return fail_token(reader, r, "the number is too long");
    if (r < 0)
        return fail_token(reader, r, "the number does not fit");
    memcpy(value, &number, sizeof number);
    return 0;
}

static int store_bool(struct reader *reader, uint8_t *value)
{
    if (reader->token.kind != DET_JSON_TRUE && reader->token.kind != DET_JSON_FALSE)
        return fail_token(reader, DET_ERR_TYPE, "expected true or false");
    *value = reader->token.kind == DET_JSON_TRUE;
    return 0;
}

static int store_time(struct reader *reader, uint8_t *value)
{
    char copy[DET_TIME_TEXT + 24];
    size_t size = det_json_unescape(reader->token.text, copy, sizeof copy);
    det_time wall = 0;
    int r = DET_ERR_MALFORMED;

    if (size <= sizeof copy)
        r = det_parse_time(det_view_of(copy, size), &wall);
    if (r == DET_ERR_RANGE)
        return fail_token(reader, r, "the time is out of range");
    if (r < 0)
        return fail_token(reader, DET_ERR_MALFORMED, "expected a time in RFC 3339 format");
    memcpy(value, &wall, sizeof wall);
    return 0;
}

static int store_text(struct reader *reader, const struct det_field *field, uint8_t *value)
{
    char *target = (char *)value;
    size_t size = det_json_unescape(reader->token.text, target, field->capacity);

    if (size > field->capacity)
        return fail_token(reader, DET_ERR_RANGE, "the text is too long");
    if (memchr(target, 0, size))
        return fail_token(reader, DET_ERR_MALFORMED, "the text contains U+0000");
    target[size] = 0;
    return 0;
}

static int store_bytes(struct reader *reader, const struct det_field *field, uint8_t *value)
{
    size_t size = 0;
    uint32_t short_size;
    int r;

    /* Escapes are not base64, so the text need not be unescaped. */
    r = det_base64_decode(reader->token.text, value + sizeof short_size, field->capacity, &size);
    if (r == DET_ERR_RANGE)
        return fail_token(reader, r, "too many bytes");
    if (r < 0)
        return fail_token(reader, r, "expected base64");
    short_size = (uint32_t)size;
    memcpy(value, &short_size, sizeof short_size);
    return 0;
}

static int store_enum(struct reader *reader, const struct det_field *field, uint8_t *value)
{
    char copy[DET_NAME_MAX];
    size_t size = det_json_unescape(reader->token.text, copy, sizeof copy);

    if (size > sizeof copy || !det_value_set_enum(field, value, det_view_of(copy, size)))
        return fail_token(reader, DET_ERR_RANGE, "the enum has no such value");
    return 0;
}

static int enter_record(struct reader *reader, const struct det_field *field, size_t offset)
{
    if (reader->token.kind != DET_JSON_OBJECT)
        return fail_token(reader, DET_ERR_TYPE, "expected an object");
    push_frame(reader, det_record_of(field->record), offset);
    return 0;
}

/* The current token is a value or an element of the current field. */
static int read_value(struct reader *reader)
{
    const struct frame *frame = top_frame(reader);
    const struct det_field *field = frame->place.field;
    size_t offset = frame->base + field->offset + (size_t)frame->place.index * field->size;
    uint8_t *value = reader->value + offset;
    bool is_string = reader->token.kind == DET_JSON_STRING;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return store_integer(reader, field, value);
    case DET_KIND_FLOAT:
        return store_float(reader, value);
    case DET_KIND_BOOL:
        return store_bool(reader, value);
    case DET_KIND_TIME:
        if (is_string)
            return store_time(reader, value);
        break;
    case DET_KIND_TEXT:
        if (is_string)
            return store_text(reader, field, value);
        break;
    case DET_KIND_BYTES:
        if (is_string)
            return store_bytes(reader, field, value);
        break;
    case DET_KIND_ENUM:
        if (is_string)
            return store_enum(reader, field, value);
        break;
    case DET_KIND_RECORD:
        return enter_record(reader, field, offset);
    }
    return fail_token(reader, DET_ERR_TYPE, "expected a string");
}

/* True if the token replaces the value of a sensitive field of any type. */
static bool is_hidden(const struct reader *reader, const struct det_field *field)
{
    return (reader->flags & DET_TEXT_HIDDEN) && (field->flags & DET_FIELD_SENSITIVE) &&
           reader->token.kind == DET_JSON_STRING &&
           det_view_equal(reader->token.text, det_view_text(DET_RECORD_REDACTED));
}

static int read_field(struct reader *reader)
{
    struct frame *frame = top_frame(reader);
    const struct det_field *field = frame->place.field;
    int r;

    r = next_token(reader);
    if (r < 0)
        return r;
    if (is_hidden(reader, field)) {
        det_field_set_count(
            field, reader->value + frame->base, field->flags & DET_FIELD_ARRAY ? 0 : 1);
        return 0;
    }
    if (field->flags & DET_FIELD_ARRAY) {
        if (reader->token.kind != DET_JSON_ARRAY)
            return fail_token(reader, DET_ERR_TYPE, "expected an array");
        frame->in_array = true;
        frame->next_index = 0;
        return 0;
    }
    if ((field->flags & DET_FIELD_OPTIONAL) && reader->token.kind == DET_JSON_NULL)
        return 0;
    det_field_set_count(field, reader->value + frame->base, 1);
    frame->place.index = 0;
    return read_value(reader);
}

/* Reads the value of an unknown key. */
static int skip_value(struct reader *reader)
{
    unsigned depth = reader->json.depth;
    int r;

    do
        r = next_token(reader);
    while (r == 0 && reader->json.depth > depth);
    return r;
}

static int read_member(struct reader *reader)
{
    int r;

    r = read_key(reader);
    if (r < 0)
        return r;
    return r == 1 ? skip_value(reader) : read_field(reader);
}

static int read_element(struct reader *reader)
{
    struct frame *frame = top_frame(reader);
    const struct det_field *field = frame->place.field;

    if (reader->token.kind == DET_JSON_ARRAY_END) {
        frame->in_array = false;
        return 0;
    }
    frame->place.index = DET_PLACE_ALL;
    if (frame->next_index == field->count_max)
        return fail_token(reader, DET_ERR_RANGE, "too many elements");
    det_assert(frame->next_index < field->count_max);
    frame->place.index = frame->next_index++;
    det_field_set_count(field, reader->value + frame->base, frame->next_index);
    return read_value(reader);
}

static int leave_record(struct reader *reader)
{
    struct frame *frame = top_frame(reader);
    const struct det_record *record = frame->place.record;

    for (size_t i = 0; i < record->field_count && !(reader->flags & DET_TEXT_PARTIAL); i++) {
        if ((record->fields[i].flags & DET_FIELD_OPTIONAL) || is_seen(frame, i))
            continue;
        frame->place.field = &record->fields[i];
        frame->place.index = DET_PLACE_ALL;
        return fail_token(reader, DET_ERR_MISSING_FIELD, "the field is missing");
    }
    reader->depth--;
    return 0;
}

static int read_all(struct reader *reader, const struct det_record *record)
{
    int r;

    r = next_token(reader);
    if (r < 0)
        return r;
    push_frame(reader, record, 0);
    if (reader->token.kind != DET_JSON_OBJECT)
        return fail_token(reader, DET_ERR_TYPE, "expected an object");
    while (reader->depth > 0) {
        r = next_token(reader);
        if (r < 0)
            return r;
        if (top_frame(reader)->in_array)
            r = read_element(reader);
        else if (reader->token.kind == DET_JSON_OBJECT_END)
            r = leave_record(reader);
        else
            r = read_member(reader);
        if (r < 0)
            return r;
    }
    return next_token(reader);
}

int det_record_from_json(
    const struct det_record *record, const char *text, size_t size, unsigned flags, void *value,
    struct det_error *reterr)
{
    struct reader reader = { .reterr = reterr, .value = value, .flags = flags };
    int r;

    memset(value, 0, record->size);
    det_json_scanner_init(&reader.json, text, size);
    r = read_all(&reader, record);
    if (r < 0)
        memset(value, 0, record->size);
    return r;
}
