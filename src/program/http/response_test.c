/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* response_test.c - answers, streams and refusals, to clients that read them or do not. */
#include "http/sim_test.h"

struct form {
    const char *request, *expected;
    bool is_closed;
};

static void test_answers_have_the_form_that_was_asked_for(void **state)
{
    static const struct form forms[] = {
        { "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n",
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 3\r\n\r\n",
          false },
        { "GET /a HTTP/1.0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 3\r\n"
          "Connection: close\r\n\r\n/a ",
          true },
        { "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 3\r\n"
          "Connection: keep-alive\r\n\r\n/a ",
          false },
        { "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 3\r\n"
          "Connection: close\r\n\r\n/a ",
          true },
        { GET("/close"),
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 7\r\n"
          "Connection: close\r\n\r\n/close ",
          true },
        { GET("/none"), "HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
          false },
        { GET("/h"),
          "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Length: 3\r\n"
          "X-Good: a b\r\n\r\n/h ",
          false },
        { GET("/secret"),
          "HTTP/1.1 401 Unauthorized\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
          "Content-Length: 2\r\n\r\nno",
          false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct client client;
        struct house house;

        house_open(&house);
        assert_int_equal(client_open(&client, &house), 0);
        send_text(&house, &client, forms[i].request);
        assert_string_equal(received(&client), forms[i].expected);
        assert_int_equal(client.is_closed, forms[i].is_closed);
        client_deinit(&client);
        house_close(&house);
    }
}

static void test_a_stream_goes_in_chunks_or_until_the_end(void **state)
{
    struct client client;
    struct house house;
    const char *text;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    text = received(&client);
    assert_has(text, "Transfer-Encoding: chunked\r\n");
    assert_null(strstr(text, "Content-Length"));
    assert_int_equal(http_write(house.kept, "hello", 5), 0);
    assert_int_equal(http_write(house.kept, "", 0), 0);
    assert_int_equal(http_write(house.kept, "0123456789abcdef", 16), 0);
    assert_int_equal(http_waiting(house.kept), 32);
    assert_string_equal(received(&client), "");
    pump(&house, &client);
    assert_string_equal(received(&client), "5\r\nhello\r\n10\r\n0123456789abcdef\r\n");
    assert_int_equal(http_waiting(house.kept), 0);
    http_end(house.kept);
    pump(&house, &client);
    assert_string_equal(received(&client), "0\r\n\r\n");
    send_text(&house, &client, GET("/a"));
    assert_string_equal(bodies(&client), "/a |");

    pass(&house, &client, DET_SECOND);
    send_text(&house, &client, GET("/stream?first"));
    assert_has(received(&client), "\r\n\r\n5\r\nfirst\r\n");
    http_end(house.kept);
    pump(&house, &client);
    assert_string_equal(received(&client), "0\r\n\r\n");

    send_text(&house, &client, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)received(&client);
    assert_int_equal(http_write(house.kept, "hello", 5), 0);
    http_end(house.kept);
    pump(&house, &client);
    assert_string_equal(received(&client), "");

    send_text(&house, &client, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_has(received(&client), "Connection: close\r\n\r\n");
    assert_int_equal(http_write(house.kept, "hello", 5), 0);
    http_end(house.kept);
    pump(&house, &client);
    assert_string_equal(received(&client), "hello");
    assert_true(client.is_closed);
    client_deinit(&client);
    house_close(&house);
}

static void test_every_answer_has_the_headers_of_the_server(void **state)
{
    static const struct http_header headers[] = { { "X-Own", "1" }, { "X-Good", "never" } };
    static const char *const requests[] = { GET("/h"), GET("/secret"), GET("/stream"),
                                            "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" };

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const char *good = i == 0 ? "X-Good: a b\r\n" : "X-Good: never\r\n";
        struct client client;
        struct house house;
        const char *text;

        house_open(&house);
        house.server->options.headers = headers;
        house.server->options.header_count = 2;
        assert_int_equal(client_open(&client, &house), 0);
        send_text(&house, &client, requests[i]);
        text = received(&client);
        assert_has(text, "X-Own: 1\r\n");
        assert_has(text, good);
        assert_null(strstr(strstr(text, "X-Good") + 1, "X-Good"));
        client_deinit(&client);
        house_close(&house);
    }
}

static void test_unread_stream_is_closed(void **state)
{
    static char data[1000];
    struct client client;
    struct house house;
    int r = 0, count = 0;

    (void)state;
    assert_int_equal(house_open_with(&house, NULL, (struct http_limits){ .unread_max = 10000 }), 0);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    client.window = 0;
    while (r == 0 && count < 100) {
        r = http_write(house.kept, data, sizeof data);
        count++;
    }
    assert_int_equal(r, DET_ERR_CLOSED);
    assert_int_equal(count, 10);
    assert_int_equal(http_write(house.kept, data, 1), DET_ERR_CLOSED);
    assert_int_equal(house.gone, 0);
    pump(&house, &client);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);
    house_close(&house);
}

