/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test_memory_test.c - the allocator of the tests notices what it says it notices. */
#include <pthread.h>

#include "lib/test.h"

#define THREADS 4

static void *resize(struct det_test_memory *memory, void *pointer, size_t old_size, size_t new_size)
{
    return memory->allocator.resize(memory->allocator.context, pointer, old_size, new_size);
}

static void blocks_are_counted(void **state)
{
    struct det_test_memory memory;
    char *first, *second;

    (void)state;
    det_test_memory_init(&memory);
    first = resize(&memory, NULL, 0, 10);
    second = resize(&memory, NULL, 0, 20);
    assert_int_equal(memory.live_blocks, 2);
    assert_int_equal(memory.live_bytes, 30);
    memcpy(first, "012345678", 10);
    first = resize(&memory, first, 10, 5);
    assert_memory_equal(first, "01234", 5);
    assert_int_equal(memory.calls, 2);
    first = resize(&memory, first, 5, 50);
    assert_memory_equal(first, "01234", 5);
    assert_int_equal(memory.calls, 3);
    assert_null(resize(&memory, first, 50, 0));
    assert_null(resize(&memory, second, 20, 0));
    assert_int_equal(memory.live_blocks, 0);
    assert_int_equal(memory.live_bytes, 0);
    /* The moving resize has both blocks for a moment. */
    assert_int_equal(memory.peak_bytes, 20 + 5 + 50);
    det_test_memory_deinit(&memory);
}

static void fresh_bytes_are_poisoned_and_a_resize_moves(void **state)
{
    struct det_test_memory memory;
    unsigned char *block, *moved;
    uintptr_t before;

    (void)state;
    det_test_memory_init(&memory);
    block = resize(&memory, NULL, 0, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(block[i], 0);
    before = (uintptr_t)block;
    moved = resize(&memory, block, 3, 3);
    assert_true((uintptr_t)moved != before);
    assert_null(resize(&memory, moved, 3, 0));
    det_test_memory_deinit(&memory);
}

static void chosen_allocation_fails_once_or_permanently(void **state)
{
    struct det_test_memory memory;
    char *block;

    (void)state;
    det_test_memory_init(&memory);
    memory.fail_at = 2;
    block = resize(&memory, NULL, 0, 1);
    assert_non_null(block);
    assert_false(memory.failed);
    assert_null(resize(&memory, block, 1, 2));
    assert_true(memory.failed);
    block = resize(&memory, block, 1, 2);
    assert_non_null(block);
    memory.fail_at = 4;
    memory.fail_sticky = true;
    assert_null(resize(&memory, block, 2, 3));
    assert_null(resize(&memory, block, 2, 3));
    block = resize(&memory, block, 2, 1);
    assert_non_null(block);
    assert_null(resize(&memory, block, 1, 0));
    det_test_memory_deinit(&memory);
}

static void free_with_a_wrong_size(void *argument)
{
    (void)resize(argument, resize(argument, NULL, 0, 8), 9, 0);
}

static void write_behind_the_end(void *argument)
{
    char *block = resize(argument, NULL, 0, 8);

    block[8] = 'x';
    (void)resize(argument, block, 8, 0);
}

static void free_a_foreign_block(void *argument)
{
    uint64_t foreign[32] = { 0 };

    (void)resize(argument, &foreign[16], 8, 0);
}

static void free_nothing(void *argument)
{
    (void)resize(argument, NULL, 0, 0);
}

static void grow_nothing_of_some_size(void *argument)
{
    (void)resize(argument, NULL, 8, 16);
}

static void leak(void *argument)
{
    struct det_test_memory memory;

    (void)argument;
    det_test_memory_init(&memory);
    (void)resize(&memory, NULL, 0, 8);
    (void)resize(&memory, NULL, 0, 123);
    det_test_memory_deinit(&memory);
}

static void failure_can_be_chosen_relative_to_now(void **state)
{
    struct det_test_memory memory;
    void *first, *second;

    (void)state;
    det_test_memory_init(&memory);
    first = resize(&memory, NULL, 0, 1);
    assert_false(det_test_memory_fail(&memory, 2, false));
    second = resize(&memory, NULL, 0, 1);
    assert_non_null(second);
    assert_null(resize(&memory, NULL, 0, 1));
    assert_true(det_test_memory_fail(&memory, 1, true));
    assert_null(resize(&memory, NULL, 0, 1));
    assert_null(resize(&memory, NULL, 0, 1));
    assert_true(det_test_memory_fail(&memory, 0, false));
    assert_false(det_test_memory_fail(&memory, 0, false));
    (void)resize(&memory, first, 1, 0);
    (void)resize(&memory, second, 1, 0);
    det_test_memory_deinit(&memory);
}

static void misuse_of_the_allocator_aborts(void **state)
{
    struct det_test_memory memory;

    (void)state;
    det_test_memory_init(&memory);
    assert_true(det_test_aborts(free_with_a_wrong_size, &memory, "given 9, real 8"));
    assert_true(det_test_aborts(write_behind_the_end, &memory, "written behind the end"));
    assert_true(det_test_aborts(free_a_foreign_block, &memory, "no live block"));
    assert_true(det_test_aborts(free_nothing, &memory, "no block"));
    assert_true(det_test_aborts(grow_nothing_of_some_size, &memory, "no block"));
    assert_true(det_test_aborts(leak, NULL, "2 blocks were not freed, of sizes 8 123"));
    det_test_memory_deinit(&memory);
}

static void *take_and_give_back(void *argument)
{
    for (size_t size = 1; size < 300; size++) {
        char *block = resize(argument, NULL, 0, size);

        block = resize(argument, block, size, size + 7);
        (void)resize(argument, block, size + 7, 0);
    }
    return NULL;
}

static void test_allocator_is_thread_safe(void **state)
{
    struct det_test_memory memory;
    pthread_t threads[THREADS];

    (void)state;
    det_test_memory_init(&memory);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give_back, &memory), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(memory.calls, THREADS * 299 * 2);
    det_test_memory_deinit(&memory);
}

