/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* daemon_client_test.c - the client of the daemon, with valid answers and with invalid ones:
 * truncated, malformed, none at all, a socket that nobody listens on. */
/* test: threads */
#include "client/daemon_client.h"

#include <detent/world.h>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/test.h"

#define PATIENCE (10 * DET_MINUTE) /* for a hanging test */
#define JSON     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define EVENTS   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define CHUNKS \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

/* The answer to each path, after which the connection is closed; "/silent" gets none. */
static const struct {
    const char *path, *text;
} answers[] = {
    { "/one", JSON "{\"kind\":\"one\",\"items\":[1]}" },
    { "/list", JSON "{\"items\":[{\"n\":1},{\"n\":2}],\"next\":\"a/b\"}" },
    { "/list?after=a%2Fb", JSON "{\"items\":[{\"n\":3}],\"next\":null}" },
    { "/rows?limit=2&after=0", JSON "{\"items\":[{\"n\":1},{\"n\":2}],\"next\":2,\"left\":1}" },
    { "/rows?limit=2&after=2", JSON "{\"items\":[{\"n\":3}],\"next\":null,\"left\":0}" },
    { "/rows?after=2&limit=2", JSON "{\"items\":[{\"n\":1}],\"next\":3}" },
    { "/rows?limit=2&after=3", JSON "{\"items\":[{\"n\":2}],\"next\":null}" },
    { "/rows?hereafter=9&limit=2", JSON "{\"items\":[{\"n\":1}],\"next\":2}" },
    { "/rows?hereafter=9&limit=2&after=2", JSON "{\"items\":[{\"n\":2}],\"next\":null}" },
    { "/news?after=0", JSON "{\"items\":[{\"n\":1}],\"next\":1}" },
    { "/news?unlimit=2", JSON "{\"items\":[{\"n\":1}],\"next\":1}" },
    { "/none", JSON "{\"items\":[]}" },
    { "/error", "HTTP/1.1 404 No\r\nConnection: close\r\n\r\n"
                "{\"error\":{\"code\":\"NOT_FOUND\",\"text\":\"there is no x\"}}" },
    { "/events", EVENTS "retry: 1000\n\nevent: part\ndata: {\"n\":1}\n\n: beat\n\n"
                        "event: part\ndata: {\"n\":2}\n\n" },
    { "/bytes", EVENTS "event: part\ndata: {\"text\":\"a\\u0000b\"}\n\n" },
    { "/failing",
      EVENTS "event: part\ndata: {\"n\":1}\n\n"
             "event: error\ndata: {\"error\":{\"code\":\"BUSY\",\"text\":\"later\"}}\n\n" },
    { "/dropped", EVENTS "event: dropped\ndata: {\"why\":\"stop\"}\n\n" },
    { "/cut", CHUNKS "1d\r\nevent: part\ndata: {\"n\":1}\n\n\r\n5\r\nev" },
    { "/noise", "\x01\x02\x03\r\n\r\n" },
    { "/gone", "" },
    { "/half", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"kind\":" },
    { "/text", JSON "all is well" },
    { "/number", JSON "12" },
    { "/twice", JSON "{\"a\":1,\"a\":2}" },
    { "/odd", "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n{\"error\":\"odd\"}" },
    { "/nonsense", EVENTS "data: nonsense\n\n" },
};

struct bench {
    char *folder;
    int listener;
    pthread_t thread;
    struct daemon_client *client;
    struct det_error error;
};

static void answer(int peer, const char *head)
{
    const char *path = strchr(head, ' ');
    char byte;

    for (size_t i = 0; path && i < sizeof answers / sizeof *answers; i++) {
        size_t size = strlen(answers[i].path);

        if (strncmp(path + 1, answers[i].path, size) == 0 && path[1 + size] == ' ') {
            (void)send(peer, answers[i].text, strlen(answers[i].text), MSG_NOSIGNAL);
            return;
        }
    }
    (void)recv(peer, &byte, 1, 0);
}

static void *serve(void *argument)
{
    const struct bench *bench = argument;
    char head[4096];

    for (;;) {
        int peer = accept(bench->listener, NULL, NULL);
        ssize_t size = peer < 0 ? 0 : recv(peer, head, sizeof head - 1, 0);

        if (peer < 0)
            return NULL;
        head[size > 0 ? size : 0] = '\0';
        if (size > 0)
            answer(peer, head);
        close(peer);
    }
}

