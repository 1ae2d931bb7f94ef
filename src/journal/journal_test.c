/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_test.c - a journal in memory: watchers, retention, options that are refused, memory that
 * is short. tests/journal has the contract of all drivers. */
#include <detent/driver/loop.h>
#include <detent/journal.h>

#include "lib/test.h"

static struct det_journal *open_memory(const struct det_journal_options *options)
{
    struct det_journal *journal;

    assert_int_equal(0, det_journal_open("memory:", options, &journal, NULL));
    return journal;
}

static uint64_t append_text(struct det_journal *journal, uint16_t stream, const char *text)
{
    struct det_journal_row row = {
        .data = text,
        .size = (uint32_t)strlen(text),
        .stream = stream,
    };
    uint64_t at;

    assert_int_equal(0, det_journal_append(journal, &row, 1, &at, NULL));
    return at;
}

static void assert_row(const struct det_journal_row *row, uint64_t position, const char *text)
{
    assert_int_equal(position, row->position);
    assert_int_equal(strlen(text), row->size);
    assert_memory_equal(text, row->data, row->size);
}

static void urls_and_options_that_are_not_valid_are_refused(void **state)
{
    struct det_journal_options options = { .is_read_only = true };
    struct det_journal *journal;
    struct det_error error;

    (void)state;
    assert_int_equal(DET_ERR_UNSUPPORTED, det_journal_open("x:", NULL, &journal, &error));
    assert_int_equal(DET_ERR_UNSUPPORTED, det_journal_open("memory", NULL, &journal, &error));
    assert_int_equal(DET_ERR_INVALID, det_journal_open("memory:x", NULL, &journal, &error));
    assert_int_equal(DET_ERR_NOT_FOUND, det_journal_open("memory:", &options, &journal, &error));
    options = (struct det_journal_options){ .segment_size = 100 };
    assert_int_equal(DET_ERR_INVALID, det_journal_open("memory:", &options, &journal, &error));
    options = (struct det_journal_options){ .buffer_size = 100 };
    assert_int_equal(DET_ERR_INVALID, det_journal_open("memory:", &options, &journal, &error));
    options = (struct det_journal_options){ .reserved = { 0, 1 } };
    assert_int_equal(DET_ERR_VERSION, det_journal_open("memory:", &options, &journal, &error));
}

static void count_call(void *argument)
{
    ++*(int *)argument;
}

static void watcher_hears_of_several_appends_once(void **state)
{
    struct det_journal *journal = open_memory(NULL);
    struct det_loop *loop;
    int calls = 0;
    struct det_journal_watcher watcher = { .run = count_call, .argument = &calls };

    (void)state;
    assert_int_equal(0, det_loop_open(NULL, NULL, &loop));
    watcher.loop = loop;
    assert_int_equal(0, det_journal_watch(journal, &watcher));
    append_text(journal, 0, "a");
    append_text(journal, 0, "b");
    assert_int_equal(1, det_loop_turn(loop, 0));
    assert_int_equal(0, det_loop_turn(loop, 0));
    assert_int_equal(1, calls);
    append_text(journal, 0, "c");
    det_journal_unwatch(journal, &watcher); /* with a message under way */
    det_journal_unwatch(journal, &watcher);
    append_text(journal, 0, "d");
    det_journal_close(journal);
    (void)det_loop_turn(loop, 0);
    assert_int_equal(1, calls);
    det_loop_close(loop);
}

static void released_rows_are_dropped_and_a_reader_is_told(void **state)
{
    struct det_journal *journal = open_memory(NULL);
    struct det_journal_reader *reader, *late;
    struct det_journal_row row;
    struct det_error error;
    uint64_t begin;

    (void)state;
    for (int i = 0; i < 2000; i++)
        append_text(journal, 0, "some text that fills the chunks");
    assert_int_equal(0, det_journal_reader_open(journal, NULL, &reader, NULL));
    assert_int_equal(1, det_journal_reader_next(reader, &row, NULL));
    assert_int_equal(DET_ERR_RANGE, det_journal_release(journal, 2002));
    assert_int_equal(0, det_journal_release(journal, 1500));
    begin = det_journal_begin(journal);
    assert_true(begin > 1 && begin <= 1500);
    assert_row(&row, 1, "some text that fills the chunks");
    while (det_journal_reader_next(reader, &row, &error) == 1)
        ;
    assert_int_equal(DET_ERR_RANGE, det_journal_reader_next(reader, &row, &error));
    assert_int_equal(
        DET_ERR_RANGE,
        det_journal_reader_open(
            journal, &(struct det_journal_reader_options){ .from = 1 }, &late, &error));
    assert_int_equal(0, det_journal_reader_open(journal, NULL, &late, &error));
    assert_int_equal(1, det_journal_reader_next(late, &row, &error));
    assert_int_equal(begin, row.position);
    det_journal_reader_close(late);
    det_journal_reader_close(reader);
    det_journal_close(journal);
}

static void retain_size_bounds_a_journal_in_memory(void **state)
{
    struct det_journal *journal =
        open_memory(&(struct det_journal_options){ .retain_size = 65536 });
    struct det_journal_counts counts;

    (void)state;
    for (int i = 0; i < 200000; i++)
        append_text(journal, 0, "some text that fills the chunks");
    counts = det_journal_counts(journal);
    assert_int_equal(200000, counts.rows);
    assert_true(counts.segment_bytes < 4 * 1048576 && counts.segment_bytes >= 65536);
    assert_true(det_journal_begin(journal) > 100000);
    det_journal_close(journal);
}

static int use_journal(struct det_test_memory *memory, void *argument)
{
    struct det_journal_options options = { .allocator = &memory->allocator };
    struct det_journal_row row = { .data = "text", .size = 4 };
    struct det_journal_reader *reader = NULL;
    struct det_journal *journal;
    uint16_t stream;
    uint64_t end;
    int r;

    (void)argument;
    r = det_journal_open("memory:", &options, &journal, NULL);
    if (r < 0)
        return r;
    r = det_journal_stream(journal, "other", &stream, NULL);
    for (int i = 0; i < 600 && r == 0; i++) {
        end = det_journal_end(journal);
        r = det_journal_append(journal, &row, 1, NULL, NULL);
        assert_int_equal(end + (r == 0), det_journal_end(journal));
    }
    if (r == 0)
        r = det_journal_reader_open(journal, NULL, &reader, NULL);
    while (r == 0 && (r = det_journal_reader_next(reader, &row, NULL)) == 1)
        r = 0;
    det_journal_reader_close(reader);
    det_journal_close(journal);
    return r;
}

static void each_failed_allocation_leaves_the_journal_as_it_was(void **state)
{
    (void)state;
    det_test_each_failure(use_journal, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_and_options_that_are_not_valid_are_refused),
        cmocka_unit_test(watcher_hears_of_several_appends_once),
        cmocka_unit_test(released_rows_are_dropped_and_a_reader_is_told),
        cmocka_unit_test(retain_size_bounds_a_journal_in_memory),
        cmocka_unit_test(each_failed_allocation_leaves_the_journal_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
