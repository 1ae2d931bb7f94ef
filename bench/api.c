/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.c - reads and durable sends through the HTTP API of `detent up`, with 64 connections, beside
 * a bare handler of libmicrohttpd; and their latency at half of that load.
 *
 * The program is a separate process on a store in a file, with a thousand instances, all in memory.
 * A send is answered when it is on the disk. */
#include <detent/runtime.h>
#include <detent/tool/spec.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "os/os.h"
#include "pace.h"
#include "wrk.h"
#include "json/reader.h"

#define INSTANCES 1000
#define SENDS     25000 /* per second: the goal */
#define P99_NS    20e6  /* at half load: the goal */

static const char spec[] = "#define FSM_NAME light\n"
                           "#define FSM_PREFIX LIGHT\n"
                           "STATE(RED, red, INITIAL)\n"
                           "STATE(GREEN, green)\n"
                           "EVENT(NEXT, next)\n"
                           "ON(RED, NEXT, GREEN)\n"
                           "ON(GREEN, NEXT, RED)\n";
static const char config[] = "version: 1\n"
                             "store: sqlite:bench.db\n"
                             "machines: {light: {effects: {}}}\n"
                             "http: {rate: unlimited}\n";
/* The requests are created in advance, so that this is not measured. */
static const char script[] =
    "local all, n = {}, 0\n"
    "init = function()\n"
    "  for i = 0, %d do\n"
    "    all[i] = wrk.format('%s', '/v1/machines/light/instances/i' .. i .. '%s', {\n"
    "      ['Authorization'] = 'Bearer %s', ['Content-Type'] = 'application/json'}, '%s')\n"
    "  end\n"
    "end\n"
    "request = function() n = (n + 7) %% %d; return all[n] end\n";

/* The two kinds of load. */
struct load {
    const char *script;
    const char *method;
    const char *tail;
    const char *body;
    double per_second; /* of the last lap, at full load */
    struct pace_latency latency;
    char *requests[INSTANCES]; /* for the paced client */
};

static struct load reads = { .script = "read.lua", .method = "GET", .tail = "", .body = "" };
static struct load sends = {
    .script = "send.lua", .method = "POST", .tail = "/events", .body = "{\"event\":\"next\"}"
};

static struct {
    char folder[BENCH_PATH_MAX];
    char url[128];
    char token[128];
    struct det_process *process;
} daemon_;

static void put_file(const char *name, const char *text)
{
    char path[BENCH_PATH_MAX + 32];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", daemon_.folder, name);
    file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        abort(); /* The folder is our own. */
}

/* Returns the output of a command of detent in the folder; NULL: it failed. Free it with free(). */
static char *ask(const char *const *words)
{
    const char *all[16] = { BENCH_PROGRAM, words[0], "-C", daemon_.folder };
    struct det_buffer output;
    char *text = NULL;

    for (size_t i = 1; words[i]; i++)
        all[i + 3] = words[i];
    det_buffer_init(&output, NULL);
    if (bench_child_run(all, &output, NULL) == 0)
        text = strdup(det_buffer_text(&output));
    det_buffer_deinit(&output);
    return text;
}

/* Reads the port it listens on; false: it does not answer yet. */
static bool find_address(void)
{
    char path[BENCH_PATH_MAX + 32];
    const struct det_json_value *status = NULL;
    struct det_arena arena;
    char *text = NULL;
    const char *api = NULL;

    (void)snprintf(path, sizeof path, "%s/.detent/detent.sock", daemon_.folder);
    if (access(path, F_OK) == 0)
        text = ask((const char *const[]){ "status", "--json", NULL });
    det_arena_init(&arena, NULL);
    if (text && det_json_read(&arena, det_view_text(text), &status, NULL) == 0)
        api = det_json_get_text(status, "api");
    if (api)
        (void)snprintf(daemon_.url, sizeof daemon_.url, "%s", api);
    det_arena_deinit(&arena);
    free(text);
    return api != NULL;
}

