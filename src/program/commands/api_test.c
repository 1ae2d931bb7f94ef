/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* api_test.c - every route of the HTTP API while memory fails: one `detent up` in this process, and
 * a client that asks it over its unix socket.
 *
 * For each request of the table the first allocation from then on fails, then the second one, and
 * so on, until a request meets no failure. What was asked for has then happened, or is answered
 * with 500 or 503; the next request is answered as if nothing had been. Which allocation fails is
 * not the same in every run, since many threads allocate; what must hold is. */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api_internal.h"
#include "client/daemon_client.h"
#include "commands/api_test.h"
#include "terminal/command.h"
#include "terminal/folder_test.h"

extern const struct cli_command cli_command_up;

enum { OPTION_FILE, OPTION_TIMES, OPTION_QUIET, OPTION_JOURNAL, OPTION_LISTEN };

#define POINTS 200 /* more failures than these is no end */

static const char spec_text[] = "#define FSM_NAME order\n"
                                "#define FSM_PREFIX ORDER\n"
                                "#define FSM_DATA order_data\n"
                                "RECORD(order_data)\n"
                                "    FIELD(total, u64)\n"
                                "END\n"
                                "RECORD(payment)\n"
                                "    FIELD(card, str(24), SENSITIVE)\n"
                                "END\n"
                                "STATE(PENDING, pending, INITIAL)\n"
                                "STATE(CHARGING, charging)\n"
                                "STATE(PAID, paid, FINAL)\n"
                                "EVENT(PAY, pay, payment)\n"
                                "EVENT(PING, ping)\n"
                                "INTERNAL(CHARGED, charged)\n"
                                "INTERNAL(LATE, late)\n"
                                "EFFECT(charge, CHARGED)\n"
                                "ON(PENDING, PAY, CHARGING, DO(charge))\n"
                                "STAY(PENDING, PING)\n"
                                "STAY(PENDING, LATE)\n"
                                "ON(CHARGING, CHARGED, PAID)\n"
                                "AFTER(PENDING, DAYS(1), LATE)\n";

/* A flow that completes at once, so that it takes no failure that is meant for a request. */
static const char flow_text[] = "#define FLOW_NAME three\n"
                                "RECORD(count)\n"
                                "    FIELD(n, u64)\n"
                                "END\n"
                                "SOURCE(make, count, USE(generate, \"{count: 3}\"))\n"
                                "SINK(drop, count, USE(null))\n"
                                "EDGE(make, drop)\n";

static const char project_text[] =
    "version: 1\n"
    "store: sqlite:orders.db\n"
    "machines:\n"
    "  order: {effects: {charge: {command: [\"false\"], attempts: 1}}}\n"
    "tasks:\n"
    "  sleeper: {run: sleep 600}\n"
    "slots:\n"
    "  batch: {width: 1}\n"
    "  kept: {width: 1, durable: yes}\n"
    "flows: {three: {file: three.flow}}\n"
    "workers: {children: [{name: hello, kind: helloworld}]}\n";

#define ORDERS "/v1/machines/order/instances"
#define ONE    ORDERS "/o-1"
#define EVERY  ORDERS "/o-@"
#define SEND   "{\"event\": \"ping\"}"
#define PAY    "{\"event\": \"pay\", \"data\": {\"card\": \"4\"}}"
#define FRESH  "{\"id\": \"o-@\", \"data\": {\"total\": 1}}"
#define BATCH  "{\"sends\": [{\"machine\": \"order\", \"id\": \"o-1\", \"event\": \"ping\"}]}"

#define PUT                                                                                     \
    "{\"kind\": \"noop\", \"variables\": {\"A\": 1}, \"run_in\": [\"running\"], \"disabled\": " \
    "true}"

/* An @ is the number of the attempt. */
struct ask {
    const char *method, *path, *body;
    const char *right; /* statuses of one that met no failure */
    bool is_fresh;     /* an instance o-@ is started before it */
};

#define SESSION 4