static void bench_open(struct bench *bench)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[256];

    memset(bench, 0, sizeof *bench);
    bench->folder = det_test_folder();
    snprintf(path, sizeof path, "%s/" SOCKET_FOLDER, bench->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(
        address.sun_path, sizeof address.sun_path, "%.60s/" SOCKET_FOLDER "/" SOCKET_NAME,
        bench->folder);
    bench->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(bench->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(bench->listener, 8), 0);
    assert_int_equal(pthread_create(&bench->thread, NULL, serve, bench), 0);
    assert_int_equal(daemon_client_open(bench->folder, NULL, &bench->client, &bench->error), 0);
}

static void stop_server(struct bench *bench)
{
    shutdown(bench->listener, SHUT_RDWR);
    pthread_join(bench->thread, NULL);
    close(bench->listener);
}

static void bench_close(struct bench *bench)
{
    daemon_client_close(bench->client);
    stop_server(bench);
    det_test_folder_remove(bench->folder);
}

static det_time later(void)
{
    return det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;
}

static void ask(struct bench *bench, const char *path)
{
    assert_int_equal(daemon_client_ask(bench->client, "GET", path, NULL, NULL, &bench->error), 0);
}

/* The next part has this number. */
static void expect_part(struct bench *bench, int number)
{
    const struct det_json_value *part = NULL;

    assert_int_equal(daemon_client_next(bench->client, later(), &part, &bench->error), 1);
    assert_int_equal(det_json_get_signed(part, "n"), number);
}

static void expect(struct bench *bench, int code)
{
    const struct det_json_value *part = NULL;

    assert_int_equal(daemon_client_next(bench->client, later(), &part, &bench->error), code);
}

static void answers_come_part_by_part(void **state)
{
    struct bench bench;
    const struct det_json_value *one = NULL;

    (void)state;
    bench_open(&bench);
    assert_int_equal(
        daemon_client_call(bench.client, "GET", "/one", NULL, PATIENCE, &one, &bench.error), 0);
    assert_string_equal(det_json_get_text(one, "kind"), "one");
    expect(&bench, 0);
    ask(&bench, "/list");
    for (int i = 1; i <= 3; i++)
        expect_part(&bench, i);
    expect(&bench, 0);
    ask(&bench, "/none");
    expect(&bench, 0);
    ask(&bench, "/events");
    expect_part(&bench, 1);
    expect_part(&bench, 2);
    expect(&bench, 0);
    bench_close(&bench);
}

/* A task may write any bytes. */
static void limited_list_continues_after_a_number(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    ask(&bench, "/rows?limit=2&after=0");
    assert_null(daemon_client_page(bench.client));
    expect_part(&bench, 1);
    assert_int_equal(det_json_get_number(daemon_client_page(bench.client), "left"), 1);
    expect_part(&bench, 2);
    expect_part(&bench, 3);
    expect(&bench, 0);
    assert_int_equal(det_json_get_number(daemon_client_page(bench.client), "left"), 0);
    /* Without a limit it is the position for news. */
    /* Parameters are found by their whole keys, in any order. */
    ask(&bench, "/rows?after=2&limit=2");
    expect_part(&bench, 1);
    expect_part(&bench, 2);
    expect(&bench, 0);
    ask(&bench, "/rows?hereafter=9&limit=2");
    expect_part(&bench, 1);
    expect_part(&bench, 2);
    expect(&bench, 0);
    ask(&bench, "/news?unlimit=2");
    expect_part(&bench, 1);
    expect(&bench, 0);
    ask(&bench, "/news?after=0");
    expect_part(&bench, 1);
    expect(&bench, 0);
    bench_close(&bench);
}

static void a_text_may_have_a_zero(void **state)
{
    const struct det_json_value *part = NULL;
    struct bench bench;

    (void)state;
    bench_open(&bench);
    ask(&bench, "/bytes");
    assert_int_equal(daemon_client_next(bench.client, later(), &part, &bench.error), 1);
    assert_true(det_view_equal(det_json_get(part, "text")->text, det_view_of("a\0b", 3)));
    bench_close(&bench);
}

