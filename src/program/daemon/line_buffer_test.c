/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_buffer_test.c - the newest lines: which are kept or removed, and how a reader continues. */
#include "daemon/line_buffer.h"

#include "lib/test.h"

static void add(struct up_lines *lines, const char *name, const char *text)
{
    struct det_line line = { .name = name, .text = text, .size = strlen(text), .dropped = 7 };

    up_lines_add(lines, &line, 42);
}

static void add_many(struct up_lines *lines, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char text[16];

        snprintf(text, sizeof text, "%04u", i);
        add(lines, "web", text);
    }
}

static void a_line_is_kept_as_it_was(void **state)
{
    struct det_line wanted = {
        .name = "web",
        .stream = DET_STREAM_ERROR,
        .text = "a\0b",
        .size = 3,
        .is_cut = true,
        .dropped = 9,
    };
    struct up_lines lines;
    const struct up_line *line;

    (void)state;
    up_lines_init(&lines, NULL);
    assert_null(up_lines_after(&lines, 0));
    assert_null(up_lines_previous(&lines, NULL));
    up_lines_add(&lines, &wanted, 1234);
    line = up_lines_after(&lines, 0);
    assert_non_null(line);
    assert_string_equal(line->name, "web");
    assert_int_equal(line->size, 3);
    assert_memory_equal(line->text, "a\0b", 3);
    assert_int_equal(line->stream, DET_STREAM_ERROR);
    assert_true(line->is_cut);
    assert_int_equal(line->dropped, 9);
    assert_int_equal(line->at, 1234);
    assert_int_equal(line->number, 1);
    assert_null(up_lines_next(&lines, line));
    up_lines_deinit(&lines);
}

static void a_line_of_no_bytes_is_a_line(void **state)
{
    struct det_line empty = { .name = "web", .text = NULL, .size = 0 };
    struct up_lines lines;

    (void)state;
    up_lines_init(&lines, NULL);
    up_lines_add(&lines, &empty, 1);
    assert_int_equal(up_lines_after(&lines, 0)->size, 0);
    up_lines_deinit(&lines);
}

static void oldest_lines_are_removed_over_the_count_limit(void **state)
{
    struct up_lines lines;

    (void)state;
    up_lines_init(&lines, NULL);
    lines.lines_max = 10;
    add_many(&lines, 25);
    assert_int_equal(lines.count, 10);
    assert_int_equal(lines.newest, 25);
    assert_int_equal(up_lines_after(&lines, 0)->number, 16);
    assert_string_equal(up_lines_after(&lines, 0)->text, "0016");
    up_lines_deinit(&lines);
}

static void oldest_lines_are_removed_over_the_size_limit(void **state)
{
    char large[101];
    struct up_lines lines;

    (void)state;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    up_lines_init(&lines, NULL);
    lines.bytes_max = 20;
    add_many(&lines, 25);
    assert_int_equal(lines.count, 5);
    assert_int_equal(lines.bytes, 20);
    /* The newest is kept whatever its size. */
    add(&lines, "web", large);
    assert_int_equal(lines.count, 1);
    assert_int_equal(up_lines_after(&lines, 0)->size, 100);
    add(&lines, "web", "x");
    assert_int_equal(lines.count, 1);
    assert_int_equal(lines.bytes, 1);
    up_lines_deinit(&lines);
}

static void line_reader_continues_at_its_position(void **state)
{
    const struct up_line *line;
    struct up_lines lines;

    (void)state;
    up_lines_init(&lines, NULL);
    lines.lines_max = 10;
    add_many(&lines, 25);
    assert_int_equal(up_lines_after(&lines, 3)->number, 16);
    assert_int_equal(up_lines_after(&lines, 15)->number, 16);
    assert_int_equal(up_lines_after(&lines, 16)->number, 17);
    assert_int_equal(up_lines_after(&lines, 24)->number, 25);
    assert_null(up_lines_after(&lines, 25));
    assert_null(up_lines_after(&lines, 99));
    line = up_lines_previous(&lines, NULL);
    assert_int_equal(line->number, 25);
    assert_int_equal(up_lines_previous(&lines, line)->number, 24);
    assert_null(up_lines_previous(&lines, up_lines_after(&lines, 0)));
    assert_int_equal(up_lines_next(&lines, up_lines_after(&lines, 0))->number, 17);
    up_lines_deinit(&lines);
}

static int add_some(struct det_test_memory *memory, void *argument)
{
    struct up_lines lines;
    uint64_t kept = 0;

    (void)argument;
    up_lines_init(&lines, &memory->allocator);
    add_many(&lines, 5);
    /* Lines lost for lack of memory leave a gap in the numbers. */
    for (const struct up_line *line = up_lines_after(&lines, 0); line;
         line = up_lines_next(&lines, line))
        kept++;
    assert_int_equal(kept, lines.count);
    assert_int_equal(lines.newest, 5);
    assert_true(kept == 5 || memory->failed);
    up_lines_deinit(&lines);
    return 0;
}

static void allocation_failure_counts_the_line_as_missed(void **state)
{
    (void)state;
    det_test_each_failure(add_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_kept_as_it_was),
        cmocka_unit_test(a_line_of_no_bytes_is_a_line),
        cmocka_unit_test(oldest_lines_are_removed_over_the_count_limit),
        cmocka_unit_test(oldest_lines_are_removed_over_the_size_limit),
        cmocka_unit_test(line_reader_continues_at_its_position),
        cmocka_unit_test(allocation_failure_counts_the_line_as_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
