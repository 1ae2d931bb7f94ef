/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arena.c - many small blocks that die together, cut from chunks that double in size.
 *
 *      arena -> chunk (newest) -> chunk -> chunk (oldest) -> NULL
 *               | blocks | free |
 *
 * Invariants:
 *   1. only the newest chunk is cut from;
 *   2. every block starts at a multiple of the strictest alignment;
 *   3. `used` is the sum of the rounded sizes handed out, and at most `limit` unless that is 0. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"

#define ALIGNMENT _Alignof(max_align_t)
#define CHUNK_MIN ((size_t)256)
#define CHUNK_MAX ((size_t)64 * 1024)

struct det_arena_chunk {
    struct det_arena_chunk *next;
    size_t size; /* of data */
    size_t used; /* of data */
    _Alignas(max_align_t) unsigned char data[];
};

static bool round_up(size_t size, size_t *ret)
{
    size_t padded;

    if (!det_add_size(size > 0 ? size : 1, ALIGNMENT - 1, &padded))
        return false;
    *ret = padded / ALIGNMENT * ALIGNMENT;
    return true;
}

static size_t next_chunk_size(const struct det_arena *arena, size_t needed)
{
    size_t size = arena->chunks == NULL ? CHUNK_MIN : arena->chunks->size * 2;

    size = size > CHUNK_MAX ? CHUNK_MAX : size;
    return needed > size ? needed : size;
}

static bool add_chunk(struct det_arena *arena, size_t needed)
{
    size_t size = next_chunk_size(arena, needed);
    struct det_arena_chunk *chunk;
    size_t total;

    if (!det_add_size(sizeof *chunk, size, &total))
        return false;
    chunk = det_alloc(arena->allocator, total);
    if (chunk == NULL)
        return false;
    chunk->next = arena->chunks;
    chunk->size = size;
    chunk->used = 0;
    arena->chunks = chunk;
    return true;
}

static bool is_within_limit(const struct det_arena *arena, size_t size)
{
    return arena->limit == 0 || (arena->used <= arena->limit && size <= arena->limit - arena->used);
}

/* Only the newest chunk changes. */
static void assert_arena(const struct det_arena *arena)
{
    const struct det_arena_chunk *chunk = arena->chunks;

    det_assert(chunk != NULL || arena->used == 0);
    if (chunk == NULL)
        return;
    det_assert(chunk->used <= chunk->size && chunk->used <= arena->used);
    det_assert(chunk->used % ALIGNMENT == 0);
}

void det_arena_init(struct det_arena *arena, const struct det_allocator *allocator)
{
    *arena = (struct det_arena){ .allocator = allocator };
}

void det_arena_deinit(struct det_arena *arena)
{
    struct det_arena_chunk *chunk = arena->chunks;

    assert_arena(arena);
    while (chunk != NULL) {
        struct det_arena_chunk *next = chunk->next;

        det_free(arena->allocator, chunk, sizeof *chunk + chunk->size);
        chunk = next;
    }
    arena->chunks = NULL;
    arena->used = 0;
}

void *det_arena_alloc(struct det_arena *arena, size_t size)
{
    struct det_arena_chunk *chunk = arena->chunks;
    void *block;

    if (!round_up(size, &size) || !is_within_limit(arena, size))
        return NULL;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        if (!add_chunk(arena, size))
            return NULL;
        chunk = arena->chunks;
    }
    block = chunk->data + chunk->used;
    chunk->used += size;
    arena->used += size;
    det_assert(arena->limit == 0 || arena->used <= arena->limit);
    det_check((assert_arena(arena), true));
    return memset(block, 0, size);
}

void *det_arena_array(struct det_arena *arena, size_t count, size_t size)
{
    size_t total;

    if (!det_mul_size(count, size, &total))
        return NULL;
    return det_arena_alloc(arena, total);
}

char *det_arena_copy_n(struct det_arena *arena, const char *text, size_t length)
{
    char *copy;
    size_t size;

    if (!det_add_size(length, 1, &size))
        return NULL;
    copy = det_arena_alloc(arena, size);
    if (copy != NULL && length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *det_arena_copy(struct det_arena *arena, const char *text)
{
    return det_arena_copy_n(arena, text, strlen(text));
}

char *det_arena_format(struct det_arena *arena, const char *format, ...)
{
    va_list arguments;
    char *text;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return NULL;
    text = det_arena_alloc(arena, (size_t)length + 1);
    if (text == NULL)
        return NULL;
    va_start(arguments, format);
    (void)vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
