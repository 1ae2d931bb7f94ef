/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decode.c - decodes bytes to records (docs/formats/record.md).
 *
 * Invariants:
 *   1. decode(encode(v)) equals v, and encode(decode(b)) is b if b has the definition's versions.
 *   2. Nothing is read before its size was compared with the remaining bytes. */
#include <detent/record.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/unset.h"
#include "record/binary.h"
#include "record/field_value.h"
#include "record/field_walk.h"
#include "record/nest.h"
#include "record/varint.h"
#include "record/word64.h"

static inline size_t get_byte(struct det_byte_source *source, size_t at, uint8_t *ret)
{
    if (!det_source_has(source, at, 1))
        return det_source_end(source);
    *ret = source->data[at];
    return at + 1;
}

static inline size_t get_bool(struct det_byte_source *source, size_t at, uint8_t *ret)
{
    at = get_byte(source, at, ret);
    if (at != DET_NOWHERE && *ret > 1)
        return det_source_fail(source, DET_ERR_MALFORMED, at - 1);
    return at;
}

static inline size_t get_unsigned(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value)
{
    struct det_varint read = det_get_varint(source, at);

    if (read.end != DET_NOWHERE && !det_value_set_unsigned(field, value, read.number))
        return det_source_fail(source, DET_ERR_RANGE, at);
    return read.end;
}

static inline size_t get_signed(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value)
{
    struct det_varint read = det_get_varint(source, at);
    int64_t number = det_unzigzag(read.number);

    if (read.end != DET_NOWHERE && !det_value_set_signed(field, value, number))
        return det_source_fail(source, DET_ERR_RANGE, at);
    return read.end;
}

static inline size_t get_time(struct det_byte_source *source, size_t at, uint8_t *value)
{
    uint64_t bits = 0;

    at = det_get_u64(source, at, &bits);
    memcpy(value, &bits, sizeof bits);
    return at;
}

static inline size_t get_float(struct det_byte_source *source, size_t at, uint8_t *value)
{
    size_t start = at;
    uint64_t bits = 0;

    at = det_get_u64(source, at, &bits);
    memcpy(value, &bits, sizeof bits);
    if (at != DET_NOWHERE && det_value_float_bits(value) != bits)
        return det_source_fail(source, DET_ERR_MALFORMED, start);
    return at;
}

/* Checks a size that was read at `at`: at most `max`, and that many bytes follow. Returns where
 * they end. */
static inline size_t sized_end(
    struct det_byte_source *source, size_t at, struct det_varint size, size_t max)
{
    if (size.end == DET_NOWHERE)
        return DET_NOWHERE;
    if (size.number > max)
        return det_source_fail(source, DET_ERR_RANGE, at);
    if (!det_source_has(source, size.end, (size_t)size.number))
        return det_source_end(source);
    return size.end + (size_t)size.number;
}

static DET_INLINE size_t
get_text(struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value)
{
    struct det_varint size = det_get_varint(source, at);
    size_t end = sized_end(source, at, size, field->capacity), good;
    const char *text;

    if (end == DET_NOWHERE || det_copy_plain(value, source->data + size.end, size.number))
        return end;
    text = (const char *)source->data + size.end;
    good = strnlen(text, det_utf8_check(text, size.number));
    if (good < size.number)
        return det_source_fail(source, DET_ERR_MALFORMED, size.end + good);
    return end;
}

static inline size_t get_bytes(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value)
{
    struct det_varint size = det_get_varint(source, at);
    size_t end = sized_end(source, at, size, field->capacity);
    uint32_t stored = (uint32_t)size.number;

    if (end == DET_NOWHERE)
        return end;
    memcpy(value, &stored, sizeof stored);
    memcpy(value + sizeof stored, source->data + size.end, stored);
    return end;
}

static inline size_t get_enum(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value)
{
    struct det_varint size = det_get_varint(source, at);
    size_t end = sized_end(source, at, size, DET_NAME_MAX);
    struct det_view name;

    if (end == DET_NOWHERE)
        return end;
    name = det_view_of((const char *)source->data + size.end, size.number);
    if (!det_value_set_enum(field, value, name))
        return det_source_fail(source, DET_ERR_RANGE, at);
    return end;
}

/* The version of the records in the field, which must not be newer than we know. */
static inline size_t get_nested_version(
    struct det_byte_source *source, size_t at, const struct det_field *field,
    struct det_level *level)
{
    struct det_varint version = det_get_varint(source, at);

    level->index = DET_PLACE_ALL;
    if (version.end == DET_NOWHERE)
        return DET_NOWHERE;
    if (version.number == 0)
        return det_source_fail(source, DET_ERR_MALFORMED, at);
    if (version.number > det_nested_version(field))
        return det_source_fail(source, DET_ERR_VERSION, at);
    level->nested_version = (uint32_t)version.number;
    return version.end;
}

