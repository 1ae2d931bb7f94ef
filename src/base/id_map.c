/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* id_map.c - an array of chains; it doubles when it has as many nodes as chains. */
#include "base/id_map.h"

#include "base/assert.h"
#include "base/memory.h"

#define CAPACITY_MIN ((size_t)64)

void det_id_map_init(struct det_id_map *map, const struct det_allocator *allocator)
{
    *map = (struct det_id_map){ .allocator = allocator };
}

void det_id_map_deinit(struct det_id_map *map)
{
    DET_DELETE_ARRAY(map->allocator, map->chains, map->capacity);
    map->chains = NULL;
    map->capacity = map->count = 0;
}

static struct det_id_node **chain_of(const struct det_id_map *map, uint64_t id)
{
    return &map->chains[(size_t)id & (map->capacity - 1)];
}

struct det_id_node *det_id_map_get(const struct det_id_map *map, uint64_t id)
{
    struct det_id_node *node;

    if (map->capacity == 0)
        return NULL;
    node = *chain_of(map, id);
    while (node && node->id != id)
        node = node->next;
    return node;
}

static void push_node(struct det_id_map *map, struct det_id_node *node)
{
    struct det_id_node **chain = chain_of(map, node->id);

    node->next = *chain;
    *chain = node;
}

int det_id_map_reserve(struct det_id_map *map)
{
    struct det_id_map larger = *map;

    if (map->count < map->capacity)
        return 0;
    larger.capacity = map->capacity ? 2 * map->capacity : CAPACITY_MIN;
    larger.chains = DET_NEW_ARRAY(map->allocator, larger.capacity, struct det_id_node *);
    if (!larger.chains)
        return DET_ERR_NO_MEMORY;
    for (size_t i = 0; i < map->capacity; i++)
        for (struct det_id_node *node = map->chains[i], *next; node; node = next) {
            next = node->next;
            push_node(&larger, node);
        }
    DET_DELETE_ARRAY(map->allocator, map->chains, map->capacity);
    *map = larger;
    return 0;
}

void det_id_map_put(struct det_id_map *map, struct det_id_node *node)
{
    det_assert(map->count < map->capacity);
    push_node(map, node);
    map->count++;
}

void det_id_map_remove(struct det_id_map *map, struct det_id_node *node)
{
    struct det_id_node **place = chain_of(map, node->id);

    while (*place != node) {
        det_assert(*place);
        place = &(*place)->next;
    }
    *place = node->next;
    map->count--;
}
