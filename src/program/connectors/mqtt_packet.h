/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_packet.h - the packets of MQTT 3.1.1 that a subscriber needs. Pure.
 *
 * libmosquitto acknowledges a message before the program has it, so that a message that is in
 * memory only is lost in a crash. The source `mqtt` acknowledges it when its row is durable. */
#ifndef DET_CONNECTORS_MQTT_PACKET_H
#define DET_CONNECTORS_MQTT_PACKET_H

#include "base/buffer.h"
#include "base/text.h"

#define MQTT_PACKET_MAX (1048576 + 65536)
#define MQTT_KEEPALIVE  60 /* seconds */

enum mqtt_type {
    MQTT_CONNECT = 1,
    MQTT_CONNACK = 2,
    MQTT_PUBLISH = 3,
    MQTT_PUBACK = 4,
    MQTT_SUBSCRIBE = 8,
    MQTT_SUBACK = 9,
    MQTT_PINGREQ = 12,
    MQTT_PINGRESP = 13,
    MQTT_DISCONNECT = 14,
};

struct mqtt_packet {
    enum mqtt_type type;
    size_t size; /* of the whole packet */
    /* CONNACK: the code; SUBACK: whether a topic was refused */
    uint8_t code;
    /* PUBLISH */
    struct det_view topic, payload;
    uint16_t id; /* 0: QoS 0 */
    bool is_repeated;
};

/* Reads the first packet of some bytes. 1: a packet; 0: it is not complete. DET_ERR_LIMIT: more
 * than MQTT_PACKET_MAX; DET_ERR_MALFORMED. */
DET_MUST_CHECK int mqtt_packet_read(const char *data, size_t size, struct mqtt_packet *ret);

/* These append a packet. The session of the client is kept by the broker. */
void mqtt_put_connect(
    struct det_buffer *buffer, const char *client_id, const char *user, const char *password);
/* The packet has the id 1. */
void mqtt_put_subscribe(struct det_buffer *buffer, const char *const *topics, uint32_t count);
void mqtt_put_puback(struct det_buffer *buffer, uint16_t id);
void mqtt_put_simple(struct det_buffer *buffer, enum mqtt_type type);

/* Why a broker has refused a connection. */
const char *mqtt_refusal(uint8_t code);

#endif
