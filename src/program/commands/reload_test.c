/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test: threads */
/* reload_test.c - plans of a file that changes, also without memory; and reloads while others ask.
 * tests/e2e/reload.py has what takes a second process. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/api.h"
#include "base/memory.h"
#include "client/daemon_client.h"
#include "daemon/machines.h"
#include "daemon/project_internal.h"
#include "daemon/reload.h"
#include "daemon/reload_plan.h"
#include "daemon/run.h"
#include "terminal/command.h"
#include "terminal/folder_test.h"

extern const struct cli_command cli_command_up;

#define PATIENCE  (10 * DET_MINUTE)
#define FILE_HEAD "version: 1\n"
#define TASK_LINE "tasks: {wait: {run: sleep 60}}\n"

static const char spec_text[] = "#define FSM_NAME clock\n"
                                "#define FSM_PREFIX CLOCK\n"
                                "STATE(RUNS, runs, INITIAL)\n"
                                "EVENT(TICK, tick)\n"
                                "STAY(RUNS, TICK)\n";

/* Plans. */

/* As much of a run as a plan asks for. */
struct stage {
    struct fixture *fixture;
    struct up_options options;
    char path[512];
    struct up up;
    struct up_project project;
};

static void open_stage(struct stage *stage, struct fixture *fixture, const char *yaml)
{
    struct up *up = &stage->up;

    *stage = (struct stage){ .fixture = fixture };
    put_text(fixture, "detent.yaml", yaml);
    snprintf(stage->path, sizeof stage->path, "%s/detent.yaml", fixture->folder);
    stage->options.path = stage->path;
    up->cli = up->output.outer = &fixture->cli;
    stage->options.front = &api_front;
    up->options = &stage->options;
    up->project = &stage->project;
    assert_int_equal(up_project_init(up->cli, up->options, up->project), CLI_OK);
}

static void close_stage(struct stage *stage)
{
    up_project_deinit(stage->up.cli, stage->up.project);
}

/* "group g changed!": one after the other; those that wait for a restart end with a mark. */
static void write_items(const struct reload *reload, char *target, size_t size)
{
    size_t used = 0;

    *target = '\0';
    for (const struct reload_item *item = reload->first; item; item = item->next)
        used += (size_t)snprintf(
            target + used, size - used, "%s%s%s%s %s%s", used ? ", " : "", item->subject,
            item->name ? " " : "", item->name ? item->name : "", reload_change_word(item->change),
            item->needs_restart ? "!" : "");
}

static void expect_plan(struct stage *stage, const char *yaml, const char *items)
{
    struct reload reload;
    char text[512];

    put_text(stage->fixture, "detent.yaml", yaml);
    if (reload_open(&stage->up, &reload) != CLI_OK)
        fail_msg("%s", reload.text);
    write_items(&reload, text, sizeof text);
    assert_string_equal(text, items);
    reload_close(&reload);
}

static void plan_lists_changes_and_what_they_require(void **state)
{
    struct stage stage;

    open_stage(
        &stage, *state,
        FILE_HEAD TASK_LINE
        "groups: {g: {}}\nslots: {s: {}}\nhttp: {rate: 7}\nlog: {level: info}\n");
    expect_plan(
        &stage,
        "version: 1\nhttp: {rate: 7}\nlog: {level: 'info'} # the same\ngroups: {g: {}}\n"
        "slots: {s: {}}\n" TASK_LINE,
        "");
    expect_plan(
        &stage,
        FILE_HEAD "tasks: {wait: {run: sleep 61}, b: {run: sleep 1}}\ngroups: {g: {strategy: "
                  "all-for-one}, h: {}}\nhttp: {listen: none}\ntraces: {endpoint: "
                  "'http://127.0.0.1:1/v1/traces'}\nlog: {level: debug}\n",
        "group g changed!, group h added, slot s removed!, task wait changed, task b added, "
        "http listen added!, http rate removed, log changed, traces added!");
    close_stage(&stage);
}

/* Lists that hold the same words in another order of depth. */
static void plan_compares_the_nesting_of_lists(void **state)
{
    struct stage stage;

    open_stage(&stage, *state, FILE_HEAD "tasks: {a: {run: [sh, 'x y']}}\n");
    expect_plan(&stage, FILE_HEAD "tasks: {a: {run: [sh, x, y]}}\n", "task a changed");
    expect_plan(&stage, FILE_HEAD "tasks: {a: {run: ['sh', \"x y\"]}}\n", "");
    close_stage(&stage);
}

