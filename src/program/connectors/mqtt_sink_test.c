/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_sink_test.c - rows as messages of a real broker, which comes and goes. */
#include "connectors/sink_harness_test.h"
#include "kinds/broker_test.h"

static struct broker broker;

static int start(void **state)
{
    (void)state;
    (void)mosquitto_lib_init();
    broker_open(&broker, false, false);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    broker_close(&broker);
    return 0;
}

static const char *settings_for(const char *more)
{
    static char settings[600];

    (void)snprintf(
        settings, sizeof settings, "{host: 127.0.0.1, port: %u%s}", (unsigned)broker.port, more);
    return settings;
}

/* What a subscriber has got. */
struct heard {
    struct mosquitto *mosquitto;
    unsigned count;
    bool is_subscribed;
    char texts[8][200]; /* "topic payload" */
};

static void on_message(
    struct mosquitto *mosquitto, void *user, const struct mosquitto_message *message)
{
    struct heard *heard = user;

    (void)mosquitto;
    if (heard->count < 8)
        (void)snprintf(
            heard->texts[heard->count], 200, "%s %.*s", message->topic, message->payloadlen,
            (const char *)message->payload);
    heard->count++;
}

static void on_subscribe(
    struct mosquitto *mosquitto, void *user, int id, int count, const int *granted)
{
    struct heard *heard = user;

    (void)mosquitto;
    (void)id;
    (void)count;
    (void)granted;
    heard->is_subscribed = true;
}

static void listen_to(struct heard *heard, const char *topic)
{
    *heard = (struct heard){ .mosquitto = mosquitto_new(NULL, true, heard) };
    mosquitto_message_callback_set(heard->mosquitto, on_message);
    mosquitto_subscribe_callback_set(heard->mosquitto, on_subscribe);
    assert_int_equal(mosquitto_connect(heard->mosquitto, "127.0.0.1", broker.port, 60), 0);
    assert_int_equal(mosquitto_subscribe(heard->mosquitto, NULL, topic, 1), 0);
    while (!heard->is_subscribed)
        assert_int_equal(mosquitto_loop(heard->mosquitto, 1000, 1), 0);
}

static void hear(struct heard *heard, unsigned count)
{
    while (heard->count < count)
        assert_int_equal(mosquitto_loop(heard->mosquitto, 1000, 1), 0);
}

static int deliver(struct sink_harness *sink, int id)
{
    struct parcel parcel = { .id = id, .place = { .city = "Ulm" } };

    return sink_deliver(sink, (uint64_t)id, &parcel);
}

