/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* definition_check.c - checks a record definition, so that all other code may trust it.
 *
 * A valid definition means:
 *   1. every name is valid and unique among its kind;
 *   2. every field is inside its struct with its presence or count, and none overlaps another;
 *   3. sizes fit the kinds, so that values are loaded and stored whole;
 *   4. a record does not contain itself, and exceeds neither the depth nor the size limit;
 *   5. an enum has a value 0, the default of a field that old bytes do not contain. */
#include <detent/record.h>

#include <string.h>

#include "base/text.h"
#include "record/field_value.h"
#include "record/field_walk.h"

/* A range of bytes in a struct that belongs to one field. */
struct extent {
    uint64_t start, end;
};

static struct extent value_extent(const struct det_field *field)
{
    uint64_t count = field->flags & DET_FIELD_ARRAY ? field->count_max : 1;

    return (struct extent){ field->offset, field->offset + count * field->size };
}

static struct extent presence_extent(const struct det_field *field)
{
    uint32_t size = field->flags & DET_FIELD_ARRAY      ? sizeof(uint32_t)
                    : field->flags & DET_FIELD_OPTIONAL ? 1
                                                        : 0;

    return (struct extent){ field->presence, (uint64_t)field->presence + size };
}

static bool extents_overlap(struct extent a, struct extent b)
{
    return a.start < b.end && b.start < a.end;
}

static bool fields_overlap(const struct det_field *a, const struct det_field *b)
{
    struct extent value = value_extent(a), presence = presence_extent(a);

    return extents_overlap(value, value_extent(b)) || extents_overlap(value, presence_extent(b)) ||
           extents_overlap(presence, value_extent(b)) ||
           extents_overlap(presence, presence_extent(b));
}

static bool name_is_valid(const char *name)
{
    return name && det_name_is_valid(name);
}

static const char *enum_problem(const struct det_enum *enumeration)
{
    bool has_zero = false;

    if (!enumeration || !name_is_valid(enumeration->name))
        return "its enum has no definition or no valid name";
    if (enumeration->value_count > DET_ENUM_VALUE_MAX || !enumeration->values)
        return "its enum has no values or more than 1024";
    for (size_t i = 0; i < enumeration->value_count; i++) {
        const struct det_enum_value *value = &enumeration->values[i];

        if (!name_is_valid(value->name))
            return "a value of its enum has no valid name";
        has_zero |= value->value == 0;
        for (size_t k = 0; k < i; k++)
            if (enumeration->values[k].value == value->value ||
                strcmp(enumeration->values[k].name, value->name) == 0)
                return "duplicate name or number in its enum";
    }
    return has_zero ? NULL : "its enum has no value 0";
}

static bool size_fits_kind(const struct det_field *field)
{
    const struct det_record *nested = det_record_of(field->record);
    uint64_t size = field->size;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return size == 1 || size == 2 || size == 4 || size == 8;
    case DET_KIND_FLOAT:
    case DET_KIND_TIME:
        return size == 8;
    case DET_KIND_BOOL:
        return size == sizeof(bool);
    case DET_KIND_TEXT:
        return field->capacity > 0 && size == (uint64_t)field->capacity + 1;
    case DET_KIND_BYTES:
        return field->capacity > 0 && size == ((uint64_t)field->capacity + 7) / 4 * 4;
    case DET_KIND_ENUM:
        return size == sizeof(int);
    case DET_KIND_RECORD:
        return nested && size == nested->size;
    }
    return false;
}

static const char *field_problem(const struct det_record *record, const struct det_field *field)
{
    const unsigned both = DET_FIELD_ARRAY | DET_FIELD_OPTIONAL;

    if (field->flags & ~(both | DET_FIELD_SENSITIVE))
        return "it has an unknown flag";
    if ((field->flags & both) == both)
        return "it is optional and an array";
    if ((field->flags & DET_FIELD_ARRAY) && field->count_max == 0)
        return "it is an array of 0 elements";
    if (!size_fits_kind(field))
        return "its kind or its size is not valid";
    if (value_extent(field).end > record->size || presence_extent(field).end > record->size)
        return "it is outside its struct";
    if (extents_overlap(value_extent(field), presence_extent(field)))
        return "it overlaps its own presence";
    if (det_field_since(field) > det_record_version(record))
        return "it is newer than its record";
    if (field->kind == DET_KIND_ENUM)
        return enum_problem(det_enum_of(field->enumeration));
    return NULL;
}

/* Returns the problem of this field with the preceding ones; NULL if there is none. */
static const char *neighbour_problem(const struct det_record *record, const struct det_field *field)
{
    for (const struct det_field *other = record->fields; other < field; other++) {
        if (strcmp(other->name, field->name) == 0)
            return "duplicate name";
        if (fields_overlap(other, field))
            return "it overlaps another field";
    }
    return NULL;
}

static int check_record(const struct det_record *record, struct det_error *reterr)
{
    if (!name_is_valid(record->name))
        return det_error_set(reterr, DET_ERR_DEFINITION, "a record has no valid name");
    if (record->size == 0 || (record->field_count > 0 && !record->fields))
        return det_error_set(
            reterr, DET_ERR_DEFINITION, "record %s: it has no size or no fields", record->name);
    if (record->size > DET_RECORD_SIZE_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "record %s: %u bytes, more than %u", record->name, record->size,
            DET_RECORD_SIZE_MAX);
    if (record->field_count > DET_RECORD_FIELD_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "record %s: %zu fields, more than %u", record->name,
            record->field_count, DET_RECORD_FIELD_MAX);
    return 0;
}

/* Returns 0 if the walk may enter the record of this field. */
static int check_nested(const struct det_walk *walk, const char *place, struct det_error *reterr)
{
    const struct det_record *nested = det_record_of(walk->field->record);

    for (unsigned i = 0; i < walk->depth; i++)
        if (walk->frames[i].place.record == nested)
            return det_error_set(
                reterr, DET_ERR_DEFINITION, "%s: the record contains itself", place);
    if (walk->depth == DET_RECORD_DEPTH_MAX)
        return det_error_set(
            reterr, DET_ERR_LIMIT, "%s: records nest deeper than %u", place, DET_RECORD_DEPTH_MAX);
    return check_record(nested, reterr);
}

static int check_field(struct det_walk *walk, struct det_error *reterr)
{
    const struct det_record *record = det_walk_frame(walk)->place.record;
    const char *problem;
    char place[DET_PLACE_TEXT];

    if (!name_is_valid(walk->field->name))
        return det_error_set(
            reterr, DET_ERR_DEFINITION, "record %s: field %zu has no valid name", record->name,
            (size_t)(walk->field - record->fields) + 1);
    det_walk_place(walk, place, sizeof place);
    problem = field_problem(record, walk->field);
    if (!problem)
        problem = neighbour_problem(record, walk->field);
    if (problem)
        return det_error_set(reterr, DET_ERR_DEFINITION, "%s: %s", place, problem);
    if (walk->field->kind == DET_KIND_RECORD)
        return check_nested(walk, place, reterr);
    return 0;
}

int det_record_check(const struct det_record *record, struct det_error *reterr)
{
    struct det_walk walk;
    enum det_walk_step step;
    int r;

    if (!record)
        return det_error_set(reterr, DET_ERR_DEFINITION, "the record is NULL");
    r = check_record(record, reterr);
    if (r < 0)
        return r;
    det_walk_init(&walk, record, NULL);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        if (step != DET_WALK_FIELD)
            continue;
        r = check_field(&walk, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}
