/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* server_test.c - the server over real sockets: answers, clients that leave, drains. */
#include "http/real_test.h"

static void test_a_client_is_answered_over_tcp(void **state)
{
    struct house house;
    int client;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    client = connect_to(listen_any(&house));
    for (int i = 0; i < 3; i++) {
        send_text(client, GET("/"));
        (void)receive(&house, client, "hello");
    }
    assert_int_equal(strncmp(house.peer, "127.0.0.1:", 10), 0);
    assert_false(house.is_trusted);
    assert_int_equal(http_server_connections(house.server), 1);
    close(client);
    while (http_server_connections(house.server) > 0)
        turn(&house);
    house_close(&house);
}

static void test_client_reset_during_an_answer_affects_no_other(void **state)
{
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    struct house house;
    int port, first, second;
    char byte;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    first = connect_to(port);
    send_text(first, GET("/large"));
    while (recv(first, &byte, 1, MSG_DONTWAIT) != 1)
        turn(&house);
    assert_int_equal(setsockopt(first, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(first);
    second = connect_to(port);
    send_text(second, GET("/keep"));
    while (!house.kept)
        turn(&house);
    close(second);
    second = connect_to(port);
    send_text(second, GET("/"));
    (void)receive(&house, second, "hello");
    /* The kept client has only shut down its side. */
    http_answer(house.kept, &(struct http_answer){ .status = 204 });
    while (http_server_connections(house.server) > 1)
        turn(&house);
    assert_int_equal(house.gone, 0);
    close(second);
    house_close(&house);
}

static void test_a_large_answer_comes_whole(void **state)
{
    static char bytes[1 << 16];
    struct house house;
    size_t total = 0;
    ssize_t size;
    int client;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    client = connect_to(listen_any(&house));
    send_text(client, "GET /large HTTP/1.0\r\n\r\n");
    for (;;) {
        size = recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
        if (size == 0)
            break;
        if (size > 0)
            total += (size_t)size;
        else
            turn(&house);
    }
    assert_true(total > 10 << 20 && total < (10 << 20) + 1000);
    close(client);
    house_close(&house);
}

/* Sends five megabytes of body where one is allowed: the client still sees the answer. */
static void test_oversized_body_gets_its_error_answer(void **state)
{
    static char body[5 << 20];
    struct house house;
    size_t sent = 0;
    int client;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    client = connect_to(listen_any(&house));
    send_text(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5242880\r\n\r\n");
    while (sent < 500000) {
        ssize_t size = send(client, body, 100000, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(size > 0 || errno == EAGAIN);
        sent += size > 0 ? (size_t)size : 0;
        turn(&house);
    }
    assert_non_null(strstr(receive(&house, client, NULL), "HTTP/1.1 413 Content Too Large\r\n"));
    close(client);
    while (http_server_connections(house.server) > 0)
        turn(&house);
    house_close(&house);
}

static void test_drained_server_refuses_connections(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct house house;
    int port, idle, other;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    idle = connect_to(port);
    send_text(idle, GET("/"));
    (void)receive(&house, idle, "hello");
    http_server_drain(house.server);
    assert_string_equal(receive(&house, idle, NULL), "");
    assert_int_equal(http_server_connections(house.server), 0);
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(other, (struct sockaddr *)&address, sizeof address), -1);
    assert_null(http_listener_address(house.server, 0));
    close(idle);
    close(other);
    house_close(&house);
}

static int serve_one(struct det_test_memory *memory, void *argument)
{
    struct house house = { 0 };
    struct det_error error;
    int r, client;

    assert_int_equal(det_loop_open(NULL, NULL, &house.loop), 0);
    r = http_server_open(
        &(struct http_options){ .allocator = &memory->allocator,
                                .loop = house.loop,
                                .handle = handle,
                                .context = &house },
        &house.server, &error);
    if (r == 0)
        r = http_listen(house.server, "127.0.0.1:0", NULL, &error);
    if (r == 0)
        r = listen_path(house.server, argument, 0600, NULL, &error);
    if (r == 0) {
        client = connect_to((int)strtol(http_listener_address(house.server, 0) + 10, NULL, 10));
        send_text(client, "GET / HTTP/1.0\r\n\r\n");
        if (!strstr(receive(&house, client, NULL), "hello"))
            r = DET_ERR_NO_MEMORY;
        close(client);
    }
    http_server_close(house.server);
    det_loop_close(house.loop);
    (void)unlink(argument);
    return r;
}

static void test_allocation_failure_refuses_or_closes(void **state)
{
    char *folder = det_test_folder(), path[256];

    (void)state;
    snprintf(path, sizeof path, "%.200s/http", folder);
    det_test_each_failure(serve_one, path);
    det_test_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_is_answered_over_tcp),
        cmocka_unit_test(test_client_reset_during_an_answer_affects_no_other),
        cmocka_unit_test(test_a_large_answer_comes_whole),
        cmocka_unit_test(test_oversized_body_gets_its_error_answer),
        cmocka_unit_test(test_drained_server_refuses_connections),
        cmocka_unit_test(test_allocation_failure_refuses_or_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
