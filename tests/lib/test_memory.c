/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_memory.c - the allocator of the tests: it counts, checks, poisons and fails on demand.
 *
 *      struct block | the bytes handed out | GUARD_SIZE guard bytes
 *
 * Invariants:
 *   1. every live block is in the list of its memory, with the size it was asked for;
 *   2. a resize always moves, so that a pointer kept across one is found out;
 *   3. misuse (a wrong size, a foreign pointer, a byte written behind the end) aborts: it may be
 *      noticed on any thread, where cmocka cannot fail a test. */
#include <pthread.h>

#include "base/list.h"
#include "lib/test.h"

#define MAGIC_LIVE  UINT64_C(0x6465742d6c697665)
#define MAGIC_DEAD  UINT64_C(0x6465742d64656164)
#define GUARD_SIZE  16
#define GUARD_BYTE  0xFD
#define FRESH_BYTE  0xA5
#define DEAD_BYTE   0xDD
#define FAILURE_MAX 1000000

struct block {
    struct det_list list; /* among the live blocks */
    uint64_t magic;
    size_t size;
    _Alignas(max_align_t) unsigned char data[];
};

struct state {
    pthread_mutex_t mutex;
    struct det_list live;
};

static _Noreturn void misuse(const char *what, size_t given, size_t real)
{
    (void)fprintf(stderr, "test memory: %s (given %zu, real %zu)\n", what, given, real);
    abort();
}

static struct block *block_of(void *pointer)
{
    return DET_CONTAINER(pointer, struct block, data);
}

static void check_block(const struct block *block, size_t size)
{
    if (block->magic != MAGIC_LIVE)
        misuse("the pointer is no live block", size, 0);
    if (block->size != size)
        misuse("the size is not the one of the block", size, block->size);
    for (size_t i = 0; i < GUARD_SIZE; i++) {
        if (block->data[size + i] != GUARD_BYTE)
            misuse("written behind the end of the block", size + i, size);
    }
}

static struct block *add_block(struct det_test_memory *memory, size_t size)
{
    struct state *state = memory->internal;
    struct block *block = malloc(sizeof *block + size + GUARD_SIZE);

    if (block == NULL)
        misuse("the machine itself has no memory", size, 0);
    block->magic = MAGIC_LIVE;
    block->size = size;
    memset(block->data, FRESH_BYTE, size);
    memset(block->data + size, GUARD_BYTE, GUARD_SIZE);
    det_list_append(&state->live, &block->list);
    memory->live_blocks++;
    memory->live_bytes += size;
    if (memory->live_bytes > memory->peak_bytes)
        memory->peak_bytes = memory->live_bytes;
    return block;
}

static void remove_block(struct det_test_memory *memory, struct block *block)
{
    memory->live_blocks--;
    memory->live_bytes -= block->size;
    det_list_remove(&block->list);
    block->magic = MAGIC_DEAD;
    memset(block->data, DEAD_BYTE, block->size);
    free(block);
}

static bool is_failing(struct det_test_memory *memory)
{
    bool fails;

    memory->calls++;
    if (memory->fail_at == 0)
        return false;
    fails = memory->calls == memory->fail_at ||
            (memory->fail_sticky && memory->calls > memory->fail_at);
    memory->failed = memory->failed || fails;
    return fails;
}

static void *resize_locked(
    struct det_test_memory *memory, void *pointer, size_t old_size, size_t new_size)
{
    struct block *old = pointer != NULL ? block_of(pointer) : NULL;
    struct block *block;

    if (old != NULL)
        check_block(old, old_size);
    else if (old_size != 0 || new_size == 0)
        misuse("no block, but a size to free or none to take", old_size, new_size);
    if (new_size > old_size && is_failing(memory))
        return NULL;
    block = new_size > 0 ? add_block(memory, new_size) : NULL;
    if (block != NULL && old != NULL)
        memcpy(block->data, old->data, old_size < new_size ? old_size : new_size);
    if (old != NULL)
        remove_block(memory, old);
    return block != NULL ? block->data : NULL;
}

