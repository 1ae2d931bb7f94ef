/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arena.h - many small blocks that are freed together. */
#ifndef DET_BASE_ARENA_H
#define DET_BASE_ARENA_H

#include <detent/base.h>

struct det_arena_chunk;

struct det_arena {
    const struct det_allocator *allocator;
    struct det_arena_chunk *chunks; /* newest first */
    size_t used;                    /* bytes handed out */
    size_t limit;                   /* limit in bytes; 0: none */
};

void det_arena_init(struct det_arena *arena, const struct det_allocator *allocator);
void det_arena_deinit(struct det_arena *arena);
/* Returns zeroed memory aligned for any type; NULL without memory or at the limit. */
void *det_arena_alloc(struct det_arena *arena, size_t size);
/* Returns `count * size` zeroed bytes; also NULL when the product overflows. */
void *det_arena_array(struct det_arena *arena, size_t count, size_t size);
char *det_arena_copy_n(struct det_arena *arena, const char *text, size_t length);
char *det_arena_copy(struct det_arena *arena, const char *text);
char *det_arena_format(struct det_arena *arena, const char *format, ...) DET_PRINTF(2, 3);

#endif
