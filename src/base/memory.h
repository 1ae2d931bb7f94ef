/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.h - typed use of an injected allocator; size products are checked for overflow. */
#ifndef DET_BASE_MEMORY_H
#define DET_BASE_MEMORY_H

#include <detent/base.h>

/* In all of these a NULL allocator means the default one. An allocation of zero bytes succeeds, so
 * NULL always means out of memory. */
void *det_alloc(const struct det_allocator *allocator, size_t size);
void *det_alloc_zero(const struct det_allocator *allocator, size_t size);
/* Returns `count * size` zeroed bytes; also NULL when the product overflows. */
void *det_alloc_array(const struct det_allocator *allocator, size_t count, size_t size);
void *det_realloc(
    const struct det_allocator *allocator, void *pointer, size_t old_size, size_t new_size);
void det_free(const struct det_allocator *allocator, void *pointer, size_t size);
/* Copies up to the first NUL and terminates the copy; free it with det_free_string(). */
char *det_string_copy(const struct det_allocator *allocator, const char *text);
char *det_string_copy_n(const struct det_allocator *allocator, const char *text, size_t length);
void det_free_string(const struct det_allocator *allocator, char *text);

#define DET_NEW(allocator, type) ((type *)det_alloc_zero((allocator), sizeof(type)))
#define DET_NEW_ARRAY(allocator, count, type) \
    ((type *)det_alloc_array((allocator), (count), sizeof(type)))
#define DET_DELETE(allocator, pointer) \
    det_free((allocator), (pointer), sizeof(__typeof__(*(pointer))))
#define DET_DELETE_ARRAY(allocator, pointer, count) \
    det_free((allocator), (pointer), (size_t)(count) * sizeof(__typeof__(*(pointer))))

#endif
