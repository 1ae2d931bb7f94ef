/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_queue.h - a queue of copied events, limited by memory only. One thread at a time. */
#ifndef DET_TASK_EVENT_QUEUE_H
#define DET_TASK_EVENT_QUEUE_H

#include <detent/bus.h>

struct det_event_chunk;

struct det_event_queue {
    const struct det_allocator *allocator;
    struct det_event_chunk *first, *last;
    struct det_event_chunk *spare; /* an emptied chunk; NULL: none */
};

void det_event_queue_init(struct det_event_queue *queue, const struct det_allocator *allocator);
void det_event_queue_deinit(struct det_event_queue *queue);
/* DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_event_queue_put(
    struct det_event_queue *queue, const struct det_task_event *event);
/* False: the queue is empty. */
DET_MUST_CHECK bool det_event_queue_take(struct det_event_queue *queue, struct det_task_event *ret);

#endif
