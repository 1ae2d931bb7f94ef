/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* bus.h - the owner's side of the bus: publishing, and its end. <detent/bus.h> is the contract. */
#ifndef DET_TASK_BUS_H
#define DET_TASK_BUS_H

#include <detent/bus.h>
#include <detent/loop.h>

/* `capacity` is rounded up to a power of two; 0: 1024. The loop outlives the bus, and some of the
 * bus's memory is freed by the loop's next turn, or by its close. */
#define DET_BUS_CAPACITY_MAX 1048576
DET_MUST_CHECK int det_bus_open(
    struct det_loop *loop, const struct det_allocator *allocator, uint32_t capacity,
    struct det_bus **ret);
/* On the loop. Sets the event's sequence and hands it out; of the texts only what is used is
 * copied. `at` is the caller's. */
void det_bus_publish(struct det_bus *bus, struct det_task_event *event);
/* Ends all subscriptions, the LOSSLESS ones last: they drain until one deadline for all of them
 * (monotonic; 0: drop what is queued), those of the loop by this call. Returns how many callbacks
 * had to be left behind. Later events go into the ring only. On the loop, or when nothing turns it
 * any more; not from a subscriber's callback, and not at the same time as an end of one of them. */
int det_bus_end(struct det_bus *bus, det_time deadline);
/* Ends it with deadline 0 if that was not done. A callback that runs even now keeps its
 * subscription and what that uses until it returns; its thread cannot be joined then, and what the
 * system holds for a thread that ended unjoined is lost. */
void det_bus_close(struct det_bus *bus);

/* Whether a lossless subscriber has as many events as it may: new work is to wait. Any thread. */
bool det_bus_is_pressed(const struct det_bus *bus);
/* Its name. On the loop. */
const char *det_bus_presser(struct det_bus *bus);
/* Called on the loop when that is over. */
void det_bus_set_relief(struct det_bus *bus, void (*on_relief)(void *user), void *user);
/* Whether the calling thread is one that calls a subscriber back: to wait there for a relief is in
 * vain. */
bool det_bus_is_reader(struct det_bus *bus);
/* On the loop: half of the ring was written since subscribers on the loop had their turn. Whoever
 * has much to publish goes on after the next one. */
bool det_bus_is_crowded(const struct det_bus *bus);

#endif