static void put_script(const struct load *load)
{
    char text[2048];

    (void)snprintf(
        text, sizeof text, script, INSTANCES - 1, load->method, load->tail, daemon_.token,
        load->body, INSTANCES);
    put_file(load->script, text);
}

/* The same requests as complete texts, in the order of the script. */
static int make_requests(struct load *load)
{
    for (size_t i = 0, n = 7; i < INSTANCES; i++, n = (n + 7) % INSTANCES) {
        if (asprintf(
                &load->requests[i],
                "%s /v1/machines/light/instances/i%zu%s HTTP/1.1\r\n"
                "Host: localhost\r\n"
                "Authorization: Bearer %s\r\n"
                "Content-Type: application/json\r\n"
                "Content-Length: %zu\r\n\r\n%s",
                load->method, n, load->tail, daemon_.token, strlen(load->body), load->body) < 0) {
            load->requests[i] = NULL;
            return DET_ERR_NO_MEMORY;
        }
    }
    return 0;
}

static void drop_requests(struct load *load)
{
    for (size_t i = 0; i < INSTANCES; i++)
        free(load->requests[i]);
    memset(load->requests, 0, sizeof load->requests);
}

/* Creates the instances before the program starts. */
static int start_instances(void)
{
    static const struct det_runtime_options options = { .is_passive = true };
    DET_SCOPED(spec) light = NULL;
    DET_SCOPED(store) store = NULL;
    DET_SCOPED(runtime) runtime = NULL;
    char text[BENCH_PATH_MAX + 32];
    int r;

    (void)snprintf(text, sizeof text, "sqlite:%s/bench.db", daemon_.folder);
    r = det_spec_read("light.fsm", spec, sizeof spec - 1, NULL, &light);
    if (r == 0)
        r = det_store_open(text, &store, NULL);
    if (r == 0)
        r = det_runtime_open(store, &options, &runtime, NULL);
    for (int i = 0; r == 0 && i < INSTANCES; i++) {
        (void)snprintf(text, sizeof text, "i%d", i);
        r = det_runtime_start(runtime, det_spec_machine(light), text, NULL, NULL, NULL, NULL);
    }
    return r;
}

static int start_daemon(void)
{
    static const char *const words[] = {
        BENCH_PROGRAM, "up", "-q", "--listen", "127.0.0.1:0", NULL
    };
    struct det_world *world = det_world_real();
    const struct det_process_options options = {
        .argv = words,
        .folder = daemon_.folder,
        .input = -1,
        .output = STDERR_FILENO,
        .error = STDERR_FILENO,
    };
    det_time until = det_world_now(world, DET_CLOCK_MONOTONIC) + 10 * DET_SECOND;
    int r = world->ops->process_start(world, &options, &daemon_.process, NULL);

    while (r == 0 && !find_address()) {
        if (det_world_now(world, DET_CLOCK_MONOTONIC) > until)
            r = DET_ERR_TIMEOUT;
    }
    return r;
}

static void close_api(void)
{
    struct det_world *world = det_world_real();
    struct det_process_end end;

    drop_requests(&reads);
    drop_requests(&sends);
    if (!daemon_.process)
        return;
    (void)world->ops->process_kill(world, daemon_.process, SIGTERM);
    (void)world->ops->process_wait(world, daemon_.process, DET_NEVER, &end);
    world->ops->process_close(world, daemon_.process);
    daemon_.process = NULL;
}

