/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* signal_watch.c - reads signals on the loop, and kills processes that left the group of their
 * task.
 *
 * Ctrl-C at a terminal reaches only this process, since each task leads its own process group.
 * SIGINT and SIGTERM pass through the thread of stop_deadline.c. */
#include <detent/driver/loop.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "daemon/reload.h"
#include "daemon/run.h"
#include "os/os.h"
#include "os/real_orphans.h"

/* Limit of the wait for killed orphans. */
#define ORPHANS_SPAN (5 * DET_SECOND)

struct up_signals {
    struct det_watch watch;
    struct det_watch stop_watch; /* SIGINT and SIGTERM, forwarded by the deadline thread */
    int stop_signals, stop_pipe; /* of that thread */
    sigset_t mask_before;
};

static bool is_helper(void *user, int64_t number)
{
    return up_guard_is_helper(user, number);
}

/* A started child leads its group and stays in our session, which a group leader cannot leave. An
 * adopted process has another session, or a group of another process. */
static bool is_started_here(void *user, int64_t number)
{
    pid_t child = (pid_t)number;

    return is_helper(user, number) || (getpgid(child) == child && getsid(child) == getsid(0));
}

static void handle_signal(struct up *up, const struct signalfd_siginfo *info)
{
    unsigned number = info->ssi_signo;
    /* Sent by a terminal: no user is known. */
    int64_t uid = info->ssi_code == SI_KERNEL ? AUDIT_NOBODY : (int64_t)info->ssi_uid;

    switch (number) {
    case SIGINT:
    case SIGTERM:
        up_audit_signal(up, number == SIGINT ? "SIGINT: stop" : "SIGTERM: stop", uid);
        up_stop(up, number == SIGINT ? "interrupted" : "terminated");
        break;
    case SIGHUP:
        /* A lost terminal cannot show output. The kernel reports it; tasks without output would
         * never notice. */
        if (up->cli->out_is_terminal && info->ssi_code == SI_KERNEL)
            up_stop(up, "the terminal was closed");
        else if (up_is_running(up)) {
            up_audit_signal(up, "SIGHUP: reload", uid);
            up_reload_on_signal(up);
        }
        break;
    case SIGCHLD:
        up_guard_tend(up);
        (void)det_orphans_sweep(is_started_here, up, 0);
        break;
    default:
        break;
    }
}

static void read_signals(struct up *up, int descriptor)
{
    struct signalfd_siginfo info;

    while (read(descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        handle_signal(up, &info);
}

static void on_signal(void *argument, unsigned events)
{
    struct up *up = argument;

    (void)events;
    read_signals(up, up->signals->watch.descriptor);
}

static void on_stop_signal(void *argument, unsigned events)
{
    struct up *up = argument;

    (void)events;
    read_signals(up, up->signals->stop_watch.descriptor);
}

static void close_one(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void close_descriptors(struct up_signals *signals)
{
    close_one(&signals->watch.descriptor);
    close_one(&signals->stop_watch.descriptor);
    close_one(&signals->stop_signals);
    close_one(&signals->stop_pipe);
}

static int open_descriptors(
    struct up *up, struct up_signals *signals, const sigset_t *stop, const sigset_t *others)
{
    int ends[2] = { -1, -1 };

    signals->stop_signals = signalfd(-1, stop, SFD_CLOEXEC | SFD_NONBLOCK);
    signals->watch.descriptor = signalfd(-1, others, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->stop_signals < 0 || signals->watch.descriptor < 0 ||
        pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return DET_ERR_IO;
    signals->stop_watch.descriptor = ends[0];
    signals->stop_pipe = ends[1];
    return up_deadline_open(up, signals->stop_signals, signals->stop_pipe);
}

/* Signals are blocked and read from here on. */
static int take_signals(struct up *up, struct up_signals *signals)
{
    sigset_t stop, others, all;
    int r;

    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigemptyset(&others);
    sigaddset(&others, SIGHUP);
    sigaddset(&others, SIGCHLD);
    sigorset(&all, &stop, &others);
    pthread_sigmask(SIG_BLOCK, &all, &signals->mask_before);
    signals->watch = (struct det_watch){ .run = on_signal, .argument = up, .descriptor = -1 };
    signals->stop_watch =
        (struct det_watch){ .run = on_stop_signal, .argument = up, .descriptor = -1 };
    signals->stop_signals = signals->stop_pipe = -1;
    r = open_descriptors(up, signals, &stop, &others);
    if (r < 0) {
        close_descriptors(signals);
        pthread_sigmask(SIG_SETMASK, &signals->mask_before, NULL);
    }
    return r;
}

int up_signals_open(struct up *up)
{
    struct up_signals *signals = DET_NEW(up->cli->allocator, struct up_signals);
    int r = signals ? take_signals(up, signals) : DET_ERR_NO_MEMORY;

    if (r < 0) {
        DET_DELETE(up->cli->allocator, signals);
        return r;
    }
    det_assert(!up->signals && up->deadline);
    up->signals = signals;
    r = det_loop_watch(up->loop, &signals->watch, DET_POLL_READ);
    if (r == 0)
        r = det_loop_watch(up->loop, &signals->stop_watch, DET_POLL_READ);
    /* Without it, init adopts orphans. */
    (void)!det_orphans_adopt();
    return r;
}

static void end_orphans(struct up *up)
{
    det_time now = det_world_now(up->cli->world, DET_CLOCK_MONOTONIC);
    int alive = det_orphans_sweep(is_helper, up, 0);

    if (alive > 0)
        up_note(
            up, UP_NAME,
            alive == 1 ? "killing %d process left running by a task"
                       : "killing %d processes left running by tasks",
            alive);
    if (det_orphans_end(is_helper, up, det_add_time(now, ORPHANS_SPAN)) == DET_ERR_TIMEOUT)
        up_note_failure(up, UP_NAME, "some processes left running by tasks could not be killed");
}

void up_signals_close(struct up *up)
{
    if (!up->signals)
        return;
    end_orphans(up);
    det_loop_unwatch(up->loop, &up->signals->watch);
    det_loop_unwatch(up->loop, &up->signals->stop_watch);
}

void up_signals_end(struct up *up)
{
    int noted;

    if (!up->signals)
        return;
    /* The thread reads the descriptors. */
    up_deadline_close(up);
    det_assert(!up->deadline);
    close_descriptors(up->signals);
    noted = cli_noted_signal();
    cli_note_signal(0);
    pthread_sigmask(SIG_SETMASK, &up->signals->mask_before, NULL);
    /* A signal from before the loop started has its default effect. */
    DET_DELETE(up->cli->allocator, up->signals);
    up->signals = NULL;
    if (noted && !up_has_begun(up))
        (void)raise(noted);
}