/* Allocates three times and says which of them it got, as a bit each. */
static int allocate_three(struct det_test_memory *memory, void *argument)
{
    char *runs = argument;
    int r = 0;

    for (size_t i = 0; i < 3; i++) {
        void *block = resize(memory, NULL, 0, 4);

        runs[strlen(runs)] = block != NULL ? 'x' : '-';
        if (block == NULL)
            r = DET_ERR_NO_MEMORY;
        else
            (void)resize(memory, block, 4, 0);
    }
    runs[strlen(runs)] = ' ';
    return r;
}

static void each_failure_loop_fails_every_allocation(void **state)
{
    char runs[64] = { 0 };

    (void)state;
    det_test_each_failure(allocate_three, runs);
    assert_string_equal(runs, "xxx -xx --- x-x x-- xx- xx- xxx ");
}

static int fail_without_a_reason(struct det_test_memory *memory, void *argument)
{
    (void)memory;
    (void)argument;
    return DET_ERR_NO_MEMORY;
}

static int fail_for_another_reason(struct det_test_memory *memory, void *argument)
{
    void *block = resize(memory, NULL, 0, 4);

    (void)argument;
    if (block == NULL)
        return DET_ERR_IO;
    (void)resize(memory, block, 4, 0);
    return 0;
}

static void run_scenario(void *argument)
{
    det_test_scenario *const *scenario = argument;

    det_test_each_failure(*scenario, NULL);
}

static void a_wrong_result_fails_the_test(void **state)
{
    det_test_scenario *unreasoned = fail_without_a_reason, *other = fail_for_another_reason;

    (void)state;
    assert_true(det_test_aborts(run_scenario, &unreasoned, "the result is NO_MEMORY"));
    assert_true(det_test_aborts(run_scenario, &other, "failing call 1: the result is IO"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_counted),
        cmocka_unit_test(fresh_bytes_are_poisoned_and_a_resize_moves),
        cmocka_unit_test(chosen_allocation_fails_once_or_permanently),
        cmocka_unit_test(failure_can_be_chosen_relative_to_now),
        cmocka_unit_test(misuse_of_the_allocator_aborts),
        cmocka_unit_test(test_allocator_is_thread_safe),
        cmocka_unit_test(each_failure_loop_fails_every_allocation),
        cmocka_unit_test(a_wrong_result_fails_the_test),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