/* One value, or the version of the records in the field. */
static DET_INLINE size_t get_value(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *value,
    struct det_level *level)
{
    switch (field->kind) {
    case DET_KIND_UNSIGNED:
        if (field->size == 1)
            return get_byte(source, at, value);
        return get_unsigned(source, at, field, value);
    case DET_KIND_SIGNED:
        if (field->size == 1)
            return get_byte(source, at, value);
        return get_signed(source, at, field, value);
    case DET_KIND_FLOAT:
        return get_float(source, at, value);
    case DET_KIND_BOOL:
        return get_bool(source, at, value);
    case DET_KIND_TIME:
        return get_time(source, at, value);
    case DET_KIND_TEXT:
        return get_text(source, at, field, value);
    case DET_KIND_BYTES:
        return get_bytes(source, at, field, value);
    case DET_KIND_ENUM:
        return get_enum(source, at, field, value);
    case DET_KIND_RECORD:
        break;
    }
    return get_nested_version(source, at, field, level);
}

/* The presence or count of a field that has one, into its place in the record. */
static inline size_t get_count(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *base)
{
    struct det_varint count;

    if (field->flags & DET_FIELD_OPTIONAL)
        return get_bool(source, at, base + field->presence);
    count = det_get_varint(source, at);
    if (count.end != DET_NOWHERE && count.number > field->count_max)
        return det_source_fail(source, DET_ERR_RANGE, at);
    det_field_set_count(field, base, (uint32_t)count.number);
    return count.end;
}

/* A field that has a presence, a count or records; of records only the version is read. */
static DET_NOINLINE size_t get_counted(
    struct det_byte_source *source, size_t at, const struct det_field *field, uint8_t *base,
    struct det_level *level)
{
    uint8_t *element = base + field->offset;
    uint32_t count;

    level->index = DET_PLACE_ALL;
    if (field->flags & DET_FIELD_COUNTED)
        at = get_count(source, at, field, base);
    count = level->count = det_field_count(field, base);
    if (field->kind == DET_KIND_RECORD && count > 1)
        count = 1;
    for (uint32_t i = 0; i < count && at != DET_NOWHERE; i++, element += field->size) {
        level->index = i;
        at = get_value(source, at, field, element, level);
    }
    return at;
}

/* Decodes the fields of one record, up to the end or a field of records. Fields of a later version
 * than that of the record are absent. */
static DET_INLINE size_t
get_fields(struct det_byte_source *source, size_t at, struct det_level *level, uint8_t *base)
{
    const struct det_field *field = level->field;
    size_t left = level->left;

    for (; left > 0; left--, field++) {
        if (field->since > level->version)
            continue;
        if (!(field->flags & DET_FIELD_COUNTED) && field->kind != DET_KIND_RECORD) {
            at = get_value(source, at, field, base + field->offset, level);
            if (at == DET_NOWHERE)
                break;
            continue;
        }
        at = get_counted(source, at, field, base, level);
        if (at == DET_NOWHERE || (field->kind == DET_KIND_RECORD && level->count > 0))
            break;
    }
    level->field = field;
    level->left = left;
    return at;
}

/* Decodes all records of the same array. */
static DET_NOINLINE size_t
get_records(struct det_byte_source *source, size_t at, struct det_level *level, uint8_t *value)
{
    do
        at = get_fields(source, at, level, value + level->base);
    while (at != DET_NOWHERE && det_level_again(level));
    return at;
}

static const char *decode_problem(int code)
{
    return code == DET_ERR_VERSION     ? "its version is newer than this program supports"
           : code == DET_ERR_RANGE     ? "the value is out of range"
           : code == DET_ERR_TRUNCATED ? "the body ends inside it"
                                       : "the bytes are not of the canonical form";
}

static DET_NOINLINE int fail_body(
    const struct det_byte_source *source, const struct det_nest *nest, struct det_error *reterr)
{
    struct det_place places[DET_RECORD_DEPTH_MAX];
    char place[DET_PLACE_TEXT];
    int code = source->error == DET_ERR_TRUNCATED ? DET_ERR_MALFORMED : source->error;
    struct det_byte_source again = *source;
    const struct det_level *level = nest->levels + 1;

    det_assert(nest->depth > 0 && source->error < 0 && source->error_offset <= source->size);
    for (unsigned i = 0; i < nest->depth; i++, level++)
        places[i] = (struct det_place){ level->record, level->field, level->index };
    DET_FAIL_AT(
        reterr, code, source->error_offset, "%s: %s at byte %zu",
        det_place_format(places, nest->depth, place, sizeof place), decode_problem(source->error),
        source->error_offset);
    if (reterr && code == DET_ERR_VERSION) {
        reterr->expected = det_nested_version(level[-1].field);
        reterr->actual = det_get_varint(&again, source->error_offset).number;
    }
    return code;
}

