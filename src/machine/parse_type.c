/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_type.c - the types of fields: u64, str(24), nested(line). */
#include "machine/parse_type.h"

#include <string.h>

#include "base/text.h"

struct simple_type {
    const char *name;
    enum det_kind kind;
    uint32_t size;
};

static const struct simple_type simple_types[] = {
    { "u8", DET_KIND_UNSIGNED, 1 },  { "u16", DET_KIND_UNSIGNED, 2 },
    { "u32", DET_KIND_UNSIGNED, 4 }, { "u64", DET_KIND_UNSIGNED, 8 },
    { "i8", DET_KIND_SIGNED, 1 },    { "i16", DET_KIND_SIGNED, 2 },
    { "i32", DET_KIND_SIGNED, 4 },   { "i64", DET_KIND_SIGNED, 8 },
    { "f64", DET_KIND_FLOAT, 8 },    { "bool", DET_KIND_BOOL, sizeof(bool) },
    { "time", DET_KIND_TIME, 8 },
};

#define SIMPLE_COUNT (sizeof simple_types / sizeof *simple_types)

/* Returns the number in a type such as str(24). */
static uint32_t capacity_of(struct det_take *take, const struct det_node *type)
{
    uint64_t number = 0;

    if (type->argument_count != 1 || type->arguments->kind != DET_NODE_NUMBER ||
        det_parse_u64(det_view_text(type->arguments->text), &number) < 0 || number == 0 ||
        number > DET_RECORD_SIZE_MAX) {
        det_take_fail(take, type, "a type whose size is a number from 1 to 262144");
        return 0;
    }
    return (uint32_t)number;
}

static const struct det_node *inner_name(struct det_take *take, const struct det_node *type)
{
    if (type->argument_count == 1 && type->arguments->kind == DET_NODE_NAME)
        return type->arguments;
    det_take_fail(take, type, "a type with one name inside, such as nested(line)");
    return NULL;
}

static void report_unknown(struct det_spec *spec, const struct det_node *name, enum det_row row)
{
    struct det_place place = det_parse_place(name);

    det_parse_report(
        spec, DET_RULE_UNKNOWN_RECORD, &place, "unknown %s %.*s%s",
        row == DET_ROW_RECORD ? "record" : "enum", DET_NAME_MAX, name->text,
        row == DET_ROW_RECORD ? ": declare it before this field" : "");
    det_parse_hint_declared(spec, name->text, row);
}

static bool nested_shape(struct det_take *take, const struct det_node *type, struct det_shape *ret)
{
    const struct det_node *name = inner_name(take, type);
    const struct det_parsed_record *inner;

    if (name == NULL)
        return false;
    inner = det_map_get(&take->spec->record_map, name->text);
    if (inner == NULL) {
        report_unknown(take->spec, name, DET_ROW_RECORD);
        return false;
    }
    *ret = (struct det_shape){ .kind = DET_KIND_RECORD,
                               .size = inner->definition.size,
                               .alignment = inner->alignment,
                               .depth = inner->depth,
                               .record = &inner->definition };
    return true;
}

/* The C source of a worker may include a header with the enum: here it is a number. */
static bool foreign_shape(struct det_spec *spec, const struct det_node *name, struct det_shape *ret)
{
    struct det_place place = det_parse_place(name);

    if (spec->language != DET_LANGUAGE_WORKER) {
        report_unknown(spec, name, DET_ROW_ENUM);
        return false;
    }
    det_parse_report(
        spec, DET_RULE_FOREIGN_ENUM, &place, "the enum %.*s is not described here", DET_NAME_MAX,
        name->text);
    det_parse_hint_declared(spec, name->text, DET_ROW_ENUM);
    *ret = (struct det_shape){ .kind = DET_KIND_SIGNED,
                               .size = sizeof(int),
                               .alignment = _Alignof(int) };
    return true;
}

