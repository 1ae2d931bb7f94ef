/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_process.c - processes of the real world: their pipes, their signals, a pidfd to wait.
 *
 * Invariants
 *   1. Until the exit is known the child is not reaped, so neither its number nor that of its group
 *      can be reused, and a kill cannot hit another process.
 *   2. Once the exit is known it is stored, and no system call uses the number again.
 *   3. A leader that has exited is reaped only after the rest of its group was killed: afterwards
 *      no safe name for the group would be left. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/real_guard.h"
#include "os/real_process.h"

_Static_assert(
    DET_PROCESS_SIGKILL == SIGKILL && DET_PROCESS_SIGTERM == SIGTERM &&
        DET_PROCESS_SIGCONT == SIGCONT,
    "driver/world.h has the numbers of this machine");

struct det_process {
    pid_t number;
    int descriptor;                   /* pidfd */
    int streams[DET_PROCESS_STREAMS]; /* our ends; -1: not requested */
    uid_t user;
    bool is_group;
    bool has_ended;
    struct det_process_end end;
    struct det_process_guard *guard; /* NULL: not recorded */
    struct det_process_guard_slot *slot;
};

/* Resources of one start, released after it. */
struct start {
    const struct det_allocator *allocator;
    struct det_spawn spawn;
    struct det_real_user user;
    int owned[DET_SPAWN_STREAMS]; /* descriptors of the child's streams that are closed here */
    char variable[DET_NOTIFY_VARIABLE_SIZE]; /* empty: none */
    const char *mark;                        /* "DETENT_RUN=..."; NULL: none */
    const char **environment;                /* NULL: as given */
    size_t environment_count;
};

static void close_all(int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (descriptors[i] >= 0)
            close(descriptors[i]);
        descriptors[i] = -1;
    }
}

/* A stream's descriptor that is itself 0, 1 or 2 could be overwritten before it is used, for
 * instance when input and output are swapped; so it is duplicated above those. Returns -1 with
 * errno. */
static int lift_stream(struct start *start, int stream, int descriptor)
{
    start->spawn.streams[stream] = descriptor;
    if (descriptor < 0 || descriptor >= DET_SPAWN_STREAMS)
        return 0;
    descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, DET_SPAWN_STREAMS);
    if (descriptor < 0)
        return -1;
    if (start->owned[stream] >= 0)
        close(start->owned[stream]);
    start->spawn.streams[stream] = start->owned[stream] = descriptor;
    return 0;
}

/* Our end does not block; the child's does, as programs expect. */
static int open_pipe(struct start *start, int stream, int *ret)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    *ret = ends[0];
    start->owned[stream] = ends[1];
    return fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

static int prepare_streams(struct start *start, struct det_process *process)
{
    const struct det_process_options *options = start->spawn.options;
    int descriptors[DET_SPAWN_STREAMS] = { options->input, options->output, options->error };

    if (options->has_streams) {
        if (open_pipe(start, 1, &process->streams[DET_PROCESS_OUTPUT]) < 0 ||
            open_pipe(start, 2, &process->streams[DET_PROCESS_ERROR]) < 0)
            return -1;
        descriptors[1] = start->owned[1];
        descriptors[2] = start->owned[2];
    }
    for (int i = 0; i < DET_SPAWN_STREAMS; i++)
        if (lift_stream(start, i, descriptors[i]) < 0)
            return -1;
    return 0;
}

static bool is_replaced(const struct start *start, const char *variable)
{
    if (*start->variable &&
        strncmp(variable, DET_NOTIFY_VARIABLE, strlen(DET_NOTIFY_VARIABLE)) == 0)
        return true;
    return start->mark && strncmp(variable, DET_GUARD_VARIABLE, strlen(DET_GUARD_VARIABLE)) == 0;
}

/* Builds the environment with the notify socket and the run mark. */
static int prepare_environment(struct start *start)
{
    const char *const *given = start->spawn.environment;
    size_t count = 0;

    if (!*start->variable && !start->mark)
        return 0;
    while (given[count])
        count++;
    start->environment_count = count + 3;
    start->environment = DET_NEW_ARRAY(start->allocator, start->environment_count, const char *);
    if (!start->environment)
        return DET_ERR_NO_MEMORY;
    count = 0;
    for (size_t i = 0; given[i]; i++)
        if (!is_replaced(start, given[i]))
            start->environment[count++] = given[i];
    if (*start->variable)
        start->environment[count++] = start->variable;
    start->environment[count] = start->mark;
    start->spawn.environment = start->environment;
    return 0;
}

