/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_record.c - builds records and enums from their rows, with the layout that a C compiler
 * would give the struct.
 *
 * Members are in the order of the rows, each at the next multiple of its alignment; an OPTIONAL has
 * a bool directly before it, an ARRAY its uint32_t count. The rows are walked twice, for the enums
 * and for the records, so an enum may follow its use and a record may not. Therefore sizes and
 * depths are known when a field is read, no record contains itself, and each mistake has its place.
 * A record without a report passes det_record_check(). */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "machine/parse_type.h"
#include "machine/reserved_names.h"

/* The record or enum that is open, if any. */
struct block {
    struct det_spec *spec;
    const struct det_node *at; /* NULL: nothing is open */
    bool is_enum;
    struct det_parsed_record *record;
    struct det_parsed_enum *enumeration;
    struct det_field *fields;      /* DET_RECORD_FIELD_MAX of them */
    struct det_enum_value *values; /* DET_ENUM_VALUE_MAX of them */
    const char **companions;       /* has_x, x_count; NULL: none */
    uint64_t size;
    bool has_refused;  /* a row of the block was refused: that it is empty is no second mistake */
    bool is_for_enums; /* the first walk over the rows */
};

/* Reports `name` followed by `rest`. */
static void report_record(
    struct det_spec *spec, const struct det_node *node, const char *name, const char *rest)
{
    struct det_place place = det_parse_place(node);

    det_parse_report(spec, DET_RULE_BAD_RECORD, &place, "%.*s%s", DET_NAME_MAX, name, rest);
}

/* Reads a name that becomes a member, a struct or an enumerator in C. */
static const char *take_c_name(struct det_take *take, const char *what)
{
    const struct det_node *node = det_take_node(take, what);
    struct det_place place;

    if (node == NULL || det_name_use(node->text) == NULL)
        return det_parse_text(node);
    place = det_parse_place(node);
    det_parse_report(
        take->spec, DET_RULE_BAD_NAME, &place, "%s is %s and cannot be %s", node->text,
        det_name_use(node->text), what);
    take->failed = true;
    return NULL;
}

static void take_since(struct det_take *take, const struct det_node *flag, struct det_field *field)
{
    static const struct det_row_kind since_kind = { "SINCE", "SINCE(version)", "", 1, 1, 0, true };
    struct det_take inner = det_take_start(take->spec, flag, &since_kind);

    field->since = det_take_number(&inner, UINT32_MAX, "a version from 1");
    take->failed |= inner.failed;
}

static void fail_flag(struct det_take *take, const struct det_node *flag)
{
    static const char *const flags[] = { "SENSITIVE", "SINCE" };

    det_take_fail(take, flag, "SENSITIVE or SINCE(version), each once");
    if (strcmp(flag->text, flags[0]) != 0 && strcmp(flag->text, flags[1]) != 0)
        det_parse_hint_nearest(take->spec, flag->text, flags, 2);
}

/* Reads SENSITIVE and SINCE(n), in any order, each once. */
static void take_flags(struct det_take *take, struct det_field *field)
{
    for (const struct det_node *flag = take->next; flag != NULL && !take->failed;
         flag = flag->next, take->index++) {
        if (flag->kind == DET_NODE_NAME && strcmp(flag->text, "SENSITIVE") == 0 &&
            !(field->flags & DET_FIELD_SENSITIVE))
            field->flags |= DET_FIELD_SENSITIVE;
        else if (
            flag->kind == DET_NODE_CALL && strcmp(flag->text, "SINCE") == 0 && field->since == 0)
            take_since(take, flag, field);
        else
            fail_flag(take, flag);
    }
}

/* Appends a member to the struct; returns its offset. */
static uint32_t place_member(struct block *block, uint64_t size, uint32_t alignment)
{
    uint64_t offset = det_round_up(block->size, alignment);

    det_assert(alignment > 0 && (alignment & (alignment - 1)) == 0);
    block->size = offset + size;
    if (alignment > block->record->alignment)
        block->record->alignment = alignment;
    return (uint32_t)(offset > DET_RECORD_SIZE_MAX ? 0 : offset);
}

static const char *companion_name(struct det_spec *spec, const struct det_field *field)
{
    size_t size = strlen(field->name) + sizeof "_count";
    char *name = NULL;

    if (field->flags & (DET_FIELD_OPTIONAL | DET_FIELD_ARRAY))
        name = det_parse_alloc(spec, size);
    if (name != NULL)
        (void)snprintf(
            name, size, "%s%s%s", field->flags & DET_FIELD_OPTIONAL ? "has_" : "", field->name,
            field->flags & DET_FIELD_ARRAY ? "_count" : "");
    return name;
}

