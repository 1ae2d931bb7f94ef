/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate_http.c - a request as a browser sends it, read, handled and answered, over a stream that is
 * memory: all that the HTTP server does but the calls of the system. */
#include <detent/driver/loop.h>
#include <string.h>

#include "gate.h"
#include "http/http_internal.h"

static const char request[] = "GET /v1/machines/order/instances/o-1?with=timers HTTP/1.1\r\n"
                              "Host: 127.0.0.1:7788\r\n"
                              "Connection: keep-alive\r\n"
                              "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"
                              "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n"
                              "Accept: application/json\r\n"
                              "Sec-Fetch-Site: same-origin\r\n"
                              "Accept-Encoding: gzip, deflate, br\r\n"
                              "Accept-Language: en-US,en;q=0.9\r\n\r\n";

struct stage {
    struct det_loop *loop;
    struct http_server *server;
    struct http_connection *connection;
    struct det_timer timer;
    unsigned operations;
    uint64_t written;
};

static int64_t stream_read(void *stream, void *target, size_t size)
{
    (void)stream;
    if (size < sizeof request - 1)
        return DET_ERR_IO;
    memcpy(target, request, sizeof request - 1);
    return sizeof request - 1;
}

static int64_t stream_write(void *stream, const struct http_part *parts, size_t count)
{
    struct stage *stage = stream;

    (void)count;
    stage->written += parts->size;
    return (int64_t)parts->size;
}

static int stream_watch(void *stream, struct http_connection *connection, unsigned events)
{
    (void)stream;
    (void)connection;
    (void)events;
    return 0;
}

static void stream_end(void *stream)
{
    (void)stream;
}

static const struct http_io stream_io = {
    .read = stream_read,
    .write = stream_write,
    .watch = stream_watch,
    .end = stream_end,
    .close = stream_end,
};

static void handle(void *context, struct http_exchange *exchange)
{
    static const char body[] = "{\"state\":\"charging\",\"sequence\":42}\n";

    (void)context;
    http_answer(
        exchange, &(struct http_answer){ .status = 200,
                                         .type = "application/json",
                                         .body = body,
                                         .body_size = sizeof body - 1 });
}

static void on_timer(void *argument)
{
    struct stage *stage = argument;

    /* The answer is written when the server attends to it, which is in its next turn. */
    for (unsigned i = 0; i < stage->operations; i++) {
        http_connection_ready(stage->connection, DET_POLL_READ);
        http_connection_attend(stage->connection);
    }
}

/* In a turn of the loop, as always: so no clock is asked. */
static int work(void *argument, unsigned operations)
{
    struct stage *stage = argument;
    int r;

    stage->operations = operations;
    r = det_loop_timer_set(stage->loop, &stage->timer, 0);
    if (r == 0)
        r = det_loop_turn(stage->loop, 0);
    if (r < 0)
        return r;
    return stage->written > 100 * (uint64_t)operations ? 0 : DET_ERR_INVALID;
}

int gate_request(unsigned operations)
{
    struct stage stage = { .timer = { .run = on_timer, .argument = &stage } };
    int r;

    r = det_loop_open(NULL, NULL, &stage.loop);
    if (r == 0)
        r = http_server_open(
            &(struct http_options){ .loop = stage.loop, .handle = handle }, &stage.server, NULL);
    if (r == 0)
        r = http_connection_open(
            stage.server, &stream_io, &stage, &(struct http_origin){ .peer = "gate" },
            &stage.connection);
    if (r == 0)
        r = work(&stage, 1); /* buffers are lent from now on */
    if (r == 0)
        r = gate_measured(work, &stage, operations);
    http_server_close(stage.server);
    det_loop_close(stage.loop);
    return r;
}
