/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* otlp_test.c - spans as OTLP in JSON, byte for byte. */
#include "lib/test.h"

#include "observe/otlp.h"
#include "record/json.h"

static const struct det_otlp_resource resource = { .service_name = "shop" };

/* Text of the request; free() it. What is not JSON fails the test. */
static char *written(const struct det_otlp_resource *of, const struct det_span *spans, size_t count)
{
    struct det_json_token token = { .kind = DET_JSON_NULL };
    struct det_json_scanner scanner;
    struct det_json_writer json;
    char *text;

    det_json_writer_init(&json, NULL);
    det_otlp_write(&json, of, spans, count);
    assert_int_equal(det_buffer_status(&json.text), 0);
    det_json_scanner_init(&scanner, det_buffer_text(&json.text), json.text.size);
    while (token.kind != DET_JSON_END)
        assert_int_equal(det_json_scan(&scanner, &token, NULL), 0);
    text = strdup(det_buffer_text(&json.text));
    det_json_writer_deinit(&json);
    return text;
}

static struct det_span full_span(void)
{
    struct det_span span = {
        .context = { .trace_id = { 0x4b, 0xf9, [15] = 0x36 },
                     .span_id = { [7] = 0xb7 },
                     .flags = DET_TRACE_SAMPLED },
        .parent = { 1, 2, 3, 4, 5, 6, 7, 8 },
        .cause = { .trace_id = { [15] = 9 }, .span_id = { [7] = 8 } },
        .kind = DET_SPAN_SERVER,
        .start = 1544712660000000000,
        .end = 1544712661000000000,
        .name = "send",
        .left_out = 3,
    };

    det_span_text(&span, "detent.machine", "o\"r\n\x1b\xff");
    det_span_number(&span, "detent.sequence", INT64_MIN);
    det_span_fail(&span, "no \\ room");
    return span;
}

static void a_span_is_written_whole(void **state)
{
    struct det_span span = full_span();
    char *text = written(&resource, &span, 1), expected[2048];

    (void)state;
    snprintf(
        expected, sizeof expected, "%s%s%s",
        "{\"traceId\":\"4bf90000000000000000000000000036\",\"spanId\":\"00000000000000b7\","
        "\"parentSpanId\":\"0102030405060708\",\"name\":\"send\",\"kind\":2,"
        "\"startTimeUnixNano\":\"1544712660000000000\",\"endTimeUnixNano\":\"1544712661000000000\","
        "\"attributes\":[{\"key\":\"detent.machine\",\"value\":{\"stringValue\":"
        "\"o\\\"r\\n\\u001b\\ufffd\"}},{\"key\":\"detent.sequence\",\"value\":{\"intValue\":"
        "\"-9223372036854775808\"}}],\"droppedAttributesCount\":3,",
        "\"links\":[{\"traceId\":\"00000000000000000000000000000009\",\"spanId\":"
        "\"0000000000000008\"}],\"status\":{\"code\":2,\"message\":\"no \\\\ room\"}}",
        "]}]}]}");
    assert_non_null(strstr(text, expected));
    assert_int_equal(strncmp(text, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[", 43), 0);
    assert_non_null(strstr(
        text, "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop\"}}]},\"scopeSpans\":"
              "[{\"scope\":{\"name\":\"detent\",\"version\":\""));
    assert_null(strstr(text, "service.version"));
    free(text);
}

static void absent_span_fields_are_not_written(void **state)
{
    struct det_span spans[2] = { { .kind = DET_SPAN_INTERNAL, .name = "a" },
                                 { .kind = DET_SPAN_CLIENT, .name = "b" } };
    char *text = written(
        &(struct det_otlp_resource){ .service_version = "1", .instance_id = "i" }, spans, 2);

    (void)state;
    assert_non_null(strstr(text, "\"attributes\":[]},{\"traceId\""));
    assert_non_null(strstr(text, "\"key\":\"service.instance.id\""));
    assert_null(strstr(text, "parentSpanId"));
    assert_null(strstr(text, "links"));
    assert_null(strstr(text, "status"));
    assert_null(strstr(text, "dropped"));
    assert_null(strstr(text, "service.name"));
    free(text);
    text = written(&(struct det_otlp_resource){ 0 }, NULL, 0);
    assert_non_null(strstr(text, "\"resource\":{\"attributes\":[]}"));
    assert_non_null(strstr(text, "\"spans\":[]"));
    free(text);
}

static int write_with_failures(struct det_test_memory *memory, void *argument)
{
    struct det_span span = full_span();
    struct det_json_writer json;
    int r;

    (void)argument;
    det_json_writer_init(&json, &memory->allocator);
    det_otlp_write(&json, &resource, &span, 1);
    r = det_buffer_status(&json.text);
    det_json_writer_deinit(&json);
    return r;
}

static void allocation_failure_sticks_to_the_buffer(void **state)
{
    (void)state;
    det_test_each_failure(write_with_failures, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_is_written_whole),
        cmocka_unit_test(absent_span_fields_are_not_written),
        cmocka_unit_test(allocation_failure_sticks_to_the_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
