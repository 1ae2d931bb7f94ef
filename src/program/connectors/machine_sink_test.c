/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* machine_sink_test.c - events to instances: ids, payloads, starts, refusals, and what is sent
 * again. The server answers as the API does. */
/* test: threads */
#include "connectors/http_peer_test.h"
#include "connectors/machine_request.h"
#include "connectors/sink_harness_test.h"

#define SENT        "{\"kind\":\"sent\",\"state\":\"a\"}"
#define MISSING     "{\"error\":{\"code\":\"NOT_FOUND\",\"text\":\"there is no order\"}}"
#define BUSY        "{\"error\":{\"code\":\"BUSY\",\"text\":\"busy\"}}"
#define REFUSED     "{\"error\":{\"code\":\"UNHANDLED\",\"text\":\"paid is not for shipped\"}}"
#define ITEMS(list) "200 OK|{\"failed\":0,\"items\":[" list "]}"

static struct http_peer server;

static const char *settings_for(const char *more)
{
    static char settings[700];

    (void)snprintf(
        settings, sizeof settings,
        "{url: 'http://127.0.0.1:%u/', machine: order, id: sensor, event: paid%s}", server.port,
        more);
    return settings;
}

static int deliver(struct sink_harness *sink, uint64_t id)
{
    struct reading reading = reading_of(id);

    return sink_deliver(sink, id, &reading);
}

static void flush(struct sink_harness *sink)
{
    if (sink_flush(sink) < 0)
        fail_msg("%s", sink->base.failure.text);
}

static void each_row_is_an_event_with_its_key(void **state)
{
    static const char *const script[] = { ITEMS(SENT "," SENT), NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(
        &sink, &machine_sink, reading_record,
        settings_for(", payload: {cents: round(celsius * 100), who: sensor}"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(deliver(&sink, 2), 0);
    flush(&sink);
    flush(&sink);
    sink_close(&sink);
    assert_int_equal(atomic_load(&server.count), 1);
    http_peer_has(&server, 0, "POST /v1/batches HTTP/1.1\r\n");
    http_peer_has(
        &server, 0,
        "\r\n\r\n{\"sends\":[{\"machine\":\"order\",\"id\":\"s1\",\"event\":\"paid\",\"event_id\":"
        "\"test.box.000000000000feed.1\",\"payload\":{\"cents\":2050,\"who\":\"s1\"}},"
        "{\"machine\":\"order\",\"id\":\"s2\",");
    http_peer_close(&server);
}

static void missing_instances_are_started(void **state)
{
    static const char *const script[] = { ITEMS(SENT "," MISSING "," MISSING), "200 OK|{}",
                                          "409 There|{}", ITEMS(SENT "," SENT), NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(
        &sink, &machine_sink, reading_record, settings_for(", start: true, data: {number: id}"));
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    flush(&sink);
    sink_close(&sink);
    assert_int_equal(atomic_load(&server.count), 4);
    http_peer_has(&server, 1, "POST /v1/machines/order/instances HTTP/1.1\r\n");
    http_peer_has(&server, 1, "\r\n\r\n{\"id\":\"s2\",\"data\":{\"number\":2}}");
    http_peer_has(&server, 2, "{\"id\":\"s3\",");
    http_peer_has(&server, 3, "{\"sends\":[{\"machine\":\"order\",\"id\":\"s2\",");
    assert_int_equal(sink.base.error_count, 0);
    http_peer_close(&server);
}

static void refused_events_are_rejected_alone(void **state)
{
    static const char *const script[] = { ITEMS(SENT "," REFUSED "," MISSING "," SENT), NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &machine_sink, reading_record, settings_for(""));
    for (uint64_t id = 1; id <= 4; id++)
        assert_int_equal(deliver(&sink, id), 0);
    flush(&sink);
    sink_close(&sink);
    assert_int_equal(sink.base.error_count, 2);
    assert_int_equal(sink.rejected[0], 2);
    assert_string_equal(sink.base.errors[0], "paid is not for shipped");
    assert_int_equal(sink.rejected[1], 3);
    http_peer_close(&server);
}

static void what_is_busy_is_sent_again(void **state)
{
    static const char *const script[] = { ITEMS(SENT "," BUSY "," SENT), "503 Away|{}", ITEMS(SENT),
                                          NULL };
    struct sink_harness sink;

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &machine_sink, reading_record, settings_for(""));
    for (uint64_t id = 1; id <= 3; id++)
        assert_int_equal(deliver(&sink, id), 0);
    flush(&sink);
    sink_close(&sink);
    assert_int_equal(atomic_load(&server.count), 3);
    http_peer_has(&server, 2, "{\"sends\":[{\"machine\":\"order\",\"id\":\"s2\",");
    http_peer_close(&server);
}

static void what_cannot_work_fails_the_stage_with_a_remedy(void **state)
{
    static const char *const script[] = { "200 OK|{}", "401 Who|{}", ITEMS(BUSY), NULL };
    struct sink_harness sink;
    char *folder = det_test_folder(), settings[400];

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &machine_sink, reading_record, settings_for(", retry_for: 1ms"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_MALFORMED);
    sink_crash(&sink);
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_REFUSED);
    assert_non_null(strstr(sink.base.failure.text, "the scope 'send'"));
    sink_crash(&sink);
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), DET_ERR_BUSY);
    sink_close(&sink);
    http_peer_close(&server);
    (void)snprintf(
        settings, sizeof settings,
        "{project: %s, machine: order, id: sensor, event: paid, retry_for: 1ms}", folder);
    sink_init(&sink, &machine_sink, reading_record, settings);
    assert_int_equal(sink_start(&sink), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(sink.base.failure.text, "no 'detent up' runs there"));
    sink_close(&sink);
    det_test_folder_remove(folder);
}

