/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* event_text_test.c - events as lines, the labels of their enums, and the log. */
#include <detent/bus.h>

#include "lib/test.h"

static const struct det_task_event full = {
    .sequence = 42,
    .at = 1500 * DET_MILLISECOND,
    .id = 7,
    .kind = DET_TASK_EVENT_BACKOFF_SCHEDULED,
    .attempt = 3,
    .delay = 1500 * DET_MILLISECOND,
    .timeout = 2 * DET_SECOND,
    .duration = 20 * DET_MILLISECOND,
    .count = 9,
    .exit_code = -1,
    .has_exit_code = true,
    .signal = 15,
    .outcome = DET_TASK_OUTCOME_FORCE_ABORTED,
    .rejection = DET_REJECTION_QUEUE_FULL,
    .source = DET_BACKOFF_AFTER_SUCCESS,
    .name = "web",
    .reason = "it \"broke\"",
};

static void a_line_for_people_has_what_belongs_to_the_event(void **state)
{
    struct det_task_event event = {
        .sequence = 42,
        .id = 7,
        .kind = DET_TASK_EVENT_ATTEMPT_FAILED,
        .attempt = 3,
        .has_exit_code = true,
        .exit_code = 1,
        .name = "web",
        .reason = "connection refused",
    };
    char line[DET_TASK_EVENT_LINE_MAX];

    (void)state;
    det_task_event_text(&event, line, sizeof line);
    assert_string_equal("[42] attempt_failed web attempt=3 exit_code=1: connection refused", line);
    det_task_event_text(&full, line, sizeof line);
    assert_string_equal(
        "[42] backoff_scheduled web attempt=3 delay=1.5s timeout=2s duration=20ms count=9 "
        "exit_code=-1 signal=15 outcome=force_aborted rejection=queue_full source=success: "
        "it \"broke\"",
        line);
    event = (struct det_task_event){ .sequence = 1, .kind = DET_TASK_EVENT_ALL_STOPPED };
    det_task_event_text(&event, line, sizeof line);
    assert_string_equal("[1] all_stopped", line);
}

static void a_line_of_json_has_what_belongs_to_the_event(void **state)
{
    struct det_task_event event = { .sequence = UINT64_MAX, .kind = DET_TASK_EVENT_ALL_STOPPED };
    char line[DET_TASK_EVENT_LINE_MAX];

    (void)state;
    det_task_event_json(&full, line, sizeof line);
    assert_string_equal(
        "{\"sequence\":42,\"at\":\"1970-01-01T00:00:01.5Z\",\"kind\":\"backoff_scheduled\","
        "\"id\":7,\"name\":\"web\",\"attempt\":3,\"delay_ns\":1500000000,"
        "\"timeout_ns\":2000000000,\"duration_ns\":20000000,\"count\":9,\"exit_code\":-1,"
        "\"signal\":15,\"outcome\":\"force_aborted\",\"rejection\":\"queue_full\","
        "\"source\":\"success\",\"reason\":\"it \\\"broke\\\"\"}",
        line);
    det_task_event_json(&event, line, sizeof line);
    assert_string_equal(
        "{\"sequence\":18446744073709551615,\"at\":\"1970-01-01T00:00:00Z\","
        "\"kind\":\"all_stopped\"}",
        line);
}

static void exit_code_zero_is_printed(void **state)
{
    struct det_task_event event = { .sequence = 1, .has_exit_code = true };
    char line[DET_TASK_EVENT_LINE_MAX];

    (void)state;
    det_task_event_text(&event, line, sizeof line);
    assert_string_equal("[1] attempt_starting exit_code=0", line);
    event.kind = DET_TASK_EVENT_BACKOFF_SCHEDULED;
    event.has_exit_code = false;
    det_task_event_text(&event, line, sizeof line);
    assert_string_equal("[1] backoff_scheduled source=failure", line);
}

static void event_text_escapes_control_characters(void **state)
{
    struct det_task_event event = { .sequence = 1, .kind = DET_TASK_EVENT_TASK_ADDED };
    char line[DET_TASK_EVENT_LINE_MAX];

    (void)state;
    snprintf(event.name, sizeof event.name, "%s", "a\nb");
    snprintf(event.reason, sizeof event.reason, "%s", "\"\033[2J\" \xff ü \\");
    det_task_event_text(&event, line, sizeof line);
    assert_string_equal("[1] task_added a\\nb: \"\\u001b[2J\" \\ufffd ü \\\\", line);
    det_task_event_json(&event, line, sizeof line);
    assert_non_null(strstr(line, "\"name\":\"a\\nb\""));
    assert_non_null(strstr(line, "\"reason\":\"\\\"\\u001b[2J\\\" \\ufffd ü \\\\\""));
}

