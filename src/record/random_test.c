/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_test.c - definitions made at run time with random values in them: what goes out as bytes
 * or as JSON comes back the same, and the same value has the same bytes whatever is around it. */
#include <detent/record.h>

#include "base/text.h"
#include "lib/test.h"

#define RECORDS 4
#define FIELDS  6
#define SPACE   65536

/* A few records, each of which may nest the ones before it. */
struct world {
    uint64_t seed;
    char names[FIELDS][8];
    struct det_enum_value values[5];
    struct det_enum enumeration;
    struct det_field fields[RECORDS][FIELDS];
    struct det_record records[RECORDS];
    size_t count;
};

static uint32_t below(struct world *world, uint32_t limit)
{
    if (limit == 0)
        abort();
    return (uint32_t)(det_test_random(&world->seed) % limit);
}

static void make_kind(struct world *world, struct det_field *field, size_t record)
{
    static const enum det_kind kinds[] = { DET_KIND_UNSIGNED, DET_KIND_SIGNED, DET_KIND_FLOAT,
                                           DET_KIND_BOOL,     DET_KIND_TIME,   DET_KIND_TEXT,
                                           DET_KIND_BYTES,    DET_KIND_ENUM,   DET_KIND_RECORD };
    const struct det_record *nested;

    field->kind = kinds[below(world, record > 0 ? 9 : 8)];
    field->size = 8;
    if (field->kind == DET_KIND_UNSIGNED || field->kind == DET_KIND_SIGNED)
        field->size = 1u << below(world, 4);
    if (field->kind == DET_KIND_BOOL)
        field->size = 1;
    if (field->kind == DET_KIND_TEXT || field->kind == DET_KIND_BYTES)
        field->capacity = 1 + below(world, below(world, 4) ? 12 : 300);
    if (field->kind == DET_KIND_TEXT)
        field->size = field->capacity + 1;
    if (field->kind == DET_KIND_BYTES)
        field->size = (field->capacity + 7) / 4 * 4;
    if (field->kind == DET_KIND_ENUM) {
        field->size = sizeof(int);
        field->enumeration.enumeration = &world->enumeration;
    }
    if (field->kind == DET_KIND_RECORD) {
        nested = &world->records[below(world, (uint32_t)record)];
        field->record.record = nested;
        field->size = nested->size;
    }
}

/* The next free bytes of a record, a random distance after the last ones. */
static uint32_t place(struct world *world, struct det_record *record, uint32_t size)
{
    uint32_t offset = record->size + below(world, 5);

    record->size = offset + size;
    return offset;
}

static void make_field(struct world *world, struct det_field *field, size_t index, size_t number)
{
    struct det_record *record = &world->records[index];

    *field = (struct det_field){ .name = world->names[number] };
    make_kind(world, field, index);
    field->since = below(world, record->version + 1);
    if (below(world, 4) == 0)
        field->flags |= DET_FIELD_SENSITIVE;
    switch (below(world, 3)) {
    case 0:
        field->flags |= DET_FIELD_OPTIONAL;
        field->presence = place(world, record, 1);
        break;
    case 1:
        field->flags |= DET_FIELD_ARRAY;
        field->count_max = 1 + below(world, 4);
        field->presence = place(world, record, 4);
        break;
    default:
        break;
    }
    field->offset = place(world, record, field->size * (field->count_max ? field->count_max : 1));
}

static void try_world(struct world *world, uint64_t seed)
{
    static const char *const words[] = { "red", "green", "blue", "white", "black" };

    *world = (struct world){ .seed = seed };
    for (unsigned i = 0; i < 5; i++)
        world->values[i] = (struct det_enum_value){ words[i], (int)(i * i) - (i == 3) * 100 };
    world->enumeration = (struct det_enum){ "color", world->values, 5 };
    for (unsigned i = 0; i < FIELDS; i++)
        snprintf(world->names[i], sizeof world->names[i], "f%u", i);
    world->count = 1 + below(world, RECORDS);
    for (size_t i = 0; i < world->count; i++) {
        struct det_record *record = &world->records[i];

        *record = (struct det_record){ "random", 1 + below(world, 300), 1, world->fields[i], 0 };
        record->field_count = below(world, FIELDS + 1);
        for (size_t k = 0; k < record->field_count; k++)
            make_field(world, &world->fields[i][k], i, k);
    }
}

