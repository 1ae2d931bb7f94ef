/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* child.h - a process on a loop: its lines, its messages, its end; for tasks and for checks.
 *
 *      start ---> running ---------------------> ended ---> close
 *                    | on_line, on_notify           | on_end, once
 *                    | signal, stop, kill           | signal: DET_ERR_NOT_FOUND
 *
 * The process leads a group of its own, and signals reach the whole group. The grace between a
 * stop and a kill is the caller's. Everything here is for the loop's own thread, callbacks run on
 * it in turns of the loop, never from inside a call of the caller's.
 *
 * Invariants
 *   1. on_end comes exactly once for each start that returned 0, and is the last callback.
 *   2. Before it the process was reaped, what was left of its group got SIGKILL, and what it had
 *      written until then was handed out. A descendant that left the group and holds a pipe open
 *      does not delay it; from then on nobody reads that pipe.
 *   3. No child keeps more than one unfinished line of DET_LINE_MAX bytes per stream, whatever it
 *      writes, and no turn reads more than a fixed amount from it: others get their turn, and the
 *      pipes are always read, so that a child is never blocked for good. */
#ifndef DET_TASK_CHILD_H
#define DET_TASK_CHILD_H

#include <detent/driver/world.h>
#include <detent/task.h>

struct det_child;

struct det_child_events {
    /* A line; its `id` and `name` are the caller's to know, and zero here. NULL: the process writes
     * to /dev/null, which costs nothing. At the end of a stream whose last bytes were thrown away
     * there is one more line of no bytes, cut, that only says how many. */
    void (*on_line)(void *user, const struct det_line *line);
    /* With has_notify: one line of a message, say "READY=1". Only of the process itself, its group,
     * or somebody of the same user who is gone already. NULL: not listened to. */
    void (*on_notify)(void *user, const char *message);
    /* code -1 and signal 0: it has ended, but somebody else has reaped it (a program that ignores
     * SIGCHLD, say), so nobody knows how. May close the child. Not NULL. */
    void (*on_end)(void *user, const struct det_process_end *end);
    void *user;
};

/* Starts the process. On failure nothing was called and nothing is left, and the error says what is
 * missing and what helps: DET_ERR_NOT_FOUND (program, folder, user), DET_ERR_IO (no right;
 * `cause`), DET_ERR_LIMIT (processes, descriptors), DET_ERR_NO_MEMORY, DET_ERR_INVALID (no argv).
 * The spec is used for the call only. */
DET_MUST_CHECK int det_child_start(
    struct det_loop *loop, const struct det_allocator *allocator,
    const struct det_process_spec *spec, const struct det_child_events *events,
    struct det_child **ret, struct det_error *reterr);
/* To the whole group; 0 only asks. DET_ERR_NOT_FOUND once it has ended. */
int det_child_signal(struct det_child *child, int signal);
/* Asks it to end: the stop signal, and SIGCONT, since one that stands still hears nothing. */
int det_child_stop(struct det_child *child);
/* SIGKILL: nothing in the group survives it, though a process that hangs in the kernel may take a
 * while to be gone. */
int det_child_kill(struct det_child *child);
/* The number of the process; 0 once it has ended. */
int64_t det_child_number(const struct det_child *child);
/* The place of the end among fatal and success codes of a spec: 1 success, 0 failed, -1 failed and
 * not to be tried again. */
int det_child_verdict(const struct det_process_spec *spec, const struct det_process_end *end);
/* After its end, or in on_end. Before that (for those who give up half way) it is killed and waited
 * for, which blocks, and on_end does not come. Takes NULL. */
void det_child_close(struct det_child *child);

#endif
