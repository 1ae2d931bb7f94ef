/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* million.c - 1,000,000 instances in a SQLite file, each part in its own process.
 *
 *     create (once) -> sends -> cold sends -> timers armed -> all due -> lateness -> kill -9, first
 *
 * Memory does not grow with the file: a send to an instance that is not in memory loads it first. A
 * timer that fires is a durable send, so that is its measure. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define INSTANCES  1000000
#define MEMORY_MAX (128.0 * 1024 * 1024)

extern char **environ;

static char path[BENCH_PATH_MAX];
static uint64_t instances;     /* 0: the file does not exist yet */
static double creation_ns;     /* of one */
static double cold_p99, bytes; /* of the last lap */
static char answer[256];       /* of the last verb */

static int run_verb(struct bench_lap *lap, const char *verb)
{
    char count[24], operations[24];
    const char *words[] = { BENCH_MILLION, verb, path, count, operations, NULL };
    struct det_buffer output;
    int code, r;

    (void)snprintf(count, sizeof count, "%" PRIu64, instances);
    (void)snprintf(operations, sizeof operations, "%" PRIu64, lap->operations);
    det_buffer_init(&output, NULL);
    r = bench_child_run(words, &output, &code);
    (void)snprintf(answer, sizeof answer, "%s", det_buffer_text(&output));
    det_buffer_deinit(&output);
    if (r < 0 || !bench_child_number(answer, "nanoseconds", &lap->nanoseconds))
        return bench_lap_fail(lap, r < 0 ? r : DET_ERR_MALFORMED, "%s: exit code %d", verb, code);
    return 0;
}

/* Once, in the warm-up round. */
static int run_create(struct bench_lap *lap)
{
    int r;

    if (instances == 0) {
        r = bench_file_write("million.db", "", 0, path);
        if (r < 0)
            return bench_lap_fail(lap, r, "no file");
        instances = lap->operations;
        r = run_verb(lap, "fill");
        if (r < 0)
            return r;
        creation_ns = lap->nanoseconds / (double)lap->operations;
    }
    lap->nanoseconds = creation_ns * (double)lap->operations;
    return 0;
}

static int run_send(struct bench_lap *lap)
{
    return run_verb(lap, "send");
}

static int run_cold(struct bench_lap *lap)
{
    double p50;
    int r = run_verb(lap, "cold");

    if (r < 0)
        return r;
    if (!bench_child_number(answer, "p50", &p50) || !bench_child_number(answer, "p99", &cold_p99) ||
        !bench_child_number(answer, "memory", &bytes))
        return bench_lap_fail(lap, DET_ERR_MALFORMED, "its output is not valid");
    lap->nanoseconds = p50 * (double)lap->operations;
    return 0;
}

/* Latencies of the sends of the previous case. */
static int run_cold_p99(struct bench_lap *lap)
{
    lap->nanoseconds = cold_p99 * (double)lap->operations;
    lap->kept_bytes = bytes * (double)lap->operations;
    return cold_p99 > 0 ? 0 : bench_lap_fail(lap, DET_ERR_INVALID, "there were none");
}

static int run_due(struct bench_lap *lap)
{
    int r = run_verb(lap, "arm");

    return r < 0 ? r : run_verb(lap, "due");
}

static int run_late(struct bench_lap *lap)
{
    return run_verb(lap, "late");
}

/* Starts a sending process, and kills it while it sends. */
static int run_killed(struct bench_lap *lap)
{
    const struct timespec pause = { .tv_nsec = 300000000 };
    char count[24], byte;
    char *words[] = { BENCH_MILLION, "run", path, count, "0", NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ends[2], error;
    bool is_ready;

    (void)snprintf(count, sizeof count, "%" PRIu64, instances);
    if (pipe(ends) < 0)
        return bench_lap_fail(lap, DET_ERR_IO, "no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    error = posix_spawn(&child, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    is_ready = error == 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (error)
        return bench_lap_fail(lap, DET_ERR_IO, "%s", strerror(error));
    (void)nanosleep(&pause, NULL);
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return is_ready ? 0 : bench_lap_fail(lap, DET_ERR_IO, "it did not begin to send");
}

static int run_first(struct bench_lap *lap)
{
    int r = run_killed(lap);

    return r < 0 ? r : run_verb(lap, "first");
}

#define SENDS  "64 senders, any instance"
#define COMMON .against = "", .has_no_allocations = true

static const struct bench_case cases[] = {
    { "created, 1,000 in a commit", BENCH_OURS, run_create, NULL, INSTANCES, COMMON },
    { SENDS, BENCH_OURS, run_send, NULL, 20000, COMMON },
    { "one sender, not in memory, p50", BENCH_OURS, run_cold, NULL, 500, COMMON },
    { "one sender, not in memory, p99", BENCH_OURS, run_cold_p99, NULL, 500, COMMON,
      .goals = { { BENCH_BYTES_MAX, MEMORY_MAX, NULL } } },
    { "100,000 timers due at once", BENCH_OURS, run_due, NULL, 100000, .against = SENDS,
      .has_no_allocations = true, .goals = { { BENCH_RATIO_MAX, 2, NULL } } },
    { "a due timer is late by", BENCH_OURS, run_late, NULL, 50, COMMON,
      .goals = { { BENCH_NS_MAX, 1e6, NULL } } },
    { "killed, until the first answer", BENCH_OURS, run_first, NULL, 1, COMMON,
      .goals = { { BENCH_NS_MAX, 1e9, NULL } } },
};

extern const struct bench bench_million;
const struct bench bench_million = {
    .title = "1,000,000 instances in a SQLite file",
    .operation = "operation",
    .rounds = 3,
    .cases = cases,
    .case_count = sizeof cases / sizeof cases[0],
};
