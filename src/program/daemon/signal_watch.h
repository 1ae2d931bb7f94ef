/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* signal_watch.h - signals on the loop, and the thread that ends a stop that takes too long. */
#ifndef DET_DAEMON_SIGNAL_WATCH_H
#define DET_DAEMON_SIGNAL_WATCH_H

#include <detent/driver/process_guard.h>
#include <stdatomic.h>

struct up;
struct up_deadline;
struct up_signals;

/* signal_watch.c */

/* Call before there are threads. 0 or an error. */
DET_MUST_CHECK int up_signals_open(struct up *up);
/* Kills processes that tasks have left running, and stops reading signals. */
void up_signals_close(struct up *up);
/* Restores the signal mask. */
void up_signals_end(struct up *up);

/* stop_deadline.c */

/* Takes the signalfd of SIGINT and SIGTERM, and the pipe to forward them to. */
DET_MUST_CHECK int up_deadline_open(struct up *up, int signals, int forward);
/* From now on a stop that takes too long kills the started processes. */
void up_deadline_guard(struct up *up, struct det_process_guard *guard);
/* A stop starts: the next signal is the second one. */
void up_deadline_arm(struct up *up);
/* When a second signal came (monotonic), DET_NEVER before; for effects. NULL: no deadline
 * thread. */
const _Atomic det_time *up_deadline_forced_at(const struct up *up);
/* Sets the phase that the main thread waits for: a static text for the message about a stop that
 * timed out. */
void up_deadline_phase(struct up *up, const char *phase);
void up_deadline_close(struct up *up);

#endif
