/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_client.c - a connection of libmosquitto, driven by calls of mqtt_client_turn(). */
#include "kinds/mqtt_client.h"

#include <errno.h>
#include <limits.h>
#include <mosquitto.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"

/* Packets of one turn: a flood must not delay an observation for ever. */
#define TURN_MAX 1000
/* Answer of the broker for a refused subscription. */
#define REFUSED 128

static void set_failed(struct mqtt_client *client, const char *text)
{
    if (!*client->error)
        (void)det_text_copy(client->error, sizeof client->error, text);
    client->has_failed = true;
    client->is_connected = false;
    det_assert(*client->error || !*text);
}

static void fail_by(struct mqtt_client *client, int code)
{
    if (code == MOSQ_ERR_ERRNO)
        set_failed(client, strerrordesc_np(errno));
    else
        set_failed(client, mosquitto_strerror(code));
}

static void on_connect(struct mosquitto *mosquitto, void *user, int code)
{
    struct mqtt_client *client = user;

    (void)mosquitto;
    client->is_connected = code == 0;
    if (code != 0)
        set_failed(client, mosquitto_connack_string(code));
}

static void on_disconnect(struct mosquitto *mosquitto, void *user, int code)
{
    (void)mosquitto;
    if (code == 0)
        set_failed(user, "the connection was closed");
    else
        fail_by(user, code);
}

static void on_message(
    struct mosquitto *mosquitto, void *user, const struct mosquitto_message *message)
{
    struct mqtt_client *client = user;

    (void)mosquitto;
    (void)message;
    client->messages_in++;
}

static void set_answered(struct mqtt_client *client)
{
    client->asked -= client->asked > 0;
}

static void on_publish(struct mosquitto *mosquitto, void *user, int id)
{
    struct mqtt_client *client = user;

    (void)mosquitto;
    (void)id;
    client->messages_out++;
    set_answered(client);
}

static void on_subscribe(
    struct mosquitto *mosquitto, void *user, int id, int count, const int *granted)
{
    struct mqtt_client *client = user;

    (void)mosquitto;
    (void)id;
    if (count > 0 && granted[0] == REFUSED)
        client->refused++;
    else
        client->subscribed++;
    set_answered(client);
}

static void on_unsubscribe(struct mosquitto *mosquitto, void *user, int id)
{
    (void)mosquitto;
    (void)id;
    set_answered(user);
}

static const char *or_null(const char *text)
{
    return *text ? text : NULL;
}

static int set_tls(struct mqtt_client *client)
{
    const struct mqtt_link_desired *desired = &client->desired;
    const char *folder = *desired->tls_ca_file ? NULL : "/etc/ssl/certs";
    int code;

    if (!desired->tls)
        return 0;
    code = mosquitto_tls_set(
        client->mosquitto, or_null(desired->tls_ca_file), folder,
        or_null(desired->tls_certificate_file), or_null(desired->tls_key_file), NULL);
    return code ? code : mosquitto_tls_insecure_set(client->mosquitto, desired->tls_insecure);
}

static int set_up(struct mqtt_client *client)
{
    const struct mqtt_link_desired *desired = &client->desired;
    struct mosquitto *mosquitto = client->mosquitto;
    int code = 0;

    mosquitto_connect_callback_set(mosquitto, on_connect);
    mosquitto_disconnect_callback_set(mosquitto, on_disconnect);
    mosquitto_message_callback_set(mosquitto, on_message);
    mosquitto_publish_callback_set(mosquitto, on_publish);
    mosquitto_subscribe_callback_set(mosquitto, on_subscribe);
    mosquitto_unsubscribe_callback_set(mosquitto, on_unsubscribe);
    if (*desired->user)
        code = mosquitto_username_pw_set(mosquitto, desired->user, or_null(desired->password));
    if (!code && *desired->status_topic)
        code = mosquitto_will_set(
            mosquitto, desired->status_topic, (int)strlen(desired->status_offline),
            desired->status_offline, 1, true);
    return code ? code : set_tls(client);
}

/* The library counts its users without a lock; it stays for as long as the program runs. */
static void start_library(void)
{
    (void)mosquitto_lib_init();
}

int mqtt_client_open(
    const struct det_allocator *allocator, const struct mqtt_link_desired *desired,
    struct mqtt_client **ret, struct det_error *reterr)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct mqtt_client *client = DET_NEW(allocator, struct mqtt_client);
    int code;

    if (!client)
        return det_error_set(reterr, DET_ERR_NO_MEMORY, "connection: out of memory");
    (void)pthread_once(&once, start_library);
    client->allocator = allocator;
    client->desired = *desired;
    client->mosquitto = mosquitto_new(or_null(desired->client_id), true, client);
    code = client->mosquitto ? set_up(client) : MOSQ_ERR_NOMEM;
    if (code) {
        mqtt_client_close(client);
        return det_error_set(
            reterr, code == MOSQ_ERR_NOMEM ? DET_ERR_NO_MEMORY : DET_ERR_INVALID,
            "the connection cannot be set up (%s): check that the TLS files exist and are readable",
            mosquitto_strerror(code));
    }
    *ret = client;
    return 0;
}

void mqtt_client_close(struct mqtt_client *client)
{
    if (!client)
        return;
    if (client->mosquitto)
        mosquitto_destroy(client->mosquitto);
    explicit_bzero(client->desired.password, sizeof client->desired.password);
    DET_DELETE(client->allocator, client);
}

