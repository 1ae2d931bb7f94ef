/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* heap.c - a 4-ary min-heap of intrusive nodes.
 *
 *      position          0                the children of p are 4p+1 .. 4p+4,
 *                 1    2    3    4        its parent is (p-1)/4
 *              5 6 7 8 ...
 *
 * Invariants:
 *   1. no node precedes its parent in the order of (key, tie);
 *   2. nodes[i]->position == i for all i < count;
 *   3. no tie is used twice, so the order is total and a run is deterministic. */
#include "base/heap.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"

#define ARITY        ((size_t)4)
#define CAPACITY_MIN ((size_t)16)

static inline bool is_before(const struct det_heap_node *a, const struct det_heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static inline void put_node(struct det_heap *heap, size_t position, struct det_heap_node *node)
{
    heap->nodes[position] = node;
    node->position = position;
}

static void assert_node(const struct det_heap *heap, const struct det_heap_node *node)
{
    det_assert(node->position < heap->count);
    det_assert(heap->nodes[node->position] == node);
}

/* Invariant 1 at one position: the node does not precede its parent, and no child precedes the
 * node. */
static void assert_order(const struct det_heap *heap, size_t position)
{
    const struct det_heap_node *node = heap->nodes[position];
    size_t child = position * ARITY + 1;

    det_assert(node->position == position);
    det_assert(position == 0 || !is_before(node, heap->nodes[(position - 1) / ARITY]));
    for (size_t i = child; i < child + ARITY && i < heap->count; i++)
        det_assert(!is_before(heap->nodes[i], node));
}

/* Asserts the invariants after a change of `node`; NULL: the node was removed. */
static void assert_heap(const struct det_heap *heap, const struct det_heap_node *node)
{
    det_assert(heap->count <= heap->capacity);
    if (DET_CHECKS && node)
        assert_order(heap, node->position);
    if (DET_CHECKS_ALL(heap->count)) {
        for (size_t i = 0; i < heap->count; i++)
            assert_order(heap, i);
    }
}

/* Moves the hole at `position` up until `node` may fill it. */
static void sift_up(struct det_heap *heap, size_t position, struct det_heap_node *node)
{
    while (position > 0) {
        size_t parent = (position - 1) / ARITY;

        if (!is_before(node, heap->nodes[parent]))
            break;
        put_node(heap, position, heap->nodes[parent]);
        position = parent;
    }
    put_node(heap, position, node);
}

/* Returns the child that comes first, or `count` if there is none. */
static size_t first_child(const struct det_heap *heap, size_t position)
{
    size_t child = position * ARITY + 1;
    size_t end = child + ARITY < heap->count ? child + ARITY : heap->count;
    size_t first = child;

    if (child >= heap->count)
        return heap->count;
    while (++child < end) {
        if (is_before(heap->nodes[child], heap->nodes[first]))
            first = child;
    }
    return first;
}

static void sift_down(struct det_heap *heap, size_t position, struct det_heap_node *node)
{
    for (;;) {
        size_t child = first_child(heap, position);

        if (child == heap->count || !is_before(heap->nodes[child], node))
            break;
        put_node(heap, position, heap->nodes[child]);
        position = child;
    }
    put_node(heap, position, node);
}

/* Fills the hole at `position` with `node`, moving the hole up or down. */
static void sift_node(struct det_heap *heap, size_t position, struct det_heap_node *node)
{
    if (position > 0 && is_before(node, heap->nodes[(position - 1) / ARITY]))
        sift_up(heap, position, node);
    else
        sift_down(heap, position, node);
}

void det_heap_init(struct det_heap *heap, const struct det_allocator *allocator)
{
    *heap = (struct det_heap){ .allocator = allocator };
}

void det_heap_deinit(struct det_heap *heap)
{
    /* Does not touch the nodes: their objects may have been freed. */
    DET_DELETE_ARRAY(heap->allocator, heap->nodes, heap->capacity);
    *heap = (struct det_heap){ .allocator = heap->allocator };
}

void det_heap_node_init(struct det_heap_node *node)
{
    *node = (struct det_heap_node){ .position = DET_HEAP_NOWHERE };
}

int det_heap_reserve(struct det_heap *heap, size_t count)
{
    struct det_heap_node **nodes;
    size_t capacity = heap->capacity < CAPACITY_MIN ? CAPACITY_MIN : heap->capacity;
    size_t size;

    if (count <= heap->capacity)
        return 0;
    while (capacity < count) {
        if (!det_mul_size(capacity, 2, &capacity))
            return DET_ERR_NO_MEMORY;
    }
    if (!det_mul_size(capacity, sizeof(struct det_heap_node *), &size))
        return DET_ERR_NO_MEMORY;
    nodes = det_realloc(
        heap->allocator, heap->nodes, heap->capacity * sizeof(struct det_heap_node *), size);
    if (nodes == NULL)
        return DET_ERR_NO_MEMORY;
    heap->nodes = nodes;
    heap->capacity = capacity;
    return 0;
}

int det_heap_insert(struct det_heap *heap, struct det_heap_node *node, int64_t key)
{
    int r;

    det_assert(!det_heap_contains(node));
    r = det_heap_reserve(heap, heap->count + 1);
    if (r < 0)
        return r;
    node->key = key;
    node->tie = heap->next_tie++;
    sift_up(heap, heap->count++, node);
    assert_heap(heap, node);
    return 0;
}

struct det_heap_node *det_heap_first(const struct det_heap *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}

void det_heap_remove(struct det_heap *heap, struct det_heap_node *node)
{
    struct det_heap_node *last;
    size_t position = node->position;

    assert_node(heap, node);
    last = heap->nodes[--heap->count];
    node->position = DET_HEAP_NOWHERE;
    if (last != node)
        sift_node(heap, position, last);
    assert_heap(heap, last != node ? last : NULL);
}

void det_heap_rekey(struct det_heap *heap, struct det_heap_node *node, int64_t key)
{
    assert_node(heap, node);
    node->key = key;
    node->tie = heap->next_tie++;
    sift_node(heap, node->position, node);
    assert_heap(heap, node);
}
