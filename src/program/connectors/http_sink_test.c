/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_sink_test.c - requests for rows and batches: keys, templates, retries, refusals, cancels. */
/* test: threads */
#include "connectors/http_peer_test.h"
#include "connectors/sink_harness_test.h"

static struct http_peer server;

static const char *settings_for(const char *path, const char *more)
{
    static char settings[700];

    (void)snprintf(
        settings, sizeof settings, "{url: 'http://127.0.0.1:%u%s'%s}", server.port, path, more);
    return settings;
}

static int deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    return sink_deliver(sink, id, &reading);
}

static void each_row_is_a_request_with_its_key(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);

    (void)state;
    http_peer_open(&server, NULL);
    sink_open(
        &sink, &http_sink, reading_record,
        settings_for(
            "/s/{sensor}/{id}?q={note}", ", method: PUT, headers: {X-Mood: 'is {mood}!'}"));
    reading.has_note = true;
    memcpy(reading.note, "a b/c", 6);
    assert_int_equal(sink_deliver(&sink, 77, &reading), 0);
    assert_int_equal(deliver(&sink, 78), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    http_peer_has(&server, 0, "PUT /s/s1/1?q=a%20b%2Fc HTTP/1.1\r\n");
    http_peer_has(&server, 0, "\r\nX-Mood: is hot!\r\n");
    http_peer_has(&server, 0, "\r\nIdempotency-Key: test.box.000000000000feed.77\r\n");
    http_peer_has(&server, 0, "\r\nContent-Type: application/json\r\n");
    http_peer_has(&server, 0, "\r\n\r\n{\"id\":1,\"sensor\":\"s1\",\"celsius\":20.5,");
    http_peer_has(&server, 1, "\r\nIdempotency-Key: test.box.000000000000feed.78\r\n");
    http_peer_close(&server);
}

