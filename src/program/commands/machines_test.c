/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* machines_test.c - `detent up` with machines, in this process: what it tells, what it answers
 * over its API, and how it ends. tests/e2e/effects.py has what takes a second process. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/daemon_client.h"
#include "daemon/machines.h"
#include "terminal/command.h"
#include "terminal/folder_test.h"

extern const struct cli_command cli_command_up;

#define PATIENCE (10 * DET_MINUTE)

static const char spec_text[] = "#define FSM_NAME order\n"
                                "#define FSM_PREFIX ORDER\n"
                                "#define FSM_DATA order_data\n"
                                "RECORD(order_data)\n"
                                "    FIELD(total, u64)\n"
                                "END\n"
                                "RECORD(payment)\n"
                                "    FIELD(cents, u64)\n"
                                "END\n"
                                "STATE(PENDING, pending, INITIAL)\n"
                                "STATE(CHARGING, charging)\n"
                                "STATE(PAID, paid, FINAL)\n"
                                "EVENT(PAY, pay, payment)\n"
                                "EVENT(PING, ping)\n"
                                "EVENT(SHIP, ship)\n"
                                "EVENT(JUNK, junk)\n"
                                "EVENT(HALT, halt)\n"
                                "INTERNAL(CHARGED, charged)\n"
                                "EFFECT(charge, CHARGED)\n"
                                "UNHANDLED(SHIP, DEFER)\n"
                                "UNHANDLED(JUNK, DEAD_LETTER)\n"
                                "ON(PENDING, PAY, CHARGING, DO(charge))\n"
                                "STAY(PENDING, PING)\n"
                                "STOP(PENDING, HALT, REASON(\"enough\"))\n"
                                "ON(CHARGING, CHARGED, PAID)\n"
                                "STAY(CHARGING, ANY(SHIP, JUNK))\n";

/* Asks, line by line, and keeps the answers; the last line stops the run. */
struct client {
    const char *project;
    const char *const *lines; /* "POST /path" and a body, in pairs; NULL at the end */
    char answers[65536];
    pthread_t thread;
};

static struct daemon_client *dial(const char *project)
{
    det_time until = det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;
    struct daemon_client *client = NULL;
    struct det_error error;

    while (daemon_client_open(project, NULL, &client, &error) < 0 &&
           det_world_now(NULL, DET_CLOCK_MONOTONIC) < until)
        (void)poll(NULL, 0, 1);
    return client;
}

static void *ask_all(void *argument)
{
    struct client *client = argument;
    struct daemon_client *socket = dial(client->project);
    size_t used = 0;

    for (const char *const *line = client->lines; socket && *line; line += 2) {
        const struct det_json_value *answer = NULL;
        struct det_error error = { 0 };
        struct det_json_writer body;
        const char *path = strchr(line[0], ' ') + 1;
        char method[8];
        int r;

        snprintf(method, sizeof method, "%.*s", (int)(path - line[0] - 1), line[0]);
        det_json_writer_init(&body, NULL);
        det_json_raw(&body, NULL, line[1], strlen(line[1]));
        r = daemon_client_call(socket, method, path, &body, PATIENCE, &answer, &error);
        used += (size_t)snprintf(
            client->answers + used, sizeof client->answers - used, "%s: %.*s\n", line[0],
            r < 0 ? (int)strlen(error.text) : (int)answer->raw.size,
            r < 0 ? error.text : answer->raw.data);
    }
    daemon_client_close(socket);
    return NULL;
}

/* Runs `up` on the file; returns its exit code and what it printed, to be freed. */
static int run_up(struct fixture *fixture, const char *yaml, char **ret_printed)
{
    const char *operands[] = { NULL };
    struct cli cli = fixture->cli;
    struct cli_args args = { .operands = operands };
    char path[512];
    size_t size = 0;
    int code;

    put_text(fixture, "order.fsm", spec_text);
    put_text(fixture, "detent.yaml", yaml);
    snprintf(path, sizeof path, "%s/detent.yaml", fixture->folder);
    args.values[0] = path;
    cli.command = "up";
    cli.out = open_memstream(ret_printed, &size);
    assert_non_null(cli.out);
    code = cli_command_up.run(&cli, &args);
    fclose(cli.out);
    fflush(cli.err);
    return code;
}

