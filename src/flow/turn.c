/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* turn.c - what a turn of a stage has made: rows for the journal, and values for the readers. The
 * memory of a turn grows to what the largest one needed, and is kept. */
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "flow/flow_internal.h"

void det_flow_turn_init(
    struct det_flow_turn *turn, const struct det_allocator *allocator, struct det_ring *ring,
    size_t value_size)
{
    *turn = (struct det_flow_turn){
        .allocator = allocator,
        .ring = ring,
        .value_size = (value_size + 15) & ~(size_t)15, /* aligned for any type */
    };
}

void det_flow_turn_deinit(struct det_flow_turn *turn)
{
    DET_DELETE_ARRAY(turn->allocator, turn->rows, turn->capacity);
    det_free(turn->allocator, turn->bytes, turn->bytes_capacity);
    det_free(turn->allocator, turn->values, turn->value_capacity * turn->value_size);
    *turn = (struct det_flow_turn){ 0 };
}

void det_flow_turn_begin(struct det_flow_turn *turn)
{
    bool was_full = turn->reserved > 0 && turn->outputs >= turn->reserved;

    turn->count = turn->size = 0;
    turn->outputs = turn->data = turn->errors = turn->rejected = 0;
    turn->end = DET_END_NONE;
    turn->is_complete = false;
    turn->reserved = turn->ring ? det_ring_slots(turn->ring, was_full) : 0;
    turn->room = turn->reserved;
}

static int grow_rows(struct det_flow_turn *turn)
{
    size_t capacity = turn->capacity ? turn->capacity * 2 : 16;
    struct det_journal_row *rows;

    rows = det_realloc(
        turn->allocator, turn->rows, turn->capacity * sizeof *rows, capacity * sizeof *rows);
    if (!rows)
        return DET_ERR_NO_MEMORY;
    turn->rows = rows;
    turn->capacity = capacity;
    return 0;
}

/* The bytes may move, and the rows point into them. */
static int grow_bytes(struct det_flow_turn *turn, size_t size)
{
    size_t capacity = turn->bytes_capacity ? turn->bytes_capacity * 2 : 1024;
    const uint8_t *old = turn->bytes;
    uint8_t *bytes;

    while (capacity < turn->size + size)
        capacity *= 2;
    bytes = det_alloc(turn->allocator, capacity);
    if (!bytes)
        return DET_ERR_NO_MEMORY;
    if (turn->size > 0)
        memcpy(bytes, old, turn->size);
    for (size_t i = 0; i < turn->count; i++)
        turn->rows[i].data = bytes + ((const uint8_t *)turn->rows[i].data - old);
    det_free(turn->allocator, turn->bytes, turn->bytes_capacity);
    turn->bytes = bytes;
    turn->bytes_capacity = capacity;
    return 0;
}

int det_flow_turn_reserve(struct det_flow_turn *turn, size_t size)
{
    int r = 0;

    if (turn->count == turn->capacity)
        r = grow_rows(turn);
    if (r == 0 && turn->bytes_capacity - turn->size < size)
        r = grow_bytes(turn, size);
    return r;
}

struct det_journal_row *det_flow_turn_add(
    struct det_flow_turn *turn, uint16_t stream, enum det_flow_row kind, size_t size)
{
    struct det_journal_row *row = &turn->rows[turn->count];

    det_assert(turn->count < turn->capacity && size <= turn->bytes_capacity - turn->size);
    *row = (struct det_journal_row){
        .data = turn->bytes + turn->size,
        .size = (uint32_t)size,
        .stream = stream,
        .kind = (uint8_t)kind,
    };
    turn->count++;
    turn->size += size;
    return row;
}

static int grow_values(struct det_flow_turn *turn, uint64_t count)
{
    size_t capacity = turn->value_capacity ? turn->value_capacity : 16;
    unsigned char *values;

    while (capacity < count)
        capacity *= 2;
    values = det_realloc(
        turn->allocator, turn->values, turn->value_capacity * turn->value_size,
        capacity * turn->value_size);
    if (!values)
        return DET_ERR_NO_MEMORY;
    turn->values = values;
    turn->value_capacity = capacity;
    return 0;
}

void *det_flow_turn_value(struct det_flow_turn *turn)
{
    uint64_t number = turn->outputs;

    if (number < turn->reserved)
        return det_ring_value(turn->ring, turn->ring->written + 1 + number);
    number -= turn->reserved;
    if (number >= turn->value_capacity && grow_values(turn, number + 1) < 0)
        return NULL;
    return turn->values + number * turn->value_size;
}

struct det_flow_turn_mark det_flow_turn_mark(const struct det_flow_turn *turn)
{
    return (struct det_flow_turn_mark){
        .count = turn->count,
        .size = turn->size,
        .outputs = turn->outputs,
        .data = turn->data,
        .errors = turn->errors,
        .rejected = turn->rejected,
    };
}

void det_flow_turn_rewind(struct det_flow_turn *turn, const struct det_flow_turn_mark *mark)
{
    turn->count = mark->count;
    turn->size = mark->size;
    turn->outputs = mark->outputs;
    turn->data = mark->data;
    turn->errors = mark->errors;
    turn->rejected = mark->rejected;
}

static int take_row(
    struct det_flow_turn *turn, const struct det_flow_turn *other,
    const struct det_journal_row *row, uint16_t stream, uint64_t *output)
{
    struct det_journal_row *copy;
    void *value;
    int r;

    r = det_flow_turn_reserve(turn, row->size);
    if (r < 0)
        return r;
    if (row->stream == stream) {
        value = det_flow_turn_value(turn);
        if (!value)
            return DET_ERR_NO_MEMORY;
        memcpy(value, other->values + *output * other->value_size, other->value_size);
        turn->outputs++;
        ++*output;
    }
    if (row->size > 0)
        memcpy(turn->bytes + turn->size, row->data, row->size);
    copy = det_flow_turn_add(turn, row->stream, (enum det_flow_row)row->kind, row->size);
    copy->parent = row->parent;
    copy->correlation = row->correlation;
    copy->event_time = row->event_time;
    return 0;
}

int det_flow_turn_take(
    struct det_flow_turn *turn, const struct det_flow_turn *other, uint16_t stream)
{
    struct det_flow_turn_mark mark = det_flow_turn_mark(turn);
    uint64_t output = 0;
    int r = 0;

    for (size_t i = 0; i < other->count && r == 0; i++)
        r = take_row(turn, other, &other->rows[i], stream, &output);
    if (r < 0) {
        det_flow_turn_rewind(turn, &mark);
        return r;
    }
    turn->data += other->data;
    turn->errors += other->errors;
    turn->rejected += other->rejected;
    return 0;
}

int det_flow_turn_settle(struct det_flow_turn *turn)
{
    struct det_ring *ring = turn->ring;
    uint64_t unsettled;
    int r;

    if (turn->outputs <= turn->reserved)
        return 0;
    r = det_ring_grow(ring, ring->written - det_ring_slowest(ring) + turn->outputs);
    if (r < 0)
        return r;
    unsettled = turn->outputs - turn->reserved;
    for (uint64_t i = 0; i < unsettled; i++)
        memcpy(
            det_ring_value(ring, ring->written + 1 + turn->reserved + i),
            turn->values + i * turn->value_size, turn->value_size);
    turn->reserved = turn->outputs;
    return 0;
}
