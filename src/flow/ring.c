/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* ring.c - rings of rows with credit over the slowest reader; see ring.h. */
#include "flow/ring.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* Ends are never stopped by a slow reader. */
#define SPARE 8
/* Slots of a new ring. */
#define FIRST_SLOTS 64

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 16;

    while (power < least)
        power *= 2;
    return power;
}

static int allocate(struct det_ring *ring, uint64_t capacity)
{
    ring->slots = DET_NEW_ARRAY(ring->allocator, capacity, struct det_slot);
    ring->values = det_alloc_array(ring->allocator, capacity, ring->value_size);
    if (ring->slots && ring->values) {
        ring->mask = capacity - 1;
        return 0;
    }
    DET_DELETE_ARRAY(ring->allocator, ring->slots, capacity);
    det_free(ring->allocator, ring->values, capacity * ring->value_size);
    ring->slots = NULL;
    ring->values = NULL;
    return DET_ERR_NO_MEMORY;
}

int det_ring_init(
    struct det_ring *ring, const struct det_allocator *allocator, size_t value_size,
    uint32_t window)
{
    det_assert(window > 0 && value_size > 0);
    *ring = (struct det_ring){
        .allocator = allocator,
        .value_size = (value_size + 15) & ~(size_t)15, /* aligned for any type */
        .window = window,
    };
    return allocate(ring, power_of_two((window < FIRST_SLOTS ? window : FIRST_SLOTS) + SPARE));
}

void det_ring_deinit(struct det_ring *ring)
{
    if (ring->slots) {
        DET_DELETE_ARRAY(ring->allocator, ring->slots, det_ring_capacity(ring));
        det_free(ring->allocator, ring->values, det_ring_capacity(ring) * ring->value_size);
    }
    DET_DELETE_ARRAY(ring->allocator, ring->readers, ring->reader_capacity);
    *ring = (struct det_ring){ 0 };
}

int det_ring_add(struct det_ring *ring, struct det_ring_reader *reader)
{
    struct det_ring_reader **readers;

    readers = det_realloc(
        ring->allocator, ring->readers, ring->reader_capacity * sizeof *readers,
        (ring->reader_capacity + 1) * sizeof *readers);
    if (!readers)
        return DET_ERR_NO_MEMORY;
    readers[ring->reader_count++] = reader;
    ring->readers = readers;
    ring->reader_capacity++;
    return 0;
}

void det_ring_remove(struct det_ring *ring, const struct det_ring_reader *reader)
{
    for (uint32_t i = 0; i < ring->reader_count; i++) {
        if (ring->readers[i] != reader)
            continue;
        ring->readers[i] = ring->readers[--ring->reader_count];
        return;
    }
}

uint64_t det_ring_slowest(struct det_ring *ring)
{
    uint64_t slowest = ring->written;

    for (uint32_t i = 0; i < ring->reader_count; i++) {
        if (ring->readers[i]->read < slowest)
            slowest = ring->readers[i]->read;
    }
    ring->slowest = slowest;
    return slowest;
}

uint64_t det_ring_credit(struct det_ring *ring)
{
    uint64_t lag = ring->written - det_ring_slowest(ring);

    det_check(lag <= det_ring_capacity(ring));
    return lag < ring->window ? ring->window - lag : 0;
}

uint64_t det_ring_slots(struct det_ring *ring, bool wants_more)
{
    uint64_t credit = det_ring_credit(ring), lag = ring->written - ring->slowest;
    uint64_t free = det_ring_capacity(ring) - SPARE;

    free = free > lag ? free - lag : 0;
    if (free < credit && (wants_more || free == 0) &&
        det_ring_grow(ring, det_ring_capacity(ring)) == 0)
        free = det_ring_capacity(ring) - SPARE - lag;
    return free < credit ? free : credit;
}

int det_ring_grow(struct det_ring *ring, uint64_t rows)
{
    struct det_ring old = *ring;
    int r;

    if (rows + SPARE <= det_ring_capacity(ring))
        return 0;
    r = allocate(ring, power_of_two(rows + SPARE));
    if (r < 0) {
        *ring = old;
        return r;
    }
    /* Also those after `written`: a turn under way may have filled them. */
    for (uint64_t i = 1, at; i <= det_ring_capacity(&old); i++) {
        at = det_ring_slowest(&old) + i;
        *det_ring_slot(ring, at) = *det_ring_slot(&old, at);
        memcpy(det_ring_value(ring, at), det_ring_value(&old, at), old.value_size);
    }
    DET_DELETE_ARRAY(old.allocator, old.slots, det_ring_capacity(&old));
    det_free(old.allocator, old.values, det_ring_capacity(&old) * old.value_size);
    return 0;
}
