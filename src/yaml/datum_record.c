/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_record.c - converts data into a record, with a stack instead of recursion.
 *
 * No message contains the value of a sensitive field, nor any text: it could be a misplaced
 * secret. */
#include "yaml/datum_record.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/text_sink.h"

struct frame {
    struct det_place place;
    size_t base;                  /* of this record in the outermost one */
    const struct det_datum *next; /* the next member of the map */
    const struct det_datum *item; /* the next element of the array; NULL: not in an array */
};

struct reader {
    const char *what;
    struct det_error *error;
    uint8_t *value;
    unsigned depth;
    struct frame frames[DET_RECORD_DEPTH_MAX];
};

static struct frame *top(struct reader *reader)
{
    return &reader->frames[reader->depth - 1];
}

/* Writes "children[2].port", without the name of the record; "" for the record itself. */
static const char *path_of(const struct reader *reader, char *target, size_t capacity)
{
    struct det_place places[DET_RECORD_DEPTH_MAX];
    const char *point;

    if (reader->depth == 0)
        return "";
    for (unsigned i = 0; i < reader->depth; i++)
        places[i] = reader->frames[i].place;
    point = strchr(det_place_format(places, reader->depth, target, capacity), '.');
    return point ? point + 1 : "";
}

DET_PRINTF(4, 5)
static int fail(
    struct reader *reader, int code, const struct det_datum *datum, const char *format, ...)
{
    char text[DET_ERROR_TEXT_MAX], place[DET_PLACE_TEXT];
    const char *path = path_of(reader, place, sizeof place);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return det_datum_fail(
        reader->error, code, reader->what, datum->line, datum->column, "%s%s%s", path,
        *path ? ": " : "", text);
}

static int fail_kind(struct reader *reader, const struct det_datum *datum, const char *wanted)
{
    return fail(
        reader, DET_ERR_TYPE, datum, "expected %s, found %s", wanted,
        det_datum_kind_text(datum->kind));
}

static bool is_sensitive(const struct reader *reader)
{
    for (unsigned i = 0; i < reader->depth; i++)
        if (reader->frames[i].place.field->flags & DET_FIELD_SENSITIVE)
            return true;
    return false;
}

static int fail_range(struct reader *reader, const struct det_datum *datum, const char *wanted)
{
    if (is_sensitive(reader))
        return fail(reader, DET_ERR_RANGE, datum, "expected %s", wanted);
    if (datum->kind == DET_DATUM_SIGNED)
        return fail(
            reader, DET_ERR_RANGE, datum, "expected %s, found %lld", wanted,
            (long long)datum->as.number);
    return fail(
        reader, DET_ERR_RANGE, datum, "expected %s, found %llu", wanted,
        (unsigned long long)datum->as.large);
}

static const char *range_text(const struct det_field *field, char target[96])
{
    unsigned bits = field->size * 8;

    if (field->kind == DET_KIND_UNSIGNED)
        snprintf(
            target, 96, "a whole number from 0 to %llu",
            (unsigned long long)(UINT64_MAX >> (64 - bits)));
    else
        snprintf(
            target, 96, "a whole number from %lld to %lld", (long long)(INT64_MIN >> (64 - bits)),
            (long long)(INT64_MAX >> (64 - bits)));
    return target;
}

static int store_complete(
    struct reader *reader, const struct det_field *field, const struct det_datum *datum,
    uint8_t *value)
{
    bool fits;
    char wanted[96];

    if (datum->kind == DET_DATUM_FLOAT)
        return fail(reader, DET_ERR_TYPE, datum, "expected a number without a fraction");
    if (datum->kind == DET_DATUM_TEXT)
        return fail(
            reader, DET_ERR_TYPE, datum, "expected %s, found text; remove the quotes",
            range_text(field, wanted));
    if (datum->kind != DET_DATUM_SIGNED && datum->kind != DET_DATUM_UNSIGNED)
        return fail_kind(reader, datum, range_text(field, wanted));
    if (datum->kind == DET_DATUM_UNSIGNED)
        fits = field->kind == DET_KIND_UNSIGNED &&
               det_value_set_unsigned(field, value, datum->as.large);
    else if (field->kind == DET_KIND_UNSIGNED)
        fits = datum->as.number >= 0 &&
               det_value_set_unsigned(field, value, (uint64_t)datum->as.number);
    else
        fits = det_value_set_signed(field, value, datum->as.number);
    return fits ? 0 : fail_range(reader, datum, range_text(field, wanted));
}

