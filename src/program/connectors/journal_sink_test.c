/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* journal_sink_test.c - rows in a stream of a journal, exactly once. */
#include "connectors/sink_harness_test.h"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = det_test_folder();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    det_test_folder_remove(folder);
    return 0;
}

static const char *settings_for(const char *more)
{
    static char settings[600];

    (void)snprintf(settings, sizeof settings, "{path: %s/log%s}", folder, more);
    return settings;
}

static void deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    if (sink_deliver(sink, id, &reading) < 0)
        fail_msg("%s", sink->base.failure.text);
}

/* The ids of the rows of a stream, in order. */
static void assert_ids(const char *stream, const char *expected)
{
    struct det_journal_reader_options wanted = { .one_stream = true };
    struct det_journal *journal = NULL;
    struct det_journal_reader *reader = NULL;
    struct det_journal_row row;
    struct det_error error;
    char url[300], found[300] = "";

    (void)snprintf(url, sizeof url, "file:%s/log", folder);
    if (det_journal_open(url, NULL, &journal, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(det_journal_stream(journal, stream, &wanted.stream, &error), 0);
    assert_int_equal(det_journal_reader_open(journal, &wanted, &reader, &error), 0);
    while (det_journal_reader_next(reader, &row, &error) > 0) {
        struct reading reading;

        if (det_record_from_json(reading_record(), row.data, row.size, 0, &reading, &error) < 0)
            fail_msg("%s", error.text);
        (void)snprintf(
            found + strlen(found), sizeof found - strlen(found), "%llu ",
            (unsigned long long)reading.id);
    }
    det_journal_reader_close(reader);
    det_journal_close(journal);
    assert_string_equal(found, expected);
}

static void rows_are_in_the_stream_once(void **state)
{
    struct sink_harness sink;

    (void)state;
    sink_open(&sink, &journal_sink, reading_record, settings_for(", stream: warm"));
    deliver(&sink, 1);
    deliver(&sink, 2);
    assert_int_equal(sink_flush_only(&sink), 0);
    sink_crash(&sink);
    deliver(&sink, 1);
    deliver(&sink, 2);
    deliver(&sink, 3);
    assert_int_equal(sink_flush(&sink), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink.base.call.run++;
    sink_crash(&sink);
    deliver(&sink, 3);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_ids("warm", "1 2 3 3 ");
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&journal_sink, reading_record, "{}", "path");
    sink_refuses(&journal_sink, reading_record, "{path: a, format: xml}", "use json or record");
    sink_refuses(&journal_sink, reading_record, "{path: a, durability: x}", "use disk or os");
}

static int write_journal(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    sink_init(&sink, &journal_sink, reading_record, settings_for(", durability: os"));
    sink.base.call.allocator = &memory->allocator;
    sink.base.call.run = memory->fail_at + 1;
    r = sink_start(&sink);
    for (uint64_t i = 1; i < 5 && r == 0; i++) {
        struct reading reading = reading_of(i);

        r = sink_deliver(&sink, i, &reading);
    }
    if (r == 0)
        r = sink_flush(&sink);
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(write_journal, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(rows_are_in_the_stream_once),
        TEST(settings_are_checked),
        TEST(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
