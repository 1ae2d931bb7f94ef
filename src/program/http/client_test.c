/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* client_test.c - requests to a server on loopback or a unix socket: good, bad, late and missing
 * answers. */
/* test: threads */
#include "http/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/test.h"

#define PATIENCE (10 * DET_MINUTE) /* for what hangs */

/* The answer to each path; "/silent" gets none until the client leaves. */
static const struct {
    const char *path, *text;
    bool stays; /* the connection */
} answers[] = {
    { "/good", "HTTP/1.1 200 OK\r\nX-Mark: one\r\nContent-Length: 5\r\n\r\nhello", true },
    { "/busy", "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nwait", true },
    { "/forever", "HTTP/1.1 429 No\r\nRetry-After: 99999999\r\nContent-Length: 0\r\n\r\n", true },
    { "/moved", "HTTP/1.1 302 Go\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n", true },
    { "/chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
      true },
    { "/half", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", false },
    { "/noise", "\x01\x02 this is no answer\r\n\r\n", false },
    { "/gone", "", false },
};

struct server {
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_uint connections, requests;
    pthread_mutex_t lock;
    char head[4096]; /* of the last request, with its body; under the lock */
};

/* Reads a request whose body, if any, comes in the same segment. */
static bool read_request(struct server *server, int peer)
{
    char head[sizeof server->head] = "";
    ssize_t size = recv(peer, head, sizeof head - 1, 0);

    pthread_mutex_lock(&server->lock);
    memcpy(server->head, head, sizeof head);
    pthread_mutex_unlock(&server->lock);
    return size > 0;
}

/* Returns true if the connection stays open. */
static bool answer(const struct server *server, int peer)
{
    const char *path = strchr(server->head, ' ') + 1;
    size_t length = strcspn(path, " ");
    char byte;

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strlen(answers[i].path) == length && !strncmp(path, answers[i].path, length)) {
            const char *text = answers[i].text;

            return send(peer, text, strlen(text), MSG_NOSIGNAL) >= 0 && answers[i].stays;
        }
    (void)recv(peer, &byte, 1, 0);
    return false;
}

static void *serve(void *argument)
{
    struct server *server = argument;

    for (;;) {
        int peer = accept(server->listener, NULL, NULL);

        /* A test lowers the limit of descriptors for a moment. */
        if (peer < 0 && errno == EMFILE)
            continue;
        if (peer < 0)
            return NULL;
        atomic_fetch_add(&server->connections, 1);
        do {
            if (!read_request(server, peer))
                break;
            atomic_fetch_add(&server->requests, 1);
        } while (answer(server, peer));
        close(peer);
    }
}