void mqtt_client_begin(struct mqtt_client *client)
{
    const struct mqtt_link_desired *desired = &client->desired;
    int code;

    det_assert(!client->is_connected && !client->has_failed && client->asked == 0);
    det_assert(desired->port > 0 && desired->keepalive_s > 0);
    code = mosquitto_connect_async(
        client->mosquitto, desired->host, desired->port, desired->keepalive_s);

    if (code)
        fail_by(client, code);
}

struct mqtt_client_need mqtt_client_need(struct mqtt_client *client)
{
    return (struct mqtt_client_need){ .descriptor = mosquitto_socket(client->mosquitto),
                                      .writes = mosquitto_want_write(client->mosquitto) };
}

static unsigned poll_once(struct mqtt_client_need need, int milliseconds)
{
    struct pollfd entry = { .fd = need.descriptor, .events = POLLIN };

    if (need.writes)
        entry.events = POLLIN | POLLOUT;
    return poll(&entry, 1, milliseconds) > 0 ? (unsigned)entry.revents : 0;
}

void mqtt_client_wait(struct mqtt_client_need need, int milliseconds)
{
    (void)poll_once(need, milliseconds);
}

/* One packet each way; false: there was nothing to do. */
static bool turn_once(struct mqtt_client *client)
{
    struct mqtt_client_need need = mqtt_client_need(client);
    unsigned events = need.descriptor < 0 ? 0 : poll_once(need, 0);
    int code = 0;

    if (events & ~(unsigned)POLLOUT)
        code = mosquitto_loop_read(client->mosquitto, 1);
    if (!code && (events & POLLOUT))
        code = mosquitto_loop_write(client->mosquitto, 1);
    if (code)
        fail_by(client, code);
    return events && !client->has_failed;
}

void mqtt_client_turn(struct mqtt_client *client)
{
    int code;

    for (int i = 0; i < TURN_MAX && turn_once(client); i++)
        continue;
    /* Not in the callback: the library holds its lock there. */
    if (client->is_connected && !client->has_reported) {
        client->has_reported = true;
        mqtt_client_publish(client, client->desired.status_online);
    }
    if (client->has_failed)
        return;
    code = mosquitto_loop_misc(client->mosquitto);
    if (code)
        fail_by(client, code);
}

static bool has_topic(const struct mqtt_link_desired *desired, const char *topic)
{
    for (uint32_t i = 0; i < desired->subscribe_count; i++)
        if (strcmp(desired->subscribe[i], topic) == 0)
            return true;
    return false;
}

static void check_code(struct mqtt_client *client, int code)
{
    if (code)
        fail_by(client, code);
    else
        client->asked++;
}

void mqtt_client_subscribe(struct mqtt_client *client, const struct mqtt_link_desired *desired)
{
    struct mqtt_link_desired *own = &client->desired;

    det_assert(desired->subscribe_count <= MQTT_CLIENT_TOPICS && desired->qos <= 2);
    for (uint32_t i = 0; i < own->subscribe_count && client->subscribed; i++)
        if (!has_topic(desired, own->subscribe[i]))
            check_code(client, mosquitto_unsubscribe(client->mosquitto, NULL, own->subscribe[i]));
    client->subscribed = client->refused = 0;
    memcpy(own->subscribe, desired->subscribe, sizeof own->subscribe);
    own->subscribe_count = desired->subscribe_count;
    own->qos = desired->qos;
    for (uint32_t i = 0; i < own->subscribe_count; i++)
        check_code(
            client, mosquitto_subscribe(client->mosquitto, NULL, own->subscribe[i], desired->qos));
}

bool mqtt_client_has_topics(
    const struct mqtt_client *client, const struct mqtt_link_desired *desired)
{
    const struct mqtt_link_desired *own = &client->desired;

    for (uint32_t i = 0; i < desired->subscribe_count; i++)
        if (!has_topic(own, desired->subscribe[i]))
            return false;
    return own->subscribe_count == desired->subscribe_count && own->qos == desired->qos &&
           client->subscribed == own->subscribe_count;
}

bool mqtt_client_is_for(const struct mqtt_client *client, const struct mqtt_link_desired *desired)
{
    const struct mqtt_link_desired *own = &client->desired;

    return own->port == desired->port && own->keepalive_s == desired->keepalive_s &&
           own->tls == desired->tls && own->tls_insecure == desired->tls_insecure &&
           strcmp(own->host, desired->host) == 0 &&
           strcmp(own->client_id, desired->client_id) == 0 &&
           strcmp(own->user, desired->user) == 0 && strcmp(own->password, desired->password) == 0 &&
           strcmp(own->tls_ca_file, desired->tls_ca_file) == 0 &&
           strcmp(own->tls_certificate_file, desired->tls_certificate_file) == 0 &&
           strcmp(own->tls_key_file, desired->tls_key_file) == 0 &&
           strcmp(own->status_topic, desired->status_topic) == 0 &&
           strcmp(own->status_online, desired->status_online) == 0 &&
           strcmp(own->status_offline, desired->status_offline) == 0;
}

void mqtt_client_publish(struct mqtt_client *client, const char *text)
{
    det_assert(client->is_connected);
    if (*client->desired.status_topic)
        check_code(
            client, mosquitto_publish(
                        client->mosquitto, NULL, client->desired.status_topic, (int)strlen(text),
                        text, 1, true));
}

void mqtt_client_send(
    struct mqtt_client *client, const char *topic, const void *data, size_t size, bool is_retained)
{
    det_assert(client->is_connected && size <= INT_MAX);
    check_code(
        client, mosquitto_publish(client->mosquitto, NULL, topic, (int)size, data, 1, is_retained));
}

void mqtt_client_disconnect(struct mqtt_client *client)
{
    (void)mosquitto_disconnect(client->mosquitto);
    mqtt_client_turn(client);
}
