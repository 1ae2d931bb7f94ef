/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* case_fields.c - fields of a record from a mapping: written as JSON, as the types of the fields
 * want it, and read by the one strict reader of records. */
#include <string.h>

#include "base/assert.h"
#include "testing/case_internal.h"
#include "json/writer.h"

/* A mapping or sequence whose members are being written. */
struct frame {
    const struct det_datum *node;    /* the next member */
    const struct det_record *record; /* of a mapping; NULL: not known */
    const struct det_field *element; /* of a sequence */
    bool is_mapping;
};

static bool is_literal(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
           (*text && text[strspn(text, "+-.0123456789eE")] == '\0');
}

static bool is_absent(const struct det_datum *node, const struct det_field *field)
{
    return field && (field->flags & DET_FIELD_OPTIONAL) && det_datum_is_scalar(node) &&
           node->is_plain && (strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0);
}

/* Text stays text where the field wants text, quoted or not. */
static void put_scalar(
    struct det_json_writer *json, const char *key, const struct det_datum *node,
    const struct det_field *field)
{
    bool wants_text = field && (field->kind == DET_KIND_TEXT || field->kind == DET_KIND_TIME ||
                                field->kind == DET_KIND_BYTES || field->kind == DET_KIND_ENUM);

    if (node->is_plain && !wants_text && is_literal(node->text))
        det_json_raw(json, key, node->text, strlen(node->text));
    else
        det_json_text(json, key, node->text);
}

static void put_member(struct det_json_writer *json, struct frame *frames, size_t *depth)
{
    struct frame *top = &frames[*depth - 1];
    const struct det_datum *node = top->node;
    const struct det_field *field = top->element;
    const char *key = top->is_mapping ? node->key : NULL;

    top->node = node->next;
    if (top->is_mapping)
        field = top->record ? det_record_field(top->record, node->key) : NULL;
    if (is_absent(node, field))
        return;
    if (det_datum_is_scalar(node)) {
        put_scalar(json, key, node, field);
        return;
    }
    det_assert(*depth <= DET_DATUM_DEPTH_MAX);
    frames[(*depth)++] = (struct frame){
        .node = node->first,
        .record = field ? det_record_of(field->record) : NULL,
        .element = field,
        .is_mapping = node->kind == DET_DATUM_MAP,
    };
    det_json_open(json, key, node->kind == DET_DATUM_MAP ? '{' : '[');
}

/* The tree is at most as deep as the YAML reader lets it be. */
static void put_members(
    struct det_json_writer *json, const struct det_record *record, const struct det_datum *first)
{
    struct frame frames[DET_DATUM_DEPTH_MAX + 1] = {
        { .node = first, .record = record, .is_mapping = true },
    };
    size_t depth = 1;

    det_json_open(json, NULL, '{');
    while (depth) {
        if (frames[depth - 1].node) {
            put_member(json, frames, &depth);
            continue;
        }
        depth--;
        det_json_close(json, frames[depth].is_mapping ? '}' : ']');
    }
}

/* Reads the members from `first` on; only it, when `is_alone`. */
static int read_members(
    struct cli_reader *reader, const struct case_fields *fields, const struct det_datum *first,
    bool is_alone, struct det_error *error)
{
    struct det_datum only = *first;
    struct det_json_writer json;
    int r;

    only.next = NULL;
    det_json_writer_init(&json, reader->arena->allocator);
    put_members(&json, fields->record, is_alone ? &only : first);
    r = det_buffer_status(&json.text);
    if (r == 0)
        r = det_record_from_json(
            fields->record, json.text.data, json.text.size, DET_TEXT_PARTIAL, fields->value, error);
    det_json_writer_deinit(&json);
    return r;
}

static int unknown_field(
    struct cli_reader *reader, const struct det_record *record, const struct det_datum *node)
{
    struct det_datum at = { .line = node->key_line, .column = node->key_column };
    const char *names[DET_RECORD_FIELD_MAX];
    size_t count = 0;