static void server_start(struct server *server, const struct sockaddr *address, socklen_t size)
{
    server->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    assert_int_equal(bind(server->listener, address, size), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

/* A copy of the last request. */
static const char *copy_head(struct server *server, char target[4096])
{
    pthread_mutex_lock(&server->lock);
    memcpy(target, server->head, sizeof server->head);
    pthread_mutex_unlock(&server->lock);
    return target;
}

static void server_open(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    memset(server, 0, sizeof *server);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server_start(server, (struct sockaddr *)&address, size);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
}

static void server_close(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

struct bench {
    struct server server;
    struct http_client *client;
    struct det_buffer body;
    struct http_result result;
    char url[64];
    atomic_bool is_cancelled;
};

static bool is_cancelled(void *user)
{
    return atomic_load(&((struct bench *)user)->is_cancelled);
}

static void bench_open(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    server_open(&bench->server);
    assert_int_equal(
        http_client_open(
            &(struct http_client_options){ .is_cancelled = is_cancelled, .user = bench },
            &bench->client),
        0);
}

static void bench_close(struct bench *bench)
{
    http_client_close(bench->client);
    server_close(&bench->server);
    det_buffer_deinit(&bench->body);
}

static const char *url_of(struct bench *bench, const char *path)
{
    snprintf(bench->url, sizeof bench->url, "http://127.0.0.1:%u%s", bench->server.port, path);
    return bench->url;
}

static int get_with(struct bench *bench, const char *path, struct http_call call)
{
    call.url = url_of(bench, path);
    call.timeout = call.timeout ? call.timeout : PATIENCE;
    if (!call.on_body)
        call.body = &bench->body;
    det_buffer_clear(&bench->body);
    return http_client_call(bench->client, &call, &bench->result);
}

static int get(struct bench *bench, const char *path)
{
    return get_with(bench, path, (struct http_call){ 0 });
}

static void answers_come_over_one_connection(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_int_equal(get(&bench, "/good"), 0);
    assert_int_equal(bench.result.status, 200);
    assert_string_equal(det_buffer_text(&bench.body), "hello");
    assert_int_equal(bench.result.body_size, 5);
    assert_string_equal(bench.result.reason, "");
    assert_int_equal(get(&bench, "/chunks"), 0);
    assert_string_equal(det_buffer_text(&bench.body), "abcde");
    assert_int_equal(get(&bench, "/moved"), 0);
    assert_int_equal(bench.result.status, 302);
    assert_int_equal(atomic_load(&bench.server.connections), 1);
    assert_int_equal(atomic_load(&bench.server.requests), 3);
    bench_close(&bench);
}

static void retry_after_of_a_busy_server_is_read(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_int_equal(get(&bench, "/busy"), 0);
    assert_int_equal(bench.result.status, 503);
    assert_int_equal(bench.result.retry_after, 7 * DET_SECOND);
    assert_int_equal(get(&bench, "/forever"), 0);
    assert_int_equal(bench.result.retry_after, DET_HOUR);
    bench_close(&bench);
}

static void a_request_has_its_method_lines_and_body(void **state)
{
    struct http_lines lines = { NULL };
    struct bench bench;
    char head[4096];

    (void)state;
    bench_open(&bench);
    assert_true(http_lines_add(&lines, "X-Secret", "of ours"));
    assert_true(http_lines_add(&lines, "Expect", ""));
    assert_int_equal(
        get_with(
            &bench, "/good",
            (struct http_call){
                .method = "PUT", .lines = &lines, .send = "{\"a\":1}", .send_size = 7 }),
        0);
    assert_memory_equal(copy_head(&bench.server, head), "PUT /good HTTP/1.1\r\n", 20);
    assert_non_null(strstr(copy_head(&bench.server, head), "X-Secret: of ours\r\n"));
    assert_non_null(strstr(copy_head(&bench.server, head), "Content-Length: 7\r\n"));
    assert_non_null(strstr(copy_head(&bench.server, head), "\r\n\r\n{\"a\":1}"));
    assert_null(strstr(copy_head(&bench.server, head), "Expect"));
    http_lines_deinit(&lines);
    /* The next request has none of it. */
    assert_int_equal(get(&bench, "/good"), 0);
    assert_memory_equal(copy_head(&bench.server, head), "GET /good HTTP/1.1\r\n", 20);
    assert_null(strstr(copy_head(&bench.server, head), "X-Secret"));
    bench_close(&bench);
}

static void incomplete_answer_is_an_error(void **state)
{
    static const char *const paths[] = { "/half", "/noise", "/gone" };
    struct bench bench;

    (void)state;
    bench_open(&bench);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(get(&bench, paths[i]), DET_ERR_IO);
        assert_int_equal(bench.result.status, 0);
        assert_string_not_equal(bench.result.reason, "");
        assert_string_not_equal(bench.result.text, "");
        assert_false(bench.result.is_shortage);
    }
    assert_int_equal(get(&bench, "/good"), 0);
    bench_close(&bench);
}

static void unreachable_server_is_an_error(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    server_close(&bench.server);
    assert_int_equal(get(&bench, "/good"), DET_ERR_IO);
    assert_non_null(strstr(bench.result.text, "127.0.0.1"));
    assert_null(strstr(bench.result.text, "good"));
    http_client_close(bench.client);
    det_buffer_deinit(&bench.body);
}

static void a_call_ends_by_its_deadline(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_int_equal(
        get_with(&bench, "/silent", (struct http_call){ .timeout = 20 * DET_MILLISECOND }),
        DET_ERR_TIMEOUT);
    assert_true(bench.result.took >= 20 * DET_MILLISECOND);
    assert_string_not_equal(bench.result.text, "");
    assert_int_equal(get(&bench, "/good"), 0);
    bench_close(&bench);
}

static void *cancel_when_asked(void *argument)
{
    struct bench *bench = argument;

    while (!atomic_load(&bench->server.requests))
        (void)sched_yield();
    atomic_store(&bench->is_cancelled, true);
    return NULL;
}

static void another_thread_cancels_a_call(void **state)
{
    pthread_t thread;
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_asked, &bench), 0);
    assert_int_equal(
        get_with(&bench, "/silent", (struct http_call){ .timeout = DET_NEVER }), DET_ERR_CANCELLED);
    pthread_join(thread, NULL);
    /* A request that is already cancelled is not sent. */
    assert_int_equal(get(&bench, "/good"), DET_ERR_CANCELLED);
    assert_int_equal(atomic_load(&bench.server.requests), 1);
    bench_close(&bench);
}

static int refuse_part(void *user, const char *data, size_t size)
{
    unsigned *parts = user;

    assert_non_null(data);
    assert_true(size > 0);
    return ++*parts == 2 ? DET_ERR_TYPE : 0;
}

static void note_mark(void *user, const char *line, size_t size)
{
    unsigned *marks = user;

    *marks += size == 13 && !memcmp(line, "X-Mark: one\r\n", 13);
}

static void response_body_is_delivered_in_parts(void **state)
{
    struct bench bench;
    unsigned count = 0;

    (void)state;
    bench_open(&bench);
    assert_int_equal(
        get_with(&bench, "/chunks", (struct http_call){ .on_body = refuse_part, .user = &count }),
        DET_ERR_TYPE);
    assert_int_equal(count, 2);
    count = 0;
    assert_int_equal(
        get_with(&bench, "/good", (struct http_call){ .on_line = note_mark, .user = &count }), 0);
    assert_int_equal(count, 1);
    bench_close(&bench);
}

