/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* buffer_test.c - appending, formatting, limits and the error that sticks. */
#include <wchar.h>

#include "base/buffer.h"
#include "lib/test.h"

struct fixture {
    struct det_test_memory memory;
    struct det_buffer buffer;
};

static int setup(void **state)
{
    static struct fixture fixture;

    det_test_memory_init(&fixture.memory);
    det_buffer_init(&fixture.buffer, &fixture.memory.allocator);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_buffer_deinit(&fixture->buffer);
    det_test_memory_deinit(&fixture->memory);
    return 0;
}

static void an_empty_buffer_is_an_empty_string(void **state)
{
    struct fixture *fixture = *state;

    assert_string_equal(det_buffer_text(&fixture->buffer), "");
    assert_int_equal(det_buffer_status(&fixture->buffer), 0);
    assert_int_equal(fixture->memory.calls, 0);
    det_buffer_clear(&fixture->buffer);
    assert_string_equal(det_buffer_text(&fixture->buffer), "");
}

static void appended_pieces_stand_in_order(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append(buffer, "abc", 2);
    det_buffer_append(buffer, NULL, 0);
    det_buffer_append_char(buffer, '-');
    det_buffer_append_text(buffer, "text");
    det_buffer_format(buffer, " %d %s", 42, "more");
    assert_string_equal(det_buffer_text(buffer), "ab-text 42 more");
    assert_int_equal(buffer->size, 15);
    assert_int_equal(det_buffer_status(buffer), 0);
}

static void bytes_may_be_zero(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append(buffer, "a\0b", 3);
    assert_int_equal(buffer->size, 3);
    assert_memory_equal(buffer->data, "a\0b", 4);
}

static void format_longer_than_the_capacity_grows_the_buffer(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append_text(buffer, "<");
    det_buffer_format(buffer, "%0500d>", 7);
    assert_int_equal(buffer->size, 502);
    assert_int_equal(strlen(det_buffer_text(buffer)), 502);
    assert_string_equal(det_buffer_text(buffer) + 498, "007>");
}

static void extension_is_zeroed_and_counted(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;
    const unsigned char zeroes[100] = { 0 };
    char *room;

    assert_non_null(det_buffer_extend(buffer, 0));
    det_buffer_append_text(buffer, "head");
    room = det_buffer_extend(buffer, 100);
    assert_ptr_equal(room, buffer->data + 4);
    assert_memory_equal(room, zeroes, 100);
    assert_int_equal(buffer->size, 104);
}

static void clearing_keeps_the_memory_and_forgets_the_error(void **state)
{
    struct fixture *fixture = *state;
    struct det_buffer *buffer = &fixture->buffer;
    uint64_t calls;

    det_buffer_append_text(buffer, "some text");
    calls = fixture->memory.calls;
    buffer->limit = 10;
    det_buffer_append_text(buffer, "too much");
    assert_int_equal(det_buffer_status(buffer), DET_ERR_LIMIT);
    det_buffer_clear(buffer);
    assert_string_equal(det_buffer_text(buffer), "");
    det_buffer_append_text(buffer, "ten bytes!");
    assert_int_equal(det_buffer_status(buffer), 0);
    assert_int_equal(fixture->memory.calls, calls);
}

static void the_limit_is_exact_and_its_error_sticks(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    buffer->limit = 100;
    det_buffer_format(buffer, "%099d", 1);
    det_buffer_append_char(buffer, 'x');
    assert_int_equal(det_buffer_status(buffer), 0);
    assert_int_equal(buffer->size, 100);
    assert_int_equal(buffer->capacity, 101);
    det_buffer_append_char(buffer, 'y');
    assert_int_equal(det_buffer_status(buffer), DET_ERR_LIMIT);
    det_buffer_append(buffer, "", 0);
    det_buffer_format(buffer, "%s", "z");
    assert_null(det_buffer_extend(buffer, 0));
    assert_int_equal(buffer->size, 100);
    assert_string_equal(det_buffer_text(buffer) + 98, "1x");
}

static void a_format_past_the_limit_leaves_no_trace(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append_text(buffer, "abc");
    /* The block has room, but the limit is reached. */
    buffer->limit = 5;
    det_buffer_format(buffer, "%s", "def");
    assert_int_equal(det_buffer_status(buffer), DET_ERR_LIMIT);
    assert_string_equal(det_buffer_text(buffer), "abc");
}

