/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_test.h - a server over real sockets, and its clients, all on the thread of the test. */
#ifndef DET_HTTP_REAL_TEST_H
#define DET_HTTP_REAL_TEST_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/http_internal.h"
#include "lib/test.h"

#define PATIENCE  (10 * DET_MINUTE) /* for what hangs */
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

static inline void on_gone(void *user)
{
    ((struct house *)user)->gone++;
}

/* /keep is kept, /large has ten megabytes, /token vouches for its client; other paths are answered
 * with "hello". */
static inline void handle(void *context, struct http_exchange *exchange)
{
    static char large[10 << 20];
    const struct http_request *request = http_request(exchange);
    struct http_answer answer = { .status = 200, .body = "hello", .body_size = 5 };
    struct house *house = context;

    house->requests++;
    house->user = request->user;
    house->is_trusted = request->is_trusted;
    snprintf(house->peer, sizeof house->peer, "%s", request->peer);
    if (strcmp(request->path, "/token") == 0)
        http_vouch(exchange);
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

static inline void house_open(struct house *house, struct http_limits limits)
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

static inline void house_close(struct house *house)
{
    http_server_close(house->server);
    det_loop_close(house->loop);
}

static inline int listen_any(struct house *house)
{
    struct det_error error;
    const char *address;

    assert_int_equal(http_listen(house->server, "127.0.0.1:0", NULL, &error), 0);
    address = http_listener_address(house->server, 0);
    assert_int_equal(strncmp(address, "127.0.0.1:", 10), 0);
    return (int)strtol(address + 10, NULL, 10);
}

/* A unix socket at this path. The test removes the path. */
static inline int listen_path(
    struct http_server *server, const char *path, unsigned mode, const void *user,
    struct det_error *reterr)
{
    int descriptor, r;

    r = http_bind_path(path, mode, &descriptor, reterr);
    if (r < 0)
        return r;
    r = http_listen_given(server, descriptor, user, reterr);
    if (r < 0)
        close(descriptor);
    return r;
}

/* From 127.0.0.<host>. */
static inline int connect_from(unsigned host, int port)
{
    struct sockaddr_in from = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host) };
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&address, sizeof address), 0);
    return descriptor;
}

static inline int connect_to(int port)
{
    return connect_from(1, port);
}

static inline void send_text(int descriptor, const char *text)
{
    assert_int_equal(send(descriptor, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static inline void turn(struct house *house)
{
    assert_true(det_loop_turn(house->loop, det_loop_now(house->loop) + 5 * DET_MILLISECOND) >= 0);
}

/* Turns until the client has read `part`, or, with NULL, the end. */
static inline const char *receive(struct house *house, int descriptor, const char *part)
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

#endif
