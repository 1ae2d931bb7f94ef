/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* encode.c - encodes records to bytes (docs/formats/record.md).
 *
 *     01 | version | length | body ... | crc32c
 *
 * The encoder only detects that a value is invalid; det_record_validate(), which visits the fields
 * in the same order, then finds the error and its place. */
#include <detent/record.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/unset.h"
#include "record/binary.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/nest.h"
#include "record/varint.h"
#include "record/word64.h"

static size_t longest_name(const struct det_enum *enumeration)
{
    size_t longest = 0, length;

    det_assert(enumeration != NULL);
    for (size_t i = 0; i < enumeration->value_count; i++) {
        length = strlen(enumeration->values[i].name);
        if (length > longest)
            longest = length;
    }
    return longest;
}

/* Maximum size of one value; of records only the version, which is written once. */
static size_t value_max(const struct det_field *field)
{
    size_t size = field->capacity;

    switch (field->kind) {
    case DET_KIND_BOOL:
        return 1;
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return field->size == 1 ? 1 : det_varint_size(UINT64_MAX >> (64 - 8 * field->size));
    case DET_KIND_FLOAT:
    case DET_KIND_TIME:
        return 8;
    case DET_KIND_RECORD:
        return det_varint_size(det_nested_version(field));
    case DET_KIND_ENUM:
        size = longest_name(det_enum_of(field->enumeration));
        break;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        break;
    }
    return det_varint_size(size) + size;
}

static size_t presence_max(const struct det_field *field)
{
    if (field->flags & DET_FIELD_ARRAY)
        return det_varint_size(field->count_max);
    return field->flags & DET_FIELD_OPTIONAL ? 1 : 0;
}

static size_t frame_size(const struct det_record *record, size_t body)
{
    return 1 + det_varint_size(det_record_version(record)) + det_varint_size(body) + body +
           DET_RECORD_CHECKSUM_SIZE;
}

size_t det_record_encoded_max(const struct det_record *record)
{
    /* factors[n]: maximum number of records at depth n. */
    size_t factors[DET_RECORD_DEPTH_MAX + 1] = { 1 }, total = 0, count, *outer;
    struct det_walk walk;
    enum det_walk_step step;

    det_walk_init(&walk, record, NULL);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        if (step != DET_WALK_FIELD)
            continue;
        outer = &factors[walk.depth - 1];
        count = walk.field->flags & DET_FIELD_ARRAY ? walk.field->count_max : 1;
        if (!det_mul_size(outer[0], count, &outer[1]))
            return SIZE_MAX;
        total += presence_max(walk.field) * outer[0];
        total += value_max(walk.field) * outer[walk.field->kind != DET_KIND_RECORD];
    }
    return frame_size(record, total);
}

static inline size_t put_view(
    struct det_byte_space space, size_t at, const void *bytes, size_t size)
{
    at = det_put_varint(space, at, size);
    return det_put_bytes(space, at, bytes, size);
}

static DET_INLINE size_t
put_text(struct det_byte_space space, size_t at, const struct det_field *field, const uint8_t *text)
{
    size_t length = strnlen((const char *)text, field->size), end;
    bool is_plain = false;

    if (length == field->size)
        return DET_NOWHERE;
    at = det_put_varint(space, at, length);
    end = at + length;
    if (end <= space.capacity)
        is_plain = det_copy_plain(space.data + at, text, length);
    if (!is_plain && det_utf8_check((const char *)text, length) != length)
        return DET_NOWHERE;
    return end;
}

static inline size_t put_bytes(
    struct det_byte_space space, size_t at, const struct det_field *field, const uint8_t *value)
{
    uint32_t size;

    memcpy(&size, value, sizeof size);
    if (size > field->capacity)
        return DET_NOWHERE;
    return put_view(space, at, value + sizeof size, size);
}

static inline size_t put_enum(
    struct det_byte_space space, size_t at, const struct det_field *field, const uint8_t *value)
{
    const char *name = det_value_enum_name(field, value);

    return name ? put_view(space, at, name, strlen(name)) : DET_NOWHERE;
}

/* One value, or the version of the records in the field. DET_NOWHERE when it is not valid. */
static DET_INLINE size_t put_value(
    struct det_byte_space space, size_t at, const struct det_field *field, const uint8_t *value)
{
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        if (field->size == 1)
            return det_put_byte(space, at, *value);
        return det_put_varint(space, at, det_value_unsigned(field, value));
    case DET_KIND_SIGNED:
        if (field->size == 1)
            return det_put_byte(space, at, *value);
        return det_put_varint(space, at, det_zigzag(det_value_signed(field, value)));
    case DET_KIND_FLOAT:
        return det_put_u64(space, at, det_value_float_bits(value));
    case DET_KIND_BOOL:
        return *value <= 1 ? det_put_byte(space, at, *value) : DET_NOWHERE;
    case DET_KIND_TIME:
        return det_put_u64(space, at, det_value_unsigned(field, value));
    case DET_KIND_TEXT:
        return put_text(space, at, field, value);
    case DET_KIND_BYTES:
        return put_bytes(space, at, field, value);
    case DET_KIND_ENUM:
        return put_enum(space, at, field, value);
    case DET_KIND_RECORD:
        break;
    }
    return det_put_varint(space, at, det_nested_version(field));
}