static void format_error_is_a_limit_error(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append_text(buffer, "abc");
    /* The C locale has no bytes for this character. */
    det_buffer_format(buffer, "%lc", (wint_t)0x20AC);
    assert_int_equal(det_buffer_status(buffer), DET_ERR_LIMIT);
    assert_string_equal(det_buffer_text(buffer), "abc");
}

static void a_size_that_does_not_fit_is_an_error(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append_text(buffer, "abc");
    assert_null(det_buffer_extend(buffer, SIZE_MAX - 2));
    assert_int_equal(det_buffer_status(buffer), DET_ERR_NO_MEMORY);
    det_buffer_clear(buffer);
    assert_null(det_buffer_extend(buffer, SIZE_MAX));
    assert_int_equal(det_buffer_status(buffer), DET_ERR_NO_MEMORY);
    det_buffer_clear(buffer);
    buffer->limit = 1000;
    assert_null(det_buffer_extend(buffer, SIZE_MAX));
    assert_int_equal(det_buffer_status(buffer), DET_ERR_LIMIT);
}

static void size_too_large_to_double_is_requested_exactly(void **state)
{
    struct fixture *fixture = *state;

    /* The allocator refuses, as any would. */
    fixture->memory.fail_at = 1;
    assert_null(det_buffer_extend(&fixture->buffer, SIZE_MAX / 2 + 10));
    assert_true(fixture->memory.failed);
    assert_int_equal(det_buffer_status(&fixture->buffer), DET_ERR_NO_MEMORY);
    assert_string_equal(det_buffer_text(&fixture->buffer), "");
}

static int write_much(struct det_test_memory *memory, void *argument)
{
    struct det_buffer buffer;
    int r;

    (void)argument;
    det_buffer_init(&buffer, &memory->allocator);
    for (int i = 0; i < 200; i++) {
        det_buffer_append_text(&buffer, "line ");
        det_buffer_format(&buffer, "%d\n", i);
    }
    r = det_buffer_status(&buffer);
    /* The text written before the failure is complete. */
    assert_int_equal(strlen(det_buffer_text(&buffer)), buffer.size);
    assert_true(r == 0 ? buffer.size == 200 * 6 + 490 : buffer.size < 200 * 6 + 490);
    det_buffer_deinit(&buffer);
    return r;
}

static void every_failure_sticks(void **state)
{
    (void)state;
    det_test_each_failure(write_much, NULL);
}

static void drop_removes_bytes_from_the_front(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_drop(buffer, 0);
    det_buffer_append_text(buffer, "abcdef");
    det_buffer_drop(buffer, 0);
    det_buffer_drop(buffer, 4);
    assert_string_equal(det_buffer_text(buffer), "ef");
    assert_int_equal(buffer->size, 2);
    det_buffer_append_text(buffer, "g");
    assert_string_equal(det_buffer_text(buffer), "efg");
    det_buffer_drop(buffer, 3);
    assert_string_equal(det_buffer_text(buffer), "");
    assert_int_equal(buffer->size, 0);
}

static void append_to_a_broken_buffer(void *argument)
{
    struct det_buffer *buffer = argument;

    det_buffer_append_char(buffer, 'x');
}

static void a_lost_final_zero_is_an_assertion(void **state)
{
    struct det_buffer *buffer = &((struct fixture *)*state)->buffer;

    det_buffer_append_text(buffer, "abc");
    buffer->data[3] = 'd';
    assert_true(det_test_aborts(append_to_a_broken_buffer, buffer, "data[buffer->size]"));
    buffer->data[3] = '\0';
}

int main(void)
{
#define BUFFER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        BUFFER_TEST(an_empty_buffer_is_an_empty_string),
        BUFFER_TEST(appended_pieces_stand_in_order),
        BUFFER_TEST(bytes_may_be_zero),
        BUFFER_TEST(format_longer_than_the_capacity_grows_the_buffer),
        BUFFER_TEST(extension_is_zeroed_and_counted),
        BUFFER_TEST(clearing_keeps_the_memory_and_forgets_the_error),
        BUFFER_TEST(drop_removes_bytes_from_the_front),
        BUFFER_TEST(the_limit_is_exact_and_its_error_sticks),
        BUFFER_TEST(a_format_past_the_limit_leaves_no_trace),
        BUFFER_TEST(format_error_is_a_limit_error),
        BUFFER_TEST(a_size_that_does_not_fit_is_an_error),
        BUFFER_TEST(size_too_large_to_double_is_requested_exactly),
        cmocka_unit_test(every_failure_sticks),
        BUFFER_TEST(a_lost_final_zero_is_an_assertion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