static const struct ask asks[] = {
    { "GET", "/livez", NULL, "200", false },
    { "GET", "/readyz", NULL, "200", false },
    { "GET", "/metrics", NULL, "200", false },
    { "GET", "/v1/openapi.yaml", NULL, "200", false },
    { "POST", "/v1/session", "{}", "400", false },
    { "DELETE", "/v1/session", NULL, "422", false },
    { "GET", "/v1/session", NULL, "200 422", false },
    { "GET", "/v1/status", NULL, "200", false },
    { "POST", "/v1/console-links", "{}", "200 422", false },
    { "POST", "/v1/reload", "{\"plan\": true}", "200", false },
    { "POST", "/v1/stop", "{\"nothing\": 1}", "400", false },
    { "POST", "/v1/drain", "{\"nothing\": 1}", "400", false },
    { "GET", "/v1/served", NULL, "200", false },
    { "GET", "/v1/store", NULL, "200", false },
    { "GET", "/v1/overview", NULL, "200", false },
    { "GET", "/v1/rates", NULL, "200", false },
    { "GET", "/v1/machines", NULL, "200", false },
    { "GET", "/v1/machines/order", NULL, "200", false },
    { "GET", "/v1/machines/order/diagram?format=mermaid", NULL, "200", false },
    { "GET", "/v1/definitions", NULL, "200", false },
    { "GET", "/v1/machines/order/due?kind=effects&limit=2", NULL, "200", false },
    { "POST", "/v1/definitions", "{\"spec\": \"#define FSM_NAME x\\n\"}", "200", false },
    { "GET", ORDERS "?state=pending&limit=2", NULL, "200", false },
    { "POST", ORDERS, FRESH, "201 409", false },
    { "GET", ONE, NULL, "200", false },
    { "POST", ONE "/events", SEND, "200", false },
    { "POST", EVERY "/events", PAY, "200 422", true },
    { "POST", ONE "/batch", "{\"events\": [" SEND ", " SEND "]}", "200", false },
    { "POST", "/v1/batches", BATCH, "200", false },
    { "POST", EVERY "/cancel", "{\"reason\": \"enough\"}", "200 422", true },
    { "POST", ORDERS "/paid/retry", "{\"key\": \"order/paid/1/0\"}", "200 404 409", false },
    { "GET", ONE "/history?limit=2&data=true", NULL, "200", false },
    { "GET", ONE "/trace", NULL, "200", false },
    { "GET", ONE "/diagram?format=mermaid", NULL, "200", false },
    { "GET", ONE "/effects", NULL, "200", false },
    { "GET", ONE "/why", NULL, "200", false },
    { "GET", ONE "/lock", NULL, "200", false },
    { "GET", "/v1/locks?limit=2", NULL, "200", false },
    { "GET", "/v1/timers?limit=2", NULL, "200", false },
    { "GET", "/v1/effects?dead=true&limit=2", NULL, "200", false },
    { "GET", "/v1/log?limit=2", NULL, "200", false },
    { "GET", "/v1/tasks", NULL, "200", false },
    { "GET", "/v1/tasks/sleeper", NULL, "200", false },
    { "GET", "/v1/tasks/sleeper/logs?lines=2", NULL, "200", false },
    { "POST", "/v1/tasks/sleeper/stop", "{}", "200", false },
    { "POST", "/v1/tasks/sleeper/restart", "{}", "200", false },
    { "GET", "/v1/lines?task=sleeper&lines=2", NULL, "200", false },
    { "GET", "/v1/task-events?new=true", NULL, "200", false },
    { "GET", "/v1/tree", NULL, "200", false },
    { "GET", "/v1/slots", NULL, "200", false },
    { "GET", "/v1/slots/kept/submissions?limit=2", NULL, "200", false },
    { "GET", "/v1/slots/kept/submissions?order=oldest", NULL, "200", false },
    { "GET", "/v1/slots/kept/submissions?order=random", NULL, "400", false },
    { "POST", "/v1/slots/kept/submissions", "{\"run\": [\"true\"]}", "201 202", false },
    { "GET", "/v1/slots/batch/submissions", NULL, "422", false },
    { "POST", "/v1/slots/batch/submissions", "{\"run\": [\"true\"]}", "201", false },
    { "GET", "/v1/submissions?order=newest&limit=2", NULL, "200", false },
    { "GET", "/v1/submissions?order=random", NULL, "400", false },
    { "POST", "/v1/submissions", "{\"run\": [\"true\"]}", "201", false },
    { "POST", "/v1/slots/kept/submissions/nobody/cancel", "{}", "404", false },
    { "GET", "/v1/workers?limit=1", NULL, "200", false },
    { "GET", "/v1/workers-summary", NULL, "200", false },
    { "GET", "/v1/workers/root~hello", NULL, "200", false },
    { "GET", "/v1/workers/hello/history", NULL, "200", false },
    { "PUT", "/v1/workers/root~w-@", PUT, "200", false },
    { "DELETE", "/v1/workers/hello", NULL, "400", false },
    { "POST", "/v1/workers/hello/order", "{\"order\": \"enable\"}", "200", false },
    { "GET", "/v1/documents?limit=2", NULL, "200", false },
    { "GET", "/v1/deltas?limit=2", NULL, "200", false },
    { "GET", "/v1/flows", NULL, "200", false },
    { "GET", "/v1/flows/three", NULL, "200", false },
    { "GET", "/v1/flows/three/diagram?format=mermaid", NULL, "200", false },
    { "GET", "/v1/flows/three/stages/drop", NULL, "200", false },
    { "GET", "/v1/flows/three/facts?limit=2", NULL, "200", false },
    { "GET", "/v1/flows/three/rows?stream=make&limit=2", NULL, "200", false },
    { "POST", "/v1/flows/three/drain", "{\"nothing\": 1}", "400", false },
    { "GET", "/v1/nothing", NULL, "404", false },
    { "DELETE", ONE, NULL, "405", false },
    { "GET", "/", NULL, "200", false },
};

