/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_client.h - a connection of libmosquitto without its own thread: it progresses in
 * mqtt_client_turn(). One call at a time; only `begin` and `wait` block. */
#ifndef DET_KINDS_MQTT_CLIENT_H
#define DET_KINDS_MQTT_CLIENT_H

#define WORKER_SPEC "kinds/mqtt_link.worker"
#include <detent/worker/declare.h>

#define MQTT_CLIENT_TOPICS 16

struct mosquitto;
struct mqtt_client {
    struct mosquitto *mosquitto;
    const struct det_allocator *allocator;
    struct mqtt_link_desired desired; /* what it was created for */
    bool is_connected;
    bool has_reported; /* it has published that it is there */
    bool has_failed;   /* permanently: a new one is needed; see `error` */
    char error[121];
    uint32_t asked;      /* pending subscriptions and publications */
    uint32_t refused;    /* subscriptions that the broker refused */
    uint32_t subscribed; /* number of topics of `desired.subscribe` */
    uint64_t messages_in, messages_out;
};

/* For derive(): returns 0, or refuses the config. */
DET_MUST_CHECK int mqtt_client_check(
    struct det_derive *derive, const struct mqtt_link_desired *config);

/* DET_ERR_NO_MEMORY; DET_ERR_INVALID: refused by the library, with the reason. */
DET_MUST_CHECK int mqtt_client_open(
    const struct det_allocator *allocator, const struct mqtt_link_desired *desired,
    struct mqtt_client **ret, struct det_error *reterr);
/* NULL is allowed. Does not disconnect cleanly. */
void mqtt_client_close(struct mqtt_client *client);

/* Resolves the host, which may take long, and begins to connect. A failure is in `error`. */
void mqtt_client_begin(struct mqtt_client *client);
/* Reads and writes without blocking, and keeps the connection alive. */
void mqtt_client_turn(struct mqtt_client *client);
/* Input of wait(), so that it can run without the client. */
struct mqtt_client_need {
    int descriptor; /* -1: nothing to wait for */
    bool writes;
};
struct mqtt_client_need mqtt_client_need(struct mqtt_client *client);
/* Waits until a turn is useful, or until the timeout. */
void mqtt_client_wait(struct mqtt_client_need need, int milliseconds);

/* Replaces the subscribed topics; complete when `asked` is 0. */
void mqtt_client_subscribe(struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Returns true if these are its topics. */
bool mqtt_client_has_topics(
    const struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Returns true if it matches this desired state, except for the topics. */
bool mqtt_client_is_for(const struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Publishes a retained message on the status topic, if there is one. */
void mqtt_client_publish(struct mqtt_client *client, const char *text);
/* Sends a message with QoS 1; `asked` counts it until the broker has acknowledged it. */
void mqtt_client_send(
    struct mqtt_client *client, const char *topic, const void *data, size_t size, bool is_retained);
/* Disconnects cleanly: the broker does not publish the last will. */
void mqtt_client_disconnect(struct mqtt_client *client);

#endif
