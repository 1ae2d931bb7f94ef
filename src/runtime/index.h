/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* index.h - from an id to its resident.
 *
 * With many instances a send waits mostly for memory. So the index can be asked ahead of time, with
 * no lock held, to bring a slot near (det_index_ask()); and a slot knows, beside the resident, the
 * store's handle and what the store will touch next, so that all of it comes at once. */
#ifndef DET_RUNTIME_INDEX_H
#define DET_RUNTIME_INDEX_H

#include <stdatomic.h>

#include <detent/base.h>

struct det_resident;

/* Half a cache line. */
struct det_index_slot {
    uint64_t hash;
    struct det_resident *resident; /* NULL: free */
    const void *handle, *next;     /* only ever asked for, never looked at */
};

struct det_index {
    const struct det_allocator *allocator;
    _Atomic(struct det_index_slot *) slots;
    atomic_size_t mask; /* of the slots, whose number is a power of two */
    size_t count;
};

void det_index_init(struct det_index *index, const struct det_allocator *allocator);
void det_index_deinit(struct det_index *index);
/* NULL when there is none. The slot stays where it is until the next put or remove. */
struct det_index_slot *det_index_find(const struct det_index *index, uint64_t hash, const char *id);
/* The slot that most probably is the one, without a look at any resident; NULL: there is none. */
struct det_index_slot *det_index_find_first(const struct det_index *index, uint64_t hash);
/* The id must not be there yet. */
DET_MUST_CHECK int det_index_put(
    struct det_index *index, uint64_t hash, struct det_resident *resident);
void det_index_remove(struct det_index *index, uint64_t hash, const char *id);
/* Walks all residents in no particular order: start with *cursor = 0; NULL at the end. */
struct det_resident *det_index_next(const struct det_index *index, size_t *cursor);

/* Asks for the line of memory `offset` bytes behind `base`, whether there is such memory or not. */
static inline void det_index_ask_at(const void *base, size_t offset)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): no pointer may be moved to where nothing is */
    __builtin_prefetch((const void *)((uintptr_t)base + offset), 1);
}

/* From any thread at any time: the slots may be gone before they come, which does no harm. */
static inline void det_index_ask(const struct det_index *index, uint64_t hash)
{
    struct det_index_slot *slots = atomic_load_explicit(&index->slots, memory_order_relaxed);
    size_t mask = atomic_load_explicit(&index->mask, memory_order_relaxed);

    det_index_ask_at(slots, (hash & mask) * sizeof *slots);
}

#endif