static bool enum_shape(struct det_take *take, const struct det_node *type, struct det_shape *ret)
{
    const struct det_node *name = inner_name(take, type);
    const struct det_parsed_enum *inner;

    if (name == NULL)
        return false;
    inner = det_map_get(&take->spec->enum_map, name->text);
    if (inner == NULL)
        return foreign_shape(take->spec, name, ret);
    /* An enum without values was reported at its declaration. */
    if (inner->definition.value_count == 0)
        return false;
    *ret = (struct det_shape){ .kind = DET_KIND_ENUM,
                               .size = sizeof(int),
                               .alignment = _Alignof(int),
                               .enumeration = &inner->definition };
    return true;
}

static bool sized_shape(struct det_take *take, const struct det_node *type, struct det_shape *ret)
{
    uint32_t capacity = capacity_of(take, type);

    if (capacity == 0)
        return false;
    if (strcmp(type->text, "str") == 0)
        *ret = (struct det_shape){ DET_KIND_TEXT, capacity + 1, 1, capacity, 0, NULL, NULL };
    else
        *ret = (struct det_shape){ .kind = DET_KIND_BYTES,
                                   .size = (uint32_t)det_round_up(
                                       sizeof(uint32_t) + capacity, _Alignof(uint32_t)),
                                   .alignment = _Alignof(uint32_t),
                                   .capacity = capacity };
    return true;
}

static bool simple_shape(const struct det_node *type, struct det_shape *ret)
{
    for (size_t i = 0; i < SIMPLE_COUNT; i++) {
        const struct simple_type *simple = &simple_types[i];

        if (type->kind != DET_NODE_NAME || strcmp(type->text, simple->name) != 0)
            continue;
        *ret = (struct det_shape){ .kind = simple->kind,
                                   .size = simple->size,
                                   .alignment = simple->size };
        return true;
    }
    return false;
}

/* Names of types in other languages, each followed by the type here. */
static const char *type_meant(const char *word)
{
    static const char *const elsewhere[][2] = {
        { "int", "i64" },
        { "unsigned", "u64" },
        { "uint8_t", "u8" },
        { "uint16_t", "u16" },
        { "uint32_t", "u32" },
        { "uint64_t", "u64" },
        { "int8_t", "i8" },
        { "int16_t", "i16" },
        { "int32_t", "i32" },
        { "int64_t", "i64" },
        { "float", "f64" },
        { "double", "f64" },
        { "boolean", "bool" },
        { "string", "str(24)" },
        { "text", "str(24)" },
        { "char", "str(24)" },
        { "timestamp", "time" },
        { "enum", "one_of(color)" },
        { "struct", "nested(line)" },
    };

    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (strcmp(word, elsewhere[i][0]) == 0)
            return elsewhere[i][1];
    }
    return NULL;
}

static void fail_type(struct det_take *take, const struct det_node *type)
{
    const char *names[SIMPLE_COUNT + 4] = { "str", "bytes", "one_of", "nested" };
    const char *meant = type_meant(type->text);
    bool is_spelt_right = false;

    for (size_t i = 0; i < SIMPLE_COUNT; i++)
        names[4 + i] = simple_types[i].name;
    for (size_t i = 0; i < SIMPLE_COUNT + 4; i++)
        is_spelt_right = is_spelt_right || strcmp(names[i], type->text) == 0;
    det_take_fail(take, type, "a type such as u64, str(24), one_of(color) or nested(line)");
    if (meant != NULL)
        det_parse_hint(take->spec, "did you mean %s?", meant);
    else if (!is_spelt_right)
        det_parse_hint_nearest(take->spec, type->text, names, SIMPLE_COUNT + 4);
}

static bool shape_of(struct det_take *take, const struct det_node *type, struct det_shape *ret)
{
    if (simple_shape(type, ret))
        return true;
    if (type->kind == DET_NODE_CALL) {
        if (strcmp(type->text, "str") == 0 || strcmp(type->text, "bytes") == 0)
            return sized_shape(take, type, ret);
        if (strcmp(type->text, "nested") == 0)
            return nested_shape(take, type, ret);
        if (strcmp(type->text, "one_of") == 0)
            return enum_shape(take, type, ret);
    }
    fail_type(take, type);
    return false;
}

void det_take_type(struct det_take *take, struct det_shape *ret)
{
    const struct det_node *type = take->failed ? NULL : take->next;

    if (type == NULL)
        return;
    take->next = type->next;
    if (!shape_of(take, type, ret))
        take->failed = true;
    take->index++;
}