/* The stream, which is not answered to its end. */
static const struct ask following = { "GET", "/v1/events", NULL, "200", false };

/* Judging. */

static void report(struct client *client, const struct ask *one, size_t point)
{
    const char *body = strstr(client->answer, "\r\n\r\n");

    snprintf(
        client->fault, sizeof client->fault, "%s %s, failure %zu: %u: %.300s", one->method,
        one->path, point, client->status, body ? body + 4 : "");
}

static bool has_status(const char *list, unsigned status)
{
    char text[12];

    snprintf(text, sizeof text, "%u", status);
    return status != GONE && strstr(list, text);
}

static bool is_answered(struct client *client, const struct ask *one)
{
    return has_status(one->right, ask(client, one->method, one->path, one->body));
}

/* Subject of the next attempt. */
static void prepare(struct client *client, const struct ask *one)
{
    client->attempt++;
    if (one->is_fresh && ask(client, "POST", ORDERS, FRESH) != 201)
        report(client, one, 0);
}

/* One request whose n-th allocation fails; whether there was such a one. */
static bool try_one(struct client *client, const struct ask *one, size_t point, bool is_sticky)
{
    static const struct ask live = { "GET", "/livez", NULL, "200", false };
    unsigned status;
    bool failed;

    prepare(client, one);
    (void)det_test_memory_fail(client->memory, point, is_sticky);
    status = ask(client, one->method, one->path, one->body);
    failed = det_test_memory_fail(client->memory, 0, false);
    client->gone += status == GONE;
    /* A connection that met a failure may be closed behind its answer. */
    if (failed)
        hang_up(client);
    if (!has_status(one->right, status) && !(failed && has_status("500 503", status)) &&
        !(failed && status == GONE))
        report(client, one, point);
    if (failed && !is_answered(client, &live))
        report(client, &live, point);
    return failed && !*client->fault;
}

static void try_all(struct client *client, const struct ask *one)
{
    size_t point = 1;

    prepare(client, one);
    if (!is_answered(client, one))
        report(client, one, 0);
    while (!*client->fault && point < POINTS && try_one(client, one, point, false)) {
        (void)try_one(client, one, point, true);
        point++;
    }
    client->points += point - 1;
}

/* Following. */

/* Until the stream has said so much: its status, GONE or HANGS. */
static unsigned receive_until(struct client *client, const char *text)
{
    size_t size = 0;

    client->answer[0] = '\0';
    while (!strstr(client->answer, text)) {
        ssize_t got = recv(client->socket, client->answer + size, ANSWER - 1 - size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return silence(got);
        size += (size_t)got;
        client->answer[size] = '\0';
        if (strncmp(client->answer, "HTTP/1.1 5", 10) == 0 && is_complete(client->answer, size))
            return 503;
        if (strstr(client->answer, "event: dropped"))
            return GONE;
    }
    return 200;
}

static unsigned follow_at(struct client *client, const char *target, const char *word)
{
    char request[128];
    int size =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target);

    hang_up(client);
    if (!dial(client))
        return GONE;
    (void)send(client->socket, request, (size_t)size, MSG_NOSIGNAL);
    return receive_until(client, word);
}

