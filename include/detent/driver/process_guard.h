/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/process_guard.h - a real world whose processes do not outlive the program, however it
 * ends.
 *
 * A supervisor that is killed with SIGKILL runs no handler. Its children would continue, and its
 * next start would run them a second time. A guard prevents both:
 *
 *   - The guard records each process of its world in a file before the process can act.
 *     det_process_guard_start() ends the processes of an earlier run before it returns.
 *   - A helper process waits for the death of the program, and then kills the processes with
 *     `ends_with_us` and all their descendants, including those that left the group or session.
 *   - Processes join a cgroup of the run where one may be made. The guard thus also finds processes
 *     that have cleared their environment and left their session.
 *
 * The helper is forked from the program. It blocks all signals, has its own session, holds no
 * descriptor of the program, and does not allocate memory. A program that reaps all of its children
 * must not reap the helper, see det_process_guard_is_helper(). docs/formats/processes.md describes
 * the record file.
 *
 * A guard sets no signal handler. All real worlds of a process share one thing: the first start of
 * a process with `ends_with_us` from a thread other than the main one starts a thread that forks,
 * with all signals blocked, and registers a handler with pthread_atfork(). The thread is detached
 * and ends with the program; therefore a library that contains detent cannot be unloaded. */
#ifndef DETENT_DRIVER_PROCESS_GUARD_H
#define DETENT_DRIVER_PROCESS_GUARD_H

#include <detent/world.h>

DET_BEGIN

/* Maximum number of processes at the same time; one more is DET_ERR_LIMIT. */
#define DET_PROCESS_GUARD_MAX 262144
struct det_process_guard;

struct det_process_guard_options {
    const char *path; /* path of the record, in a folder that only this user may write to; the
                       * caller ensures, for example by a lock, that one run at a time uses it */
    det_time grace;   /* time between SIGTERM and SIGKILL for processes of an earlier run; 0: 10
                       * s */
    /* Called by det_process_guard_start() for each live process of an earlier run, before that
     * process is ended. May be NULL. */
    void (*on_left)(void *user, int64_t number, const char *command);
    void *user;
    uint64_t reserved[DET_OPTIONS_RESERVED]; /* zero */
};

/* Makes the world; recording begins with det_process_guard_start(). Close the world last, after
 * everything that uses it. */
DET_API int det_process_guard_open(
    const struct det_allocator *allocator, struct det_process_guard **ret) DET_MUST_CHECK;
/* The real world. Between start and close its processes are guarded: those with `ends_with_us`
 * die with the program; the next start with the same path ends the others. Lives as long as the
 * guard. */
DET_API struct det_world *det_process_guard_world(struct det_process_guard *guard);
/* Ends the processes of an earlier run, which takes up to `grace` and a few seconds, then starts
 * recording. DET_ERR_TIMEOUT: one of them does not end; start no process. DET_ERR_CORRUPT: the
 * record is damaged, so earlier processes are unknown. DET_ERR_UNSUPPORTED: there is no /proc.
 * DET_ERR_LIMIT, DET_ERR_NO_MEMORY: the helper cannot be started. After a failure the guard is
 * unchanged, and the start may be repeated. */
DET_API int det_process_guard_start(
    struct det_process_guard *guard, const struct det_process_guard_options *options,
    struct det_error *reterr) DET_MUST_CHECK;
/* Restarts the helper if it was killed: call this on SIGCHLD. 1: restarted; 0: it lives. Negative:
 * the helper cannot be started, so processes would now survive a kill of the program; call this
 * again, for example every second. */
DET_API int det_process_guard_tend(struct det_process_guard *guard);
/* True if the child with this number is the helper, which only the guard may reap. */
DET_API bool det_process_guard_is_helper(struct det_process_guard *guard, int64_t number);
/* Call this after closing all processes of the world. Kills their remaining descendants, including
 * those that left the group or session, and waits for their end, at most 10 s. Descendants of a
 * process without `ends_with_us` continue; the next start with the same path ends them. Then ends
 * the helper. Accepts NULL. */
DET_API void det_process_guard_close(struct det_process_guard *guard);

DET_END
#endif