    for (; count < record->field_count && count < DET_RECORD_FIELD_MAX; count++)
        names[count] = record->fields[count].name;
    return reader_fail_near(
        reader, &at, node->key, names, count, "%s has no field '%s'", record->name, node->key);
}

/* Reports the problem of one field, read alone. */
static int fail_field(
    struct cli_reader *reader, const struct case_fields *fields, const struct det_datum *node)
{
    struct det_error error = { 0 };
    char limit[CASE_LIMIT_TEXT];
    const char *byte;
    int r = read_members(reader, fields, node, true, &error);

    if (r == 0)
        return 0;
    if (r == DET_ERR_NO_MEMORY)
        return reader_no_memory(reader, node);
    if (r == DET_ERR_UNKNOWN_FIELD && !det_record_field(fields->record, node->key))
        return unknown_field(reader, fields->record, node);
    /* The byte offset is in the generated JSON, which users do not see. */
    byte = strstr(error.text, " at byte ");
    return reader_fail(
        reader, node, "%.*s%s", (int)(byte ? (size_t)(byte - error.text) : strlen(error.text)),
        error.text, r == DET_ERR_RANGE ? case_field_limit(fields->record, error.text, limit) : "");
}

/* The error of the whole has no line; those of single fields do. */
static int fail_fields(
    struct cli_reader *reader, const struct case_fields *fields, const struct det_datum *mapping,
    const struct det_error *error)
{
    int r = 0;

    READER_EACH (node, mapping, reader, r)
        r = reader_both(r, fail_field(reader, fields, node));
    return r < 0 ? r : reader_fail(reader, mapping, "%s", error->text);
}

static int note_given(
    struct cli_reader *reader, struct case_fields *fields, const struct det_datum *mapping)
{
    fields->given = det_arena_array(reader->arena, mapping->count + 1, sizeof(void *));
    fields->nodes = det_arena_array(reader->arena, mapping->count + 1, sizeof(void *));
    if (!fields->given || !fields->nodes)
        return reader_no_memory(reader, mapping);
    for (const struct det_datum *node = mapping->first; node; node = node->next) {
        fields->given[fields->count] = det_record_field(fields->record, node->key);
        fields->nodes[fields->count++] = node;
    }
    det_assert(fields->count == mapping->count);
    return 0;
}

int case_take_fields(
    struct cli_reader *reader, const struct det_record *record, const struct det_datum *mapping,
    const struct case_fields **ret)
{
    struct case_fields *fields = det_arena_alloc(reader->arena, sizeof *fields);
    struct det_error error = { 0 };
    int r;

    r = reader_want(reader, mapping, DET_DATUM_MAP, record->name);
    if (r < 0)
        return r;
    if (!fields)
        return reader_no_memory(reader, mapping);
    *fields = (struct case_fields){ .record = record };
    fields->value = det_arena_alloc(reader->arena, record->size);
    if (!fields->value)
        return reader_no_memory(reader, mapping);
    *ret = fields;
    if (!mapping->first)
        return 0;
    r = read_members(reader, fields, mapping->first, false, &error);
    if (r == DET_ERR_NO_MEMORY)
        return reader_no_memory(reader, mapping);
    return r < 0 ? fail_fields(reader, fields, mapping, &error)
                 : note_given(reader, fields, mapping);
}

void case_fields_apply(const struct case_fields *fields, void *value)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct det_field *field = fields->given[i];
        size_t count = field->flags & DET_FIELD_ARRAY ? field->count_max : 1;
        size_t presence = field->flags & DET_FIELD_ARRAY      ? sizeof(uint32_t)
                          : field->flags & DET_FIELD_OPTIONAL ? sizeof(bool)
                                                              : 0;

        det_assert(field->offset + field->size * count <= fields->record->size);
        if (presence)
            memcpy(
                (char *)value + field->presence, (char *)fields->value + field->presence, presence);
        memcpy(
            (char *)value + field->offset, (char *)fields->value + field->offset,
            field->size * count);
    }
}