static unsigned follow(struct client *client)
{
    return follow_at(client, "/v1/events?id=o-1", "event: hello");
}

static unsigned follow_deltas(struct client *client)
{
    return follow_at(client, "/v1/deltas?follow=true&after=0", "event: delta");
}

/* A follower is admitted, or is refused with an error. */
static bool try_follow(struct client *client, unsigned (*how)(struct client *client), size_t point)
{
    bool failed;

    (void)det_test_memory_fail(client->memory, point, false);
    client->status = how(client);
    failed = det_test_memory_fail(client->memory, 0, false);
    if (client->status == HANGS || (client->status != 200 && !failed))
        report(client, &following, point);
    return failed && !*client->fault;
}

/* An admitted follower gets all events, or is disconnected. */
static bool try_report(struct client *client, struct client *other, size_t point)
{
    bool failed;

    client->status = follow(client);
    (void)det_test_memory_fail(client->memory, client->status == 200 ? point : 0, false);
    if (ask(other, "POST", ONE "/events", SEND) != 200) {
        (void)det_test_memory_fail(client->memory, 0, false);
        hang_up(other);
        (void)ask(other, "POST", ONE "/events", SEND);
        failed = true;
    } else {
        failed = false;
    }
    client->status = receive_until(client, "\"ping\"");
    failed = det_test_memory_fail(client->memory, 0, false) || failed;
    if (client->status == HANGS || (client->status != 200 && !failed))
        report(client, &following, point);
    hang_up(other);
    return failed && !*client->fault;
}

static void follow_all(struct client *client)
{
    static struct client other;
    size_t point = 1;

    other = (struct client){ .fixture = client->fixture, .socket = -1 };
    while (point < POINTS && try_follow(client, follow, point))
        point++;
    client->points += point - 1;
    for (point = 1; point < POINTS && try_follow(client, follow_deltas, point);)
        point++;
    client->points += point - 1;
    for (point = 1; point < POINTS && try_report(client, &other, point);)
        point++;
    client->points += point - 1;
    hang_up(&other);
}

/* Signing in and out. */

/* Asks `up`; the link that it answers with, if it does. */
static void ask_up(struct client *client, const char *path)
{
    struct daemon_client *socket = NULL;
    const struct det_json_value *answer = NULL;
    struct det_json_writer body;
    struct det_error error;
    const char *link;

    if (daemon_client_open(client->fixture->folder, NULL, &socket, &error) == 0) {
        body = daemon_body(socket);
        (void)!daemon_client_call(socket, "POST", path, &body, PATIENCE, &answer, &error);
    }
    link = det_json_get_text(answer, "url");
    snprintf(client->link, sizeof client->link, "%s", link ? link : "");
    daemon_client_close(socket);
}

/* The token of the answer to who has redeemed a code. */
static void take_token(struct client *client)
{
    const char *text = strstr(client->answer, "\"token\":\"");

    if (text)
        snprintf(
            client->token, sizeof client->token, "%.*s", (int)strcspn(text + 9, "\""), text + 9);
}

static bool redeem(struct client *client, size_t point)
{
    const char *code = strstr(client->link, "#code=");
    char body[160];
    bool failed;

    snprintf(body, sizeof body, "{\"code\": \"%s\"}", code ? code + 6 : "");
    (void)det_test_memory_fail(client->memory, point, false);
    (void)ask(client, "POST", "/v1/session", body);
    failed = det_test_memory_fail(client->memory, 0, false);
    if (failed)
        hang_up(client);
    take_token(client);
    return failed;
}

/* Returns true if this end is permitted. */
static bool is_fair(const struct client *client, bool failed)
{
    return client->status == 200 ||
           (failed && (client->status == GONE || has_status("500 503", client->status)));
}

/* Whoever could not be let in for want of memory tries it again with the same code, unless that is
 * used up. */
static bool try_session(struct client *client, size_t point)
{
    bool failed;

    ask_up(client, "/v1/console-links");
    failed = redeem(client, point);
    if (!is_fair(client, failed))
        report(client, &asks[SESSION], point);
    if (!*client->token && redeem(client, 0))
        report(client, &asks[SESSION], point);
    hang_up(client);
    if (*client->token) {
        (void)det_test_memory_fail(client->memory, point, false);
        (void)ask(client, "DELETE", "/v1/session", NULL);
        failed = det_test_memory_fail(client->memory, 0, false) || failed;
        if (!is_fair(client, failed))
            report(client, &asks[SESSION], point);
        hang_up(client);
    }
    client->token[0] = '\0';
    return failed && !*client->fault;
}

