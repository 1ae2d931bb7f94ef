/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* buffers.c - the two buffers of frames: aligned memory that grows up to the option's size, or to
 * the size of one large group.
 *
 *     memory                start            used                capacity
 *       |  (skew of the file) | frame | frame |                      |
 *
 * `start` is the offset in the file modulo 4096, so that memory and file are aligned alike. */
#include "journal/journal_internal.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

#define ALIGNMENT     4096u
#define CAPACITY_BASE 65536u

static int grow_buffer(struct det_journal *journal, struct det_journal_buffer *buffer, size_t need)
{
    size_t capacity = buffer->capacity ? buffer->capacity : CAPACITY_BASE, size;
    char *block, *memory;

    while (capacity < need)
        capacity *= 2;
    size = capacity + ALIGNMENT;
    block = det_alloc(journal->allocator, size);
    if (!block)
        return DET_ERR_NO_MEMORY;
    memory = block + (ALIGNMENT - (uintptr_t)block % ALIGNMENT) % ALIGNMENT;
    if (buffer->block) {
        memcpy(
            memory + buffer->start, buffer->memory + buffer->start, buffer->used - buffer->start);
        det_free(journal->allocator, buffer->block, buffer->block_size);
    }
    buffer->block = block;
    buffer->block_size = size;
    buffer->memory = memory;
    buffer->capacity = capacity;
    return 0;
}

void det_journal_buffers_deinit(struct det_journal *journal)
{
    for (int i = 0; i < 2; i++) {
        if (journal->buffers[i].block)
            det_free(journal->allocator, journal->buffers[i].block, journal->buffers[i].block_size);
    }
}

bool det_journal_buffers_has_frames(const struct det_journal *journal)
{
    const struct det_journal_buffer *buffer = &journal->buffers[journal->active];

    return buffer->used > buffer->start;
}

int det_journal_buffers_reserve(
    struct det_journal *journal, size_t size, bool is_forced, void **ret)
{
    struct det_journal_buffer *buffer = &journal->buffers[journal->active];
    size_t need;
    int r;

    if (buffer->used == buffer->start)
        buffer->used = buffer->start = journal->skew;
    need = buffer->used + size;
    if (need > buffer->capacity) {
        if (need > journal->options.buffer_size && buffer->used > buffer->start && !is_forced)
            return DET_ERR_BUSY;
        r = grow_buffer(journal, buffer, need);
        if (r < 0)
            return r;
    }
    *ret = buffer->memory + buffer->used;
    return 0;
}

void det_journal_buffers_commit(
    struct det_journal *journal, size_t size, uint64_t first, uint64_t last, det_time at)
{
    struct det_journal_buffer *buffer = &journal->buffers[journal->active];

    if (buffer->used == buffer->start) {
        buffer->first = first;
        buffer->groups = 0;
    }
    buffer->used += size;
    buffer->last = last;
    buffer->at = at;
    buffer->groups++;
    det_assert(buffer->used <= buffer->capacity);
}
