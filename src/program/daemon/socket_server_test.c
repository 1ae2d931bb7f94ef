/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* socket_server_test.c - who is let in by the server of the local socket, and what can be asked. */
#include "daemon/socket_server_test.h"

#include <sys/resource.h>

#include <detent/sim.h>

static void verbs_are_answered(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "{\"id\":1,\"verb\":\"echo\",\"arguments\":{\"a\":[1]}}\n");
    assert_string_equal(hear(bench, client, "\n"), "{\"id\":1,\"data\":{\"a\":[1]}}\n");
    say(client, "{\"id\":2,\"verb\":\"count\",\"arguments\":{\"to\":2}}\n");
    assert_string_equal(
        hear(bench, client, "true}\n"),
        "{\"id\":2,\"data\":1}\n{\"id\":2,\"data\":2}\n{\"id\":2,\"end\":true}\n");
    say(client, "{\"id\":3,\"verb\":\"refuse\"}\n");
    assert_string_equal(
        hear(bench, client, "\n"),
        "{\"id\":3,\"error\":{\"code\":\"REFUSED\",\"text\":\"not today\"}}\n");
    say(client, "{\"id\":4,\"verb\":\"helo\"}\n{\"id\":4,\"verb\":\"x9x9x9\"}\n");
    assert_string_equal(
        hear(bench, client, "x9'\"}}\n"),
        "{\"id\":4,\"error\":{\"code\":\"NOT_FOUND\",\"text\":\"there is no verb 'helo'; did you "
        "mean 'hello'?\"}}\n"
        "{\"id\":4,\"error\":{\"code\":\"NOT_FOUND\",\"text\":\"there is no verb 'x9x9x9'\"}}\n");
    say(client, "{\"id\":5,\"verb\":\"hello\"}\n");
    assert_non_null(strstr(hear(bench, client, "\n"), "\"program\":\"detent\""));
    say(client, "{\"id\":6,\"verb\":\"verbs\"}\n");
    assert_non_null(strstr(hear(bench, client, "\n"), "[\"hello\",\"verbs\",\"echo\",\"count\","));
    close(client);
    wait_for_clients(bench, 0);
}

static void a_line_that_is_no_request_does_not_end_the_conversation(void **state)
{
    struct bench *bench = *state;
    int client = dial(bench);

    say(client, "hello\n{\"id\":8,\"verb\":1}\n{\"id\":9,\"verb\":\"echo\"}\n");
    assert_non_null(strstr(
        hear(bench, client, "nothing\"}\n"), "{\"id\":null,\"error\":{\"code\":\"MALFORMED\""));
    say(client, "{\"id\":8,\"verb\":1}\n");
    assert_non_null(strstr(hear(bench, client, "\n"), "{\"id\":8,\"error\":{\"code\":\"INVALID\""));
    close(client);
}

static void clients_are_limited(void **state)
{
    struct bench *bench = *state;
    int clients[SOCKET_CLIENTS_MAX], late;

    for (size_t i = 0; i < SOCKET_CLIENTS_MAX; i++) {
        clients[i] = dial(bench);
        wait_for_clients(bench, i + 1);
    }
    late = dial(bench);
    assert_string_equal(
        hear(bench, late, NULL),
        "{\"id\":null,\"error\":{\"code\":\"LIMIT\",\"text\":\"there are 64 clients already\"}}\n");
    close(late);
    close(clients[0]);
    wait_for_clients(bench, SOCKET_CLIENTS_MAX - 1);
    clients[0] = dial(bench);
    say(clients[0], "{\"id\":1,\"verb\":\"echo\"}\n");
    assert_string_equal(hear(bench, clients[0], "\n"), "{\"id\":1,\"data\":\"nothing\"}\n");
    for (size_t i = 0; i < SOCKET_CLIENTS_MAX; i++)
        close(clients[i]);
}

static void other_users_are_turned_away(void **state)
{
    static const char refused[] = "{\"id\":null,\"error\":{\"code\":\"REFUSED\",\"text\":\"only "
                                  "the user who runs this detent is answered\"}}\n";
    struct bench *bench = *state;
    int client = dial(bench);

    pretended_peer = geteuid() + 1;
    assert_string_equal(hear(bench, client, NULL), refused);
    close(client);
    client = dial(bench);
    pretended_peer = geteuid();
    pretended_result = DET_ERR_IO;
    assert_string_equal(hear(bench, client, NULL), refused);
    close(client);
}

static void without_descriptors_accepting_rests(void **state)
{
    struct bench *bench = *state;
    struct rlimit before, none;
    int client = dial(bench), fillers[256], count = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)client + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    while (count < 256 && (fillers[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    turn(bench);
    assert_int_equal(socket_server_clients(bench->server), 0);
    assert_int_equal(det_loop_turn(bench->loop, 0), 0);
    while (count)
        close(fillers[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    wait_for_clients(bench, 1);
    close(client);
}

/* The loop fails too. Whoever is connected gets its answers or is cut off. */
static int converse(struct det_test_memory *memory, void *argument)
{
    struct bench bench = { .folder = argument };
    int client = -1, r;

    r = det_loop_open(NULL, &memory->allocator, &bench.loop);
    if (r < 0)
        return r;
    r = open_server(&bench, &memory->allocator);
    if (r == 0) {
        client = dial(&bench);
        say(client, "{\"id\":1,\"verb\":\"keep\"}\n{\"id\":2,\"verb\":\"echo\"}\n");
        assert_int_equal(shutdown(client, SHUT_WR), 0);
        (void)hear(&bench, client, NULL);
        close(client);
        socket_server_close(bench.server);
        assert_int_equal(bench.gone_count, bench.kept_count);
    }
    det_loop_close(bench.loop);
    return r;
}

static void failed_allocations_harm_only_those_they_meet(void **state)
{
    char *folder = det_test_folder();

    (void)state;
    det_test_each_failure(converse, folder);
    det_test_folder_remove(folder);
}

static void a_second_server_is_refused(void **state)
{
    struct bench *bench = *state, second = *bench;

    assert_int_equal(open_server(&second, NULL), DET_ERR_EXISTS);
    socket_server_close(NULL);
}

/* A simulated world has no descriptors to watch. */
static void a_loop_that_cannot_watch_is_told(void **state)
{
    struct bench bench = { .folder = det_test_folder() };
    struct det_sim *sim;

    (void)state;
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(sim), NULL, &bench.loop), 0);
    assert_int_equal(open_server(&bench, NULL), DET_ERR_UNSUPPORTED);
    det_loop_close(bench.loop);
    det_sim_close(sim);
    det_test_folder_remove(bench.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(verbs_are_answered),
        TEST(a_line_that_is_no_request_does_not_end_the_conversation),
        TEST(clients_are_limited),
        TEST(other_users_are_turned_away),
        TEST(without_descriptors_accepting_rests),
        cmocka_unit_test(a_loop_that_cannot_watch_is_told),
        cmocka_unit_test(failed_allocations_harm_only_those_they_meet),
        TEST(a_second_server_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
