/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child.h - a process on a loop: its lines, its messages, its end; for tasks and for checks.
 *
 *      start ---> running ---------------------> ended ---> close
 *                    | on_line, on_notify           | on_end, once
 *                    | signal, stop, kill           | signal: DET_ERR_NOT_FOUND
 *
 * The process leads its own group, and signals reach the whole group. The caller determines the
 * grace period between a stop and a kill. All functions are for the loop's own thread; callbacks
 * run on that thread in turns of the loop, never inside of a call.
 *
 * Invariants
 *   1. on_end comes exactly once for each start that returned 0, and is the last callback.
 *   2. Before on_end the process was reaped, the rest of its group got SIGKILL, and its output so
 *      far was passed on. A descendant that left the group and holds a pipe open does not delay it;
 *      that pipe is then no longer read.
 *   3. No child keeps more than one unfinished line of DET_LINE_MAX bytes per stream, whatever it
 *      writes, and no turn reads more than a fixed amount from it: others get their turn, and the
 *      pipes are always read, so a child is never blocked for good. */
#ifndef DET_TASK_CHILD_H
#define DET_TASK_CHILD_H

#include <detent/driver/world.h>
#include <detent/task.h>

struct det_child;

struct det_child_events {
    /* A line; its `id` and `name` are zero here. NULL: the process writes to /dev/null, which costs
     * nothing. At the end of a stream whose last bytes were dropped, an additional empty cut line
     * reports their number. */
    void (*on_line)(void *user, const struct det_line *line);
    /* With has_notify: one line of a message, such as "READY=1". Accepted from the process itself,
     * its group, or an exited process of the same user. NULL: no notifications. */
    void (*on_notify)(void *user, const char *message);
    /* code -1 and signal 0: the process has ended, but other code has reaped it (for example a
     * program that ignores SIGCHLD), so the result is unknown. May close the child. Not NULL. */
    void (*on_end)(void *user, const struct det_process_end *end);
    void *user;
};

/* Starts the process. After a failure no callback was made and nothing is left, and the error has
 * the reason and the remedy: DET_ERR_NOT_FOUND (program, folder, user), DET_ERR_IO (no permission;
 * `cause`), DET_ERR_LIMIT (processes, descriptors), DET_ERR_NO_MEMORY, DET_ERR_INVALID (no argv).
 * The spec is borrowed for the call. */
DET_MUST_CHECK int det_child_start(
    struct det_loop *loop, const struct det_allocator *allocator,
    const struct det_process_spec *spec, const struct det_child_events *events,
    struct det_child **ret, struct det_error *reterr);
/* Sends a signal to the whole group; 0 only checks. DET_ERR_NOT_FOUND after its end. */
int det_child_signal(struct det_child *child, int signal);
/* Asks the process to end: the stop signal, and SIGCONT, since a stopped process does not handle
 * signals. */
int det_child_stop(struct det_child *child);
/* SIGKILL to the whole group; a process that hangs in the kernel may take some time to end. */
int det_child_kill(struct det_child *child);
/* The process id; 0 after its end. */
int64_t det_child_number(const struct det_child *child);
/* Classifies the end by the fatal and success codes of a spec: 1 success, 0 failed, -1 failed
 * without retry. */
int det_child_verdict(const struct det_process_spec *spec, const struct det_process_end *end);
/* Closes the child after its end, or in on_end. Before its end (for aborted starts) the process is
 * killed and waited for, which blocks, and on_end is not called. Accepts NULL. */
void det_child_close(struct det_child *child);

#endif
