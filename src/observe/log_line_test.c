/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* log_line_test.c - lines of the log are one JSON object each, whatever is put into them. */
#include <detent/sim.h>

#include "observe/log_line.h"
#include "observe/metrics_test.h"
#include "record/json.h"

struct fixture {
    struct det_sim *sim;
    struct det_metrics *metrics;
    struct det_logger *log;
    int result;     /* of writing */
    unsigned count; /* number of complete lines */
    char last[DET_LOG_LINE_MAX + 1];
};

/* Fails the test when it is not one line with one JSON object. */
static int take_line(void *user, const char *line, size_t size)
{
    struct det_json_token token = { .kind = DET_JSON_NULL };
    struct fixture *fixture = user;
    struct det_json_scanner json;

    assert_in_range(size, 2, DET_LOG_LINE_MAX);
    assert_ptr_equal(memchr(line, '\n', size), line + size - 1);
    for (size_t i = 0; i < size - 1; i++)
        assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7F);
    det_json_scanner_init(&json, line, size);
    while (token.kind != DET_JSON_END)
        assert_int_equal(det_json_scan(&json, &token, NULL), 0);
    assert_int_equal(line[0], '{');
    memcpy(fixture->last, line, size - 1);
    fixture->last[size - 1] = '\0';
    fixture->count++;
    return fixture->result;
}

static void open_fixture(struct fixture *fixture, enum det_log_level level)
{
    memset(fixture, 0, sizeof *fixture);
    assert_int_equal(det_sim_open(NULL, &fixture->sim, NULL), 0);
    fixture->metrics = metrics_of(NULL);
    assert_int_equal(
        det_logger_open(
            &(struct det_logger_options){ .world = det_sim_world(fixture->sim),
                                          .level = level,
                                          .write = take_line,
                                          .user = fixture,
                                          .metrics = fixture->metrics },
            &fixture->log),
        0);
}

static void close_fixture(struct fixture *fixture)
{
    det_logger_close(fixture->log);
    det_metrics_close(fixture->metrics);
    det_sim_close(fixture->sim);
}

static void a_line_is_an_object_with_its_members_in_order(void **state)
{
    struct det_trace_context context = { .trace_id = { 0x4b, [15] = 0x36 },
                                         .span_id = { [7] = 0xb7 } };
    struct det_log_line line;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_INFO);
    det_log_line_begin(fixture.log, &line, DET_LOG_WARNING, "effect", "attempt %d failed", 3);
    det_log_line_text(&line, "machine", "order");
    det_log_line_text(&line, "task", NULL);
    det_log_line_number(&line, "attempt", INT64_MIN);
    det_log_line_span(&line, "took", 1500 * DET_MILLISECOND);
    det_log_line_span(&line, "late", -1);
    det_log_line_trace(&line, &context);
    det_log_line_trace(&line, NULL);
    det_log_line_end(&line);
    assert_string_equal(
        fixture.last,
        "{\"time\":\"2026-01-01T00:00:00Z\",\"level\":\"warning\",\"component\":\"effect\","
        "\"message\":\"attempt 3 failed\",\"machine\":\"order\",\"attempt\":-9223372036854775808,"
        "\"took\":1.500000000,\"late\":-0.000000001,"
        "\"trace_id\":\"4b000000000000000000000000000036\",\"span_id\":\"00000000000000b7\"}");
    assert_metric(fixture.metrics, "detent_log_dropped_total 0");
    close_fixture(&fixture);
}

static void hostile_text_cannot_break_out_of_a_line(void **state)
{
    struct det_log_line line;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_DEBUG);
    det_log_line_begin(
        fixture.log, &line, DET_LOG_DEBUG, "http", "%s",
        "a\r\n{\"level\":\"error\"}\n\x1b[2J\x7f\xff\xc2\x9b");
    det_log_line_text(&line, "path", "\"},\"level\":\"error\\\t\b");
    det_log_line_end(&line);
    assert_string_equal(
        strstr(fixture.last, "\"message\""),
        "\"message\":\"a\\r\\n{\\\"level\\\":\\\"error\\\"}\\n\\u001b["
        "2J\\u007f\\ufffd\\u009b\","
        "\"path\":\"\\\"},\\\"level\\\":\\\"error\\\\\\t\\b\"}");
    close_fixture(&fixture);
}

static void any_bytes_are_one_line(void **state)
{
    uint64_t seed = 7;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_DEBUG);
    for (unsigned round = 0; round < 2000; round++) {
        struct det_log_line line;
        size_t size = det_test_random(&seed) % 64;
        char text[64] = "";

        for (size_t i = 0; i < size; i++)
            text[i] = (char)det_test_random(&seed);
        text[size] = '\0';
        det_log_line_begin(fixture.log, &line, DET_LOG_DEBUG, "x", "%s", text);
        det_log_line_text(&line, "y", text);
        det_log_line_end(&line);
        assert_int_equal(fixture.count, round + 1);
    }
    close_fixture(&fixture);
}

