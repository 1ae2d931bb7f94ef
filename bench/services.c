/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* services.c - time until a service that ended runs again, beside runit and s6.
 *
 *     exits    the service ends as soon as it has started. Both peers then wait for a second, which
 *              cannot be changed; ours waits as its policy says, here not at all.
 *     killed   it has run for more than a second, after which runit does not delay it. The time is
 *              that from the signal to the first line of the next process. Not for s6, which waits
 *              for a second after any end.
 *
 * All run the same two scripts, which begin with a line with their process number. A peer is a
 * separate process for each service, and a folder with the script as `run`; at the end of a lap
 * both are killed. Rounds are few because the peers wait; process.c compares the cost of our
 * restart with a bare one in more rounds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "house.h"

#define SERVICES_MAX 5
#define PATIENCE_MS  10000

static const char exits_script[] = "#!/bin/sh\necho $$\nexit 1\n";
static const char killed_script[] = "#!/bin/sh\necho $$\nexec sleep 60\n";
/* Paths of the scripts. */
static char exits_path[BENCH_PATH_MAX], killed_path[BENCH_PATH_MAX];

/* A process whose output we read: a service by itself, or a supervisor with a service. */
struct child {
    pid_t number;
    int output;    /* 0: no process */
    pid_t service; /* the last one reported */
};

static int child_start(struct child *child, const char *const *words)
{
    posix_spawn_file_actions_t actions;
    int ends[2], error;

    memset(child, 0, sizeof *child);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return DET_ERR_IO;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    error = posix_spawnp(
        &child->number, words[0], &actions, NULL, (char *const *)(uintptr_t)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (error == 0) {
        child->output = ends[0];
        return 0;
    }
    (void)close(ends[0]);
    return error == ENOENT ? DET_ERR_UNSUPPORTED : DET_ERR_IO;
}

/* Reads the line that a service begins with. */
static int child_receive(struct child *child)
{
    struct pollfd look = { .fd = child->output, .events = POLLIN };
    char line[32];
    size_t size = 0;

    do {
        if (poll(&look, 1, PATIENCE_MS) != 1 || read(child->output, line + size, 1) != 1)
            return DET_ERR_TIMEOUT;
    } while (line[size++] != '\n' && size < sizeof line);
    line[size - 1] = '\0';
    child->service = (pid_t)strtol(line, NULL, 10);
    return 0;
}

static void child_reap(struct child *child)
{
    int status;

    (void)waitpid(child->number, &status, 0);
    (void)close(child->output);
    child->output = 0;
}

/* Without a supervisor. */
static int run_exits_by_hand(struct bench_lap *lap)
{
    const char *const words[] = { exits_path, NULL };
    struct child child;
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        r = child_start(&child, words);
        if (r == 0) {
            r = child_receive(&child);
            child_reap(&child);
        }
    }
    bench_lap_end(lap);
    return r < 0 ? bench_lap_fail(lap, DET_ERR_IO, "the service does not run") : 0;
}

static int run_killed_by_hand(struct bench_lap *lap)
{
    const char *const words[] = { killed_path, NULL };
    struct child child;
    int r;

    r = child_start(&child, words);
    if (r == 0)
        r = child_receive(&child);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        (void)kill(child.number, SIGKILL);
        child_reap(&child);
        r = child_start(&child, words);
        if (r == 0)
            r = child_receive(&child);
    }
    bench_lap_end(lap);
    if (child.output) {
        (void)kill(child.number, SIGKILL);
        child_reap(&child);
    }
    return r < 0 ? bench_lap_fail(lap, DET_ERR_IO, "the service does not run") : 0;
}

/* Ours. */
struct received {
    struct bench_house house;
    pid_t service;
};

static void receive(void *user, const struct det_line *line)
{
    struct received *received = user;

    received->house.calls++;
    received->service = 0;
    for (size_t i = 0; i < line->size; i++)
        received->service = received->service * 10 + (line->text[i] - '0');
}

/* One start after the other, each time after the end of the service that runs. */
static int measure_killed(struct bench_lap *lap, struct received *received, struct det_error *error)
{
    int r = 0;

    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        (void)kill(received->service, SIGKILL);
        r = bench_house_turn(&received->house, received->house.calls + 1, error);
    }
    bench_lap_end(lap);
    return r;
}

static int run_ours(struct bench_lap *lap)
{
    const char *path = lap->argument, *const argv[] = { path, NULL };
    const struct det_process_spec process = { .argv = argv };
    const struct det_task_spec spec = {
        .process = &process,
        .policy = { .backoff = { .first = DET_NO_DELAY } },
    };
    struct det_error error = { .code = 0 };
    struct received received;
    int r;

    r = bench_house_open(
        &received.house, (struct det_tasks_options){ .on_line = receive, .user = &received },
        &error);
    if (r == 0)
        r = bench_house_add(&received.house, 1, &spec, &error);
    if (r == 0)
        r = bench_house_turn(&received.house, 1, &error);
    if (r == 0 && path == killed_path)
        r = measure_killed(lap, &received, &error);
    else if (r == 0)
        r = bench_house_lap(lap, &received.house, &error);
    bench_house_close(&received.house);
    return r < 0 ? bench_house_fail(lap, &error) : 0;
}

