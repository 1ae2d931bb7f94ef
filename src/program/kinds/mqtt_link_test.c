/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_link_test.c - a connection to an MQTT broker: what the states answer, and a real broker that
 * comes and goes. */
#include "kinds/bench_test.h"
#include "kinds/broker_test.h"
#include "kinds/kinds.h"
#include "kinds/mqtt_client.h"

static struct broker broker;

static int start(void **state)
{
    (void)state;
    broker_open(&broker, false, false);
    return 0;
}

static int start_with_users(void **state)
{
    (void)state;
    broker_open(&broker, true, false);
    return 0;
}

static int start_with_tls(void **state)
{
    (void)state;
    broker_open(&broker, false, true);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    broker_close(&broker);
    return 0;
}

static void set_arguments(struct mqtt_link_desired *config)
{
    *config = (struct mqtt_link_desired){ .port = broker.port, .subscribe_count = 1 };
    PUT(config->host, "127.0.0.1");
    PUT(config->subscribe[0], "plant/#");
    PUT(config->status_topic, "plant/press/status");
    assert_derived(&mqtt_link_kind, config);
}

static const struct mqtt_link_observed *seen_of(const struct bench *bench)
{
    return bench->observed;
}

/* derive() and next() */

static void config_errors_name_the_field_and_a_remedy(void **state)
{
    static struct mqtt_link_desired config, good;

    (void)state;
    assert_refused(&mqtt_link_kind, &config, "host is missing: add the address of the broker");
    PUT(config.host, "host:1883");
    assert_refused(&mqtt_link_kind, &config, "the port has its own field");
    PUT(config.host, "mqtt://host");
    assert_refused(&mqtt_link_kind, &config, "host 'mqtt://host' is not a host");
    PUT(good.host, "::1");
    config = good;
    PUT(config.password, "hunter2");
    assert_refused(&mqtt_link_kind, &config, "a password needs a user: add user:");
    config = good;
    config.keepalive_s = 3;
    assert_refused(&mqtt_link_kind, &config, "keepalive_s 3 is too short: use at least 10");
    config = good;
    config.subscribe_count = 2;
    PUT(config.subscribe[0], "a/+/b/#");
    PUT(config.subscribe[1], "a/b#");
    assert_refused(&mqtt_link_kind, &config, "subscribe[1] 'a/b#' is not a topic");
    config = good;
    PUT(config.status_topic, "a/+");
    assert_refused(&mqtt_link_kind, &config, "status_topic 'a/+' has a '+' or '#'");
    config = good;
    config.qos = 3;
    assert_refused(&mqtt_link_kind, &config, "qos 3 is invalid: use 0, 1 or 2");
    config = good;
    PUT(config.tls_ca_file, "/ca.pem");
    assert_refused(&mqtt_link_kind, &config, "settings of TLS need TLS: add tls: true");
    config.tls = true;
    PUT(config.tls_ca_file, "ca.pem");
    assert_refused(&mqtt_link_kind, &config, "tls_ca_file 'ca.pem' is relative");
    PUT(config.tls_ca_file, "/ca.pem");
    PUT(config.tls_key_file, "/key.pem");
    assert_refused(&mqtt_link_kind, &config, "go together: set both or neither");
    config = good;
    assert_derived(&mqtt_link_kind, &config);
    assert_int_equal(config.port, 1883);
    assert_int_equal(config.keepalive_s, 30);
    config = good;
    config.tls = true;
    assert_derived(&mqtt_link_kind, &config);
    assert_int_equal(config.port, 8883);
}

static void a_password_is_not_shown(void **state)
{
    static struct mqtt_link_desired config;
    char text[4096];

    (void)state;
    PUT(config.password, "hunter2");
    (void)det_record_print(mqtt_link_desired_record(), &config, 0, text, sizeof text);
    assert_null(strstr(text, "hunter2"));
}

