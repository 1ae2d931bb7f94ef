/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* sim_test.h - a server in a simulated world, for the suites of connections. */
#ifndef DET_HTTP_SIM_TEST_H
#define DET_HTTP_SIM_TEST_H

#include <detent/sim.h>

#include "http/peer_test.h"
#include "lib/test.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

struct house {
    struct det_sim *sim;
    struct det_loop *loop;
    struct http_server *server;
    struct det_buffer seen; /* log of the handler and of `done` */
    struct http_exchange *kept;
    unsigned gone, drained;
    bool ends_when_drained;
};

static inline void house_on_gone(void *user)
{
    struct house *house = user;

    house->kept = NULL;
    house->gone++;
}

static inline void house_on_drained(void *user)
{
    struct house *house = user;

    house->drained++;
    if (!house->ends_when_drained)
        return;
    http_end(house->kept);
    house->kept = NULL;
}

static inline void answer_text(struct http_exchange *exchange, unsigned status, const char *text)
{
    http_answer(
        exchange,
        &(struct http_answer){
            .status = status, .type = "text/plain", .body = text, .body_size = strlen(text) });
}

/* /keep is answered later, /stream is begun, /static has a body of 100,000 bytes that stays, /close
 * closes; of anything else, path and body are the answer. */
static inline void house_handle(void *context, struct http_exchange *exchange)
{
    static char large[100000];
    static const struct http_header headers[] = { { "X-Good", "a b" }, { "X-Bad", "a\r\nb: c" } };
    const struct http_request *request = http_request(exchange);
    struct house *house = context;
    struct det_buffer text;

    det_buffer_format(
        &house->seen, "%s %s %zu\n", request->method_name, request->path, request->body_size);
    if (strcmp(request->path, "/keep") == 0 || strcmp(request->path, "/stream") == 0) {
        http_keep(exchange, house_on_gone, house_on_drained, house);
        house->kept = exchange;
        if (request->path[1] == 's')
            http_begin(
                exchange, &(struct http_answer){ .status = 200,
                                                 .type = "text/plain",
                                                 .body = request->query,
                                                 .body_size = strlen(request->query) });
        return;
    }
    if (strcmp(request->path, "/static") == 0) {
        memset(large, 's', sizeof large);
        http_answer(
            exchange,
            &(struct http_answer){
                .status = 200, .body = large, .body_size = sizeof large, .is_static = true });
        return;
    }
    det_buffer_init(&text, NULL);
    det_buffer_format(&text, "%s %s", request->path, request->body);
    http_answer(
        exchange, &(struct http_answer){ .status = strcmp(request->path, "/none") ? 200 : 204,
                                         .headers = headers,
                                         .header_count = strcmp(request->path, "/h") ? 0 : 2,
                                         .body = text.data,
                                         .body_size = text.size,
                                         .close_wanted = strcmp(request->path, "/close") == 0 });
    det_buffer_deinit(&text);
}

/* /secret is refused by its headers; /guess is refused later. */
static inline unsigned house_admit(
    void *context, struct http_exchange *exchange, struct http_answer *ret)
{
    const struct http_request *request = http_request(exchange);
    struct house *house = context;

    if (strcmp(request->path, "/guess") == 0) {
        http_keep(exchange, house_on_gone, house_on_drained, house);
        house->kept = exchange;
        return HTTP_LATER;
    }
    if (strcmp(request->path, "/secret") != 0)
        return 0;
    *ret = (struct http_answer){ .body = "no", .body_size = 2 };
    return 401;
}

static inline void house_done(void *context, const struct http_done *done)
{
    struct house *house = context;

    det_buffer_format(
        &house->seen, "= %u %s %s\n", done->status, done->request ? done->request->path : "-",
        done->why_not ? done->why_not : "");
}

static inline int house_open_with(
    struct house *house, const struct det_allocator *allocator, struct http_limits limits)
{
    const struct http_options options = {
        .allocator = allocator,
        .limits = limits,
        .handle = house_handle,
        .admit = house_admit,
        .done = house_done,
        .context = house,
    };
    struct http_options all = options;

    *house = (struct house){ 0 };
    det_buffer_init(&house->seen, NULL);
    assert_int_equal(det_sim_open(NULL, &house->sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(house->sim), NULL, &house->loop), 0);
    all.loop = house->loop;
    return http_server_open(&all, &house->server, NULL);
}

static inline void house_open(struct house *house)
{
    assert_int_equal(house_open_with(house, NULL, (struct http_limits){ 0 }), 0);
}

static inline void house_close(struct house *house)
{
    http_server_close(house->server);
    det_loop_close(house->loop);
    det_sim_close(house->sim);
    det_buffer_deinit(&house->seen);
}

static inline int client_open(struct client *client, struct house *house)
{
    return client_init(client, house->server, house->loop);
}

static inline void pump(struct house *house, struct client *client)
{
    (void)house;
    client_pump(client);
}

static inline void print_bytes(
    struct house *house, struct client *client, const char *bytes, size_t size)
{
    det_buffer_append(&client->sent, bytes, size);
    pump(house, client);
}

static inline void send_text(struct house *house, struct client *client, const char *text)
{
    print_bytes(house, client, text, strlen(text));
}

/* Advances virtual time and runs what is due. */
static inline void pass(struct house *house, struct client *client, det_time span)
{
    det_time end = det_loop_now(house->loop) + span;

    while (det_loop_now(house->loop) < end)
        assert_true(det_loop_turn(house->loop, end) >= 0);
    if (client)
        pump(house, client);
}

/* Returns what the client has received since the last call. */
static inline const char *received(struct client *client)
{
    static char text[1 << 18];

    assert_true(client->got.size < sizeof text);
    memcpy(text, det_buffer_text(&client->got), client->got.size + 1);
    det_buffer_clear(&client->got);
    return text;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%.400s\" has no \"%s\"", text, part);
}

/* Returns the bodies without heads, in order, each followed by a bar. */
static inline const char *bodies(struct client *client)
{
    static char text[1024];
    const char *at = received(client);
    size_t size = 0;

    while ((at = strstr(at, "\r\n\r\n"))) {
        size_t length = strcspn(at + 4, "H");

        assert_true(size + length + 2 < sizeof text);
        memcpy(text + size, at + 4, length);
        size += length;
        text[size++] = '|';
        at += 4;
    }
    text[size] = '\0';
    return text;
}

#endif