static void pending_response_can_be_polled(void **state)
{
    struct http_result result;
    struct http_call call;
    struct bench bench;
    det_time now = det_world_now(det_world_real(), DET_CLOCK_MONOTONIC);
    int r = 1;

    (void)state;
    bench_open(&bench);
    call = (struct http_call){ .url = url_of(&bench, "/silent"), .timeout = DET_NEVER };
    http_client_begin(bench.client, &call, &result);
    assert_int_equal(http_client_wait(bench.client, now + 5 * DET_MILLISECOND), 1);
    assert_int_equal(http_client_wait(bench.client, now), 1);
    http_client_end(bench.client);
    call = (struct http_call){ .url = url_of(&bench, "/good"), .timeout = DET_NEVER };
    http_client_begin(bench.client, &call, &result);
    while (r == 1)
        r = http_client_wait(bench.client, DET_NEVER);
    assert_int_equal(r, 0);
    assert_int_equal(result.body_size, 5);
    bench_close(&bench);
}

static void an_answer_has_a_limit(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    assert_int_equal(get_with(&bench, "/good", (struct http_call){ .body_max = 5 }), 0);
    assert_int_equal(get_with(&bench, "/good", (struct http_call){ .body_max = 4 }), DET_ERR_LIMIT);
    assert_int_equal(bench.result.status, 200);
    assert_int_equal(bench.body.size, 0);
    bench_close(&bench);
}

/* A socket that belongs to us, unless the bench is cancelled. */
static int check_owner(void *user, int descriptor, struct det_error *reterr)
{
    const struct bench *bench = user;
    struct ucred peer;
    socklen_t size = sizeof peer;

    assert_int_equal(getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    assert_int_equal(peer.uid, geteuid());
    if (atomic_load(&bench->is_cancelled))
        return det_error_set(reterr, DET_ERR_REFUSED, "not to this one");
    return 0;
}

static void unix_socket_owner_is_checked_before_a_request(void **state)
{
    struct http_call call = { .url = "http://localhost/good", .timeout = PATIENCE };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct http_client_options options = { .check = check_owner };
    struct http_client *client;
    struct bench bench;

    (void)state;
    memset(&bench, 0, sizeof bench);
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/client_test.%d", (int)getpid());
    bench.server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server_start(&bench.server, (struct sockaddr *)&address, sizeof address);
    options.socket_path = address.sun_path;
    options.user = &bench;
    assert_int_equal(http_client_open(&options, &client), 0);
    assert_int_equal(http_client_call(client, &call, &bench.result), 0);
    assert_int_equal(bench.result.status, 200);
    /* Also over a connection that was used before. */
    atomic_store(&bench.is_cancelled, true);
    assert_int_equal(http_client_call(client, &call, &bench.result), DET_ERR_REFUSED);
    assert_string_equal(bench.result.text, "not to this one");
    assert_int_equal(atomic_load(&bench.server.requests), 1);
    http_client_close(client);
    server_close(&bench.server);
    /* A socket without a listener. */
    assert_int_equal(http_client_open(&options, &client), 0);
    assert_int_equal(http_client_call(client, &call, &bench.result), DET_ERR_IO);
    assert_false(bench.result.is_shortage);
    http_client_close(client);
    assert_int_equal(unlink(address.sun_path), 0);
}

static void out_of_descriptors_is_a_local_failure(void **state)
{
    struct rlimit before, none;
    struct bench bench;
    int r;

    (void)state;
    bench_open(&bench);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = get(&bench, "/good");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_not_equal(r, 0);
    assert_true(bench.result.is_shortage);
    assert_int_equal(get(&bench, "/good"), 0);
    bench_close(&bench);
}

static void urls_and_dates_are_read(void **state)
{
    (void)state;
    assert_true(http_client_takes("http://a/b"));
    assert_true(http_client_takes("https://a:1/"));
    assert_false(http_client_takes("ftp://a/b"));
    assert_false(http_client_takes("http://user:word@a/b"));
    assert_false(http_client_takes("http://"));
    assert_int_equal(http_client_date("Thu, 01 Jan 1970 00:01:00 GMT"), 60);
    assert_int_equal(http_client_date("soon"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_over_one_connection),
        cmocka_unit_test(retry_after_of_a_busy_server_is_read),
        cmocka_unit_test(a_request_has_its_method_lines_and_body),
        cmocka_unit_test(incomplete_answer_is_an_error),
        cmocka_unit_test(unreachable_server_is_an_error),
        cmocka_unit_test(a_call_ends_by_its_deadline),
        cmocka_unit_test(another_thread_cancels_a_call),
        cmocka_unit_test(response_body_is_delivered_in_parts),
        cmocka_unit_test(pending_response_can_be_polled),
        cmocka_unit_test(an_answer_has_a_limit),
        cmocka_unit_test(unix_socket_owner_is_checked_before_a_request),
        cmocka_unit_test(out_of_descriptors_is_a_local_failure),
        cmocka_unit_test(urls_and_dates_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