static bool are_same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Returns true if the struct would have two members of one name. */
static bool is_taken(const struct block *block, const char *name, const char *companion)
{
    for (size_t i = 0; i < block->record->definition.field_count; i++) {
        const char *other = block->fields[i].name, *other_companion = block->companions[i];

        if (are_same(name, other) || are_same(name, other_companion) ||
            are_same(companion, other) || are_same(companion, other_companion))
            return true;
    }
    return false;
}

static const char *field_problem(
    const struct block *block, const struct det_field *field, const char *companion,
    const struct det_shape *shape)
{
    const struct det_record *record = &block->record->definition;

    if (record->field_count == DET_RECORD_FIELD_MAX)
        return " is one too many: a record has at most 256 fields";
    if (is_taken(block, field->name, companion))
        return " is already a field of the record, or the presence or count of one";
    if (field->since > record->version)
        return " is newer than its record: SINCE is at most the record's version";
    if (shape->depth >= DET_RECORD_DEPTH_MAX)
        return " is nested too deep: records nest at most 8 deep";
    return NULL;
}

static void lay_out(struct block *block, struct det_field *field, const struct det_shape *shape)
{
    uint64_t count = field->flags & DET_FIELD_ARRAY ? field->count_max : 1;

    if (field->flags & DET_FIELD_OPTIONAL)
        field->presence = place_member(block, sizeof(bool), _Alignof(bool));
    if (field->flags & DET_FIELD_ARRAY)
        field->presence = place_member(block, sizeof(uint32_t), _Alignof(uint32_t));
    field->kind = shape->kind;
    field->size = shape->size;
    field->capacity = shape->capacity;
    field->record.record = shape->record;
    field->enumeration.enumeration = shape->enumeration;
    field->offset = place_member(block, count * shape->size, shape->alignment);
    if (shape->depth >= block->record->depth)
        block->record->depth = shape->depth + 1;
}

/* Without this row, further findings about the record may be false. */
static void refuse_block(struct block *block)
{
    block->has_refused = true;
    det_parse_suspect(block->spec, DET_RULE_BAD_KEEP);
}

static void add_field(struct block *block, const struct det_node *row)
{
    struct det_record *record = &block->record->definition;
    struct det_take take = det_take_start(block->spec, row, det_row_kind(row->row));
    struct det_field field = { .flags = 0 };
    struct det_shape shape = { .size = 0 };
    const char *companion, *problem;

    field.flags = row->row == DET_ROW_OPTIONAL ? DET_FIELD_OPTIONAL
                  : row->row == DET_ROW_ARRAY  ? DET_FIELD_ARRAY
                                               : 0;
    field.name = take_c_name(&take, "the name of a field");
    det_take_type(&take, &shape);
    if (row->row == DET_ROW_ARRAY)
        field.count_max = det_take_number(&take, DET_RECORD_SIZE_MAX, "a number from 1 to 262144");
    take_flags(&take, &field);
    if (take.failed) {
        refuse_block(block);
        return;
    }
    companion = companion_name(block->spec, &field);
    problem = field_problem(block, &field, companion, &shape);
    if (problem != NULL) {
        report_record(block->spec, row->arguments, field.name, problem);
        refuse_block(block);
        return;
    }
    det_assert(record->field_count < DET_RECORD_FIELD_MAX && shape.depth < DET_RECORD_DEPTH_MAX);
    lay_out(block, &field, &shape);
    block->companions[record->field_count] = companion;
    block->fields[record->field_count++] = field;
}

static const char *value_problem(const struct block *block, const char *name, const char *wire)
{
    const struct det_enum *enumeration = &block->enumeration->definition;

    if (enumeration->value_count == DET_ENUM_VALUE_MAX)
        return " is one too many: an enum has at most 1024 values";
    if (det_map_get(&block->spec->value_map, name) != NULL)
        return " is already a value of this or of another enum";
    for (size_t i = 0; i < enumeration->value_count; i++) {
        if (strcmp(block->values[i].name, wire) == 0)
            return " has a name on disk that is already one of the enum";
    }
    return NULL;
}

