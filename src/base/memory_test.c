/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memory_test.c - blocks, strings and the default allocator. */
#include "base/memory.h"
#include "lib/test.h"

struct pair {
    int a;
    int b;
};

static void the_default_allocator_grows_shrinks_and_frees(void **state)
{
    const struct det_allocator *heap = det_allocator_default();
    char *block = heap->resize(heap->context, NULL, 0, 4);

    (void)state;
    assert_non_null(block);
    memcpy(block, "abc", 4);
    block = heap->resize(heap->context, block, 4, 4000);
    assert_non_null(block);
    assert_memory_equal(block, "abc", 4);
    block = heap->resize(heap->context, block, 4000, 2);
    assert_non_null(block);
    assert_memory_equal(block, "ab", 2);
    assert_null(heap->resize(heap->context, block, 2, 0));
}

static void null_means_the_default_allocator(void **state)
{
    char *text = det_string_copy(NULL, "kept");

    (void)state;
    assert_string_equal(text, "kept");
    det_free_string(NULL, text);
    det_free_string(NULL, NULL);
    det_free(NULL, NULL, 5);
}

static void new_objects_are_zeroed_and_their_sizes_counted(void **state)
{
    struct det_test_memory memory;
    struct pair *pair, *pairs;

    (void)state;
    det_test_memory_init(&memory);
    pair = DET_NEW(&memory.allocator, struct pair);
    pairs = DET_NEW_ARRAY(&memory.allocator, 3, struct pair);
    assert_int_equal(pair->a, 0);
    assert_int_equal(pair->b, 0);
    assert_int_equal(pairs[2].b, 0);
    assert_int_equal(memory.live_bytes, 4 * sizeof(struct pair));
    DET_DELETE(&memory.allocator, pair);
    DET_DELETE_ARRAY(&memory.allocator, pairs, 3);
    det_test_memory_deinit(&memory);
}

static void array_size_overflow_is_out_of_memory(void **state)
{
    struct det_test_memory memory;

    (void)state;
    det_test_memory_init(&memory);
    assert_null(det_alloc_array(&memory.allocator, SIZE_MAX / 2, 3));
    assert_int_equal(memory.calls, 0);
    det_test_memory_deinit(&memory);
}

static void empty_allocation_returns_a_block(void **state)
{
    struct det_test_memory memory;
    char *empty;
    void *array;

    (void)state;
    det_test_memory_init(&memory);
    empty = det_alloc(&memory.allocator, 0);
    array = det_alloc_array(&memory.allocator, 0, 8);
    assert_non_null(empty);
    assert_non_null(array);
    empty = det_realloc(&memory.allocator, empty, 0, 10);
    assert_non_null(empty);
    empty = det_realloc(&memory.allocator, empty, 10, 0);
    assert_non_null(empty);
    det_free(&memory.allocator, empty, 0);
    det_free(&memory.allocator, array, 0);
    det_test_memory_deinit(&memory);
}

static void a_copy_ends_at_its_length_or_at_the_first_nul(void **state)
{
    struct det_test_memory memory;
    char *whole, *part, *short_part, *none;

    (void)state;
    det_test_memory_init(&memory);
    whole = det_string_copy(&memory.allocator, "abcdef");
    part = det_string_copy_n(&memory.allocator, "abcdef", 3);
    short_part = det_string_copy_n(&memory.allocator, "ab\0cd", 5);
    none = det_string_copy_n(&memory.allocator, NULL, 0);
    assert_string_equal(whole, "abcdef");
    assert_string_equal(part, "abc");
    assert_string_equal(short_part, "ab");
    assert_string_equal(none, "");
    det_free_string(&memory.allocator, whole);
    det_free_string(&memory.allocator, part);
    det_free_string(&memory.allocator, short_part);
    det_free_string(&memory.allocator, none);
    det_test_memory_deinit(&memory);
}

static int grow_a_block(struct det_test_memory *memory, void *argument)
{
    struct det_allocator *allocator = &memory->allocator;
    char *text = det_string_copy(allocator, "grow me");
    char *grown;
    void *zero;

    (void)argument;
    if (text == NULL)
        return DET_ERR_NO_MEMORY;
    grown = det_realloc(allocator, text, 8, 100);
    /* A growth that failed leaves the block as it was. */
    assert_string_equal(grown != NULL ? grown : text, "grow me");
    det_free(allocator, grown != NULL ? grown : text, grown != NULL ? 100 : 8);
    zero = det_alloc_zero(allocator, 5);
    if (grown == NULL || zero == NULL) {
        det_free(allocator, zero, 5);
        return DET_ERR_NO_MEMORY;
    }
    det_free(allocator, zero, 5);
    return 0;
}

static void failed_allocation_changes_nothing(void **state)
{
    (void)state;
    det_test_each_failure(grow_a_block, NULL);
}

static void size_without_a_block(void *argument)
{
    (void)argument;
    det_free(NULL, det_realloc(NULL, NULL, 4, 8), 8);
}

static void a_size_without_a_block_is_an_assertion(void **state)
{
    (void)state;
    assert_true(det_test_aborts(size_without_a_block, NULL, "old_size == 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_allocator_grows_shrinks_and_frees),
        cmocka_unit_test(null_means_the_default_allocator),
        cmocka_unit_test(new_objects_are_zeroed_and_their_sizes_counted),
        cmocka_unit_test(array_size_overflow_is_out_of_memory),
        cmocka_unit_test(empty_allocation_returns_a_block),
        cmocka_unit_test(a_copy_ends_at_its_length_or_at_the_first_nul),
        cmocka_unit_test(failed_allocation_changes_nothing),
        cmocka_unit_test(a_size_without_a_block_is_an_assertion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