static void mqtt_states_request_what_is_missing(void **state)
{
    static struct mqtt_link_desired desired;
    struct mqtt_link_observed seen = { .last_error = "" };
    struct view view;

    (void)state;
    PUT(desired.host, "host");
    view_init(&view, &mqtt_link_kind, &desired, &seen);
    assert_goto(&view, MQTT_LINK_STOPPED, MQTT_LINK_CONNECTING);
    assert_do(&view, MQTT_LINK_CONNECTING, MQTT_LINK_CONNECT);
    assert_do(&view, MQTT_LINK_LOST, MQTT_LINK_CONNECT);
    assert_goto(&view, MQTT_LINK_CONNECTED, MQTT_LINK_LOST);
    assert_do(&view, MQTT_LINK_DISCONNECTING, MQTT_LINK_DISCONNECT);
    seen.is_connected = true;
    assert_do(&view, MQTT_LINK_CONNECTING, MQTT_LINK_DISCONNECT);
    assert_goto(&view, MQTT_LINK_CONNECTED, MQTT_LINK_CONNECTING);
    seen.is_current = true;
    assert_do(&view, MQTT_LINK_CONNECTING, MQTT_LINK_SUBSCRIBE);
    assert_goto(&view, MQTT_LINK_CONNECTED, MQTT_LINK_CONNECTING);
    seen.is_subscribed = true;
    assert_goto(&view, MQTT_LINK_CONNECTING, MQTT_LINK_CONNECTED);
    assert_goto(&view, MQTT_LINK_LOST, MQTT_LINK_CONNECTED);
    assert_hold(&view, MQTT_LINK_CONNECTED);
    assert_do(&view, MQTT_LINK_DISCONNECTING, MQTT_LINK_DISCONNECT);
    seen.is_connected = false;
    view.last_action = (struct det_action_end){ .action = "disconnect", .at = view.all.now };
    assert_goto(&view, MQTT_LINK_DISCONNECTING, MQTT_LINK_STOPPED);
    /* A failed connection is degraded, not only late. */
    view.last_action = (struct det_action_end){ "connect", view.all.now, 1, DET_ERR_IO, "no" };
    assert_goto(&view, MQTT_LINK_CONNECTING, MQTT_LINK_LOST);
    assert_do(&view, MQTT_LINK_LOST, MQTT_LINK_CONNECT);
}

/* With a broker. */

static void mqtt_link_connects_subscribes_and_disconnects(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "connected");
    assert_reason(&bench, "is connected to 127.0.0.1:");
    assert_int_equal(seen_of(&bench)->connects, 1);
    assert_int_equal(seen_of(&bench)->subscribed, 1);
    broker_assert_retained(&broker, "plant/press/status", "online");
    /* Its own status is one of its topics. */
    while (!seen_of(&bench)->messages_in || !seen_of(&bench)->messages_out)
        bench_step(&bench);
    bench_stop(&bench);
    assert_false(seen_of(&bench)->is_connected);
    assert_int_equal(seen_of(&bench)->messages_out, 2);
    broker_assert_retained(&broker, "plant/press/status", "offline");
    bench_close(&bench);
}

static void a_broker_that_was_killed_is_found_again(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    assert_state(&bench, "connected");
    broker_kill(&broker);
    bench_settle(&bench);
    assert_state(&bench, "lost");
    assert_int_equal(bench.view.last_action.code, DET_ERR_IO);
    assert_non_null(strstr(bench.failure, "Connection refused"));
    bench_settle(&bench);
    assert_state(&bench, "lost");
    assert_reason(&bench, "Connection refused");
    assert_int_equal(bench.actions[MQTT_LINK_CONNECT], 3);
    broker_start(&broker);
    bench_settle(&bench);
    assert_state(&bench, "connected");
    assert_int_equal(seen_of(&bench)->connects, 2);
    assert_int_equal(seen_of(&bench)->subscribed, 1);
    assert_string_equal(seen_of(&bench)->last_error, "");
    bench_stop(&bench);
    bench_close(&bench);
}

