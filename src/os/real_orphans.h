/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* real_orphans.h - for a program that must leave nothing behind: what left the groups of its
 * children is adopted, reaped and ended.
 *
 * A process that leaves its group (setsid) cannot be reached through its parent; when that has
 * ended, init would have it. A program that adopts gets it as a child of its own. A library has no
 * right to that, so this is for the program alone, and only in the real world.
 *
 * All of it is for the thread that starts processes: one that was just started, and is not yet
 * known as ours, would be taken for an orphan. */
#ifndef DET_OS_REAL_ORPHANS_H
#define DET_OS_REAL_ORPHANS_H

#include <detent/base.h>

/* Whether the child with this number is one that somebody else here looks after. */
typedef bool det_orphans_fn(void *user, int64_t number);

/* From here on orphans below this process become its children. 0, or DET_ERR_UNSUPPORTED. */
DET_MUST_CHECK int det_orphans_adopt(void);
/* Reaps the orphans that have ended and sends `signal` to the others; 0 only asks. Returns how many
 * were alive, or a negative error: without /proc nothing can be said. */
int det_orphans_sweep(det_orphans_fn *is_ours, void *user, int signal);
/* Kills all of them and what they leave in turn, and waits until they are gone. DET_ERR_TIMEOUT at
 * the (monotonic) deadline. */
DET_MUST_CHECK int det_orphans_end(det_orphans_fn *is_ours, void *user, det_time deadline);

#endif
