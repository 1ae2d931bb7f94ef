/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_server_test.c - the server over real sockets: where it listens, whom it lets in, what it
 * does without descriptors. Client and server share the thread of the test. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "console/http_parts.h"
#include "lib/test.h"

#define PATIENCE  (20 * DET_SECOND) /* for what hangs */
#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

struct house {
    struct det_loop *loop;
    struct http_server *server;
    struct http_exchange *kept;
    unsigned gone;
    unsigned requests;
    char peer[HTTP_PEER_TEXT];
    const void *user;
    bool is_trusted;
};

static void on_gone(void *user)
{
    ((struct house *)user)->gone++;
}

/* /keep is kept, /large has ten megabytes; anything else is answered with "hello". */
static void handle(void *context, struct http_exchange *exchange)
{
    static char large[10 << 20];
    const struct http_request *request = http_request(exchange);
    struct http_answer answer = { .status = 200, .body = "hello", .body_size = 5 };
    struct house *house = context;

    house->requests++;
    house->user = request->user;
    house->is_trusted = request->is_trusted;
    snprintf(house->peer, sizeof house->peer, "%s", request->peer);
    if (strcmp(request->path, "/keep") == 0) {
        house->kept = exchange;
        http_keep(exchange, on_gone, NULL, house);
        return;
    }
    if (strcmp(request->path, "/large") == 0) {
        answer.body = large;
        answer.body_size = sizeof large;
        answer.is_static = true;
    }
    http_answer(exchange, &answer);
}

static void house_open(struct house *house, struct http_limits limits)
{
    *house = (struct house){ 0 };
    assert_int_equal(det_loop_open(NULL, NULL, &house->loop), 0);
    assert_int_equal(
        http_server_open(
            &(struct http_options){
                .loop = house->loop, .limits = limits, .handle = handle, .context = house },
            &house->server, NULL),
        0);
}

static void house_close(struct house *house)
{
    http_server_close(house->server);
    det_loop_close(house->loop);
}

static int listen_any(struct house *house)
{
    struct det_error error;
    const char *address;

    assert_int_equal(http_listen(house->server, "127.0.0.1:0", NULL, &error), 0);
    address = http_listener_address(house->server, 0);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    return (int)strtol(address + 10, NULL, 10);
}

