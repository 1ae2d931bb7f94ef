/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* heap.h - a 4-ary min-heap of intrusive nodes, ordered by (key, tie); used for timers. Insert,
 * remove and rekey are O(log n). Equal keys keep insertion order, so that a run is
 * deterministic. */
#ifndef DET_BASE_HEAP_H
#define DET_BASE_HEAP_H

#include <detent/base.h>

#define DET_HEAP_NOWHERE SIZE_MAX

struct det_heap_node {
    int64_t key;
    uint64_t tie;    /* set by the heap at insertion */
    size_t position; /* DET_HEAP_NOWHERE when not in a heap */
};

struct det_heap {
    const struct det_allocator *allocator;
    struct det_heap_node **nodes;
    size_t count;
    size_t capacity;
    uint64_t next_tie;
};

void det_heap_init(struct det_heap *heap, const struct det_allocator *allocator);
void det_heap_deinit(struct det_heap *heap);
void det_heap_node_init(struct det_heap_node *node);
static inline bool det_heap_contains(const struct det_heap_node *node)
{
    return node->position != DET_HEAP_NOWHERE;
}
/* Reserves room for `count` nodes in total, so that inserts up to that count cannot fail. */
DET_MUST_CHECK int det_heap_reserve(struct det_heap *heap, size_t count);
DET_MUST_CHECK int det_heap_insert(struct det_heap *heap, struct det_heap_node *node, int64_t key);
/* Returns the node with the smallest key, or NULL. */
struct det_heap_node *det_heap_first(const struct det_heap *heap);
void det_heap_remove(struct det_heap *heap, struct det_heap_node *node);
/* Changes the key of a node in the heap; it is ordered after nodes with an equal key. */
void det_heap_rekey(struct det_heap *heap, struct det_heap_node *node, int64_t key);

#endif
