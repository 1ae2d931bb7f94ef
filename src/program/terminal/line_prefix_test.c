/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_prefix_test.c - lines of tasks with their names. */
#include "terminal/output_test.h"

#include "terminal/line_prefix.h"

#define AT ((det_time)1769853600 * DET_SECOND + 250 * DET_MILLISECOND + 7)

static struct det_line line_of(const char *name, const char *text)
{
    return (struct det_line){ .name = name, .text = text, .size = strlen(text) };
}

static void print_line(struct prefix *prefix, const char *name, const char *text)
{
    struct det_line line = line_of(name, text);

    prefix_line(prefix, &line, AT);
}

static void open_output(struct caught *caught, struct prefix *prefix, bool has_times)
{
    catch_output(caught);
    prefix_init(prefix, &caught->cli, has_times);
}

static void task_names_are_aligned_in_a_column(void **state)
{
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    prefix_learn(&prefix, "database");
    print_line(&prefix, "web", "hello");
    print_line(&prefix, "database", "");
    print_line(&prefix, "much-longer", "x");
    print_line(&prefix, "web", "y");
    expect_output(&caught, "web      | hello\ndatabase | \nmuch-longer | x\nweb         | y\n");
}

static void very_long_name_does_not_widen_the_column(void **state)
{
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    print_line(&prefix, "a-name-of-more-than-thirty-two-letters", "x");
    print_line(&prefix, "b", "y");
    expect_output(
        &caught, "a-name-of-more-than-thirty-two-letters | x\n"
                 "b                                | y\n");
}

static void column_width_counts_characters_not_bytes(void **state)
{
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    prefix_learn(&prefix, "abcd");
    print_line(&prefix, "\xC3\xBC", "x");
    expect_output(&caught, "\xC3\xBC    | x\n");
}

static void mark_shows_the_source_of_the_line(void **state)
{
    struct det_line line = line_of("web", "oh");
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    line.stream = DET_STREAM_ERROR;
    prefix_line(&prefix, &line, AT);
    line.is_cut = true;
    line.dropped = 12;
    prefix_line(&prefix, &line, AT);
    prefix_note(&prefix, "web", AT, "started, attempt %d\x1b", 2);
    expect_output(
        &caught, "web ! oh\n"
                 "web = 12 bytes of output were dropped: it wrote too fast\n"
                 "web ! oh\\\n"
                 "web = started, attempt 2\\x1b\n");
}

static void times_have_equal_width(void **state)
{
    struct det_line line = line_of("w", "x");
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, true);
    prefix_line(&prefix, &line, AT);
    prefix_line(&prefix, &line, AT - 250 * DET_MILLISECOND);
    prefix_line(&prefix, &line, -1);
    prefix_note(&prefix, "w", 0, "y");
    expect_output(
        &caught, "2026-01-31T10:00:00.250Z w | x\n"
                 "2026-01-31T10:00:00.000Z w | x\n"
                 "1969-12-31T23:59:59.999Z w | x\n"
                 "1970-01-01T00:00:00.000Z w = y\n");
}

static void terminal_control_characters_are_escaped(void **state)
{
    struct det_line line = { .name = "w", .text = "a\0b\xff", .size = 4 };
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    prefix_line(&prefix, &line, AT);
    print_line(&prefix, "w", "\033]0;title\a\033[2J\ttab\rback\xE2\x80\xA8");
    print_line(&prefix, "w\033[2J", "\033");
    expect_output(
        &caught, "w | a\\x00b\\xff\n"
                 "w | \\x1b]0;title\\x07\\x1b[2J\ttab\\x0dback\\u{2028}\n"
                 "w\\x1b[2J | \\x1b\n");
}

static void task_colors_are_removed_without_color_output(void **state)
{
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    print_line(&prefix, "w", "\033[1;31mred\033[0m and \033[38:5:200mpink\033[m");
    print_line(&prefix, "w", "\033[31");
    print_line(&prefix, "w", "\033[31K");
    print_line(&prefix, "w", "\033[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m");
    expect_output(
        &caught, "w | red and pink\n"
                 "w | \\x1b[31\n"
                 "w | \\x1b[31K\n"
                 "w | \\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1m\n");
}

static void colors_of_tasks_are_kept_and_end_with_the_line(void **state)
{
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, false);
    caught.cli.out_has_color = true;
    print_line(&prefix, "w", "\033[31mred\033[2J");
    print_line(&prefix, "w", "plain");
    fclose(caught.cli.out);
    assert_non_null(strstr(caught.text, "\033[31mred\\x1b[2J\033[0m\n"));
    assert_non_null(strstr(caught.text, " plain\n"));
    free(caught.text);
}

