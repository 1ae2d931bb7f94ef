/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_keep.c - finds the ranges that a KEEP copies.
 *
 *      payload  | ... | has_note | note ........ |        one range if both members are adjacent on
 *      data     | has_note | note ........ | ... |        both sides, otherwise two
 *
 * Bytes between members that are not adjacent may belong to another field, and are not copied. */
#include "machine/builder_keep.h"

#include <string.h>

#include "base/assert.h"

#define SHAPE_FLAGS (unsigned)(DET_FIELD_OPTIONAL | DET_FIELD_ARRAY)

static bool same_record(const struct det_record *a, const struct det_record *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    return a->size == b->size && strcmp(a->name, b->name) == 0;
}

static bool same_enum(const struct det_enum *a, const struct det_enum *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    return a->value_count == b->value_count && strcmp(a->name, b->name) == 0;
}

bool det_build_same_type(const struct det_field *a, const struct det_field *b)
{
    return a->kind == b->kind && (a->flags & SHAPE_FLAGS) == (b->flags & SHAPE_FLAGS) &&
           a->size == b->size && a->capacity == b->capacity && a->count_max == b->count_max &&
           same_record(det_record_of(a->record), det_record_of(b->record)) &&
           same_enum(det_enum_of(a->enumeration), det_enum_of(b->enumeration));
}

static uint32_t value_size(const struct det_field *field)
{
    return (field->flags & DET_FIELD_ARRAY) != 0 ? field->size * field->count_max : field->size;
}

/* Returns the size of the presence or the count; 0 if the field has neither. */
static uint32_t presence_size(const struct det_field *field)
{
    if ((field->flags & DET_FIELD_ARRAY) != 0)
        return sizeof(uint32_t);
    return (field->flags & DET_FIELD_OPTIONAL) != 0 ? sizeof(bool) : 0;
}

static bool is_adjacent(const struct det_field *field)
{
    return presence_size(field) > 0 && field->presence + presence_size(field) == field->offset;
}

size_t det_build_keep_ranges(
    const struct det_field *from, const struct det_field *to, uint32_t event_offset,
    struct det_keep ret[DET_BUILD_KEEP_RANGES])
{
    size_t count = 0;
    struct det_keep value = {
        .event_offset = event_offset + from->offset,
        .data_offset = to->offset,
        .size = value_size(from),
    };

    det_assert(det_build_same_type(from, to));
    if (is_adjacent(from) && is_adjacent(to)) {
        value.event_offset -= presence_size(from);
        value.data_offset -= presence_size(from);
        value.size += presence_size(from);
    } else if (presence_size(from) > 0) {
        ret[count++] = (struct det_keep){
            .event_offset = event_offset + from->presence,
            .data_offset = to->presence,
            .size = presence_size(from),
        };
    }
    ret[count++] = value;
    return count;
}