static int prepare_notify(struct start *start, struct det_process *process)
{
    int r;

    if (!start->spawn.options->has_notify)
        return 0;
    r = det_real_notify_open(start->variable);
    if (r < 0)
        return r;
    process->streams[DET_PROCESS_NOTIFY] = r;
    return 0;
}

/* Reserves a slot of the guard and the mark of the run. */
static int prepare_guard(struct start *start, struct det_process *process)
{
    struct det_process_guard *guard = process->guard;
    int r;

    if (!guard)
        return 0;
    r = det_process_guard_claim(guard, start->spawn.options, &process->slot);
    if (r < 0)
        return r;
    start->spawn.slot = process->slot;
    start->spawn.cgroup = guard->cgroup;
    start->mark = start->spawn.options->ends_with_us ? guard->tied : guard->kept;
    return 0;
}

static int prepare_user(struct start *start, struct det_process *process, struct det_error *reterr)
{
    const struct det_process_options *options = start->spawn.options;
    int r;

    process->user = geteuid();
    if (!options->user)
        return 0;
    r = det_real_user_init(&start->user, start->allocator, options->user);
    if (r == DET_ERR_NOT_FOUND)
        return det_error_set(
            reterr, r,
            "cannot start \"%.64s\": no such user: %.64s; create it, or name another one",
            options->argv[0], options->user);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot start \"%.64s\" as user %.64s: %s", options->argv[0], options->user,
            det_error_text(r));
    if (r > 0) {
        start->spawn.user = &start->user;
        process->user = start->user.user;
    }
    return 0;
}

static void start_init(
    struct start *start, const struct det_allocator *allocator,
    const struct det_process_options *options)
{
    *start = (struct start){ .allocator = allocator, .spawn = { .options = options } };
    start->spawn.environment =
        options->environment ? options->environment : (const char *const *)environ;
    for (int i = 0; i < DET_SPAWN_STREAMS; i++)
        start->owned[i] = -1;
}

static void start_deinit(struct start *start)
{
    close_all(start->owned, DET_SPAWN_STREAMS);
    if (start->environment)
        DET_DELETE_ARRAY(start->allocator, start->environment, start->environment_count);
    det_real_user_deinit(&start->user, start->allocator);
}

static int start_run(struct start *start, struct det_process *process, struct det_error *reterr)
{
    struct det_spawn_failure failure = { .stage = DET_SPAWN_US };
    int r;

    if (prepare_streams(start, process) < 0) {
        failure.number = errno;
        return det_real_spawn_error(start->spawn.options, &failure, reterr);
    }
    r = prepare_notify(start, process);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot start \"%.64s\": cannot create its notify socket: %s",
            start->spawn.options->argv[0], det_error_text(r));
    r = prepare_user(start, process, reterr);
    if (r < 0)
        return r;
    r = prepare_guard(start, process);
    if (r == 0)
        r = prepare_environment(start);
    if (r < 0)
        return det_error_set(
            reterr, r, "cannot start \"%.64s\": cannot record the process: %s",
            start->spawn.options->argv[0], det_error_text(r));
    start->spawn.parent = getpid();
    if (start->spawn.user || start->spawn.slot || start->spawn.options->ends_with_us ||
        start->spawn.options->limit_count || det_descriptors_are_raised())
        r = det_real_spawn_as(&start->spawn, &process->number, &failure);
    else
        r = det_real_spawn(&start->spawn, &process->number, &failure);
    return r < 0 ? det_real_spawn_error(start->spawn.options, &failure, reterr) : 0;
}

static int wait_for(struct det_process *process, siginfo_t *info, int options)
{
    bool has_descriptor = process->descriptor >= 0;
    int r;

    *info = (siginfo_t){ 0 };
    do
        r = waitid(
            has_descriptor ? P_PIDFD : P_PID,
            (id_t)(has_descriptor ? process->descriptor : process->number), info,
            WEXITED | options);
    while (r < 0 && errno == EINTR);
    return r;
}

