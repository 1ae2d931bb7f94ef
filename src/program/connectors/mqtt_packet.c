/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_packet.c - reads and writes packets of MQTT 3.1.1. */
#include "connectors/mqtt_packet.h"

#include <string.h>

#include "base/assert.h"

#define SUBSCRIBE_ID 1
#define REFUSED      0x80

struct reader {
    const unsigned char *data;
    size_t size, at;
    bool has_failed;
};

static unsigned take_number(struct reader *reader)
{
    unsigned number;

    if (reader->size - reader->at < 2) {
        reader->has_failed = true;
        return 0;
    }
    number = (unsigned)reader->data[reader->at] << 8 | reader->data[reader->at + 1];
    reader->at += 2;
    return number;
}

static struct det_view take_bytes(struct reader *reader, size_t size)
{
    struct det_view view = { (const char *)reader->data + reader->at, size };

    if (reader->size - reader->at < size) {
        reader->has_failed = true;
        return det_view_of("", 0);
    }
    reader->at += size;
    return view;
}

static void read_publish(struct reader *reader, unsigned flags, struct mqtt_packet *ret)
{
    unsigned quality = flags >> 1 & 3;

    ret->is_repeated = flags >> 3 & 1;
    ret->topic = take_bytes(reader, take_number(reader));
    if (quality > 0)
        ret->id = (uint16_t)take_number(reader);
    if (quality > 1 || (quality == 1 && ret->id == 0) || ret->topic.size == 0)
        reader->has_failed = true;
    if (!reader->has_failed)
        ret->payload = take_bytes(reader, reader->size - reader->at);
}

static void read_codes(struct reader *reader, struct mqtt_packet *ret)
{
    struct det_view codes;

    (void)take_number(reader);
    codes = take_bytes(reader, reader->size - reader->at);
    for (size_t i = 0; i < codes.size; i++)
        if ((unsigned char)codes.data[i] == REFUSED)
            ret->code = REFUSED;
}

static int read_body(struct reader *reader, unsigned flags, struct mqtt_packet *ret)
{
    unsigned number;

    switch (ret->type) {
    case MQTT_CONNACK:
        number = take_number(reader);
        ret->code = (uint8_t)number;
        break;
    case MQTT_PUBLISH:
        read_publish(reader, flags, ret);
        break;
    case MQTT_SUBACK:
        read_codes(reader, ret);
        break;
    case MQTT_PINGRESP:
        break;
    case MQTT_CONNECT:
    case MQTT_PUBACK:
    case MQTT_SUBSCRIBE:
    case MQTT_PINGREQ:
    case MQTT_DISCONNECT:
    default:
        return DET_ERR_MALFORMED;
    }
    return reader->has_failed ? DET_ERR_MALFORMED : 1;
}

int mqtt_packet_read(const char *data, size_t size, struct mqtt_packet *ret)
{
    const unsigned char *bytes = (const unsigned char *)data;
    struct reader reader = { .data = bytes };
    size_t length = 0, at = 1;

    *ret = (struct mqtt_packet){ .topic = { "", 0 }, .payload = { "", 0 } };
    for (unsigned shift = 0;; shift += 7) {
        if (at >= size)
            return 0;
        if (shift > 21)
            return DET_ERR_MALFORMED;
        length |= (size_t)(bytes[at] & 127) << shift;
        if (!(bytes[at++] & 128))
            break;
    }
    if (length > MQTT_PACKET_MAX)
        return DET_ERR_LIMIT;
    if (size - at < length)
        return 0;
    ret->type = (enum mqtt_type)(bytes[0] >> 4);
    ret->size = at + length;
    reader.at = at;
    reader.size = at + length;
    return read_body(&reader, bytes[0] & 15, ret);
}

static void put_number(struct det_buffer *buffer, size_t number)
{
    det_buffer_append_char(buffer, (char)(number >> 8));
    det_buffer_append_char(buffer, (char)number);
}

static void put_text(struct det_buffer *buffer, const char *text)
{
    size_t size = strlen(text);

    det_assert(size < 65536);
    put_number(buffer, size);
    det_buffer_append(buffer, text, size);
}

static void put_head(struct det_buffer *buffer, enum mqtt_type type, unsigned flags, size_t length)
{
    det_buffer_append_char(buffer, (char)((unsigned)type << 4 | flags));
    do {
        unsigned digit = length & 127;

        length >>= 7;
        det_buffer_append_char(buffer, (char)(digit | (length ? 128u : 0u)));
    } while (length);
}

void mqtt_put_connect(
    struct det_buffer *buffer, const char *client_id, const char *user, const char *password)
{
    size_t length = 10 + 2 + strlen(client_id);

    length += *user ? 2 + strlen(user) : 0;
    length += *password ? 2 + strlen(password) : 0;
    put_head(buffer, MQTT_CONNECT, 0, length);
    put_text(buffer, "MQTT");
    det_buffer_append_char(buffer, 4);
    det_buffer_append_char(buffer, (char)((*user ? 128u : 0u) | (*password ? 64u : 0u)));
    put_number(buffer, MQTT_KEEPALIVE);
    put_text(buffer, client_id);
    if (*user)
        put_text(buffer, user);
    if (*password)
        put_text(buffer, password);
}

void mqtt_put_subscribe(struct det_buffer *buffer, const char *const *topics, uint32_t count)
{
    size_t length = 2;

    for (uint32_t i = 0; i < count; i++)
        length += 3 + strlen(topics[i]);
    put_head(buffer, MQTT_SUBSCRIBE, 2, length);
    put_number(buffer, SUBSCRIBE_ID);
    for (uint32_t i = 0; i < count; i++) {
        put_text(buffer, topics[i]);
        det_buffer_append_char(buffer, 1);
    }
}

void mqtt_put_puback(struct det_buffer *buffer, uint16_t id)
{
    put_head(buffer, MQTT_PUBACK, 0, 2);
    put_number(buffer, id);
}

void mqtt_put_simple(struct det_buffer *buffer, enum mqtt_type type)
{
    put_head(buffer, type, 0, 0);
}

const char *mqtt_refusal(uint8_t code)
{
    static const char *const texts[] = { "accepted",
                                         "it does not speak MQTT 3.1.1",
                                         "it refuses the client id",
                                         "it is not available",
                                         "user or password are wrong",
                                         "the user is not authorized" };

    return code < sizeof texts / sizeof *texts ? texts[code] : "for an unknown reason";
}
