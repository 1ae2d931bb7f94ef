/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver/process_guard.h - a real world whose processes do not outlive the program, however it
 * ends.
 *
 * A supervisor that is killed with SIGKILL runs no handler. Its children would go on, and its next
 * start would run them a second time. A guard prevents both:
 *
 *   - What is started in its world is recorded in a file before it can act.
 *     det_process_guard_start() ends what an earlier run left behind before anything is started.
 *   - A helper process waits for the death of the program, and then kills what was started with
 *     `ends_with_us` and all that descends from it, also what has left its group or its session.
 *   - Processes join a cgroup of the run where one may be made, so that also those are found that
 *     have cleared their environment and left their session.
 *
 * The helper is forked from the program. It blocks all signals, has a session of its own, holds no
 * descriptor of the program's, and uses no memory allocation. A program that reaps all of its
 * children must leave the helper alone, see det_process_guard_is_helper(). The format of the
 * record is in docs/formats/processes.md.
 *
 * A guard sets no signal handler. The process has one thing that all real worlds share: the first
 * start of a process with `ends_with_us` on another thread than the program's first one starts a
 * thread that forks, with all signals blocked, and registers a handler with pthread_atfork(). The
 * thread is detached and ends with the program; so a library that contains detent cannot be
 * unloaded afterwards. */
#ifndef DETENT_DRIVER_PROCESS_GUARD_H
#define DETENT_DRIVER_PROCESS_GUARD_H

#include <detent/world.h>

DET_BEGIN

/* Processes that live at the same time; one more is DET_ERR_LIMIT. */
#define DET_PROCESS_GUARD_MAX 262144
struct det_process_guard;

struct det_process_guard_options {
    const char *path; /* of the record, in a folder that only this user may write to; one run at a
                         time uses it, which the caller ensures, say by a lock */
    det_time grace;   /* from SIGTERM to SIGKILL, for what an earlier run left behind; 0: 10 s */
    /* Called by det_process_guard_start() for each process of an earlier run that still lives,
     * before it is ended. May be NULL. */
    void (*on_left)(void *user, int64_t number, const char *command);
    void *user;
};

/* Makes the world; nothing is recorded until the start. The world must be closed last, after all
 * that uses it. */
DET_API int det_process_guard_open(
    const struct det_allocator *allocator, struct det_process_guard **ret) DET_MUST_CHECK;
/* The real world. Between start and close its processes are guarded: those with `ends_with_us` die
 * with the program; the others go on and are ended by the next start with the same path. Lives as
 * long as the guard. */
DET_API struct det_world *det_process_guard_world(struct det_process_guard *guard);
/* Ends what an earlier run left behind, which waits up to `grace` and a few seconds; then begins to
 * record. DET_ERR_TIMEOUT: one of them does not end, and nothing may be started. DET_ERR_CORRUPT:
 * the record is damaged, so that nobody knows. DET_ERR_UNSUPPORTED: there is no /proc.
 * DET_ERR_LIMIT, DET_ERR_NO_MEMORY: the helper cannot be started. After a failure the guard is
 * as it was before, and the start may be tried again. */
DET_API int det_process_guard_start(
    struct det_process_guard *guard, const struct det_process_guard_options *options,
    struct det_error *reterr) DET_MUST_CHECK;
/* Starts the helper again if it was killed: call this on SIGCHLD. 1: it was started again; 0: it
 * lives. Negative: it cannot be started, and nothing kills the processes if the program is killed
 * now; call this again, say every second. */
DET_API int det_process_guard_tend(struct det_process_guard *guard);
/* Whether the child with this number is the helper, which only the guard may reap. */
DET_API bool det_process_guard_is_helper(struct det_process_guard *guard, int64_t number);
/* After all processes of the world were closed. Kills what they have left running, also what has
 * left its group or its session, and waits until it is gone, 10 s at most; what comes from a
 * process without `ends_with_us` goes on and is ended by the next start with the same path. Then
 * ends the helper. Takes NULL. */
DET_API void det_process_guard_close(struct det_process_guard *guard);

DET_END
#endif