static void *resize(void *context, void *pointer, size_t old_size, size_t new_size)
{
    struct det_test_memory *memory = context;
    struct state *state = memory->internal;
    void *result;

    (void)pthread_mutex_lock(&state->mutex);
    result = resize_locked(memory, pointer, old_size, new_size);
    (void)pthread_mutex_unlock(&state->mutex);
    return result;
}

void det_test_memory_init(struct det_test_memory *memory)
{
    struct state *state = malloc(sizeof *state);

    if (state == NULL)
        misuse("the machine itself has no memory", sizeof *state, 0);
    (void)pthread_mutex_init(&state->mutex, NULL);
    det_list_init(&state->live);
    *memory = (struct det_test_memory){ .internal = state };
    memory->allocator.resize = resize;
    memory->allocator.context = memory;
}

bool det_test_memory_fail(struct det_test_memory *memory, uint64_t number, bool is_sticky)
{
    struct state *state = memory->internal;
    bool failed;

    (void)pthread_mutex_lock(&state->mutex);
    failed = memory->failed;
    memory->failed = false;
    memory->fail_at = number ? memory->calls + number : 0;
    memory->fail_sticky = is_sticky;
    (void)pthread_mutex_unlock(&state->mutex);
    return failed;
}

/* Frees what was left, so that the sanitizer does not say the same again. */
static void drop_live(struct det_test_memory *memory, char *sizes, size_t capacity)
{
    struct state *state = memory->internal;
    size_t at = 0;

    sizes[0] = '\0';
    for (struct det_list *node = state->live.next, *next; node != &state->live; node = next) {
        struct block *block = DET_CONTAINER(node, struct block, list);

        next = node->next;
        if (capacity - at > 24)
            at += (size_t)snprintf(sizes + at, capacity - at, " %zu", block->size);
        remove_block(memory, block);
    }
}

void det_test_memory_deinit(struct det_test_memory *memory)
{
    struct state *state = memory->internal;
    uint64_t blocks = memory->live_blocks;
    char sizes[160];

    drop_live(memory, sizes, sizeof sizes);
    (void)pthread_mutex_destroy(&state->mutex);
    free(state);
    memory->internal = NULL;
    if (blocks > 0)
        fail_msg("%llu blocks were not freed, of sizes%s", (unsigned long long)blocks, sizes);
}

/* One run; whether it met the failure it was given. */
static bool run_failing(
    det_test_scenario *scenario, void *argument, uint64_t fail_at, bool fail_sticky)
{
    struct det_test_memory memory;
    bool failed;
    int r;

    det_test_memory_init(&memory);
    memory.fail_at = fail_at;
    memory.fail_sticky = fail_sticky;
    r = scenario(&memory, argument);
    failed = memory.failed;
    if (r != 0 && !(failed && r == DET_ERR_NO_MEMORY))
        fail_msg(
            "failing call %llu%s: the result is %s (%d)", (unsigned long long)fail_at,
            fail_sticky ? " and all after it" : "", det_error_name(r), r);
    det_test_memory_deinit(&memory);
    return failed;
}

void det_test_some_failures(det_test_scenario *scenario, void *argument, uint64_t step)
{
    uint64_t fail_at = 1;

    (void)run_failing(scenario, argument, 0, false);
    while (run_failing(scenario, argument, fail_at, false)) {
        (void)run_failing(scenario, argument, fail_at, true);
        fail_at += step;
        if (fail_at > FAILURE_MAX)
            fail_msg("the scenario still allocates after %d failures", FAILURE_MAX);
    }
    print_message("             failure points up to %llu\n", (unsigned long long)fail_at);
}

void det_test_each_failure(det_test_scenario *scenario, void *argument)
{
    det_test_some_failures(scenario, argument, 1);
}
