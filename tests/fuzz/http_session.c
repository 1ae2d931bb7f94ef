/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* http_session.c - fuzz target: a client and a handler that do anything at any time.
 *
 * The input is a list of steps: a byte that says which, and what it needs. The connection must keep
 * its invariants, which it asserts itself; every request that was handed out is over exactly once;
 * what the client gets is a sequence of answers; and nothing is left behind. */
#include <stdlib.h>
#include <string.h>

#include <detent/sim.h>

#include "http/peer_test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

struct session {
    struct det_sim *sim;
    struct det_loop *loop;
    struct http_server *server;
    struct client client;
    struct http_exchange *kept;
    bool is_stream;
    unsigned begun, done, drained;
};

static void on_gone(void *user)
{
    struct session *session = user;

    require(session->kept);
    session->kept = NULL;
}

static void on_drained(void *user)
{
    struct session *session = user;

    require(session->kept && session->is_stream && http_waiting(session->kept) == 0);
    /* Whoever always has more to write would never be through. */
    if (session->begun % 2 && session->drained++ < 10)
        (void)http_write(session->kept, "drained", 7);
}

/* The method says what is done: so any path may come. */
static void handle(void *context, struct http_exchange *exchange)
{
    static const char page[5000];
    const struct http_request *request = http_request(exchange);
    struct session *session = context;
    struct http_answer answer = { .status = 200, .body = page, .body_size = 10 };

    session->begun++;
    require(!session->kept && request->path[0] && request->body[request->body_size] == '\0');
    if (request->method == HTTP_PUT || request->method == HTTP_PATCH) {
        session->kept = exchange;
        session->drained = 0;
        session->is_stream = request->method == HTTP_PATCH;
        http_keep(exchange, on_gone, on_drained, session);
        if (session->is_stream)
            http_begin(exchange, &answer);
        return;
    }
    answer.is_static = request->method == HTTP_DELETE;
    answer.body_size = answer.is_static ? sizeof page : 10;
    answer.close_wanted = request->method == HTTP_OPTIONS;
    http_answer(exchange, &answer);
}

static unsigned admit(void *context, struct http_exchange *exchange, struct http_answer *ret)
{
    const struct http_request *request = http_request(exchange);
    struct session *session = context;

    (void)ret;
    if (request->method != HTTP_METHODS)
        return 0;
    session->begun++;
    if (request->method_name[0] != 'L')
        return 405;
    session->kept = exchange;
    session->drained = 0;
    session->is_stream = false;
    http_keep(exchange, on_gone, on_drained, session);
    return HTTP_LATER;
}

static void count_done(void *context, const struct http_done *done)
{
    struct session *session = context;

    if (done->request)
        session->done++;
    require(session->done <= session->begun);
}

static void finish(struct session *session)
{
    struct http_exchange *exchange = session->kept;

    session->kept = NULL;
    if (session->is_stream)
        http_end(exchange);
    else
        http_answer(exchange, &(struct http_answer){ .status = 204 });
}

static void pass(struct session *session, det_time span)
{
    det_time end = det_loop_now(session->loop) + span;

    while (det_loop_now(session->loop) < end)
        require(det_loop_turn(session->loop, end) >= 0);
}

/* One step; how many bytes of the input it took. */
static size_t step(struct session *session, const uint8_t *data, size_t size)
{
    struct client *client = &session->client;
    size_t part = size > 1 ? data[1] : 0;

    switch (data[0] % 10) {
    case 0:
    case 1:
    case 2:
        if (part > size - 2)
            part = size > 2 ? size - 2 : 0;
        det_buffer_append(&client->sent, data + 2, part);
        client_pump(client);
        return part + 2;
    case 3:
        pass(session, (det_time)part * DET_SECOND / 4);
        return 2;
    case 4:
        client->window = part * 16;
        return 2;
    case 5:
        client->has_ended = true;
        return 1;
    case 6:
        client->is_reset = part % 4 == 0;
        return 2;
    case 7:
        if (session->kept)
            finish(session);
        return 1;
    case 8:
        if (session->kept && session->is_stream)
            (void)http_write(session->kept, data, part < size ? part : size);
        return 2;
    default:
        client->read_max = part;
        if (part == 255)
            http_server_drain(session->server);
        return 2;
    }
}

/* Each answer begins where the one before ended, as far as the client can tell: in chunks there is
 * no other place for a status line. */
static void check_output(const struct client *client)
{
    if (client->got.size >= 12)
        require(memcmp(client->got.data, "HTTP/1.1 ", 9) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session session = { 0 };
    struct http_options options = {
        .limits = { .unread_max = 3000, .body_max = 50000 },
        .handle = handle,
        .admit = admit,
        .done = count_done,
        .context = &session,
    };
    size_t at = 0;

    require(det_sim_open(NULL, &session.sim, NULL) == 0);
    require(det_loop_open(det_sim_world(session.sim), NULL, &session.loop) == 0);
    options.loop = session.loop;
    require(http_server_open(&options, &session.server, NULL) == 0);
    require(client_init(&session.client, session.server, session.loop) == 0);
    while (at < size && !session.client.is_closed) {
        at += step(&session, data + at, size - at);
        client_pump(&session.client);
    }
    check_output(&session.client);
    http_server_close(session.server);
    require(!session.kept && session.done == session.begun && session.client.is_closed);
    client_deinit(&session.client);
    det_loop_close(session.loop);
    det_sim_close(session.sim);
    return 0;
}
