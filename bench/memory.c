/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory.c - malloc(), calloc() and realloc() of the C library, counted.
 *
 * Each thread counts in its own cache line, so that counting does not make two threads wait for
 * each other. The functions are visible, so that shared libraries call them too. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"

#define SLOT_COUNT 64

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

struct slot {
    _Alignas(64) _Atomic uint64_t count;
};

static struct slot slots[SLOT_COUNT];
static _Atomic unsigned slots_taken;
static _Thread_local struct slot *own_slot;

static void count_one(void)
{
    if (!own_slot)
        own_slot = &slots[atomic_fetch_add(&slots_taken, 1) % SLOT_COUNT];
    atomic_fetch_add_explicit(&own_slot->count, 1, memory_order_relaxed);
}

uint64_t bench_allocations(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SLOT_COUNT; i++)
        sum += atomic_load_explicit(&slots[i].count, memory_order_relaxed);
    return sum;
}

DET_API void *malloc(size_t size)
{
    count_one();
    return __libc_malloc(size);
}

DET_API void *calloc(size_t count, size_t size)
{
    count_one();
    return __libc_calloc(count, size);
}

DET_API void *realloc(void *pointer, size_t size)
{
    count_one();
    return __libc_realloc(pointer, size);
}

DET_API void *memalign(size_t alignment, size_t size)
{
    count_one();
    return __libc_memalign(alignment, size);
}

DET_API void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

DET_API int posix_memalign(void **ret, size_t alignment, size_t size)
{
    void *pointer = memalign(alignment, size);

    if (!pointer)
        return ENOMEM;
    *ret = pointer;
    return 0;
}
