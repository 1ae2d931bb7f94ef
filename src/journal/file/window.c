/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* window.c - a block of a file in memory, aligned like the file; it grows for one large frame. */
#include <string.h>

#include "base/assert.h"
#include "journal/file/file_log.h"

#define ALIGNMENT 4096u
#define BLOCK_MIN 65536u /* the first one of a file: often only a few rows are read */
#define BLOCK_MAX 262144u

void det_window_init(
    struct det_window *window, struct det_world *world, const struct det_allocator *allocator)
{
    *window = (struct det_window){ .world = world, .allocator = allocator };
}

void det_window_deinit(struct det_window *window)
{
    if (window->block)
        det_free(window->allocator, window->block, window->block_size);
    window->block = NULL;
}

void det_window_set_file(struct det_window *window, struct det_file *file)
{
    window->file = file;
    window->size = 0;
    window->next_size = BLOCK_MIN;
}

static int reserve_block(struct det_window *window, size_t need)
{
    size_t capacity = window->capacity ? window->capacity : ALIGNMENT;

    if (need <= window->capacity)
        return 0;
    while (capacity < need)
        capacity *= 2;
    det_window_deinit(window);
    window->size = window->capacity = 0;
    window->block_size = capacity + ALIGNMENT;
    window->block = det_alloc(window->allocator, window->block_size);
    if (!window->block)
        return DET_ERR_NO_MEMORY;
    window->memory = window->block + (ALIGNMENT - (uintptr_t)window->block % ALIGNMENT) % ALIGNMENT;
    window->capacity = capacity;
    return 0;
}

bool det_window_has(const struct det_window *window, uint64_t offset, size_t need)
{
    return offset >= window->offset && need <= window->size &&
           offset - window->offset <= window->size - need;
}

/* Reads a block that begins at or before `offset`, on a boundary. */
static int read_block(struct det_window *window, uint64_t offset, size_t need, uint64_t end)
{
    uint64_t start = offset - offset % ALIGNMENT, size = offset - start + need;
    int64_t count;
    int r;

    if (size < window->next_size)
        size = window->next_size;
    window->next_size = BLOCK_MAX;
    if (size > end - start)
        size = end - start;
    r = reserve_block(window, (size_t)size);
    if (r < 0)
        return r;
    window->size = 0;
    count = det_file_read(window->world, window->file, start, window->memory, (size_t)size);
    if (count < 0)
        return (int)count;
    window->offset = start;
    window->size = (size_t)count;
    return 0;
}

int64_t det_window_get(
    struct det_window *window, uint64_t offset, size_t need, uint64_t end, const char **ret)
{
    int r;

    if (offset >= end)
        return 0;
    if (need > end - offset)
        need = (size_t)(end - offset);
    if (!det_window_has(window, offset, need)) {
        r = read_block(window, offset, need, end);
        if (r < 0)
            return r;
    }
    if (offset < window->offset || offset - window->offset >= window->size)
        return 0;
    *ret = window->memory + (offset - window->offset);
    return (int64_t)(window->size - (size_t)(offset - window->offset));
}