static int store_float(struct reader *reader, const struct det_datum *datum, uint8_t *value)
{
    double number = datum->kind == DET_DATUM_SIGNED     ? (double)datum->as.number
                    : datum->kind == DET_DATUM_UNSIGNED ? (double)datum->as.large
                    : datum->kind == DET_DATUM_FLOAT    ? datum->as.real
                                                        : 0;

    if (datum->kind != DET_DATUM_SIGNED && datum->kind != DET_DATUM_UNSIGNED &&
        datum->kind != DET_DATUM_FLOAT)
        return fail_kind(reader, datum, "a number");
    if (!isfinite(number))
        return fail(reader, DET_ERR_RANGE, datum, "expected a finite number");
    memcpy(value, &number, sizeof number);
    return 0;
}

static int store_bool(struct reader *reader, const struct det_datum *datum, uint8_t *value)
{
    if (datum->kind != DET_DATUM_BOOL)
        return fail_kind(reader, datum, "true or false");
    *value = datum->as.truth;
    return 0;
}

static int store_text(
    struct reader *reader, const struct det_field *field, const struct det_datum *datum,
    uint8_t *value)
{
    size_t size = strlen(datum->text);

    if (size > field->capacity)
        return fail(
            reader, DET_ERR_RANGE, datum, "the field holds at most %u byte%s, found %zu",
            field->capacity, det_plural(field->capacity), size);
    memcpy(value, datum->text, size + 1);
    return 0;
}

static int store_time(struct reader *reader, const struct det_datum *datum, uint8_t *value)
{
    det_time wall = 0;
    int r;

    r = det_parse_time(det_view_text(datum->text), &wall);
    if (r < 0)
        return fail(
            reader, r, datum, "expected a time such as 2026-01-31T10:00:00Z%s",
            r == DET_ERR_RANGE ? "; this one is out of range" : "");
    memcpy(value, &wall, sizeof wall);
    return 0;
}

static int store_bytes(
    struct reader *reader, const struct det_field *field, const struct det_datum *datum,
    uint8_t *value)
{
    uint32_t short_size;
    size_t size = 0;
    int r;

    r = det_base64_decode(
        det_view_text(datum->text), value + sizeof short_size, field->capacity, &size);
    if (r == DET_ERR_RANGE)
        return fail(
            reader, r, datum, "the field holds at most %u byte%s", field->capacity,
            det_plural(field->capacity));
    if (r < 0)
        return fail(reader, r, datum, "expected bytes as base64");
    short_size = (uint32_t)size;
    memcpy(value, &short_size, sizeof short_size);
    return 0;
}

static int store_enum(
    struct reader *reader, const struct det_field *field, const struct det_datum *datum,
    uint8_t *value)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);
    const char *names[64];
    size_t count = 0;
    int nearest;

    if (det_value_set_enum(field, value, det_view_text(datum->text)))
        return 0;
    for (; count < enumeration->value_count && count < 64; count++)
        names[count] = enumeration->values[count].name;
    nearest = det_text_nearest(datum->text, names, count);
    if (nearest >= 0)
        return fail(
            reader, DET_ERR_RANGE, datum, "unknown %s; did you mean '%s'?", enumeration->name,
            names[nearest]);
    return fail(
        reader, DET_ERR_RANGE, datum, "unknown %s; use %s%s%s%s%s", enumeration->name, names[0],
        count > 2   ? ", "
        : count > 1 ? " or "
                    : "",
        count > 1 ? names[1] : "", count > 2 ? ", " : "",
        count > 2 ? (count > 3 ? "..." : names[2]) : "");
}

static int push(
    struct reader *reader, const struct det_record *record, const struct det_datum *map,
    size_t base)
{
    if (map->kind != DET_DATUM_MAP)
        return fail_kind(reader, map, "a map of fields");
    det_assert(reader->depth < DET_RECORD_DEPTH_MAX);
    reader->frames[reader->depth++] = (struct frame){ .place = { record, NULL, DET_PLACE_ALL },
                                                      .base = base,
                                                      .next = map->first };
    return 0;
}

/* Stores a number or a truth value in a text field, exactly as written: for example an argument of
 * a command that comes from a variable. */
static int store_source(
    struct reader *reader, const struct det_field *field, const struct det_datum *datum,
    uint8_t *value)
{
    struct det_datum text = *datum;

    text.kind = DET_DATUM_TEXT;
    return store_text(reader, field, &text, value);
}

