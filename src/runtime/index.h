/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* index.h - maps an id to its resident.
 *
 * With many instances a send is dominated by cache misses. So the index supports prefetching a slot
 * without a lock (det_index_prefetch()); and a slot also contains the store's handle and the memory
 * that the store will access next, so that these can be prefetched together. */
#ifndef DET_RUNTIME_INDEX_H
#define DET_RUNTIME_INDEX_H

#include <stdatomic.h>

#include <detent/base.h>

struct det_resident;

/* Half a cache line. */
struct det_index_slot {
    uint64_t hash;
    struct det_resident *resident; /* NULL: free */
    const void *handle, *next;     /* only prefetched, never read */
};

struct det_index {
    const struct det_allocator *allocator;
    _Atomic(struct det_index_slot *) slots;
    atomic_size_t mask; /* number of slots minus one; the number is a power of two */
    size_t count;
};

void det_index_init(struct det_index *index, const struct det_allocator *allocator);
void det_index_deinit(struct det_index *index);
/* NULL: not found. The slot stays in place until the next put or remove. */
struct det_index_slot *det_index_find(const struct det_index *index, uint64_t hash, const char *id);
/* The most probable slot, without reading a resident; NULL: none. */
struct det_index_slot *det_index_find_first(const struct det_index *index, uint64_t hash);
/* The id must not exist. */
DET_MUST_CHECK int det_index_put(
    struct det_index *index, uint64_t hash, struct det_resident *resident);
void det_index_remove(struct det_index *index, uint64_t hash, const char *id);
/* Iterates over all residents in no particular order: start with *cursor = 0; NULL at the end. */
struct det_resident *det_index_next(const struct det_index *index, size_t *cursor);

/* Prefetches the cache line `offset` bytes after `base`, whether it is mapped or not. */
static inline void det_index_prefetch_at(const void *base, size_t offset)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): no pointer may be moved to where nothing is */
    __builtin_prefetch((const void *)((uintptr_t)base + offset), 1);
}

/* Any thread, any time: the slots may be freed meanwhile, which is harmless. */
static inline void det_index_prefetch(const struct det_index *index, uint64_t hash)
{
    struct det_index_slot *slots = atomic_load_explicit(&index->slots, memory_order_relaxed);
    size_t mask = atomic_load_explicit(&index->mask, memory_order_relaxed);

    det_index_prefetch_at(slots, (hash & mask) * sizeof *slots);
}

#endif