static void sign_in_and_out(struct client *client)
{
    size_t point = 1;

    while (point < POINTS && try_session(client, point))
        point++;
    client->points += point - 1;
}

static bool is_up(struct client *client)
{
    det_time until = det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;

    while (ask(client, "GET", "/readyz", NULL) != 200) {
        if (atomic_load(&client->is_over) || det_world_now(NULL, DET_CLOCK_MONOTONIC) > until)
            return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

static bool has_completed(struct client *client, const char *path)
{
    det_time until = det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;

    while (ask(client, "GET", path, NULL) != 200 || !strstr(client->answer, "\"completed\"")) {
        if (atomic_load(&client->is_over) || det_world_now(NULL, DET_CLOCK_MONOTONIC) > until)
            return false;
        (void)poll(NULL, 0, 1);
    }
    return true;
}

/* Objects of the requests; one of the orders has a dead letter. */
static bool begin(struct client *client)
{
    return is_up(client) && has_completed(client, "/v1/flows/three") &&
           ask(client, "POST", ORDERS, "{\"id\": \"o-1\", \"data\": {\"total\": 1}}") == 201 &&
           ask(client, "POST", ORDERS, "{\"id\": \"paid\", \"data\": {\"total\": 1}}") == 201 &&
           ask(client, "POST", ORDERS "/paid/events", PAY) == 200;
}

static void *ask_all(void *argument)
{
    struct client *client = argument;

    if (!begin(client))
        snprintf(client->fault, sizeof client->fault, "it does not begin: %.400s", client->answer);
    client->attempt = 1;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0] && !*client->fault; i++)
        try_all(client, &asks[i]);
    if (!*client->fault)
        sign_in_and_out(client);
    if (!*client->fault)
        follow_all(client);
    hang_up(client);
    ask_up(client, "/v1/stop");
    return NULL;
}

/* The test. */

static int run_up(struct fixture *fixture)
{
    const char *operands[] = { NULL };
    struct cli cli = fixture->cli;
    struct cli_args args = { .operands = operands };
    char path[512];

    put_text(fixture, "order.fsm", spec_text);
    put_text(fixture, "three.flow", flow_text);
    put_text(fixture, "detent.yaml", project_text);
    snprintf(path, sizeof path, "%s/detent.yaml", fixture->folder);
    args.values[OPTION_FILE] = path;
    args.values[OPTION_LISTEN] = "127.0.0.1:0";
    cli.command = "up";
    return cli_command_up.run(&cli, &args);
}

static void every_route_is_answered_while_memory_fails(void **state)
{
    static struct client client;
    struct det_test_memory memory;
    int code;

    det_test_memory_init(&memory);
    client = (struct client){ .fixture = *state, .memory = &memory, .socket = -1 };
    client.fixture->cli.allocator = &memory.allocator;
    assert_int_equal(pthread_create(&client.thread, NULL, ask_all, &client), 0);
    code = run_up(client.fixture);
    atomic_store(&client.is_over, true);
    pthread_join(client.thread, NULL);
    client.fixture->cli.allocator = NULL;
    fflush(client.fixture->cli.err);
    if (*client.fault)
        fail_msg("%s\n%s", client.fault, client.fixture->printed);
    if (code != CLI_OK)
        fail_msg("exit code %d: %s", code, client.fixture->printed);
    print_message(
        "             %zu failure points, %zu without an answer\n", client.points, client.gone);
    det_test_memory_deinit(&memory);
}

/* Returns true if the table has a request of this route. */
static bool is_asked(const struct api_route *route)
{
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        char path[128];
        const struct http_request request = { .method = route->method, .path = path };
        unsigned status;

        snprintf(path, sizeof path, "%.*s", (int)strcspn(asks[i].path, "?"), asks[i].path);

        if (strcmp(asks[i].method, api_method_name(route->method)) == 0 &&
            api_match(&request, &status) == route)
            return true;
    }
    return false;
}

static void no_route_is_left_out(void **state)
{
    (void)state;
    for (const struct api_route *route = api_routes; route->pattern; route++) {
        if (route->run != api_get_events && route->run != api_get_flow_stream && !is_asked(route))
            fail_msg("nobody asks for %s", route->pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_route_is_left_out),
        TEST(every_route_is_answered_while_memory_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