static void test_one_write_may_exceed_the_unread_limit(void **state)
{
    static char data[20000];
    struct client client;
    struct house house;

    (void)state;
    assert_int_equal(house_open_with(&house, NULL, (struct http_limits){ .unread_max = 10000 }), 0);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(http_waiting(house.kept), 0);
        assert_int_equal(http_write(house.kept, data, sizeof data), 0);
        pump(&house, &client);
    }
    client.window = 0;
    assert_int_equal(http_write(house.kept, data, sizeof data), 0);
    assert_int_equal(http_write(house.kept, data, 1), DET_ERR_CLOSED);
    pump(&house, &client);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);
    house_close(&house);
}

static void test_stream_drain_is_reported(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    assert_int_equal(house.drained, 1); /* of its head */
    client.window = 3;
    assert_int_equal(http_write(house.kept, "hello", 5), 0);
    pump(&house, &client);
    assert_int_equal(client.events, DET_POLL_READ | DET_POLL_WRITE);
    assert_int_equal(house.drained, 1);
    client.window = 2;
    pump(&house, &client);
    assert_int_equal(house.drained, 1);
    client.window = NO_WINDOW;
    house.ends_when_drained = true;
    pump(&house, &client);
    assert_int_equal(house.drained, 2);
    assert_int_equal(client.events, DET_POLL_READ);
    assert_has(received(&client), "5\r\nhello\r\n0\r\n\r\n");
    send_text(&house, &client, GET("/a"));
    assert_string_equal(bodies(&client), "/a |");
    client_deinit(&client);
    house_close(&house);
}

static void test_static_data_wait_for_a_slow_reader(void **state)
{
    struct client client;
    struct house house;
    const char *text;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    client.window = 10;
    send_text(&house, &client, GET("/static") GET("/a"));
    for (size_t window = 7; client.events & DET_POLL_WRITE; window *= 3) {
        client.window = window;
        pump(&house, &client);
    }
    client.window = NO_WINDOW;
    pump(&house, &client);
    text = received(&client);
    assert_int_equal(strspn(strstr(text, "\r\n\r\n") + 4, "s"), 100000);
    assert_has(text, "sssHTTP/1.1 200 OK\r\n");
    assert_has(text, "\r\n\r\n/a ");
    client_deinit(&client);
    house_close(&house);
}

static void test_refusal_has_a_message_and_closes(void **state)
{
    struct client client;
    struct house house;
    const char *text;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/a") "GET / HTTP/3.0\r\n" GET("/b"));
    text = received(&client);
    assert_has(text, "HTTP/1.1 505 HTTP Version Not Supported\r\n");
    assert_has(text, "Content-Type: application/json\r\n");
    assert_has(text, "Connection: close\r\n");
    assert_has(
        text, "\r\n\r\n{\"error\":{\"code\":\"UNSUPPORTED\",\"text\":"
              "\"only HTTP/1.1 and HTTP/1.0 are supported\"}}\n");
    assert_null(strstr(text, "/b"));
    assert_has(det_buffer_text(&house.seen), "= 505 - only HTTP/1.1 and HTTP/1.0 are supported\n");
    /* The server reads on until the client has seen that. */
    assert_true(client.is_ended);
    assert_false(client.is_closed);
    send_text(&house, &client, GET("/c"));
    assert_false(client.is_closed);
    client.has_ended = true;
    pump(&house, &client);
    assert_true(client.is_closed);
    assert_string_equal(received(&client), "");
    client_deinit(&client);
    house_close(&house);
}

/* No event would ever report it again. */
static void test_connection_that_cannot_be_watched_is_closed(void **state)
{
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, GET("/stream"));
    client.window = 0;
    client.fails_watch = true;
    assert_int_equal(http_write(house.kept, "hello", 5), 0);
    while (det_loop_turn(house.loop, 0) > 0)
        continue;
    assert_true(client.is_closed);
    assert_int_equal(house.gone, 1);
    client_deinit(&client);

    client = (struct client){ .fails_watch = true };
    assert_true(
        http_connection_open(
            house.server, &client_io, &client, &(struct http_origin){ .peer = "client" },
            &client.connection) < 0);
    assert_int_equal(http_server_connections(house.server), 0);
    house_close(&house);
}

/* Reading after a refusal ends. */
static void test_refused_client_that_keeps_sending_is_closed(void **state)
{
    static char more[HTTP_LINGER_BYTES + 65536];
    struct client client;
    struct house house;

    (void)state;
    house_open(&house);
    assert_int_equal(client_open(&client, &house), 0);
    send_text(&house, &client, "?");
    assert_true(client.is_ended);
    print_bytes(&house, &client, more, HTTP_LINGER_BYTES / 2);
    assert_false(client.is_closed);
    print_bytes(&house, &client, more, sizeof more);
    assert_true(client.is_closed);
    client_deinit(&client);
    house_close(&house);
}