/* Peers. */
struct peer {
    const char *program;
    bool is_killed;
};

/* Creates a folder for the service with this number; it stays for the following laps. */
static int folder_for(const struct peer *peer, unsigned number, char *path)
{
    char name[64], run[BENCH_PATH_MAX + 8];
    int r;

    (void)snprintf(
        name, sizeof name, "%s-%s-%u", peer->program, peer->is_killed ? "killed" : "exits", number);
    r = bench_folder_make(name, path);
    if (r < 0)
        return r == DET_ERR_EXISTS ? 0 : r;
    (void)snprintf(run, sizeof run, "%s/run", path);
    return symlink(peer->is_killed ? killed_path : exits_path, run) < 0 ? DET_ERR_IO : 0;
}

static int peer_start(struct child *child, const struct peer *peer, unsigned number)
{
    char path[BENCH_PATH_MAX];
    const char *const words[] = { peer->program, path, NULL };
    int r;

    r = folder_for(peer, number, path);
    if (r == 0)
        r = child_start(child, words);
    return r < 0 ? r : child_receive(child);
}

/* The killed service was still running, so its number is not reused. */
static void peer_end(struct child *child, const struct peer *peer)
{
    if (!child->output)
        return;
    (void)kill(child->number, SIGKILL);
    child_reap(child);
    if (peer->is_killed && child->service > 1)
        (void)kill(child->service, SIGKILL);
}

static int measure_peer(struct bench_lap *lap, struct child *children, bool is_killed)
{
    const struct timespec held_back = { .tv_sec = 1, .tv_nsec = 100000000 };
    int r = 0;

    if (is_killed)
        (void)nanosleep(&held_back, NULL);
    bench_lap_begin(lap);
    for (uint64_t i = 0; i < lap->operations && r == 0; i++) {
        if (is_killed)
            (void)kill(children[i].service, SIGKILL);
        r = child_receive(is_killed ? &children[i] : children);
    }
    bench_lap_end(lap);
    return r;
}

static int run_peer(struct bench_lap *lap)
{
    const struct peer *peer = lap->argument;
    struct child children[SERVICES_MAX] = { 0 };
    uint64_t count = peer->is_killed ? lap->operations : 1;
    int r = 0;

    for (unsigned i = 0; i < count && r == 0; i++)
        r = peer_start(&children[i], peer, i);
    if (r == 0)
        r = measure_peer(lap, children, peer->is_killed);
    for (unsigned i = 0; i < count; i++)
        peer_end(&children[i], peer);
    if (r == DET_ERR_UNSUPPORTED)
        return bench_lap_fail(lap, r, "not installed");
    return r < 0 ? bench_lap_fail(lap, r, "%s does not restart its service", peer->program) : 0;
}

static int write_scripts(char *note)
{
    (void)snprintf(note, BENCH_NOTE_MAX, "the scripts cannot be written");
    if (bench_file_write("exits", exits_script, strlen(exits_script), exits_path) < 0 ||
        bench_file_write("killed", killed_script, strlen(killed_script), killed_path) < 0 ||
        chmod(exits_path, 0700) < 0 || chmod(killed_path, 0700) < 0)
        return DET_ERR_IO;
    return 0;
}

static const struct peer runit_exits = { "runsv", false }, runit_killed = { "runsv", true };
static const struct peer s6_exits = { "s6-supervise", false };

#define KILLED "killed: hand-written"
#define PEER   BENCH_PEER, run_peer

static const struct bench_case cases[] = {
    { "exits: hand-written", BENCH_LIMIT, run_exits_by_hand, NULL, 50, .clock = BENCH_WALL },
    { "exits: a task", BENCH_OURS, run_ours, exits_path, 50,
      .goals = { { BENCH_AHEAD_OF, 0, "exits: runit" }, { BENCH_AHEAD_OF, 0, "exits: s6" } } },
    { "exits: runit", PEER, &runit_exits, 1, .has_no_allocations = true },
    { "exits: s6", PEER, &s6_exits, 1, .has_no_allocations = true },
    { KILLED, BENCH_LIMIT, run_killed_by_hand, NULL, 50, .against = "" },
    { "killed: a task", BENCH_OURS, run_ours, killed_path, 50, .against = KILLED,
      .goals = { { BENCH_AHEAD_OF, 0, "killed: runit" } } },
    { "killed: runit", PEER, &runit_killed, SERVICES_MAX, .against = KILLED,
      .has_no_allocations = true },
};

extern const struct bench bench_services;
const struct bench bench_services = {
    .title = "a service that ended runs again",
    .operation = "restart",
    .is_slow = true,
    .rounds = 3,
    .cases = cases,
    .case_count = sizeof cases / sizeof *cases,
    .open = write_scripts,
};
