/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_session_test.c - one client of the local socket: its lines, its calls, and its limits. */
#include "daemon/socket_server_test.h"

static void lines_may_come_in_pieces_and_together(void **state)
{
    static const char text[] = "{\"id\":1,\"verb\":\"echo\"}\n{\"id\":2,\"verb\":\"echo\"}\r\n";
    struct bench *bench = *state;
    int client = dial(bench);

    wait_for_clients(bench, 1);
    for (const char *at = text; *at; at++) {
        const char one[] = { *at, '\0' };

        say(client, one);
        turn(bench);
    }
    assert_string_equal(
        hear(bench, client, "2,\"data\":\"nothing\"}\n"),
        "{\"id\":1,\"data\":\"nothing\"}\n{\"id\":2,\"data\":\"nothing\"}\n");
    close(client);
}

static void a_line_that_is_too_long_does(void **state)
{
    static const char request[] = "{\"id\":1,\"verb\":\"echo\"}";
    static char line[SOCKET_LINE_MAX + 1];
    struct bench *bench = *state;
    int client = dial(bench), other = dial(bench);

    memset(line, ' ', SOCKET_LINE_MAX);
    say(client, line);
    assert_string_equal(
        hear(bench, client, NULL),
        "{\"id\":null,\"error\":{\"code\":\"LIMIT\",\"text\":\"the line is longer than 64 KiB\"}}"
        "\n");
    close(client);
    /* The longest that is allowed. */
    memcpy(line, request, sizeof request - 1);
    line[SOCKET_LINE_MAX - 1] = '\n';
    say(other, line);
    assert_string_equal(hear(bench, other, "\n"), "{\"id\":1,\"data\":\"nothing\"}\n");
    close(other);
}

static void calls_may_be_answered_later(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"keep\"}\n{\"id\":2,\"verb\":\"keep\"}\n"
                "{\"id\":1,\"verb\":\"keep\"}\n{\"id\":3,\"verb\":\"echo\"}\n");
    assert_string_equal(
        hear(bench, client, "nothing\"}\n"),
        "{\"id\":1,\"error\":{\"code\":\"INVALID\",\"text\":\"the id is in use by a request before "
        "this one\"}}\n{\"id\":3,\"data\":\"nothing\"}\n");
    assert_int_equal(bench->kept_count, 2);
    socket_call_answer(bench->kept[1], json_integer(22));
    assert_int_equal(socket_call_send(bench->kept[0], json_integer(11)), 0);
    socket_call_end(bench->kept[0]);
    assert_string_equal(
        hear(bench, client, "true}\n"),
        "{\"id\":2,\"data\":22}\n{\"id\":1,\"data\":11}\n{\"id\":1,\"end\":true}\n");
    assert_int_equal(bench->gone_count, 0);
    close(client);
    wait_for_clients(bench, 0);
    assert_int_equal(bench->gone_count, 0);
}

static void a_client_that_leaves_gives_up_its_calls(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench), other = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"keep\"}\n{\"id\":2,\"verb\":\"keep\"}\n");
    say(other, "{\"id\":1,\"verb\":\"keep\"}\n");
    while (bench->kept_count < 3)
        turn(bench);
    close(client);
    while (bench->gone_count < 2)
        turn(bench);
    assert_int_equal(socket_server_clients(bench->server), 1);
    /* And so does a server that closes. */
    socket_server_close(bench->server);
    assert_int_equal(bench->gone_count, 3);
    assert_string_equal(hear(bench, other, NULL), "");
    assert_int_equal(open_server(bench, NULL), 0);
    close(other);
}

static void what_is_asked_is_told_with_its_end(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"echo\"}\n{\"id\":2,\"verb\":\"refuse\"}\n");
    say(client, "{\"id\":3,\"verb\":\"big\"}\n{\"id\":4,\"verb\":\"nosuch\"}\n");
    say(client, "{\"id\":5,\"verb\":\"keep\"}\n{\"id\":6,\"verb\":\"keep\"}\n");
    while (bench->kept_count < 2)
        turn(bench);
    socket_call_answer(bench->kept[1], json_integer(1));
    close(client);
    while (bench->gone_count < 1)
        turn(bench);
    assert_string_equal(
        bench->asked, "echo done;refuse REFUSED;nosuch NOT_FOUND;keep done;keep gone;");
}

