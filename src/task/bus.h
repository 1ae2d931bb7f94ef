/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.h - the owner's side of the bus: publishing, and its end. <detent/bus.h> has the contract. */
#ifndef DET_TASK_BUS_H
#define DET_TASK_BUS_H

#include <detent/bus.h>
#include <detent/loop.h>

/* `capacity` is rounded up to a power of two; 0: 1024. The loop outlives the bus: its next turn, or
 * its close, frees some of the bus's memory. */
#define DET_BUS_CAPACITY_MAX 1048576
DET_MUST_CHECK int det_bus_open(
    struct det_loop *loop, const struct det_allocator *allocator, uint32_t capacity,
    struct det_bus **ret);
/* On the loop. Sets the event's sequence and publishes it; only the used part of texts is copied.
 * The caller sets `at`. */
void det_bus_publish(struct det_bus *bus, struct det_task_event *event);
/* Ends all subscriptions, the LOSSLESS ones last: they drain until one common deadline (monotonic;
 * 0: drop queued events); this call drains those of the loop. Returns the number of callbacks that
 * still run. Later events go into the ring only. On the loop, or when no thread turns it; not from
 * a subscriber's callback, and not concurrently with the end of a subscription. */
int det_bus_end(struct det_bus *bus, det_time deadline);
/* Ends the bus with deadline 0 if necessary. A callback that still runs keeps its subscription and
 * its resources until it returns; its thread can then not be joined, and the system's resources of
 * an unjoined thread are lost. */
void det_bus_close(struct det_bus *bus);

/* True if a lossless subscriber has reached its capacity: new work must wait. Any thread. */
bool det_bus_is_pressed(const struct det_bus *bus);
/* The name of that subscriber. On the loop. */
const char *det_bus_presser(struct det_bus *bus);
/* Called on the loop when all subscribers have caught up. */
void det_bus_set_relief(struct det_bus *bus, void (*on_relief)(void *user), void *user);
/* True if the calling thread runs a subscriber's callbacks: waiting there for a relief would never
 * end. */
bool det_bus_is_reader(struct det_bus *bus);
/* On the loop: half of the ring was written since the last turn of the loop's subscribers. A caller
 * with many events continues after their next turn. */
bool det_bus_is_crowded(const struct det_bus *bus);

#endif
