/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_queue.c - chunks of packed events: the numbers, the name and the reason with their final 0.
 * Most events take about 110 bytes instead of 400 in a ring. */
#include "task/event_queue.h"

#include <string.h>

#include "base/memory.h"

#define CHUNK_SIZE   (32 * 1024)
#define NUMBERS_SIZE offsetof(struct det_task_event, name)
/* Maximum size of a packed event, with alignment of the next. */
#define EVENT_SIZE_MAX (sizeof(struct det_task_event) + 8)

struct det_event_chunk {
    struct det_event_chunk *next;
    size_t filled, taken;
    char bytes[CHUNK_SIZE];
};

_Static_assert(EVENT_SIZE_MAX < CHUNK_SIZE, "every event fits into a chunk");

void det_event_queue_init(struct det_event_queue *queue, const struct det_allocator *allocator)
{
    *queue = (struct det_event_queue){ .allocator = allocator };
}

static void free_chunk(struct det_event_queue *queue, struct det_event_chunk *chunk)
{
    if (chunk)
        det_free(queue->allocator, chunk, sizeof *chunk);
}

void det_event_queue_deinit(struct det_event_queue *queue)
{
    struct det_event_chunk *chunk;

    while ((chunk = queue->first)) {
        queue->first = chunk->next;
        free_chunk(queue, chunk);
    }
    free_chunk(queue, queue->spare);
    queue->spare = NULL;
}

static struct det_event_chunk *add_chunk(struct det_event_queue *queue)
{
    struct det_event_chunk *chunk = queue->spare;

    queue->spare = NULL;
    if (!chunk)
        chunk = det_alloc(queue->allocator, sizeof *chunk);
    if (!chunk)
        return NULL;
    chunk->next = NULL;
    chunk->filled = chunk->taken = 0;
    if (queue->first)
        queue->last->next = chunk;
    else
        queue->first = chunk;
    queue->last = chunk;
    return chunk;
}

int det_event_queue_put(struct det_event_queue *queue, const struct det_task_event *event)
{
    struct det_event_chunk *chunk = queue->first ? queue->last : NULL;
    size_t name = strlen(event->name) + 1, reason = strlen(event->reason) + 1;
    char *target;

    if (!chunk || CHUNK_SIZE - chunk->filled < EVENT_SIZE_MAX)
        chunk = add_chunk(queue);
    if (!chunk)
        return DET_ERR_NO_MEMORY;
    target = chunk->bytes + chunk->filled;
    memcpy(target, event, NUMBERS_SIZE);
    memcpy(target + NUMBERS_SIZE, event->name, name);
    memcpy(target + NUMBERS_SIZE + name, event->reason, reason);
    chunk->filled += NUMBERS_SIZE + name + reason;
    return 0;
}

static void leave_chunk(struct det_event_queue *queue)
{
    struct det_event_chunk *chunk = queue->first;

    queue->first = chunk->next;
    free_chunk(queue, queue->spare);
    queue->spare = chunk;
}

bool det_event_queue_take(struct det_event_queue *queue, struct det_task_event *ret)
{
    struct det_event_chunk *chunk = queue->first;
    const char *source;
    size_t name, reason;

    if (!chunk)
        return false;
    source = chunk->bytes + chunk->taken;
    memcpy(ret, source, NUMBERS_SIZE);
    name = strlen(source + NUMBERS_SIZE) + 1;
    memcpy(ret->name, source + NUMBERS_SIZE, name);
    reason = strlen(source + NUMBERS_SIZE + name) + 1;
    memcpy(ret->reason, source + NUMBERS_SIZE + name, reason);
    chunk->taken += NUMBERS_SIZE + name + reason;
    if (chunk->taken == chunk->filled)
        leave_chunk(queue);
    return true;
}
