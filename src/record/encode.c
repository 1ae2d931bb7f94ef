/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* encode.c - records to bytes, as docs/formats/record.md has it.
 *
 *     01 | version | length | body ... | crc32c */
#include <detent/record.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/hash.h"
#include "record/binary.h"
#include "record/value.h"
#include "record/varint.h"
#include "record/walk.h"

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
    case DET_KIND_ENUM:
        size = longest_name(det_enum_of(field->enumeration));
        return det_varint_size(size) + size;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        return det_varint_size(size) + size;
    case DET_KIND_RECORD:
        break;
    }
    return 0;
}

/* What a field has besides its values. */
static size_t field_max(const struct det_field *field)
{
    size_t size = 0;

    if (field->flags & DET_FIELD_ARRAY)
        size = det_varint_size(field->count_max);
    else if (field->flags & DET_FIELD_OPTIONAL)
        size = 1;
    return size + (field->kind == DET_KIND_RECORD ? det_varint_size(det_nested_version(field)) : 0);
}

static size_t frame_size(const struct det_record *record, size_t body)
{
    return 1 + det_varint_size(det_record_version(record)) + det_varint_size(body) + body +
           DET_RECORD_CHECKSUM_SIZE;
}

size_t det_record_encoded_max(const struct det_record *record)
{
    size_t factors[DET_RECORD_DEPTH_MAX + 1] = { 1 }, total = 0, part;
    struct det_walk walk;
    enum det_walk_step step;

    det_walk_init(&walk, record, NULL);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        if (step != DET_WALK_FIELD && step != DET_WALK_VALUE)
            continue;
        if (step == DET_WALK_FIELD) {
            part = walk.field->flags & DET_FIELD_ARRAY ? walk.field->count_max : 1;
            if (!det_mul_size(factors[walk.depth - 1], part, &factors[walk.depth]))
                return SIZE_MAX;
            part = field_max(walk.field) * factors[walk.depth - 1];
        } else {
            part = value_max(walk.field) * factors[walk.depth];
        }
        total += part;
    }
    return frame_size(record, total);
}

static void put_view(struct det_byte_writer *writer, struct det_view view)
{
    det_put_varint(writer, view.size);
    det_put_bytes(writer, view.data, view.size);
}

static void put_value(
    struct det_byte_writer *writer, const struct det_field *field, const uint8_t *value)
{
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        if (field->size == 1)
            det_put_byte(writer, *value);
        else
            det_put_varint(writer, det_value_unsigned(field, value));
        break;
    case DET_KIND_SIGNED:
        if (field->size == 1)
            det_put_byte(writer, *value);
        else
            det_put_varint(writer, det_zigzag(det_value_signed(field, value)));
        break;
    case DET_KIND_FLOAT:
        det_put_u64(writer, det_value_float_bits(value));
        break;
    case DET_KIND_BOOL:
        det_put_byte(writer, *value);
        break;
    case DET_KIND_TIME:
        det_put_u64(writer, det_value_unsigned(field, value));
        break;
    case DET_KIND_TEXT:
    case DET_KIND_BYTES:
        put_view(writer, det_value_view(field, value));
        break;
    case DET_KIND_ENUM:
        put_view(writer, det_view_text(det_value_enum_name(field, value)));
        break;
    case DET_KIND_RECORD:
        break;
    }
}

/* The presence or count of a field, and the version of the records in it. */
static void put_field(
    struct det_byte_writer *writer, const struct det_field *field, const uint8_t *base)
{
    uint32_t count = det_field_count(field, base);

    if (field->flags & DET_FIELD_ARRAY)
        det_put_varint(writer, count);
    else if (field->flags & DET_FIELD_OPTIONAL)
        det_put_byte(writer, (uint8_t)count);
    if (count > 0 && field->kind == DET_KIND_RECORD)
        det_put_varint(writer, det_nested_version(field));
}

static int put_body(
    struct det_byte_writer *writer, const struct det_record *record, const void *value,
    struct det_error *reterr)
{
    struct det_walk walk;
    enum det_walk_step step;
    int r;

    det_walk_init(&walk, record, value);
    while ((step = det_walk_next(&walk)) != DET_WALK_END) {
        r = det_walk_check(&walk, step, reterr);
        if (r < 0)
            return r;
        if (step == DET_WALK_FIELD)
            put_field(writer, walk.field, walk.value + det_walk_frame(&walk)->base);
        else if (step == DET_WALK_VALUE)
            put_value(writer, walk.field, walk.value + walk.offset);
    }
    return 0;
}

/* Puts the length of the body, which is not known before the body is there, in front of it. */
static void insert_length(struct det_byte_writer *writer, size_t at)
{
    size_t length = writer->size - at - 1;
    uint8_t bytes[DET_VARINT_MAX];
    size_t size = det_varint_encode(length, bytes);

    writer->size += size - 1;
    if (writer->size > writer->capacity)
        return;
    if (size > 1)
        memmove(writer->data + at + size, writer->data + at + 1, length);
    memcpy(writer->data + at, bytes, size);
}

static void put_checksum(struct det_byte_writer *writer)
{
    uint32_t crc;
    uint8_t bytes[DET_RECORD_CHECKSUM_SIZE] = { 0 };

    if (writer->size <= writer->capacity) {
        crc = det_crc32c(0, writer->data, writer->size);
        for (unsigned i = 0; i < DET_RECORD_CHECKSUM_SIZE; i++)
            bytes[i] = (uint8_t)(crc >> (8 * i));
    }
    det_put_bytes(writer, bytes, sizeof bytes);
}

int64_t det_record_encode(
    const struct det_record *record, const void *value, void *target, size_t capacity,
    struct det_error *reterr)
{
    struct det_byte_writer writer = { target, capacity, 0 };
    size_t length_at;
    int r;

    det_put_byte(&writer, DET_RECORD_FORMAT);
    det_put_varint(&writer, det_record_version(record));
    length_at = writer.size;
    det_put_byte(&writer, 0);
    r = put_body(&writer, record, value, reterr);
    if (r < 0)
        return r;
    insert_length(&writer, length_at);
    put_checksum(&writer);
    if (writer.size > capacity) {
        r = det_error_set(
            reterr, DET_ERR_LIMIT, "%s: needs %zu bytes and has %zu", record->name, writer.size,
            capacity);
        if (reterr)
            reterr->actual = writer.size;
        return r;
    }
    return (int64_t)writer.size;
}