/* Runs it with a client; `answers` has the answers to it. */
static char *run_asked(
    struct fixture *fixture, const char *yaml, struct client *client, const char *const *lines)
{
    char *printed = NULL;
    int code;

    *client = (struct client){ .project = fixture->folder, .lines = lines };
    assert_int_equal(pthread_create(&client->thread, NULL, ask_all, client), 0);
    code = run_up(fixture, yaml, &printed);
    pthread_join(client->thread, NULL);
    if (code != CLI_OK)
        fail_msg("exit code %d: %s", code, fixture->printed);
    return printed;
}

static void assert_part(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in: %s", part, text);
}

#define ONE(effect) \
    "version: 1\nstore: sqlite:shop.db\nmachines:\n  order: {effects: {charge: " effect "}}\n"
#define START    "POST /v1/machines/order/instances?steps=true"
#define O(id)    "POST /v1/machines/order/instances/" id
#define SEND(id) O(id) "/events?steps=true"
#define STOP     "POST /v1/stop", "{}"
#define PAY      "{\"event\": \"pay\", \"payload\": {\"cents\": 1}}"

static void api_requests_are_applied_and_logged(void **state)
{
    static const char *const lines[] = {
        START,
        "{\"id\": \"o-1\", \"data\": {\"total\": 7}}",
        START,
        "{\"id\": \"o-1\"}",
        SEND("o-1"),
        "{\"event\": \"ping\"}",
        SEND("o-1"),
        "{\"event\": \"ping\", \"expected\": 9}",
        SEND("o-1"),
        "{\"event\": \"ship\"}",
        SEND("o-1"),
        "{\"event\": \"junk\"}",
        SEND("o-1"),
        "{\"event\": \"nope\"}",
        SEND("o-1"),
        "{\"event\": \"pay\", \"payload\": {}}",
        START,
        "{\"id\": \"o-1\", \"data\": {\"totl\": 7}}",
        "POST /v1/machines/parcel/instances",
        "{\"id\": \"o-1\"}",
        START,
        "{}",
        START,
        "{\"id\": \"o-1\", \"event\": \"x\"}",
        SEND("o-1"),
        "{}",
        O("o-1") "/retry",
        "{\"key\": \"order/o-1/1/0\"}",
        O("o-1") "/retry",
        "{\"kye\": \"x\"}",
        O("o-1") "/cancel",
        "{\"raeson\": \"x\"}",
        SEND("o-1"),
        PAY,
        START,
        "{\"id\": \"o-2\"}",
        O("o-2") "/cancel",
        "{\"reason\": \"no\"}",
        START,
        "{\"id\": \"o-3\"}",
        SEND("o-3"),
        "{\"event\": \"halt\"}",
        STOP,
        NULL,
    };
    struct client client;
    char *printed = run_asked(*state, ONE("{command: [sleep, '0']}"), &client, lines);

    assert_part(client.answers, "\"outcome\":\"goto\"");
    assert_part(client.answers, "order has no event 'nope'");
    assert_part(client.answers, "parcel");
    assert_part(client.answers, "'id'");
    assert_part(client.answers, "'event'");
    assert_part(client.answers, "'kye'");
    assert_part(client.answers, "'raeson'");
    /* The event that was kept follows at once. */
    assert_part(
        client.answers, "\"steps\":[{\"event\":\"pay\",\"from\":\"pending\",\"to\":\"charging\","
                        "\"outcome\":\"goto\"},{\"event\":\"ship\",");
    assert_part(printed, "order  = o-1: started, pending\n");
    assert_part(printed, "order  = o-1: stays pending (ping)\n");
    assert_part(printed, "order  = o-1: ship is deferred until pending is left\n");
    assert_part(printed, "order  = o-1: pending -> charging (pay)\n");
    assert_part(printed, "order  = o-2: stopped in pending (on request)\n");
    assert_part(printed, "order  = o-3: stopped in pending (halt)\n");
    assert_part(printed, "junk");
    free(printed);
}