static void killed_mqtt_link_leaves_its_will(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    PUT(desired.status_offline, "gone");
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    broker_assert_retained(&broker, "plant/press/status", "online");
    bench_close(&bench);
    broker_assert_retained(&broker, "plant/press/status", "gone");
}

static void changed_topics_keep_the_connection(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    desired.subscribe_count = 2;
    PUT(desired.subscribe[0], "a");
    PUT(desired.subscribe[1], "b/+");
    bench_settle(&bench);
    assert_state(&bench, "connected");
    assert_int_equal(seen_of(&bench)->subscribed, 2);
    assert_int_equal(seen_of(&bench)->connects, 1);
    desired.subscribe_count = 0;
    bench_settle(&bench);
    assert_state(&bench, "connected");
    assert_int_equal(seen_of(&bench)->subscribed, 0);
    PUT(desired.status_topic, "plant/other/status");
    bench_settle(&bench);
    assert_state(&bench, "connected");
    assert_int_equal(seen_of(&bench)->connects, 2);
    broker_assert_retained(&broker, "plant/press/status", "offline");
    broker_assert_retained(&broker, "plant/other/status", "online");
    bench_stop(&bench);
    bench_close(&bench);
}

static void wrong_password_is_reported(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    PUT(desired.user, "me");
    PUT(desired.password, "hunter2");
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "lost");
    assert_reason(&bench, "not authori");
    assert_null(strstr(bench.reason, "hunter2"));
    PUT(desired.password, "right");
    bench_settle(&bench);
    assert_state(&bench, "connected");
    /* Another one is another connection. */
    PUT(desired.password, "hunter2");
    bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "lost");
    bench_close(&bench);
}

static void tls_connection_verifies_the_broker(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    desired.tls = true;
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "lost");
    PUT(desired.tls_ca_file, broker.certificate.path);
    bench_settle(&bench);
    assert_state(&bench, "connected");
    PUT(desired.tls_ca_file, "/no/such/file");
    bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "lost");
    assert_non_null(strstr(bench.failure, "check that the TLS files exist"));
    bench_close(&bench);
}

static void allocation_failures_are_reported(void **state)
{
    static struct mqtt_link_desired desired;
    struct det_test_memory memory;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    det_test_memory_init(&memory);
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench.context.allocator = &memory.allocator;
    (void)det_test_memory_fail(&memory, 1, true);
    bench_settle(&bench);
    assert_int_equal(bench.view.last_action.code, DET_ERR_NO_MEMORY);
    (void)det_test_memory_fail(&memory, 0, false);
    bench_settle(&bench);
    bench_settle(&bench);
    assert_state(&bench, "connected");
    bench_stop(&bench);
    bench_close(&bench);
    det_test_memory_deinit(&memory);
}

static void cancelled_connect_ends_at_once(void **state)
{
    static struct mqtt_link_desired desired;
    struct bench bench;

    (void)state;
    set_arguments(&desired);
    bench_open(&bench, &mqtt_link_kind, NULL, &desired);
    bench.is_cancelled = true;
    bench_act(&bench, MQTT_LINK_CONNECT);
    assert_int_equal(bench.view.last_action.code, DET_ERR_CANCELLED);
    bench_collect(&bench);
    assert_false(seen_of(&bench)->is_connected);
    bench_close(&bench);
}

#define SERVED(test, by) cmocka_unit_test_setup_teardown(test, by, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_errors_name_the_field_and_a_remedy),
        cmocka_unit_test(a_password_is_not_shown),
        cmocka_unit_test(mqtt_states_request_what_is_missing),
        SERVED(mqtt_link_connects_subscribes_and_disconnects, start),
        SERVED(a_broker_that_was_killed_is_found_again, start),
        SERVED(killed_mqtt_link_leaves_its_will, start),
        SERVED(changed_topics_keep_the_connection, start),
        SERVED(wrong_password_is_reported, start_with_users),
        SERVED(tls_connection_verifies_the_broker, start_with_tls),
        SERVED(allocation_failures_are_reported, start),
        SERVED(cancelled_connect_ends_at_once, start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
