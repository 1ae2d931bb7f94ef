/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* map.c - linear probing with backward-shift deletion.
 *
 * A value is in its home slot (hash & mask) or in the nearest free one after it, round the end:
 *
 *      slot      0     1     2     3     4     5     6     7
 *             +-----+-----+-----+-----+-----+-----+-----+-----+
 *      home   |  7  |     |  2  |  2  |  3  |     |     |  7  |
 *             +-----+-----+-----+-----+-----+-----+-----+-----+
 *
 * Invariants:
 *   1. no slot between the home of a value and its slot is free, so a search may stop at one;
 *   2. at most three quarters of the slots are taken, so there always is a free one;
 *   3. no two values have the same key. */
#include "base/map.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"

#define CAPACITY_MIN ((size_t)8)
/* A cursor holds two positions in one size_t. */
#define CAPACITY_MAX ((size_t)1 << 31)
#define CURSOR_BITS  32
#define CURSOR_MASK  (((size_t)1 << CURSOR_BITS) - 1)

_Static_assert(sizeof(size_t) == 8, "a cursor of det_map_next() needs 64 bits");

/* Uses memcpy, because the member may be a `char *` or a `const char *`. */
static inline const char *key_of(const struct det_map *map, const void *value)
{
    const char *key;

    memcpy(&key, (const char *)value + map->key_offset, sizeof key);
    return key;
}

static inline uint64_t hash_of(const struct det_map *map, const char *key)
{
    return det_hash64(key, strlen(key), map->seed);
}

/* Returns the slot of the key, or the free slot that ends its search. The map must have slots. */
static struct det_map_slot *find_slot(const struct det_map *map, const char *key, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    size_t position = (size_t)hash & mask;

    for (;;) {
        struct det_map_slot *slot = &map->slots[position];

        if (slot->value == NULL)
            return slot;
        if (slot->hash == hash && strcmp(key_of(map, slot->value), key) == 0)
            return slot;
        position = (position + 1) & mask;
    }
}

static void place_value(struct det_map_slot *slots, size_t capacity, struct det_map_slot entry)
{
    size_t position = (size_t)entry.hash & (capacity - 1);

    while (slots[position].value != NULL)
        position = (position + 1) & (capacity - 1);
    slots[position] = entry;
}

static int grow_slots(struct det_map *map)
{
    size_t capacity = map->capacity == 0 ? CAPACITY_MIN : map->capacity * 2;
    struct det_map_slot *slots = NULL;

    if (capacity <= CAPACITY_MAX)
        slots = DET_NEW_ARRAY(map->allocator, capacity, struct det_map_slot);
    if (slots == NULL)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL)
            place_value(slots, capacity, map->slots[i]);
    }
    DET_DELETE_ARRAY(map->allocator, map->slots, map->capacity);
    map->slots = slots;
    map->capacity = capacity;
    return 0;
}

/* Frees a slot and moves back the following ones that could not be found otherwise: those whose
 * home is not between the hole and their slot. */
static void close_hole(struct det_map *map, size_t hole)
{
    size_t mask = map->capacity - 1;
    size_t position = (hole + 1) & mask;

    while (map->slots[position].value != NULL) {
        size_t home = (size_t)map->slots[position].hash & mask;

        if (((position - home) & mask) >= ((position - hole) & mask)) {
            map->slots[hole] = map->slots[position];
            hole = position;
        }
        position = (position + 1) & mask;
    }
    map->slots[hole] = (struct det_map_slot){ 0 };
}

/* The slots are as many as the values need, and a power of two. */
static void assert_map(const struct det_map *map)
{
    det_assert((map->capacity == 0) == (map->slots == NULL));
    det_assert((map->capacity & (map->capacity - 1)) == 0);
    det_assert(map->count <= map->capacity / 4 * 3);
}

/* A search from its home finds the value in this slot, and no other one of its key (1, 3). */
static void assert_slot(const struct det_map *map, const struct det_map_slot *slot)
{
    const char *key = key_of(map, slot->value);

    det_assert(slot->hash == hash_of(map, key));
    det_assert(find_slot(map, key, slot->hash) == slot);
}

static void assert_slots(const struct det_map *map)
{
    size_t count = 0;

    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value == NULL)
            continue;
        assert_slot(map, &map->slots[i]);
        count++;
    }
    det_assert(count == map->count);
}

static void assert_changed(const struct det_map *map)
{
    assert_map(map);
    if (DET_CHECKS_ALL(map->count))
        assert_slots(map);
}

void det_map_init(
    struct det_map *map, const struct det_allocator *allocator, uint64_t seed, size_t key_offset)
{
    *map = (struct det_map){ .allocator = allocator, .seed = seed, .key_offset = key_offset };
}

void det_map_deinit(struct det_map *map)
{
    DET_DELETE_ARRAY(map->allocator, map->slots, map->capacity);
    map->slots = NULL;
    map->capacity = map->count = 0;
}

void *det_map_get(const struct det_map *map, const char *key)
{
    if (map->count == 0)
        return NULL;
    return find_slot(map, key, hash_of(map, key))->value;
}

int det_map_reserve(struct det_map *map)
{
    return map->count < map->capacity / 4 * 3 ? 0 : grow_slots(map);
}

int det_map_put(struct det_map *map, void *value)
{
    const char *key = key_of(map, value);
    uint64_t hash = hash_of(map, key);
    int r;

    det_assert(key != NULL);
    if (map->count > 0 && find_slot(map, key, hash)->value != NULL)
        return DET_ERR_EXISTS;
    r = det_map_reserve(map);
    if (r < 0)
        return r;
    det_assert(map->count < map->capacity);
    place_value(map->slots, map->capacity, (struct det_map_slot){ hash, value });
    map->count++;
    assert_changed(map);
    return 0;
}

void *det_map_remove(struct det_map *map, const char *key)
{
    struct det_map_slot *slot;
    void *value;

    if (map->count == 0)
        return NULL;
    slot = find_slot(map, key, hash_of(map, key));
    value = slot->value;
    if (value == NULL)
        return NULL;
    close_hole(map, (size_t)(slot - map->slots));
    map->count--;
    assert_changed(map);
    return value;
}

static size_t first_free(const struct det_map *map)
{
    size_t position = 0;

    while (map->slots[position].value != NULL)
        position++;
    return position;
}

/* The walk goes down from a free slot, round the end and up to it again: against the direction of
 * probing, so that removing what was walked over moves only what was walked over. The cursor is
 * that free slot + 1 in its upper half and the steps done in its lower half. */
void *det_map_next(const struct det_map *map, size_t *cursor)
{
    size_t start, steps;

    if (map->count == 0)
        return NULL;
    if (*cursor == 0)
        *cursor = (first_free(map) + 1) << CURSOR_BITS;
    start = (*cursor >> CURSOR_BITS) - 1;
    steps = *cursor & CURSOR_MASK;
    det_assert(start < map->capacity && map->slots[start].value == NULL);
    while (steps + 1 < map->capacity) {
        void *value = map->slots[(start - ++steps) & (map->capacity - 1)].value;

        if (value != NULL) {
            *cursor = ((start + 1) << CURSOR_BITS) | steps;
            return value;
        }
    }
    *cursor = ((start + 1) << CURSOR_BITS) | steps;
    return NULL;
}
