/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* map.h - maps a string key to an object that contains its key: an intrusive open-addressing table
 * of pointers. The map owns only its slots. */
#ifndef DET_BASE_MAP_H
#define DET_BASE_MAP_H

#include <detent/base.h>

struct det_map_slot {
    uint64_t hash;
    void *value; /* NULL: free */
};

struct det_map {
    const struct det_allocator *allocator;
    uint64_t seed;
    struct det_map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;
    size_t key_offset; /* offset of the `const char *` key in a value */
};

/* Values are structs with a `const char *` key member; `key_offset` is its offsetof(). */
void det_map_init(
    struct det_map *map, const struct det_allocator *allocator, uint64_t seed, size_t key_offset);
void det_map_deinit(struct det_map *map);
/* Returns NULL if the key is absent. */
void *det_map_get(const struct det_map *map, const char *key);
/* Returns DET_ERR_EXISTS if the key is present (the map is unchanged) or DET_ERR_NO_MEMORY. The key
 * must not change while the value is in the map. */
DET_MUST_CHECK int det_map_put(struct det_map *map, void *value);
/* After success, one put of an absent key cannot fail. */
DET_MUST_CHECK int det_map_reserve(struct det_map *map);
/* Removes and returns the value with this key; NULL if absent. */
void *det_map_remove(struct det_map *map, const char *key);
/* Iterates over all values in no particular order: start with *cursor = 0; NULL at the end. During
 * the iteration nothing may be inserted; values already returned may be removed. */
void *det_map_next(const struct det_map *map, size_t *cursor);

#endif