static void a_row_whose_payload_cannot_be_computed_is_rejected(void **state)
{
    static const char *const script[] = { ITEMS(SENT), NULL };
    struct sink_harness sink;
    struct reading reading = { .id = 0, .sensor = "x" };

    (void)state;
    http_peer_open(&server, script);
    sink_open(&sink, &machine_sink, reading_record, settings_for(", payload: {each: 100 / id}"));
    assert_true(sink_deliver(&sink, 1, &reading) < 0);
    assert_int_equal(sink.base.error_count, 1);
    assert_int_equal(deliver(&sink, 2), 0);
    flush(&sink);
    sink_close(&sink);
    http_peer_has(&server, 0, "{\"sends\":[{\"machine\":\"order\",\"id\":\"s2\",");
    http_peer_close(&server);
}

static void codes_have_their_meaning(void **state)
{
    (void)state;
    assert_int_equal(machine_result_of(NULL), MACHINE_SENT);
    assert_int_equal(machine_result_of("NOT_FOUND"), MACHINE_MISSING);
    assert_int_equal(machine_result_of("CONTENTION"), MACHINE_LATER);
    assert_int_equal(machine_result_of("STOPPED"), MACHINE_REFUSED);
    assert_int_equal(machine_result_of("INVALID"), MACHINE_UNUSABLE);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&machine_sink, reading_record, "{id: id, event: a}", "machine");
    sink_refuses(&machine_sink, reading_record, "{machine: a, event: a}", "id");
    sink_refuses(&machine_sink, reading_record, "{machine: a, id: idd, event: a}", "idd");
    sink_refuses(
        &machine_sink, reading_record, "{machine: a/b, id: id, event: a}", "is not a name");
    sink_refuses(
        &machine_sink, reading_record, "{machine: a, id: id, event: a, data: {x: id}}",
        "start: true");
    sink_refuses(
        &machine_sink, reading_record,
        "{machine: a, id: id, event: a, url: 'http://x', project: y}", "exclude each other");
    sink_refuses(
        &machine_sink, reading_record, "{machine: a, id: id, event: a, payload: {x: [1]}}",
        "expected a field or an expression");
}

static int send_events(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    atomic_store(&server.count, 0);
    sink_init(
        &sink, &machine_sink, reading_record,
        settings_for(", retry_for: 1ms, start: true, payload: {x: id + 1}"));
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
    static const char *const script[] = { ITEMS(SENT), NULL };

    (void)state;
    http_peer_open(&server, script);
    det_test_each_failure(send_events, NULL);
    http_peer_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_an_event_with_its_key),
        cmocka_unit_test(missing_instances_are_started),
        cmocka_unit_test(refused_events_are_rejected_alone),
        cmocka_unit_test(what_is_busy_is_sent_again),
        cmocka_unit_test(what_cannot_work_fails_the_stage_with_a_remedy),
        cmocka_unit_test(a_row_whose_payload_cannot_be_computed_is_rejected),
        cmocka_unit_test(codes_have_their_meaning),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
