/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* mqtt_packet_test.c - packets of MQTT: whole, cut at every byte, and malformed. */
#include "connectors/mqtt_packet.h"

#include "lib/test.h"

static int read(const char *data, size_t size, struct mqtt_packet *ret)
{
    char *copy = malloc(size ? size : 1);
    int r;

    assert_non_null(copy);
    memcpy(copy, data, size);
    r = mqtt_packet_read(copy, size, ret);
    free(copy);
    return r;
}

static void packets_are_read(void **state)
{
    static const char publish[] = "\x3a\x08\x00\x03"
                                  "a/b\x01\x02x";
    struct mqtt_packet packet;

    (void)state;
    for (size_t cut = 0; cut < sizeof publish - 1; cut++)
        assert_int_equal(read(publish, cut, &packet), 0);
    assert_int_equal(mqtt_packet_read(publish, sizeof publish - 1, &packet), 1);
    assert_int_equal(packet.type, MQTT_PUBLISH);
    assert_int_equal(packet.size, sizeof publish - 1);
    assert_int_equal(packet.id, 0x102);
    assert_true(packet.is_repeated);
    assert_true(det_view_is(packet.topic, "a/b"));
    assert_true(det_view_is(packet.payload, "x"));
    assert_int_equal(read("\x20\x02\x00\x05", 4, &packet), 1);
    assert_int_equal(packet.code, 5);
    assert_int_equal(read("\x90\x04\x00\x01\x01\x80", 6, &packet), 1);
    assert_int_equal(packet.code, 0x80);
    assert_int_equal(read("\xd0\x00", 2, &packet), 1);
    assert_int_equal(packet.type, MQTT_PINGRESP);
}

static void malformed_packets_are_refused(void **state)
{
    static const struct {
        const char *data;
        size_t size;
        int r;
    } cases[] = {
        { "\x00\x00", 2, DET_ERR_MALFORMED },           /* no such type */
        { "\x10\x00", 2, DET_ERR_MALFORMED },           /* from a client */
        { "\x30\x00", 2, DET_ERR_MALFORMED },           /* no topic */
        { "\x30\x04\x00\x09zz", 6, DET_ERR_MALFORMED }, /* the topic is cut */
        { "\x32\x03\x00\x01z", 5, DET_ERR_MALFORMED },  /* no id */
        { "\x32\x05\x00\x01z\x00\x00", 7, DET_ERR_MALFORMED },
        { "\x34\x05\x00\x01z\x00\x01", 7, DET_ERR_MALFORMED }, /* QoS 2 */
        { "\x20\x01\x00", 3, DET_ERR_MALFORMED },
        { "\x30\xff\xff\xff\xff\x01", 6, DET_ERR_MALFORMED }, /* five bytes of length */
        { "\x30\xff\xff\xff\x01", 5, DET_ERR_LIMIT },
    };
    struct mqtt_packet packet;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(read(cases[i].data, cases[i].size, &packet), cases[i].r);
}

static void packets_are_written(void **state)
{
    static const char *const topics[] = { "a", "b/#" };
    struct det_buffer buffer = { 0 };

    (void)state;
    mqtt_put_connect(&buffer, "me", "u", "p");
    assert_int_equal(buffer.size, 22);
    assert_memory_equal(
        buffer.data, "\x10\x14\x00\x04MQTT\x04\xc0\x00\x3c\x00\x02me\x00\x01u\x00", 20);
    det_buffer_clear(&buffer);
    mqtt_put_subscribe(&buffer, topics, 2);
    assert_int_equal(buffer.size, 14);
    assert_memory_equal(
        buffer.data,
        "\x82\x0c\x00\x01\x00\x01"
        "a\x01\x00\x03"
        "b/#\x01",
        14);
    det_buffer_clear(&buffer);
    mqtt_put_puback(&buffer, 0x1234);
    mqtt_put_simple(&buffer, MQTT_PINGREQ);
    assert_memory_equal(buffer.data, "\x40\x02\x12\x34\xc0\x00", 6);
    det_buffer_deinit(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_are_read),
        cmocka_unit_test(malformed_packets_are_refused),
        cmocka_unit_test(packets_are_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
