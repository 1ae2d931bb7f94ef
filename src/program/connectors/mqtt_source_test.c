/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_source_test.c - messages of a real broker: when they are acknowledged, and when the broker
 * is away. */
/* test: threads */
#include "connectors/harness_test.h"
#include "kinds/broker_test.h"

static const struct det_stage stage = { .out = { .get = tagged_record } };
static struct broker broker;

static int start_broker(void **state)
{
    (void)state;
    (void)mosquitto_lib_init();
    broker_open(&broker, *state != NULL, false);
    return 0;
}

static int stop_broker(void **state)
{
    (void)state;
    broker_close(&broker);
    return 0;
}

static const char *settings_for(const char *more)
{
    static char settings[600];

    (void)snprintf(
        settings, sizeof settings, "{host: 127.0.0.1, port: %u, topics: ['plant/#']%s}",
        (unsigned)broker.port, more);
    return settings;
}

static void note_published(struct mosquitto *mosquitto, void *user, int id)
{
    (void)mosquitto;
    (void)id;
    *(bool *)user = true;
}

static void publish(const char *topic, const char *text)
{
    bool is_published = false;
    struct mosquitto *mosquitto = mosquitto_new(NULL, true, &is_published);

    mosquitto_publish_callback_set(mosquitto, note_published);
    assert_int_equal(mosquitto_connect(mosquitto, "127.0.0.1", broker.port, 60), 0);
    assert_int_equal(
        mosquitto_publish(mosquitto, NULL, topic, (int)strlen(text), text, 1, false), 0);
    while (!is_published)
        assert_int_equal(mosquitto_loop(mosquitto, 1000, 1), 0);
    mosquitto_destroy(mosquitto);
}

/* Until the broker has the subscription: a retained message comes with it. */
static void publish_retained(const char *topic, const char *text)
{
    bool is_published = false;
    struct mosquitto *mosquitto = mosquitto_new(NULL, true, &is_published);

    mosquitto_publish_callback_set(mosquitto, note_published);
    assert_int_equal(mosquitto_connect(mosquitto, "127.0.0.1", broker.port, 60), 0);
    assert_int_equal(
        mosquitto_publish(mosquitto, NULL, topic, (int)strlen(text), text, 1, true), 0);
    while (!is_published)
        assert_int_equal(mosquitto_loop(mosquitto, 1000, 1), 0);
    mosquitto_destroy(mosquitto);
}

static const struct tagged *row_of(const struct harness *harness, size_t index)
{
    return harness_row(harness, index);
}

static void acknowledge(struct harness *harness)
{
    harness->connector->functions.acknowledged(&harness->call, harness->row_count);
}

/* How many rows have the text, from `first` on. */
static size_t count_rows(const struct harness *harness, size_t first, const char *text)
{
    size_t count = 0;

    for (size_t i = first; i < harness->row_count; i++)
        count += strcmp(row_of(harness, i)->text, text) == 0;
    return count;
}

static void wait_for_text(struct harness *harness, size_t first, const char *text)
{
    while (count_rows(harness, first, text) == 0)
        (void)harness_run_until(harness, harness->row_count + harness->error_count + 1);
}

/* The retained message comes with each subscription. */
static void a_message_is_acknowledged_when_its_row_is(void **state)
{
    struct harness harness;
    size_t first;

    (void)state;
    publish_retained("plant/a", "here");
    harness_open(&harness, &mqtt_source, stage, settings_for(", field: text"));
    wait_for_text(&harness, 0, "here");
    publish("plant/b", "two");
    wait_for_text(&harness, 0, "two");
    /* It was not acknowledged, so it comes again. */
    harness_stop(&harness);
    first = harness.row_count;
    assert_int_equal(harness_start(&harness), 0);
    wait_for_text(&harness, first, "two");
    wait_for_text(&harness, first, "here");
    acknowledge(&harness);
    harness_stop(&harness);
    first = harness.row_count;
    /* What comes while the flow is away is kept by the broker. */
    publish("plant/c", "three");
    assert_int_equal(harness_start(&harness), 0);
    wait_for_text(&harness, first, "three");
    wait_for_text(&harness, first, "here");
    assert_int_equal(count_rows(&harness, first, "two"), 0);
    harness_deinit(&harness);
}

static void topics_and_json_become_fields(void **state)
{
    static const struct det_stage sale = { .out = { .get = sale_record } };
    struct harness harness;

    (void)state;
    publish_retained("plant/a", "{\"number\":5,\"name\":\"x\"}");
    publish_retained("plant/b", "{\"number\":");
    harness_open(
        &harness, &mqtt_source, sale, settings_for(", as: json, topic_field: note, client_id: j"));
    (void)harness_run_until(&harness, 2);
    assert_int_equal(harness.row_count, 1);
    assert_int_equal(((const struct sale *)harness_row(&harness, 0))->number, 5);
    assert_string_equal(((const struct sale *)harness_row(&harness, 0))->note, "plant/a");
    assert_int_equal(harness.error_count, 1);
    assert_non_null(strstr(harness.errors[0], "plant/b: "));
    harness_deinit(&harness);
}

static void a_broker_that_comes_back_is_found(void **state)
{
    struct harness harness;

    (void)state;
    broker_kill(&broker);
    harness_open(&harness, &mqtt_source, stage, settings_for(", field: text"));
    (void)harness_run_until(&harness, 1);
    assert_int_equal(harness.error_count, 1);
    assert_non_null(
        strstr(harness.errors[0], "the broker 127.0.0.1: Connection refused; it is tried again"));
    broker_start(&broker);
    publish_retained("plant/a", "back");
    (void)harness_run_until(&harness, 2);
    assert_string_equal(row_of(&harness, 0)->text, "back");
    harness_deinit(&harness);
}

static void a_wrong_password_fails_the_stage(void **state)
{
    struct harness harness;

    (void)state;
    assert_int_equal(setenv("MQTT_TEST_PASSWORD", "wrong", 1), 0);
    harness_open(
        &harness, &mqtt_source, stage,
        settings_for(", field: text, user: me, password_environment: MQTT_TEST_PASSWORD"));
    assert_int_equal(harness_run(&harness), DET_ERR_INVALID);
    assert_non_null(strstr(harness.failure.text, "127.0.0.1: "));
    harness_deinit(&harness);
    assert_int_equal(setenv("MQTT_TEST_PASSWORD", "right", 1), 0);
    harness_open(
        &harness, &mqtt_source, stage,
        settings_for(", field: text, user: me, password_environment: MQTT_TEST_PASSWORD"));
    assert_int_equal(harness_next(&harness), DET_SOURCE_IDLE);
    harness_deinit(&harness);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    harness_refuses(&mqtt_source, stage, "{}", "host is missing");
    harness_refuses(&mqtt_source, stage, "{host: a}", "topics is missing");
    harness_refuses(
        &mqtt_source, stage, "{host: a, topics: [b], password_file: x}", "a password needs a user");
    harness_refuses(
        &mqtt_source, stage, "{host: a, topics: [b], topic_field: id}", "'id' of tagged is not");
}

int main(void)
{
    static bool has_users = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_message_is_acknowledged_when_its_row_is, start_broker, stop_broker),
        cmocka_unit_test_setup_teardown(topics_and_json_become_fields, start_broker, stop_broker),
        cmocka_unit_test_setup_teardown(
            a_broker_that_comes_back_is_found, start_broker, stop_broker),
        cmocka_unit_test_prestate_setup_teardown(
            a_wrong_password_fails_the_stage, start_broker, stop_broker, &has_users),
        cmocka_unit_test(wrong_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
