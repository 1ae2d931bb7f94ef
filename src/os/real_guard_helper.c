/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_helper.c - the helper process, which outlives the program until it has killed the
 * processes that the program left.
 *
 * It is forked, not a separate program, so that a library can have it. All signals stay blocked;
 * those of a terminal and of the program's group do not reach its session. It holds nothing open,
 * so readers of the program's output see the end of file. Only SIGKILL ends it early; then the
 * program starts another one on SIGCHLD. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/real_guard.h"

#define NAME      "detent-guard"
#define STREAMS   3
#define KILL_SPAN (30 * DET_SECOND)

/* Keeps the pidfd of the program, as the first descriptor after the streams. */
static int keep_only(int descriptor)
{
    if (dup2(descriptor, STREAMS) < 0)
        return -1;
    (void)close_range(STREAMS + 1, ~0U, 0);
    for (int i = 0; i < STREAMS; i++) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null >= 0 && null != i) {
            (void)dup2(null, i);
            close(null);
        }
    }
    return STREAMS;
}

static _Noreturn void helper_main(const struct det_process_guard *guard)
{
    struct pollfd owner = { .events = POLLIN };
    struct det_process_guard_scan scan;

    (void)prctl(PR_SET_NAME, NAME, 0, 0, 0);
    (void)setsid();
    (void)!chdir("/");
    owner.fd = keep_only(guard->self);
    if (owner.fd < 0 || det_process_guard_scan_init(
                            &scan, &guard->run, guard->record, DET_PROCESS_GUARD_MAX, false) < 0)
        _exit(1);
    while (poll(&owner, 1, -1) < 0 && errno == EINTR)
        continue;
    (void)det_process_guard_kill_all(&scan, det_real_now(NULL, DET_CLOCK_MONOTONIC) + KILL_SPAN);
    _exit(0);
}

int det_process_guard_helper_start(struct det_process_guard *guard)
{
    sigset_t all, before;
    pid_t number;
    int saved;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    number = fork();
    saved = errno;
    if (number == 0)
        helper_main(guard);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    if (number < 0)
        return -1;
    guard->helper = number;
    return 0;
}

void det_process_guard_helper_stop(struct det_process_guard *guard)
{
    if (guard->helper <= 0)
        return;
    (void)kill(guard->helper, SIGKILL);
    while (waitpid(guard->helper, NULL, 0) < 0 && errno == EINTR)
        continue;
    guard->helper = 0;
}