/* A field that has a presence, a count or records; of records only the version is written. */
static DET_NOINLINE size_t put_counted(
    struct det_byte_space space, size_t at, const struct det_field *field, const uint8_t *base,
    uint32_t *ret_count)
{
    const uint8_t *element = base + field->offset;
    uint32_t count = det_field_count(field, base);

    *ret_count = count;
    if (!det_field_count_is_valid(field, count))
        return DET_NOWHERE;
    if (field->flags & DET_FIELD_COUNTED)
        at = det_put_varint(space, at, count);
    if (field->kind == DET_KIND_RECORD && count > 1)
        count = 1;
    for (; count > 0 && at != DET_NOWHERE; count--, element += field->size)
        at = put_value(space, at, field, element);
    return at;
}

/* Encodes the fields of one record, up to the end or a field of records. */
static DET_INLINE size_t
put_fields(struct det_byte_space space, size_t at, struct det_level *level, const uint8_t *base)
{
    const struct det_field *field = level->field;
    size_t left = level->left;

    for (; left > 0 && at != DET_NOWHERE; left--, field++) {
        if (!(field->flags & DET_FIELD_COUNTED) && field->kind != DET_KIND_RECORD) {
            at = put_value(space, at, field, base + field->offset);
            continue;
        }
        at = put_counted(space, at, field, base, &level->count);
        if (field->kind == DET_KIND_RECORD && level->count > 0)
            break;
    }
    level->field = field;
    level->left = left;
    return at;
}

/* Encodes all records of the same array. */
static DET_NOINLINE size_t
put_records(struct det_byte_space space, size_t at, struct det_level *level, const uint8_t *value)
{
    do
        at = put_fields(space, at, level, value + level->base);
    while (at != DET_NOWHERE && det_level_again(level));
    return at;
}

/* DET_NOWHERE when the value is not valid. */
static size_t put_body(
    struct det_byte_space space, size_t at, const struct det_record *record, const void *value)
{
    DET_UNSET struct det_nest nest; /* every level is written before it is read */

    det_nest_init(&nest, record, 0);
    do
        at = put_records(space, at, det_nest_level(&nest), value);
    while (at != DET_NOWHERE && det_nest_next(&nest));
    return at;
}

/* Writes the length of the encoded body into the byte before it; moves the body if the length needs
 * more than one byte. Returns the end of the body. */
static size_t insert_length(struct det_byte_space space, size_t body, size_t end)
{
    size_t length = end - body, size = det_varint_size(length);

    det_assert(body > 0 && body <= end);
    end += size - 1;
    if (end > space.capacity)
        return end;
    if (size > 1)
        memmove(space.data + body - 1 + size, space.data + body, length);
    det_put_varint(space, body - 1, length);
    return end;
}

static size_t put_checksum(struct det_byte_space space, size_t at)
{
    uint32_t crc;

    if (at + DET_RECORD_CHECKSUM_SIZE <= space.capacity) {
        crc = det_crc32c(0, space.data, at);
        for (unsigned i = 0; i < DET_RECORD_CHECKSUM_SIZE; i++)
            space.data[at + i] = (uint8_t)(crc >> (8 * i));
    }
    return at + DET_RECORD_CHECKSUM_SIZE;
}

static int fail_limit(
    const struct det_record *record, size_t needed, size_t capacity, struct det_error *reterr)
{
    int r = det_error_set(
        reterr, DET_ERR_LIMIT, "%s: needs %zu byte%s and has %zu", record->name, needed,
        det_plural(needed), capacity);

    if (reterr)
        reterr->actual = needed;
    return r;
}

int64_t det_record_encode(
    const struct det_record *record, const void *value, void *target, size_t capacity,
    struct det_error *reterr)
{
    struct det_byte_space space = { target, capacity };
    size_t body, end;
    int r;

    det_assert(target || capacity == 0);
    body = det_put_byte(space, 0, DET_RECORD_FORMAT);
    body = det_put_varint(space, body, det_record_version(record));
    body = det_put_byte(space, body, 0);
    end = put_body(space, body, record, value);
    if (end == DET_NOWHERE) {
        r = det_record_validate(record, value, reterr);
        det_assert(r < 0);
        return r;
    }
    end = put_checksum(space, insert_length(space, body, end));
    det_check(end <= det_record_encoded_max(record));
    return end <= capacity ? (int64_t)end : fail_limit(record, end, capacity, reterr);
}
