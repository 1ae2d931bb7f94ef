/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus_ring.h - the last events of a bus, written by one thread and read by any.
 *
 * The event with sequence n is in entry n modulo the capacity until event n + capacity overwrites
 * it. A reader copies an entry and then checks that it has not changed. */
#ifndef DET_TASK_BUS_RING_H
#define DET_TASK_BUS_RING_H

#include <stdatomic.h>

#include <detent/bus.h>

struct det_bus_entry;

struct det_bus_ring {
    const struct det_allocator *allocator;
    struct det_world *world;
    struct det_bus_entry *entries;
    uint64_t mask;
    _Atomic(uint64_t) newest; /* sequence; 0: none yet */
};

/* `capacity` is rounded up to a power of two. */
DET_MUST_CHECK int det_bus_ring_init(
    struct det_bus_ring *ring, struct det_world *world, const struct det_allocator *allocator,
    uint32_t capacity);
void det_bus_ring_deinit(struct det_bus_ring *ring);
/* Sets the event's sequence. One thread at a time. */
void det_bus_ring_write(struct det_bus_ring *ring, struct det_task_event *event);
/* False: the event was overwritten. It must have been written. */
DET_MUST_CHECK bool det_bus_ring_read(
    struct det_bus_ring *ring, uint64_t sequence, struct det_task_event *ret);
/* The sequence of the oldest available event; newest + 1 if there is none. */
uint64_t det_bus_ring_oldest(const struct det_bus_ring *ring);

#endif
