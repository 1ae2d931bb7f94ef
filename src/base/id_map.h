/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* id_map.h - maps a 64-bit id to an object that contains its id and a link: chains of intrusive
 * nodes. Ids are assigned in sequence, so their low bits distribute them without a hash. */
#ifndef DET_BASE_ID_MAP_H
#define DET_BASE_ID_MAP_H

#include <detent/base.h>

struct det_id_node {
    uint64_t id;
    struct det_id_node *next; /* owned by the map */
};

struct det_id_map {
    const struct det_allocator *allocator;
    struct det_id_node **chains;
    size_t capacity; /* 0 or a power of two */
    size_t count;
};

void det_id_map_init(struct det_id_map *map, const struct det_allocator *allocator);
void det_id_map_deinit(struct det_id_map *map);
struct det_id_node *det_id_map_get(const struct det_id_map *map, uint64_t id);
/* After success, one put cannot fail. */
DET_MUST_CHECK int det_id_map_reserve(struct det_id_map *map);
/* The id must not be in the map; room must be reserved. */
void det_id_map_put(struct det_id_map *map, struct det_id_node *node);
/* The node must be in the map. */
void det_id_map_remove(struct det_id_map *map, struct det_id_node *node);

#endif
