/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_record.c - the rows of the records and enums that a machine uses. */
#include <string.h>

#include "base/assert.h"
#include "machine/write.h"

/* One level of the walk into a record. */
struct level {
    const struct det_record *record;
    size_t field;
};

/* Returns the record of a field; a valid record has it. */
static const struct det_record *record_in(const struct det_field *field)
{
    const struct det_record *record = det_record_of(field->record);

    det_assert(record != NULL);
    return record;
}

static const struct det_enum *enum_in(const struct det_field *field)
{
    const struct det_enum *enumeration = det_enum_of(field->enumeration);

    det_assert(enumeration != NULL);
    return enumeration;
}

static uint32_t version_of(uint32_t version)
{
    return version > 0 ? version : 1;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool same_enum(const struct det_enum *a, const struct det_enum *b)
{
    if (a->value_count != b->value_count)
        return false;
    for (size_t i = 0; i < a->value_count; i++) {
        if (!same_text(a->values[i].name, b->values[i].name) ||
            a->values[i].value != b->values[i].value)
            return false;
    }
    return true;
}

/* Compares names only: nested records and enums are compared when the walk reaches them. */
static bool same_field(const struct det_field *a, const struct det_field *b)
{
    return same_text(a->name, b->name) && a->kind == b->kind && a->flags == b->flags &&
           version_of(a->since) == version_of(b->since) && a->capacity == b->capacity &&
           a->count_max == b->count_max && a->size == b->size &&
           (a->kind != DET_KIND_RECORD || same_text(record_in(a)->name, record_in(b)->name)) &&
           (a->kind != DET_KIND_ENUM || same_text(enum_in(a)->name, enum_in(b)->name));
}

static bool same_record(const struct det_record *a, const struct det_record *b)
{
    if (version_of(a->version) != version_of(b->version) || a->field_count != b->field_count)
        return false;
    for (size_t i = 0; i < a->field_count; i++) {
        if (!same_field(&a->fields[i], &b->fields[i]))
            return false;
    }
    return true;
}

static void fail_twice(struct det_writer *writer, const char *name)
{
    det_write_fail(
        writer, DET_ERR_UNSUPPORTED,
        "%s uses two records or enums that are called %s and are not the same; give one of them "
        "another name",
        writer->machine->name, name);
}

static void add_enum(struct det_writer *writer, const struct det_enum *enumeration)
{
    struct det_write_thing *thing = det_write_thing(writer, DET_WRITE_ENUM, enumeration->name);

    if (thing == NULL)
        return;
    if (thing->definition == NULL)
        thing->definition = enumeration;
    else if (thing->definition != enumeration && !same_enum(thing->definition, enumeration))
        fail_twice(writer, enumeration->name);
}

/* Returns true if the record was already added. */
static bool is_known(struct det_writer *writer, const struct det_record *record)
{
    const struct det_write_thing *known =
        det_map_get(&writer->lists[DET_WRITE_RECORD].map, record->name);

    if (known != NULL && known->definition != record && !same_record(known->definition, record))
        fail_twice(writer, record->name);
    return known != NULL;
}

static void declare_record(struct det_writer *writer, const struct det_record *record)
{
    struct det_write_thing *thing = det_write_thing(writer, DET_WRITE_RECORD, record->name);

    if (thing != NULL)
        thing->definition = record;
}

/* Returns the record in the next field of the level; NULL at the end. */
static const struct det_record *next_inside(struct det_writer *writer, struct level *level)
{
    while (level->field < level->record->field_count) {
        const struct det_field *field = &level->record->fields[level->field++];

        if (field->kind == DET_KIND_ENUM)
            add_enum(writer, enum_in(field));
        if (field->kind == DET_KIND_RECORD)
            return record_in(field);
    }
    return NULL;
}

void det_write_add_record(struct det_writer *writer, const struct det_record *record)
{
    struct level levels[DET_RECORD_DEPTH_MAX];
    size_t depth = 0;

    if (record == NULL || record == det_empty_record() || is_known(writer, record))
        return;
    levels[depth++] = (struct level){ record, 0 };
    while (depth > 0 && writer->status == 0) {
        const struct det_record *inside = next_inside(writer, &levels[depth - 1]);

        if (inside == NULL) {
            declare_record(writer, levels[--depth].record);
        } else if (!is_known(writer, inside)) {
            det_assert(depth < DET_RECORD_DEPTH_MAX);
            levels[depth++] = (struct level){ inside, 0 };
        }
    }
}

static void write_value(struct det_writer *writer, const struct det_enum_value *value)
{
    det_buffer_format(
        &writer->text, "VALUE(%s, %s)\n",
        det_write_c_name(writer, &writer->value_names, value->name, "VALUE"), value->name);
}

/* The value 0 is first: the reader gives it to the first value, and a field that older bytes lack
 * is 0. */
static void write_enum(struct det_writer *writer, const struct det_enum *enumeration)
{
    det_buffer_format(&writer->text, "ENUM(%s)\n", enumeration->name);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < enumeration->value_count; i++) {
            if ((enumeration->values[i].value != 0) == (pass == 1))
                write_value(writer, &enumeration->values[i]);
        }
    }
    det_buffer_append_text(&writer->text, "END\n");
}

