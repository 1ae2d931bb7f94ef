/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* api.c - reads and durable sends through the HTTP API of `detent up`, with 64 connections, beside
 * a bare handler of libmicrohttpd.
 *
 * The program is a process of its own, on a store in a file; instances are a thousand, and all are
 * in memory. What is sent is answered when it is on the disk. */
#include <detent/runtime.h>
#include <detent/spec.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os.h"
#include "wrk.h"

#define INSTANCES 1000
#define SENDS     25000 /* in a second: the goal */

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
/* Requests are made beforehand: wrk has other things to do while it is measured. */
static const char script[] =
    "local all, n = {}, 0\n"
    "init = function()\n"
    "  for i = 0, %d do\n"
    "    all[i] = wrk.format(%s, \"/v1/machines/light/instances/i\" .. i .. %s, {\n"
    "      [\"Authorization\"] = \"Bearer %s\", [\"Content-Type\"] = \"application/json\"}, %s)\n"
    "  end\n"
    "end\n"
    "request = function() n = (n + 7) %% %d; return all[n] end\n";

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

/* The output of a command of detent in the folder; NULL: it failed. Of free(). */
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

/* Where it listens; false: it does not answer yet. */
static bool find_address(void)
{
    char path[BENCH_PATH_MAX + 32];
    char *text = NULL;
    json_t *status;
    const char *api;

    (void)snprintf(path, sizeof path, "%s/.detent/http.sock", daemon_.folder);
    if (access(path, F_OK) == 0)
        text = ask((const char *const[]){ "status", "--json", NULL });
    status = text ? json_loads(text, 0, NULL) : NULL;
    api = json_string_value(json_object_get(status, "api"));
    if (api)
        (void)snprintf(daemon_.url, sizeof daemon_.url, "%s", api);
    json_decref(status);
    free(text);
    return api;
}

static void put_script(const char *name, const char *method, const char *tail, const char *body)
{
    char text[2048];

    (void)snprintf(
        text, sizeof text, script, INSTANCES - 1, method, tail, daemon_.token, body, INSTANCES);
    put_file(name, text);
}

/* They are there before the program is. */
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
        r = det_runtime_start(runtime, det_spec_machine(light), text, NULL, NULL, NULL);
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
        put_script("read.lua", "\"GET\"", "\"\"", "nil");
        put_script("send.lua", "\"POST\"", "\"/events\"", "'{\"event\":\"next\"}'");
    }
    if (r == 0 && !token)
        r = DET_ERR_IO;
    if (r < 0)
        (void)snprintf(note, BENCH_NOTE_MAX, "detent does not answer: %s", det_error_text(r));
    free(token);
    if (r < 0)
        close_api();
    return r;
}

static int run_script(struct bench_lap *lap)
{
    char path[BENCH_PATH_MAX + 32];

    (void)snprintf(path, sizeof path, "%s/%s", daemon_.folder, (const char *)lap->argument);
    return wrk_load(lap, daemon_.url, path);
}

static const struct bench_case cases[] = {
    { WRK_BARE, BENCH_LIMIT, wrk_bare, NULL, WRK_REQUESTS, .has_no_allocations = true },
    { "detent up, an instance is read", BENCH_OURS, run_script, "read.lua", WRK_REQUESTS,
      .has_no_allocations = true, .goals = { { BENCH_RATIO_MAX, 1.0 / 0.6, WRK_BARE } } },
    { "detent up, a durable send", BENCH_OURS, run_script, "send.lua", WRK_REQUESTS,
      .has_no_allocations = true, .goals = { { BENCH_NS_MAX, 1e9 / SENDS, NULL } } },
};

extern const struct bench bench_api;
const struct bench bench_api = {
    .title = "api: the HTTP API with 64 connections",
    .operation = "request",
    .rounds = 7,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
    .open = open_api,
    .close = close_api,
};