/* The command of the effect ends the run itself, when it has been tried twice. */
static void effect_command_is_retried_until_it_succeeds(void **state)
{
    static const char *const lines[] = {
        START, "{\"id\": \"o-1\"}", SEND("o-1"), PAY, NULL,
    };
    struct client client;
    char *printed = run_asked(
        *state,
        ONE("{command: [sh, -c, 'test -e once || { touch once; echo no >&2; exit 1; }; kill "
            "$PPID'], exits: {0: charged}, backoff: 1ms..1ms}"),
        &client, lines);

    assert_part(printed, "order  = o-1: charge failed, attempt 1: exit code 1: no\n");
    assert_part(printed, "terminated");
    assert_part(((struct fixture *)*state)->printed, "Serves order from sqlite:");
    free(printed);
}

/* The API and the log report which effects run and which wait for a thread. */
static void running_and_waiting_effects_are_distinguished(void **state)
{
    static const char *const lines[] = {
        START,
        "{\"id\": \"o-1\"}",
        SEND("o-1"),
        PAY,
        START,
        "{\"id\": \"o-2\"}",
        SEND("o-2"),
        PAY,
        "GET /v1/machines/order/instances/o-2/effects",
        "",
        "GET /v1/machines/order/instances/o-9/effects",
        "",
        STOP,
        NULL,
    };
    struct client client;
    char *printed = run_asked(
        *state, ONE("{command: [sleep, '600']}") "limits: {effects: 1}\n", &client, lines);

    assert_part(client.answers, "\"threads_max\":1,\"effects\":[{\"key\":\"");
    assert_part(
        client.answers, "/order/o-2/1/0\",\"state\":\"queued\",\"attempts\":1,"
                        "\"running_ns\":null}]}\n");
    assert_part(client.answers, det_error_text(DET_ERR_NOT_FOUND));
    free(printed);
}

#define SLOT                                                                          \
    "version: 1\nstore: sqlite:queue.db\nslots:\n  batch: {durable: yes, schedules: " \
    "{daily: {cron: '@yearly', run: ls, folder: .}}}\n"
#define JOB(name, run)                  \
    "POST /v1/slots/batch/submissions", \
        "{\"name\": \"" name "\", \"run\": [" run "], \"retries\": 1}"
#define CHANGE(change, name) "POST /v1/slots/batch/submissions/" name "/" change, "{}"

static void jobs_are_taken_and_changed(void **state)
{
    static const char *const lines[] = {
        JOB("long", "\"sleep\", \"60\""),
        JOB("next", "\"true\""),
        JOB("next", "\"true\""),
        JOB("not/good", "\"true\""),
        CHANGE("cancel", "next"),
        CHANGE("retry", "next"),
        CHANGE("retry", "nobody"),
        CHANGE("cancel", "nobody"),
        CHANGE("cancel", "long"),
        STOP,
        NULL,
    };
    struct client client;
    char *printed = run_asked(*state, SLOT, &client, lines);

    assert_part(client.answers, "{\"kind\":\"submitted\",\"id\":0,\"name\":\"long\"");
    assert_part(client.answers, "'not/good' is not a name");
    assert_part(client.answers, "/next/cancel: {\"kind\":\"changed\"}\n");
    assert_part(client.answers, "/next/retry: {\"kind\":\"changed\"}\n");
    assert_part(client.answers, "/long/cancel: {\"kind\":\"changed\"}\n");
    assert_part(client.answers, det_error_text(DET_ERR_NOT_FOUND));
    assert_part(((struct fixture *)*state)->printed, "detent.yaml: 1 durable slot. Ctrl-C");
    free(printed);
}

