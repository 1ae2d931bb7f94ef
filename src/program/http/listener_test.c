/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* listener_test.c - listening, admission of connections, and behaviour without descriptors. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "http/real_test.h"

static int connect_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

static void test_unix_socket_reports_the_peer(void **state)
{
    char *folder = det_test_folder(), path[256];
    struct det_error error = { 0 };
    struct house house, other;
    struct stat found;
    int client, mark = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/http", folder);
    house_open(&house, (struct http_limits){ 0 });
    assert_int_equal(listen_path(house.server, path, 0600, &mark, &error), 0);
    assert_string_equal(http_listener_address(house.server, 0), path);
    assert_null(http_listener_address(house.server, 1));
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    client = connect_path(path);
    send_text(client, GET("/"));
    (void)receive(&house, client, "hello");
    assert_string_equal(house.peer, "unix");
    assert_ptr_equal(house.user, &mark);
    assert_true(house.is_trusted);

    house_open(&other, (struct http_limits){ 0 });
    assert_int_equal(listen_path(other.server, path, 0600, NULL, &error), DET_ERR_BUSY);
    assert_non_null(strstr(error.text, "is in use"));
    house_close(&other);
    close(client);
    house_close(&house);
    assert_int_equal(unlink(path), 0);
    det_test_folder_remove(folder);
}

/* A stale socket of a killed server is replaced; a file is not. */
static void test_stale_socket_is_replaced(void **state)
{
    char *folder = det_test_folder(), path[256], text[300];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct det_error error = { 0 };
    struct house house;
    int left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    snprintf(path, sizeof path, "%s/http", folder);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_int_equal(bind(left, (struct sockaddr *)&address, sizeof address), 0);
    close(left);
    house_open(&house, (struct http_limits){ 0 });
    assert_int_equal(listen_path(house.server, path, 0660, NULL, &error), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    det_test_write_file(path, "x", 1);
    assert_int_equal(listen_path(house.server, path, 0660, NULL, &error), DET_ERR_BUSY);
    snprintf(path, sizeof path, "%s/none/http", folder);
    assert_int_equal(listen_path(house.server, path, 0660, NULL, &error), DET_ERR_IO);
    assert_int_equal(error.cause, ENOENT);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(listen_path(house.server, text, 0660, NULL, &error), DET_ERR_INVALID);
    house_close(&house);
    det_test_folder_remove(folder);
}

static void test_addresses_are_read_strictly(void **state)
{
    static const char *const wrong[] = {
        "",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        ":80",
        "127.0.0.1:x",
        "::1:80",
        "[::1]",
        "[::1:80",
        "a:80",
        "[127.0.0.1]x:80",
        "1111111111111111111111111111111111111111111111111111:80",
    };
    struct det_error error = { 0 };
    struct house house;
    char text[64];

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(http_listen(house.server, wrong[i], NULL, &error), DET_ERR_MALFORMED);
    assert_non_null(strstr(error.text, "an address is"));
    snprintf(text, sizeof text, "127.0.0.1:%d", listen_any(&house));
    assert_int_equal(http_listen(house.server, text, NULL, &error), DET_ERR_BUSY);
    assert_int_equal(error.cause, EADDRINUSE);
    assert_int_equal(http_listen(house.server, "localhost:0", NULL, &error), 0);
    assert_int_equal(strncmp(http_listener_address(house.server, 1), "127.0.0.1:", 10), 0);
    house_close(&house);
}

/* Shows nothing if the machine has no IPv6. */
static void test_ipv6_peers_are_counted_by_network(void **state)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    int first = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int second = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct house house;
    const char *text;

    (void)state;
    house_open(&house, (struct http_limits){ .peer_connections_max = 1 });
    if (http_listen(house.server, "[::1]:0", NULL, NULL) == 0) {
        text = http_listener_address(house.server, 0);
        assert_int_equal(strncmp(text, "[::1]:", 6), 0);
        address.sin6_port = htons((uint16_t)strtoul(text + 6, NULL, 10));
        assert_int_equal(connect(first, (struct sockaddr *)&address, sizeof address), 0);
        send_text(first, GET("/token"));
        (void)receive(&house, first, "hello");
        assert_int_equal(strncmp(house.peer, "[::1]:", 6), 0);
        assert_int_equal(connect(second, (struct sockaddr *)&address, sizeof address), 0);
        assert_non_null(strstr(receive(&house, second, NULL), "429 Too Many Requests"));
    }
    close(first);
    close(second);
    house_close(&house);
}

