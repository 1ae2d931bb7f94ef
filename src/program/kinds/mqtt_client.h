/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_client.h - one connection of libmosquitto without a thread of its own: it moves on when it
 * is turned. One call at a time; only `begin` and `wait` block. */
#ifndef DET_KINDS_MQTT_CLIENT_H
#define DET_KINDS_MQTT_CLIENT_H

#define WORKER_SPEC "kinds/mqtt_link.worker"
#include <detent/worker/declare.h>

#define MQTT_CLIENT_TOPICS 16

struct mosquitto;
struct mqtt_client {
    struct mosquitto *mosquitto;
    const struct det_allocator *allocator;
    struct mqtt_link_desired desired; /* what it was made for */
    bool is_connected;
    bool has_told;   /* that it is there */
    bool has_failed; /* for good: another one is needed; see `error` */
    char error[121];
    uint32_t asked;      /* subscriptions and publications under way */
    uint32_t refused;    /* subscriptions that the broker would not have */
    uint32_t subscribed; /* topics of `desired.subscribe` */
    uint64_t messages_in, messages_out;
};

/* For derive(): 0, or the refusal. */
DET_MUST_CHECK int mqtt_client_check(
    struct det_derive *derive, const struct mqtt_link_desired *config);

/* DET_ERR_NO_MEMORY, DET_ERR_INVALID: what the library does not take, with the reason. */
DET_MUST_CHECK int mqtt_client_open(
    const struct det_allocator *allocator, const struct mqtt_link_desired *desired,
    struct mqtt_client **ret, struct det_error *reterr);
/* Takes NULL. Does not say goodbye. */
void mqtt_client_close(struct mqtt_client *client);

/* Looks the host up, which may take long, and begins to connect. A failure is in `error`. */
void mqtt_client_begin(struct mqtt_client *client);
/* Reads and writes what can be read and written now, and keeps the connection alive. */
void mqtt_client_turn(struct mqtt_client *client);
/* What wait() needs to know, so that it needs not the client itself. */
struct mqtt_client_need {
    int descriptor; /* -1: nothing to wait for */
    bool writes;
};
struct mqtt_client_need mqtt_client_need(struct mqtt_client *client);
/* Until it is worth a turn, or the time is over. */
void mqtt_client_wait(struct mqtt_client_need need, int milliseconds);

/* The topics from now on, those that were there before given up; answered when `asked` is 0. */
void mqtt_client_subscribe(struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Whether these are its topics. */
bool mqtt_client_has_topics(
    const struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Whether it is as this wants it, but for the topics. */
bool mqtt_client_is_for(const struct mqtt_client *client, const struct mqtt_link_desired *desired);
/* Retained, on the status topic if there is one. */
void mqtt_client_tell(struct mqtt_client *client, const char *text);
/* Says goodbye: the broker does not publish the last will. */
void mqtt_client_disconnect(struct mqtt_client *client);

#endif
