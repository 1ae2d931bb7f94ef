/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process.c - a process from start to end: spawn, exec and reap of a program that only fails.
 *
 * The limit is only posix_spawn() and waitpid(). Our child also leads a group, has streams and no
 * other descriptor, is watched by a loop, and its group is killed. A task is such a child that a
 * supervisor starts again whenever it has failed, without delay. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "house.h"
#include "task/child.h"

static const char *const program[] = { "/bin/false", NULL };

static int run_bare(struct bench_lap *lap)
{
    char name[] = "/bin/false", *argv[] = { name, NULL };
    int r = 0, status = 1 << 8;
    pid_t number;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0 && WEXITSTATUS(status) == 1; i++) {
        r = posix_spawn(&number, name, NULL, NULL, argv, environ);
        if (r == 0 && waitpid(number, &status, 0) < 0)
            r = -1;
    }
    bench_lap_end(lap);
    if (r != 0 || WEXITSTATUS(status) != 1)
        return bench_lap_fail(lap, DET_ERR_IO, "/bin/false does not run");
    return 0;
}

struct ends {
    uint64_t count;
    int code;
};

static void count_end(void *user, const struct det_process_end *end)
{
    struct ends *ends = user;

    ends->count++;
    ends->code = end->code;
}

static void count_line(void *user, const struct det_line *line)
{
    (void)user;
    bench_use(line->size);
}

/* Options of a child besides the program. */
struct kind {
    bool has_lines, has_notify;
};

static int run_one(struct det_loop *loop, const struct kind *kind, struct det_error *error)
{
    const struct det_process_spec spec = { .argv = program, .has_notify = kind->has_notify };
    struct ends ends = { 0 };
    const struct det_child_events events = { .on_line = kind->has_lines ? count_line : NULL,
                                             .on_end = count_end,
                                             .user = &ends };
    struct det_child *child;
    int r;

    r = det_child_start(loop, NULL, &spec, &events, &child, error);
    if (r < 0)
        return r;
    while (r >= 0 && ends.count == 0)
        r = det_loop_turn(loop, DET_NEVER);
    det_child_close(child);
    if (r >= 0 && ends.code != 1)
        r = det_error_set(error, DET_ERR_IO, "/bin/false ended with %d", ends.code);
    return r < 0 ? r : 0;
}

static int run_child(struct bench_lap *lap)
{
    struct det_error error = { .text = "the loop failed" };
    DET_SCOPED(loop) loop = NULL;
    int r = det_loop_open(NULL, NULL, &loop);

    if (r < 0)
        return bench_lap_fail(lap, r, "%s", det_error_text(r));
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++)
        r = run_one(loop, lap->argument, &error);
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, r, "%.150s", error.text) : 0;
}

/* Turns the loop until this many restarts. */
static int turn(struct bench_house *house, uint64_t restarts, struct det_error *error)
{
    int r = 0;

    while (r >= 0 && det_tasks_counts(house->tasks).restarts < restarts)
        r = det_loop_turn(house->loop, DET_NEVER);
    return r < 0 ? det_error_set(error, r, "%s", det_error_text(r)) : 0;
}

static int run_task(struct bench_lap *lap)
{
    const struct det_process_spec process = { .argv = program };
    const struct det_task_spec spec = { .process = &process,
                                        .policy = { .backoff = { .first = DET_NO_DELAY } } };
    struct det_error error = { .code = 0 };
    struct bench_house house;
    int r;

    r = bench_house_open(&house, (struct det_tasks_options){ 0 }, &error);
    if (r == 0)
        r = bench_house_add(&house, 1, &spec, &error);
    if (r == 0)
        r = turn(&house, 1, &error);
    if (r == 0) {
        bench_lap_begin(lap);
        r = turn(&house, 1 + lap->operations, &error);
        bench_lap_end(lap);
    }
    bench_house_close(&house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

#define OPERATIONS 100

static const struct kind quiet = { 0 }, received = { .has_lines = true },
                         noticed = { .has_lines = true, .has_notify = true };

static const struct bench_case cases[] = {
    { .name = "posix_spawn and waitpid",
      .role = BENCH_LIMIT,
      .run = run_bare,
      .operations = OPERATIONS },
    { .name = "child on a loop",
      .role = BENCH_OURS,
      .run = run_child,
      .argument = &quiet,
      .operations = OPERATIONS,
      .goals = { { .kind = BENCH_RATIO_MAX, .value = 1.2 } } },
    { .name = "child with its lines",
      .role = BENCH_OURS,
      .run = run_child,
      .argument = &received,
      .operations = OPERATIONS,
      .goals = { { .kind = BENCH_RATIO_MAX, .value = 1.2 } } },
    { .name = "child with lines and news",
      .role = BENCH_OURS,
      .run = run_child,
      .argument = &noticed,
      .operations = OPERATIONS },
    { .name = "restart of a task",
      .role = BENCH_OURS,
      .run = run_task,
      .operations = OPERATIONS,
      .goals = { { .kind = BENCH_RATIO_MAX, .value = 1.2 } } },
};

extern const struct bench bench_process;
const struct bench bench_process = {
    .title = "a process from start to end",
    .operation = "process",
    .rounds = 15,
    .cases = cases,
    .case_count = sizeof cases / sizeof *cases,
};