/* As after a reload: the file that was read is that which is compared with, but for what stands. */
static void plan_compares_pending_restarts_with_what_runs(void **state)
{
    static const struct reload_item group = { .subject = "group",
                                              .name = "g",
                                              .needs_restart = true };
    struct reload_item limits = { .subject = "limits", .needs_restart = true };
    struct stage stage;

    open_stage(&stage, *state, FILE_HEAD TASK_LINE "limits: {tasks: 100}\n");
    limits.next = (struct reload_item[]){ group };
    stage.up.earlier.standing = &limits;
    expect_plan(&stage, FILE_HEAD TASK_LINE "limits: {tasks: 100}\n", "limits added!");
    expect_plan(&stage, FILE_HEAD TASK_LINE, "");
    expect_plan(&stage, FILE_HEAD TASK_LINE "groups: {g: {}}\n", "group g added");
    limits.next->runs = "1:g{0:.";
    expect_plan(&stage, FILE_HEAD TASK_LINE, "group g removed!");
    expect_plan(&stage, FILE_HEAD TASK_LINE "groups: {g: {}}\n", "");
    close_stage(&stage);
}

static int plan_once(struct det_test_memory *memory, void *argument)
{
    struct stage *stage = argument;
    struct cli cli = stage->fixture->cli;
    struct reload reload;
    int code;

    cli.allocator = &memory->allocator;
    stage->up.output.outer = &cli;
    code = reload_open(&stage->up, &reload);
    if (code != CLI_OK)
        assert_true(memory->failed);
    reload_close(&reload);
    return code == CLI_OK ? 0 : DET_ERR_NO_MEMORY;
}

static void a_plan_without_memory_is_refused(void **state)
{
    static const struct reload_item limits = { .subject = "limits", .runs = "x" };
    struct stage stage;

    open_stage(&stage, *state, FILE_HEAD TASK_LINE "slots: {s: {}}\n");
    stage.up.earlier.standing = &limits;
    put_text(*state, "detent.yaml", FILE_HEAD "tasks: {b: {run: sleep 1}}\nhttp: {rate: 7}\n");
    det_test_each_failure(plan_once, &stage);
    close_stage(&stage);
}

/* Plans that need a store which may be away. */

static void ignore_end(struct up_request *request)
{
    (void)request;
}

static bool is_reachable(struct det_store *store, char *ret_text, size_t size)
{
    (void)store;
    (void)ret_text;
    (void)size;
    return false;
}

static void a_plan_that_needs_the_store_is_refused_while_it_stops(void **state)
{
    static const struct up_request_ops request_ops = { .finished = ignore_end };
    static const struct det_store_ops store_ops = { .is_unreachable = is_reachable };
    struct det_store store = { .ops = &store_ops };
    struct det_machine *served;
    struct up_machines machines = { .address = "postgres://nowhere", .served = &served };
    struct up_reload_order order = { .is_plan = true };
    struct det_json_writer json;
    struct up_request request = { .ops = &request_ops, .json = &json };
    struct stage *stage = calloc(1, sizeof *stage);
    struct det_spec *spec;
    char text[512];

    assert_non_null(stage);
    put_text(*state, "clock.fsm", spec_text);
    open_stage(stage, *state, FILE_HEAD "machines: {clock: {effects: {}}}\n");
    assert_int_equal(det_spec_read("clock.fsm", spec_text, strlen(spec_text), NULL, &spec), 0);
    served = det_spec_machine(spec);
    stage->up.machines = &machines;
    stage->up.shared = &store;
    assert_int_equal(det_loop_open(NULL, NULL, &stage->up.loop), 0);
    assert_int_equal(up_life_open(&stage->up, &up_daemon_life), 0);
    up_begin(&stage->up);
    up_set_draining(&stage->up);
    snprintf(text, sizeof text, "%sEVENT(TOCK, tock)\nSTAY(RUNS, TOCK)\n", spec_text);
    put_text(*state, "clock.fsm", text);
    det_list_init(&stage->up.requests);
    det_json_writer_init(&json, NULL);
    up_request_open(&stage->up, &request);
    up_order_reload(&stage->up, &request, &order);
    assert_int_equal(request.error.code, DET_ERR_BUSY);
    assert_string_equal(request.error.text, "detent is shutting down; retry later");
    assert_int_equal(order.outcome, RELOAD_FAILED);
    det_json_writer_deinit(&json);
    stage->up.machines = NULL;
    stage->up.shared = NULL;
    up_life_close(stage->up.life);
    det_loop_close(stage->up.loop);
    close_stage(stage);
    det_spec_close(spec);
    free(stage);
}

