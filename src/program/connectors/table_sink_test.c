/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* table_sink_test.c - what sinks write to standard output: rows, one row for each key, and a reader
 * that does not read. */
#include <fcntl.h>
#include <signal.h>

#include "connectors/sink_harness_test.h"

static char *folder;
static int own_output = -1;

/* Standard output is a descriptor until redirect_back(). */
static void redirect(int descriptor)
{
    (void)fflush(stdout);
    own_output = dup(STDOUT_FILENO);
    assert_true(own_output >= 0);
    assert_int_equal(dup2(descriptor, STDOUT_FILENO), STDOUT_FILENO);
}

static void redirect_back(void)
{
    assert_int_equal(dup2(own_output, STDOUT_FILENO), STDOUT_FILENO);
    (void)close(own_output);
}

static void deliver(struct sink_harness *sink, uint64_t id, double celsius)
{
    struct reading reading = reading_of(id);

    reading.celsius = celsius;
    assert_int_equal(sink_deliver(sink, id, &reading), 0);
}

/* Three rows of two sensors, in two batches. */
static void assert_printed(
    const struct det_connector *connector, const char *settings, const char *expected)
{
    struct sink_harness sink;
    char path[300], *content;
    int file;

    (void)snprintf(path, sizeof path, "%s/out", folder);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    redirect(file);
    sink_open(&sink, connector, reading_record, settings);
    deliver(&sink, 1, 20);
    deliver(&sink, 2, 21.5);
    assert_int_equal(sink_flush(&sink), 0);
    deliver(&sink, 11, 100);
    assert_int_equal(sink_flush(&sink), 0);
    if (connector->functions.drain)
        assert_int_equal(connector->functions.drain(&sink.base.call), 0);
    sink_close(&sink);
    redirect_back();
    (void)close(file);
    content = det_test_read_file(path, NULL);
    assert_string_equal(content, expected);
    free(content);
}

static void rows_are_appended(void **state)
{
    (void)state;
    assert_printed(
        &table_sink, "{columns: [sensor, celsius]}",
        "sensor  celsius\n"
        "s1           20\n"
        "s2         21.5\n"
        "s1          100\n");
    assert_printed(
        &csv_sink, "{path: '-', delimiter: tab}",
        "id\tsensor\tcelsius\tnote\tat\tmood\tis_valid\n"
        "1\ts1\t20\t\t2023-11-14T22:13:20Z\thot\ttrue\n"
        "2\ts2\t21.5\t\t2023-11-14T22:13:20Z\thot\ttrue\n"
        "11\ts1\t100\t\t2023-11-14T22:13:20Z\thot\ttrue\n");
}

static void a_key_has_one_row(void **state)
{
    (void)state;
    assert_printed(
        &table_sink, "{columns: [sensor, celsius], key: sensor}",
        "sensor  celsius\n"
        "s1          100\n"
        "s2         21.5\n");
    assert_printed(
        &table_sink, "{columns: [sensor, celsius], key: sensor, rows: 1}",
        "sensor  celsius\n"
        "s1          100\n");
}

static void a_reader_that_does_not_read_does_not_block_a_cancel(void **state)
{
    struct sink_harness sink;
    int ends[2], r = 0;

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    sink_open(&sink, &table_sink, reading_record, "{}");
    redirect(ends[1]);
    atomic_store(&sink.base.is_cancelled, true);
    for (uint64_t id = 1; id < 100000 && r == 0; id++) {
        deliver(&sink, id, 1);
        if (id % 100 == 0)
            r = sink_flush(&sink);
    }
    redirect_back();
    assert_int_equal(r, DET_ERR_CANCELLED);
    sink_close(&sink);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void a_reader_that_has_gone_fails_the_stage(void **state)
{
    struct sink_harness sink;
    int ends[2], r;

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)close(ends[0]);
    sink_open(&sink, &jsonl_sink, reading_record, "{path: '-'}");
    deliver(&sink, 1, 1);
    redirect(ends[1]);
    r = sink_flush(&sink);
    redirect_back();
    (void)close(ends[1]);
    assert_int_equal(r, DET_ERR_CLOSED);
    assert_non_null(strstr(sink.base.failure.text, "standard output"));
    sink_close(&sink);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&table_sink, reading_record, "{columns: [idd]}", "unknown field 'idd'");
    sink_refuses(&table_sink, reading_record, "{key: idd}", "unknown field 'idd'");
    sink_refuses(&table_sink, reading_record, "{width: 2}", "the smallest width is 8");
    sink_refuses(&table_sink, reading_record, "{rows: 5000}", "at most 1000");
    sink_refuses(&null_sink, reading_record, "{rows: 5}", "rows");
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_appended),
        cmocka_unit_test(a_key_has_one_row),
        cmocka_unit_test(a_reader_that_does_not_read_does_not_block_a_cancel),
        cmocka_unit_test(a_reader_that_has_gone_fails_the_stage),
        cmocka_unit_test(settings_are_checked),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