static int open_api(char *note)
{
    char *token;
    int r = bench_folder_make("api", daemon_.folder);

    if (r == 0) {
        put_file("light.fsm", spec);
        put_file("detent.yaml", config);
        r = start_instances();
    }
    if (r == 0)
        r = start_daemon();
    token =
        r == 0 ? ask((const char *const[]){ "token", "new", "--scope", "read,send", NULL }) : NULL;
    if (token) {
        (void)snprintf(
            daemon_.token, sizeof daemon_.token, "%.*s", (int)strcspn(token, "\n"), token);
        put_script(&reads);
        put_script(&sends);
        r = make_requests(&reads);
        if (r == 0)
            r = make_requests(&sends);
    } else if (r == 0) {
        r = DET_ERR_IO;
    }
    if (r < 0)
        (void)snprintf(note, BENCH_NOTE_MAX, "detent does not answer: %s", det_error_text(r));
    free(token);
    if (r < 0)
        close_api();
    return r;
}

static int run_full(struct bench_lap *lap)
{
    struct load *load = (struct load *)(uintptr_t)lap->argument;
    char path[BENCH_PATH_MAX + 32];
    int r;

    (void)snprintf(path, sizeof path, "%s/%s", daemon_.folder, load->script);
    r = wrk_load(lap, daemon_.url, path);
    load->per_second = r == 0 ? (double)lap->operations * 1e9 / lap->nanoseconds : 0;
    return r;
}

/* The median of as many requests as the lap has operations. */
static int run_half(struct bench_lap *lap)
{
    struct load *load = (struct load *)(uintptr_t)lap->argument;
    const struct pace pace = {
        .url = daemon_.url,
        .wanted = (const char *const *)load->requests,
        .wanted_count = INSTANCES,
        .per_second = load->per_second / 2,
        .count = lap->operations,
    };
    int r;

    if (load->per_second <= 0)
        return bench_lap_fail(
            lap, DET_ERR_UNSUPPORTED,
            "the case before has no result, so half of its load is unknown");
    r = pace_run(lap, &pace, &load->latency);
    lap->nanoseconds = load->latency.p50_ns * (double)lap->operations;
    return r;
}

/* Latencies of the requests of the previous case. */
static int run_p99(struct bench_lap *lap)
{
    const struct load *load = lap->argument;

    lap->nanoseconds = load->latency.p99_ns * (double)lap->operations;
    return lap->nanoseconds > 0 ? 0 : bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "there were none");
}

static int run_max(struct bench_lap *lap)
{
    const struct load *load = lap->argument;

    lap->nanoseconds = load->latency.max_ns * (double)lap->operations;
    return lap->nanoseconds > 0 ? 0 : bench_lap_fail(lap, DET_ERR_UNSUPPORTED, "there were none");
}

#define FULL    WRK_REQUESTS, .has_no_allocations = true
#define LATENCY WRK_REQUESTS, .has_no_allocations = true, .is_latency = true, .against = ""

static const struct bench_case cases[] = {
    { WRK_BARE, BENCH_LIMIT, wrk_bare, NULL, FULL },
    { "detent up, an instance is read", BENCH_OURS, run_full, &reads, FULL,
      .goals = { { BENCH_RATIO_MAX, 1.0 / 0.6, WRK_BARE } } },
    { "half of these, p50", BENCH_OURS, run_half, &reads, LATENCY },
    { "half of these, p99", BENCH_OURS, run_p99, &reads, LATENCY,
      .goals = { { BENCH_NS_MAX, P99_NS, NULL } } },
    { "half of these, the slowest", BENCH_OURS, run_max, &reads, LATENCY },
    { "detent up, a durable send", BENCH_OURS, run_full, &sends, FULL,
      .goals = { { BENCH_NS_MAX, 1e9 / SENDS, NULL } } },
    { "half of those, p50", BENCH_OURS, run_half, &sends, LATENCY },
    { "half of those, p99", BENCH_OURS, run_p99, &sends, LATENCY,
      .goals = { { BENCH_NS_MAX, P99_NS, NULL } } },
    { "half of those, the slowest", BENCH_OURS, run_max, &sends, LATENCY },
};

extern const struct bench bench_api;
const struct bench bench_api = {
    .title = "reads and durable sends over HTTP, 64 connections",
    .operation = "request",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_api,
    .close = close_api,
};
