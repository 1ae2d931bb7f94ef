/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arena.h - many small blocks that die together. */
#ifndef DET_BASE_ARENA_H
#define DET_BASE_ARENA_H

#include <detent/base.h>

struct det_arena_chunk;

struct det_arena {
    const struct det_allocator *allocator;
    struct det_arena_chunk *chunks; /* newest first */
    size_t used;                    /* bytes handed out */
    size_t limit;                   /* at most this many; 0: no limit */
};

void det_arena_init(struct det_arena *arena, const struct det_allocator *allocator);
void det_arena_deinit(struct det_arena *arena);
/* Zeroed and aligned for any type; NULL when there is no memory or the limit is reached. */
void *det_arena_alloc(struct det_arena *arena, size_t size);
/* `count * size` zeroed bytes; NULL also when the product does not fit. */
void *det_arena_array(struct det_arena *arena, size_t count, size_t size);
char *det_arena_copy_n(struct det_arena *arena, const char *text, size_t length);
char *det_arena_copy(struct det_arena *arena, const char *text);
char *det_arena_format(struct det_arena *arena, const char *format, ...) DET_PRINTF(2, 3);

#endif
