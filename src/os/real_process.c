/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_process.c - processes of the real world: posix_spawn to start them, a pidfd to wait.
 *
 * Invariants
 *   1. Until the end is known the child is ours and not reaped, so its number cannot be reused and
 *      a kill cannot hit a stranger.
 *   2. Once the end is known it is remembered, and no system call names the number again. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/real.h"

#define STREAMS 3

struct det_process {
    pid_t number;
    int descriptor; /* pidfd */
    bool is_group;
    bool has_ended;
    struct det_process_end end;
};

/* What one spawn needs, and what is given back after it. */
struct spawn {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    int copies[STREAMS]; /* of descriptors below STREAMS, or -1 */
};

/* A stream's descriptor that is itself 0, 1 or 2 could be overwritten before it is used, say when
 * input and output are swapped; a copy of it above those cannot. Returns a positive errno. */
static int add_stream(struct spawn *spawn, int stream, int descriptor)
{
    if (descriptor < 0)
        return posix_spawn_file_actions_addopen(
            &spawn->actions, stream, "/dev/null", stream ? O_WRONLY : O_RDONLY, 0);
    if (descriptor < STREAMS) {
        descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, STREAMS);
        if (descriptor < 0)
            return errno;
        spawn->copies[stream] = descriptor;
    }
    return posix_spawn_file_actions_adddup2(&spawn->actions, descriptor, stream);
}

static int add_streams(struct spawn *spawn, const struct det_process_options *options)
{
    const int descriptors[STREAMS] = { options->input, options->output, options->error };
    int r;

    for (int i = 0; i < STREAMS; i++) {
        r = add_stream(spawn, i, descriptors[i]);
        if (r)
            return r;
    }
    return posix_spawn_file_actions_addclosefrom_np(&spawn->actions, STREAMS);
}

/* The child starts with no signal blocked and every one at its default, whatever ours are. */
static void set_signals(struct spawn *spawn, bool new_group)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t set;

    sigemptyset(&set);
    posix_spawnattr_setsigmask(&spawn->attributes, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&spawn->attributes, &set);
    if (new_group) {
        flags |= POSIX_SPAWN_SETPGROUP;
        posix_spawnattr_setpgroup(&spawn->attributes, 0);
    }
    posix_spawnattr_setflags(&spawn->attributes, flags);
}

static void spawn_init(struct spawn *spawn)
{
    int r;

    r = posix_spawnattr_init(&spawn->attributes);
    det_assert(r == 0);
    r = posix_spawn_file_actions_init(&spawn->actions);
    det_assert(r == 0);
    for (int i = 0; i < STREAMS; i++)
        spawn->copies[i] = -1;
}

static void spawn_deinit(struct spawn *spawn)
{
    for (int i = 0; i < STREAMS; i++)
        if (spawn->copies[i] >= 0)
            close(spawn->copies[i]);
    posix_spawn_file_actions_destroy(&spawn->actions);
    posix_spawnattr_destroy(&spawn->attributes);
}

/* posix_spawn() promises not to change the strings, but its type does not say so. */
static char *const *unconst(const char *const *strings)
{
    union {
        const char *const *in;
        char *const *out;
    } same = { .in = strings };

    return same.out;
}

static int spawn_run(struct spawn *spawn, const struct det_process_options *options, pid_t *ret)
{
    int r;

    r = add_streams(spawn, options);
    if (!r && options->folder)
        r = posix_spawn_file_actions_addchdir_np(&spawn->actions, options->folder);
    if (r)
        return det_real_error(r);
    set_signals(spawn, options->new_group);
    r = posix_spawnp(
        ret, options->argv[0], &spawn->actions, &spawn->attributes, unconst(options->argv),
        options->environment ? unconst(options->environment) : environ);
    return r ? det_real_error(r) : 0;
}

static int reap(struct det_process *process)
{
    int status;
    pid_t number;

    do
        number = waitpid(process->number, &status, 0);
    while (number < 0 && errno == EINTR);
    process->has_ended = true;
    process->end = (struct det_process_end){ .code = -1 };
    if (number < 0)
        /* Somebody took it from under us: it has ended, and nobody knows how. */
        return det_real_error(errno);
    if (WIFSIGNALED(status))
        process->end.signal = WTERMSIG(status);
    else
        process->end.code = WEXITSTATUS(status);
    return 0;
}

static int send_signal(struct det_process *process, int signal)
{
    return kill(process->is_group ? -process->number : process->number, signal);
}

static int process_spawn(struct det_process *process, const struct det_process_options *options)
{
    struct spawn spawn;
    int r;

    spawn_init(&spawn);
    r = spawn_run(&spawn, options, &process->number);
    spawn_deinit(&spawn);
    if (r < 0)
        return r;
    process->is_group = options->new_group;
    process->descriptor = pidfd_open(process->number, 0);
    if (process->descriptor >= 0)
        return 0;
    /* It runs, but nobody could wait for it with a deadline: it must not have been started. */
    r = det_real_error(errno);
    send_signal(process, SIGKILL);
    reap(process);
    return r;
}

int det_real_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret)
{
    const struct det_allocator *allocator = det_real_allocator(world);
    struct det_process *process;
    int r;

    det_assert(options->argv && options->argv[0]);
    process = DET_NEW(allocator, struct det_process);
    if (!process)
        return DET_ERR_NO_MEMORY;
    r = process_spawn(process, options);
    if (r < 0) {
        DET_DELETE(allocator, process);
        return r;
    }
    *ret = process;
    return 0;
}

int det_real_process_kill(struct det_world *world, struct det_process *process, int signal)
{
    (void)world;
    if (process->has_ended)
        return DET_ERR_NOT_FOUND;
    return send_signal(process, signal) < 0 ? det_real_error(errno) : 0;
}

/* 1 when the process has ended, 0 at the deadline, -1 with errno. */
static int poll_end(struct det_world *world, struct det_process *process, det_time deadline)
{
    struct pollfd poll = { .fd = process->descriptor, .events = POLLIN };
    struct timespec span;
    det_time left;

    if (deadline == DET_NEVER)
        return ppoll(&poll, 1, NULL, NULL);
    left = deadline <= 0 ? 0 : deadline - det_real_now(world, DET_CLOCK_MONOTONIC);
    span = det_real_timespec(left < 0 ? 0 : left);
    return ppoll(&poll, 1, &span, NULL);
}

int det_real_process_wait(
    struct det_world *world, struct det_process *process, det_time deadline,
    struct det_process_end *ret)
{
    int r;

    if (!process->has_ended) {
        do
            r = poll_end(world, process, deadline);
        while (r < 0 && errno == EINTR);
        det_assert(r >= 0);
        if (r == 0)
            return DET_ERR_TIMEOUT;
        r = reap(process);
        if (r < 0)
            return r;
    }
    *ret = process->end;
    return 0;
}

int det_real_process_descriptor(struct det_world *world, struct det_process *process)
{
    (void)world;
    return process->descriptor;
}

void det_real_process_close(struct det_world *world, struct det_process *process)
{
    if (!process->has_ended)
        reap(process);
    close(process->descriptor);
    DET_DELETE(det_real_allocator(world), process);
}