/* Parts of other pages, and of a previous answer. */
static void kept_parts_survive_the_next_request(void **state)
{
    const struct det_json_value *parts[3] = { NULL };
    struct det_arena values;
    struct bench bench;

    (void)state;
    det_arena_init(&values, NULL);
    bench_open(&bench);
    ask(&bench, "/list");
    daemon_client_keep(bench.client, &values);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(daemon_client_next(bench.client, later(), &parts[i], &bench.error), 1);
    ask(&bench, "/one");
    bench_close(&bench);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(det_json_get_number(parts[i], "n"), i + 1);
    det_arena_deinit(&values);
}

static void errors_come_with_their_code_and_text(void **state)
{
    struct bench bench;

    (void)state;
    bench_open(&bench);
    ask(&bench, "/error");
    expect(&bench, DET_ERR_NOT_FOUND);
    assert_string_equal(bench.error.text, "there is no x");
    ask(&bench, "/failing");
    expect_part(&bench, 1);
    expect(&bench, DET_ERR_BUSY);
    assert_string_equal(bench.error.text, "later");
    bench_close(&bench);
}

static void truncated_answer_is_detected(void **state)
{
    static const char *const paths[] = { "/gone", "/half", "/noise", "/dropped" };
    struct bench bench;

    (void)state;
    bench_open(&bench);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        ask(&bench, paths[i]);
        expect(&bench, DET_ERR_CLOSED);
    }
    ask(&bench, "/cut");
    expect_part(&bench, 1);
    expect(&bench, DET_ERR_CLOSED);
    bench_close(&bench);
}

static void invalid_daemon_answers_are_reported(void **state)
{
    static const char *const paths[] = { "/text", "/number", "/twice", "/odd", "/nonsense" };
    struct bench bench;

    (void)state;
    bench_open(&bench);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        ask(&bench, paths[i]);
        expect(&bench, DET_ERR_IO);
        assert_non_null(strstr(bench.error.text, "sent an invalid answer"));
    }
    bench_close(&bench);
}

static void silent_daemon_times_out(void **state)
{
    struct bench bench;
    const struct det_json_value *part = NULL;

    (void)state;
    bench_open(&bench);
    ask(&bench, "/silent");
    assert_int_equal(
        daemon_client_next(
            bench.client, later() - PATIENCE + 5 * DET_MILLISECOND, &part, &bench.error),
        DET_ERR_TIMEOUT);
    /* It does not delay the next request. */
    ask(&bench, "/list");
    expect_part(&bench, 1);
    bench_close(&bench);
}

static void socket_without_a_listener_means_no_daemon(void **state)
{
    struct daemon_client *client;
    struct bench bench;

    (void)state;
    bench_open(&bench);
    stop_server(&bench);
    assert_int_equal(
        daemon_client_open(bench.folder, NULL, &client, &bench.error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(bench.error.text, "start it with `detent up`"));
    ask(&bench, "/one");
    expect(&bench, DET_ERR_CLOSED);
    assert_int_equal(daemon_client_wait_gone(bench.client, later(), &bench.error), 0);
    daemon_client_close(bench.client);
    daemon_client_close(NULL);
    det_test_folder_remove(bench.folder);
}

static void paths_are_encoded(void **state)
{
    struct det_buffer path = { 0 };

    (void)state;
    daemon_path_add(&path, "a/b c~\xC3\xA4?&");
    assert_string_equal(daemon_path_text(&path), "a%2Fb%20c~%C3%A4%3F%26");
    det_buffer_deinit(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_part_by_part),
        cmocka_unit_test(limited_list_continues_after_a_number),
        cmocka_unit_test(a_text_may_have_a_zero),
        cmocka_unit_test(kept_parts_survive_the_next_request),
        cmocka_unit_test(errors_come_with_their_code_and_text),
        cmocka_unit_test(truncated_answer_is_detected),
        cmocka_unit_test(invalid_daemon_answers_are_reported),
        cmocka_unit_test(silent_daemon_times_out),
        cmocka_unit_test(socket_without_a_listener_means_no_daemon),
        cmocka_unit_test(paths_are_encoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