/* Reloads while others ask. */

struct crowd {
    struct fixture *fixture;
    struct det_test_memory memory; /* of the run */
    pthread_t threads[3];
    atomic_bool is_over;
    atomic_uint answers; /* that were whole */
    atomic_uint refused; /* connections, since the first answer */
    char problem[512];   /* of the thread that reloads */
};

static struct daemon_client *dial(struct crowd *crowd)
{
    det_time until = det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;
    struct daemon_client *client = NULL;
    struct det_error error;

    while (!atomic_load(&crowd->is_over) &&
           daemon_client_open(crowd->fixture->folder, NULL, &client, &error) < 0 &&
           det_world_now(NULL, DET_CLOCK_MONOTONIC) < until)
        (void)poll(NULL, 0, 1);
    return client;
}

/* One request on a separate connection: its status; 0: no answer; -1: no connection. */
static int ask(const char *folder, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[4096];
    size_t used = 0;
    ssize_t size;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/.detent/detent.sock", folder);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        close(descriptor);
        return -1;
    }
    snprintf(
        text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    size = send(descriptor, text, strlen(text), MSG_NOSIGNAL);
    while (size > 0 && used < 64) {
        size = recv(descriptor, text + used, sizeof text - used - 1, 0);
        used += size > 0 ? (size_t)size : 0;
    }
    close(descriptor);
    text[used] = '\0';
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text + 9, NULL, 10) : 0;
}

static void *ask_on(void *argument)
{
    static const char *const paths[] = { "/v1/slots/q/submissions", "/v1/overview", "/v1/machines",
                                         "/v1/events?after=0", "/v1/status" };
    struct crowd *crowd = argument;

    for (size_t i = 0; !atomic_load(&crowd->is_over); i++) {
        bool was_up = atomic_load(&crowd->answers) > 0;
        int status = ask(crowd->fixture->folder, paths[i % (sizeof paths / sizeof *paths)]);

        if (status == 200)
            atomic_fetch_add(&crowd->answers, 1);
        else if (status < 0 && was_up && !atomic_load(&crowd->is_over))
            atomic_fetch_add(&crowd->refused, 1);
    }
    return NULL;
}

/* Slots that come and go, settings of the API, a machine with another definition. */
static void change_files(const struct crowd *crowd, unsigned turn)
{
    char path[512], text[512];
    int size;

    size = snprintf(
        text, sizeof text,
        FILE_HEAD "store: sqlite:x.db\nslots: {a%u: {}, b%u: {}}\nhttp: {listen: none, rate: "
                  "%u}\nmachines: {clock: {effects: {}}}\n",
        turn, turn + 1, 1000 + turn / 2);
    snprintf(path, sizeof path, "%s/detent.yaml", crowd->fixture->folder);
    det_test_write_file(path, text, (size_t)size);
    size = snprintf(
        text, sizeof text, "%sEVENT(T%u, t%u)\nSTAY(RUNS, T%u)\n", spec_text, turn / 3, turn / 3,
        turn / 3);
    snprintf(path, sizeof path, "%s/clock.fsm", crowd->fixture->folder);
    det_test_write_file(path, text, (size_t)size);
}

/* Between two reloads somebody has to be answered. */
static void wait_for_answer(struct crowd *crowd)
{
    unsigned before = atomic_load(&crowd->answers);
    det_time until = det_world_now(NULL, DET_CLOCK_MONOTONIC) + PATIENCE;

    while (!atomic_load(&crowd->is_over) && atomic_load(&crowd->answers) == before &&
           det_world_now(NULL, DET_CLOCK_MONOTONIC) < until)
        (void)poll(NULL, 0, 1);
}

/* With an empty object; NULL: there was an error. */
static const struct det_json_value *post(
    struct daemon_client *client, const char *path, struct det_error *reterr)
{
    struct det_json_writer body = daemon_body(client);
    const struct det_json_value *answer = NULL;

    return daemon_client_call(client, "POST", path, &body, PATIENCE, &answer, reterr) < 0 ? NULL
                                                                                          : answer;
}

