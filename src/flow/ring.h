/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* ring.h - the rows that a stage has written and its readers are not done with.
 *
 *                 read (slowest)          written            written + window
 *      ... released |  visible to readers  |  free: credit      |
 *                   +----------------------+--------------------+
 *      a slot is the C struct of a row and what is known about it; its number is the sequence of
 *      the row in the stage's stream, so the journal and the ring count alike
 *
 * Invariants
 *   1. written - read <= capacity, for every reader.
 *   2. Slots after `written` belong to the writer, those up to it are not changed until every
 *      reader has released them.
 *   3. `window` counts the rows that the slowest reader may lag. The memory is for fewer rows at
 *      first, and grows when a writer has credit and no slot: most readers never lag, and what is
 *      small stays in the cache. A few slots more are for ends, which a slow reader never stops. */
#ifndef DET_FLOW_RING_H
#define DET_FLOW_RING_H

#include <detent/base.h>

/* What a slot holds. */
enum det_slot_kind {
    DET_SLOT_ROW,  /* a value */
    DET_SLOT_END,  /* the end of the stream, `end` is its kind, `count` the rows before it */
    DET_SLOT_SKIP, /* nothing for a reader: a rejected row, an end of an earlier open */
};

struct det_slot {
    uint64_t position, sequence;
    uint64_t correlation;
    det_time event_time;
    uint64_t count;  /* END */
    uint16_t stream; /* of the journal */
    uint8_t kind;    /* enum det_slot_kind */
    uint8_t end;     /* enum det_end_kind */
};

/* The place of a reader; the ring borrows it. */
struct det_ring_reader {
    uint64_t read; /* the last sequence that was released */
};

struct det_ring {
    const struct det_allocator *allocator;
    struct det_slot *slots;
    unsigned char *values;
    size_t value_size; /* of a slot's value, in memory */
    uint64_t mask;     /* capacity - 1 */
    uint64_t written;  /* the last visible sequence */
    uint64_t slowest;  /* a lower bound of the sequences released by all readers */
    uint32_t window;
    uint32_t reader_count, reader_capacity;
    struct det_ring_reader **readers;
};

/* A ring without readers always has the credit of its window. */
DET_MUST_CHECK int det_ring_init(
    struct det_ring *ring, const struct det_allocator *allocator, size_t value_size,
    uint32_t window);
void det_ring_deinit(struct det_ring *ring);
/* Adds a reader; before the first row is written. */
DET_MUST_CHECK int det_ring_add(struct det_ring *ring, struct det_ring_reader *reader);
/* Removes a reader: the writer does not wait for it any longer, and what it has not released is
 * lost to it. */
void det_ring_remove(struct det_ring *ring, const struct det_ring_reader *reader);
/* Makes room for `rows` rows after the slowest reader. Values may move: not while another thread
 * reads one. */
DET_MUST_CHECK int det_ring_grow(struct det_ring *ring, uint64_t rows);
/* Rows that the writer may add now. */
uint64_t det_ring_credit(struct det_ring *ring);
/* Those of them that have a slot; without one the ring grows, if there is memory. `wants_more`: the
 * writer has used all of them the last time. */
uint64_t det_ring_slots(struct det_ring *ring, bool wants_more);
/* The sequence that every reader has released. */
uint64_t det_ring_slowest(struct det_ring *ring);

static inline uint64_t det_ring_capacity(const struct det_ring *ring)
{
    return ring->mask + 1;
}

static inline struct det_slot *det_ring_slot(const struct det_ring *ring, uint64_t sequence)
{
    return &ring->slots[sequence & ring->mask];
}

static inline void *det_ring_value(const struct det_ring *ring, uint64_t sequence)
{
    return ring->values + (sequence & ring->mask) * ring->value_size;
}

#endif