static void open_calls_are_limited(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    for (int i = 0; i <= SOCKET_CALLS_MAX; i++) {
        char line[64];

        (void)snprintf(line, sizeof line, "{\"id\":%d,\"verb\":\"keep\"}\n", i);
        say(client, line);
    }
    assert_string_equal(
        hear(bench, client, "\n"),
        "{\"id\":16,\"error\":{\"code\":\"LIMIT\",\"text\":\"there are 16 requests without an "
        "answer already\"}}\n");
    close(client);
    while (bench->gone_count < SOCKET_CALLS_MAX)
        turn(bench);
}

static void a_client_that_does_not_read_is_cut_off(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench), other = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"flood\"}\n{\"id\":2,\"verb\":\"echo\"}\n");
    while (!bench->was_closed)
        turn(bench);
    while (bench->gone_count < 1)
        turn(bench);
    assert_int_equal(socket_server_clients(bench->server), 1);
    say(other, "{\"id\":1,\"verb\":\"echo\"}\n");
    assert_string_equal(hear(bench, other, "\n"), "{\"id\":1,\"data\":\"nothing\"}\n");
    close(client);
    say(other, "{\"id\":1,\"verb\":\"flood-and-end\"}\n");
    wait_for_clients(bench, 0);
    assert_int_equal(bench->gone_count, 1);
    close(other);
}

static void requests_wait_while_answers_do(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"big\",\"arguments\":{\"size\":3000000}}\n"
                "{\"id\":2,\"verb\":\"big\",\"arguments\":{\"size\":3000000}}\n"
                "{\"id\":3,\"verb\":\"big\",\"arguments\":{\"size\":10}}\n");
    while (bench->big_count < 1)
        turn(bench);
    for (int i = 0; i < 10; i++)
        assert_true(det_loop_turn(bench->loop, 0) >= 0);
    assert_int_equal(bench->big_count, 1);
    assert_int_equal(socket_server_clients(bench->server), 1);
    for (size_t left = 2 * (3000000 + ANSWER) + 10 + ANSWER; left;) {
        char part[65536];
        ssize_t count = recv(client, part, sizeof part, 0);

        assert_true(count > 0 || errno == EAGAIN);
        left -= count > 0 ? (size_t)count : 0;
        if (count < 0)
            turn(bench);
    }
    assert_int_equal(bench->big_count, 3);
    close(client);
}

static void an_answer_that_does_not_fit_ends_the_client(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench), other = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"big\",\"arguments\":{\"size\":5000000}}\n");
    assert_string_equal(hear(bench, client, NULL), "");
    say(other, "{\"id\":1,\"verb\":\"nothing\"}\n");
    assert_string_equal(hear(bench, other, NULL), "");
    close(client);
    close(other);
}

static void one_that_stops_sending_gets_what_was_answered(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"keep\"}\n{\"id\":2,\"verb\":\"echo\"}\n{\"id\":3");
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_string_equal(hear(bench, client, NULL), "{\"id\":2,\"data\":\"nothing\"}\n");
    while (bench->gone_count < 1)
        turn(bench);
    close(client);
}

static void one_that_leaves_before_all_is_sent_is_gone(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"big\",\"arguments\":{\"size\":3000000}}\n");
    while (bench->big_count < 1)
        turn(bench);
    close(client);
    wait_for_clients(bench, 0);
}

static void forget(void *argument)
{
    struct bench *bench = argument;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"forget\"}\n");
    hear(bench, client, "\n");
}

static void a_verb_that_forgets_its_call_is_a_mistake(void **state)
{
    assert_true(det_test_aborts(forget, *state, "is_kept"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_may_come_in_pieces_and_together),
        TEST(a_line_that_is_too_long_does),
        TEST(calls_may_be_answered_later),
        TEST(a_client_that_leaves_gives_up_its_calls),
        TEST(open_calls_are_limited),
        TEST(a_client_that_does_not_read_is_cut_off),
        TEST(requests_wait_while_answers_do),
        TEST(an_answer_that_does_not_fit_ends_the_client),
        TEST(one_that_stops_sending_gets_what_was_answered),
        TEST(what_is_asked_is_told_with_its_end),
        TEST(one_that_leaves_before_all_is_sent_is_gone),
        TEST(a_verb_that_forgets_its_call_is_a_mistake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
