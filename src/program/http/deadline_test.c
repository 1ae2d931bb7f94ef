/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* deadline_test.c - slow clients in virtual time: each deadline is exact to the second, and no byte
 * restarts it. */
#include "http/sim_test.h"

/* Sends `rate` bytes each second, until all are sent or the server ends the connection. Returns the
 * seconds. */
static det_time drip(struct house *house, struct client *client, const char *bytes, size_t rate)
{
    det_time begin = det_loop_now(house->loop);

    while (*bytes && !client->is_ended && !client->is_closed) {
        size_t size = strlen(bytes) < rate ? strlen(bytes) : rate;

        print_bytes(house, client, bytes, size);
        bytes += size;
        pass(house, client, DET_SECOND);
    }
    return (det_loop_now(house->loop) - begin) / DET_SECOND;
}

/* Returns the seconds until it is closed, at most `most`. */
static det_time wait_closed(struct house *house, struct client *client, det_time most)
{
    det_time begin = det_loop_now(house->loop);

    while (!client->is_closed && det_loop_now(house->loop) - begin < most * DET_SECOND)
        pass(house, client, 100 * DET_MILLISECOND);
    return (det_loop_now(house->loop) - begin) / DET_SECOND;
}

static void test_slow_headers_have_ten_seconds(void **state)
{
    struct client client;
    struct house house;
    det_time took;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    took = drip(&house, &client, GET("/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 1);
    assert_true(took >= 10 && took <= 12);
    assert_has(received(&client), "HTTP/1.1 408 Request Timeout\r\n");
    assert_has(det_buffer_text(&house.seen), "= 408 - the headers did not arrive in time\n");
    took = wait_closed(&house, &client, 10);
    assert_true(took >= 1 && took <= 3);
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    took = drip(&house, &client, GET("/a"), 5);
    assert_true(took < 10);
    assert_has(received(&client), "200 OK");
    client_deinit(&client);
    house_close(&house);
}

static void test_an_idle_connection_has_a_minute(void **state)
{
    struct client fresh, used;
    struct house house;
    det_time took;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&fresh, &house), 0);
    assert_int_equal(client_open(&used, &house), 0);
    pass(&house, &used, 30 * DET_SECOND);
    send_text(&house, &used, GET("/a"));
    (void)received(&used);
    took = wait_closed(&house, &fresh, 100);
    assert_true(took >= 29 && took <= 32);
    assert_false(used.is_closed);
    took = wait_closed(&house, &used, 100);
    assert_true(took >= 28 && took <= 32);
    /* Idle clients get no answer. */
    assert_string_equal(received(&fresh), "");
    assert_string_equal(received(&used), "");
    client_deinit(&fresh);
    client_deinit(&used);
    house_close(&house);
}

static void post(struct client *client, size_t size, char *body)
{
    det_buffer_format(
        &client->sent, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", size);
    memset(body, 'b', size);
    body[size] = '\0';
}

static void test_a_body_comes_at_a_kibibyte_a_second_at_least(void **state)
{
    static char body[200001];
    struct client client;
    struct house house;
    det_time took;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    post(&client, 200000, body);
    took = drip(&house, &client, body, 2048);
    assert_true(took >= 97);
    assert_has(received(&client), "200 OK");
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    post(&client, 200000, body);
    took = drip(&house, &client, body, 100);
    assert_true(took >= 30 && took <= 36);
    assert_has(received(&client), "408 Request Timeout");
    assert_has(det_buffer_text(&house.seen), "= 408 - the body did not arrive in time\n");
    client_deinit(&client);
    house_close(&house);
}

/* Reads `rate` bytes each second until nothing is waiting. Returns the seconds. */
static det_time sip(struct house *house, struct client *client, size_t rate)
{
    det_time begin = det_loop_now(house->loop);

    do {
        client->window = rate;
        pass(house, client, DET_SECOND);
    } while (!client->is_closed && (client->events & DET_POLL_WRITE));
    return (det_loop_now(house->loop) - begin) / DET_SECOND;
}

static void test_an_answer_is_read_at_a_kibibyte_a_second_at_least(void **state)
{
    struct client client;
    struct house house;
    det_time took;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    client.window = 0;
    send_text(&house, &client, GET("/static"));
    took = sip(&house, &client, 2048);
    assert_true(took >= 48);
    assert_false(client.is_closed);
    assert_true(client.got.size > 100000);
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    client.window = 0;
    send_text(&house, &client, GET("/static"));
    took = sip(&house, &client, 1);
    assert_true(took >= 30 && took <= 32);
    assert_true(client.is_closed);
    client_deinit(&client);
    house_close(&house);
}

static void test_stream_that_is_read_has_no_deadline(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    for (int i = 0; i < 100; i++) {
        pass(&house, &client, DET_MINUTE);
        assert_int_equal(http_write(house.kept, "x", 1), 0);
        pump(&house, &client);
    }
    assert_int_equal(http_waiting(house.kept), 0);
    client.window = 0;
    assert_int_equal(http_write(house.kept, "x", 1), 0);
    assert_true(wait_closed(&house, &client, 100) <= 32);
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/keep"));
    pass(&house, &client, DET_HOUR);
    answer_text(house.kept, 200, "at last");
    pump(&house, &client);
    assert_has(received(&client), "at last");
    client_deinit(&client);
    house_close(&house);
}

/* Many idle connections cost one check each per second. */
static void test_a_thousand_idle_connections_cost_a_turn_a_second(void **state)
{
    static struct client clients[1000];
    struct house house;
    int turns = 0;
    det_time end;

    (void)state;
    house_open(&house);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(client_open(&clients[i], &house), 0);
    end = det_loop_now(house.loop) + 50 * DET_SECOND;
    while (det_loop_now(house.loop) < end) {
        assert_true(det_loop_turn(house.loop, end) >= 0);
        turns++;
    }
    assert_true(turns <= 52);
    assert_int_equal(http_server_connections(house.server), 1000);
    pass(&house, NULL, 12 * DET_SECOND);
    assert_int_equal(http_server_connections(house.server), 0);
    /* Without connections no timer is armed. */
    assert_int_equal(det_loop_deadline(house.loop), DET_NEVER);
    house_close(&house);
}

static void test_date_header_is_the_time_of_the_answer(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    pass(&house, NULL, 1500 * DET_MILLISECOND);
    send_text(&house, &client, GET("/a"));
    assert_has(received(&client), "Date: Thu, 01 Jan 2026 00:00:01 GMT\r\n");
    pass(&house, NULL, 400 * DET_MILLISECOND);
    send_text(&house, &client, GET("/a"));
    assert_has(received(&client), "Date: Thu, 01 Jan 2026 00:00:01 GMT\r\n");
    pass(&house, NULL, 100 * DET_MILLISECOND);
    send_text(&house, &client, GET("/a"));
    assert_has(received(&client), "Date: Thu, 01 Jan 2026 00:00:02 GMT\r\n");
    client_deinit(&client);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_headers_have_ten_seconds),
        cmocka_unit_test(test_an_idle_connection_has_a_minute),
        cmocka_unit_test(test_a_body_comes_at_a_kibibyte_a_second_at_least),
        cmocka_unit_test(test_an_answer_is_read_at_a_kibibyte_a_second_at_least),
        cmocka_unit_test(test_stream_that_is_read_has_no_deadline),
        cmocka_unit_test(test_a_thousand_idle_connections_cost_a_turn_a_second),
        cmocka_unit_test(test_date_header_is_the_time_of_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
