/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_server_test.h - a server of the local socket on a loop that the test turns until it sees
 * what it waits for: for the tests of the server and of its sessions. */
#ifndef DET_DAEMON_SOCKET_SERVER_TEST_H
#define DET_DAEMON_SOCKET_SERVER_TEST_H

#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/socket_server.h"

#define PATIENCE (10 * DET_MINUTE)
#define KEPT_MAX 32
/* What stands around the text of an answer. */
#define ANSWER (sizeof "{\"id\":1,\"data\":\"\"}\n" - 1)

struct bench {
    char *folder;
    struct det_loop *loop;
    struct socket_server *server;
    struct socket_call *kept[KEPT_MAX];
    size_t kept_count, gone_count, big_count;
    bool was_closed;
    char asked[256]; /* what was told of calls */
};

/* For the hook that says who is calling. */
static uid_t pretended_peer;
static int pretended_result;

static inline int pretend(int descriptor, uid_t *ret)
{
    (void)descriptor;
    *ret = pretended_peer;
    return pretended_result;
}

static inline void run_echo(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    socket_call_answer(
        call, request->arguments ? json_incref(request->arguments) : json_string("nothing"));
}

static inline void run_count(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    json_int_t to = json_integer_value(json_object_get(request->arguments, "to"));

    (void)context;
    for (json_int_t i = 1; i <= to; i++)
        assert_int_equal(socket_call_send(call, json_integer(i)), 0);
    socket_call_end(call);
}

static inline void run_refuse(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    (void)request;
    socket_call_fail(call, DET_ERR_REFUSED, "not %s", "today");
}

static inline void on_gone(void *user)
{
    struct bench *bench = user;

    bench->gone_count++;
}

static inline void run_keep(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct bench *bench = context;

    (void)request;
    assert_true(bench->kept_count < KEPT_MAX);
    bench->kept[bench->kept_count++] = call;
    socket_call_keep(call, on_gone, bench);
}

static inline json_t *text_of(size_t size)
{
    char *text = malloc(size + 1);
    json_t *string;

    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    string = json_string(text);
    free(text);
    return string;
}

static inline void run_big(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct bench *bench = context;

    bench->big_count++;
    socket_call_answer(
        call, text_of((size_t)json_integer_value(json_object_get(request->arguments, "size"))));
}

/* Sends for as long as somebody takes it. */
static inline void run_flood(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    struct bench *bench = context;
    size_t sent = 0;

    (void)request;
    while (socket_call_send(call, text_of(65536)) == 0)
        sent++;
    bench->was_closed = true;
    assert_true(sent * 65536 >= SOCKET_QUEUE_MAX - 65536);
    /* What comes after it harms nobody. */
    assert_int_equal(socket_call_send(call, json_integer(1)), DET_ERR_CLOSED);
    socket_call_keep(call, on_gone, bench);
}

static inline void run_flood_and_end(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    (void)request;
    while (socket_call_send(call, text_of(65536)) == 0)
        ;
    socket_call_end(call);
}

static inline void run_forget(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    (void)request;
    (void)call;
}

static inline void run_nothing(
    void *context, const struct socket_request *request, struct socket_call *call)
{
    (void)context;
    (void)request;
    socket_call_answer(call, NULL);
}

static const struct socket_verb verbs[] = {
    { "echo", run_echo },       { "count", run_count },
    { "refuse", run_refuse },   { "keep", run_keep },
    { "big", run_big },         { "flood", run_flood },
    { "forget", run_forget },   { "flood-and-end", run_flood_and_end },
    { "nothing", run_nothing }, { NULL, NULL },
};

static inline bool describe(const struct socket_request *request, char *target, size_t size)
{
    (void)snprintf(target, size, "%s", request->verb);
    return strcmp(request->verb, "big") != 0;
}

static inline void asked(void *context, const char *what, uid_t uid, int code)
{
    struct bench *bench = context;
    size_t used = strlen(bench->asked);

    assert_int_equal(uid, pretended_peer);
    (void)snprintf(
        bench->asked + used, sizeof bench->asked - used, "%s %s;", what,
        code > 0    ? "gone"
        : code == 0 ? "done"
                    : det_error_name(code));
}

static inline int open_server(struct bench *bench, const struct det_allocator *allocator)
{
    struct socket_server_options options = {
        .allocator = allocator,
        .loop = bench->loop,
        .project = bench->folder,
        .verbs = verbs,
        .context = bench,
        .peer = pretend,
        .describe = describe,
        .asked = asked,
    };

    pretended_peer = geteuid();
    pretended_result = 0;
    return socket_server_open(&options, &bench->server, NULL);
}

static inline int open_bench(void **state)
{
    static struct bench bench;

    bench = (struct bench){ .folder = det_test_folder() };
    assert_int_equal(det_loop_open(NULL, NULL, &bench.loop), 0);
    assert_int_equal(open_server(&bench, NULL), 0);
    *state = &bench;
    return 0;
}

static inline int close_bench(void **state)
{
    struct bench *bench = *state;

    socket_server_close(bench->server);
    det_loop_close(bench->loop);
    det_test_folder_remove(bench->folder);
    return 0;
}

static inline det_time now(void)
{
    return det_world_now(NULL, DET_CLOCK_MONOTONIC);
}

/* Something happened on the loop, or nothing will. */
static inline void turn(struct bench *bench)
{
    assert_true(det_loop_turn(bench->loop, now() + PATIENCE) > 0);
}

static inline int dial(struct bench *bench)
{
    int descriptor;

    assert_int_equal(socket_connect(bench->folder, &descriptor, NULL), 0);
    assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
    return descriptor;
}

static inline void say(int descriptor, const char *text)
{
    assert_int_equal(send(descriptor, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What the server has said up to `end`, or up to its leaving: `end` NULL. Good until the next. */
static inline const char *hear(struct bench *bench, int descriptor, const char *end)
{
    static char text[1 << 19];
    size_t size = 0;

    for (;;) {
        ssize_t count = recv(descriptor, text + size, sizeof text - 1 - size, 0);

        if (count < 0 && errno == EAGAIN) {
            turn(bench);
            continue;
        }
        if (count <= 0)
            break;
        size += (size_t)count;
        text[size] = '\0';
        if (end && strstr(text, end))
            return text;
        assert_true(size < sizeof text - 1);
    }
    text[size] = '\0';
    assert_null(end);
    return text;
}

static inline void wait_for_clients(struct bench *bench, size_t count)
{
    while (socket_server_clients(bench->server) != count)
        turn(bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

#endif