static void a_batch_is_an_array_or_lines(void **state)
{
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, NULL);
    sink_open(
        &sink, &http_sink, reading_record, settings_for("/rows", ", batch: 2, key_field: key"));
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    assert_int_equal(atomic_load(&server.count), 1);
    assert_int_equal(sink_flush(&sink), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    http_peer_has(&server, 0, "POST /rows HTTP/1.1\r\n");
    http_peer_has(&server, 0, "\r\nIdempotency-Key: test.box.000000000000feed.1-2\r\n");
    http_peer_has(&server, 0, "\r\n\r\n[{\"id\":1,");
    http_peer_has(&server, 0, ",\"key\":\"test.box.000000000000feed.1\"},{\"id\":2,");
    http_peer_has(&server, 0, "\"key\":\"test.box.000000000000feed.2\"}]");
    http_peer_has(&server, 1, "\r\n\r\n[{\"id\":3,");
    assert_int_equal(atomic_load(&server.count), 2);
    sink_open(
        &sink, &http_sink, reading_record, settings_for("/rows", ", batch: 9, format: jsonl"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(deliver(&sink, 2), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    http_peer_has(&server, 2, "\r\nContent-Type: application/x-ndjson\r\n");
    http_peer_has(&server, 2, "\"is_valid\":true}\n{\"id\":2,");
    http_peer_close(&server);
}

static void a_failing_server_is_asked_again_with_the_same_key(void **state)
{
    static const char *const script[] = { "503 Busy", "429 Slow", NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &http_sink, reading_record, settings_for("/", ""));
    assert_int_equal(deliver(&sink, 5), 0);
    sink_close(&sink);
    assert_int_equal(atomic_load(&server.count), 3);
    for (unsigned i = 0; i < 3; i++)
        http_peer_has(&server, i, "\r\nIdempotency-Key: test.box.000000000000feed.5\r\n");
    http_peer_close(&server);
}

static void a_server_that_stays_down_fails_the_stage(void **state)
{
    static const char *const script[] = { "500 Bad", "500 Bad", NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &http_sink, reading_record, settings_for("/", ", retry_for: 1ms"));
    assert_int_equal(deliver(&sink, 5), DET_ERR_IO);
    assert_non_null(strstr(sink.base.failure.text, "the server answers 500"));
    assert_non_null(strstr(sink.base.failure.text, "resume the flow"));
    sink_close(&sink);
    http_peer_close(&server);
}

static void a_refused_row_is_rejected_and_others_go_on(void **state)
{
    static const char *const script[] = { "422 No", "200 OK", "400 No", NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &http_sink, reading_record, settings_for("/", ""));
    assert_true(deliver(&sink, 5) < 0);
    assert_int_equal(deliver(&sink, 6), 0);
    sink_close(&sink);
    assert_string_equal(sink.base.errors[0], "the server answers 422: all is well");
    assert_int_equal(sink.base.last_rejection, DET_REJECT_PERMANENT);
    assert_int_equal(sink.base.failure.code, 0);
    sink_open(&sink, &http_sink, reading_record, settings_for("/", ", batch: 10"));
    assert_int_equal(deliver(&sink, 7), 0);
    assert_int_equal(deliver(&sink, 8), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    assert_int_equal(sink.base.error_count, 2);
    assert_int_equal(sink.rejected[0], 7);
    assert_int_equal(sink.rejected[1], 8);
    http_peer_close(&server);
}

static void wrong_credentials_fail_the_stage(void **state)
{
    static const char *const script[] = { "401 Who", NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    assert_int_equal(setenv("DETENT_TEST_BEARER", "hunter2", 1), 0);
    sink_open(
        &sink, &http_sink, reading_record,
        settings_for("/", ", bearer_environment: DETENT_TEST_BEARER"));
    assert_int_equal(deliver(&sink, 5), DET_ERR_REFUSED);
    assert_non_null(strstr(sink.base.failure.text, "check bearer_file or bearer_environment"));
    assert_null(strstr(sink.base.failure.text, "hunter2"));
    sink_close(&sink);
    http_peer_has(&server, 0, "\r\nAuthorization: Bearer hunter2\r\n");
    http_peer_close(&server);
}

static void a_silent_server_does_not_block_a_cancel(void **state)
{
    static const char *const script[] = { "", NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    server.on_silence = &sink.base.is_cancelled;
    sink_open(&sink, &http_sink, reading_record, settings_for("/", ""));
    assert_int_equal(deliver(&sink, 5), DET_ERR_CANCELLED);
    assert_int_equal(sink.base.error_count, 0);
    sink_close(&sink);
    http_peer_close(&server);
}

static void a_header_cannot_be_injected(void **state)
{
    struct sink_harness sink;
    struct reading reading = reading_of(1);

    (void)state;
    http_peer_open(&server, NULL);
    sink_open(
        &sink, &http_sink, reading_record, settings_for("/", ", headers: {X-Sensor: '{sensor}'}"));
    memcpy(reading.sensor, "a\r\nX-Evil: 1", 13);
    assert_true(sink_deliver(&sink, 1, &reading) < 0);
    assert_int_equal(sink.base.error_count, 1);
    assert_int_equal(sink.base.last_rejection, DET_REJECT_VALIDATION);
    sink_close(&sink);
    assert_int_equal(atomic_load(&server.count), 0);
    http_peer_close(&server);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&http_sink, reading_record, "{}", "url");
    sink_refuses(&http_sink, reading_record, "{url: 'ftp://x'}", "not an http or https URL");
    sink_refuses(
        &http_sink, reading_record, "{url: 'http://{sensor}/x'}", "possible only in the path");
    sink_refuses(&http_sink, reading_record, "{url: 'http://me:secret@host/x'}", "use bearer_file");
    sink_refuses(&http_sink, reading_record, "{url: 'http://x/{idd}'}", "did you mean 'id'?");
    sink_refuses(&http_sink, reading_record, "{url: 'http://x/', method: GET}", "use POST, PUT");
    sink_refuses(&http_sink, reading_record, "{url: 'http://x/{id}', batch: 2}", "remove batch:");
    sink_refuses(
        &http_sink, reading_record, "{url: 'http://x/', batch: 2, headers: {A: '{id}'}}",
        "remove batch:");
    sink_refuses(
        &http_sink, reading_record, "{url: 'http://x/', headers: {Authorization: x}}",
        "secrets do not belong into settings");
    sink_refuses(&http_sink, reading_record, "{url: 'http://x/', headers: {'A: b': x}}", "headers");
}

static int send_rows(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    sink_init(
        &sink, &http_sink, reading_record,
        settings_for("/{id}", ", headers: {X-Mood: '{mood}'}, retry_for: 1ms"));
    sink.base.call.allocator = &memory->allocator;
    r = sink_start(&sink);
    if (r == 0)
        r = deliver(&sink, 1);
    if (r == 0)
        r = sink_flush(&sink);
    /* A lack of memory during a request is a failed request. */
    if (r == DET_ERR_IO && memory->failed)
        r = DET_ERR_NO_MEMORY;
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    http_peer_open(&server, NULL);
    det_test_each_failure(send_rows, NULL);
    http_peer_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_a_request_with_its_key),
        cmocka_unit_test(a_batch_is_an_array_or_lines),
        cmocka_unit_test(a_failing_server_is_asked_again_with_the_same_key),
        cmocka_unit_test(a_server_that_stays_down_fails_the_stage),
        cmocka_unit_test(a_refused_row_is_rejected_and_others_go_on),
        cmocka_unit_test(wrong_credentials_fail_the_stage),
        cmocka_unit_test(a_silent_server_does_not_block_a_cancel),
        cmocka_unit_test(a_header_cannot_be_injected),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
