/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arena_test.c - blocks are aligned, zero, apart, counted and freed together. */
#include <wchar.h>

#include "base/arena.h"
#include "lib/test.h"

struct fixture {
    struct det_test_memory memory;
    struct det_arena arena;
};

static int setup(void **state)
{
    static struct fixture fixture;

    det_test_memory_init(&fixture.memory);
    det_arena_init(&fixture.arena, &fixture.memory.allocator);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_arena_deinit(&fixture->arena);
    det_test_memory_deinit(&fixture->memory);
    return 0;
}

static bool is_filled_with(const unsigned char *block, size_t size, unsigned char byte)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i] != byte)
            return false;
    }
    return true;
}

static void blocks_are_aligned_zero_and_apart(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;
    unsigned char *blocks[500];
    uint64_t seed = 9;
    size_t sizes[500];

    for (size_t i = 0; i < 500; i++) {
        sizes[i] = (size_t)(det_test_random(&seed) % (i % 50 == 0 ? 100000 : 200));
        blocks[i] = det_arena_alloc(arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        assert_true(is_filled_with(blocks[i], sizes[i], 0));
        memset(blocks[i], (int)(i % 255 + 1), sizes[i]);
    }
    for (size_t i = 0; i < 500; i++)
        assert_true(is_filled_with(blocks[i], sizes[i], (unsigned char)(i % 255 + 1)));
}

static void small_blocks_share_chunks(void **state)
{
    struct fixture *fixture = *state;

    for (int i = 0; i < 10000; i++)
        assert_non_null(det_arena_alloc(&fixture->arena, 16));
    assert_int_equal(fixture->arena.used, 160000);
    assert_true(fixture->memory.calls <= 11);
}

static void empty_arena_blocks_are_distinct(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;
    void *first = det_arena_alloc(arena, 0);
    void *second = det_arena_alloc(arena, 0);

    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
}

static void texts_are_copied_and_formatted(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;
    const char bytes[] = "ab\0cd";
    char *formatted;

    assert_string_equal(det_arena_copy(arena, "a text"), "a text");
    assert_string_equal(det_arena_copy_n(arena, "a text", 3), "a t");
    assert_string_equal(det_arena_copy_n(arena, NULL, 0), "");
    assert_memory_equal(det_arena_copy_n(arena, bytes, 5), bytes, 6);
    formatted = det_arena_format(arena, "%05000d|%s", 7, "end");
    assert_int_equal(strlen(formatted), 5004);
    assert_string_equal(formatted + 4998, "07|end");
}

static void an_array_is_zero_and_has_room_for_all(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;
    const unsigned char *array = det_arena_array(arena, 7, 9);

    assert_non_null(array);
    assert_true(is_filled_with(array, 63, 0));
    assert_int_equal(arena->used, 64);
}

static void oversized_arena_requests_fail(void **state)
{
    struct fixture *fixture = *state;

    assert_null(det_arena_alloc(&fixture->arena, SIZE_MAX));
    assert_null(det_arena_alloc(&fixture->arena, SIZE_MAX - 40));
    assert_null(det_arena_array(&fixture->arena, SIZE_MAX / 2, 3));
    assert_null(det_arena_copy_n(&fixture->arena, "x", SIZE_MAX));
    assert_int_equal(fixture->memory.calls, 0);
    assert_int_equal(fixture->arena.used, 0);
}

static void format_error_returns_null(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;

    /* The C locale has no bytes for this character. */
    assert_null(det_arena_format(arena, "%lc", (wint_t)0x20AC));
}

static void the_limit_is_exact(void **state)
{
    struct det_arena *arena = &((struct fixture *)*state)->arena;

    arena->limit = 64;
    assert_non_null(det_arena_alloc(arena, 48));
    assert_null(det_arena_alloc(arena, 17));
    assert_non_null(det_arena_alloc(arena, 16));
    assert_null(det_arena_alloc(arena, 1));
    assert_null(det_arena_copy(arena, "x"));
    assert_null(det_arena_format(arena, "%d", 1));
    assert_int_equal(arena->used, 64);
    /* A limit that was lowered below what is used lets nothing through. */
    arena->limit = 32;
    assert_null(det_arena_alloc(arena, 1));
}

static void an_arena_can_be_used_again(void **state)
{
    struct fixture *fixture = *state;

    assert_non_null(det_arena_alloc(&fixture->arena, 5000));
    det_arena_deinit(&fixture->arena);
    assert_int_equal(fixture->arena.used, 0);
    assert_int_equal(fixture->memory.live_blocks, 0);
    assert_non_null(det_arena_alloc(&fixture->arena, 5));
}

static int build_much(struct det_test_memory *memory, void *argument)
{
    struct det_arena arena;
    size_t used = 0;
    int r = 0;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    for (int i = 0; i < 300 && r == 0; i++) {
        if (det_arena_format(&arena, "name %d", i) == NULL ||
            det_arena_array(&arena, 10, 50) == NULL)
            r = DET_ERR_NO_MEMORY;
        assert_true(arena.used > used || r != 0);
        used = arena.used;
    }
    det_arena_deinit(&arena);
    return r;
}

static void every_failure_frees_all(void **state)
{
    (void)state;
    det_test_each_failure(build_much, NULL);
}

int main(void)
{
#define ARENA_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        ARENA_TEST(blocks_are_aligned_zero_and_apart),
        ARENA_TEST(small_blocks_share_chunks),
        ARENA_TEST(empty_arena_blocks_are_distinct),
        ARENA_TEST(texts_are_copied_and_formatted),
        ARENA_TEST(an_array_is_zero_and_has_room_for_all),
        ARENA_TEST(oversized_arena_requests_fail),
        ARENA_TEST(format_error_returns_null),
        ARENA_TEST(the_limit_is_exact),
        ARENA_TEST(an_arena_can_be_used_again),
        cmocka_unit_test(every_failure_frees_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