/* Waits for the exit if necessary. */
static int reap_process(struct det_process *process)
{
    siginfo_t info;

    process->end = (struct det_process_end){ .code = -1 };
    if (process->is_group && wait_for(process, &info, WNOWAIT) == 0)
        (void)kill(-process->number, SIGKILL);
    process->has_ended = true;
    if (wait_for(process, &info, 0) < 0)
        /* Other code reaped it: it has exited with an unknown status. */
        return det_real_error(errno);
    if (process->slot)
        det_process_guard_release(process->guard, process->slot);
    process->slot = NULL;
    if (info.si_code == CLD_EXITED)
        process->end.code = info.si_status;
    else
        process->end.signal = info.si_status;
    return 0;
}

static int send_signal(struct det_process *process, int signal)
{
    return kill(process->is_group ? -process->number : process->number, signal);
}

static int process_spawn(
    struct det_process *process, const struct det_allocator *allocator,
    const struct det_process_options *options, struct det_error *reterr)
{
    struct start start;
    int r;

    start_init(&start, allocator, options);
    r = start_run(&start, process, reterr);
    start_deinit(&start);
    if (r < 0)
        return r;
    process->is_group = options->new_group;
    process->descriptor = pidfd_open(process->number, 0);
    if (process->descriptor >= 0)
        return 0;
    /* It runs, but cannot be waited for with a deadline, so the start fails. */
    r = det_real_spawn_error(options, &(struct det_spawn_failure){ DET_SPAWN_US, errno }, reterr);
    send_signal(process, SIGKILL);
    reap_process(process);
    return r;
}

int det_real_process_start(
    struct det_world *world, const struct det_process_options *options, struct det_process **ret,
    struct det_error *reterr)
{
    const struct det_allocator *allocator = det_real_allocator(world);
    struct det_process *process;
    int r;

    det_assert(options->argv && options->argv[0]);
    process = DET_NEW(allocator, struct det_process);
    if (!process)
        return det_error_set(
            reterr, DET_ERR_NO_MEMORY, "cannot start \"%.64s\": out of memory", options->argv[0]);
    process->descriptor = -1;
    process->guard = det_real_guard(world);
    for (int i = 0; i < DET_PROCESS_STREAMS; i++)
        process->streams[i] = -1;
    r = process_spawn(process, allocator, options, reterr);
    if (r < 0) {
        close_all(process->streams, DET_PROCESS_STREAMS);
        if (process->slot)
            det_process_guard_release(process->guard, process->slot);
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

/* Returns 1 when the process has exited, 0 at the deadline, -1 with errno. */
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
        r = reap_process(process);
        if (r < 0)
            return r;
    }
    *ret = process->end;
    return 0;
}

int64_t det_real_process_number(struct det_world *world, struct det_process *process)
{
    (void)world;
    return process->number;
}

int det_real_process_descriptor(struct det_world *world, struct det_process *process)
{
    (void)world;
    return process->descriptor;
}

int det_real_process_stream(
    struct det_world *world, struct det_process *process, enum det_process_stream stream)
{
    (void)world;
    return process->streams[stream];
}

int64_t det_real_process_read(
    struct det_world *world, struct det_process *process, enum det_process_stream stream,
    void *target, size_t size)
{
    int descriptor = process->streams[stream];
    ssize_t count;

    (void)world;
    det_assert(descriptor >= 0 && size > 0);
    if (stream == DET_PROCESS_NOTIFY)
        return det_real_notify_read(
            descriptor,
            &(struct det_notify_sender){ process->number, process->is_group, process->user },
            target, size);
    do
        count = read(descriptor, target, size);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return errno == EAGAIN ? DET_ERR_BUSY : det_real_error(errno);
    return count;
}

void det_real_process_close(struct det_world *world, struct det_process *process)
{
    if (!process->has_ended)
        reap_process(process);
    close_all(process->streams, DET_PROCESS_STREAMS);
    if (process->slot)
        det_process_guard_release(process->guard, process->slot);
    close(process->descriptor);
    DET_DELETE(det_real_allocator(world), process);
}
