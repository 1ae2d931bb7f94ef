/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_connection_test.c - connections byte by byte: requests, and how connections end. Answers
 * are in response_test.c, time is in deadline_test.c. */
#include "http/sim_test.h"

static void test_a_request_costs_one_read_and_one_write(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    for (unsigned i = 1; i <= 3; i++) {
        send_text(&house, &client, GET("/a"));
        assert_int_equal(client.reads, i);
        assert_int_equal(client.writes, i);
        assert_int_equal(client.watches, 1);
        assert_string_equal(
            received(&client), "HTTP/1.1 200 OK\r\n"
                               "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                               "Content-Length: 3\r\n\r\n/a ");
        assert_null(client.connection->block);
        assert_null(client.connection->output.data);
    }
    assert_string_equal(
        det_buffer_text(&house.seen), "GET /a 0\n= 200 /a \nGET /a 0\n= 200 /a \nGET /a 0\n"
                                      "= 200 /a \n");
    client.has_ended = true;
    pump(&house, &client);
    assert_true(client.is_closed);
    assert_int_equal(http_server_connections(house.server), 0);
    client_deinit(&client);
    house_close(&house);
}

static void test_pipelined_requests_are_answered_in_order_and_in_one_write(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(
        &house, &client,
        GET("/a") "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy" GET("/c") GET("/d"));
    assert_int_equal(client.reads, 1);
    assert_int_equal(client.writes, 1);
    assert_string_equal(bodies(&client), "/a |/b xy|/c |/d |");
    client_deinit(&client);
    house_close(&house);
}

/* The answers do not depend on how the bytes are split. */
static void test_split_input_gives_the_same_answers(void **state)
{
    static const char bytes[] = GET("/a") "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                                          "chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n" GET("/c");

    (void)state;
    for (size_t cut = 1; cut < sizeof bytes; cut++) {
        struct client client;
        struct house house;

        house_open(&house);
        assert_int_equal(client_open(&client, &house), 0);
        client.read_max = cut;
        send_text(&house, &client, bytes);
        assert_string_equal(bodies(&client), "/a |/b xy|/c |");
        client_deinit(&client);
        house_close(&house);
    }
}

static void test_deferred_answer_precedes_the_next_request(void **state)
{
    struct client client;
    struct house house;
    const char *text;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, "POST /keep HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_non_null(house.kept);
    /* Bytes that arrive now must not change the body in use. */
    send_text(&house, &client, GET("/next"));
    assert_string_equal(http_request(house.kept)->body, "hello");
    assert_string_equal(received(&client), "");
    answer_text(house.kept, 201, "later");
    pump(&house, &client);
    text = received(&client);
    assert_has(text, "201 Created\r\n");
    assert_has(text, "/next ");
    assert_int_equal(house.gone, 0);
    client_deinit(&client);
    house_close(&house);
}

static void test_disconnect_is_reported_once(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/keep"));
    client.is_reset = true;
    pump(&house, &client);
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    assert_has(det_buffer_text(&house.seen), "= 0 /keep");
    client_deinit(&client);
    house_close(&house);
    assert_int_equal(house.gone, 1);
}

static void test_server_close_notifies_deferred_requests(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    house_close(&house);
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);
}

static void test_half_closed_client_is_answered_except_for_streams(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    det_buffer_append_text(&client.sent, GET("/a") GET("/keep"));
    client.has_ended = true;
    pump(&house, &client);
    assert_false(client.is_closed);
    assert_int_equal(client.events, 0);
    answer_text(house.kept, 200, "later");
    pump(&house, &client);
    assert_true(client.is_closed);
    assert_has(received(&client), "later");
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    det_buffer_append_text(&client.sent, GET("/stream"));
    client.has_ended = true;
    pump(&house, &client);
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    client.has_ended = true;
    send_text(&house, &client, "GET / HT");
    assert_true(client.is_closed);
    assert_string_equal(received(&client), "");
    client_deinit(&client);
    house_close(&house);
}

/* The server reads no more requests while answers are unread. */
static void test_unread_pipelined_answers_stop_reading(void **state)
{
    struct client client;
    struct house house;
    size_t count = 0;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    client.window = 0;
    for (int i = 0; i < 2000; i++)
        det_buffer_append_text(&client.sent, GET("/a"));
    pump(&house, &client);
    assert_true(client.sent_at <= (size_t)3 * HTTP_BLOCK_SIZE);
    assert_int_equal(client.events, DET_POLL_WRITE);
    assert_true(http_output_size(client.connection) < 262144);
    client.window = NO_WINDOW;
    pump(&house, &client);
    for (const char *at = client.got.data; (at = strstr(at, "\r\n\r\n/a ")); at++)
        count++;
    assert_int_equal(count, 2000);
    client_deinit(&client);
    house_close(&house);
}

static void test_unauthorized_body_is_not_read(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(
        &house, &client,
        "POST /secret HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n"
        "Expect: 100-continue\r\n\r\n");
    assert_has(received(&client), "401 Unauthorized\r\n");
    assert_true(client.is_ended);
    assert_string_equal(det_buffer_text(&house.seen), "= 401 /secret \n");
    client_deinit(&client);

    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/secret") GET("/a"));
    assert_string_equal(bodies(&client), "no|/a |");
    client_deinit(&client);
    house_close(&house);
}

