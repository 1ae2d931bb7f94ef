/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_event_test.c - events of workers as words and as objects. */
#include "inspect/worker_event.h"

#include "lib/test.h"

static const struct det_worker_identity press = { "plant/press", "press", "link",
                                                  "plant(application)/press(link)" };

static void assert_text(struct det_worker_event event, const char *wanted)
{
    struct det_buffer text;

    det_buffer_init(&text, NULL);
    worker_event_text(&text, &event);
    assert_int_equal(det_buffer_status(&text), 0);
    assert_string_equal(det_buffer_text(&text), wanted);
    det_buffer_deinit(&text);
}

static void event_fields_are_printed(void **state)
{
    (void)state;
    assert_text((struct det_worker_event){ .kind = DET_WORKER_EVENT_HEARTBEAT }, "");
    assert_text(
        (struct det_worker_event){ .kind = DET_WORKER_EVENT_TRANSITION,
                                   .identity = &press,
                                   .from = "stopped",
                                   .to = "up",
                                   .reason = "is \"to\" run",
                                   .number = 7,
                                   .took = 1500 * DET_MILLISECOND + 1 },
        " worker=plant(application)/press(link) from=stopped to=up reason=\"is \\\"to\\\" run\" "
        "number=7 took=1.5s");
    assert_text(
        (struct det_worker_event){
            .kind = DET_WORKER_EVENT_ACTION_FAILED, .action = "connect", .code = DET_ERR_TIMEOUT },
        " action=connect error=TIMEOUT");
}

static void json_object_has_the_same_fields(void **state)
{
    struct det_worker_event event = { .kind = DET_WORKER_EVENT_ACTION_FAILED,
                                      .identity = &press,
                                      .action = "connect",
                                      .reason = "refused",
                                      .code = DET_ERR_IO,
                                      .number = 2,
                                      .took = 5 };
    struct det_json_writer json;

    (void)state;
    det_json_writer_init(&json, NULL);
    det_json_open(&json, NULL, '{');
    worker_event_members(&json, &event);
    det_json_close(&json, '}');
    assert_string_equal(
        det_buffer_text(&json.text),
        "{\"event\":\"action_failed\",\"worker\":\"plant(application)/press(link)\","
        "\"id\":\"plant/press\",\"action\":\"connect\",\"reason\":\"refused\","
        "\"error\":\"IO\",\"number\":2,\"took_ns\":5}");
    det_json_writer_deinit(&json);
}

static void worker_events_have_log_levels(void **state)
{
    (void)state;
    assert_int_equal(worker_event_level(DET_WORKER_EVENT_GATE_PENDING), DET_LOG_DEBUG);
    assert_int_equal(worker_event_level(DET_WORKER_EVENT_ACTION_COMPLETED), DET_LOG_DEBUG);
    assert_int_equal(worker_event_level(DET_WORKER_EVENT_TRANSITION), DET_LOG_INFO);
    assert_int_equal(worker_event_level(DET_WORKER_EVENT_STALE), DET_LOG_WARNING);
    assert_int_equal(worker_event_level(DET_WORKER_EVENT_ACTION_PANIC), DET_LOG_ERROR);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_fields_are_printed),
        cmocka_unit_test(json_object_has_the_same_fields),
        cmocka_unit_test(worker_events_have_log_levels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
