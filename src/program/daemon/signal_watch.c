/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* signal_watch.c - signals as something to read on the loop, and the processes that left their
 * group.
 *
 * The terminal's Ctrl-C reaches only this process, since each task leads a group of its own. SIGINT
 * and SIGTERM come by way of the thread of stop_deadline.c. */
#include <detent/driver/loop.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/checked.h"
#include "daemon/daemon.h"
#include "os/os.h"
#include "os/real_orphans.h"

/* How long orphans may take to be gone after they were killed. */
#define ORPHANS_SPAN (5 * DET_SECOND)

static bool is_helper(void *user, int64_t number)
{
    const struct up *up = user;

    return up->guard && det_process_guard_is_helper(up->guard, number);
}

/* A child that was started here leads its group and stays in our session, which no leader of a
 * group can leave. What was adopted has either another session or another's group. */
static bool is_ours(void *user, int64_t number)
{
    pid_t child = (pid_t)number;

    return is_helper(user, number) || (getpgid(child) == child && getsid(child) == getsid(0));
}

static void take(struct up *up, const struct signalfd_siginfo *info)
{
    unsigned number = info->ssi_signo;
    /* A terminal sends it for whoever sits there. */
    int64_t uid = info->ssi_code == SI_KERNEL ? AUDIT_NOBODY : (int64_t)info->ssi_uid;

    switch (number) {
    case SIGINT:
    case SIGTERM:
        up_audit_signal(up, number == SIGINT ? "SIGINT: stop" : "SIGTERM: stop", uid);
        up_stop(up, number == SIGINT ? "interrupted" : "asked to end");
        break;
    case SIGHUP:
        /* A terminal that is gone shows nothing any more, and the kernel says so; quiet tasks would
         * never find out. */
        if (up->cli->out_is_terminal && info->ssi_code == SI_KERNEL)
            up_stop(up, "the terminal is gone");
        else if (up->state == UP_RUNNING) {
            up_audit_signal(up, "SIGHUP: reload", uid);
            up->reload_signalled = true;
        }
        break;
    case SIGCHLD:
        up_guard_tend(up);
        (void)det_orphans_sweep(is_ours, up, 0);
        break;
    default:
        break;
    }
}

static void read_signals(struct up *up, int descriptor)
{
    struct signalfd_siginfo info;

    while (read(descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        take(up, &info);
}

static void on_signal(void *argument, unsigned events)
{
    struct up *up = argument;

    (void)events;
    read_signals(up, up->signal_watch.descriptor);
}

static void on_stop_signal(void *argument, unsigned events)
{
    struct up *up = argument;

    (void)events;
    read_signals(up, up->stop_watch.descriptor);
}

static void close_one(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void close_descriptors(struct up *up)
{
    close_one(&up->signal_watch.descriptor);
    close_one(&up->stop_watch.descriptor);
    close_one(&up->stop_signals);
    close_one(&up->stop_pipe);
}

static int open_descriptors(struct up *up, const sigset_t *stop, const sigset_t *others)
{
    int ends[2] = { -1, -1 };

    up->stop_signals = signalfd(-1, stop, SFD_CLOEXEC | SFD_NONBLOCK);
    up->signal_watch.descriptor = signalfd(-1, others, SFD_CLOEXEC | SFD_NONBLOCK);
    if (up->stop_signals < 0 || up->signal_watch.descriptor < 0 ||
        pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return DET_ERR_IO;
    up->stop_watch.descriptor = ends[0];
    up->stop_pipe = ends[1];
    return up_deadline_open(up, up->stop_signals, up->stop_pipe);
}

int up_signals_open(struct up *up)
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
    pthread_sigmask(SIG_BLOCK, &all, &up->mask_before);
    up->signal_watch = (struct det_watch){ .run = on_signal, .argument = up, .descriptor = -1 };
    up->stop_watch = (struct det_watch){ .run = on_stop_signal, .argument = up, .descriptor = -1 };
    up->stop_signals = up->stop_pipe = -1;
    r = open_descriptors(up, &stop, &others);
    if (r < 0) {
        close_descriptors(up);
        pthread_sigmask(SIG_SETMASK, &up->mask_before, NULL);
        return r;
    }
    r = det_loop_watch(up->loop, &up->signal_watch, DET_POLL_READ);
    if (r == 0)
        r = det_loop_watch(up->loop, &up->stop_watch, DET_POLL_READ);
    /* Without it orphans go to init, as they would anywhere else. */
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
            alive == 1 ? "kills %d process that a task has left behind"
                       : "kills %d processes that tasks have left behind",
            alive);
    if (det_orphans_end(is_helper, up, det_add_time(now, ORPHANS_SPAN)) == DET_ERR_TIMEOUT)
        up_note_failure(up, UP_NAME, "some processes that tasks have left behind do not die");
}

void up_signals_close(struct up *up)
{
    if (up->signal_watch.descriptor < 0)
        return;
    end_orphans(up);
    det_loop_unwatch(up->loop, &up->signal_watch);
    det_loop_unwatch(up->loop, &up->stop_watch);
}

void up_signals_end(struct up *up)
{
    int noted;

    if (up->signal_watch.descriptor < 0)
        return;
    up_deadline_close(up);
    close_descriptors(up);
    noted = cli_noted_signal();
    cli_note_signal(0);
    pthread_sigmask(SIG_SETMASK, &up->mask_before, NULL);
    /* Came before there was a loop to stop: it does what it would have done without us. */
    if (noted && !up->has_begun)
        (void)raise(noted);
}
