/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_guard_end.c - ends all processes that a run has left, and waits until they are gone. */
#include <signal.h>
#include <time.h>

#include "os/real_guard.h"

#define GRACE_DEFAULT (10 * DET_SECOND)
#define KILL_SPAN     (10 * DET_SECOND)
#define CHECK_FIRST   DET_MILLISECOND
#define LOOK_MOST     (50 * DET_MILLISECOND)

static bool is_over(det_time deadline)
{
    return deadline != DET_NEVER && det_real_now(NULL, DET_CLOCK_MONOTONIC) >= deadline;
}

/* Doubles the time on each call. */
static void sleep_longer(det_time *span)
{
    struct timespec time = det_real_timespec(*span);

    (void)nanosleep(&time, NULL);
    *span = *span * 2 < LOOK_MOST ? *span * 2 : LOOK_MOST;
}

/* A process that is found may have started another one since. None is left when two scans find
 * none. */
static bool run_until_none(struct det_process_guard_scan *scan, int signal, det_time deadline)
{
    det_time span = CHECK_FIRST;
    int none = 0;

    for (;;) {
        int count = det_process_guard_scan_run(scan, signal, NULL, NULL);

        none = count == 0 ? none + 1 : 0;
        if (none == 2)
            return true;
        if (count < 0 || is_over(deadline))
            return false;
        if (none == 0)
            sleep_longer(&span);
    }
}

bool det_process_guard_kill_all(struct det_process_guard_scan *scan, det_time deadline)
{
    const char *cgroup = scan->run->cgroup;
    det_time span = CHECK_FIRST;
    bool is_empty;

    if (*cgroup)
        det_process_guard_cgroup_kill(cgroup);
    if (!run_until_none(scan, SIGKILL, deadline))
        return false;
    is_empty = !*cgroup || det_process_guard_cgroup_remove(cgroup);
    while (!is_empty && !is_over(deadline)) {
        sleep_longer(&span);
        det_process_guard_cgroup_kill(cgroup);
        is_empty = det_process_guard_cgroup_remove(cgroup);
    }
    return is_empty;
}

int det_process_guard_end_all(
    struct det_process_guard_scan *scan, const struct det_process_guard_options *options,
    det_process_guard_found_fn *call)
{
    det_time grace = options->grace ? options->grace : GRACE_DEFAULT;
    det_time now = det_real_now(NULL, DET_CLOCK_MONOTONIC);
    int count = det_process_guard_scan_run(scan, SIGTERM, call, options->user);

    if (count < 0)
        return DET_ERR_IO;
    if (count > 0)
        (void)run_until_none(scan, 0, now + grace);
    now = det_real_now(NULL, DET_CLOCK_MONOTONIC);
    return det_process_guard_kill_all(scan, now + KILL_SPAN) ? count : DET_ERR_TIMEOUT;
}