/* Returns the color sequence before the name. */
static void color_before(const char *name, enum det_stream stream, char *target, size_t size)
{
    struct det_line line = line_of(name, "x");
    struct caught caught;
    struct prefix prefix;

    open_output(&caught, &prefix, false);
    caught.cli.out_has_color = true;
    line.stream = stream;
    prefix_line(&prefix, &line, AT);
    fclose(caught.cli.out);
    assert_true(strlen(caught.text) < size);
    memcpy(target, caught.text, strlen(caught.text) + 1);
    free(caught.text);
}

static void a_name_has_always_the_same_color(void **state)
{
    static const char *const names[] = { "web", "api", "database", "cache", "worker", "mail" };
    char first[128], second[128];
    size_t different = 0;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        color_before(names[i], DET_STREAM_OUTPUT, first, sizeof first);
        color_before(names[i], DET_STREAM_OUTPUT, second, sizeof second);
        assert_string_equal(first, second);
        color_before(names[(i + 1) % 6], DET_STREAM_OUTPUT, second, sizeof second);
        different += strncmp(first, second, 5) != 0;
    }
    assert_true(different >= 3);
    color_before("web", DET_STREAM_ERROR, first, sizeof first);
    assert_non_null(strstr(first, "\033[31m!\033[0m x\n"));
}

static void lines_are_objects_in_json(void **state)
{
    struct det_line line = { .name = "w", .text = "a\0\xff", .size = 3, .is_cut = true };
    struct caught caught;
    struct prefix prefix;

    (void)state;
    open_output(&caught, &prefix, true);
    caught.cli.is_json = true;
    print_line(&prefix, "w", "\033[31mx");
    line.stream = DET_STREAM_ERROR;
    line.dropped = 5;
    prefix_line(&prefix, &line, AT);
    prefix_note(&prefix, "w", AT, "started");
    prefix_flush(&prefix);
    expect_output(
        &caught, "{\"kind\":\"line\",\"at\":\"2026-01-31T10:00:00.250Z\",\"name\":\"w\",\"stream\":"
                 "\"output\",\"text\":\"\\u001b[31mx\",\"cut\":false}\n"
                 "{\"kind\":\"line\",\"at\":\"2026-01-31T10:00:00.250Z\",\"name\":\"w\",\"stream\":"
                 "\"error\",\"text\":\"a\\\\x00\\\\xff\",\"cut\":true,\"dropped\":5}\n"
                 "{\"kind\":\"note\",\"at\":\"2026-01-31T10:00:00.250Z\",\"name\":\"w\",\"text\":"
                 "\"started\"}\n");
}

static int print_some(struct det_test_memory *memory, void *argument)
{
    struct caught caught;
    struct prefix prefix;
    bool has_failed;

    (void)argument;
    open_output(&caught, &prefix, true);
    caught.cli.allocator = &memory->allocator;
    print_line(&prefix, "web", "\033[31mred and more text than a small buffer has room for, twice");
    prefix_note(&prefix, "web", AT, "started");
    fclose(caught.cli.out);
    has_failed = caught.cli.has_failed;
    /* A line is written whole or not at all. */
    assert_true(caught.size == 0 || caught.text[caught.size - 1] == '\n');
    free(caught.text);
    return has_failed ? DET_ERR_NO_MEMORY : 0;
}

static void a_line_is_written_whole_or_not_at_all(void **state)
{
    (void)state;
    det_test_each_failure(print_some, NULL);
}

static void write_error_is_recorded(void **state)
{
    struct cli cli = { .world = det_world_real(), .out = fopen("/dev/full", "w") };
    struct prefix prefix;

    (void)state;
    assert_non_null(cli.out);
    prefix_init(&prefix, &cli, false);
    print_line(&prefix, "w", "x");
    prefix_flush(&prefix);
    assert_int_not_equal(cli.out_error, 0);
    fclose(cli.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task_names_are_aligned_in_a_column),
        cmocka_unit_test(very_long_name_does_not_widen_the_column),
        cmocka_unit_test(column_width_counts_characters_not_bytes),
        cmocka_unit_test(mark_shows_the_source_of_the_line),
        cmocka_unit_test(times_have_equal_width),
        cmocka_unit_test(terminal_control_characters_are_escaped),
        cmocka_unit_test(task_colors_are_removed_without_color_output),
        cmocka_unit_test(colors_of_tasks_are_kept_and_end_with_the_line),
        cmocka_unit_test(a_name_has_always_the_same_color),
        cmocka_unit_test(lines_are_objects_in_json),
        cmocka_unit_test(a_line_is_written_whole_or_not_at_all),
        cmocka_unit_test(write_error_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
