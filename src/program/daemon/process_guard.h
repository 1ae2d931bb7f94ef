/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* process_guard.h - records the processes that a run starts, so that they end when detent is
 * killed. Functions run on the loop's thread. */
#ifndef DET_DAEMON_PROCESS_GUARD_H
#define DET_DAEMON_PROCESS_GUARD_H

#include <detent/driver/process_guard.h>

struct up;
struct up_guard;

/* Replaces the world of the cli of `up` by one that records processes. */
DET_MUST_CHECK int up_guard_open(struct up *up);
/* Ends processes that an earlier detent has left running, and waits for their end. */
DET_MUST_CHECK int up_guard_start(struct up *up, struct det_error *reterr);
/* On SIGCHLD: restarts the guard process if it was killed. */
void up_guard_tend(struct up *up);
/* True if `number` is the guard process. */
bool up_guard_is_helper(const struct up *up, int64_t number);
/* Call after the loop is closed. */
void up_guard_close(struct up *up);

#endif