static void fill_with_the_worst(struct det_task_event *event)
{
    memset(event, 0xff, sizeof *event);
    event->kind = DET_TASK_EVENT_BACKOFF_SCHEDULED;
    event->at = INT64_MAX;
    event->delay = event->timeout = event->duration = INT64_MIN;
    event->exit_code = INT32_MIN;
    event->has_exit_code = true;
    event->outcome = DET_TASK_OUTCOME_FORCE_ABORTED;
    event->rejection = DET_REJECTION_ALREADY_EXISTS;
    memset(event->name, 1, sizeof event->name);
    memset(event->reason, 1, sizeof event->reason);
}

static void the_longest_line_fits(void **state)
{
    struct det_task_event event;
    char line[DET_TASK_EVENT_LINE_MAX];

    (void)state;
    fill_with_the_worst(&event);
    assert_true(det_task_event_json(&event, line, sizeof line) < sizeof line);
    assert_int_equal('}', line[strlen(line) - 1]);
    assert_true(det_task_event_text(&event, line, sizeof line) < sizeof line);
}

static void a_small_target_is_cut_and_not_overrun(void **state)
{
    char line[64], whole[DET_TASK_EVENT_LINE_MAX];
    size_t length = det_task_event_text(&full, whole, sizeof whole);

    (void)state;
    assert_int_equal(length, det_task_event_text(&full, NULL, 0));
    for (size_t size = 1; size < sizeof line; size++) {
        memset(line, '#', sizeof line);
        assert_int_equal(length, det_task_event_text(&full, line, size));
        assert_int_equal(size - 1, strlen(line));
        assert_memory_equal(whole, line, size - 1);
        assert_int_equal('#', line[size]);
    }
}

static void labels_are_stable_and_different(void **state)
{
    (void)state;
    for (int i = 0; i < DET_TASK_EVENT_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(
                det_task_event_label((enum det_task_event_kind)i),
                det_task_event_label((enum det_task_event_kind)k));
    for (int i = 0; i < DET_REJECTION_COUNT; i++)
        assert_non_null(det_rejection_label((enum det_rejection)i));
    assert_string_equal(
        "attempt_timed_out", det_task_event_label(DET_TASK_EVENT_ATTEMPT_TIMED_OUT));
    assert_string_equal("runtime_failure", det_task_event_label(DET_TASK_EVENT_RUNTIME_FAILURE));
    assert_string_equal("force_aborted", det_task_outcome_label(DET_TASK_OUTCOME_FORCE_ABORTED));
    assert_string_equal("superseded", det_rejection_label(DET_REJECTION_SUPERSEDED));
    assert_string_equal("unknown", det_task_event_label(DET_TASK_EVENT_COUNT));
    assert_string_equal("unknown", det_task_outcome_label(DET_TASK_OUTCOME_COUNT));
    assert_string_equal("unknown", det_rejection_label(DET_REJECTION_COUNT));
}

struct log {
    char text[256];
    size_t size;
    int result;
};

static int keep(void *user, const char *line, size_t size)
{
    struct log *log = user;

    assert_true(log->size + size < sizeof log->text);
    memcpy(log->text + log->size, line, size);
    log->size += size;
    return log->result;
}

static void the_log_writes_a_line_for_each_event(void **state)
{
    struct log log = { { 0 }, 0, 0 };
    struct det_task_log_writer writer = { .write = keep, .user = &log };
    struct det_subscriber subscriber = det_task_log_subscriber(&writer);
    struct det_task_event event = { .sequence = 1, .kind = DET_TASK_EVENT_ALL_STOPPED };

    (void)state;
    assert_string_equal("log", subscriber.name);
    assert_int_equal(0, subscriber.on_event(subscriber.user, &event));
    writer.is_json = true;
    log.result = DET_ERR_IO;
    assert_int_equal(DET_ERR_IO, subscriber.on_event(subscriber.user, &event));
    assert_string_equal(
        "[1] all_stopped\n"
        "{\"sequence\":1,\"at\":\"1970-01-01T00:00:00Z\",\"kind\":\"all_stopped\"}\n",
        log.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_for_people_has_what_belongs_to_the_event),
        cmocka_unit_test(a_line_of_json_has_what_belongs_to_the_event),
        cmocka_unit_test(exit_code_zero_is_printed),
        cmocka_unit_test(event_text_escapes_control_characters),
        cmocka_unit_test(the_longest_line_fits),
        cmocka_unit_test(a_small_target_is_cut_and_not_overrun),
        cmocka_unit_test(labels_are_stable_and_different),
        cmocka_unit_test(the_log_writes_a_line_for_each_event),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
