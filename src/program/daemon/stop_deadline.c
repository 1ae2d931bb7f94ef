/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stop_deadline.c - the thread that takes SIGTERM and SIGINT, and ends the program when a stop
 * takes too long.
 *
 *     SIGTERM, SIGINT ---> this thread ---pipe---> the loop, which stops in order
 *                              |
 *                              +--- the deadline has passed: _exit()
 *
 * The loop may hang when the signal arrives. After its last turn the main thread closes parts that
 * may hang: an unreachable store, user code, a reader that does not read. So this thread keeps the
 * deadline and waits for nothing else. It kills the started processes, even tasks that outlive a
 * crash, since a stop was requested. It ends the program without cleaning up: stores survive a
 * crash, and the guard kills remaining processes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "daemon/run.h"
#include "os/os.h"
#include "os/real.h"

/* Limit of closing after the last task has ended or was killed. */
#define CLOSE_SPAN (10 * DET_SECOND)
/* Time left after the second signal, or after the first one if a stop was already requested. */
#define AGAIN_SPAN DET_SECOND
/* Time for killed processes to end. */
#define KILL_SPAN DET_SECOND

struct up_deadline {
    struct det_world *world;
    struct det_thread *thread;
    int signals; /* signalfd */
    int wake;    /* eventfd */
    int forward; /* pipe to the loop */
    _Atomic(det_time) grace;
    _Atomic det_time forced_at;  /* monotonic: time of the second signal; DET_NEVER: none */
    _Atomic(det_time) at;        /* monotonic deadline; DET_NEVER: no stop */
    _Atomic(const char *) phase; /* the phase that the main thread waits for */
    _Atomic(det_time) first;     /* when a stop was first requested; 0: never */
    _Atomic(struct det_process_guard *) guard; /* NULL: nothing was started */
    atomic_bool is_over;
};

static det_time now_of(const struct up_deadline *deadline)
{
    return det_world_now(deadline->world, DET_CLOCK_MONOTONIC);
}

/* Moves the deadline, only to an earlier time. */
static void move_to(struct up_deadline *deadline, det_time at)
{
    det_time before = atomic_load(&deadline->at);

    det_assert(at > 0);
    while (at < before && !atomic_compare_exchange_weak(&deadline->at, &before, at))
        continue;
}

/* True for the first request to stop, by a signal or by `up`. */
static bool is_first(struct up_deadline *deadline, det_time now)
{
    det_time none = 0;

    return atomic_compare_exchange_strong(&deadline->first, &none, now);
}

static void take_signal(struct up_deadline *deadline)
{
    struct signalfd_siginfo info;
    det_time now = now_of(deadline);

    if (read(deadline->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    cli_note_signal((int)info.ssi_signo);
    if (is_first(deadline, now))
        move_to(deadline, det_add_time(now, atomic_load(&deadline->grace) + CLOSE_SPAN));
    else if (now - atomic_load(&deadline->first) >= UP_SAME_STOP) {
        atomic_store(&deadline->forced_at, now);
        move_to(deadline, now + AGAIN_SPAN);
    }
    (void)!write(deadline->forward, &info, sizeof info);
}

static _Noreturn void end_now(const struct up_deadline *deadline)
{
    struct det_process_guard *guard = atomic_load(&deadline->guard);

    if (guard)
        det_process_guard_kill(guard, KILL_SPAN);
    (void)dprintf(
        STDERR_FILENO,
        "detent: the stop timed out: %s; exiting now. All started processes were killed.\n",
        atomic_load(&deadline->phase));
    _exit(CLI_TIMEOUT);
}

static void run_deadline(void *argument)
{
    struct up_deadline *deadline = argument;

    while (!atomic_load(&deadline->is_over)) {
        struct pollfd polled[] = {
            { .fd = deadline->signals, .events = POLLIN },
            { .fd = deadline->wake, .events = POLLIN },
        };
        det_time at = atomic_load(&deadline->at), left = at - now_of(deadline);
        struct timespec span = det_real_timespec(left > 0 ? left : 0);
        uint64_t count;

        if (at != DET_NEVER && left <= 0)
            end_now(deadline);
        if (ppoll(polled, 2, at == DET_NEVER ? NULL : &span, NULL) <= 0)
            continue;
        if (polled[0].revents)
            take_signal(deadline);
        if (polled[1].revents)
            (void)!read(deadline->wake, &count, sizeof count);
    }
}

int up_deadline_open(struct up *up, int signals, int forward)
{
    struct up_deadline *deadline = DET_NEW(up->cli->allocator, struct up_deadline);
    int r;

    det_assert(!up->deadline && signals >= 0 && forward >= 0);
    if (!deadline)
        return DET_ERR_NO_MEMORY;
    deadline->world = up->cli->world;
    deadline->signals = signals;
    deadline->forward = forward;
    deadline->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_init(&deadline->grace, up_grace(up));
    atomic_init(&deadline->forced_at, DET_NEVER);
    atomic_init(&deadline->at, DET_NEVER);
    atomic_init(&deadline->phase, "tasks and workers are still running");
    atomic_init(&deadline->first, 0);
    atomic_init(&deadline->guard, NULL);
    atomic_init(&deadline->is_over, false);
    r = deadline->wake < 0
            ? DET_ERR_LIMIT
            : det_thread_start(
                  deadline->world, "signals", run_deadline, deadline, &deadline->thread);
    if (r < 0) {
        if (deadline->wake >= 0)
            close(deadline->wake);
        DET_DELETE(up->cli->allocator, deadline);
        return r;
    }
    up->deadline = deadline;
    return 0;
}

static void wake_up(struct up_deadline *deadline)
{
    static const uint64_t one = 1;

    (void)!write(deadline->wake, &one, sizeof one);
}

void up_deadline_guard(struct up *up, struct det_process_guard *guard)
{
    if (up->deadline)
        atomic_store(&up->deadline->guard, guard);
}

void up_deadline_arm(struct up *up)
{
    struct up_deadline *deadline = up->deadline;
    det_time now;

    if (!deadline)
        return;
    now = now_of(deadline);
    (void)is_first(deadline, now);
    move_to(deadline, det_add_time(now, up_grace(up) + CLOSE_SPAN));
    wake_up(deadline);
}

const _Atomic det_time *up_deadline_forced_at(const struct up *up)
{
    return up->deadline ? &up->deadline->forced_at : NULL;
}

void up_deadline_phase(struct up *up, const char *phase)
{
    struct up_deadline *deadline = up->deadline;

    if (!deadline)
        return;
    atomic_store(&deadline->phase, phase);
    /* Closing does not get the unused time of tasks. */
    move_to(deadline, det_add_time(now_of(deadline), CLOSE_SPAN));
    wake_up(deadline);
}

void up_deadline_close(struct up *up)
{
    struct up_deadline *deadline = up->deadline;

    if (!deadline)
        return;
    atomic_store(&deadline->is_over, true);
    wake_up(deadline);
    det_thread_join(deadline->world, deadline->thread);
    close(deadline->wake);
    DET_DELETE(up->cli->allocator, deadline);
    up->deadline = NULL;
}
