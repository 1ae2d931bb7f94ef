/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* index.c - open addressing with linear probing and backward-shift deletion.
 *
 * Invariants:
 *   1. no slot between the home of a slot's hash and the slot is free;
 *   2. at most half of the slots are used, so nearly all entries are at home. */
#include "runtime/index.h"

#include <string.h>

#include "base/memory.h"
#include "runtime/resident.h"

#define SLOTS_MIN ((size_t)16)

static struct det_index_slot *slots_of(const struct det_index *index)
{
    return atomic_load_explicit(&index->slots, memory_order_relaxed);
}

static size_t mask_of(const struct det_index *index)
{
    return atomic_load_explicit(&index->mask, memory_order_relaxed);
}

static size_t capacity_of(const struct det_index *index)
{
    return slots_of(index) ? mask_of(index) + 1 : 0;
}

void det_index_init(struct det_index *index, const struct det_allocator *allocator)
{
    index->allocator = allocator;
    atomic_init(&index->slots, NULL);
    atomic_init(&index->mask, 0);
    index->count = 0;
}

void det_index_deinit(struct det_index *index)
{
    if (slots_of(index))
        DET_DELETE_ARRAY(index->allocator, slots_of(index), capacity_of(index));
    det_index_init(index, index->allocator);
}

struct det_index_slot *det_index_find(const struct det_index *index, uint64_t hash, const char *id)
{
    struct det_index_slot *slots = slots_of(index);
    size_t mask = mask_of(index);

    if (!slots)
        return NULL;
    for (size_t at = (size_t)hash & mask; slots[at].resident; at = (at + 1) & mask) {
        if (slots[at].hash == hash && strcmp(slots[at].resident->id, id) == 0)
            return &slots[at];
    }
    return NULL;
}

struct det_index_slot *det_index_find_first(const struct det_index *index, uint64_t hash)
{
    struct det_index_slot *slots = slots_of(index);
    size_t mask = mask_of(index);

    if (!slots)
        return NULL;
    for (size_t at = (size_t)hash & mask; slots[at].resident; at = (at + 1) & mask) {
        if (slots[at].hash == hash)
            return &slots[at];
    }
    return NULL;
}

static void place(struct det_index_slot *slots, size_t mask, struct det_index_slot slot)
{
    size_t at = (size_t)slot.hash & mask;

    while (slots[at].resident)
        at = (at + 1) & mask;
    slots[at] = slot;
}

static int grow(struct det_index *index)
{
    size_t old = capacity_of(index), capacity = old ? old * 2 : SLOTS_MIN;
    struct det_index_slot *before = slots_of(index), *slots;

    slots = DET_NEW_ARRAY(index->allocator, capacity, struct det_index_slot);
    if (!slots)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < old; i++) {
        if (before[i].resident)
            place(slots, capacity - 1, before[i]);
    }
    atomic_store_explicit(&index->slots, slots, memory_order_relaxed);
    atomic_store_explicit(&index->mask, capacity - 1, memory_order_relaxed);
    if (before)
        DET_DELETE_ARRAY(index->allocator, before, old);
    return 0;
}

int det_index_put(struct det_index *index, uint64_t hash, struct det_resident *resident)
{
    int r;

    if (index->count >= capacity_of(index) / 2) {
        r = grow(index);
        if (r < 0)
            return r;
    }
    place(
        slots_of(index), mask_of(index),
        (struct det_index_slot){ .hash = hash, .resident = resident });
    index->count++;
    return 0;
}

void det_index_remove(struct det_index *index, uint64_t hash, const char *id)
{
    struct det_index_slot *slots = slots_of(index), *found = det_index_find(index, hash, id);
    size_t mask = mask_of(index), hole, at;

    if (!found)
        return;
    hole = (size_t)(found - slots);
    /* Moves the following entries back, unless their home is after the hole. */
    for (at = (hole + 1) & mask; slots[at].resident; at = (at + 1) & mask) {
        size_t home = (size_t)slots[at].hash & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole] = (struct det_index_slot){ 0 };
    index->count--;
}

struct det_resident *det_index_next(const struct det_index *index, size_t *cursor)
{
    const struct det_index_slot *slots = slots_of(index);
    size_t capacity = capacity_of(index);

    while (*cursor < capacity) {
        struct det_resident *resident = slots[(*cursor)++].resident;

        if (resident)
            return resident;
    }
    return NULL;
}