static void fields_that_do_not_fit_are_omitted_and_marked(void **state)
{
    char longest[DET_LOG_LINE_MAX];
    struct det_log_line line;
    struct fixture fixture;

    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    open_fixture(&fixture, DET_LOG_DEBUG);
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "hello");
    det_log_line_text(&line, "long", longest);
    det_log_line_text(&line, "short", "s");
    det_log_line_end(&line);
    assert_non_null(strstr(fixture.last, "\"message\":\"hello\",\"short\":\"s\",\"is_cut\":true}"));
    /* A message of control characters is six times as long. */
    memset(longest, 1, DET_LOG_MESSAGE_MAX - 1);
    longest[DET_LOG_MESSAGE_MAX - 1] = '\0';
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "%s", longest);
    det_log_line_end(&line);
    assert_non_null(strstr(fixture.last, "\\u0001\",\"is_cut\":true}"));
    memset(longest, 'm', sizeof longest - 1);
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "%s", longest);
    det_log_line_end(&line);
    assert_non_null(strstr(fixture.last, "mmm\",\"is_cut\":true}"));
    assert_int_equal(fixture.count, 3);
    close_fixture(&fixture);
}

/* Lines of every length around the largest that fits. */
static void the_largest_line_is_as_long_as_it_may_be(void **state)
{
    char value[DET_LOG_LINE_MAX];
    size_t most = 0;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_DEBUG);
    for (size_t size = DET_LOG_LINE_MAX - 200; size < DET_LOG_LINE_MAX; size++) {
        struct det_log_line line;

        memset(value, 'v', size);
        value[size] = '\0';
        det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "m");
        det_log_line_text(&line, "v", value);
        det_log_line_end(&line);
        most = strlen(fixture.last) > most ? strlen(fixture.last) : most;
    }
    assert_in_range(most, DET_LOG_LINE_MAX - 20, DET_LOG_LINE_MAX - 1);
    close_fixture(&fixture);
}

static void lines_below_the_level_are_not_formatted(void **state)
{
    struct det_log_line line;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_WARNING);
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "m");
    det_log_line_text(&line, "a", "b");
    det_log_line_number(&line, "a", 1);
    det_log_line_span(&line, "a", 1);
    det_log_line_trace(&line, &(struct det_trace_context){ 0 });
    det_log_line_end(&line);
    assert_int_equal(fixture.count, 0);
    det_log_line_begin(NULL, &line, DET_LOG_ERROR, "x", "m");
    det_log_line_end(&line);
    det_log_line_begin(fixture.log, &line, DET_LOG_WARNING, "x", "m");
    det_log_line_end(&line);
    assert_int_equal(fixture.count, 1);
    assert_string_equal(det_log_level_name(DET_LOG_WARNING), "warning");
    close_fixture(&fixture);
}

static void unwritten_log_line_is_counted(void **state)
{
    struct det_log_line line;
    struct fixture fixture;

    (void)state;
    open_fixture(&fixture, DET_LOG_DEBUG);
    fixture.result = DET_ERR_NO_SPACE;
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "m");
    det_log_line_end(&line);
    det_log_line_end(&line); /* ended already */
    fixture.result = 0;
    det_log_line_begin(fixture.log, &line, DET_LOG_INFO, "x", "m");
    det_log_line_end(&line);
    assert_metric(fixture.metrics, "detent_log_dropped_total 1");
    assert_int_equal(fixture.count, 2);
    close_fixture(&fixture);
}

static int open_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_logger *log = NULL;
    int r = det_logger_open(
        &(struct det_logger_options){ .allocator = &memory->allocator, .write = take_line }, &log);

    (void)argument;
    det_logger_close(log);
    return r;
}

static void opening_without_memory_leaves_nothing(void **state)
{
    (void)state;
    det_test_each_failure(open_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_an_object_with_its_members_in_order),
        cmocka_unit_test(hostile_text_cannot_break_out_of_a_line),
        cmocka_unit_test(any_bytes_are_one_line),
        cmocka_unit_test(fields_that_do_not_fit_are_omitted_and_marked),
        cmocka_unit_test(the_largest_line_is_as_long_as_it_may_be),
        cmocka_unit_test(lines_below_the_level_are_not_formatted),
        cmocka_unit_test(unwritten_log_line_is_counted),
        cmocka_unit_test(opening_without_memory_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
