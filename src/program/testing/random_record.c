/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* random_record.c - fills records at random, small and extreme values alike, without recursion. */
#include "testing/random_record.h"

#include <string.h>

#include "base/assert.h"

/* Texts and arrays are kept short: their length is not what a machine depends on. */
#define LENGTH_MAX 12

/* A record whose fields are being filled. */
struct frame {
    const struct det_record *record;
    char *base;
    size_t field;   /* the one at hand */
    bool has_begun; /* the field: the next two are its own */
    size_t count;   /* of its values */
    size_t element; /* the next one */
};

static uint64_t random_number(struct det_sim *sim)
{
    uint64_t kind = det_sim_random_below(sim, 4);

    return kind == 0   ? 0
           : kind == 1 ? UINT64_MAX
           : kind == 2 ? det_sim_random_below(sim, 100)
                       : det_sim_random(sim);
}

/* The bytes of the machine's own order: the low ones of the number. */
static void put_integer(char *at, uint64_t number, size_t size)
{
    uint8_t one = (uint8_t)number;
    uint16_t two = (uint16_t)number;
    uint32_t four = (uint32_t)number;

    det_assert(size == 1 || size == 2 || size == 4 || size == 8);
    memcpy(
        at,
        size == 1   ? (void *)&one
        : size == 2 ? (void *)&two
        : size == 4 ? (void *)&four
                    : (void *)&number,
        size);
}

static void put_text(struct det_sim *sim, char *at, uint32_t capacity)
{
    uint32_t most = capacity < LENGTH_MAX ? capacity : LENGTH_MAX;
    uint64_t size = det_sim_random_below(sim, (uint64_t)most + 1);

    for (uint64_t i = 0; i < size; i++)
        at[i] = (char)('a' + det_sim_random_below(sim, 26));
}

static void put_bytes(struct det_sim *sim, char *at, uint32_t capacity)
{
    uint32_t most = capacity < LENGTH_MAX ? capacity : LENGTH_MAX;
    uint32_t size = (uint32_t)det_sim_random_below(sim, (uint64_t)most + 1);

    memcpy(at, &size, sizeof size);
    for (uint32_t i = 0; i < size; i++)
        at[sizeof size + i] = (char)det_sim_random_below(sim, 256);
}

static void put_enum(struct det_sim *sim, char *at, const struct det_enum *enumeration)
{
    size_t index;

    det_assert(enumeration && enumeration->value_count);
    index = (size_t)det_sim_random_below(sim, enumeration->value_count);
    memcpy(at, &enumeration->values[index].value, sizeof(int));
}

static void put_value(struct det_sim *sim, const struct det_field *field, char *at)
{
    double real;

    switch (field->kind) {
    case DET_KIND_UNSIGNED:
    case DET_KIND_SIGNED:
        put_integer(at, random_number(sim), field->size);
        break;
    case DET_KIND_FLOAT:
        real = (double)det_sim_random_below(sim, 2000000) / 1000 - 1000;
        memcpy(at, &real, sizeof real);
        break;
    case DET_KIND_BOOL:
        put_integer(at, det_sim_random_below(sim, 2), sizeof(bool));
        break;
    case DET_KIND_TIME:
        put_integer(at, det_sim_random_below(sim, 4000000000) * (uint64_t)DET_SECOND, field->size);
        break;
    case DET_KIND_TEXT:
        put_text(sim, at, field->capacity);
        break;
    case DET_KIND_BYTES:
        put_bytes(sim, at, field->capacity);
        break;
    case DET_KIND_ENUM:
        put_enum(sim, at, det_enum_of(field->enumeration));
        break;
    case DET_KIND_RECORD:
        break;
    }
}

/* Stores and returns the number of values of a field. */
static size_t put_presence(struct det_sim *sim, const struct det_field *field, char *base)
{
    if (field->flags & DET_FIELD_ARRAY) {
        uint64_t most = field->count_max < LENGTH_MAX ? field->count_max : LENGTH_MAX;
        uint32_t count = (uint32_t)det_sim_random_below(sim, most + 1);

        memcpy(base + field->presence, &count, sizeof count);
        return count;
    }
    if (field->flags & DET_FIELD_OPTIONAL) {
        bool is_present = det_sim_random_below(sim, 2) == 1;

        memcpy(base + field->presence, &is_present, sizeof is_present);
        return is_present;
    }
    return 1;
}

/* Fills one value of the field at hand; a record in it becomes the new top. */
static void fill_next(struct det_sim *sim, struct frame *frames, size_t *depth)
{
    struct frame *top = &frames[*depth - 1];
    const struct det_field *field = &top->record->fields[top->field];
    char *at = top->base + field->offset + top->element * field->size;

    det_assert(top->element < top->count);
    top->element++;
    det_assert(field->kind != DET_KIND_RECORD || *depth < DET_RECORD_DEPTH_MAX);
    if (field->kind == DET_KIND_RECORD)
        frames[(*depth)++] = (struct frame){ .record = det_record_of(field->record), .base = at };
    else
        put_value(sim, field, at);
}

void cli_random_record(struct det_sim *sim, const struct det_record *record, void *value)
{
    struct frame frames[DET_RECORD_DEPTH_MAX] = { { .record = record, .base = value } };
    size_t depth = 1;

    while (depth) {
        struct frame *top = &frames[depth - 1];

        det_assert(top->record);
        if (top->field == top->record->field_count) {
            depth--;
        } else if (!top->has_begun) {
            top->count = put_presence(sim, &top->record->fields[top->field], top->base);
            top->element = 0;
            top->has_begun = true;
        } else if (top->element == top->count) {
            top->field++;
            top->has_begun = false;
        } else {
            fill_next(sim, frames, &depth);
        }
    }
}