static void *reload_on(void *argument)
{
    struct crowd *crowd = argument;
    struct daemon_client *client = dial(crowd);
    struct det_error error = { 0 };
    const struct det_json_value *answer;

    for (unsigned turn = 1; client && turn <= 12; turn++) {
        wait_for_answer(crowd);
        change_files(crowd, turn);
        answer = post(client, "/v1/reload", &error);
        if (!det_json_get_bool(answer, "is_right"))
            snprintf(
                crowd->problem, sizeof crowd->problem, "%.200s %.200s", error.text,
                answer ? det_json_get_text(answer, "text") : "");
    }
    atomic_store(&crowd->is_over, true);
    if (client)
        (void)post(client, "/v1/stop", &error);
    daemon_client_close(client);
    return NULL;
}

/* The run continues, with its machine and with the API. */
static void expect_alive(struct crowd *crowd, struct daemon_client *client, uint64_t count)
{
    const struct det_json_value *answer = NULL;
    struct det_error error = { 0 };
    char text[512] = "";

    if (daemon_client_call(client, "GET", "/v1/served", NULL, PATIENCE, &answer, &error) == 0)
        snprintf(text, sizeof text, "%.*s", (int)answer->raw.size, answer->raw.data);
    if (!strstr(text, "\"clock\"") || ask(crowd->fixture->folder, "/livez") != 200)
        snprintf(
            crowd->problem, sizeof crowd->problem, "without allocation %llu: %.200s %.200s",
            (unsigned long long)count, error.text, text);
}

static void wait_until_up(struct crowd *crowd)
{
    while (!atomic_load(&crowd->is_over) && ask(crowd->fixture->folder, "/readyz") != 200)
        (void)poll(NULL, 0, 1);
}

/* Each of them with another file, and without one of the allocations that it needs. There are some
 * hundreds: all of the first ones are tried, and ever fewer of the later ones. */
static void *reload_poorly(void *argument)
{
    struct crowd *crowd = argument;
    struct daemon_client *client = dial(crowd);
    struct det_error error = { 0 };
    bool has_failed = true;

    wait_until_up(crowd);
    for (uint64_t count = 1; client && has_failed && !crowd->problem[0]; count += 1 + count / 5) {
        change_files(crowd, (unsigned)count * 6);
        (void)det_test_memory_fail(&crowd->memory, count, false);
        (void)post(client, "/v1/reload", &error);
        has_failed = det_test_memory_fail(&crowd->memory, 0, false);
        daemon_client_close(client);
        client = dial(crowd);
        if (client)
            expect_alive(crowd, client, count);
    }
    if (client)
        (void)post(client, "/v1/stop", &error);
    daemon_client_close(client);
    return NULL;
}

/* Runs `up` while others do what they want with it. */
static void run_with(struct crowd *crowd, void *(*const *mains)(void *argument), size_t count)
{
    const char *operands[] = { NULL };
    struct cli_args args = { .operands = operands };
    struct cli cli = crowd->fixture->cli;
    char path[512];
    int code;

    change_files(crowd, 0);
    snprintf(path, sizeof path, "%s/detent.yaml", crowd->fixture->folder);
    args.values[0] = path;
    det_test_memory_init(&crowd->memory);
    cli.allocator = &crowd->memory.allocator;
    cli.command = "up";
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&crowd->threads[i], NULL, mains[i], crowd), 0);
    code = cli_command_up.run(&cli, &args);
    atomic_store(&crowd->is_over, true);
    for (size_t i = 0; i < count; i++)
        pthread_join(crowd->threads[i], NULL);
    fflush(crowd->fixture->cli.err);
    if (code != CLI_OK || crowd->problem[0])
        fail_msg("exit code %d, %s: %s", code, crowd->problem, crowd->fixture->printed);
    det_test_memory_deinit(&crowd->memory);
}

static void reload_survives_a_failed_allocation(void **state)
{
    static void *(*const mains[])(void *argument) = { reload_poorly };
    struct crowd crowd = { .fixture = *state };

    run_with(&crowd, mains, 1);
}

static void requests_are_answered_during_a_reload(void **state)
{
    static void *(*const mains[])(void *argument) = { reload_on, ask_on, ask_on };
    struct crowd crowd = { .fixture = *state };

    run_with(&crowd, mains, 3);
    assert_true(atomic_load(&crowd.answers) >= 12);
    assert_int_equal(atomic_load(&crowd.refused), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plan_lists_changes_and_what_they_require),
        TEST(plan_compares_the_nesting_of_lists),
        TEST(plan_compares_pending_restarts_with_what_runs),
        TEST(a_plan_without_memory_is_refused),
        TEST(a_plan_that_needs_the_store_is_refused_while_it_stops),
        TEST(requests_are_answered_during_a_reload),
        TEST(reload_survives_a_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
