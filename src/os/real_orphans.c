/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_orphans.c - finds children that this program did not start, by a walk through /proc.
 *
 * A number found belongs to a child of this process, and only we reap it, so it cannot be reused
 * before the signal is sent. The kernel's own lists of children are faster to read, but may miss
 * some while others exit. */
#include "os/real_orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "os/real.h"

int det_orphans_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? DET_ERR_UNSUPPORTED : 0;
}

/* Returns the parent of a process by its folder in /proc; -1 if it is gone. */
static pid_t parent_of(int proc, const char *name)
{
    char path[64], text[512], *end;
    int descriptor;
    ssize_t size;

    (void)snprintf(path, sizeof path, "%.20s/stat", name);
    descriptor = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    size = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    if (size <= 0)
        return -1;
    text[size] = '\0';
    /* "12 (a name) S 3 ...": the name may hold anything, but nothing after it holds a bracket. */
    end = strrchr(text, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

/* Sends the signal if the process is alive; returns whether it was. */
static bool is_alive(pid_t number, int signal)
{
    pid_t reaped;

    do
        reaped = waitpid(number, NULL, WNOHANG);
    while (reaped < 0 && errno == EINTR);
    if (reaped != 0)
        return false;
    (void)kill(number, signal);
    return true;
}

/* `last` receives the number of a living child, or 0. */
static int sweep_children(det_orphans_fn *is_ours, void *user, int signal, pid_t *last)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t self = getpid();
    int count = 0;

    *last = 0;
    if (!folder)
        return det_real_error(errno);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): this stream is ours */
    while ((entry = readdir(folder))) {
        pid_t number = (pid_t)strtol(entry->d_name, NULL, 10);

        if (number <= 0 || parent_of(dirfd(folder), entry->d_name) != self ||
            is_ours(user, number) || !is_alive(number, signal))
            continue;
        *last = number;
        count++;
    }
    closedir(folder);
    return count;
}

int det_orphans_sweep(det_orphans_fn *is_ours, void *user, int signal)
{
    pid_t last;

    return sweep_children(is_ours, user, signal, &last);
}

/* Waits for the exit or the deadline. */
static void wait_for(pid_t number, det_time deadline)
{
    struct pollfd one = { .fd = pidfd_open(number, 0), .events = POLLIN };
    det_time left = deadline - det_real_now(NULL, DET_CLOCK_MONOTONIC);
    struct timespec span = det_real_timespec(left < 0 ? 0 : left);

    if (one.fd < 0)
        return;
    (void)ppoll(&one, 1, deadline == DET_NEVER ? NULL : &span, NULL);
    close(one.fd);
}

int det_orphans_end(det_orphans_fn *is_ours, void *user, det_time deadline)
{
    pid_t last;
    int r;

    while ((r = sweep_children(is_ours, user, SIGKILL, &last)) > 0) {
        if (det_real_now(NULL, DET_CLOCK_MONOTONIC) >= deadline)
            return DET_ERR_TIMEOUT;
        wait_for(last, deadline);
    }
    return r;
}