static const struct det_record *outermost(const struct world *world)
{
    return &world->records[world->count - 1];
}

/* A world whose values fit our arrays. */
static void make_world(struct world *world, uint64_t seed)
{
    do {
        try_world(world, seed);
        seed += 1000000;
    } while (outermost(world)->size > SPACE);
    assert_int_equal(det_record_check(outermost(world), NULL), 0);
}

static void fill_text(struct world *world, const struct det_field *field, char *target)
{
    static const char *const parts[] = {
        "a",        "\"",       "\\",           "\n",           "\x7f",
        "\xc3\xa4", "\xc2\x9b", "\xe2\x82\xac", "\xe2\x80\xa8", "\xf0\x9f\x98\x80",
        "\x01",     "/",        "{redacted}"
    };
    uint32_t wanted = below(world, field->capacity + 1), used = 0, length;
    const char *part;

    for (unsigned tries = 0; tries < 400 && used < wanted; tries++) {
        part = parts[below(world, sizeof parts / sizeof parts[0])];
        length = (uint32_t)strlen(part);
        if (used + length > wanted)
            continue;
        memcpy(target + used, part, length);
        used += length;
    }
    target[used] = 0;
}

/* A number of random size, so that small and large ones are equally likely. */
static uint64_t any_number(struct world *world)
{
    return det_test_random(&world->seed) >> below(world, 64);
}

static void fill_value(struct world *world, const struct det_field *field, uint8_t *value)
{
    uint64_t number = any_number(world);
    uint32_t size;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
    case DET_KIND_TIME:
        memcpy(value, &number, field->size);
        break;
    case DET_KIND_FLOAT:
        /* Not an infinity and not a NaN: JSON has none. */
        number = det_test_random(&world->seed) & ~((uint64_t)1 << 62);
        memcpy(value, &number, sizeof number);
        break;
    case DET_KIND_BOOL:
        *value = (uint8_t)below(world, 2);
        break;
    case DET_KIND_TEXT:
        fill_text(world, field, (char *)value);
        break;
    case DET_KIND_BYTES:
        size = below(world, field->capacity + 1);
        memcpy(value, &size, sizeof size);
        break;
    case DET_KIND_ENUM:
        memcpy(value, &world->values[below(world, 5)].value, sizeof(int));
        break;
    case DET_KIND_RECORD:
        break;
    }
}

/* Nested values wait here for their turn. */
struct part {
    const struct det_record *record;
    uint8_t *value;
};

static void fill_field(
    struct world *world, const struct det_field *field, uint8_t *base, struct part *parts,
    size_t *count)
{
    uint32_t elements = 1;

    if (field->flags & DET_FIELD_ARRAY) {
        elements = below(world, field->count_max + 1);
        memcpy(base + field->presence, &elements, sizeof elements);
    } else if (field->flags & DET_FIELD_OPTIONAL) {
        elements = below(world, 2);
        base[field->presence] = (uint8_t)elements;
    }
    for (uint32_t i = 0; i < elements; i++) {
        uint8_t *value = base + field->offset + (size_t)i * field->size;

        if (field->kind == DET_KIND_RECORD)
            parts[(*count)++] = (struct part){ field->record.record, value };
        else
            fill_value(world, field, value);
    }
}

