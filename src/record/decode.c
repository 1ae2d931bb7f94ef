/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* decode.c - bytes to records, as docs/formats/record.md has it.
 *
 * Invariants:
 *   1. decode(encode(v)) equals v, and encode(decode(b)) is b when b has the definition's versions.
 *   2. Nothing is read before its size was compared with what is left. */
#include <detent/record.h>

#include "base/hash.h"
#include "record/binary.h"
#include "record/value.h"
#include "record/varint.h"
#include "record/walk.h"

static bool get_number(
    struct det_byte_reader *reader, const struct det_field *field, uint8_t *value)
{
    size_t start = reader->offset;
    uint64_t number;
    bool fits;

    if (field->size == 1)
        return det_get_byte(reader, value);
    if (!det_get_varint(reader, &number))
        return false;
    if (field->kind == DET_KIND_SIGNED)
        fits = det_value_set_signed(field, value, det_unzigzag(number));
    else
        fits = det_value_set_unsigned(field, value, number);
    return fits || det_reader_fail(reader, DET_ERR_RANGE, start);
}

static bool get_float(struct det_byte_reader *reader, uint8_t *value)
{
    size_t start = reader->offset;
    uint64_t bits;

    if (!det_get_u64(reader, &bits))
        return false;
    memcpy(value, &bits, sizeof bits);
    return det_value_float_bits(value) == bits || det_reader_fail(reader, DET_ERR_MALFORMED, start);
}

static bool get_bool(struct det_byte_reader *reader, uint8_t *ret)
{
    if (!det_get_byte(reader, ret))
        return false;
    return *ret <= 1 || det_reader_fail(reader, DET_ERR_MALFORMED, reader->offset - 1);
}

/* A size of at most `max` and as many bytes. */
static bool get_view(struct det_byte_reader *reader, size_t max, struct det_view *ret)
{
    size_t start = reader->offset;
    const uint8_t *bytes;
    uint64_t size;

    if (!det_get_varint(reader, &size))
        return false;
    if (size > max)
        return det_reader_fail(reader, DET_ERR_RANGE, start);
    bytes = det_get_bytes(reader, (size_t)size);
    *ret = det_view_of((const char *)bytes, (size_t)size);
    return bytes != NULL;
}

static bool get_text(struct det_byte_reader *reader, const struct det_field *field, uint8_t *value)
{
    struct det_view text = { 0 };
    const char *zero;
    size_t bad;

    if (!get_view(reader, field->capacity, &text))
        return false;
    bad = det_utf8_check(text.data, text.size);
    zero = memchr(text.data, 0, bad);
    if (zero)
        bad = (size_t)(zero - text.data);
    if (bad != text.size)
        return det_reader_fail(reader, DET_ERR_MALFORMED, reader->offset - text.size + bad);
    det_value_set_view(field, value, text);
    return true;
}

static bool get_enum(struct det_byte_reader *reader, const struct det_field *field, uint8_t *value)
{
    size_t start = reader->offset;
    struct det_view name = { 0 };

    if (!get_view(reader, DET_NAME_MAX, &name))
        return false;
    return det_value_set_enum(field, value, name) || det_reader_fail(reader, DET_ERR_RANGE, start);
}

static bool get_value(struct det_byte_reader *reader, const struct det_field *field, uint8_t *value)
{
    struct det_view view = { 0 };
    uint64_t bits = 0;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        return get_number(reader, field, value);
    case DET_KIND_FLOAT:
        return get_float(reader, value);
    case DET_KIND_BOOL:
        return get_bool(reader, value);
    case DET_KIND_TIME:
        return det_get_u64(reader, &bits) && det_value_set_unsigned(field, value, bits);
    case DET_KIND_TEXT:
        return get_text(reader, field, value);
    case DET_KIND_BYTES:
        if (!get_view(reader, field->capacity, &view))
            return false;
        det_value_set_view(field, value, view);
        return true;
    case DET_KIND_ENUM:
        return get_enum(reader, field, value);
    case DET_KIND_RECORD:
        break;
    }
    return true;
}

/* The version of the records in the field, which must not be newer than we know. */
static bool get_nested_version(
    struct det_byte_reader *reader, const struct det_field *field, uint32_t *ret)
{
    size_t start = reader->offset;
    uint64_t version;

    if (!det_get_varint(reader, &version))
        return false;
    if (version == 0)
        return det_reader_fail(reader, DET_ERR_MALFORMED, start);
    if (version > det_nested_version(field))
        return det_reader_fail(reader, DET_ERR_VERSION, start);
    *ret = (uint32_t)version;
    return true;
}

/* Puts the presence or count where the walk looks for it next. */
static bool get_field(struct det_byte_reader *reader, struct det_walk *walk, uint8_t *value)
{
    const struct det_field *field = walk->field;
    struct det_walk_frame *frame = det_walk_frame(walk);
    size_t start = reader->offset;
    uint64_t count = 1;
    uint8_t presence;

    if (field->flags & DET_FIELD_ARRAY) {
        if (!det_get_varint(reader, &count))
            return false;
        if (count > field->count_max)
            return det_reader_fail(reader, DET_ERR_RANGE, start);
    } else if (field->flags & DET_FIELD_OPTIONAL) {
        if (!get_bool(reader, &presence))
            return false;
        count = presence;
    }
    det_field_set_count(field, value + frame->base, (uint32_t)count);
    if (count == 0 || field->kind != DET_KIND_RECORD)
        return true;
    return get_nested_version(reader, field, &frame->child_version);
}