/* Returns true if it waits, was claimed and starts soon, or runs. */
static void a_job_is_cancelled_wherever_it_is(void **state)
{
#define BOTH(name) JOB(name, "\"sleep\", \"60\""), CHANGE("cancel", name)
    static const char *const lines[] = {
        BOTH("a"), BOTH("b"), BOTH("c"), BOTH("d"), BOTH("e"), BOTH("f"),
        BOTH("g"), BOTH("h"), BOTH("i"), BOTH("j"), BOTH("k"), BOTH("l"),
        BOTH("m"), BOTH("n"), BOTH("o"), BOTH("p"), STOP,      NULL,
    };
#undef BOTH
    struct client client;
    char *printed = run_asked(*state, SLOT, &client, lines);

    if (strstr(client.answers, det_error_text(DET_ERR_NOT_FOUND)))
        fail_msg("one was not found: %s", client.answers);
    free(printed);
}

static void daemon_without_machines_reports_it(void **state)
{
    static const char *const lines[] = {
        "GET /v1/served", "", START, "{\"id\": \"o-1\"}", CHANGE("retry", "a"), STOP, NULL,
    };
    struct client client;
    char *printed = run_asked(
        *state, "version: 1\nmachines: {order: {}}\ntasks: {wait: {run: sleep 60}}\n", &client,
        lines);

    assert_part(client.answers, "\"store\":null");
    assert_part(client.answers, "\"jobs\":null");
    assert_part(client.answers, "instances?steps=true: ");
    assert_part(client.answers, "/a/retry: this detent up has no durable slots");
    free(printed);
}

static void expect_refusal(struct fixture *fixture, const char *yaml, int code, const char *part)
{
    char *printed = NULL;

    assert_int_equal(run_up(fixture, yaml, &printed), code);
    assert_part(fixture->printed, part);
    free(printed);
}

static void unservable_machine_config_is_reported(void **state)
{
    expect_refusal(
        *state, "version: 1\nmachines: {order: {}}\n", CLI_USAGE,
        "no machine to serve; machine 'order' is listed, but 'detent up' does not serve it: add "
        "'effects' with a command for each of its effects, or write effects: {} if it has none");
    expect_refusal(
        *state,
        "version: 1\nstore: nosuch:x\nmachines: {order: {effects: {charge: {command: ls}}}}\n",
        CLI_USAGE, "nosuch");
    expect_refusal(
        *state,
        "version: 1\nstore: sqlite:no/such/x\nmachines: {order: {effects: {charge: {command: "
        "ls}}}}\n",
        CLI_NOT_FOUND, "no/such/x");
}

/* Runs `up` when memory runs out. */
struct lean {
    struct fixture *fixture;
    const char *yaml;
};

/* It is asked to end before it begins, so that it opens everything, and ends. */
static int run_without_memory(struct det_test_memory *memory, void *argument)
{
    const struct lean *lean = argument;
    struct fixture *fixture = lean->fixture;
    char *printed = NULL;
    int code;

    fixture->cli.allocator = &memory->allocator;
    /* To the process: a thread of `up` takes it. */
    (void)kill(getpid(), SIGTERM);
    code = run_up(fixture, lean->yaml, &printed);
    fixture->cli.allocator = NULL;
    if (code != CLI_OK)
        assert_true(memory->failed);
    free(printed);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void up_survives_failed_allocations(void **state)
{
    static const struct timespec at_once = { 0 };
    sigset_t set, before;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    det_test_some_failures(run_without_memory, &(struct lean){ *state, ONE("{command: ls}") }, 11);
    det_test_some_failures(run_without_memory, &(struct lean){ *state, SLOT }, 11);
    (void)sigtimedwait(&set, NULL, &at_once);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(api_requests_are_applied_and_logged),
        TEST(effect_command_is_retried_until_it_succeeds),
        TEST(running_and_waiting_effects_are_distinguished),
        TEST(jobs_are_taken_and_changed),
        TEST(a_job_is_cancelled_wherever_it_is),
        TEST(daemon_without_machines_reports_it),
        TEST(unservable_machine_config_is_reported),
        TEST(up_survives_failed_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