static void each_row_is_a_message(void **state)
{
    struct sink_harness sink;
    struct heard heard;

    (void)state;
    listen_to(&heard, "#");
    sink_open(
        &sink, &mqtt_sink, parcel_record,
        settings_for(", topic: 'p/{id}', payload: '{id}!', key_field: key"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(deliver(&sink, 2), 0);
    assert_int_equal(sink_flush(&sink), 0);
    assert_int_equal(deliver(&sink, 3), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    hear(&heard, 3);
    assert_string_equal(heard.texts[0], "p/1 1!");
    assert_string_equal(heard.texts[2], "p/3 3!");
    sink_open(&sink, &mqtt_sink, parcel_record, settings_for(", topic: parcels, key_field: key"));
    assert_int_equal(deliver(&sink, 4), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    hear(&heard, 4);
    assert_non_null(strstr(heard.texts[3], "parcels {\"id\":4,"));
    assert_non_null(strstr(heard.texts[3], ",\"key\":\"test.box.000000000000feed.4\"}"));
    mosquitto_destroy(heard.mosquitto);
}

static void messages_are_sent_again_after_a_lost_connection(void **state)
{
    struct sink_harness sink;
    struct heard heard;

    (void)state;
    sink_open(&sink, &mqtt_sink, parcel_record, settings_for(", topic: 'p/{id}'"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_int_equal(sink_flush(&sink), 0);
    broker_kill(&broker);
    broker_start(&broker);
    listen_to(&heard, "#");
    assert_int_equal(deliver(&sink, 2), 0);
    assert_int_equal(deliver(&sink, 3), 0);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
    hear(&heard, 2);
    assert_non_null(strstr(heard.texts[0], "p/2 "));
    mosquitto_destroy(heard.mosquitto);
}

static void a_broker_that_is_away_fails_the_stage_or_ends_with_a_cancel(void **state)
{
    struct sink_harness sink;

    (void)state;
    broker_kill(&broker);
    sink_open(&sink, &mqtt_sink, parcel_record, settings_for(", topic: a, retry_for: 1ms"));
    assert_int_equal(deliver(&sink, 1), 0);
    assert_true(sink_flush(&sink) < 0);
    assert_non_null(strstr(sink.base.failure.text, "check the broker"));
    sink_close(&sink);
    sink_open(&sink, &mqtt_sink, parcel_record, settings_for(", topic: a, retry_for: 1h"));
    assert_int_equal(deliver(&sink, 1), 0);
    atomic_store(&sink.base.is_cancelled, true);
    assert_int_equal(sink_flush(&sink), DET_ERR_CANCELLED);
    sink_close(&sink);
}

static void a_row_without_a_topic_is_rejected(void **state)
{
    struct sink_harness sink;
    struct parcel parcel = { .place = { .city = "a/#" } };

    (void)state;
    sink_open(
        &sink, &mqtt_sink, parcel_record, settings_for(", topic: '{code}', payload: '{place}'"));
    assert_true(sink_deliver(&sink, 1, &parcel) < 0);
    memcpy(parcel.code, "a/#", 4);
    assert_true(sink_deliver(&sink, 2, &parcel) < 0);
    assert_int_equal(sink.base.error_count, 2);
    assert_int_equal(sink_flush(&sink), 0);
    sink_close(&sink);
}

static void settings_are_checked(void **state)
{
    (void)state;
    sink_refuses(&mqtt_sink, parcel_record, "{topic: a}", "host");
    sink_refuses(&mqtt_sink, parcel_record, "{host: a}", "topic");
    sink_refuses(&mqtt_sink, parcel_record, "{host: 'mqtt://a', topic: a}", "is not a host");
    sink_refuses(&mqtt_sink, parcel_record, "{host: a, topic: 'a/{idd}'}", "unknown field 'idd'");
    sink_refuses(
        &mqtt_sink, parcel_record, "{host: a, topic: a, password_environment: X}", "needs a user");
    sink_refuses(&mqtt_sink, parcel_record, "{host: a, topic: a, tls_ca_file: x}", "tls: true");
    sink_refuses(
        &mqtt_sink, parcel_record, "{host: a, topic: a, tls: true, tls_key_file: x}",
        "go together");
}

static int publish(struct det_test_memory *memory, void *argument)
{
    struct sink_harness sink;
    int r;

    (void)argument;
    sink_init(
        &sink, &mqtt_sink, parcel_record,
        settings_for(", topic: 'p/{id}', key_field: key, retry_for: 1ms"));
    sink.base.call.allocator = &memory->allocator;
    r = sink_start(&sink);
    for (int id = 1; id < 4 && r == 0; id++)
        r = deliver(&sink, id);
    if (r == 0)
        r = sink_flush(&sink);
    sink_close(&sink);
    return r;
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(publish, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_row_is_a_message, start, stop),
        cmocka_unit_test_setup_teardown(
            messages_are_sent_again_after_a_lost_connection, start, stop),
        cmocka_unit_test_setup_teardown(
            a_broker_that_is_away_fails_the_stage_or_ends_with_a_cancel, start, stop),
        cmocka_unit_test_setup_teardown(a_row_without_a_topic_is_rejected, start, stop),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test_setup_teardown(a_failed_allocation_is_reported, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