/* Large bodies and unread answers of all connections share one limit of memory. */
static void test_connections_share_a_limit_of_memory(void **state)
{
    static char bytes[60000];
    struct client clients[20];
    unsigned refused = 0, cut = 0;
    struct house house;

    (void)state;
    assert_int_equal(
        house_open_with(&house, NULL, (struct http_limits){ .memory_max = 300000 }), 0);
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(client_open(&clients[i], &house), 0);
        send_text(
            &house, &clients[i], "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n");
        print_bytes(&house, &clients[i], bytes, sizeof bytes);
        assert_true(house.server->memory <= 300000);
        refused += clients[i].is_ended;
        if (clients[i].is_ended)
            assert_has(received(&clients[i]), "503 Service Unavailable\r\n");
    }
    assert_true(refused >= 10 && refused < 20);
    for (int i = 0; i < 20; i++)
        client_deinit(&clients[i]);
    assert_int_equal(house.server->memory, 0);

    for (int i = 0; i < 20; i++) {
        assert_int_equal(client_open(&clients[i], &house), 0);
        send_text(&house, &clients[i], GET("/stream"));
        clients[i].window = 0;
        assert_int_equal(http_write(house.kept, bytes, sizeof bytes), 0);
        pump(&house, &clients[i]);
        assert_true(house.server->memory <= 300000);
        cut += clients[i].is_closed;
    }
    assert_true(cut >= 10 && cut < 20);
    assert_int_equal(house.gone, cut);
    for (int i = 0; i < 20; i++)
        client_deinit(&clients[i]);
    assert_int_equal(house.server->memory, 0);
    house_close(&house);
}

/* Whichever allocation fails, answers are complete or the connection is cut, and nothing leaks. */
static int serve_all(struct det_test_memory *memory, void *argument)
{
    struct client client;
    struct house house;
    bool is_complete = false;
    int r;

    (void)argument;
    r = house_open_with(&house, &memory->allocator, (struct http_limits){ 0 });
    if (r == 0) {
        r = client_open(&client, &house);
        if (r == 0) {
            struct det_buffer bytes;

            det_buffer_init(&bytes, NULL);
            det_buffer_format(
                &bytes,
                GET("/a") "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n"
                          "%040000d" GET("/stream"),
                1);
            print_bytes(&house, &client, bytes.data, bytes.size);
            if (house.kept && http_write(house.kept, bytes.data, bytes.size) == 0)
                pump(&house, &client);
            is_complete = house.kept && client.got.size > 80000;
            assert_true(is_complete || client.is_closed || client.is_ended);
            det_buffer_deinit(&bytes);
            client_deinit(&client);
        }
    }
    house_close(&house);
    if (r == 0 && !is_complete)
        r = DET_ERR_NO_MEMORY;
    return r;
}

static void test_allocation_failure_closes_only_its_connection(void **state)
{
    (void)state;
    det_test_each_failure(serve_all, NULL);
}

static void test_the_body_of_an_error_is_json_whatever_its_text(void **state)
{
    char body[HTTP_ERROR_BODY], text[1000];
    size_t size;

    (void)state;
    size = http_error_body(body, "REFUSED", "no \"way\"\\\n");
    assert_int_equal(size, strlen(body));
    assert_string_equal(
        body, "{\"error\":{\"code\":\"REFUSED\",\"text\":\"no \\\"way\\\"\\\\\\n\"}}\n");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    size = http_error_body(body, "REFUSED", text);
    assert_int_equal(size, strlen(body));
    assert_int_equal(size, HTTP_ERROR_BODY - 1);
    assert_string_equal(body + size - 5, "a\"}}\n");
    /* A text is cut between escapes. */
    memset(text, '"', sizeof text - 1);
    size = http_error_body(body, "REFUSED", text);
    assert_in_range(size, HTTP_ERROR_BODY - 2, HTTP_ERROR_BODY - 1);
    assert_string_equal(body + size - 6, "\\\"\"}}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_have_the_form_that_was_asked_for),
        cmocka_unit_test(test_a_stream_goes_in_chunks_or_until_the_end),
        cmocka_unit_test(test_every_answer_has_the_headers_of_the_server),
        cmocka_unit_test(test_unread_stream_is_closed),
        cmocka_unit_test(test_one_write_may_exceed_the_unread_limit),
        cmocka_unit_test(test_stream_drain_is_reported),
        cmocka_unit_test(test_static_data_wait_for_a_slow_reader),
        cmocka_unit_test(test_refusal_has_a_message_and_closes),
        cmocka_unit_test(test_connection_that_cannot_be_watched_is_closed),
        cmocka_unit_test(test_refused_client_that_keeps_sending_is_closed),
        cmocka_unit_test(test_connections_share_a_limit_of_memory),
        cmocka_unit_test(test_allocation_failure_closes_only_its_connection),
        cmocka_unit_test(test_the_body_of_an_error_is_json_whatever_its_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