static const char *decode_problem(int code)
{
    return code == DET_ERR_VERSION     ? "its version is newer than this program knows"
           : code == DET_ERR_RANGE     ? "the value is out of range"
           : code == DET_ERR_TRUNCATED ? "the body ends inside of it"
                                       : "the bytes are not of the canonical form";
}

static int fail_body(
    const struct det_byte_reader *reader, const struct det_walk *walk, struct det_error *reterr)
{
    char place[DET_PLACE_TEXT];
    int code = reader->error == DET_ERR_TRUNCATED ? DET_ERR_MALFORMED : reader->error;
    struct det_byte_reader again = { reader->data, reader->size, reader->error_offset, 0, 0 };

    DET_FAIL_AT(
        reterr, code, reader->error_offset, "%s: %s at byte %zu",
        det_walk_place(walk, place, sizeof place), decode_problem(reader->error),
        reader->error_offset);
    if (reterr && code == DET_ERR_VERSION) {
        reterr->expected = det_nested_version(walk->field);
        (void)det_get_varint(&again, &reterr->actual);
    }
    return code;
}

static int get_body(
    struct det_byte_reader *reader, const struct det_record *record, uint32_t version,
    uint8_t *value, struct det_error *reterr)
{
    struct det_walk walk;
    enum det_walk_step step;
    bool done = true;

    det_walk_init(&walk, record, value);
    det_walk_frame(&walk)->version = version;
    while (done && (step = det_walk_next(&walk)) != DET_WALK_END) {
        if (step == DET_WALK_VALUE)
            done = get_value(reader, walk.field, value + walk.offset);
        else if (step != DET_WALK_FIELD)
            continue;
        else if (det_field_since(walk.field) > det_walk_frame(&walk)->version)
            det_walk_skip(&walk);
        else
            done = get_field(reader, &walk, value);
    }
    if (!done)
        return fail_body(reader, &walk, reterr);
    if (reader->offset != reader->size)
        return DET_FAIL_AT(
            reterr, DET_ERR_MALFORMED, reader->offset,
            "%s: the body goes on after its last field at byte %zu", record->name, reader->offset);
    return 0;
}

/* The frame around a body, as far as the bytes tell it. */
struct frame {
    uint64_t version;
    uint64_t length;
    uint8_t format;
};

static bool get_frame(struct det_byte_reader *reader, struct frame *ret)
{
    if (!det_get_byte(reader, &ret->format))
        return false;
    if (ret->format != DET_RECORD_FORMAT)
        return det_reader_fail(reader, ret->format ? DET_ERR_VERSION : DET_ERR_MALFORMED, 0);
    if (!det_get_varint(reader, &ret->version))
        return false;
    if (ret->version > UINT32_MAX)
        return det_reader_fail(reader, DET_ERR_MALFORMED, 1);
    return det_get_varint(reader, &ret->length);
}

static int fail_version(struct det_error *reterr, size_t offset, uint64_t known, uint64_t found)
{
    int r = DET_FAIL_AT(
        reterr, DET_ERR_VERSION, offset,
        "version %llu at byte %zu is newer than %llu, the newest this program knows",
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

/* Judges the frame; afterwards the reader has exactly the body before it. */
static int open_frame(
    struct det_byte_reader *reader, const struct det_record *record, struct frame *ret,
    struct det_error *reterr)
{
    size_t left, end;

    if (!get_frame(reader, ret)) {
        if (reader->error == DET_ERR_VERSION)
            return fail_version(reterr, 0, DET_RECORD_FORMAT, ret->format);
        return DET_FAIL_AT(
            reterr, reader->error, reader->error_offset, "%s: %s at byte %zu", record->name,
            det_error_text(reader->error), reader->error_offset);
    }
    left = reader->size - reader->offset;
    if (left < DET_RECORD_CHECKSUM_SIZE || ret->length > left - DET_RECORD_CHECKSUM_SIZE)
        return DET_FAIL_AT(
            reterr, DET_ERR_TRUNCATED, reader->size,
            "%s: the bytes end after %zu, inside of the record", record->name, reader->size);
    end = reader->offset + (size_t)ret->length;
    if (left - DET_RECORD_CHECKSUM_SIZE > ret->length)
        return DET_FAIL_AT(
            reterr, DET_ERR_MALFORMED, end + DET_RECORD_CHECKSUM_SIZE,
            "%s: the bytes go on after the record's end at %zu", record->name,
            end + DET_RECORD_CHECKSUM_SIZE);
    if (det_crc32c(0, reader->data, end) != load_checksum(reader->data + end))
        return DET_FAIL_AT(
            reterr, DET_ERR_CORRUPT, end,
            "%s: the checksum at byte %zu does not match the bytes before it", record->name, end);
    reader->size = end;
    return 0;
}

static int decode(
    const struct det_record *record, struct det_byte_reader *reader, uint8_t *value,
    struct det_error *reterr)
{
    struct frame frame = { 0 };
    int r;

    r = open_frame(reader, record, &frame, reterr);
    if (r < 0)
        return r;
    if (frame.version == 0)
        return DET_FAIL_AT(reterr, DET_ERR_MALFORMED, 1, "%s: version 0 at byte 1", record->name);
    if (frame.version > det_record_version(record))
        return fail_version(reterr, 1, det_record_version(record), frame.version);
    return get_body(reader, record, (uint32_t)frame.version, value, reterr);
}

int det_record_decode(
    const struct det_record *record, const void *data, size_t size, void *value,
    struct det_error *reterr)
{
    struct det_byte_reader reader = { .data = data, .size = size };
    int r;

    memset(value, 0, record->size);
    r = decode(record, &reader, value, reterr);
    if (r < 0)
        memset(value, 0, record->size);
    return r;
}
