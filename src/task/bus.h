/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.h - the owner's side of the bus: publishing, and its end. <detent/bus.h> is the contract. */
#ifndef DET_TASK_BUS_H
#define DET_TASK_BUS_H

#include <detent/bus.h>
#include <detent/loop.h>

/* `capacity` is rounded up to a power of two; 0: 1024. The loop outlives the bus. */
DET_MUST_CHECK int det_bus_open(
    struct det_loop *loop, const struct det_allocator *allocator, uint32_t capacity,
    struct det_bus **ret);
/* On the loop. Sets the event's sequence and hands it out; of the texts only what is used is
 * copied. `at` is the caller's. */
void det_bus_publish(struct det_bus *bus, struct det_task_event *event);
/* Ends all subscriptions: they drain until one deadline for all of them (monotonic; 0: drop what is
 * queued). Returns how many callbacks had to be left behind. Not from the loop's thread while one
 * of them is to be drained by it: then the loop's own are drained by this call. */
int det_bus_end(struct det_bus *bus, det_time deadline);
/* After det_bus_end(). Subscriptions that were left behind keep what they use. */
void det_bus_close(struct det_bus *bus);

#endif