/* A valid value; all bytes that are not part of it are noise. */
static void fill(struct world *world, uint8_t *value)
{
    static struct part parts[100000];
    size_t count = 0;

    for (uint32_t i = 0; i < outermost(world)->size; i++)
        value[i] = (uint8_t)det_test_random(&world->seed);
    parts[count++] = (struct part){ outermost(world), value };
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < parts[i].record->field_count; k++)
            fill_field(world, &parts[i].record->fields[k], parts[i].value, parts, &count);
}

static void check_binary(const struct det_record *record, const uint8_t *value, uint8_t *again)
{
    static uint8_t bytes[4 * SPACE], twice[4 * SPACE];
    size_t max = det_record_encoded_max(record);
    int64_t size;

    assert_true(max <= sizeof bytes);
    size = det_record_encode(record, value, bytes, max, NULL);
    assert_true(size > 0);
    memset(again, 0x5a, record->size);
    assert_int_equal(det_record_decode(record, bytes, (size_t)size, again, NULL), 0);
    assert_true(det_record_equal(record, value, again));
    assert_int_equal(det_record_validate(record, again, NULL), 0);
    assert_int_equal(det_record_encode(record, again, twice, (size_t)size, NULL), size);
    assert_memory_equal(bytes, twice, (size_t)size);
}

static void check_json(
    const struct det_record *record, const uint8_t *value, uint8_t *again, unsigned flags)
{
    static char text[32 * SPACE];
    struct det_error error;
    size_t length = det_record_to_json(record, value, flags, text, sizeof text);

    assert_true(length < sizeof text);
    assert_int_equal(det_utf8_check(text, length), length);
    if (!(flags & DET_TEXT_REVEAL))
        return;
    memset(again, 0x5a, record->size);
    if (det_record_from_json(record, text, length, 0, again, &error) < 0)
        fail_msg("%s\n%s", error.text, text);
    assert_true(det_record_equal(record, value, again));
}

static void random_records_round_trip(void **state)
{
    static uint8_t value[SPACE], again[SPACE];
    static struct world world;

    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        make_world(&world, seed);
        for (int i = 0; i < 5; i++) {
            fill(&world, value);
            assert_int_equal(det_record_validate(outermost(&world), value, NULL), 0);
            check_binary(outermost(&world), value, again);
            check_json(outermost(&world), value, again, DET_TEXT_REVEAL);
            check_json(outermost(&world), value, again, DET_TEXT_REVEAL | DET_TEXT_INDENT);
            check_json(outermost(&world), value, again, 0);
        }
    }
}

static void unused_bytes_do_not_affect_the_encoding(void **state)
{
    static uint8_t value[SPACE], clean[SPACE], bytes[2][4 * SPACE];
    static struct world world;
    const struct det_record *record;
    int64_t size;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&world, seed);
        record = outermost(&world);
        fill(&world, value);
        size = det_record_encode(record, value, bytes[0], sizeof bytes[0], NULL);
        assert_true(size > 0);
        assert_int_equal(det_record_decode(record, bytes[0], (size_t)size, clean, NULL), 0);
        assert_int_equal(det_record_encode(record, clean, bytes[1], sizeof bytes[1], NULL), size);
        assert_memory_equal(bytes[0], bytes[1], (size_t)size);
    }
}

static void random_damage_is_refused(void **state)
{
    static uint8_t value[SPACE], bytes[4 * SPACE];
    static struct world world;
    const struct det_record *record;
    int64_t size;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        make_world(&world, seed);
        record = outermost(&world);
        fill(&world, value);
        size = det_record_encode(record, value, bytes, sizeof bytes, NULL);
        assert_true(size > 0);
        for (int i = 0; i < 50; i++) {
            bytes[below(&world, (uint32_t)size)] ^= (uint8_t)(1 + below(&world, 255));
            assert_true(det_record_decode(record, bytes, (size_t)size, value, NULL) < 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_records_round_trip),
        cmocka_unit_test(unused_bytes_do_not_affect_the_encoding),
        cmocka_unit_test(random_damage_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