static void declare_value(struct det_spec *spec, const char *name)
{
    struct det_parsed_value *value = det_parse_alloc(spec, sizeof *value);

    if (value == NULL)
        return;
    value->name = name;
    if (det_map_put(&spec->value_map, value) < 0)
        spec->error = DET_ERR_NO_MEMORY;
}

static void add_value(struct block *block, const struct det_node *row)
{
    struct det_enum *enumeration = &block->enumeration->definition;
    struct det_take take = det_take_start(block->spec, row, det_row_kind(row->row));
    const char *name = take_c_name(&take, "the name of a value in C");
    const char *wire = take_c_name(&take, "its name on disk");
    const char *problem;

    block->has_refused |= take.failed;
    if (take.failed)
        return;
    problem = value_problem(block, name, wire);
    if (problem != NULL) {
        report_record(block->spec, row->arguments, name, problem);
        block->has_refused = true;
        return;
    }
    det_assert(enumeration->value_count < DET_ENUM_VALUE_MAX);
    declare_value(block->spec, name);
    block->values[enumeration->value_count] =
        (struct det_enum_value){ wire, (int)enumeration->value_count };
    enumeration->value_count++;
}

static void *copy_array(struct det_spec *spec, const void *items, size_t count, size_t size)
{
    void *copy = det_parse_alloc(spec, count * size);

    if (copy != NULL && count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

static void put_named(
    struct det_spec *spec, struct det_map *map, void *value, const struct det_node *name)
{
    struct det_place place = det_parse_place(name);
    int r = det_map_put(map, value);

    if (r == DET_ERR_EXISTS)
        det_parse_report(
            spec, DET_RULE_DUPLICATE_NAME, &place, "duplicate record or enum %.*s", DET_NAME_MAX,
            name->text);
    else if (r < 0)
        spec->error = r;
}

static void close_record(struct block *block)
{
    struct det_spec *spec = block->spec;
    struct det_parsed_record *record = block->record;
    struct det_record *definition = &record->definition;
    uint64_t size = det_round_up(block->size, record->alignment);

    if (definition->field_count == 0 && !block->has_refused)
        report_record(spec, block->at, definition->name, " has no fields");
    if (size > DET_RECORD_SIZE_MAX) {
        report_record(spec, block->at, definition->name, " takes more than 262144 bytes");
        /* Without its fields the record is valid, so that one mistake is one finding. */
        definition->field_count = 0;
        size = 1;
    }
    definition->size = size > 0 ? (uint32_t)size : 1;
    definition->fields =
        copy_array(spec, block->fields, definition->field_count, sizeof *block->fields);
    put_named(spec, &spec->record_map, record, block->at->arguments);
    *spec->records_tail = record;
    spec->records_tail = &record->next;
}

static void close_enum(struct block *block)
{
    struct det_spec *spec = block->spec;
    struct det_enum *definition = &block->enumeration->definition;

    if (definition->value_count == 0 && !block->has_refused)
        report_record(spec, block->at, definition->name, " has no values");
    definition->values =
        copy_array(spec, block->values, definition->value_count, sizeof *block->values);
    put_named(spec, &spec->enum_map, block->enumeration, block->at->arguments);
}

/* Returns the name in a row with a mistake. NULL if it cannot be read: then other rows may report
 * that it is missing. */
static const char *salvaged_name(struct det_spec *spec, const struct det_node *row)
{
    if (det_parse_is_name(spec, row->arguments) && det_name_use(row->arguments->text) == NULL)
        return row->arguments->text;
    det_parse_suspect(spec, DET_RULE_UNKNOWN_RECORD);
    det_parse_suspect(spec, DET_RULE_BAD_KEEP);
    return NULL;
}

static void open_record(struct block *block, const struct det_node *row)
{
    struct det_take take = det_take_start(block->spec, row, det_row_kind(row->row));
    const char *name = take_c_name(&take, "the name of a record");
    uint32_t version = 1;

    if (take.next != NULL)
        version = det_take_number(&take, UINT32_MAX, "a version from 1");
    block->record = det_parse_alloc(block->spec, sizeof *block->record);
    name = name != NULL ? name : salvaged_name(block->spec, row);
    if (name == NULL || block->record == NULL)
        return;
    *block->record = (struct det_parsed_record){ .alignment = 1, .depth = 1 };
    block->record->definition.name = name;
    block->record->definition.version = version > 0 ? version : 1;
    block->size = 0;
    block->at = row;
}

static void open_enum(struct block *block, const struct det_node *row)
{
    struct det_take take = det_take_start(block->spec, row, det_row_kind(row->row));
    const char *name = take_c_name(&take, "the name of an enum");

    block->enumeration = det_parse_alloc(block->spec, sizeof *block->enumeration);
    name = name != NULL ? name : salvaged_name(block->spec, row);
    if (name == NULL || block->enumeration == NULL)
        return;
    block->enumeration->definition.name = name;
    block->at = row;
}

/* Reports a mistake in the order of the rows, in the first walk only. */
static void report_order(
    struct block *block, const struct det_node *row, const char *name, const char *rest)
{
    if (block->is_for_enums)
        report_record(block->spec, row, name, rest);
}

/* Completes the block in its own walk; the other walk only forgets it. */
static void close_block(struct block *block)
{
    if (block->at != NULL && block->is_enum == block->is_for_enums) {
        if (block->is_enum)
            close_enum(block);
        else
            close_record(block);
    }
    block->at = NULL;
}

/* A record without END is still declared: one mistake is one finding. */
static void report_unclosed(struct block *block)
{
    if (block->at != NULL && block->at->argument_count > 0)
        report_order(block, block->at, block->at->arguments->text, " has no END");
    block->has_refused = true;
    close_block(block);
}

/* Opens the block in its own walk; the other walk only remembers its row. */
static void begin_block(struct block *block, const struct det_node *row)
{
    bool is_enum = row->row == DET_ROW_ENUM;

    report_unclosed(block);
    block->has_refused = false;
    if (is_enum != block->is_for_enums)
        block->at = row;
    else if (is_enum)
        open_enum(block, row);
    else
        open_record(block, row);
    block->is_enum = is_enum;
}

static void end_block(struct block *block, const struct det_node *row)
{
    if (row->argument_count > 0 && !row->is_broken)
        report_order(block, row, "END", " has no arguments");
    if (block->at == NULL && !block->spec->is_text_broken)
        report_order(block, row, "END", " ends nothing: RECORD or ENUM is missing");
    close_block(block);
}

/* Adds a field to the open record, or a value to the open enum. */
static void add_member(struct block *block, const struct det_node *row)
{
    bool is_value = row->row == DET_ROW_VALUE;

    if (block->at == NULL || block->is_enum != is_value) {
        if (block->at != NULL || !block->spec->is_text_broken)
            report_order(
                block, row, row->text,
                is_value ? " belongs between ENUM and END" : " belongs between RECORD and END");
        return;
    }
    if (is_value != block->is_for_enums)
        return;
    if (is_value)
        add_value(block, row);
    else
        add_field(block, row);
}

static void read_rows(struct block *block, const struct det_rows *rows)
{
    for (const struct det_node *row = rows->first; row != NULL && block->spec->error == 0;
         row = row->next) {
        if (!det_row_kind_in(block->spec->language, row->row)->is_of_records)
            continue;
        if (row->row == DET_ROW_RECORD || row->row == DET_ROW_ENUM)
            begin_block(block, row);
        else if (row->row == DET_ROW_END)
            end_block(block, row);
        else
            add_member(block, row);
    }
    report_unclosed(block);
}

void det_parse_records(struct det_spec *spec)
{
    struct block block = { .spec = spec, .is_for_enums = true };

    block.fields = det_parse_alloc(spec, DET_RECORD_FIELD_MAX * sizeof *block.fields);
    block.companions = det_parse_alloc(spec, DET_RECORD_FIELD_MAX * sizeof *block.companions);
    block.values = det_parse_alloc(spec, DET_ENUM_VALUE_MAX * sizeof *block.values);
    /* In C all enums are known before the first record. */
    for (int walk = 0; walk < 2 && spec->error == 0; walk++) {
        block.is_for_enums = walk == 0;
        read_rows(&block, &spec->shared_rows);
        read_rows(&block, &spec->rows);
    }
}

const struct det_record *det_parse_record_of(struct det_spec *spec, const struct det_node *node)
{
    const struct det_parsed_record *record = det_map_get(&spec->record_map, node->text);
    struct det_place place = det_parse_place(node);

    if (record != NULL)
        return &record->definition;
    det_parse_report(
        spec, DET_RULE_UNKNOWN_RECORD, &place,
        "unknown record %.*s: declare it in the spec or in a file it USES", DET_NAME_MAX,
        node->text);
    det_parse_hint_declared(spec, node->text, DET_ROW_RECORD);
    return NULL;
}
