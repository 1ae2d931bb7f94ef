/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_client_test.c - the client of the local socket, against a server and against lines that no
 * server would say. On one thread: what is to be read was written before. */
#include "terminal/folder_test.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/socket_client.h"
#include "lib/patience.h"

/* A connected pair: the client under test, and what it talks to. */
struct pair {
    struct socket_listener listener;
    struct socket_client *client;
    int other;
};

static void open_pair(struct fixture *fixture, struct pair *pair)
{
    assert_int_equal(socket_listen(fixture->folder, &pair->listener, NULL), 0);
    assert_int_equal(socket_client_open(fixture->folder, NULL, &pair->client, NULL), 0);
    pair->other = accept(pair->listener.descriptor, NULL, NULL);
    assert_true(pair->other >= 0);
}

static void close_pair(struct pair *pair)
{
    socket_client_close(pair->client);
    if (pair->other >= 0)
        close(pair->other);
    socket_unlisten(&pair->listener);
}

static void say(const struct pair *pair, const char *text)
{
    assert_int_equal(send(pair->other, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static det_time now(void)
{
    return det_world_now(NULL, DET_CLOCK_MONOTONIC);
}

static void nobody_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct socket_client *client;
    struct det_error error;

    assert_int_equal(socket_client_open(fixture->folder, NULL, &client, &error), DET_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "start it with `detent up`"));
    socket_client_close(NULL);
}

static void a_request_is_one_line(void **state)
{
    struct pair pair;
    char line[256] = "";

    open_pair(*state, &pair);
    assert_int_equal(
        socket_client_ask(pair.client, "tasks", json_pack("{s:s}", "name", "a"), NULL), 0);
    assert_true(recv(pair.other, line, sizeof line - 1, 0) > 0);
    assert_string_equal(line, "{\"id\":1,\"verb\":\"tasks\",\"arguments\":{\"name\":\"a\"}}\n");
    memset(line, 0, sizeof line);
    assert_int_equal(socket_client_ask(pair.client, "tasks", NULL, NULL), 0);
    assert_true(recv(pair.other, line, sizeof line - 1, 0) > 0);
    assert_string_equal(line, "{\"id\":2,\"verb\":\"tasks\",\"arguments\":{}}\n");
    close_pair(&pair);
}

static void answers_come_part_by_part(void **state)
{
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data = NULL;

    open_pair(*state, &pair);
    assert_int_equal(socket_client_ask(pair.client, "watch", NULL, NULL), 0);
    say(&pair, "{\"id\":1,\"data\":{\"n\":1}}\n{\"id\":1,\"da");
    assert_int_equal(socket_client_next(pair.client, DET_NEVER, &data, &error), 1);
    assert_int_equal(json_integer_value(json_object_get(data, "n")), 1);
    json_decref(data);
    assert_int_equal(socket_client_next(pair.client, now(), &data, &error), DET_ERR_TIMEOUT);
    say(&pair, "ta\":2}\n{\"id\":1,\"end\":true}\n");
    assert_int_equal(socket_client_next(pair.client, DET_NEVER, &data, &error), 1);
    assert_int_equal(json_integer_value(data), 2);
    json_decref(data);
    assert_int_equal(socket_client_next(pair.client, DET_NEVER, &data, &error), 0);
    close_pair(&pair);
}

static void errors_come_with_their_code_and_text(void **state)
{
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data;

    open_pair(*state, &pair);
    say(&pair, "{\"id\":1,\"error\":{\"code\":\"NOT_FOUND\",\"text\":\"no task 'x'\"}}\n");
    assert_int_equal(
        socket_client_call(pair.client, "stop", NULL, DET_TEST_HANG, &data, &error),
        DET_ERR_NOT_FOUND);
    assert_string_equal(error.text, "no task 'x'");
    say(&pair, "{\"id\":null,\"error\":{\"code\":\"LIMIT\",\"text\":\"full\"}}\n");
    assert_int_equal(
        socket_client_call(pair.client, "stop", NULL, DET_TEST_HANG, &data, &error), DET_ERR_LIMIT);
    close_pair(&pair);
}

static void one_answer_is_one_call(void **state)
{
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data = NULL;

    open_pair(*state, &pair);
    say(&pair, "{\"id\":1,\"data\":[5]}\n{\"id\":2,\"end\":true}\n");
    assert_int_equal(socket_client_call(pair.client, "a", NULL, DET_TEST_HANG, &data, &error), 0);
    assert_int_equal(json_array_size(data), 1);
    json_decref(data);
    assert_int_equal(
        socket_client_call(pair.client, "b", NULL, DET_TEST_HANG, &data, &error),
        DET_ERR_MALFORMED);
    assert_int_equal(socket_client_call(pair.client, "c", NULL, 0, &data, &error), DET_ERR_TIMEOUT);
    assert_string_equal(error.text, "the detent that runs here does not answer");
    close_pair(&pair);
}

static void what_no_server_says_is_told(void **state)
{
    static const char *const lines[] = {
        "hello\n",
        "[]\n",
        "{}\n",
        "{\"id\":\"1\",\"data\":1}\n",
        "{\"id\":2,\"data\":1}\n",
        "{\"id\":1}\n",
        "{\"id\":1,\"end\":false}\n",
        "{\"id\":1,\"error\":{}}\n",
        "{\"id\":1,\"error\":{\"code\":\"IO\"}}\n",
    };
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data;

    open_pair(*state, &pair);
    assert_int_equal(socket_client_ask(pair.client, "a", NULL, NULL), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        say(&pair, lines[i]);
        assert_int_equal(
            socket_client_next(pair.client, DET_NEVER, &data, &error), DET_ERR_MALFORMED);
        assert_non_null(strstr(error.text, "is it another version?"));
    }
    close_pair(&pair);
}

static void a_line_without_end_is_given_up(void **state)
{
    static char part[65536];
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data;
    int r;

    open_pair(*state, &pair);
    memset(part, 'x', sizeof part);
    do {
        (void)!send(pair.other, part, sizeof part, MSG_NOSIGNAL | MSG_DONTWAIT);
        r = socket_client_next(pair.client, now(), &data, &error);
    } while (r == DET_ERR_TIMEOUT);
    assert_int_equal(r, DET_ERR_MALFORMED);
    assert_string_equal(error.text, "the answer has no end");
    close_pair(&pair);
}

static void one_that_leaves_is_noticed(void **state)
{
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data;

    open_pair(*state, &pair);
    close(pair.other);
    pair.other = -1;
    assert_int_equal(socket_client_next(pair.client, DET_NEVER, &data, &error), DET_ERR_CLOSED);
    assert_int_equal(socket_client_ask(pair.client, "a", NULL, &error), DET_ERR_CLOSED);
    assert_string_equal(error.text, "the detent that ran here has gone, or has cut us off");
    close_pair(&pair);
}

static void a_request_that_is_too_large_is_not_sent(void **state)
{
    static char text[SOCKET_LINE_MAX + 1];
    struct det_error error = { 0 };
    struct pair pair;

    open_pair(*state, &pair);
    memset(text, 'x', SOCKET_LINE_MAX);
    assert_int_equal(
        socket_client_ask(pair.client, "a", json_pack("{s:s}", "t", text), &error), DET_ERR_LIMIT);
    assert_int_equal(recv(pair.other, text, 1, MSG_DONTWAIT), -1);
    close_pair(&pair);
}

static int converse(struct det_test_memory *memory, void *argument)
{
    struct socket_listener listener;
    struct socket_client *client;
    json_t *data = NULL;
    int other, r;

    assert_int_equal(socket_listen(argument, &listener, NULL), 0);
    r = socket_client_open(argument, &memory->allocator, &client, NULL);
    if (r == 0) {
        other = accept(listener.descriptor, NULL, NULL);
        assert_int_equal(send(other, "{\"id\":1,\"data\":1}\n", 18, MSG_NOSIGNAL), 18);
        r = socket_client_call(client, "a", NULL, DET_MINUTE, &data, NULL);
        json_decref(data);
        socket_client_close(client);
        close(other);
    }
    socket_unlisten(&listener);
    return r;
}

static void memory_that_runs_out_is_told(void **state)
{
    struct fixture *fixture = *state;

    det_test_each_failure(converse, fixture->folder);
}

/* Last, since nothing takes the interrupt back. */
static void an_interrupt_ends_the_waiting(void **state)
{
    struct det_error error = { 0 };
    struct pair pair;
    json_t *data;

    open_pair(*state, &pair);
    cli_catch_signals();
    assert_int_equal(raise(SIGINT), 0);
    assert_int_equal(socket_client_next(pair.client, DET_NEVER, &data, &error), DET_ERR_CANCELLED);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_is_there),
        TEST(a_request_is_one_line),
        TEST(answers_come_part_by_part),
        TEST(errors_come_with_their_code_and_text),
        TEST(one_answer_is_one_call),
        TEST(what_no_server_says_is_told),
        TEST(a_line_without_end_is_given_up),
        TEST(one_that_leaves_is_noticed),
        TEST(a_request_that_is_too_large_is_not_sent),
        TEST(memory_that_runs_out_is_told),
        TEST(an_interrupt_ends_the_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