static void test_late_refusal_skips_the_body(void **state)
{
    struct client client;
    struct house house;
    const char *text;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(
        &house, &client, "POST /guess HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhello");
    assert_string_equal(received(&client), "");
    send_text(&house, &client, "and more of it");
    answer_text(house.kept, 401, "no");
    pump(&house, &client);
    text = received(&client);
    assert_has(text, "401 Unauthorized\r\n");
    assert_has(text, "Connection: close\r\n");
    assert_true(client.is_ended);
    assert_string_equal(det_buffer_text(&house.seen), "= 401 /guess \n");
    client_deinit(&client);

    /* Without a body the connection can be used again. */
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/guess") GET("/a"));
    assert_string_equal(received(&client), "");
    answer_text(house.kept, 401, "no");
    pump(&house, &client);
    assert_string_equal(bodies(&client), "no|/a |");
    send_text(&house, &client, GET("/guess"));
    client.is_reset = true;
    pump(&house, &client);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);
    house_close(&house);
}

static void test_expected_continue_is_sent(void **state)
{
    static const char head[] =
        "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, head);
    assert_string_equal(received(&client), "HTTP/1.1 100 Continue\r\n\r\n");
    send_text(&house, &client, "xy");
    assert_string_equal(bodies(&client), "/a xy|");
    det_buffer_append_text(&client.sent, head);
    send_text(&house, &client, "xy");
    assert_null(strstr(det_buffer_text(&client.got), "100 Continue"));
    assert_string_equal(bodies(&client), "/a xy|");
    client_deinit(&client);
    house_close(&house);
}

static void test_large_requests_grow_the_buffer(void **state)
{
    struct det_buffer bytes;
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    det_buffer_init(&bytes, NULL);
    det_buffer_format(&bytes, GET("/a") "POST /%06000d HTTP/1.1\r\nHost: a\r\n", 1);
    for (int i = 0; i < 30; i++)
        det_buffer_format(&bytes, "X: %01000d\r\n", i);
    det_buffer_format(&bytes, "Content-Length: 1000000\r\n\r\n%01000000d", 2);
    det_buffer_append_text(&bytes, GET("/b"));
    client.read_max = 7777;
    print_bytes(&house, &client, bytes.data, bytes.size);
    assert_has(det_buffer_text(&house.seen), " 1000000\n");
    assert_has(det_buffer_text(&house.seen), "GET /b 0\n= 200 /b \n");
    assert_null(client.connection->block);
    assert_int_equal(house.server->block_count, 0);
    det_buffer_deinit(&bytes);
    client_deinit(&client);
    house_close(&house);
}

/* After the client has shut down its side, only the hang-up is reported. */
static void test_hang_up_is_detected_without_reading(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    client.has_ended = true;
    send_text(&house, &client, GET("/keep"));
    assert_int_equal(client.events, 0);
    http_connection_ready(client.connection, DET_POLL_READ);
    assert_false(client.is_closed);
    client.is_reset = true;
    http_connection_ready(client.connection, DET_POLL_HANGUP);
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);
    house_close(&house);
}

static void test_drain_closes_each_connection_after_its_answer(void **state)
{
    struct client idle, half, kept;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&idle, &house), 0);
    assert_int_equal(client_open(&half, &house), 0);
    assert_int_equal(client_open(&kept, &house), 0);
    send_text(&house, &half, "GET /a HTTP/1.1\r\n");
    send_text(&house, &kept, GET("/keep"));
    http_server_drain(house.server);
    pump(&house, &idle);
    assert_true(idle.is_closed);
    assert_int_equal(http_server_connections(house.server), 2);
    send_text(&house, &half, "Host: a\r\n\r\n");
    assert_has(received(&half), "Connection: close\r\n\r\n/a ");
    assert_true(half.is_closed);
    answer_text(house.kept, 200, "later");
    pump(&house, &kept);
    assert_has(received(&kept), "Connection: close\r\n");
    assert_true(kept.is_closed);
    assert_int_equal(http_server_connections(house.server), 0);
    client_deinit(&idle);
    client_deinit(&half);
    client_deinit(&kept);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_costs_one_read_and_one_write),
        cmocka_unit_test(test_pipelined_requests_are_answered_in_order_and_in_one_write),
        cmocka_unit_test(test_split_input_gives_the_same_answers),
        cmocka_unit_test(test_deferred_answer_precedes_the_next_request),
        cmocka_unit_test(test_disconnect_is_reported_once),
        cmocka_unit_test(test_server_close_notifies_deferred_requests),
        cmocka_unit_test(test_half_closed_client_is_answered_except_for_streams),
        cmocka_unit_test(test_unread_pipelined_answers_stop_reading),
        cmocka_unit_test(test_unauthorized_body_is_not_read),
        cmocka_unit_test(test_late_refusal_skips_the_body),
        cmocka_unit_test(test_expected_continue_is_sent),
        cmocka_unit_test(test_large_requests_grow_the_buffer),
        cmocka_unit_test(test_hang_up_is_detected_without_reading),
        cmocka_unit_test(test_drain_closes_each_connection_after_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
