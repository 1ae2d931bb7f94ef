/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_queue.h - events in the order put, copied, as many as there is memory for. Not for more
 * than one thread at a time. */
#ifndef DET_TASK_EVENT_QUEUE_H
#define DET_TASK_EVENT_QUEUE_H

#include <detent/bus.h>

struct det_event_chunk;

struct det_event_queue {
    const struct det_allocator *allocator;
    struct det_event_chunk *first, *last;
    struct det_event_chunk *spare; /* one that was emptied; NULL: none */
};

void det_event_queue_init(struct det_event_queue *queue, const struct det_allocator *allocator);
void det_event_queue_deinit(struct det_event_queue *queue);
/* DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_event_queue_put(
    struct det_event_queue *queue, const struct det_task_event *event);
/* False when it is empty. */
DET_MUST_CHECK bool det_event_queue_take(struct det_event_queue *queue, struct det_task_event *ret);

#endif
