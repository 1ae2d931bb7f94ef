/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.c - the default allocator, and typed use of an injected one.
 *
 * Invariants:
 *   1. a block of zero bytes is allocated and freed as one byte, so that NULL always means "no
 *      memory" and the sizes passed to free are the sizes requested;
 *   2. an allocator never sees new_size 0 except to free an existing block. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

static void *default_resize(void *context, void *pointer, size_t old_size, size_t new_size)
{
    (void)context;
    (void)old_size;
    if (new_size == 0) {
        free(pointer);
        return NULL;
    }
    return realloc(pointer, new_size);
}

static const struct det_allocator default_allocator = { .resize = default_resize };

static void *resize_block(
    const struct det_allocator *allocator, void *pointer, size_t old_size, size_t new_size)
{
    if (allocator == NULL)
        allocator = &default_allocator;
    det_assert(allocator->resize != NULL);
    return allocator->resize(allocator->context, pointer, old_size, new_size);
}

static size_t real_size(size_t size)
{
    return size > 0 ? size : 1;
}

const struct det_allocator *det_allocator_default(void)
{
    return &default_allocator;
}

void *det_alloc(const struct det_allocator *allocator, size_t size)
{
    return resize_block(allocator, NULL, 0, real_size(size));
}

void *det_alloc_zero(const struct det_allocator *allocator, size_t size)
{
    void *pointer = det_alloc(allocator, size);

    if (pointer != NULL)
        memset(pointer, 0, real_size(size));
    return pointer;
}

void *det_alloc_array(const struct det_allocator *allocator, size_t count, size_t size)
{
    size_t total;

    if (!det_mul_size(count, size, &total))
        return NULL;
    return det_alloc_zero(allocator, total);
}

void *det_realloc(
    const struct det_allocator *allocator, void *pointer, size_t old_size, size_t new_size)
{
    if (pointer == NULL) {
        det_assert(old_size == 0);
        return det_alloc(allocator, new_size);
    }
    return resize_block(allocator, pointer, real_size(old_size), real_size(new_size));
}

void det_free(const struct det_allocator *allocator, void *pointer, size_t size)
{
    if (pointer == NULL)
        return;
    (void)resize_block(allocator, pointer, real_size(size), 0);
}

char *det_string_copy(const struct det_allocator *allocator, const char *text)
{
    return det_string_copy_n(allocator, text, strlen(text));
}

char *det_string_copy_n(const struct det_allocator *allocator, const char *text, size_t length)
{
    char *copy;

    /* det_free_string() finds the size with strlen(), so the copy must end at its first NUL. */
    length = length > 0 ? strnlen(text, length) : 0;
    copy = det_alloc(allocator, length + 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

void det_free_string(const struct det_allocator *allocator, char *text)
{
    if (text != NULL)
        det_free(allocator, text, strlen(text) + 1);
}