static void write_type(struct det_writer *writer, const struct det_field *field)
{
    struct det_buffer *text = &writer->text;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        det_buffer_format(text, "u%u", field->size * 8);
        break;
    case DET_KIND_SIGNED:
        det_buffer_format(text, "i%u", field->size * 8);
        break;
    case DET_KIND_FLOAT:
        det_buffer_append_text(text, "f64");
        break;
    case DET_KIND_BOOL:
        det_buffer_append_text(text, "bool");
        break;
    case DET_KIND_TIME:
        det_buffer_append_text(text, "time");
        break;
    case DET_KIND_TEXT:
        det_buffer_format(text, "str(%u)", field->capacity);
        break;
    case DET_KIND_BYTES:
        det_buffer_format(text, "bytes(%u)", field->capacity);
        break;
    case DET_KIND_ENUM:
        det_buffer_format(text, "one_of(%s)", enum_in(field)->name);
        break;
    case DET_KIND_RECORD:
        det_buffer_format(text, "nested(%s)", record_in(field)->name);
        break;
    }
}

void det_write_field(struct det_writer *writer, const struct det_field *field)
{
    struct det_buffer *text = &writer->text;
    const char *word = (field->flags & DET_FIELD_ARRAY) != 0      ? "ARRAY"
                       : (field->flags & DET_FIELD_OPTIONAL) != 0 ? "OPTIONAL"
                                                                  : "FIELD";

    det_buffer_format(text, "%s(%s, ", word, field->name);
    write_type(writer, field);
    if ((field->flags & DET_FIELD_ARRAY) != 0)
        det_buffer_format(text, ", %u", field->count_max);
    if ((field->flags & DET_FIELD_SENSITIVE) != 0)
        det_buffer_append_text(text, ", SENSITIVE");
    if (field->since > 1)
        det_buffer_format(text, ", SINCE(%u)", field->since);
    det_buffer_append_text(text, ")\n");
}

void det_write_enums(struct det_writer *writer)
{
    for (const struct det_write_thing *thing = writer->lists[DET_WRITE_ENUM].first; thing != NULL;
         thing = thing->next) {
        det_buffer_append_char(&writer->text, '\n');
        write_enum(writer, thing->definition);
    }
}

void det_write_records(struct det_writer *writer)
{
    for (const struct det_write_thing *thing = writer->lists[DET_WRITE_RECORD].first; thing != NULL;
         thing = thing->next) {
        const struct det_record *record = thing->definition;

        det_buffer_format(&writer->text, "\nRECORD(%s", record->name);
        if (record->version > 1)
            det_buffer_format(&writer->text, ", %u", record->version);
        det_buffer_append_text(&writer->text, ")\n");
        for (size_t i = 0; i < record->field_count; i++)
            det_write_field(writer, &record->fields[i]);
        det_buffer_append_text(&writer->text, "END\n");
    }
}