static int connect_to(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

static void say(int descriptor, const char *text)
{
    assert_int_equal(send(descriptor, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void turn(struct house *house)
{
    assert_true(det_loop_turn(house->loop, det_loop_now(house->loop) + 5 * DET_MILLISECOND) >= 0);
}

/* Turns until the client has read `part`, or, with NULL, the end. */
static const char *hear(struct house *house, int descriptor, const char *part)
{
    static char text[65536];
    det_time end = det_loop_now(house->loop) + PATIENCE;
    size_t size = 0;
    ssize_t got = -1;

    text[0] = '\0';
    while (part ? !strstr(text, part) : got != 0) {
        if (det_loop_now(house->loop) > end)
            fail_msg("\"%s\" did not come, but \"%s\"", part ? part : "the end", text);
        turn(house);
        got = recv(descriptor, text + size, sizeof text - 1 - size, MSG_DONTWAIT);
        if (got == 0 && part)
            fail_msg("the end came after \"%s\"", text);
        if (got < 0 && errno != EAGAIN)
            break;
        size += got > 0 ? (size_t)got : 0;
        text[size] = '\0';
    }
    return text;
}

static void test_a_client_is_answered_over_tcp(void **state)
{
    struct house house;
    int client;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    client = connect_to(listen_any(&house));
    for (int i = 0; i < 3; i++) {
        say(client, GET("/"));
        (void)hear(&house, client, "hello");
    }
    assert_int_equal(strncmp(house.peer, "127.0.0.1:", 10), 0);
    assert_false(house.is_trusted);
    assert_int_equal(http_server_connections(house.server), 1);
    close(client);
    while (http_server_connections(house.server) > 0)
        turn(&house);
    house_close(&house);
}

static int connect_path(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

static void test_a_unix_socket_knows_who_is_there(void **state)
{
    char *folder = det_test_folder(), path[256];
    struct det_error error = { 0 };
    struct house house, other;
    struct stat found;
    int client, mark = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/http", folder);
    house_open(&house, (struct http_limits){ 0 });
    assert_int_equal(http_listen_path(house.server, path, 0600, &mark, &error), 0);
    assert_string_equal(http_listener_address(house.server, 0), path);
    assert_null(http_listener_address(house.server, 1));
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    client = connect_path(path);
    say(client, GET("/"));
    (void)hear(&house, client, "hello");
    assert_string_equal(house.peer, "unix");
    assert_ptr_equal(house.user, &mark);
    assert_true(house.is_trusted);

    house_open(&other, (struct http_limits){ 0 });
    assert_int_equal(http_listen_path(other.server, path, 0600, NULL, &error), DET_ERR_BUSY);
    assert_non_null(strstr(error.text, "is in use"));
    house_close(&other);
    close(client);
    house_close(&house);
    assert_int_equal(stat(path, &found), -1);
    det_test_folder_remove(folder);
}

/* What a server that was killed has left is replaced; a file is not. */
static void test_a_socket_that_nobody_answers_at_is_replaced(void **state)
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
    assert_int_equal(http_listen_path(house.server, path, 0660, NULL, &error), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    det_test_write_file(path, "x", 1);
    assert_int_equal(http_listen_path(house.server, path, 0660, NULL, &error), DET_ERR_BUSY);
    snprintf(path, sizeof path, "%s/none/http", folder);
    assert_int_equal(http_listen_path(house.server, path, 0660, NULL, &error), DET_ERR_IO);
    assert_int_equal(error.cause, ENOENT);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(http_listen_path(house.server, text, 0660, NULL, &error), DET_ERR_INVALID);
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
        assert_int_equal(http_listen(house.server, wrong[i], NULL, &error), DET_ERR_INVALID);
    assert_non_null(strstr(error.text, "is not an address to listen at"));
    snprintf(text, sizeof text, "127.0.0.1:%d", listen_any(&house));
    assert_int_equal(http_listen(house.server, text, NULL, &error), DET_ERR_BUSY);
    assert_int_equal(error.cause, EADDRINUSE);
    assert_int_equal(http_listen(house.server, "localhost:0", NULL, &error), 0);
    assert_int_equal(strncmp(http_listener_address(house.server, 1), "127.0.0.1:", 10), 0);
    house_close(&house);
}

/* Where there is no IPv6, nothing is shown. */
static void test_ipv6_is_listened_at_and_counted_by_networks(void **state)
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
        say(first, GET("/"));
        (void)hear(&house, first, "hello");
        assert_int_equal(strncmp(house.peer, "[::1]:", 6), 0);
        assert_int_equal(connect(second, (struct sockaddr *)&address, sizeof address), 0);
        assert_non_null(strstr(hear(&house, second, NULL), "429 Too Many Requests"));
    }
    close(first);
    close(second);
    house_close(&house);
}

static void test_a_listener_can_be_given(void **state)
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
    say(client, GET("/"));
    (void)hear(&house, client, "hello");
    close(client);
    house_close(&house);
    assert_int_equal(fcntl(given, F_GETFD), -1);
}

/* As systemd gives one for a port without an address. */
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
    say(client, GET("/"));
    (void)hear(&house, client, "hello");
    assert_int_equal(strncmp(house.peer, "127.0.0.1:", 10), 0);
    close(client);
    house_close(&house);
}

static void test_connections_are_counted_in_all_and_by_address(void **state)
{
    struct house house;
    int port, first, second, third;

    (void)state;
    house_open(&house, (struct http_limits){ .connections_max = 3, .peer_connections_max = 2 });
    port = listen_any(&house);
    first = connect_to(port);
    say(first, GET("/"));
    (void)hear(&house, first, "hello");
    second = connect_to(port);
    say(second, GET("/"));
    (void)hear(&house, second, "hello");
    third = connect_to(port);
    assert_non_null(strstr(hear(&house, third, NULL), "HTTP/1.1 429 Too Many Requests\r\n"));
    close(third);
    close(second);
    while (http_server_connections(house.server) > 1)
        turn(&house);
    second = connect_to(port);
    say(second, GET("/"));
    (void)hear(&house, second, "hello");
    close(first);
    close(second);
    house_close(&house);

    house_open(&house, (struct http_limits){ .connections_max = 1 });
    port = listen_any(&house);
    first = connect_to(port);
    say(first, GET("/"));
    (void)hear(&house, first, "hello");
    second = connect_to(port);
    assert_non_null(strstr(hear(&house, second, NULL), "there are too many connections\"}}"));
    close(first);
    close(second);
    house_close(&house);
}

/* As many descriptors as the process may have, but `left`. */
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

static void test_without_descriptors_accepting_rests_and_goes_on(void **state)
{
    struct rlimit before, limit;
    int descriptors[128], first, second, third, port, turns = 0;
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
    /* One is told through the descriptor in reserve; the other one waits for its turn to be. */
    assert_non_null(strstr(hear(&house, first, NULL), "no descriptors left"));
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
    say(third, GET("/"));
    (void)hear(&house, third, "hello");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(first);
    close(second);
    close(third);
    house_close(&house);
}

static void test_a_client_that_leaves_in_the_middle_of_an_answer_harms_nobody(void **state)
{
    const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
    struct house house;
    int port, first, second;
    char byte;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    first = connect_to(port);
    say(first, GET("/large"));
    while (recv(first, &byte, 1, MSG_DONTWAIT) != 1)
        turn(&house);
    assert_int_equal(setsockopt(first, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(first);
    second = connect_to(port);
    say(second, GET("/keep"));
    while (!house.kept)
        turn(&house);
    close(second);
    second = connect_to(port);
    say(second, GET("/"));
    (void)hear(&house, second, "hello");
    /* The one that is kept has only ended its side, as far as anybody can tell. */
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
    say(client, "GET /large HTTP/1.0\r\n\r\n");
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

/* Five megabytes of body to who takes one: the answer is seen all the same. */
static void test_who_sends_too_much_sees_why_not(void **state)
{
    static char body[5 << 20];
    struct house house;
    size_t sent = 0;
    int client;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    client = connect_to(listen_any(&house));
    say(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5242880\r\n\r\n");
    while (sent < 500000) {
        ssize_t size = send(client, body, 100000, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(size > 0 || errno == EAGAIN);
        sent += size > 0 ? (size_t)size : 0;
        turn(&house);
    }
    assert_non_null(strstr(hear(&house, client, NULL), "HTTP/1.1 413 Content Too Large\r\n"));
    close(client);
    while (http_server_connections(house.server) > 0)
        turn(&house);
    house_close(&house);
}

static void test_a_drained_server_is_not_there_any_more(void **state)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    struct house house;
    int port, idle, other;

    (void)state;
    house_open(&house, (struct http_limits){ 0 });
    port = listen_any(&house);
    idle = connect_to(port);
    say(idle, GET("/"));
    (void)hear(&house, idle, "hello");
    http_server_drain(house.server);
    assert_string_equal(hear(&house, idle, NULL), "");
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
        r = http_listen_path(house.server, argument, 0600, NULL, &error);
    if (r == 0) {
        client = connect_to((int)strtol(http_listener_address(house.server, 0) + 10, NULL, 10));
        say(client, "GET / HTTP/1.0\r\n\r\n");
        if (!strstr(hear(&house, client, NULL), "hello"))
            r = DET_ERR_NO_MEMORY;
        close(client);
    }
    http_server_close(house.server);
    det_loop_close(house.loop);
    assert_int_equal(access(argument, F_OK), -1);
    return r;
}

static void test_without_memory_it_is_refused_or_cut(void **state)
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
        cmocka_unit_test(test_a_unix_socket_knows_who_is_there),
        cmocka_unit_test(test_a_socket_that_nobody_answers_at_is_replaced),
        cmocka_unit_test(test_addresses_are_read_strictly),
        cmocka_unit_test(test_ipv6_is_listened_at_and_counted_by_networks),
        cmocka_unit_test(test_a_listener_can_be_given),
        cmocka_unit_test(test_a_listener_of_both_families_knows_ipv4),
        cmocka_unit_test(test_connections_are_counted_in_all_and_by_address),
        cmocka_unit_test(test_without_descriptors_accepting_rests_and_goes_on),
        cmocka_unit_test(test_a_client_that_leaves_in_the_middle_of_an_answer_harms_nobody),
        cmocka_unit_test(test_a_large_answer_comes_whole),
        cmocka_unit_test(test_who_sends_too_much_sees_why_not),
        cmocka_unit_test(test_a_drained_server_is_not_there_any_more),
        cmocka_unit_test(test_without_memory_it_is_refused_or_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