static void test_inherited_listener_is_used(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    int given = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;
    struct det_error error = { 0 };
    struct house house;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    assert_int_equal(http_listen_given(house.server, given, NULL, &error), DET_ERR_INVALID);
    assert_int_equal(http_listen_given(house.server, 12345, NULL, &error), DET_ERR_IO);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(given, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(given, 8), 0);
    assert_int_equal(http_listen_given(house.server, given, NULL, &error), 0);
    client =
        connect_to((int)strtol(strchr(http_listener_address(house.server, 0), ':') + 1, NULL, 10));
    send_text(client, GET("/"));
    (void)receive(&house, client, "hello");
    close(client);
    house_close(&house);
    assert_int_equal(fcntl(given, F_GETFD), -1);
}

/* Like the socket that systemd opens for a port without an address. */
static void test_a_listener_of_both_families_knows_ipv4(void **state)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6 };
    int given = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), client;
    const int off = 0;
    struct house house;

    (void)state;
    if (given < 0)
        skip();
    house_open(&house, (struct http_limits){ 0 });
    assert_int_equal(setsockopt(given, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
    assert_int_equal(bind(given, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(given, 8), 0);
    assert_int_equal(http_listen_given(house.server, given, NULL, NULL), 0);
    client =
        connect_to((int)strtol(strrchr(http_listener_address(house.server, 0), ':') + 1, NULL, 10));
    send_text(client, GET("/"));
    (void)receive(&house, client, "hello");
    assert_int_equal(strncmp(house.peer, "127.0.0.1:", 10), 0);
    close(client);
    house_close(&house);
}

static int come(struct house *house, int port, const char *request)
{
    int descriptor = connect_to(port);

    send_text(descriptor, request);
    (void)receive(house, descriptor, "hello");
    return descriptor;
}

static void test_connections_are_counted_in_all_and_by_address(void **state)
{
    struct house house;
    int port, first, second, third;

    (void)state;
    house_open(&house, (struct http_limits){ .connections_max = 3, .peer_connections_max = 2 });
    port = listen_any(&house);
    first = come(&house, port, GET("/token"));
    second = come(&house, port, GET("/token"));
    third = connect_to(port);
    assert_non_null(strstr(receive(&house, third, NULL), "HTTP/1.1 429 Too Many Requests\r\n"));
    close(third);
    close(second);
    while (http_server_connections(house.server) > 1)
        turn(&house);
    second = come(&house, port, GET("/"));
    close(first);
    close(second);
    house_close(&house);

    house_open(&house, (struct http_limits){ .connections_max = 1 });
    port = listen_any(&house);
    first = come(&house, port, GET("/token"));
    second = connect_to(port);
    assert_non_null(strstr(receive(&house, second, NULL), "too many connections\"}}"));
    close(first);
    close(second);
    house_close(&house);
}

static void test_authenticated_peers_displace_unauthenticated_ones(void **state)
{
    static const struct http_limits limits[] = { { .peer_connections_max = 3 },
                                                 { .connections_max = 3 } };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        int port, known, first, second, third, fourth;
        struct house house;

        house_open(&house, limits[i]);
        port = listen_any(&house);
        known = come(&house, port, GET("/token"));
        first = come(&house, port, GET("/") GET("/keep"));
        second = come(&house, port, GET("/"));
        /* A further client displaces the oldest untrusted one, whatever it does, then the next
         * one. */
        third = come(&house, port, GET("/token"));
        assert_string_equal(receive(&house, first, NULL), "");
        assert_int_equal(house.gone, 1);
        fourth = come(&house, port, GET("/token"));
        assert_string_equal(receive(&house, second, NULL), "");
        assert_int_equal(http_server_connections(house.server), 3);
        send_text(known, GET("/"));
        (void)receive(&house, known, "hello");
        close(known);
        close(first);
        close(second);
        close(third);
        close(fourth);
        house_close(&house);
    }
}

/* An untrusted connection would make room on a full server, but not for this one. */
static void test_peer_over_its_limit_evicts_no_other_peer(void **state)
{
    struct house house;
    int port, first, second, stranger;

    (void)state;
    house_open(&house, (struct http_limits){ .connections_max = 3, .peer_connections_max = 2 });
    port = listen_any(&house);
    first = come(&house, port, GET("/token"));
    second = come(&house, port, GET("/token"));
    stranger = connect_from(2, port);
    send_text(stranger, GET("/"));
    (void)receive(&house, stranger, "hello");
    for (int i = 0; i < 3; i++) {
        int refused = connect_to(port);

        assert_non_null(strstr(receive(&house, refused, NULL), "429 Too Many Requests"));
        close(refused);
    }
    assert_int_equal(http_server_connections(house.server), 3);
    send_text(stranger, GET("/"));
    (void)receive(&house, stranger, "hello");
    close(first);
    close(second);
    close(stranger);
    house_close(&house);
}

static void test_full_server_still_accepts_the_unix_socket(void **state)
{
    char *folder = det_test_folder(), path[256];
    struct house house;
    int port, crowd, local, other;

    (void)state;
    snprintf(path, sizeof path, "%s/http", folder);
    house_open(&house, (struct http_limits){ .connections_max = 1, .local_connections_max = 1 });
    port = listen_any(&house);
    assert_int_equal(listen_path(house.server, path, 0600, NULL, NULL), 0);
    crowd = come(&house, port, GET("/token"));
    local = connect_path(path);
    send_text(local, GET("/"));
    (void)receive(&house, local, "hello");
    /* No local one is closed to make room either. */
    other = connect_to(port);
    assert_non_null(strstr(receive(&house, other, NULL), "503 Service Unavailable"));
    close(other);
    other = connect_path(path);
    assert_non_null(strstr(receive(&house, other, NULL), "503 Service Unavailable"));
    send_text(local, GET("/"));
    (void)receive(&house, local, "hello");
    close(other);
    close(crowd);
    close(local);
    house_close(&house);
    det_test_folder_remove(folder);
}

/* Uses all descriptors of the process but `left`. */
static size_t use_descriptors(int *descriptors, size_t capacity, size_t left)
{
    size_t count = 0;

    while (count < capacity && (descriptors[count] = dup(STDIN_FILENO)) >= 0)
        count++;
    assert_true(count < capacity && count > left && errno == EMFILE);
    while (left-- > 0)
        close(descriptors[--count]);
    return count;
}

static void test_accept_pauses_and_resumes_without_descriptors(void **state)
{
    struct rlimit before, limit;
    int descriptors[128] = { 0 }, first, second, third, port, turns = 0;
    struct house house;
    det_time begin, end;
    size_t count;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    limit = (struct rlimit){ 64, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    count = use_descriptors(descriptors, 128, 2);
    first = connect_to(port);
    second = connect_to(port);
    /* One gets the reason through the reserve descriptor; the other one waits for its turn. */
    assert_non_null(strstr(receive(&house, first, NULL), "no descriptors left"));
    assert_int_equal(http_server_connections(house.server), 0);
    begin = det_loop_now(house.loop);
    end = begin + 50 * DET_MILLISECOND;
    while (det_loop_now(house.loop) < end) {
        assert_true(det_loop_turn(house.loop, end) >= 0);
        turns++;
    }
    assert_true(turns < 10 + (det_loop_now(house.loop) - begin) / (10 * DET_MILLISECOND));
    while (count > 0)
        close(descriptors[--count]);
    third = connect_to(port);
    send_text(third, GET("/"));
    (void)receive(&house, third, "hello");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(first);
    close(second);
    close(third);
    house_close(&house);
}

/* Untrusted connections release descriptors for the rest of the process, too. */
static void test_untrusted_peers_are_closed_first_without_descriptors(void **state)
{
    struct rlimit before, limit;
    int descriptors[128] = { 0 }, known, stranger, next, port;
    struct house house;
    size_t count;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    known = come(&house, port, GET("/token"));
    stranger = come(&house, port, GET("/"));
    limit = (struct rlimit){ 64, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    count = use_descriptors(descriptors, 128, 1);
    next = come(&house, port, GET("/"));
    assert_string_equal(receive(&house, stranger, NULL), "");
    send_text(known, GET("/"));
    (void)receive(&house, known, "hello");
    while (count > 0)
        close(descriptors[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(known);
    close(stranger);
    close(next);
    house_close(&house);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unix_socket_reports_the_peer),
        cmocka_unit_test(test_stale_socket_is_replaced),
        cmocka_unit_test(test_addresses_are_read_strictly),
        cmocka_unit_test(test_ipv6_peers_are_counted_by_network),
        cmocka_unit_test(test_inherited_listener_is_used),
        cmocka_unit_test(test_a_listener_of_both_families_knows_ipv4),
        cmocka_unit_test(test_connections_are_counted_in_all_and_by_address),
        cmocka_unit_test(test_authenticated_peers_displace_unauthenticated_ones),
        cmocka_unit_test(test_peer_over_its_limit_evicts_no_other_peer),
        cmocka_unit_test(test_full_server_still_accepts_the_unix_socket),
        cmocka_unit_test(test_accept_pauses_and_resumes_without_descriptors),
        cmocka_unit_test(test_untrusted_peers_are_closed_first_without_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