/* Stores one value or element of the current field. */
static int store(struct reader *reader, const struct det_datum *datum)
{
    const struct frame *frame = top(reader);
    const struct det_field *field = frame->place.field;
    uint32_t index = frame->place.index == DET_PLACE_ALL ? 0 : frame->place.index;
    size_t offset = frame->base + field->offset + (size_t)index * field->size;
    uint8_t *value = reader->value + offset;
    bool is_text = datum->kind == DET_DATUM_TEXT;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return store_complete(reader, field, datum, value);
    case DET_KIND_FLOAT:
        return store_float(reader, datum, value);
    case DET_KIND_BOOL:
        return store_bool(reader, datum, value);
    case DET_KIND_RECORD:
        return push(reader, det_record_of(field->record), datum, offset);
    case DET_KIND_TIME:
        if (is_text)
            return store_time(reader, datum, value);
        break;
    case DET_KIND_TEXT:
        if (is_text)
            return store_text(reader, field, datum, value);
        if (datum->text && datum->kind != DET_DATUM_NULL)
            return store_source(reader, field, datum, value);
        break;
    case DET_KIND_BYTES:
        if (is_text)
            return store_bytes(reader, field, datum, value);
        break;
    case DET_KIND_ENUM:
        if (is_text)
            return store_enum(reader, field, datum, value);
        break;
    }
    return fail(
        reader, DET_ERR_TYPE, datum, "expected text, found %s; %s",
        det_datum_kind_text(datum->kind),
        datum->kind == DET_DATUM_LIST || datum->kind == DET_DATUM_MAP ? "write one value"
                                                                      : "put quotes around it");
}

static int fail_unknown(struct reader *reader, const struct det_datum *member)
{
    const struct det_record *record = top(reader)->place.record;
    const char *names[DET_RECORD_FIELD_MAX];
    struct det_datum at = { .line = member->key_line, .column = member->key_column };
    bool is_shown = det_name_is_valid(member->key);
    int nearest = -1;

    top(reader)->place.field = NULL;
    for (size_t i = 0; i < record->field_count; i++)
        names[i] = record->fields[i].name;
    if (is_shown)
        nearest = det_text_nearest(member->key, names, record->field_count);
    if (nearest >= 0)
        return fail(
            reader, DET_ERR_UNKNOWN_FIELD, &at, "unknown field '%s'; did you mean '%s'?",
            member->key, names[nearest]);
    return fail(
        reader, DET_ERR_UNKNOWN_FIELD, &at, "unknown field%s%s%s; %s%s%s", is_shown ? " '" : "",
        is_shown ? member->key : "", is_shown ? "'" : "",
        record->field_count ? "the record has " : "the record has no fields",
        record->field_count ? names[0] : "", record->field_count > 1 ? " and others" : "");
}

static int begin_array(struct reader *reader, const struct det_datum *list)
{
    struct frame *frame = top(reader);
    const struct det_field *field = frame->place.field;

    if (list->kind != DET_DATUM_LIST)
        return fail_kind(reader, list, "a list");
    if (list->count > field->count_max)
        return fail(
            reader, DET_ERR_RANGE, list, "the field holds at most %u element%s, found %u",
            field->count_max, det_plural(field->count_max), list->count);
    det_field_set_count(field, reader->value + frame->base, list->count);
    frame->item = list->first;
    frame->place.index = 0;
    return 0;
}

static int read_member(struct reader *reader)
{
    struct frame *frame = top(reader);
    const struct det_datum *member = frame->next;

    frame->next = member->next;
    frame->place.field = det_record_field(frame->place.record, member->key);
    frame->place.index = DET_PLACE_ALL;
    if (!frame->place.field)
        return fail_unknown(reader, member);
    if (member->kind == DET_DATUM_NULL)
        return 0;
    if (frame->place.field->flags & DET_FIELD_ARRAY)
        return begin_array(reader, member);
    det_field_set_count(frame->place.field, reader->value + frame->base, 1);
    return store(reader, member);
}

static int read_element(struct reader *reader)
{
    struct frame *frame = top(reader);
    const struct det_datum *item = frame->item;
    int r;

    frame->item = item->next;
    r = store(reader, item);
    /* A record in the array keeps this index until leave_record(). */
    if (r == 0 && top(reader) == frame)
        frame->place.index++;
    return r;
}

static void leave_record(struct reader *reader)
{
    det_assert(reader->depth > 0 && !top(reader)->next && !top(reader)->item);
    reader->depth--;
    if (reader->depth && top(reader)->place.index != DET_PLACE_ALL)
        top(reader)->place.index++;
}

static int read_all(struct reader *reader, const struct det_datum *map)
{
    const struct det_record *record = reader->frames[0].place.record;
    int r;

    r = push(reader, record, map, 0);
    while (r == 0 && reader->depth) {
        if (top(reader)->item)
            r = read_element(reader);
        else if (top(reader)->next)
            r = read_member(reader);
        else
            leave_record(reader);
    }
    return r;
}

int det_datum_to_record(
    const struct det_datum *datum, const char *what, const struct det_record *record, void *value,
    struct det_error *reterr)
{
    struct reader reader = { .what = what, .error = reterr, .value = value };
    int r;

    memset(value, 0, record->size);
    if (datum->kind == DET_DATUM_NULL)
        return 0;
    reader.frames[0].place.record = record;
    r = read_all(&reader, datum);
    if (r < 0)
        memset(value, 0, record->size);
    return r;
}