static int get_body(
    struct det_byte_source *source, size_t at, const struct det_record *record, uint32_t version,
    uint8_t *value, struct det_error *reterr)
{
    DET_UNSET struct det_nest nest; /* every level is written before it is read */

    det_nest_init(&nest, record, version);
    do
        at = get_records(source, at, det_nest_level(&nest), value);
    while (at != DET_NOWHERE && det_nest_next(&nest));
    if (at == DET_NOWHERE)
        return fail_body(source, &nest, reterr);
    det_assert(at <= source->size);
    if (at != source->size)
        return DET_FAIL_AT(
            reterr, DET_ERR_MALFORMED, at, "%s: data after the last field of the body at byte %zu",
            record->name, at);
    return 0;
}

/* The frame around a body, as read from the bytes. */
struct frame {
    uint64_t version;
    uint64_t length;
    size_t body; /* offset of the first byte */
    uint8_t format;
};

static size_t get_frame(struct det_byte_source *source, struct frame *ret)
{
    size_t at = get_byte(source, 0, &ret->format);
    struct det_varint version, length;

    if (at == DET_NOWHERE)
        return at;
    if (ret->format != DET_RECORD_FORMAT)
        return det_source_fail(source, ret->format ? DET_ERR_VERSION : DET_ERR_MALFORMED, 0);
    version = det_get_varint(source, at);
    if (version.end == DET_NOWHERE)
        return DET_NOWHERE;
    if (version.number > UINT32_MAX)
        return det_source_fail(source, DET_ERR_MALFORMED, 1);
    length = det_get_varint(source, version.end);
    ret->version = version.number;
    ret->length = length.number;
    return length.end;
}

static int fail_version(struct det_error *reterr, size_t offset, uint64_t known, uint64_t found)
{
    int r = DET_FAIL_AT(
        reterr, DET_ERR_VERSION, offset,
        "version %llu at byte %zu is newer than %llu, the newest that this program supports",
        (unsigned long long)found, offset, (unsigned long long)known);

    if (reterr) {
        reterr->expected = known;
        reterr->actual = found;
    }
    return r;
}

static uint32_t load_checksum(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Checks the frame; afterwards the source ends where the body does. */
static int open_frame(
    struct det_byte_source *source, const struct det_record *record, struct frame *ret,
    struct det_error *reterr)
{
    size_t left, end;

    ret->body = get_frame(source, ret);
    if (ret->body == DET_NOWHERE) {
        if (source->error == DET_ERR_VERSION)
            return fail_version(reterr, 0, DET_RECORD_FORMAT, ret->format);
        return DET_FAIL_AT(
            reterr, source->error, source->error_offset, "%s: %s at byte %zu", record->name,
            det_error_text(source->error), source->error_offset);
    }
    det_assert(ret->body <= source->size);
    left = source->size - ret->body;
    if (left < DET_RECORD_CHECKSUM_SIZE || ret->length > left - DET_RECORD_CHECKSUM_SIZE)
        return DET_FAIL_AT(
            reterr, DET_ERR_TRUNCATED, source->size,
            "%s: the bytes end after %zu, inside the record", record->name, source->size);
    end = ret->body + (size_t)ret->length;
    if (left - DET_RECORD_CHECKSUM_SIZE > ret->length)
        return DET_FAIL_AT(
            reterr, DET_ERR_MALFORMED, end + DET_RECORD_CHECKSUM_SIZE,
            "%s: data after the end of the record at byte %zu", record->name,
            end + DET_RECORD_CHECKSUM_SIZE);
    if (det_crc32c(0, source->data, end) != load_checksum(source->data + end))
        return DET_FAIL_AT(
            reterr, DET_ERR_CORRUPT, end,
            "%s: the checksum at byte %zu does not match the bytes before it", record->name, end);
    source->size = end;
    return 0;
}

static int decode_record(
    const struct det_record *record, struct det_byte_source *source, uint8_t *value,
    struct det_error *reterr)
{
    struct frame frame = { 0 };
    int r;

    r = open_frame(source, record, &frame, reterr);
    if (r < 0)
        return r;
    if (frame.version == 0)
        return DET_FAIL_AT(reterr, DET_ERR_MALFORMED, 1, "%s: version 0 at byte 1", record->name);
    if (frame.version > det_record_version(record))
        return fail_version(reterr, 1, det_record_version(record), frame.version);
    return get_body(source, frame.body, record, (uint32_t)frame.version, value, reterr);
}

int det_record_decode(
    const struct det_record *record, const void *data, size_t size, void *value,
    struct det_error *reterr)
{
    struct det_byte_source source = { .data = data, .size = size };
    int r;

    det_assert(data || size == 0);
    memset(value, 0, record->size);
    r = decode_record(record, &source, value, reterr);
    if (r < 0)
        memset(value, 0, record->size);
    return r;
}
